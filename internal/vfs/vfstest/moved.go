package vfstest

import (
	"io/fs"
	"strings"
	"time"

	"ndls/internal/vfs"
)

// Moved shows the folder from of another file system under the name to. Several
// processes of a test can have one disk, each under a name of its own and with faults of
// its own, and several tests that run at the same time can use the same command lines.
func Moved(inner vfs.FS, from, to string) vfs.FS { return moved{inner, from, to} }

type moved struct {
	inner    vfs.FS
	from, to string
}

// under is the path of a file in the inner file system.
func (m moved) under(path string) string { return m.from + strings.TrimPrefix(path, m.to) }

// OpenFile implements vfs.FS.
func (m moved) OpenFile(path string, flag int, perm fs.FileMode) (vfs.File, error) {
	f, err := m.inner.OpenFile(m.under(path), flag, perm)
	if err != nil {
		return nil, err
	}
	return movedFile{f, path}, nil
}

// Mkdir implements vfs.FS.
func (m moved) Mkdir(path string, perm fs.FileMode) error {
	return m.inner.Mkdir(m.under(path), perm)
}

// Rename implements vfs.FS.
func (m moved) Rename(from, to string) error { return m.inner.Rename(m.under(from), m.under(to)) }

// RenameNew implements vfs.FS.
func (m moved) RenameNew(from, to string) error {
	return m.inner.RenameNew(m.under(from), m.under(to))
}

// Link implements vfs.FS.
func (m moved) Link(from, to string) error { return m.inner.Link(m.under(from), m.under(to)) }

// Remove implements vfs.FS.
func (m moved) Remove(path string) error { return m.inner.Remove(m.under(path)) }

// Stat implements vfs.FS.
func (m moved) Stat(path string) (fs.FileInfo, error) { return m.inner.Stat(m.under(path)) }

// Lstat implements vfs.FS.
func (m moved) Lstat(path string) (fs.FileInfo, error) { return m.inner.Lstat(m.under(path)) }

// ReadDir implements vfs.FS.
func (m moved) ReadDir(path string) ([]fs.DirEntry, error) { return m.inner.ReadDir(m.under(path)) }

// Statfs implements vfs.FS.
func (m moved) Statfs(path string) (vfs.Space, error) { return m.inner.Statfs(m.under(path)) }

// Chtimes implements vfs.FS.
func (m moved) Chtimes(path string, at time.Time) error { return m.inner.Chtimes(m.under(path), at) }

// movedFile is an open file under its name in a moved folder.
type movedFile struct {
	vfs.File
	name string
}

// Name implements vfs.File.
func (f movedFile) Name() string { return f.name }
