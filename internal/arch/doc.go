// Package arch holds the test that keeps imports pointing one way: what each
// package may import, and who may use which library. A new package needs a row
// in its table.
package arch
