package mem

import (
	"fmt"
	"runtime"
	"strconv"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"

	"ndls/internal/cgroup"
	"ndls/internal/failure"
	"ndls/internal/invariants"
)

// RuntimeShare is the part of a budget for the Go runtime, program text and the heap that does not
// grow with the input. Measured on the whole job; see docs/decisions/0022-share-of-the-runtime.md.
const RuntimeShare = 80 << 20

// tablePart is the part of the total that the kernel's page tables take: 8 bytes for each
// page of 4096 bytes. The kernel charges them to the process.
const tablePart = 512

// Usable returns the bytes of a total that a budget hands out: all but [RuntimeShare] and page
// tables.
func Usable(total int64) int64 { return total - RuntimeShare - (total+tablePart-1)/tablePart }

// Total is the smallest total out of which a budget hands out so many bytes.
func Total(usable int64) int64 {
	return (usable + RuntimeShare) + (usable+RuntimeShare+tablePart-2)/(tablePart-1)
}

// MinBudget is the smallest budget a run accepts.
const MinBudget = RuntimeShare + 48<<20

// hugePage is the size from which a mapping is advised for huge pages.
const hugePage = 2 << 20

// ErrBudget reports a request that does not fit the memory budget.
var ErrBudget = failure.Kind("does not fit the memory budget")

// Budget hands out at most a fixed number of bytes. The zero value refuses
// everything. It is safe for concurrent use.
type Budget struct {
	mu    sync.Mutex
	limit int64
	used  int64
	peak  int64
	// closed says that the heap's limit is not this budget's any more.
	closed bool
	// of is the budget of which this one is a part, nil for one of its own.
	of *Budget
}

// CheckTotal refuses, with ErrBudget, a total that is too small for a budget, or more than the
// limit of the process's address space leaves.
func CheckTotal(total int64) error {
	left, limit, limited := cgroup.AddressSpace()
	what := fmt.Sprintf("the limit of address space, %s (ulimit -v %d), leaves %s beside what the program reserves", Bytes(limit), limit>>10, Bytes(max(left, 0)))
	if limited && left < MinBudget {
		return failure.Of(ErrBudget, "%s; at least %s are needed: ulimit -v %d is enough, or unlimited", what, Bytes(MinBudget), (limit+MinBudget-left)>>10)
	}
	if err := checkLeast(total); err != nil || !limited || total <= left {
		return err
	}
	return failure.Of(ErrBudget, "--memory %s: %s: --memory %s is enough, or raise the limit", Bytes(total), what, Bytes(left>>20<<20).Exact())
}

// checkLeast refuses a total that is too small for a budget.
func checkLeast(total int64) error {
	if total < MinBudget {
		return failure.Of(ErrBudget, "--memory %s is below the smallest budget, %s; --memory %dMiB is enough", Bytes(total), Bytes(MinBudget), MinBudget>>20)
	}
	return nil
}

// NewBudget returns a budget of limit bytes for arrays and buffers out of a
// process limit of total bytes, and tells the Go runtime to keep its heap
// within its own share until the budget is closed. total below [MinBudget] gives
// [ErrBudget].
func NewBudget(total int64) (*Budget, error) {
	if err := checkLeast(total); err != nil {
		return nil, err
	}
	heap.limit()
	return &Budget{limit: Usable(total)}, nil
}

// Part takes n bytes of b and returns a budget of them, which gives them back when it is closed.
func (b *Budget) Part(n int64, what string) (*Budget, error) {
	if err := b.Reserve(n, what); err != nil {
		return nil, err
	}
	return &Budget{limit: n, of: b}, nil
}

// Close gives the Go runtime the limit of its heap back that it had before, once no
// other budget is open. A part of a budget goes back to that.
func (b *Budget) Close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.closed:
	case b.of != nil:
		b.of.Release(b.limit)
	default:
		heap.unlimit()
	}
	b.closed = true
}

// Limit is the number of bytes the budget can hand out in all.
func (b *Budget) Limit() int64 { return b.limit }

// Free is the number of bytes not handed out.
func (b *Budget) Free() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.limit - b.used
}

// Peak is the largest number of bytes handed out at any time.
func (b *Budget) Peak() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.peak
}

// Reserve charges n bytes for what, or fails with [ErrBudget].
func (b *Budget) Reserve(n int64, what string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if n < 0 || n > b.limit-b.used {
		return fmt.Errorf("mem: %s needs %s, %s of %s are free; %s: %w",
			what, Bytes(n), Bytes(b.limit-b.used), Bytes(b.limit), b.Would(n-(b.limit-b.used)), ErrBudget)
	}
	b.used += n
	b.peak = max(b.peak, b.used)
	return nil
}

// ReserveHeap charges n bytes for what is on the Go heap, and has the garbage collector leave it as much more, until release is
// called. It is for what libraries hold that know nothing of budgets.
func (b *Budget) ReserveHeap(n int64, what string) (release func(), err error) {
	if err := b.Reserve(n, what); err != nil {
		return nil, err
	}
	heap.raise(n)
	return func() {
		heap.raise(-n)
		b.Release(n)
	}, nil
}

// Would says which --memory is enough, in words that end a message, where so many bytes more are needed than the budget has.
func (b *Budget) Would(more int64) string {
	root := b
	for root.of != nil {
		root = root.of
	}
	if total := Total(root.limit + more); more > 0 && total > 0 {
		return fmt.Sprintf("--memory %dMiB is enough", (total+1<<20-1)>>20)
	}
	return "no --memory is enough"
}

// Release returns n bytes taken with Reserve.
func (b *Budget) Release(n int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if n < 0 || n > b.used {
		panic("mem: more released than reserved")
	}
	b.used -= n
}

// Array is an off-heap slice. S must not be used after Free.
type Array[T any] struct {
	S      []T
	raw    []byte
	budget *Budget // nil without a charge
}

// Alloc maps a zeroed array of n elements, charged to b under the name what.
// T must hold no pointers. The first element is page-aligned.
func Alloc[T any](b *Budget, n int64, what string) (*Array[T], error) {
	var zero T
	size := roundUp(max(n*int64(unsafe.Sizeof(zero)), 1))
	if err := b.Reserve(size, what); err != nil {
		return nil, err
	}
	a, err := Map[T](n, what)
	if err != nil {
		b.Release(size)
		return nil, err
	}
	a.budget = b
	return a, nil
}

// Map is Alloc without a charge: for what the caller has reserved.
func Map[T any](n int64, what string) (*Array[T], error) {
	var zero T
	size := roundUp(max(n*int64(unsafe.Sizeof(zero)), 1))
	raw, err := unix.Mmap(-1, 0, int(size), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		return nil, fmt.Errorf("mem: map %s for %s: %w", Bytes(size), what, err)
	}
	if size >= hugePage {
		// Advice only: without huge pages the results are the same.
		_ = unix.Madvise(raw, unix.MADV_HUGEPAGE)
	}
	a := &Array[T]{S: unsafe.Slice((*T)(unsafe.Pointer(&raw[0])), n), raw: raw}
	if invariants.Enabled {
		runtime.SetFinalizer(a, func(a *Array[T]) {
			invariants.Check(a.raw == nil, "an array of %s for %s was dropped and not freed", Bytes(size), what)
		})
	}
	return a, nil
}

// Free unmaps the array and returns its bytes. It may be called on nil and
// more than once.
func (a *Array[T]) Free() {
	if a == nil || a.raw == nil {
		return
	}
	size := int64(len(a.raw))
	if err := unix.Munmap(a.raw); err != nil {
		panic(fmt.Sprintf("mem: unmap: %v", err))
	}
	if a.budget != nil {
		a.budget.Release(size)
	}
	a.raw, a.S = nil, nil
}

// Grow lengthens the array to n elements, unless it is that long, and charges what it takes
// more. The elements keep their values and the new ones are zero. S is another slice afterwards.
func (a *Array[T]) Grow(n int64, what string) error {
	if n <= int64(len(a.S)) {
		return nil
	}
	var zero T
	if size, before := roundUp(n*int64(unsafe.Sizeof(zero))), int64(len(a.raw)); size > before {
		if a.budget != nil {
			if err := a.budget.Reserve(size-before, what); err != nil {
				return err
			}
		}
		raw, err := unix.Mremap(a.raw, int(size), unix.MREMAP_MAYMOVE)
		if err != nil {
			if a.budget != nil {
				a.budget.Release(size - before)
			}
			return fmt.Errorf("mem: map %s for %s: %w", Bytes(size), what, err)
		}
		if size >= hugePage {
			_ = unix.Madvise(raw, unix.MADV_HUGEPAGE)
		}
		a.raw = raw
	}
	a.S = unsafe.Slice((*T)(unsafe.Pointer(&a.raw[0])), n)
	return nil
}

// Clear zeroes the array.
func (a *Array[T]) Clear() { clear(a.S) }

func roundUp(n int64) int64 { return (n + 4095) &^ 4095 }

// AsBytes views a slice of pointer-free elements as its bytes in memory
// (little-endian on every supported platform).
func AsBytes[T any](s []T) []byte {
	if len(s) == 0 {
		return nil
	}
	return unsafe.Slice((*byte)(unsafe.Pointer(&s[0])), len(s)*int(unsafe.Sizeof(s[0])))
}

// View sees the bytes of an array as elements of a type without pointers.
func View[T any](a *Array[byte]) []T {
	var zero T
	return unsafe.Slice((*T)(unsafe.Pointer(&a.S[0])), len(a.S)/int(unsafe.Sizeof(zero)))
}

// Extend lengthens b, which starts on a page of an array, to n bytes within the
// last page that it reaches: arrays are mapped in whole pages, and so are
// transfers of direct I/O.
func Extend(b []byte, n int64) []byte { return unsafe.Slice(&b[0], n) }

// Bytes is a byte count that prints in binary units.
type Bytes int64

func (n Bytes) String() string {
	f, units := float64(n), []string{"B", "KiB", "MiB", "GiB", "TiB", "PiB"}
	i := 0
	for ; (f >= 1024 || f <= -1024) && i < len(units)-1; i++ {
		f /= 1024
	}
	if i == 0 {
		return fmt.Sprintf("%d B", int64(n))
	}
	return fmt.Sprintf("%.1f %s", f, units[i])
}

// Exact is n as an option takes it, to the byte: "16GiB", or "1000".
func (n Bytes) Exact() string {
	unit := ""
	for _, u := range []string{"KiB", "MiB", "GiB", "TiB"} {
		if n == 0 || n%1024 != 0 {
			break
		}
		n, unit = n/1024, u
	}
	return strconv.FormatInt(int64(n), 10) + unit
}
