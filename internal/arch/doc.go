// Package arch holds the test that keeps imports pointing one way: what each
// package may import, and who may use which library. It also finds operations on files
// that do not go through package vfs, functions of package math whose bits depend on the
// processor, stages that are named outside of package stage, and comments that hide who acts or in
// which unit. A new package needs a row in its table.
package arch
