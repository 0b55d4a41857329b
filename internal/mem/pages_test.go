package mem

import (
	"errors"
	"math/rand/v2"
	"testing"
	"unsafe"

	"ndls/internal/invariants"
)

// TestUnclearedReuses has an array made of the pages of one that was freed, and of new ones.
func TestUnclearedReuses(t *testing.T) {
	b, err := NewBudget(MinBudget)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	other, err := Alloc[byte](b, 1, "another one") // without it nothing is kept
	if err != nil {
		t.Fatal(err)
	}
	first, err := Alloc[uint64](b, 8<<20/8, "first")
	if err != nil {
		t.Fatal(err)
	}
	for i := range first.S {
		first.S[i] = 7
	}
	first.Free()
	if b.kept.bytes != 8<<20 || b.Free() != b.Limit()-4096 {
		t.Fatalf("%d bytes are kept, %d of %d are free", b.kept.bytes, b.Free(), b.Limit())
	}
	second, err := Uncleared[uint64](b, 12<<20/8+1, "second")
	if err != nil {
		t.Fatal(err)
	}
	for i, x := range second.S {
		want := uint64(7)
		if i >= 8<<20/8 {
			want = 0
		}
		if invariants.Enabled {
			want = 0xa5a5a5a5a5a5a5a5
		}
		if x != want {
			t.Fatalf("element %d is %d, want %d", i, x, want)
		}
	}
	if used := b.Limit() - b.Free(); used != 12<<20+2*4096 || b.kept.bytes != 0 {
		t.Errorf("%d bytes are charged, %d are kept", used, b.kept.bytes)
	}
	// One that is cleared takes no kept pages, and has the budget give them back.
	second.Free()
	third, err := Alloc[uint64](b, 12<<20/8, "third")
	if err != nil {
		t.Fatal(err)
	}
	if third.S[0] != 0 || b.kept.bytes > 4096 {
		t.Errorf("a cleared array begins with %d, %d bytes are kept", third.S[0], b.kept.bytes)
	}
	third.Free()
	if _, err := Uncleared[byte](b, b.Limit()+1, "too much"); !errors.Is(err, ErrBudget) {
		t.Errorf("more than the budget gave %v", err)
	}
	if b.kept.bytes != 12<<20 {
		t.Errorf("%d bytes are kept after a refusal", b.kept.bytes)
	}
	if other.Free(); b.kept.bytes != 0 {
		t.Errorf("%d bytes are kept when all are free", b.kept.bytes)
	}
}

// TestUnclearedKeepsApart draws sequences of arrays that come and go: each keeps what was written to
// it, no two overlap, and what is charged and kept never exceeds the peak.
func TestUnclearedKeepsApart(t *testing.T) {
	b, err := NewBudget(MinBudget + 64<<20)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	type written struct {
		*Array[uint64]
		mark uint64
	}
	check := func(w written) {
		for i := 0; i < len(w.S); i += 512 {
			if w.S[i] != w.mark {
				t.Fatalf("element %d of %d is %d, want %d", i, len(w.S), w.S[i], w.mark)
			}
		}
	}
	r := rand.New(rand.NewPCG(1, 2))
	var live []written
	for step := range uint64(4000) {
		if at := r.IntN(12); at < len(live) {
			check(live[at])
			live[at].Free()
			live = append(live[:at], live[at+1:]...)
		} else {
			n, alloc := 1+r.Int64N(20<<20/8), Uncleared[uint64]
			if r.IntN(3) == 0 {
				alloc = Alloc[uint64]
			}
			if r.IntN(2) == 0 {
				n = n&^(hugePage/8-1) + 1<<9 // almost whole huge pages
			}
			a, err := alloc(b, n, "an array")
			if errors.Is(err, ErrBudget) {
				continue
			}
			if err != nil {
				t.Fatal(err)
			}
			if uintptr(unsafe.Pointer(&a.S[0]))%4096 != 0 {
				t.Fatalf("an array starts at %p", &a.S[0])
			}
			for i := 0; i < len(a.S); i += 512 {
				a.S[i] = step
			}
			live = append(live, written{a, step})
		}
		if b.used+b.kept.bytes > b.peak {
			t.Fatalf("%d bytes are charged, %d are kept, the peak is %d", b.used, b.kept.bytes, b.peak)
		}
		sum := int64(0)
		for _, p := range b.kept.pages {
			if sum += p.n; p.n <= 0 || p.n%hugePage != 0 || uintptr(p.at)%hugePage != 0 {
				t.Fatalf("%d bytes are kept at %p", p.n, p.at)
			}
		}
		if sum != b.kept.bytes {
			t.Fatalf("%d bytes are kept, counted as %d", sum, b.kept.bytes)
		}
	}
	for _, w := range live {
		check(w)
		w.Free()
	}
}
