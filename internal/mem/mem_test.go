package mem

import (
	"errors"
	"regexp"
	"runtime/debug"
	"strconv"
	"testing"
	"unsafe"
)

func TestBudget(t *testing.T) {
	if _, err := NewBudget(MinBudget - 1); !errors.Is(err, ErrBudget) {
		t.Errorf("a budget below the smallest gave %v", err)
	}
	b, err := NewBudget(MinBudget)
	if err != nil {
		t.Fatal(err)
	}
	if b.Limit() != Usable(MinBudget) || b.Free() != b.Limit() {
		t.Errorf("limit %d, free %d", b.Limit(), b.Free())
	}
	a, err := Alloc[float32](b, 1000, "rows")
	if err != nil {
		t.Fatal(err)
	}
	if len(a.S) != 1000 || uintptr(unsafe.Pointer(&a.S[0]))%4096 != 0 {
		t.Errorf("%d elements at %p", len(a.S), &a.S[0])
	}
	for i, x := range a.S {
		if x != 0 {
			t.Fatalf("element %d starts as %g", i, x)
		}
		a.S[i] = float32(i)
	}
	a.Clear()
	if a.S[999] != 0 {
		t.Error("Clear left something")
	}
	if used := b.Limit() - b.Free(); used != 4096 {
		t.Errorf("4000 bytes are charged as %d", used)
	}
	if _, err := Alloc[uint64](b, b.Free()/8+1, "too much"); !errors.Is(err, ErrBudget) {
		t.Errorf("an array larger than what is free gave %v", err)
	}
	a.Free()
	a.Free()
	if b.Free() != b.Limit() || b.Peak() != 4096 {
		t.Errorf("after Free %d of %d are free, the peak is %d", b.Free(), b.Limit(), b.Peak())
	}
	var none *Array[int]
	none.Free()
	empty, err := Alloc[int64](b, 0, "nothing")
	if err != nil || len(empty.S) != 0 {
		t.Errorf("an empty array: %v, %d elements", err, len(empty.S))
	}
	empty.Free()
}

// TestPart gives a part of a budget away, and takes it back.
func TestPart(t *testing.T) {
	b, err := NewBudget(MinBudget)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	part, err := b.Part(1<<20, "a part")
	if err != nil || part.Limit() != 1<<20 || b.Free() != b.Limit()-1<<20 {
		t.Fatalf("a part of %d, %d are left: %v", part.Limit(), b.Free(), err)
	}
	if err := part.Reserve(1<<20+1, "too much"); !errors.Is(err, ErrBudget) {
		t.Error(err)
	}
	if _, err := b.Part(b.Limit(), "all"); !errors.Is(err, ErrBudget) {
		t.Error(err)
	}
	for range 2 {
		if part.Close(); b.Free() != b.Limit() {
			t.Errorf("%d of %d are free", b.Free(), b.Limit())
		}
	}
}

// TestReserveHeap: what is reserved for the heap is charged, and the garbage collector leaves it.
func TestReserveHeap(t *testing.T) {
	b, err := NewBudget(MinBudget)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	limit := debug.SetMemoryLimit(-1)
	release, err := b.ReserveHeap(10<<20, "a library")
	if err != nil || b.Free() != b.Limit()-10<<20 || debug.SetMemoryLimit(-1) != limit+10<<20 {
		t.Errorf("%d are free, the heap's limit went from %d to %d: %v", b.Free(), limit, debug.SetMemoryLimit(-1), err)
	}
	if _, err := b.ReserveHeap(b.Free()+1, "a library"); !errors.Is(err, ErrBudget) || debug.SetMemoryLimit(-1) != limit+10<<20 {
		t.Errorf("too much gave %v, and the limit %d", err, debug.SetMemoryLimit(-1))
	}
	if release(); b.Free() != b.Limit() || debug.SetMemoryLimit(-1) != limit {
		t.Errorf("%d of %d are free, the heap's limit is %d", b.Free(), b.Limit(), debug.SetMemoryLimit(-1))
	}
}

// TestWould: the memory that an error names is the least that would have done, also for a part of a budget.
func TestWould(t *testing.T) {
	b, err := NewBudget(MinBudget)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	part, err := b.Part(1<<20, "a part")
	if err != nil {
		t.Fatal(err)
	}
	defer part.Close()
	for _, of := range []*Budget{b, part} {
		more := int64(100<<20) + 5
		err := of.Reserve(of.Free()+more, "rows")
		if err == nil {
			t.Fatal("it fits")
		}
		found := regexp.MustCompile(`; --memory (\d+)MiB is enough`).FindStringSubmatch(err.Error())
		if found == nil {
			t.Fatal(err)
		}
		mib, _ := strconv.ParseInt(found[1], 10, 64)
		if Usable(mib<<20) < b.Limit()+more || Usable((mib-1)<<20) >= b.Limit()+more {
			t.Errorf("%v", err)
		}
	}
}

func TestBytes(t *testing.T) {
	for n, want := range map[Bytes]string{0: "0 B", 1023: "1023 B", 1024: "1.0 KiB", 3 << 29: "1.5 GiB", -2048: "-2.0 KiB"} {
		if got := n.String(); got != want {
			t.Errorf("%d prints as %q, want %q", int64(n), got, want)
		}
	}
	if got := AsBytes([]uint32{1, 256}); len(got) != 8 || got[0] != 1 || got[5] != 1 {
		t.Errorf("AsBytes gave %v", got)
	}
}

func TestTotal(t *testing.T) {
	for _, usable := range []int64{0, 1, 511, 512, 48 << 20, 1<<30 + 7, 16 << 30, 1 << 40} {
		total := Total(usable)
		if Usable(total) < usable || Usable(total-1) >= usable {
			t.Errorf("%d bytes: total %d hands out %d, one less %d", usable, total, Usable(total), Usable(total-1))
		}
	}
	if tables := 16<<30 - RuntimeShare - Usable(16<<30); tables != 32<<20 {
		t.Errorf("%d bytes of page tables in 16 GiB", tables)
	}
}

// TestGrow lengthens an array, which keeps its elements, and never past the budget.
func TestGrow(t *testing.T) {
	b, err := NewBudget(MinBudget)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	all := b.Free()
	a, err := Alloc[uint64](b, 1000, "keys")
	if err != nil {
		t.Fatal(err)
	}
	for i := range a.S {
		a.S[i] = uint64(i + 1)
	}
	for _, n := range []int64{1000, 1001, 5000, 300_000, 200_000} {
		before := int64(len(a.S))
		if err := a.Grow(n, "more keys"); err != nil {
			t.Fatal(err)
		}
		if want := max(n, before); int64(len(a.S)) != want || all-b.Free() != roundUp(8*want) {
			t.Fatalf("grown to %d: %d elements, %d bytes used", n, len(a.S), all-b.Free())
		}
		for i, x := range a.S {
			want := uint64(0)
			if i < 1000 {
				want = uint64(i + 1)
			}
			if x != want {
				t.Fatalf("grown to %d: element %d is %d", n, i, x)
			}
		}
	}
	if err := a.Grow(all/8+1, "too many keys"); !errors.Is(err, ErrBudget) || len(a.S) != 300_000 {
		t.Errorf("grown past the budget: %v, %d elements", err, len(a.S))
	}
	if a.Free(); b.Free() != all {
		t.Errorf("%d bytes not given back", all-b.Free())
	}
}
