package keysort

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"ndls/internal/extsort"
	"ndls/internal/mem"
	"ndls/internal/seal"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func newSorter(t testing.TB, size int64, adders int) (*Sorter, *mem.Budget) {
	t.Helper()
	b, err := mem.NewBudget(256 << 20)
	if err != nil {
		t.Fatal(err)
	}
	scratch, err := extsort.NewScratch(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	s, err := New(b, scratch, size, adders)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		s.Close()
		if b.Free() != b.Limit() {
			t.Errorf("%d bytes of the budget were not given back", b.Limit()-b.Free())
		}
		b.Close()
		_ = scratch.Remove()
	})
	return s, b
}

func collect(t testing.TB, s *Sorter) (keys []string, times map[string]int) {
	t.Helper()
	times = map[string]int{}
	if err := s.Each(t.Context(), func(key []byte, n uint32) error {
		keys = append(keys, string(key))
		times[string(key)] += int(n)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return keys, times
}

// TestSortsLikeAMap compares the sorter with a map, whatever the keys.
func TestSortsLikeAMap(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		common := rapid.StringN(0, 12, 20).Draw(r, "common")
		list := rapid.SliceOf(rapid.OneOf(
			rapid.StringMatching(`[ab\x00]{0,12}`),
			rapid.Map(rapid.StringN(0, 20, 60), func(s string) string { return common + s }),
		)).Draw(r, "keys")
		s, _ := newSorter(t, LeastBytes, rapid.IntRange(1, 3).Draw(r, "adders"))
		want := map[string]int{}
		for i, key := range list {
			want[key]++
			if err := s.Adders()[i%len(s.Adders())].Add([]byte(key)); err != nil {
				r.Fatal(err)
			}
			if rapid.IntRange(0, 9).Draw(r, "spill") == 0 {
				if err := s.Adders()[0].spill(); err != nil {
					r.Fatal(err)
				}
			}
		}
		keys, times := collect(t, s)
		if !slices.Equal(keys, slices.Sorted(maps.Keys(want))) || !maps.Equal(times, want) {
			r.Fatalf("%q\nbecame %q", list, keys)
		}
	})
}

// TestSpills sorts more than fits with several budgets and goroutines.
func TestSpills(t *testing.T) {
	const n = 200_000
	want := make([]string, 0, n)
	for i := range n {
		want = append(want, fmt.Sprintf("user/%d", i))
	}
	slices.Sort(want)
	for _, c := range []struct {
		size   int64
		adders int
		spills bool
	}{{LeastBytes, 1, true}, {3 * LeastBytes, 3, true}, {64 << 20, 2, false}} {
		s, _ := newSorter(t, c.size, c.adders)
		var adding sync.WaitGroup
		for k, a := range s.Adders() {
			adding.Add(1)
			go func() {
				defer adding.Done()
				order := rand.New(rand.NewPCG(1, uint64(k))).Perm(n)
				for _, i := range order {
					if err := a.Add(fmt.Appendf(nil, "user/%d", i)); err != nil {
						t.Error(err)
						return
					}
				}
			}()
		}
		adding.Wait()
		if s.Spilled() != c.spills {
			t.Errorf("%d bytes: spilled is %v", c.size, s.Spilled())
		}
		keys, times := collect(t, s)
		if !slices.Equal(keys, want) {
			t.Errorf("%d bytes, %d adders: %d keys", c.size, c.adders, len(keys))
		}
		for key, n := range times {
			if n != len(s.Adders()) {
				t.Fatalf("%s came %d times", key, n)
			}
		}
	}
}

// TestFewerRuns merges more runs than there are buffers for.
func TestFewerRuns(t *testing.T) {
	s, _ := newSorter(t, LeastBytes, 1)
	s.budget.Release(s.merging)
	s.merging = 3 * runBytes
	if err := s.budget.Reserve(s.merging, "a test"); err != nil {
		t.Fatal(err)
	}
	for i := range 23 {
		for k := range 5 {
			if err := s.Adders()[0].Add(fmt.Appendf(nil, "%02d", (7*i+k)%40)); err != nil {
				t.Fatal(err)
			}
		}
		if err := s.Adders()[0].spill(); err != nil {
			t.Fatal(err)
		}
	}
	keys, times := collect(t, s)
	total := 0
	for _, n := range times {
		total += n
	}
	if !slices.IsSorted(keys) || total != 23*5 || len(keys) != 40 {
		t.Errorf("%d keys came %d times: %v", len(keys), total, keys)
	}
}

// TestDamage finds every flipped byte of a run.
func TestDamage(t *testing.T) {
	dir := t.TempDir()
	b, err := mem.NewBudget(128 << 20)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	scratch, err := extsort.NewScratch(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = scratch.Remove() }()
	s, err := New(b, scratch, LeastBytes, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for i := range 100 {
		if err := s.Adders()[0].Add(fmt.Appendf(nil, "%d", i)); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Adders()[0].spill(); err != nil {
		t.Fatal(err)
	}
	s.runs[0].size-- // the last bytes of the block are not its checksum then
	err = s.Each(context.Background(), func([]byte, uint32) error { return nil })
	if !errors.Is(err, seal.ErrCorrupt) || !bytes.Contains([]byte(err.Error()), []byte("scratch file")) {
		t.Errorf("a damaged run gives %v", err)
	}
	if left, _ := filepath.Glob(dir + "/*/*"); len(left) > 0 {
		t.Errorf("left in the scratch folder: %v", left)
	}
	if _, err := os.Stat(dir); err != nil {
		t.Error(err)
	}
}

func BenchmarkAdd(b *testing.B) {
	s, _ := newSorter(b, 128<<20, 1)
	key := make([]byte, 0, 32)
	for i := range b.N {
		key = fmt.Appendf(key[:0], "user/%09d", uint32(i)*2654435761%1_000_000)
		if err := s.Adders()[0].Add(key); err != nil {
			b.Fatal(err)
		}
	}
}
