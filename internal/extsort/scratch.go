package extsort

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync/atomic"
	"syscall"

	"ndls/internal/direct"
	"ndls/internal/failure"
	"ndls/internal/storage"
	"ndls/internal/vfs"
)

// Scratch is a folder of temporary files that are written once and read once.
type Scratch struct {
	dir   string
	files atomic.Int64 // files written so far
}

// NewScratch makes a folder of its own inside parent.
func NewScratch(parent string) (*Scratch, error) {
	if _, err := vfs.MkdirAll(parent, 0o777); err != nil {
		return nil, fmt.Errorf("make a scratch folder: %w", err)
	}
	dir, err := vfs.MkdirTemp(parent, "sort-*", 0o777)
	if err != nil {
		return nil, fmt.Errorf("make a scratch folder: %w", err)
	}
	return &Scratch{dir: dir}, nil
}

// Files returns the number of files made so far.
func (s *Scratch) Files() int { return int(s.files.Load()) }

// Remove removes the folder and what is left in it. What others hold open, or NFS keeps under a
// name of its own until they close it, stays: whoever sweeps the scratch folder finds it.
func (s *Scratch) Remove() error {
	err := vfs.RemoveAll(s.dir)
	if errors.Is(err, syscall.EBUSY) || errors.Is(err, syscall.ENOTEMPTY) || vfs.Unsupported(err) {
		return nil
	}
	return err
}

// Spill is a scratch file being written.
type Spill struct {
	s    *Scratch
	path string
	w    *direct.Writer
}

// Create starts a scratch file.
func (s *Scratch) Create() (*Spill, error) {
	path := filepath.Join(s.dir, fmt.Sprintf("%06d.spill", s.files.Add(1)))
	w, err := direct.Create(path)
	if err != nil {
		return nil, s.failed(err)
	}
	return &Spill{s, path, w}, nil
}

// Write appends p.
func (f *Spill) Write(p []byte) error {
	direct.CountScratch(0, int64(len(p)))
	if _, err := f.w.Write(p); err != nil {
		return f.s.failed(err)
	}
	return nil
}

// Abort removes the file.
func (f *Spill) Abort() {
	f.w.Abort()
	_ = vfs.Remove(f.path)
}

// Finish ends the writing and opens the file for reading. Its name is gone
// from then on, so the space comes back on Close, or when the process dies.
func (f *Spill) Finish() (*Spilled, error) {
	r, err := f.open()
	if err != nil {
		_ = vfs.Remove(f.path)
		return nil, f.s.failed(err)
	}
	if r.holes, err = vfs.Nameless(r.holes); err != nil {
		_ = r.File.Close()
		return nil, f.s.failed(err)
	}
	return r, nil
}

// open ends the writing and opens the file twice: for reading, and for making holes.
func (f *Spill) open() (*Spilled, error) {
	if err := f.w.Finish(); err != nil {
		return nil, err
	}
	r, err := direct.Open(f.path)
	if err != nil {
		return nil, err
	}
	holes, err := vfs.OpenFile(f.path, os.O_WRONLY, 0)
	if err != nil {
		_ = r.Close()
		return nil, err
	}
	return &Spilled{File: r, holes: holes}, nil
}

// ReadAt implements io.ReaderAt.
func (f *Spilled) ReadAt(p []byte, off int64) (int, error) {
	n, err := f.File.ReadAt(p, off)
	direct.CountScratch(int64(n), 0)
	return n, err
}

const (
	// dropStep is the number of bytes of a file that are taken off the disk at a time.
	dropStep = 4 << 20
	// minDrop is the size below which a system call is not worth its time.
	minDrop = 256 << 10
)

// Spilled is a scratch file that is read once, and shrinks while it is.
type Spilled struct {
	*direct.File
	holes   vfs.File // for writing
	dropped int64
}

// Drop takes what is before end off the disk, sooner or later.
func (f *Spilled) Drop(end int64) {
	if end &^= direct.Align - 1; end-f.dropped >= dropStep {
		f.DropRange(f.dropped, end-f.dropped)
		f.dropped = end
	}
}

// DropRange takes a range off the disk, if the file system can do that; else it
// stays until Close.
func (f *Spilled) DropRange(off, n int64) {
	if n < minDrop {
		return
	}
	_ = f.holes.Punch(off, n)
}

// Close gives the disk space back.
func (f *Spilled) Close() {
	_ = f.File.Close()
	_ = f.holes.Close()
}

// failed says where the disk failed, and how to go on.
func (s *Scratch) failed(err error) error {
	marked, because := vfs.Mark(err), ""
	if errors.Is(marked, storage.ErrDisk) {
		because = storage.ErrDisk.Error() + ": "
	}
	return failure.As(storage.ErrDisk, fmt.Errorf("write to the scratch folder %s: %s%w: %s", s.dir, because, marked, vfs.Remedy(marked, s.dir)))
}

// ReadError says what could not be read back. A file that ends too early, as a
// file does that others cut, is no end of keys.
func (f *Spilled) ReadError(err error) error {
	if err == nil || errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return fmt.Errorf("read back the scratch file %s: %w: %w", f.Name(), storage.ErrDisk, err)
}
