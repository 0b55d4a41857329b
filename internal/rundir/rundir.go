package rundir

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"ndls/internal/failure"
	"ndls/internal/storage"
	"ndls/internal/vfs"
)

var (
	// ErrName reports a name that no run directory can have.
	ErrName = failure.ErrOption
	// ErrBusy reports a run directory on which another process works.
	ErrBusy = failure.Kind("another process works on the run directory")
)

// Remote reports whether a run directory is in an object store.
func Remote(dir string) bool { return strings.Contains(dir, "://") }

// Open returns the store of a run directory. With create the folder may be
// missing; it is then made by the first file that is written.
func Open(ctx context.Context, dir string, create bool) (storage.Store, error) {
	if err := Check(dir, create); err != nil {
		return nil, err
	}
	store, err := storage.OpenURI(ctx, dir)
	if err != nil {
		return nil, fmt.Errorf("--run %s: %w", failure.Redact(dir), err)
	}
	return store, nil
}

// Check sees that a local run directory is a folder, or may be made, and that the
// name of another one is known here.
func Check(dir string, create bool) error {
	switch {
	case dir == "":
		return failure.Of(ErrName, "--run is empty; give a folder or s3://bucket/prefix")
	case strings.HasPrefix(dir, "s3://"):
		return nil
	case Remote(dir):
		return failure.Of(ErrName, "--run %s: give a local folder or s3://bucket/prefix", failure.Redact(dir))
	}
	switch st, err := vfs.Stat(dir); {
	case errors.Is(err, fs.ErrNotExist) && create:
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("the run directory %s does not exist; ndls partition or ndls run makes it", dir)
	case err != nil:
		return fmt.Errorf("--run: %w", err)
	case !st.IsDir():
		return fmt.Errorf("--run %s is a file; give a folder", dir)
	}
	return nil
}

// Missing reports whether a local run directory is not there yet.
func Missing(dir string) bool {
	if Remote(dir) {
		return false
	}
	_, err := vfs.Stat(dir)
	return errors.Is(err, fs.ErrNotExist)
}

// Lock keeps other processes from writing to a local run directory until unlock is
// called or the process ends.
func Lock(dir string) (unlock func(), err error) {
	if Remote(dir) {
		return func() {}, nil
	}
	folder, err := vfs.OpenFile(dir, os.O_RDONLY, 0)
	if err != nil {
		return nil, fmt.Errorf("--run: %w", err)
	}
	err = folder.Lock()
	if errors.Is(err, unix.EWOULDBLOCK) {
		_ = folder.Close()
		return nil, failure.Of(ErrBusy, "--run %s: another ndls is working on it; wait for it or choose another folder", dir)
	}
	return func() { _ = folder.Close() }, nil
}

// Scratch is the folder for temporary files where the user named none: a folder of
// a local run directory, "" for one in an object store.
func Scratch(dir string) string {
	if Remote(dir) {
		return ""
	}
	return filepath.Join(dir, "scratch")
}

// CheckScratch refuses a folder for temporary files that cannot be one.
func CheckScratch(dir string) error {
	switch st, err := vfs.Stat(dir); {
	case err == nil && !st.IsDir():
		return failure.Of(failure.ErrOption, "--scratch %s is a file; give a folder", dir)
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return failure.Of(failure.ErrOption, "--scratch: %w", err)
	}
	return nil
}

// Temporary returns scratch, or, where that is "", a new folder that remove
// deletes.
func Temporary(scratch string) (dir string, remove func(), err error) {
	if scratch != "" {
		return scratch, func() {}, nil
	}
	if dir, err = vfs.MkdirTemp(os.TempDir(), "ndls-scratch-*", 0o700); err != nil {
		return "", nil, fmt.Errorf("a folder for temporary files: %w; give --scratch", err)
	}
	return dir, func() { _ = vfs.RemoveAll(dir) }, nil
}

// cacheShare is the part of the free disk space that a cache takes unless its size
// is given: one half.
const cacheShare = 2

// Cache keeps copies of the files of a store in the folder dir. A size of 0 is half
// of what is free there.
func Cache(store storage.Store, dir string, size int64) (*storage.Cached, error) {
	if size == 0 {
		if _, err := vfs.MkdirAll(dir, 0o777); err != nil {
			return nil, fmt.Errorf("--cache: %w", err)
		}
		space, err := vfs.Statfs(dir)
		if err != nil {
			return nil, fmt.Errorf("--cache %s: %w; give --cache-size", dir, err)
		}
		if space.Total == 0 {
			return nil, failure.Of(failure.ErrOption, "--cache %s: the file system does not say how much is free: give --cache-size", dir)
		}
		size = space.Free / cacheShare
	}
	return storage.NewCached(store, dir, size)
}

// record is the file that every run directory holds.
const record = "run.json"

// Around returns the local run directory in which path lies, if it lies in one. path
// need not exist.
func Around(path string) (dir string, inside bool) {
	path, err := filepath.Abs(path)
	if err != nil {
		return "", false
	}
	for dir := path; ; dir = filepath.Dir(dir) {
		if target, err := filepath.EvalSymlinks(dir); err == nil {
			return above(target)
		}
		if dir == filepath.Dir(dir) {
			return "", false
		}
	}
}

// above looks for a run directory from dir, which exists, upwards.
func above(dir string) (string, bool) {
	for {
		if isRun(dir) {
			return dir, true
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", false
		}
		dir = parent
	}
}

// recordHead is the number of bytes of a record that are read to tell it from other files.
const recordHead = 1 << 20

// isRun reports whether a folder holds the record of a run.
func isRun(dir string) bool {
	f, err := vfs.OpenFile(filepath.Join(dir, record), os.O_RDONLY, 0)
	if err != nil {
		return false
	}
	defer f.Close()
	head, err := io.ReadAll(io.NewSectionReader(f, 0, recordHead))
	return err == nil && bytes.Contains(head, []byte(`"plan_hash"`))
}
