package partition

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"syscall"

	"ndls/internal/direct"
	"ndls/internal/mem"
	"ndls/internal/storage"
	"ndls/internal/vfs"
)

// scratch is a folder of temporary files that are written once and read once.
type scratch struct {
	dir   string
	files atomic.Int64 // files written so far
}

// newScratch makes a folder of its own inside parent.
func newScratch(parent string) (*scratch, error) {
	if _, err := vfs.MkdirAll(parent, 0o755); err != nil {
		return nil, fmt.Errorf("partition: scratch folder: %w", err)
	}
	dir, err := vfs.MkdirTemp(parent, "partition-*")
	if err != nil {
		return nil, fmt.Errorf("partition: scratch folder: %w", err)
	}
	return &scratch{dir: dir}, nil
}

func (s *scratch) remove() error { return vfs.RemoveAll(s.dir) }

// spillFile is a scratch file being written.
type spillFile struct {
	s    *scratch
	path string
	w    *direct.Writer
}

func (s *scratch) create() (*spillFile, error) {
	path := filepath.Join(s.dir, fmt.Sprintf("%06d.spill", s.files.Add(1)))
	w, err := direct.Create(path)
	if err != nil {
		return nil, s.failed(err)
	}
	return &spillFile{s, path, w}, nil
}

func (f *spillFile) write(p []byte) error {
	direct.CountScratch(0, int64(len(p)))
	if _, err := f.w.Write(p); err != nil {
		return f.s.failed(err)
	}
	return nil
}

func (f *spillFile) writeKeys(keys []uint64) error { return f.write(mem.AsBytes(keys)) }

func (f *spillFile) abort() {
	f.w.Abort()
	_ = vfs.Remove(f.path)
}

// finish ends the writing and opens the file for reading. Its name is gone
// from then on, so the space comes back on close, or when the process dies.
func (f *spillFile) finish() (*spilled, error) {
	if err := f.w.Finish(); err != nil {
		return nil, f.s.failed(err)
	}
	r, err := direct.Open(f.path)
	if err != nil {
		return nil, f.s.failed(err)
	}
	holes, err := vfs.OpenFile(f.path, os.O_WRONLY, 0)
	if err != nil {
		_ = r.Close()
		return nil, f.s.failed(err)
	}
	if err := vfs.Remove(f.path); err != nil {
		_ = r.Close()
		_ = holes.Close()
		return nil, f.s.failed(err)
	}
	return &spilled{File: r, holes: holes}, nil
}

// finishRun is finish for a file of sorted keys.
func (f *spillFile) finishRun(keys int64) (run, error) {
	r, err := f.finish()
	if err != nil {
		return nil, err
	}
	return &spilledRun{spilled: r, left: keys}, nil
}

// ReadAt implements io.ReaderAt.
func (f *spilled) ReadAt(p []byte, off int64) (int, error) {
	n, err := f.File.ReadAt(p, off)
	direct.CountScratch(int64(n), 0)
	return n, err
}

const (
	// dropStep is how much of a file is taken off the disk at a time.
	dropStep = 4 << 20
	// minDrop is what is not worth a system call.
	minDrop = 256 << 10
)

// spilled is a scratch file that is read once, and shrinks while it is.
type spilled struct {
	*direct.File
	holes   vfs.File // for writing
	dropped int64
}

// drop takes what is before end off the disk, sooner or later.
func (f *spilled) drop(end int64) {
	if end &^= direct.Align - 1; end-f.dropped >= dropStep {
		f.dropRange(f.dropped, end-f.dropped)
		f.dropped = end
	}
}

// dropRange takes a range off the disk, if the file system can do that; else it
// stays until close.
func (f *spilled) dropRange(off, n int64) {
	if n < minDrop {
		return
	}
	_ = f.holes.Punch(off, n)
}

func (f *spilled) close() {
	_ = f.Close()
	_ = f.holes.Close()
}

// failed says where the disk failed, and how to go on.
func (s *scratch) failed(err error) error {
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		return fmt.Errorf("partition: spill to %s: %w: %w: free space there or choose another scratch folder", s.dir, storage.ErrDisk, err)
	}
	return fmt.Errorf("partition: spill to %s: %w: %w", s.dir, storage.ErrDisk, err)
}
