package extsort

import (
	"bytes"
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"

	"ndls/internal/seal"
	"ndls/internal/storage"
	"ndls/internal/storage/storagetest"
)

// fileOf makes a run file of keys.
func fileOf(t testing.TB, keys []uint64) []byte {
	t.Helper()
	var file bytes.Buffer
	w, err := NewRunWriter[uint64](budget(t, 1<<20), &file, int64(len(keys)))
	must(t, err)
	defer w.Free()
	for rest := keys; len(rest) > 0; {
		n := min(len(rest), 3000)
		must(t, w.Write(rest[:n]))
		rest = rest[n:]
	}
	n, err := w.Close([2]int64{7, 3})
	if err != nil || n != int64(len(keys)) {
		t.Fatalf("%d keys of %d, %v", n, len(keys), err)
	}
	return file.Bytes()
}

// readRun reads the keys in [lo, hi) of a run file.
func readRun(t testing.TB, file File, lo, hi uint64) (got []uint64, err error) {
	b := budget(t, 1<<20)
	r, err := OpenRun[uint64](b, file, "run")
	if err != nil {
		return nil, err
	}
	if r.Notes() != [2]int64{7, 3} {
		t.Errorf("notes %v", r.Notes())
	}
	s := Merge(context.Background(), b, nil, 2, RunFiles[uint64]{r}, lo, hi)
	defer s.Close()
	err = s.InOrder(func(keys []uint64) error {
		got = append(got, keys...)
		return nil
	})
	return got, err
}

// TestRunFile reads sections, and finds damage wherever it is.
func TestRunFile(t *testing.T) {
	keys := make([]uint64, 3*blockKeys+100)
	for i := range keys {
		keys[i] = uint64(i) * 10
	}
	file := fileOf(t, keys)
	end := uint64(len(keys)) * 10
	for _, c := range [][2]uint64{{0, End}, {0, 0}, {5, 5}, {0, 1}, {10, 20}, {blockKeys * 10, 2 * blockKeys * 10}, {blockKeys*10 - 5, blockKeys*10 + 5}, {end, End}, {35, end - 15}} {
		got, err := readRun(t, storagetest.NewBytesReader(file), c[0], c[1])
		lo, _ := slices.BinarySearch(keys, c[0])
		hi, _ := slices.BinarySearch(keys, c[1])
		if err != nil || !slices.Equal(got, keys[lo:hi]) {
			t.Errorf("keys in %v: %d, want %d, %v", c, len(got), hi-lo, err)
		}
		r, err := OpenRun[uint64](budget(t, 1<<20), storagetest.NewBytesReader(file), "run")
		must(t, err)
		if most := r.within(c[0], c[1]); most < int64(hi-lo) || most > int64(hi-lo)+2*blockKeys {
			t.Errorf("keys in %v: at most %d, and there are %d", c, most, hi-lo)
		}
		r.Close()
	}
	for _, at := range []int{0, blockKeys*8 - 1, 3 * blockKeys * 8, len(keys) * 8, len(file) - 33, len(file) - 32, len(file) - 9, len(file) - 5, len(file) - 1} {
		damaged := slices.Clone(file)
		damaged[at] ^= 0x10
		if _, err := readRun(t, storagetest.NewBytesReader(damaged), 0, End); !errors.Is(err, seal.ErrCorrupt) {
			t.Errorf("byte %d of %d flipped: %v", at, len(file), err)
		}
	}
	for _, size := range []int{0, 8, 31, 32, len(file) / 2, len(file) - 32, len(file) - 1} {
		if _, err := readRun(t, storagetest.NewBytesReader(file[:size]), 0, End); !errors.Is(err, seal.ErrCorrupt) {
			t.Errorf("%d bytes of %d: %v", size, len(file), err)
		}
	}
	for _, at := range []int{0, len(keys) * 8, len(file) - footerBytes} {
		if _, err := readRun(t, storagetest.NewBytesReader(slices.Insert(slices.Clone(file), at, make([]byte, 16)...)), 0, End); !errors.Is(err, seal.ErrCorrupt) {
			t.Errorf("16 bytes more at byte %d: %v", at, err)
		}
	}
}

// shortReads is a file whose reads from some offset on give fewer bytes than asked for.
type shortReads struct {
	storage.Reader
	from int64
	err  error
}

func (s shortReads) ReadAt(p []byte, off int64) (int, error) {
	if off+int64(len(p)) > s.from && off < s.Size()-32 {
		n, _ := s.Reader.ReadAt(p[:max(s.from-off, 0)], off)
		return n, s.err
	}
	return s.Reader.ReadAt(p, off)
}

// TestRunFileShortReads never takes a short read for the end of the keys.
func TestRunFileShortReads(t *testing.T) {
	keys := make([]uint64, 3*blockKeys+100)
	for i := range keys {
		keys[i] = uint64(i)
	}
	file := fileOf(t, keys)
	broken := errors.New("cable pulled")
	for _, from := range []int64{0, 8, blockKeys * 8, int64(len(keys)) * 8} {
		for _, c := range []struct{ gives, want error }{{broken, broken}, {io.EOF, io.ErrUnexpectedEOF}, {nil, io.ErrUnexpectedEOF}} {
			got, err := readRun(t, shortReads{storagetest.NewBytesReader(file), from, c.gives}, 0, End)
			if !errors.Is(err, c.want) || errors.Is(err, io.EOF) || !strings.Contains(err.Error(), "run") {
				t.Errorf("short from %d with %v: %d keys, %v", from, c.gives, len(got), err)
			}
		}
	}
}

// TestBorders cuts keys into slices of about the same length.
func TestBorders(t *testing.T) {
	const slices = 1024
	var files RunFiles[uint64]
	b := budget(t, 4<<20)
	for i := range 3 {
		keys := make([]uint64, 20*blockKeys*(i+1))
		for k := range keys {
			keys[k] = uint64(k*(5-i)) + 1
		}
		r, err := OpenRun[uint64](b, storagetest.NewBytesReader(fileOf(t, keys)), "run")
		must(t, err)
		files = append(files, r)
	}
	defer files.Close()
	last, total := uint64(0), int64(0)
	for i := range 8 {
		lo, hi := files.Border(i*slices/8, slices), files.Border((i+1)*slices/8, slices)
		if lo != last {
			t.Errorf("slice %d begins at %d, the one before ends at %d", i, lo, last)
		}
		last = hi
		n := int64(0)
		for _, r := range files {
			must(t, RunFiles[uint64]{r}.Each(context.Background(), 1, func(keys []uint64) error {
				for _, k := range keys {
					if lo <= k && k < hi {
						n++
					}
				}
				return nil
			}))
		}
		if want := files.Keys() / 8; n < want*8/10 || n > want*12/10 {
			t.Errorf("slice %d has %d keys, %d would be even", i, n, want)
		}
		total += n
	}
	if total != files.Keys() || last != End {
		t.Errorf("%d keys of %d, up to %d", total, files.Keys(), last)
	}
}

func FuzzRunFile(f *testing.F) {
	seed := fileOf(f, []uint64{1, 5, 9})
	f.Add(seed)
	f.Add(seed[8:])
	f.Add([]byte{})
	b := budget(f, 1<<20)
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := OpenRun[uint64](b, storagetest.NewBytesReader(data), "run")
		if err != nil {
			return
		}
		defer r.Close()
		if r.Keys()*8 > int64(len(data)) {
			t.Errorf("%d keys in %d bytes", r.Keys(), len(data))
		}
		_ = RunFiles[uint64]{r}.Each(context.Background(), 1, func([]uint64) error { return nil })
	})
}

// TestEachWithin visits ranges of the keys of run files: all of them once, and no others.
func TestEachWithin(t *testing.T) {
	b := budget(t, 4<<20)
	keys := randomKeys(5*blockKeys + 77)
	slices.Sort(keys)
	keys = slices.Compact(keys)
	r, err := OpenRun[uint64](b, storagetest.NewBytesReader(fileOf(t, keys)), "run")
	must(t, err)
	defer r.Close()
	at := func(i int) uint64 { return keys[i] }
	for _, c := range [][2]uint64{
		{0, End},
		{0, 0},
		{End, End},
		{at(0), at(1)},
		{at(5) + 1, at(6)},
		{at(blockKeys), at(2 * blockKeys)},
		{at(blockKeys - 1), at(blockKeys + 1)},
		{at(3*blockKeys + 5), End},
		{0, at(3 * blockKeys)},
		{at(len(keys)-1) + 1, End},
	} {
		for _, threads := range []int{1, 3} {
			var got []uint64
			var mu sync.Mutex
			must(t, RunFiles[uint64]{r}.EachWithin(t.Context(), threads, c[0], c[1], func(part []uint64) error {
				mu.Lock()
				defer mu.Unlock()
				got = append(got, part...)
				return nil
			}))
			slices.Sort(got)
			first, _ := slices.BinarySearch(keys, c[0])
			end, _ := slices.BinarySearch(keys, c[1])
			if !slices.Equal(got, keys[first:end]) {
				t.Errorf("[%d, %d) on %d threads: %d keys, want %d", c[0], c[1], threads, len(got), end-first)
			}
		}
	}
}
