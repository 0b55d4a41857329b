package vfstest

import (
	"cmp"
	"io/fs"
	"os"
	"sync"
	"sync/atomic"
	"syscall"

	"golang.org/x/sys/unix"

	"ndls/internal/vfs"
)

// Lacks says which calls a file system refuses, each with its own error; 0 is none.
type Lacks struct {
	// Writes refuses whatever changes a file or folder.
	Writes syscall.Errno

	Link, RenameNew, Rename, SyncFolder, Lock, Statfs, Truncate, WriteOut, Punch syscall.Errno
	// Replaces says that RenameNew takes names that are not free, as where flags are ignored.
	Replaces bool
	// OpenDirect refuses to open files with O_DIRECT; Direct refuses transfers by it.
	OpenDirect, Direct syscall.Errno
	// DirectAlign, unless 0, refuses direct transfers that are not aligned to it, with EINVAL.
	DirectAlign int64
	// RemoveOpen refuses to remove files that are open.
	RemoveOpen syscall.Errno
	// Largest, unless 0, is the size beyond which a write fails with EFBIG.
	Largest int64
	// Space, unless nil, is the result of Statfs.
	Space *vfs.Space
}

// Lacking is inner without what it lacks.
func Lacking(inner vfs.FS, lacks Lacks) vfs.FS {
	return &lacking{inner, lacks, &openFiles{counts: map[string]int{}}}
}

type lacking struct {
	vfs.FS
	lacks Lacks
	open  *openFiles
}

func refuse(op, path string, errno syscall.Errno) error {
	if errno == 0 {
		return nil
	}
	return fail(op, path, errno)
}

// OpenFile implements vfs.FS.
func (l *lacking) OpenFile(path string, flag int, perm fs.FileMode) (vfs.File, error) {
	if err := refuse("open", path, l.lacks.Writes); flag&(os.O_WRONLY|os.O_RDWR) != 0 && err != nil {
		return nil, err
	}
	direct := flag&unix.O_DIRECT != 0
	if err := refuse("open", path, l.lacks.OpenDirect); direct && err != nil {
		return nil, err
	}
	f, err := l.FS.OpenFile(path, flag, perm)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err != nil {
		_ = f.Close()
		return nil, err
	}
	l.open.add(path, 1)
	x := &lackingFile{File: f, l: l, folder: info.IsDir()}
	x.direct.Store(direct)
	return x, nil
}

// Mkdir implements vfs.FS.
func (l *lacking) Mkdir(path string, perm fs.FileMode) error {
	if err := refuse("mkdir", path, l.lacks.Writes); err != nil {
		return err
	}
	return l.FS.Mkdir(path, perm)
}

// Rename implements vfs.FS.
func (l *lacking) Rename(from, to string) error {
	if err := refuse("rename", to, cmp.Or(l.lacks.Writes, l.lacks.Rename)); err != nil {
		return err
	}
	return l.FS.Rename(from, to)
}

// RenameNew implements vfs.FS.
func (l *lacking) RenameNew(from, to string) error {
	if err := refuse("renameat2", to, cmp.Or(l.lacks.Writes, l.lacks.RenameNew)); err != nil {
		return err
	}
	if l.lacks.Replaces {
		return l.FS.Rename(from, to)
	}
	return l.FS.RenameNew(from, to)
}

// Link implements vfs.FS.
func (l *lacking) Link(from, to string) error {
	if err := refuse("link", to, cmp.Or(l.lacks.Writes, l.lacks.Link)); err != nil {
		return err
	}
	return l.FS.Link(from, to)
}

// Remove implements vfs.FS.
func (l *lacking) Remove(path string) error {
	if err := refuse("remove", path, l.lacks.Writes); err != nil {
		return err
	}
	if err := refuse("remove", path, l.lacks.RemoveOpen); err != nil && l.open.has(path) {
		return err
	}
	return l.FS.Remove(path)
}

// Statfs implements vfs.FS.
func (l *lacking) Statfs(path string) (vfs.Space, error) {
	if l.lacks.Space != nil {
		return *l.lacks.Space, nil
	}
	if err := refuse("statfs", path, l.lacks.Statfs); err != nil {
		return vfs.Space{}, err
	}
	return l.FS.Statfs(path)
}

// lackingFile is a file of such a file system.
type lackingFile struct {
	vfs.File
	l      *lacking
	folder bool
	direct atomic.Bool
}

// transfer is the error of a transfer.
func (f *lackingFile) transfer(op string, off int64, n int) error {
	x := f.l.lacks
	switch {
	case !f.direct.Load():
		return nil
	case x.Direct != 0:
		return fail(op, f.Name(), x.Direct)
	case x.DirectAlign > 0 && (off%x.DirectAlign != 0 || int64(n)%x.DirectAlign != 0):
		return fail(op, f.Name(), syscall.EINVAL)
	}
	return nil
}

func (f *lackingFile) ReadAt(p []byte, off int64) (int, error) {
	if err := f.transfer("read", off, len(p)); err != nil {
		return 0, err
	}
	return f.File.ReadAt(p, off)
}

func (f *lackingFile) WriteAt(p []byte, off int64) (int, error) {
	if err := f.transfer("write", off, len(p)); err != nil {
		return 0, err
	}
	if most := f.l.lacks.Largest; most > 0 && off+int64(len(p)) > most {
		return 0, fail("write", f.Name(), syscall.EFBIG)
	}
	return f.File.WriteAt(p, off)
}

func (f *lackingFile) Buffered() error {
	f.direct.Store(false)
	return f.File.Buffered()
}

func (f *lackingFile) Truncate(size int64) error {
	if err := refuse("truncate", f.Name(), f.l.lacks.Truncate); err != nil {
		return err
	}
	return f.File.Truncate(size)
}

func (f *lackingFile) Sync() error {
	if err := refuse("sync", f.Name(), f.l.lacks.SyncFolder); err != nil && f.folder {
		return err
	}
	return f.File.Sync()
}

func (f *lackingFile) WriteOut(off, n int64) error {
	if err := refuse("sync_file_range", f.Name(), f.l.lacks.WriteOut); err != nil {
		return err
	}
	return f.File.WriteOut(off, n)
}

func (f *lackingFile) Punch(off, n int64) error {
	if err := refuse("fallocate", f.Name(), f.l.lacks.Punch); err != nil {
		return err
	}
	return f.File.Punch(off, n)
}

func (f *lackingFile) Lock() error {
	if err := refuse("flock", f.Name(), f.l.lacks.Lock); err != nil {
		return err
	}
	return f.File.Lock()
}

// Descriptor implements vfs.File: the kernel's reads would not be refused.
func (f *lackingFile) Descriptor() (uintptr, bool) { return 0, false }

func (f *lackingFile) Close() error {
	f.l.open.add(f.Name(), -1)
	return f.File.Close()
}

// openFiles counts how often a file is open, by path.
type openFiles struct {
	mu     sync.Mutex
	counts map[string]int
}

func (o *openFiles) add(path string, n int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.counts[path] += n; o.counts[path] <= 0 {
		delete(o.counts, path)
	}
}

func (o *openFiles) has(path string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.counts[path] > 0
}
