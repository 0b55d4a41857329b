// Package ownfolder gives each process a folder of its own inside one that processes share, and
// removes the folders of killed processes.
//
// # Model
//
// A folder belongs to a process as long as that holds a lock (flock) on it, which ends with the
// process, however that ends. Locks of other hosts may not be seen on a shared file system: the
// caller says which names belong to processes of this host.
//
// # Not supported
//
// File systems without locks: folders of killed processes stay there.
package ownfolder

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"ndls/internal/vfs"

	"golang.org/x/sys/unix"
)

// Make makes the folder name in the folder base and locks it, after it has removed the
// folders in base whose names are of this host, as ofHost says, and which no process has
// locked. release removes the folder.
func Make(base, name string, ofHost func(name string) bool) (dir string, release func(), err error) {
	if !ofHost(name) {
		return "", nil, fmt.Errorf("the folder name %q is none of this host", name)
	}
	if _, err := vfs.MkdirAll(base, 0o777); err != nil {
		return "", nil, err
	}
	sweep(base, ofHost)
	dir = filepath.Join(base, name)
	for {
		if _, err := vfs.MkdirAll(dir, 0o777); err != nil {
			return "", nil, err
		}
		f, err := lock(dir)
		switch {
		case errors.Is(err, errTaken) || errors.Is(err, fs.ErrNotExist):
			continue // another process is removing it: it had no lock yet
		case err != nil:
			return "", nil, err
		}
		if !isStill(f, dir) {
			_ = f.Close()
			continue
		}
		return dir, func() {
			_ = vfs.RemoveAll(dir)
			_ = f.Close()
		}, nil
	}
}

var errTaken = errors.New("another process has locked the folder")

// lock opens a folder and locks it, or fails with errTaken. Where the file system knows
// no locks it opens it.
func lock(dir string) (vfs.File, error) {
	f, err := vfs.OpenFile(dir, os.O_RDONLY, 0)
	if err != nil {
		return nil, err
	}
	if err := f.Lock(); errors.Is(err, unix.EWOULDBLOCK) {
		return nil, errors.Join(errTaken, f.Close())
	}
	return f, nil
}

// isStill reports whether an open folder still has the name.
func isStill(f vfs.File, dir string) bool {
	a, errA := f.Stat()
	b, errB := vfs.Stat(dir)
	return errA == nil && errB == nil && vfs.SameFile(a, b)
}

// sweep removes the folders that no process has locked. What cannot be removed stays,
// and does no harm. A folder that was removed after sweep had opened it has no lock any more, but
// its name may be that of a new folder by then, which stays.
func sweep(base string, ofHost func(name string) bool) {
	entries, _ := vfs.ReadDir(base)
	for _, e := range entries {
		if !e.IsDir() || !ofHost(e.Name()) {
			continue
		}
		dir := filepath.Join(base, e.Name())
		f, err := vfs.OpenFile(dir, os.O_RDONLY, 0)
		if err != nil {
			continue
		}
		if f.Lock() == nil && isStill(f, dir) {
			_ = vfs.RemoveAll(dir)
		}
		_ = f.Close()
	}
}
