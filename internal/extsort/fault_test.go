package extsort

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/sync/errgroup"
	"pgregory.net/rapid"

	"ndls/internal/mem"
	"ndls/internal/rng"
	"ndls/internal/seal"
	"ndls/internal/storage"
	"ndls/internal/storage/storagetest"
	"ndls/internal/vfs"
	"ndls/internal/vfs/vfstest"
)

// sortAll sorts keys, which as many goroutines add as there are threads, with a budget
// that is too small for them, and calls atEnd before the sorted keys are read.
func sortAll(b *mem.Budget, s *Scratch, keys []uint64, threads int, atEnd func(*Sorter[uint64])) (got []uint64, err error) {
	sorter, err := NewSorter[uint64](context.Background(), b, s, Options{Threads: threads})
	if err != nil {
		return nil, err
	}
	defer sorter.Close()
	var adding errgroup.Group
	for i := range threads {
		adding.Go(func() error {
			for rest := keys[len(keys)*i/threads : len(keys)*(i+1)/threads]; len(rest) > 0; {
				n := min(len(rest), 1000)
				if err := sorter.Add(rest[:n]); err != nil {
					return err
				}
				rest = rest[n:]
			}
			return nil
		})
	}
	if err := adding.Wait(); err != nil {
		return nil, err
	}
	if err := sorter.Finish(); err != nil {
		return nil, err
	}
	if atEnd != nil {
		atEnd(sorter)
	}
	err = sorter.InOrder(func(keys []uint64) error {
		got = append(got, keys...)
		return nil
	})
	return got, err
}

func randomKeys(n int) []uint64 {
	keys := make([]uint64, n)
	for i := range keys {
		keys[i] = rng.Hash(3, uint64(i)) % uint64(n) << 9
	}
	return keys
}

// TestSortsAnything compares with a sort in memory, for any budget, threads and keys.
func TestSortsAnything(t *testing.T) {
	folder := scratchFolder(t)
	rapid.Check(t, func(t *rapid.T) {
		keys := randomKeys(rapid.IntRange(0, 40_000).Draw(t, "keys"))
		free := rapid.Int64Range(160<<10, 2<<20).Draw(t, "free")
		b := budget(t, free)
		s, err := NewScratch(folder)
		must(t, err)
		got, err := sortAll(b, s, slices.Clone(keys), rapid.SampledFrom([]int{1, 2, 3, 5, 16}).Draw(t, "threads"), nil)
		must(t, err)
		must(t, s.Remove())
		slices.Sort(keys)
		if !slices.Equal(got, slices.Compact(keys)) {
			t.Fatalf("%d keys, others than those of a sort in memory", len(got))
		}
		if b.Free() != free {
			t.Fatalf("%d bytes were not given back", free-b.Free())
		}
	})
}

// TestWritesFail fails each write of a sort once, as a full disk does. Each failure is
// reported as one of the disk, and neither files, memory nor goroutines are left.
func TestWritesFail(t *testing.T) {
	keys := randomKeys(100_000)
	for _, threads := range []int{1, 2} {
		for at, failed := 1, true; failed; at++ {
			failed = failWrite(t, keys, threads, at)
			if !failed && at < 10 {
				t.Errorf("a sort on %d threads wrote %d times", threads, at-1)
			}
		}
	}
}

// failWrite sorts on a disk that is full at one of its writes, and reports whether there are
// as many.
func failWrite(t *testing.T, keys []uint64, threads, at int) bool {
	t.Helper()
	const free = 160 << 10
	b := budget(t, free)
	dir := scratchFolder(t)
	faults := vfstest.NewFaults(vfs.OS{}, vfstest.Plan{Kind: vfstest.Write, At: at, Errno: syscall.ENOSPC})
	defer vfs.Mount(dir, faults)()
	s, err := NewScratch(dir)
	must(t, err)
	_, err = sortAll(b, s, slices.Clone(keys), threads, nil)
	failed := faults.Felt() != ""
	if failed != errors.Is(err, storage.ErrDisk) || failed != errors.Is(err, syscall.ENOSPC) || !failed && err != nil {
		t.Errorf("write %d on %d threads, %q: %v", at, threads, faults.Felt(), err)
	}
	checkNothingLeft(t, s)
	if b.Free() != free {
		t.Errorf("%d bytes were not given back", free-b.Free())
	}
	return failed
}

// checkNothingLeft looks into the folder before it is removed.
func checkNothingLeft(t *testing.T, s *Scratch) {
	t.Helper()
	left, err := os.ReadDir(s.dir)
	must(t, err)
	for _, e := range left {
		t.Errorf("%s was left", filepath.Join(s.dir, e.Name()))
	}
	must(t, s.Remove())
}

// TestFolderIsGone takes the folder away before the first run is written.
func TestFolderIsGone(t *testing.T) {
	b := budget(t, 160<<10)
	s, err := NewScratch(scratchFolder(t))
	must(t, err)
	must(t, os.RemoveAll(s.dir))
	if _, err := sortAll(b, s, randomKeys(100_000), 2, nil); !errors.Is(err, storage.ErrDisk) || !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
	if b.Free() != 160<<10 {
		t.Error("memory was not given back")
	}
}

// TestRunsAreDamaged cuts scratch files, and changes bytes of them, before they are
// read back. No wrong key is given out without an error.
func TestRunsAreDamaged(t *testing.T) {
	keys := randomKeys(100_000)
	for _, c := range []struct {
		name   string
		damage func(f vfs.File) error
		want   error
	}{
		{"cut to nothing", func(f vfs.File) error { return f.Truncate(0) }, io.ErrUnexpectedEOF},
		{"cut in the middle", func(f vfs.File) error { return f.Truncate(20_000) }, io.ErrUnexpectedEOF},
		{"cut at a page", func(f vfs.File) error { return f.Truncate(8192) }, io.ErrUnexpectedEOF},
		{"first byte", func(f vfs.File) error { _, err := f.WriteAt([]byte{0xa5}, 3); return err }, seal.ErrCorrupt},
		{"the sum of a mark", func(f vfs.File) error { return damageMark(f, 8) }, seal.ErrCorrupt},
		{"the key of a mark", func(f vfs.File) error { return damageMark(f, 7) }, seal.ErrCorrupt},
		{"the key of another mark", func(f vfs.File) error { return damageMark(f, 16+7) }, seal.ErrCorrupt},
		{"a byte later", func(f vfs.File) error { _, err := f.WriteAt([]byte{0xa5}, 33_003); return err }, seal.ErrCorrupt},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := budget(t, 256<<10)
			s, err := NewScratch(scratchFolder(t))
			must(t, err)
			_, err = sortAll(b, s, keys, 1, func(t2 *Sorter[uint64]) {
				must(t, c.damage(t2.runs[0].(*KeyFile[uint64]).f.holes))
			})
			if !errors.Is(err, c.want) {
				t.Errorf("%v, want %v", err, c.want)
			}
			checkNothingLeft(t, s)
			if b.Free() != 256<<10 {
				t.Error("memory was not given back")
			}
		})
	}
}

// damageMark changes a byte of the last page of marks.
func damageMark(f vfs.File, at int64) error {
	st, err := f.Stat()
	if err == nil {
		_, err = f.WriteAt([]byte{0xa5}, st.Size()-pageBytes+at)
	}
	return err
}

// failingWriter takes so many bytes.
type failingWriter struct {
	left int
	err  error
}

func (w *failingWriter) Write(p []byte) (int, error) {
	if w.left -= len(p); w.left < 0 {
		return 0, w.err
	}
	return len(p), nil
}

// TestRunFileWritesFail fails each part of a run file.
func TestRunFileWritesFail(t *testing.T) {
	keys := make([]uint64, 2*blockKeys)
	full := errors.New("full")
	b := budget(t, 1<<20)
	for _, left := range []int{0, len(keys) * 8, len(keys)*8 + 2*(8+markBytes)} {
		w, err := NewRunWriter[uint64](b, &failingWriter{left, full}, int64(len(keys)))
		must(t, err)
		err = w.Write(keys)
		if err == nil {
			_, err = w.Close([2]int64{})
		}
		if !errors.Is(err, full) {
			t.Errorf("after %d bytes: %v", left, err)
		}
		w.Free()
	}
	if b.Free() != 1<<20 {
		t.Errorf("%d bytes were not given back", 1<<20-b.Free())
	}
}

// TestRunFileHasSpace: more keys than were announced are refused, and nothing of them is written.
func TestRunFileHasSpace(t *testing.T) {
	var file bytes.Buffer
	w, err := NewRunWriter[uint64](budget(t, 1<<20), &file, 3)
	must(t, err)
	defer w.Free()
	must(t, w.Write([]uint64{1, 2}))
	if err := w.Write([]uint64{3, 4}); err == nil || file.Len() != 16 {
		t.Errorf("%v, %d bytes", err, file.Len())
	}
}

// TestMarksAreNotOnTheHeap writes few and many keys to a scratch file. What is on the heap until
// they are read does not grow with them.
func TestMarksAreNotOnTheHeap(t *testing.T) {
	heap := func(n int) int64 {
		b := budget(t, 64<<10)
		s, err := NewScratch(scratchFolder(t))
		must(t, err)
		defer func() { must(t, s.Remove()) }()
		w, err := createRun[uint64](s, minBlockKeys)
		must(t, err)
		keys := make([]uint64, 1<<16)
		for at := 0; at < n; at += len(keys) {
			for i := range keys {
				keys[i] = uint64(at + i)
			}
			must(t, w.Write(keys))
		}
		f, err := w.Finish()
		must(t, err)
		runtime.GC()
		runtime.GC() // what is in pools goes with the second collection
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		sorter := &Sorter[uint64]{ctx: t.Context(), budget: b, scratch: s, threads: 1, block: minBlockKeys, hi: End, runs: []run[uint64]{f}}
		seen := 0
		must(t, sorter.InOrder(func(keys []uint64) error {
			seen += len(keys)
			return nil
		}))
		if seen != n {
			t.Errorf("%d keys of %d", seen, n)
		}
		return int64(m.HeapAlloc)
	}
	few := heap(1 << 16)
	if many := heap(1 << 22); many-few > 32<<10 {
		t.Errorf("%d keys take %d bytes of heap more than %d", 1<<22, many-few, 1<<16)
	}
}

// TestMergesAnything merges run files that share keys, in any range of keys, in order and
// in any order, with any budget and threads: the keys equal those of all files, each once.
func TestMergesAnything(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		free := rapid.Int64Range(2<<20, 16<<20).Draw(t, "free")
		b := budget(t, free)
		spread := rapid.Uint64Range(1, 1<<40).Draw(t, "spread")
		var files RunFiles[uint64]
		var all []uint64
		for i := range rapid.IntRange(1, 12).Draw(t, "files") {
			keys := make([]uint64, rapid.SampledFrom([]int{0, 1, blockKeys - 1, blockKeys, blockKeys + 1, 5*blockKeys + 3}).Draw(t, "keys"))
			seed := rapid.Uint64().Draw(t, "seed")
			for k := range keys {
				keys[k] = rng.Hash(seed, uint64(i), uint64(k)) % spread
			}
			slices.Sort(keys)
			keys = slices.Compact(keys)
			all = append(all, keys...)
			var file bytes.Buffer
			w, err := NewRunWriter[uint64](b, &file, int64(len(keys)))
			must(t, err)
			must(t, w.Write(keys))
			_, err = w.Close([2]int64{})
			must(t, err)
			w.Free()
			r, err := OpenRun[uint64](b, storagetest.NewBytesReader(file.Bytes()), "run")
			must(t, err)
			files = append(files, r)
		}
		lo, hi := uint64(0), End
		if rapid.Bool().Draw(t, "a range") {
			lo, hi = rapid.Uint64Range(0, spread).Draw(t, "from"), rapid.Uint64Range(0, spread).Draw(t, "to")
		}
		slices.Sort(all)
		all = slices.Compact(all)
		first, _ := slices.BinarySearch(all, lo)
		last, _ := slices.BinarySearch(all, hi)
		want := all[first:max(first, last)]

		s, err := NewScratch(os.TempDir())
		must(t, err)
		defer func() { must(t, s.Remove()) }()
		m := Merge(context.Background(), b, s, rapid.SampledFrom([]int{1, 2, 5, 16}).Draw(t, "threads"), files, lo, hi)
		var got []uint64
		var mu sync.Mutex
		take := func(keys []uint64) error {
			mu.Lock()
			defer mu.Unlock()
			got = append(got, keys...)
			return nil
		}
		if rapid.Bool().Draw(t, "in order") {
			must(t, m.InOrder(take))
		} else {
			must(t, m.Each(take))
			slices.Sort(got)
		}
		if !slices.Equal(got, want) {
			t.Fatalf("%d keys, want %d", len(got), len(want))
		}
		if b.Free() != free {
			t.Fatalf("%d bytes were not given back", free-b.Free())
		}
	})
}

// TestVisitFails stops sorts whose keys somebody refuses.
func TestVisitFails(t *testing.T) {
	keys := randomKeys(60_000)
	full := errors.New("full")
	for _, free := range []int64{160 << 10, 4 << 20} {
		for _, threads := range []int{1, 2, 5} {
			for _, visit := range []func(*Sorter[uint64], func([]uint64) error) error{(*Sorter[uint64]).Each, (*Sorter[uint64]).InOrder} {
				b := budget(t, free)
				s, err := NewScratch(scratchFolder(t))
				must(t, err)
				sorter, err := NewSorter[uint64](context.Background(), b, s, Options{Threads: threads})
				must(t, err)
				must(t, sorter.Add(keys))
				must(t, sorter.Finish())
				if err := visit(sorter, func([]uint64) error { return full }); !errors.Is(err, full) {
					t.Errorf("%v, want %v", err, full)
				}
				checkNothingLeft(t, s)
				must(t, s.Remove())
				if b.Free() != free {
					t.Errorf("%d bytes were not given back", free-b.Free())
				}
			}
		}
	}
}
