package vfs

import (
	"io"
	"io/fs"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// FS is a file system. Paths are absolute, or relative to the working folder where the
// file system is the operating system's. Every method may be called from several
// goroutines at the same time. Errors satisfy errors.Is for fs.ErrNotExist, fs.ErrExist
// and the marks of this package.
type FS interface {
	// OpenFile opens a file as os.OpenFile does. A folder can be opened for reading; only
	// Sync, Lock, Stat and Close are defined for it. An FS that has no direct I/O refuses
	// O_DIRECT with EINVAL, or has [File.Buffered] to turn it off again.
	OpenFile(path string, flag int, perm fs.FileMode) (File, error)
	// Mkdir makes a folder in a folder that exists.
	Mkdir(path string, perm fs.FileMode) error
	// Rename gives a file another name, in place of the file that had it, in one step.
	Rename(from, to string) error
	// RenameNew is Rename to a name that must be free: it fails with fs.ErrExist if that is
	// taken. Many file systems do not know it; [PublishNew] finds another way.
	RenameNew(from, to string) error
	// Link gives a file a second name. It fails with fs.ErrExist if the name is taken.
	Link(from, to string) error
	// Remove removes a file or an empty folder.
	Remove(path string) error
	// Stat describes what path leads to, Lstat path itself. The Sys of the result is a
	// *syscall.Stat_t of which at least Dev, Ino and Blocks are right.
	Stat(path string) (fs.FileInfo, error)
	Lstat(path string) (fs.FileInfo, error)
	// ReadDir lists a folder in the order of names.
	ReadDir(path string) ([]fs.DirEntry, error)
	// Statfs says how much room there is where path is.
	Statfs(path string) (Space, error)
	// Chtimes sets the time of last access and of last change.
	Chtimes(path string, at time.Time) error
}

// File is an open file or folder.
type File interface {
	// ReadAt and WriteAt do not return before all bytes are transferred, the file has
	// ended, or an error has occurred.
	io.ReaderAt
	io.WriterAt
	io.Closer
	// Name is the path with which the file was opened.
	Name() string
	Stat() (fs.FileInfo, error)
	Truncate(size int64) error
	// Sync makes the bytes of a file durable, or the names in a folder. A file can be
	// found after a power failure once both it and its folder were synced, and each
	// folder above was synced into its parent.
	Sync() error
	// WriteOut waits until a range that was written is on the disk, without the promises
	// of Sync.
	WriteOut(off, n int64) error
	// Buffered turns direct I/O of an open file off: from then on transfers may begin and
	// end anywhere.
	Buffered() error
	// Drop advises the file system to forget its copy of a range in memory.
	Drop(off, n int64)
	// Punch gives the disk space of a range back; the range then reads as zeros.
	Punch(off, n int64) error
	// Lock keeps other processes from locking the file until Close. It does not wait: it
	// fails with EWOULDBLOCK if the lock is taken.
	Lock() error
	// Descriptor is the kernel's number for the file. ok is false if reads of the file
	// must go through ReadAt.
	Descriptor() (fd uintptr, ok bool)
}

// Space holds the size that a file system reports, in bytes.
type Space struct {
	// Total is 0 if the file system does not say how large it is, as ramfs; Free means
	// nothing then.
	Total int64
	// Free is the number of bytes that this process may still write. Neither is more than
	// [MaxSpace].
	Free int64
}

// MaxSpace is the most that [Space] says. File systems on top of buckets and of networks
// state sizes of up to 2^64 bytes; sums with this one do not overflow.
const MaxSpace = 1 << 60

// mount is a folder that belongs to a file system.
type mount struct {
	dir string
	fs  FS
}

var (
	// mounts is nil in a program. Later mounts stand first.
	mounts   atomic.Pointer[[]mount]
	mounting sync.Mutex
)

// Mount gives dir, an absolute path, and all that lies below it to another file system,
// which gets the paths unchanged, until unmount is called. It is for tests. Files that
// are open stay with the file system that opened them.
func Mount(dir string, f FS) (unmount func()) {
	entry := mount{filepath.Clean(dir), f}
	change(func(old []mount) []mount { return append([]mount{entry}, old...) })
	return func() {
		change(func(old []mount) (left []mount) {
			for _, m := range old {
				if m != entry {
					left = append(left, m)
				}
			}
			return left
		})
	}
}

func change(f func([]mount) []mount) {
	mounting.Lock()
	defer mounting.Unlock()
	var old []mount
	if p := mounts.Load(); p != nil {
		old = *p
	}
	if table := f(old); len(table) > 0 {
		mounts.Store(&table)
	} else {
		mounts.Store(nil)
	}
}

// of is the file system of a path.
func of(path string) FS {
	table := mounts.Load()
	if table == nil {
		return OS{}
	}
	abs, err := filepath.Abs(path)
	if err != nil {
		return OS{}
	}
	for _, m := range *table {
		if abs == m.dir || strings.HasPrefix(abs, m.dir+string(filepath.Separator)) {
			return m.fs
		}
	}
	return OS{}
}

// OpenFile opens a file in the file system of path; see [FS]. It refuses direct I/O where
// [Probe] has found none.
func OpenFile(path string, flag int, perm fs.FileMode) (File, error) {
	if flag&unix.O_DIRECT != 0 && lackingAt(path).direct {
		return nil, &fs.PathError{Op: "open", Path: path, Err: unix.EINVAL}
	}
	return of(path).OpenFile(path, flag, perm)
}

// Mkdir makes a folder in a folder that exists.
func Mkdir(path string, perm fs.FileMode) error { return of(path).Mkdir(path, perm) }

// Rename gives a file another name, in place of the file that had it.
func Rename(from, to string) error { return of(from).Rename(from, to) }

// RenameNew gives a file another name, which must be free; see [FS].
func RenameNew(from, to string) error { return of(from).RenameNew(from, to) }

// Link gives a file a second name, which must be free.
func Link(from, to string) error { return of(from).Link(from, to) }

// Remove removes a file or an empty folder.
func Remove(path string) error { return of(path).Remove(path) }

// Stat describes what path leads to.
func Stat(path string) (fs.FileInfo, error) { return of(path).Stat(path) }

// Lstat describes path itself, which may be a symbolic link.
func Lstat(path string) (fs.FileInfo, error) { return of(path).Lstat(path) }

// ReadDir lists a folder in the order of names.
func ReadDir(path string) ([]fs.DirEntry, error) { return of(path).ReadDir(path) }

// Statfs says how much room there is where path is.
func Statfs(path string) (Space, error) { return of(path).Statfs(path) }

// Chtimes sets the time of last access and of last change.
func Chtimes(path string, at time.Time) error { return of(path).Chtimes(path, at) }

// SameFile reports whether two descriptions of one file system are of the same file.
func SameFile(a, b fs.FileInfo) bool {
	x, y := stat(a), stat(b)
	return x.Dev == y.Dev && x.Ino == y.Ino
}

// Device is the number of the device that holds what info describes.
func Device(info fs.FileInfo) uint64 { return stat(info).Dev }

var _ FS = OS{}
