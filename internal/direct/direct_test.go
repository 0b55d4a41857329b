package direct

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"go.uber.org/goleak"
	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"
	"pgregory.net/rapid"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var sizes = []int{0, 1, Align - 1, Align, Align + 1, BufferSize - 1, BufferSize, BufferSize + 1, 3*BufferSize + 12345}

func random(n int) []byte {
	rng := rand.New(rand.NewPCG(7, uint64(n)))
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(rng.Uint32())
	}
	return b
}

// folders are file systems with and, where there is one, without direct I/O.
func folders(t *testing.T) map[string]string {
	t.Helper()
	out := map[string]string{"default": t.TempDir()}
	if dir, err := os.MkdirTemp("/dev/shm", "direct"); err == nil {
		t.Cleanup(func() { os.RemoveAll(dir) })
		out["memory"] = dir
	}
	return out
}

func write(t testing.TB, path string, data []byte, part int) {
	t.Helper()
	w, err := Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Abort()
	for at := 0; at < len(data); at += part {
		if n, err := w.Write(data[at:min(at+part, len(data))]); err != nil || n != min(part, len(data)-at) {
			t.Fatalf("wrote %d, %v", n, err)
		}
	}
	if w.Size() != int64(len(data)) {
		t.Errorf("size %d, want %d", w.Size(), len(data))
	}
	if err := w.Finish(); err != nil {
		t.Fatal(err)
	}
}

func TestWriterWritesWhatItWasGiven(t *testing.T) {
	for fs, dir := range folders(t) {
		for _, size := range sizes {
			for _, part := range []int{777, Align, 2*BufferSize + 1} {
				t.Run(fmt.Sprintf("%s/%d in %d", fs, size, part), func(t *testing.T) {
					path := filepath.Join(dir, "f")
					write(t, path, random(size), part)
					got, err := os.ReadFile(path)
					if err != nil || !bytes.Equal(got, random(size)) {
						t.Errorf("%d bytes on disk, %v", len(got), err)
					}
				})
			}
		}
	}
}

// Who takes the bytes beside the disk gets all of them, in order, by the time Flush returns.
func TestBytesAreTakenBeside(t *testing.T) {
	for fs, dir := range folders(t) {
		for _, size := range sizes {
			for _, part := range []int{777, 2*BufferSize + 1, 6 * BufferSize} {
				var taken []byte
				w, err := CreateWith(filepath.Join(dir, "f"), func(p []byte) { taken = append(taken, p...) })
				if err != nil {
					t.Fatal(err)
				}
				data := random(size)
				for at := 0; at < size; at += part {
					if _, err := w.Write(data[at:min(at+part, size)]); err != nil {
						t.Fatal(err)
					}
				}
				w.Flush()
				if !bytes.Equal(taken, data) {
					t.Errorf("%s: %d bytes in %d: %d were taken, or others", fs, size, part, len(taken))
				}
				if _, err := w.Write([]byte{1}); !errors.Is(err, os.ErrClosed) {
					t.Errorf("%s: a write after Flush gives %v", fs, err)
				}
				if err := w.Finish(); err != nil {
					t.Fatal(err)
				}
				if got, err := os.ReadFile(filepath.Join(dir, "f")); err != nil || !bytes.Equal(got, data) {
					t.Errorf("%s: %d bytes on disk, %v", fs, len(got), err)
				}
			}
		}
	}
}

func TestReadAt(t *testing.T) {
	for fs, dir := range folders(t) {
		t.Run(fs, func(t *testing.T) {
			const size = 2*BufferSize + 4321
			data := random(size)
			path := filepath.Join(dir, "f")
			write(t, path, data, size)
			f, err := Open(path)
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			if f.Size() != size || f.Name() != path {
				t.Errorf("%s has %d bytes", f.Name(), f.Size())
			}
			buf := AlignedBytes(4 * BufferSize)
			rapid.Check(t, func(t *rapid.T) {
				// Any offset and length, or whole pages straight into the caller's buffer.
				unit := rapid.SampledFrom([]int{1, Align}).Draw(t, "unit")
				off := rapid.IntRange(0, size/unit).Draw(t, "offset") * unit
				p := buf[:rapid.IntRange(0, len(buf)/unit).Draw(t, "length")*unit]
				n, err := f.ReadAt(p, int64(off))
				if want := data[off:min(off+len(p), size)]; !bytes.Equal(p[:n], want) {
					t.Fatalf("%d of %d bytes at %d, %v", n, len(p), off, err)
				}
				if (err == io.EOF) != (n < len(p)) || err != nil && err != io.EOF {
					t.Fatalf("%d of %d bytes at %d: %v", n, len(p), off, err)
				}
			})
			if _, err := f.ReadAt(buf, -1); err == nil {
				t.Error("read at a negative offset succeeds")
			}
			if _, err := f.ReadAt(buf[:1], size+1); err != io.EOF {
				t.Errorf("read past the end gives %v, want EOF", err)
			}
		})
	}
}

func TestReadAtIsSafeForConcurrentUse(t *testing.T) {
	data := random(3 * BufferSize)
	path := filepath.Join(t.TempDir(), "f")
	write(t, path, data, len(data))
	f, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var g errgroup.Group
	for i := range 8 {
		g.Go(func() error {
			p := make([]byte, BufferSize+i)
			if _, err := f.ReadAt(p, int64(1000*i+i)); err != nil {
				return err
			}
			if !bytes.Equal(p, data[1001*i:][:len(p)]) {
				return fmt.Errorf("reader %d gets other bytes", i)
			}
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		t.Error(err)
	}
}

func TestReaderReadsRanges(t *testing.T) {
	data := random(4*BufferSize + 99)
	for _, r := range [][2]int{{0, len(data)}, {0, 0}, {5, 5}, {1, 2}, {Align, 2 * Align}, {BufferSize - 1, BufferSize + 1}, {777, len(data) - 1}} {
		s := NewReader(bytes.NewReader(data), int64(r[0]), int64(r[1]))
		got, err := io.ReadAll(s)
		if err != nil || !bytes.Equal(got, data[r[0]:r[1]]) {
			t.Errorf("range %v: %d bytes, %v", r, len(got), err)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestReaderStopsAnywhere(t *testing.T) {
	data := random(6 * BufferSize)
	for _, n := range []int{0, 1, BufferSize, BufferSize + 1, 5 * BufferSize} {
		s := NewReader(bytes.NewReader(data), 0, int64(len(data)))
		if _, err := io.ReadFull(s, make([]byte, n)); err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(s.Close(), s.Close()); err != nil {
			t.Error(err)
		}
		if _, err := s.Read(make([]byte, 1)); !errors.Is(err, os.ErrClosed) {
			t.Errorf("read after %d bytes and Close gives %v", n, err)
		}
	}
}

type broken struct {
	io.ReaderAt
	at int64
}

var errBroken = errors.New("broken")

func (b broken) ReadAt(p []byte, off int64) (int, error) {
	if off+int64(len(p)) > b.at {
		return 0, errBroken
	}
	return b.ReaderAt.ReadAt(p, off)
}

func TestReaderPassesErrorsOn(t *testing.T) {
	data := random(3 * BufferSize)
	for name, c := range map[string]struct {
		r    io.ReaderAt
		end  int
		want error
		n    int
	}{
		"failing":    {broken{bytes.NewReader(data), 2 * BufferSize}, len(data), errBroken, 2 * BufferSize},
		"cut off":    {bytes.NewReader(data[:BufferSize+10]), len(data), io.ErrUnexpectedEOF, BufferSize + 10},
		"cut at end": {bytes.NewReader(data[:BufferSize]), len(data), io.ErrUnexpectedEOF, BufferSize},
	} {
		t.Run(name, func(t *testing.T) {
			s := NewReader(c.r, 0, int64(c.end))
			defer s.Close()
			got, err := io.ReadAll(s)
			if !errors.Is(err, c.want) || len(got) != c.n {
				t.Errorf("%d bytes, %v, want %d, %v", len(got), err, c.n, c.want)
			}
			if _, err := s.Read(make([]byte, 1)); !errors.Is(err, c.want) {
				t.Errorf("again: %v", err)
			}
		})
	}
}

func TestOpenRefusesWhatIsNoFile(t *testing.T) {
	dir := t.TempDir()
	if _, err := Open(dir); err == nil {
		t.Error("a folder opens")
	}
	if _, err := Open(filepath.Join(dir, "none")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a missing file gives %v", err)
	}
	if _, err := Create(filepath.Join(dir, "none", "f")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a missing folder gives %v", err)
	}
}

func TestWriterAfterTheEnd(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	w, err := Create(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write([]byte("abc")); err != nil {
		t.Fatal(err)
	}
	if err := w.Finish(); err != nil {
		t.Fatal(err)
	}
	w.Abort()
	if _, err := w.Write([]byte("d")); !errors.Is(err, os.ErrClosed) {
		t.Errorf("write after Finish gives %v", err)
	}
	if got, err := os.ReadFile(path); err != nil || string(got) != "abc" {
		t.Errorf("%q, %v", got, err)
	}
}

func TestCreateTruncates(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	write(t, path, random(3*BufferSize), BufferSize)
	write(t, path, []byte("short"), 5)
	if got, err := os.ReadFile(path); err != nil || string(got) != "short" {
		t.Errorf("%d bytes, %v", len(got), err)
	}
}

func TestWriterReportsAFullDisk(t *testing.T) {
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=3m"); err != nil {
		t.Skipf("cannot mount a small file system here: %v", err)
	}
	defer func() {
		if err := unix.Unmount(dir, 0); err != nil {
			t.Error(err)
		}
	}()
	w, err := Create(filepath.Join(dir, "f"))
	if err != nil {
		t.Fatal(err)
	}
	_, err = w.Write(make([]byte, 9*BufferSize))
	if err := errors.Join(err, w.Finish()); !errors.Is(err, unix.ENOSPC) {
		t.Errorf("got %v, want ENOSPC", err)
	}
}

func TestAlignedBytes(t *testing.T) {
	for _, n := range []int{1, Align, Align + 1, BufferSize} {
		if b := AlignedBytes(n); len(b) != n || n%Align == 0 && !aligned(b, 0) {
			t.Errorf("%d bytes: %d at a bad address", n, len(b))
		}
	}
}

// TestScratch writes pages out of order, reads them back, and finds zeros where
// nothing was written; transfers that are not aligned are refused.
func TestScratch(t *testing.T) {
	dir := t.TempDir()
	s, err := NewScratch(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	page := func(fill byte) []byte {
		b := AlignedBytes(2 * Align)
		for i := range b {
			b[i] = fill
		}
		return b
	}
	if err := s.WriteAt(page(7), 6*Align); err != nil {
		t.Fatal(err)
	}
	if err := s.WriteAt(page(5), 2*Align); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		off  int64
		want byte
	}{{2, 5}, {4, 0}, {6, 7}, {40, 0}} {
		got := page(9)
		if err := s.ReadAt(got, c.off*Align); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, page(c.want)) {
			t.Errorf("page %d holds %d, want %d", c.off, got[0], c.want)
		}
	}
	if s.WriteAt(page(1)[1:Align+1], 0) == nil || s.ReadAt(page(1), 1) == nil {
		t.Error("a transfer that is not aligned was accepted")
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
		t.Errorf("the file has a name: %v, %v", left, err)
	}
}
