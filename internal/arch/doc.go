// Package arch holds the test that keeps imports pointing one way: what each
// package may import, and who may use which library. It also finds operations on files
// that do not go through package vfs, and functions of package math whose bits depend on the
// processor. A new package needs a row in its table.
package arch
