package partition

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"testing"

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
		got := radixSort(keys, make([]uint64, len(keys)+3))
		if !slices.Equal(got, want) {
			t.Fatalf("sorted to %x, want %x", got, want)
		}
		if !slices.Equal(unique(got), slices.Compact(want)) {
			t.Fatalf("unique keys are %x, want %x", got, want)
		}
	})
}

// collect reads a stream to its end.
func collect(t *testing.T, s keyStream) []uint64 {
	t.Helper()
	defer s.close()
	var all []uint64
	for {
		keys, err := s.next()
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		if len(keys) == 0 || len(keys) > batchKeys {
			t.Fatalf("a batch of %d keys", len(keys))
		}
		all = append(all, keys...)
	}
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
		// 512 KiB give two buffers of 24,576 keys, or three of 16,384.
		{"runs in one merge", 100_000, mib / 2, 0, 5},
		// 128 KiB give runs of 6,144 or 4,096 keys and merges of two.
		{"runs in many merges", 100_000, mib / 8, 0, 30},
	} {
		for _, overlap := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, overlap %v", c.name, overlap), func(t *testing.T) {
				s, err := newScratch(scratchFolder(t))
				if err != nil {
					t.Fatal(err)
				}
				defer func() { _ = s.remove() }()
				b := budget(t, c.free)
				sort, err := newSorter(context.Background(), b, s, c.want, overlap)
				if err != nil {
					t.Fatal(err)
				}
				want := make([]uint64, c.keys)
				for i := range want {
					want[i] = rng.Hash(1, uint64(i)) % 50_000 << 20
					if err := sort.add(want[i]); err != nil {
						t.Fatal(err)
					}
				}
				slices.Sort(want)
				if err := sort.finish(); err != nil {
					t.Fatal(err)
				}
				stream, err := sort.stream()
				if err != nil {
					t.Fatal(err)
				}
				sort.close()
				if !slices.Equal(collect(t, stream), slices.Compact(want)) {
					t.Error("wrong keys")
				}
				if s.files < c.files || c.files == 0 && s.files > 0 {
					t.Errorf("%d files spilled, at least %d expected", s.files, c.files)
				}
				if b.Free() != c.free {
					t.Errorf("%d bytes not given back", c.free-b.Free())
				}
			})
		}
	}
}

func TestSorterIsCancelled(t *testing.T) {
	s, err := newScratch(scratchFolder(t))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.remove() }()
	ctx, cancel := context.WithCancel(context.Background())
	b := budget(t, 1<<19)
	sort, err := newSorter(ctx, b, s, 0, true)
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	for i := 0; err == nil; i++ {
		err = sort.add(uint64(i))
	}
	if !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	sort.close()
	if b.Free() != 1<<19 {
		t.Error("memory not given back")
	}
}

func BenchmarkRadixSort(b *testing.B) {
	const n = 1 << 22
	source, keys, tmp := make([]uint64, n), make([]uint64, n), make([]uint64, n)
	for i := range source {
		h := rng.Hash(1, uint64(i))
		source[i] = edgeKey(uint32(h>>40), uint32(h&0xffffff))
	}
	for b.Loop() {
		copy(keys, source)
		radixSort(keys, tmp)
	}
	b.ReportMetric(float64(n)*float64(b.N)/b.Elapsed().Seconds(), "keys/s")
}
