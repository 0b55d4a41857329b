// Package coordinator turns a plan into stages, has them executed in order, and
// keeps run.json such that a failed or interrupted run never looks finished.
//
// # Model
//
// [Job.Run] is the one loop: for each stage that is not complete it writes
// run.json, hands a task to a [control.Executor], and writes run.json again. A
// run directory continues with the plan it was started with; another plan is
// refused with [control.ErrPlanMismatch], naming the fields that decide the
// output of stages already begun. A folder that holds anything but a run is
// refused with [ErrForeign] before a byte is written.
//
// What does not fit the memory or the disk is refused, as far as the dataset states
// its size, before the first stage, and again before each: package estimate says
// what a stage takes from what is known by then, and run.json keeps that beside
// what it took.
//
// # Format
//
// run.json is a [Record], report.json a [Report]; both are written through the
// store's atomic replacement. report.html shows the same figures and refers to
// nothing outside itself.
//
// # Memory
//
// A few kilobytes: the record holds one K histogram, no rows.
//
// # Determinism
//
// Stages run one after the other in the order of [control.Stages]. Records and
// reports hold times, so their bytes differ from run to run.
package coordinator
