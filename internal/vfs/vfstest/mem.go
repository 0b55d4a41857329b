package vfstest

import (
	"io"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"ndls/internal/vfs"
)

// page is the unit in which bytes of a file reach the disk, and the alignment that direct
// I/O asks for.
const page = 4096

// Mem is a file system in memory. It has direct I/O, and refuses transfers by it that a
// disk would refuse.
type Mem struct {
	dir    string
	mu     sync.Mutex
	root   *inode
	inodes uint64
	space  vfs.Space
}

// inode is a file or folder: what it is now, and what a power failure would leave.
type inode struct {
	number  uint64
	changed time.Time
	locked  bool

	data, synced []byte

	names, syncedNames map[string]*inode // nil for a file
}

// NewMem returns a file system that holds the empty folder dir, an absolute path.
func NewMem(dir string) *Mem {
	m := &Mem{dir: filepath.Clean(dir), space: vfs.Space{Total: 1 << 50, Free: 1 << 50}}
	m.root = m.newInode(true)
	at := m.root
	for _, name := range parts(m.dir) {
		next := m.newInode(true)
		at.names[name], at.syncedNames[name] = next, next
		at = next
	}
	return m
}

// Mount mounts the file system at its folder; see [vfs.Mount].
func (m *Mem) Mount() (unmount func()) { return vfs.Mount(m.dir, m) }

func (m *Mem) newInode(folder bool) *inode {
	m.inodes++
	x := &inode{number: m.inodes, changed: time.Now()}
	if folder {
		x.names, x.syncedNames = map[string]*inode{}, map[string]*inode{}
	}
	return x
}

func parts(path string) []string {
	return slices.DeleteFunc(strings.Split(filepath.Clean(path), "/"), func(s string) bool { return s == "" })
}

// Clone returns the file system as the next process finds it if this one dies now.
func (m *Mem) Clone() *Mem { return m.clone(func() bool { return true }) }

// CrashClone returns the file system as the next process finds it after a power failure.
// Each change that was not synced is there with probability share.
func (m *Mem) CrashClone(r *rand.Rand, share float64) *Mem {
	return m.clone(func() bool { return r.Float64() < share })
}

// clone copies what is durable, and of the rest what lucky says.
func (m *Mem) clone(lucky func() bool) *Mem {
	m.mu.Lock()
	defer m.mu.Unlock()
	c := &Mem{dir: m.dir, inodes: m.inodes, space: m.space}
	copies := map[*inode]*inode{} // a file may have several names
	var survive func(x *inode) *inode
	survive = func(x *inode) *inode {
		if y := copies[x]; y != nil {
			return y
		}
		y := &inode{number: x.number, changed: x.changed}
		copies[x] = y
		if x.names == nil {
			y.data = survivingBytes(x, lucky)
			y.synced = slices.Clone(y.data)
			return y
		}
		y.names = map[string]*inode{}
		for _, name := range slices.Sorted(maps.Keys(union(x.names, x.syncedNames))) {
			now, durable := x.names[name], x.syncedNames[name]
			if now != durable && lucky() {
				durable = now
			}
			if durable != nil {
				y.names[name] = survive(durable)
			}
		}
		y.syncedNames = maps.Clone(y.names)
		return y
	}
	c.root = survive(m.root)
	return c
}

func union(a, b map[string]*inode) map[string]*inode {
	u := maps.Clone(a)
	maps.Copy(u, b)
	return u
}

// survivingBytes mixes the pages of the last sync with later ones.
func survivingBytes(x *inode, lucky func() bool) []byte {
	size := len(x.synced)
	if len(x.data) != size && lucky() {
		size = len(x.data)
	}
	out := make([]byte, size)
	copy(out, x.synced)
	for at := 0; at < min(size, len(x.data)); at += page {
		now := x.data[at:min(at+page, size, len(x.data))]
		if string(now) != string(out[at:at+len(now)]) && lucky() {
			copy(out[at:], now)
		}
	}
	return out
}

// find returns the inode of a path and the folder and name under which it is, or would be;
// mu is held.
func (m *Mem) find(path string) (parent *inode, name string, x *inode, err error) {
	x = m.root
	names := parts(path)
	for i, n := range names {
		if x.names == nil {
			return nil, "", nil, syscall.ENOTDIR
		}
		parent, name, x = x, n, x.names[n]
		if x == nil && i < len(names)-1 {
			return nil, "", nil, syscall.ENOENT
		}
	}
	return parent, name, x, nil
}

// existing is find for what must be there; mu is held.
func (m *Mem) existing(path string) (parent *inode, name string, x *inode, err error) {
	parent, name, x, err = m.find(path)
	if err == nil && x == nil {
		err = syscall.ENOENT
	}
	return parent, name, x, err
}

func fail(op, path string, err error) error {
	if err == nil {
		return nil
	}
	return vfs.Mark(&fs.PathError{Op: op, Path: path, Err: err})
}

// OpenFile implements vfs.FS.
func (m *Mem) OpenFile(path string, flag int, _ fs.FileMode) (vfs.File, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	parent, name, x, err := m.find(path)
	writes := flag&(os.O_WRONLY|os.O_RDWR) != 0
	switch {
	case err != nil:
	case x == nil && flag&os.O_CREATE == 0:
		err = syscall.ENOENT
	case x == nil:
		x = m.newInode(false)
		parent.names[name] = x
	case flag&(os.O_CREATE|os.O_EXCL) == os.O_CREATE|os.O_EXCL:
		err = syscall.EEXIST
	case x.names != nil && writes:
		err = syscall.EISDIR
	}
	if err != nil {
		return nil, fail("open", path, err)
	}
	if flag&os.O_TRUNC != 0 {
		x.data = nil
	}
	return &memFile{m: m, x: x, path: path, writes: writes, direct: flag&unix.O_DIRECT != 0}, nil
}

// Mkdir implements vfs.FS.
func (m *Mem) Mkdir(path string, _ fs.FileMode) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	parent, name, x, err := m.find(path)
	if err == nil && x != nil {
		err = syscall.EEXIST
	}
	if err == nil {
		parent.names[name] = m.newInode(true)
	}
	return fail("mkdir", path, err)
}

// Rename implements vfs.FS.
func (m *Mem) Rename(from, to string) error { return m.rename(from, to, false) }

// RenameNew implements vfs.FS.
func (m *Mem) RenameNew(from, to string) error { return m.rename(from, to, true) }

func (m *Mem) rename(from, to string, fresh bool) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	folder, name, x, err := m.find(from)
	var parent, there *inode
	var target string
	if err == nil {
		parent, target, there, err = m.find(to)
	}
	switch {
	case err != nil:
	case x == nil:
		err = syscall.ENOENT
	case there != nil && (fresh || there.names != nil || x.names != nil):
		err = syscall.EEXIST
	}
	if err != nil {
		return vfs.Mark(&os.LinkError{Op: "rename", Old: from, New: to, Err: err})
	}
	if there == x {
		return nil // two names of one file stay, as POSIX says
	}
	delete(folder.names, name)
	parent.names[target] = x
	return nil
}

// Link implements vfs.FS.
func (m *Mem) Link(from, to string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	_, _, x, err := m.existing(from)
	var parent *inode
	var name string
	if err == nil {
		var there *inode
		parent, name, there, err = m.find(to)
		if err == nil && there != nil {
			err = syscall.EEXIST
		}
	}
	if err != nil {
		return vfs.Mark(&os.LinkError{Op: "link", Old: from, New: to, Err: err})
	}
	parent.names[name] = x
	return nil
}

// Remove implements vfs.FS.
func (m *Mem) Remove(path string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	parent, name, x, err := m.existing(path)
	if err == nil && len(x.names) > 0 {
		err = syscall.ENOTEMPTY
	}
	if err == nil {
		delete(parent.names, name)
	}
	return fail("remove", path, err)
}

// Stat implements vfs.FS.
func (m *Mem) Stat(path string) (fs.FileInfo, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	_, name, x, err := m.existing(path)
	if err != nil {
		return nil, fail("stat", path, err)
	}
	return x.info(name), nil
}

// Lstat implements vfs.FS.
func (m *Mem) Lstat(path string) (fs.FileInfo, error) { return m.Stat(path) }

// ReadDir implements vfs.FS.
func (m *Mem) ReadDir(path string) ([]fs.DirEntry, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	_, _, x, err := m.existing(path)
	if err == nil && x.names == nil {
		err = syscall.ENOTDIR
	}
	if err != nil {
		return nil, fail("open", path, err)
	}
	var out []fs.DirEntry
	for _, name := range slices.Sorted(maps.Keys(x.names)) {
		out = append(out, fs.FileInfoToDirEntry(x.names[name].info(name)))
	}
	return out, nil
}

// SetSpace says what Statfs returns, which is much at first. No write fails for lack of it.
func (m *Mem) SetSpace(s vfs.Space) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.space = s
}

// Statfs implements vfs.FS.
func (m *Mem) Statfs(string) (vfs.Space, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.space, nil
}

// Chtimes implements vfs.FS.
func (m *Mem) Chtimes(path string, at time.Time) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	_, _, x, err := m.existing(path)
	if err == nil {
		x.changed = at
	}
	return fail("chtimes", path, err)
}

// info describes an inode.
type info struct {
	name    string
	size    int64
	folder  bool
	changed time.Time
	sys     syscall.Stat_t
}

func (x *inode) info(name string) fs.FileInfo {
	size := int64(len(x.data))
	return info{name, size, x.names != nil, x.changed, syscall.Stat_t{Dev: 1, Ino: x.number, Size: size, Blocks: (size + 511) / 512}}
}

func (i info) Name() string       { return i.name }
func (i info) Size() int64        { return i.size }
func (i info) ModTime() time.Time { return i.changed }
func (i info) IsDir() bool        { return i.folder }
func (i info) Sys() any           { return &i.sys }
func (i info) Mode() fs.FileMode {
	if i.folder {
		return fs.ModeDir | 0o755
	}
	return 0o644
}

// memFile is an open file of a Mem.
type memFile struct {
	m              *Mem
	x              *inode
	path           string
	writes, direct bool
	locks, closed  bool
}

// use begins an operation at off of the length n; mu is held.
func (f *memFile) use(off int64, n int, writes bool) error {
	switch {
	case f.closed:
		return fs.ErrClosed
	case f.x.names != nil:
		return syscall.EISDIR
	case writes && !f.writes:
		return syscall.EBADF
	case f.direct && (off%page != 0 || n%page != 0):
		return syscall.EINVAL
	}
	return nil
}

// ReadAt implements vfs.File.
func (f *memFile) ReadAt(p []byte, off int64) (int, error) {
	f.m.mu.Lock()
	defer f.m.mu.Unlock()
	if err := f.use(off, len(p), false); err != nil {
		return 0, fail("read", f.path, err)
	}
	n := 0
	if off < int64(len(f.x.data)) {
		n = copy(p, f.x.data[off:])
	}
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

// WriteAt implements vfs.File.
func (f *memFile) WriteAt(p []byte, off int64) (int, error) {
	f.m.mu.Lock()
	defer f.m.mu.Unlock()
	if err := f.use(off, len(p), true); err != nil {
		return 0, fail("write", f.path, err)
	}
	f.x.resize(max(int64(len(f.x.data)), off+int64(len(p))))
	f.x.changed = time.Now()
	return copy(f.x.data[off:], p), nil
}

// resize cuts the bytes or appends zeros.
func (x *inode) resize(size int64) {
	old := int64(len(x.data))
	x.data = slices.Grow(x.data, int(max(size-old, 0)))[:size]
	if size > old {
		clear(x.data[old:])
	}
}

// Truncate implements vfs.File.
func (f *memFile) Truncate(size int64) error {
	f.m.mu.Lock()
	defer f.m.mu.Unlock()
	err := f.use(0, 0, true)
	if err == nil {
		f.x.resize(size)
	}
	return fail("truncate", f.path, err)
}

// Sync implements vfs.File.
func (f *memFile) Sync() error {
	f.m.mu.Lock()
	defer f.m.mu.Unlock()
	if f.closed {
		return fail("sync", f.path, fs.ErrClosed)
	}
	f.x.synced = slices.Clone(f.x.data)
	if f.x.names != nil {
		f.x.syncedNames = maps.Clone(f.x.names)
	}
	return nil
}

// WriteOut implements vfs.File: it promises nothing about a power failure.
func (f *memFile) WriteOut(int64, int64) error { return nil }

// Buffered implements vfs.File.
func (f *memFile) Buffered() error {
	f.m.mu.Lock()
	defer f.m.mu.Unlock()
	f.direct = false
	return nil
}

// Drop implements vfs.File.
func (f *memFile) Drop(int64, int64) {}

// Punch implements vfs.File.
func (f *memFile) Punch(off, n int64) error {
	f.m.mu.Lock()
	defer f.m.mu.Unlock()
	err := f.use(0, 0, true)
	if end := min(off+n, int64(len(f.x.data))); err == nil && off < end {
		clear(f.x.data[off:end])
	}
	return fail("fallocate", f.path, err)
}

// Lock implements vfs.File.
func (f *memFile) Lock() error {
	f.m.mu.Lock()
	defer f.m.mu.Unlock()
	if f.x.locked && !f.locks {
		return fail("flock", f.path, syscall.EWOULDBLOCK)
	}
	f.x.locked, f.locks = true, true
	return nil
}

// Descriptor implements vfs.File: the kernel does not know the file.
func (f *memFile) Descriptor() (uintptr, bool) { return 0, false }

// Name implements vfs.File.
func (f *memFile) Name() string { return f.path }

// Stat implements vfs.File.
func (f *memFile) Stat() (fs.FileInfo, error) {
	f.m.mu.Lock()
	defer f.m.mu.Unlock()
	if f.closed {
		return nil, fail("stat", f.path, fs.ErrClosed)
	}
	return f.x.info(filepath.Base(f.path)), nil
}

// Close implements vfs.File.
func (f *memFile) Close() error {
	f.m.mu.Lock()
	defer f.m.mu.Unlock()
	if f.closed {
		return fail("close", f.path, fs.ErrClosed)
	}
	f.closed = true
	if f.locks {
		f.x.locked = false
	}
	return nil
}
