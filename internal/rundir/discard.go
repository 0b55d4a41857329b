package rundir

import (
	"errors"
	"path/filepath"

	"ndls/internal/vfs"
)

// Discard removes the files of a local run directory that made names, by their names in it,
// then the folders that hold nothing, and at last the directory. All else stays, and the
// folders that hold it. It removes as much as it can.
func Discard(dir string, made func(name string) bool) error {
	return errors.Join(discard(dir, "", made), removeEmpty(dir))
}

// Clear is Discard for a folder that stays.
func Clear(dir string, made func(name string) bool) error { return discard(dir, "", made) }

func discard(dir, prefix string, made func(name string) bool) error {
	entries, err := vfs.ReadDir(dir)
	if err != nil {
		return err
	}
	var errs []error
	for _, e := range entries {
		path, name := filepath.Join(dir, e.Name()), prefix+e.Name()
		switch {
		case e.IsDir():
			errs = append(errs, discard(path, name+"/", made), removeEmpty(path))
		case made(name):
			errs = append(errs, vfs.Remove(path))
		}
	}
	return errors.Join(errs...)
}

// removeEmpty removes a folder that holds nothing.
func removeEmpty(dir string) error {
	left, err := vfs.ReadDir(dir)
	if err == nil && len(left) == 0 {
		err = vfs.Remove(dir)
	}
	return err
}
