// Package registry lists the stages of a run, and answers what concerns several of them.
//
// # Model
//
// [All] lists the stages in order. [Hashes] and [Binding] bind files to the options that decide them, [Diff] names options in which plans
// differ, [Validate] checks a plan, [KindOf] describes the files of a kind, and [Explain] says which stage makes a damaged file again.
// [Execute] executes a task.
//
// # Memory
//
// Tables of stages and kinds.
//
// # Determinism
//
// A hash depends on the values of options alone.
package registry
