// Package stage knows the stages of a run, and the kinds of files that they leave.
//
// # Determinism
//
// A file is bound to the hash of the part of the plan that decides its bytes
// ([Binding]): what was made under another plan is never taken for complete.
package stage
