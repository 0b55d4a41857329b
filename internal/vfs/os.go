package vfs

import (
	"io"
	"io/fs"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// OS is the file system of the operating system.
type OS struct{}

// OpenFile implements FS.
func (OS) OpenFile(path string, flag int, perm fs.FileMode) (File, error) {
	f, err := os.OpenFile(path, flag, perm)
	if err != nil {
		return nil, Mark(err)
	}
	return osFile{f}, nil
}

// Mkdir implements FS.
func (OS) Mkdir(path string, perm fs.FileMode) error { return Mark(os.Mkdir(path, perm)) }

// Rename implements FS.
func (OS) Rename(from, to string) error { return Mark(os.Rename(from, to)) }

// RenameNew implements FS.
func (OS) RenameNew(from, to string) error {
	err := unix.Renameat2(unix.AT_FDCWD, from, unix.AT_FDCWD, to, unix.RENAME_NOREPLACE)
	if err != nil {
		return Mark(&os.LinkError{Op: "renameat2", Old: from, New: to, Err: err})
	}
	return nil
}

// Link implements FS.
func (OS) Link(from, to string) error { return Mark(os.Link(from, to)) }

// Remove implements FS.
func (OS) Remove(path string) error { return Mark(os.Remove(path)) }

// Stat implements FS.
func (OS) Stat(path string) (fs.FileInfo, error) {
	info, err := os.Stat(path)
	return info, Mark(err)
}

// Lstat implements FS.
func (OS) Lstat(path string) (fs.FileInfo, error) {
	info, err := os.Lstat(path)
	return info, Mark(err)
}

// ReadDir implements FS.
func (OS) ReadDir(path string) ([]fs.DirEntry, error) {
	entries, err := os.ReadDir(path)
	return entries, Mark(err)
}

// Statfs implements FS.
func (OS) Statfs(path string) (Space, error) {
	var s unix.Statfs_t
	if err := unix.Statfs(path, &s); err != nil {
		return Space{}, Mark(&fs.PathError{Op: "statfs", Path: path, Err: err})
	}
	return spaceOf(&s), nil
}

// spaceOf is the size that a file system states in blocks. What is available counts as
// nothing where it is below zero, as on a server of NFS whose reserve is in use.
func spaceOf(s *unix.Statfs_t) Space {
	bytes := func(blocks uint64) int64 {
		size := uint64(max(s.Frsize, 1))
		return int64(min(blocks, MaxSpace/size) * size)
	}
	free := s.Bavail
	if int64(free) < 0 && free > s.Blocks {
		free = 0
	}
	return Space{Total: bytes(s.Blocks), Free: bytes(free)}
}

// Chtimes implements FS.
func (OS) Chtimes(path string, at time.Time) error { return Mark(os.Chtimes(path, at, at)) }

// osFile is a file of the operating system. Name, Stat and Close come from os.File.
type osFile struct{ *os.File }

func (f osFile) ReadAt(p []byte, off int64) (int, error) {
	n, err := f.File.ReadAt(p, off)
	if err != nil && err != io.EOF {
		err = Mark(err)
	}
	return n, err
}

func (f osFile) WriteAt(p []byte, off int64) (int, error) {
	n, err := f.File.WriteAt(p, off)
	return n, Mark(err)
}

func (f osFile) Truncate(size int64) error { return Mark(f.File.Truncate(size)) }

func (f osFile) Sync() error { return Mark(f.File.Sync()) }

func (f osFile) Close() error { return Mark(f.File.Close()) }

func (f osFile) WriteOut(off, n int64) error {
	const how = unix.SYNC_FILE_RANGE_WRITE | unix.SYNC_FILE_RANGE_WAIT_AFTER
	return f.marked("sync_file_range", unix.SyncFileRange(int(f.Fd()), off, n, how))
}

func (f osFile) Buffered() error {
	flags, err := unix.FcntlInt(f.Fd(), unix.F_GETFL, 0)
	if err == nil {
		_, err = unix.FcntlInt(f.Fd(), unix.F_SETFL, flags&^unix.O_DIRECT)
	}
	return f.marked("fcntl", err)
}

func (f osFile) Drop(off, n int64) { _ = unix.Fadvise(int(f.Fd()), off, n, unix.FADV_DONTNEED) }

func (f osFile) Punch(off, n int64) error {
	const how = unix.FALLOC_FL_PUNCH_HOLE | unix.FALLOC_FL_KEEP_SIZE
	return f.marked("fallocate", unix.Fallocate(int(f.Fd()), how, off, n))
}

func (f osFile) Lock() error {
	return f.marked("flock", unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB))
}

func (f osFile) Descriptor() (uintptr, bool) { return f.Fd(), true }

// marked adds the operation and the file to the error of a system call.
func (f osFile) marked(op string, err error) error {
	if err == nil {
		return nil
	}
	return Mark(&fs.PathError{Op: op, Path: f.Name(), Err: err})
}

func stat(info fs.FileInfo) *syscall.Stat_t { return info.Sys().(*syscall.Stat_t) }
