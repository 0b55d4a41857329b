package direct

import (
	"fmt"
	"os"
	"sync/atomic"

	"ndls/internal/vfs"
)

// Scratch is a nameless temporary file: it is gone when it is closed, or when
// the process dies. Offsets, lengths and buffers must be multiples of Align; it
// is safe for concurrent use on ranges that do not overlap.
type Scratch struct{ f *handle }

// scratchRead and scratchWritten count the bytes of all scratch files.
var scratchRead, scratchWritten atomic.Int64

// CountScratch adds to what the process has read from and written to scratch
// files, for those that are no Scratch.
func CountScratch(read, written int64) {
	scratchRead.Add(read)
	scratchWritten.Add(written)
}

// ScratchTraffic returns the bytes that the process has read from and written to scratch files so
// far.
func ScratchTraffic() (read, written int64) { return scratchRead.Load(), scratchWritten.Load() }

// NewScratch makes an empty scratch file in dir.
func NewScratch(dir string) (*Scratch, error) {
	f, err := vfs.CreateTemp(dir, "scratch-*.tmp")
	if err != nil {
		return nil, err
	}
	name := f.Name()
	_ = f.Close()
	g, err := openFile(name, os.O_RDWR, 0)
	if err != nil {
		_ = vfs.Remove(name)
		return nil, err
	}
	if g.File, err = vfs.Nameless(g.File); err != nil {
		return nil, err
	}
	return &Scratch{g}, nil
}

// ReadAt fills p from off; what was never written reads as zeros.
func (s *Scratch) ReadAt(p []byte, off int64) error {
	if !aligned(p, off) {
		return fmt.Errorf("direct: scratch read of %d bytes at %d is not aligned", len(p), off)
	}
	known := int64(-1) // how long the file was when nothing could be read
	for n := 0; n < len(p); {
		m, err := s.f.ReadAt(p[n:], off+int64(n))
		if m == 0 {
			st, statErr := s.f.Stat()
			if statErr == nil && off+int64(n) < st.Size() && st.Size() != known {
				known = st.Size() // another thread may have written behind off since
				continue
			}
			if statErr != nil || off+int64(n) < st.Size() {
				return fmt.Errorf("direct: scratch read at %d: %w", off+int64(n), err)
			}
			clear(p[n:])
			return nil
		}
		n += m
		CountScratch(int64(m), 0)
	}
	return nil
}

// WriteAt writes p at off.
func (s *Scratch) WriteAt(p []byte, off int64) error {
	if !aligned(p, off) {
		return fmt.Errorf("direct: scratch write of %d bytes at %d is not aligned", len(p), off)
	}
	n, err := s.f.WriteAt(p, off)
	CountScratch(0, int64(n))
	return err
}

// Close removes the file.
func (s *Scratch) Close() error { return s.f.Close() }
