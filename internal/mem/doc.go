// Package mem keeps the process inside its memory budget: every array whose
// size depends on the input is an off-heap [Array], charged to a [Budget]
// before it is mapped.
//
// # Model
//
// A budget is a hard cap in bytes for heap, arenas and the page cache that the
// process causes. [NewBudget] sets a fixed share aside for the Go runtime
// (code, stacks, heap that does not grow with the input), and 8 bytes a page
// for the page tables of the kernel. It hands the rest out; an allocation that does not fit fails with [ErrBudget] and names what
// asked, before any work is done.
//
// Arrays are anonymous mappings, advised for huge pages and aligned to the page
// size, so that they can be the buffers of direct I/O. They start zeroed. They
// are not seen by the garbage collector: element types must not hold pointers.
//
// While a budget is open, the garbage collector keeps the Go heap near three quarters of
// [RuntimeShare], above what was on the heap before, and what [Budget.ReserveHeap] has charged. [Budget.Close] ends that.
//
// # Memory
//
// Sum of the sizes of live arrays, each rounded up to 4096 bytes, plus
// [RuntimeShare], plus 1/512 of the total for page tables. What a program that uses package ndls has on its own heap comes on top.
//
// # Not supported
//
// Growing an array, and sharing one between processes.
package mem
