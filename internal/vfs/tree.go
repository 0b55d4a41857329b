package vfs

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// tempTries is the number of names that are tried for a temporary file or folder.
const tempTries = 1000

// MkdirAll makes a folder and the missing ones above it, and returns those that it made,
// the topmost first.
func MkdirAll(path string, perm fs.FileMode) (made []string, err error) {
	var missing []string
	for dir := filepath.Clean(path); ; dir = filepath.Dir(dir) {
		info, err := Stat(dir)
		if err == nil && !info.IsDir() {
			return nil, fmt.Errorf("making folder %s: %s is a file", path, dir)
		}
		if err == nil {
			break
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		missing = append(missing, dir)
		if dir == filepath.Dir(dir) {
			break
		}
	}
	for _, dir := range slices.Backward(missing) {
		err := Mkdir(dir, perm)
		if err != nil && !errors.Is(err, fs.ErrExist) { // another process may have been first
			return made, err
		}
		made = append(made, dir)
	}
	return made, nil
}

// SyncDir makes the names in a folder durable. It does nothing where the file system has no
// such call, as CIFS and many of FUSE: names are then as durable as that makes them, and
// [Probe] tells.
func SyncDir(path string) error {
	d, err := OpenFile(path, os.O_RDONLY, 0)
	if err != nil {
		return err
	}
	err = d.Sync()
	if Unsupported(err) {
		err = nil
	}
	return errors.Join(err, d.Close())
}

// CreateTemp makes a new file in dir for reading and writing. Its name is pattern, in
// which random digits stand for the "*".
func CreateTemp(dir, pattern string) (f File, err error) {
	err = temp(dir, pattern, func(path string) error {
		f, err = OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o666)
		return err
	})
	return f, err
}

// MkdirTemp makes a new folder in dir; see [CreateTemp].
func MkdirTemp(dir, pattern string, perm fs.FileMode) (path string, err error) {
	err = temp(dir, pattern, func(name string) error {
		path = name
		return Mkdir(path, perm)
	})
	return path, err
}

func temp(dir, pattern string, try func(path string) error) error {
	before, after, _ := strings.Cut(pattern, "*")
	for range tempTries {
		err := try(filepath.Join(dir, fmt.Sprintf("%s%d%s", before, rand.Uint32(), after)))
		if !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	return fmt.Errorf("no free name for a temporary file in %s", dir)
}

// RemoveAll removes a file or folder with all that it holds; what does not exist is no
// error. It removes as much as it can and returns the first error.
func RemoveAll(path string) error {
	err := Remove(path)
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	info, statErr := Lstat(path)
	if errors.Is(statErr, fs.ErrNotExist) {
		return nil
	}
	if statErr != nil || !info.IsDir() {
		return err
	}
	entries, first := ReadDir(path)
	for _, e := range entries {
		if err := RemoveAll(filepath.Join(path, e.Name())); first == nil {
			first = err
		}
	}
	if err := Remove(path); first == nil && !errors.Is(err, fs.ErrNotExist) {
		first = err
	}
	return first
}

// WalkDir calls fn for root and all that it holds, as filepath.WalkDir does.
func WalkDir(root string, fn fs.WalkDirFunc) error {
	info, err := Lstat(root)
	if err != nil {
		err = fn(root, nil, err)
	} else {
		err = walk(root, fs.FileInfoToDirEntry(info), fn)
	}
	if err == fs.SkipDir || err == fs.SkipAll {
		return nil
	}
	return err
}

func walk(path string, d fs.DirEntry, fn fs.WalkDirFunc) error {
	if err := fn(path, d, nil); err != nil || !d.IsDir() {
		if err == fs.SkipDir && d.IsDir() {
			return nil
		}
		return err
	}
	entries, err := ReadDir(path)
	if err != nil {
		if err = fn(path, d, err); err != nil {
			if err == fs.SkipDir {
				return nil
			}
			return err
		}
	}
	for _, e := range entries {
		if err := walk(filepath.Join(path, e.Name()), e, fn); err != nil {
			if err == fs.SkipDir {
				return nil
			}
			return err
		}
	}
	return nil
}

// ReadFile returns the bytes of a file.
func ReadFile(path string) ([]byte, error) {
	f, err := OpenFile(path, os.O_RDONLY, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	data := make([]byte, info.Size())
	n, err := f.ReadAt(data, 0)
	if err == io.EOF {
		err = nil
	}
	return data[:n], err
}

// WriteFile replaces the bytes of a file. They are not durable.
func WriteFile(path string, data []byte, perm fs.FileMode) error {
	f, err := OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, perm)
	if err != nil {
		return err
	}
	_, err = f.WriteAt(data, 0)
	return errors.Join(err, f.Close())
}

// ReplaceFile writes a file in one step: whoever reads it finds all of the old bytes, or of the
// new ones. They are not durable.
func ReplaceFile(path string, data []byte, perm fs.FileMode) error {
	unfinished := path + ".unfinished"
	err := WriteFile(unfinished, data, perm)
	if err == nil {
		err = Rename(unfinished, path)
	}
	if err != nil {
		return errors.Join(err, RemoveAll(unfinished))
	}
	return nil
}

// Nameless takes the name of an open file away, so that the file is gone when it is closed, also by the
// death of the process. It closes the file if it fails. Some file systems, such as CIFS, and NFS for
// files that it has renamed itself, cannot do that: the file that Nameless returns is then removed after
// it was closed, and one that stays even then does no harm.
func Nameless(f File) (File, error) {
	err := Remove(f.Name())
	if err == nil {
		return f, nil
	}
	if errors.Is(err, unix.EBUSY) || errors.Is(err, unix.ETXTBSY) || Unsupported(err) {
		return named{f}, nil
	}
	return nil, errors.Join(err, f.Close())
}

// named is a file that is removed after it was closed.
type named struct{ File }

// Close implements File.
func (f named) Close() error {
	err := f.File.Close()
	_ = Remove(f.Name())
	return err
}
