package vfstest

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"sync"
	"syscall"
	"time"

	"ndls/internal/vfs"
)

// Kind is a kind of operation.
type Kind string

// The kinds of operations that [Faults] counts.
const (
	Open     Kind = "open"
	Mkdir    Kind = "mkdir"
	Rename   Kind = "rename"
	Link     Kind = "link"
	Remove   Kind = "remove"
	Stat     Kind = "stat"
	ReadDir  Kind = "readdir"
	Statfs   Kind = "statfs"
	Chtimes  Kind = "chtimes"
	Read     Kind = "read"
	Write    Kind = "write"
	Truncate Kind = "truncate"
	Sync     Kind = "sync"
	WriteOut Kind = "writeout"
	Punch    Kind = "punch"
	Lock     Kind = "lock"
)

// ErrDead is the error of operations after the death of the process.
var ErrDead = errors.New("the process is dead")

// Faults passes operations on to another file system, counts them, and fails some.
type Faults struct {
	inner vfs.FS

	mu    sync.Mutex
	total int
	kinds map[Kind]int
	plan  Plan
	felt  string
}

// Plan says which operations fail. The zero value lets all pass.
type Plan struct {
	// At is the number of the operation that fails, the first is 1; 0 is none.
	At int
	// Kind, unless "", lets At count operations of this kind alone.
	Kind Kind
	// Errno is the reason, such as EIO or ENOSPC. A write that fails with ENOSPC has
	// written a part.
	Errno syscall.Errno
	// Dies is true if the process dies just before operation At: it and all later ones,
	// of any kind, fail with ErrDead.
	Dies bool
	// Then, unless nil, is called at operation At. Without Errno and Dies the operation
	// passes.
	Then func()
}

// NewFaults returns a file system that fails operations of inner as plan says.
func NewFaults(inner vfs.FS, plan Plan) *Faults {
	return &Faults{inner: inner, plan: plan, kinds: map[Kind]int{}}
}

// Ops is the number of operations so far.
func (f *Faults) Ops() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.total
}

// Kinds is the number of operations so far by kind.
func (f *Faults) Kinds() map[Kind]int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return maps.Clone(f.kinds)
}

// Felt describes the first operation that failed by plan, "" if there was none yet.
func (f *Faults) Felt() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.felt
}

// step counts an operation, and returns the error with which it fails.
func (f *Faults) step(kind Kind, path string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.total++
	f.kinds[kind]++
	n := f.total
	if f.plan.Kind != "" {
		n = f.kinds[f.plan.Kind]
	}
	now := n == f.plan.At && (f.plan.Kind == "" || f.plan.Kind == kind)
	if now && f.felt == "" {
		f.felt = fmt.Sprintf("operation %d, %s of %s", f.total, kind, path)
		if f.plan.Then != nil {
			f.plan.Then()
		}
	}
	var reason error
	switch {
	case f.plan.Dies && f.felt != "":
		reason = ErrDead
	case now && f.plan.Errno != 0:
		reason = f.plan.Errno
	default:
		return nil
	}
	return vfs.Mark(&fs.PathError{Op: string(kind), Path: path, Err: reason})
}

// OpenFile implements vfs.FS.
func (f *Faults) OpenFile(path string, flag int, perm fs.FileMode) (vfs.File, error) {
	if err := f.step(Open, path); err != nil {
		return nil, err
	}
	inner, err := f.inner.OpenFile(path, flag, perm)
	if err != nil {
		return nil, err
	}
	return &faultyFile{inner, f}, nil
}

// Mkdir implements vfs.FS.
func (f *Faults) Mkdir(path string, perm fs.FileMode) error {
	if err := f.step(Mkdir, path); err != nil {
		return err
	}
	return f.inner.Mkdir(path, perm)
}

// Rename implements vfs.FS.
func (f *Faults) Rename(from, to string) error {
	if err := f.step(Rename, to); err != nil {
		return err
	}
	return f.inner.Rename(from, to)
}

// RenameNew implements vfs.FS.
func (f *Faults) RenameNew(from, to string) error {
	if err := f.step(Rename, to); err != nil {
		return err
	}
	return f.inner.RenameNew(from, to)
}

// Link implements vfs.FS.
func (f *Faults) Link(from, to string) error {
	if err := f.step(Link, to); err != nil {
		return err
	}
	return f.inner.Link(from, to)
}

// Remove implements vfs.FS.
func (f *Faults) Remove(path string) error {
	if err := f.step(Remove, path); err != nil {
		return err
	}
	return f.inner.Remove(path)
}

// Stat implements vfs.FS.
func (f *Faults) Stat(path string) (fs.FileInfo, error) {
	if err := f.step(Stat, path); err != nil {
		return nil, err
	}
	return f.inner.Stat(path)
}

// Lstat implements vfs.FS.
func (f *Faults) Lstat(path string) (fs.FileInfo, error) {
	if err := f.step(Stat, path); err != nil {
		return nil, err
	}
	return f.inner.Lstat(path)
}

// ReadDir implements vfs.FS.
func (f *Faults) ReadDir(path string) ([]fs.DirEntry, error) {
	if err := f.step(ReadDir, path); err != nil {
		return nil, err
	}
	return f.inner.ReadDir(path)
}

// Statfs implements vfs.FS.
func (f *Faults) Statfs(path string) (vfs.Space, error) {
	if err := f.step(Statfs, path); err != nil {
		return vfs.Space{}, err
	}
	return f.inner.Statfs(path)
}

// Chtimes implements vfs.FS.
func (f *Faults) Chtimes(path string, at time.Time) error {
	if err := f.step(Chtimes, path); err != nil {
		return err
	}
	return f.inner.Chtimes(path, at)
}

// faultyFile is a file whose operations count. Name, Stat, Drop and Close do not.
type faultyFile struct {
	vfs.File
	f *Faults
}

func (x *faultyFile) ReadAt(p []byte, off int64) (int, error) {
	if err := x.f.step(Read, x.Name()); err != nil {
		return 0, err
	}
	return x.File.ReadAt(p, off)
}

func (x *faultyFile) WriteAt(p []byte, off int64) (int, error) {
	if err := x.f.step(Write, x.Name()); err != nil {
		n := 0
		if part := len(p) / 2 / page * page; errors.Is(err, vfs.ErrNoSpace) && part > 0 {
			n, _ = x.File.WriteAt(p[:part], off)
		}
		return n, err
	}
	return x.File.WriteAt(p, off)
}

func (x *faultyFile) Truncate(size int64) error {
	if err := x.f.step(Truncate, x.Name()); err != nil {
		return err
	}
	return x.File.Truncate(size)
}

func (x *faultyFile) Sync() error {
	if err := x.f.step(Sync, x.Name()); err != nil {
		return err
	}
	return x.File.Sync()
}

func (x *faultyFile) WriteOut(off, n int64) error {
	if err := x.f.step(WriteOut, x.Name()); err != nil {
		return err
	}
	return x.File.WriteOut(off, n)
}

func (x *faultyFile) Punch(off, n int64) error {
	if err := x.f.step(Punch, x.Name()); err != nil {
		return err
	}
	return x.File.Punch(off, n)
}

func (x *faultyFile) Lock() error {
	if err := x.f.step(Lock, x.Name()); err != nil {
		return err
	}
	return x.File.Lock()
}

// Descriptor implements vfs.File: the kernel's reads would not be counted.
func (x *faultyFile) Descriptor() (uintptr, bool) { return 0, false }
