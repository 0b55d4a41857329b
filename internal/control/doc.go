// Package control holds what the coordinator and the workers say to each other:
// the plan, the tasks cut from it, and the reports that come back. It computes
// nothing.
//
// # Model
//
// A plan ([plan.Options]) is everything that decides the bytes of a run directory, and nothing
// else: no paths, no threads, no memory. [Inputs] says where a run finds its input and [Resources] what
// a task may use. The coordinator cuts a plan into tasks; workers ask its [Service]
// for them, which is the same in one process and between machines.
//
// # Format
//
// Plans and reports are JSON with the field names of run.json and report.json.
package control
