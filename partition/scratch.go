package partition

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"

	"ndls/internal/direct"
	"ndls/internal/mem"
	"ndls/internal/storage"
)

// scratch is a folder of temporary files that are written once and read once.
type scratch struct {
	dir   string
	files int // files written so far
}

// newScratch makes a folder of its own inside parent.
func newScratch(parent string) (*scratch, error) {
	if err := os.MkdirAll(parent, 0o755); err != nil {
		return nil, fmt.Errorf("partition: scratch folder: %w", err)
	}
	dir, err := os.MkdirTemp(parent, "partition-")
	if err != nil {
		return nil, fmt.Errorf("partition: scratch folder: %w", err)
	}
	return &scratch{dir: dir}, nil
}

func (s *scratch) remove() error { return os.RemoveAll(s.dir) }

// spillFile is a scratch file being written.
type spillFile struct {
	s    *scratch
	path string
	w    *direct.Writer
}

func (s *scratch) create() (*spillFile, error) {
	path := filepath.Join(s.dir, fmt.Sprintf("%06d.spill", s.files))
	w, err := direct.Create(path)
	if err != nil {
		return nil, s.failed(err)
	}
	s.files++
	return &spillFile{s, path, w}, nil
}

func (f *spillFile) write(p []byte) error {
	if _, err := f.w.Write(p); err != nil {
		return f.s.failed(err)
	}
	return nil
}

func (f *spillFile) writeKeys(keys []uint64) error { return f.write(mem.AsBytes(keys)) }

func (f *spillFile) abort() {
	f.w.Abort()
	_ = os.Remove(f.path)
}

// finish ends the writing and opens the file for reading. Its name is gone
// from then on, so the space comes back on Close, or when the process dies.
func (f *spillFile) finish() (*direct.File, error) {
	if err := f.w.Finish(); err != nil {
		return nil, f.s.failed(err)
	}
	r, err := direct.Open(f.path)
	if err != nil {
		return nil, f.s.failed(err)
	}
	if err := os.Remove(f.path); err != nil {
		_ = r.Close()
		return nil, f.s.failed(err)
	}
	return r, nil
}

// failed says where the disk failed, and how to go on.
func (s *scratch) failed(err error) error {
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		return fmt.Errorf("partition: spill to %s: %w: %w: free space there or choose another scratch folder", s.dir, storage.ErrDisk, err)
	}
	return fmt.Errorf("partition: spill to %s: %w: %w", s.dir, storage.ErrDisk, err)
}
