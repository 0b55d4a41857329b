package extsort

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"

	"pgregory.net/rapid"

	"ndls/internal/mem"
	"ndls/internal/rng"
	"ndls/internal/seal"
	"ndls/internal/storage"
	"ndls/internal/vfs"
	"ndls/internal/vfs/vfstest"
)

// sortAll sorts keys with a budget that is too small for them, and calls atEnd before
// the sorted keys are read.
func sortAll(b *mem.Budget, s *Scratch, keys []uint64, threads int, atEnd func(*Sorter)) (got []uint64, err error) {
	ctx := context.Background()
	sorter, err := NewSorter(ctx, b, s, Options{Threads: threads})
	if err != nil {
		return nil, err
	}
	defer sorter.Close()
	for rest := keys; len(rest) > 0; {
		n := min(len(rest), 1000)
		if err := sorter.Add(rest[:n]); err != nil {
			return nil, err
		}
		rest = rest[n:]
	}
	if err := sorter.Finish(); err != nil {
		return nil, err
	}
	if atEnd != nil {
		atEnd(sorter)
	}
	stream, err := sorter.Stream()
	if err != nil {
		return nil, err
	}
	err = Each(ctx, threads, stream, func(keys []uint64) error {
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
		got, err := sortAll(b, s, slices.Clone(keys), 1+rapid.IntRange(0, 2).Draw(t, "threads"), nil)
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

// failWrite sorts on a disk that is full at one of its writes, and says whether there are
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
		{"a byte later", func(f vfs.File) error { _, err := f.WriteAt([]byte{0xa5}, 33_003); return err }, seal.ErrCorrupt},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := budget(t, 256<<10)
			s, err := NewScratch(scratchFolder(t))
			must(t, err)
			_, err = sortAll(b, s, keys, 1, func(t2 *Sorter) {
				must(t, c.damage(t2.runs[0].(*KeyFile).f.holes))
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
	for _, left := range []int{0, len(keys) * 8, len(keys)*8 + 2*markBytes} {
		w := NewRunWriter(&failingWriter{left, full})
		err := w.Write(keys)
		if err == nil {
			_, err = w.Close([2]int64{})
		}
		if !errors.Is(err, full) {
			t.Errorf("after %d bytes: %v", left, err)
		}
	}
}
