package vfs

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// A way is how [PublishNew] gives a file a name that must be free.
type way string

const (
	byLink   way = "link"
	byRename way = "renameat2(RENAME_NOREPLACE)"
	byMarker way = "open(O_EXCL) of a marker"
)

// PublishNew gives a finished attempt its name, unless the name is taken: then it fails with
// fs.ErrExist. Of several calls for a name, in any process and on any host, one succeeds.
//
// It is a hard link, which is atomic on NFS too; where there are none, a rename that does not
// replace; and where the file system does not know that either, a rename by whoever has made a
// marker beside the name. A marker is left by a process that died with it: it counts for
// markerAge. Only then two calls could both succeed, if one stands still that long between two
// system calls.
func PublishNew(attempt, path string) error {
	how := lackingAt(path).way()
	err := publish(how, attempt, path)
	if err == nil || errors.Is(err, fs.ErrExist) || !Unsupported(err) {
		return err
	}
	// The folder was not probed, or another file system was mounted there since.
	a, probed := Probe(path)
	if probed != nil {
		return errors.Join(err, probed)
	}
	if a.lacks.way() == how {
		return err
	}
	return publish(a.lacks.way(), attempt, path)
}

func publish(how way, attempt, path string) error {
	switch how {
	case byRename:
		return RenameNew(attempt, path)
	case byMarker:
		return underMarker(attempt, path)
	}
	// A server of NFS that repeats a link whose reply was lost finds it made.
	if err := Link(attempt, path); err != nil && (!errors.Is(err, fs.ErrExist) || !samePath(attempt, path)) {
		return err
	}
	_ = Remove(attempt) // an attempt that stays does no harm
	return nil
}

func samePath(a, b string) bool {
	x, errX := Stat(a)
	y, errY := Stat(b)
	return errX == nil && errY == nil && SameFile(x, y)
}

const (
	// markerSuffix makes of a name that of its marker: one that attempts could have, so
	// that whoever removes attempts of killed processes removes markers, too.
	markerSuffix = ".0000000000000000.tmp"
	// markerAge is the time that a process waits for the marker of another one, holdFor the time
	// that the other one may take.
	markerAge, holdFor = 10 * time.Second, 5 * time.Second
	// markerTick is the interval at which a marker is checked.
	markerTick = 10 * time.Millisecond
)

// underMarker renames under a marker.
func underMarker(attempt, path string) error {
	marker := path + markerSuffix
	for since := time.Now(); ; {
		if _, err := Lstat(path); err == nil {
			return taken(path)
		} else if !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		begun := time.Now()
		f, err := OpenFile(marker, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
		if errors.Is(err, fs.ErrExist) {
			if time.Since(since) > markerAge {
				_ = Remove(marker) // its process is dead
				since = time.Now()
			}
			time.Sleep(markerTick)
			continue
		}
		if err == nil {
			err = f.Close()
		}
		if err != nil {
			return err
		}
		if _, err = Lstat(path); err == nil {
			err = taken(path)
		} else if err = nil; time.Since(begun) < holdFor {
			err = Rename(attempt, path)
		} else {
			continue // another process may think that this one is dead
		}
		return errors.Join(err, ignoreMissing(Remove(marker)))
	}
}

func taken(path string) error { return &fs.PathError{Op: "rename", Path: path, Err: unix.EEXIST} }

func ignoreMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// MissingCall reports a call that a run cannot do without and that the file system of a folder
// refuses.
type MissingCall struct {
	// Call names the system call, Dir the folder.
	Call, Dir string
	Err       error
}

func (e *MissingCall) Error() string {
	return fmt.Sprintf("the file system of %s refuses %s (%v)", e.Dir, e.Call, e.Err)
}

func (e *MissingCall) Unwrap() error { return e.Err }
