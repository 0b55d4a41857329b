package extsort

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"ndls/internal/rng"
)

func TestRadixSort(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		mask := rapid.Uint64().Draw(t, "bits that vary")
		keys := rapid.SliceOf(rapid.Uint64()).Draw(t, "keys")
		for i := range keys {
			keys[i] = keys[i]&mask | 0x5555555555555555&^mask
		}
		want := slices.Clone(keys)
		slices.Sort(want)
		got := slices.Clone(keys)
		SortKeys(got, 1)
		if !slices.Equal(got, want) {
			t.Fatalf("sorted to %x, want %x", got, want)
		}
		if !slices.Equal(unique(got), slices.Compact(want)) {
			t.Fatalf("unique keys are %x, want %x", got, want)
		}
	})
}

// TestRadixSortLong has more keys than the cache, dealt out once or several
// times, by one thread or more.
func TestRadixSortLong(t *testing.T) {
	for name, key := range map[string]func(h uint64) uint64{
		"edges":           func(h uint64) uint64 { return h&0x300000<<32 | h>>40<<20 | h&0xfffff },
		"pairs":           func(h uint64) uint64 { return h>>44<<32 | h&0xfffff },
		"all bits":        func(h uint64) uint64 { return h },
		"few keys":        func(h uint64) uint64 { return h % 5 << 40 },
		"one key":         func(uint64) uint64 { return 7 },
		"one far off":     func(h uint64) uint64 { return max(h%1000, h/(1<<50)*(h>>14&1)<<40) },
		"small and large": func(h uint64) uint64 { return h >> (h % 64) },
	} {
		for _, n := range []int{cacheKeys, cacheKeys + 1, 3 * cacheKeys, 40 * cacheKeys} {
			if testing.Short() && n > 3*cacheKeys && name != "edges" {
				continue
			}
			keys := make([]uint64, n)
			for i := range keys {
				keys[i] = key(rng.Hash(uint64(n), uint64(i)))
			}
			want := slices.Clone(keys)
			slices.Sort(want)
			for _, threads := range []int{1, 2, 3} {
				got := slices.Clone(keys)
				if SortKeys(got, threads); !slices.Equal(got, want) {
					t.Errorf("%s: %d keys on %d threads are not sorted", name, n, threads)
				}
			}
		}
	}
}

// collect takes all keys of a Sorter, in order, or in any order and sorts them.
func collect(t *testing.T, s *Sorter[uint64], ordered bool) []uint64 {
	t.Helper()
	var all []uint64
	var mu sync.Mutex
	take := func(keys []uint64) error {
		mu.Lock()
		defer mu.Unlock()
		if len(keys) == 0 || len(keys) > BatchKeys {
			t.Errorf("a batch of %d keys", len(keys))
		}
		all = append(all, keys...)
		return nil
	}
	if ordered {
		must(t, s.InOrder(take))
		return all
	}
	must(t, s.Each(take))
	slices.Sort(all)
	return all
}

func TestSorter(t *testing.T) {
	const mib = 1 << 20
	for _, c := range []struct {
		name  string
		keys  int
		free  int64
		want  int64
		files int // spilled, merges included
	}{
		{"nothing", 0, mib, 0, 0},
		{"one key", 1, mib, 0, 0},
		{"in memory", 100_000, 8 * mib, 0, 0},
		{"in memory, count known", 100_000, 4 * mib, 100_000, 0},
		{"count known too small", 100_000, 3 * mib, 60_000, 2},
		// 512 KiB give two buffers of 32,768 keys.
		{"runs in one merge", 100_000, mib / 2, 0, 4},
		// 64 KiB give runs of 4,096 keys; eight of them can be merged at a time.
		{"runs in many merges", 300_000, mib / 16, 0, 80},
	} {
		for _, threads := range []int{1, 2, 5, 16} {
			t.Run(fmt.Sprintf("%s, %d threads", c.name, threads), func(t *testing.T) {
				s, err := NewScratch(scratchFolder(t))
				if err != nil {
					t.Fatal(err)
				}
				defer func() { _ = s.Remove() }()
				b := budget(t, c.free)
				sort, err := NewSorter[uint64](context.Background(), b, s, Options{Want: c.want, Threads: threads})
				if err != nil {
					t.Fatal(err)
				}
				want := make([]uint64, c.keys)
				for i := 0; i < len(want); {
					// Some keys are copied, some are made in their place.
					part := want[i:min(i+1+int(rng.Hash(2, uint64(i))%200), len(want))]
					for k := range part {
						part[k] = rng.Hash(1, uint64(i+k)) % 50_000 << 20
					}
					if i += len(part); i%2 == 0 {
						err = sort.Add(part)
					} else {
						err = sort.AddFrom(len(part), func(keys []uint64) { copy(keys, part) })
					}
					if err != nil {
						t.Fatal(err)
					}
				}
				slices.Sort(want)
				if err := sort.Finish(); err != nil {
					t.Fatal(err)
				}
				if !slices.Equal(collect(t, sort, threads > 1), slices.Compact(want)) {
					t.Error("wrong keys")
				}
				if files := s.Files(); files < c.files || c.files == 0 && files > 0 {
					t.Errorf("%d files spilled, at least %d expected", files, c.files)
				}
				if b.Free() != c.free {
					t.Errorf("%d bytes not given back", c.free-b.Free())
				}
			})
		}
	}
}

// TestSorterNotesEachKey sorts keys of which the last one that each call adds has all bits.
func TestSorterNotesEachKey(t *testing.T) {
	s, err := NewScratch(scratchFolder(t))
	must(t, err)
	defer func() { _ = s.Remove() }()
	keys := randomKeys(100_000)
	for i := 999; i < len(keys); i += 1000 { // sortAll adds so many
		keys[i] = math.MaxUint64 - 1
	}
	got, err := sortAll(budget(t, 8<<20), s, keys, 1, func(*Sorter[uint64]) {})
	must(t, err)
	slices.Sort(keys)
	if want := slices.Compact(keys); !slices.Equal(got, want) {
		t.Errorf("%d keys are sorted to %d others", len(want), len(got))
	}
}

func TestSorterIsCancelled(t *testing.T) {
	s, err := NewScratch(scratchFolder(t))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Remove() }()
	ctx, cancel := context.WithCancel(context.Background())
	b := budget(t, 1<<19)
	sort, err := NewSorter[uint64](ctx, b, s, Options{Threads: 2})
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	for i := 0; err == nil; i++ {
		err = sort.Add([]uint64{uint64(i)})
	}
	if !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	sort.Close()
	if b.Free() != 1<<19 {
		t.Error("memory not given back")
	}
}

// BenchmarkRadixSort sorts keys of graphs of 2^21 nodes on one thread.
func BenchmarkRadixSort(b *testing.B) {
	const n = 1 << 23
	skewed := func(h uint64) uint64 { return (h & 0x1fffff) * (h >> 21 & 0x1fffff) >> 21 } // small ids are frequent
	for name, key := range map[string]func(u, v uint64) uint64{
		"pairs": func(u, v uint64) uint64 { return min(u, v)<<32 | max(u, v) },
		"edges": func(u, v uint64) uint64 { return v>>20<<41 | u<<20 | v&0xfffff },
	} {
		b.Run(name, func(b *testing.B) {
			source, keys := make([]uint64, n), make([]uint64, n)
			for i := range source {
				source[i] = key(skewed(rng.Hash(1, uint64(i))), skewed(rng.Hash(2, uint64(i))))
			}
			best := time.Duration(math.MaxInt64)
			for b.Loop() {
				copy(keys, source)
				start := time.Now()
				SortKeys(keys, 1)
				best = min(best, time.Since(start))
			}
			b.ReportMetric(float64(best)/n, "best-ns/key")
		})
	}
}

// TestAgain sorts keys, leaves some of each batch out, changes the others where they are and adds more.
func TestAgain(t *testing.T) {
	for _, n := range []int{1, 100, 5 * BatchKeys, 40 * cacheKeys / 10} {
		for _, threads := range []int{1, 3} {
			b := budget(t, 64<<20)
			free := b.Free()
			s, err := NewScratch(scratchFolder(t))
			must(t, err)
			sorter, err := NewSorter[uint64](context.Background(), b, s, Options{Want: int64(n), Threads: threads})
			must(t, err)
			var keys, want []uint64
			for i := range n {
				keys = append(keys, rng.Hash(uint64(i))%uint64(n)<<3)
			}
			must(t, sorter.Add(keys))
			must(t, sorter.Finish())
			if !sorter.InMemory() {
				t.Fatalf("%d keys are not in memory", n)
			}
			var mu sync.Mutex
			var batches [][]uint64
			must(t, sorter.EachKept(func(batch []uint64) error {
				left := batch[:0]
				for _, key := range batch {
					if rng.Hash(key)%5 > 0 {
						left = append(left, key)
					}
				}
				mu.Lock()
				defer mu.Unlock()
				batches = append(batches, left)
				for _, key := range left {
					want = append(want, 3*key+1, 3*key+2)
				}
				return nil
			}))
			kept, err := sorter.Again(batches, int64(2*n))
			must(t, err)
			if len(kept) != len(want)/2 {
				t.Fatalf("%d of %d keys were kept", len(kept), len(want)/2)
			}
			must(t, sorter.AddFrom(len(kept), func(others []uint64) {
				for i, key := range kept {
					others[i], kept[i] = 3*key+2, 3*key+1
				}
			}))
			sorter.Changed(kept)
			must(t, sorter.Finish())
			slices.Sort(want)
			if got := collect(t, sorter, threads == 1); !slices.Equal(got, want) {
				t.Errorf("%d keys on %d threads: %d keys in the end, or others, want %d", n, threads, len(got), len(want))
			}
			must(t, s.Remove())
			if b.Free() != free {
				t.Errorf("%d bytes not given back", free-b.Free())
			}
		}
	}
}
