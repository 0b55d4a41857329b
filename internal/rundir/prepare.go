package rundir

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"ndls/internal/failure"
	"ndls/internal/vfs"
)

// ErrReadOnly reports a run directory that this process may read and not write.
var ErrReadOnly = failure.Kind("the run directory is read only")

// Prepare finds out, before anything is written, what the file systems of a run directory and
// of a folder for temporary files can do: see [vfs.Probe]. It warns of each promise that cannot be kept
// there, once, and refuses what a run cannot do without. If an earlier process died before its last
// changes of the catalogue and the journal were durable, Prepare makes them so, because this process builds on them.
func Prepare(run, scratch string, warn func(text string, args ...any)) error {
	if !Remote(run) {
		a, err := vfs.Probe(filepath.Join(run, record))
		if err != nil {
			return explain("--run", run, err)
		}
		weaker(a, run, warn)
		for _, list := range []string{"catalog", "journal"} {
			if err := vfs.SyncDir(filepath.Join(run, list)); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return explain("--run", run, err)
			}
		}
	}
	if scratch == "" || !Remote(run) && sameDisk(run, scratch) {
		return nil
	}
	made, err := vfs.MkdirAll(scratch, 0o777)
	if err == nil {
		_, err = vfs.Probe(filepath.Join(scratch, "scratch-0.tmp")) // a name that gc knows
	}
	for _, folder := range slices.Backward(made) {
		_ = vfs.Remove(folder) // whoever uses it makes it
	}
	if err != nil {
		return explain("--scratch", scratch, err)
	}
	return nil
}

// sameDisk reports whether scratch is in the run directory and on its file system.
func sameDisk(run, scratch string) bool {
	inside, err := filepath.Rel(run, scratch)
	if err != nil || inside == ".." || strings.HasPrefix(inside, "../") {
		return false
	}
	there, err := vfs.Stat(scratch)
	if errors.Is(err, fs.ErrNotExist) {
		return true
	}
	of, errRun := vfs.Stat(run)
	return err == nil && errRun == nil && vfs.Device(there) == vfs.Device(of)
}

// explain says in the words of an option what a probe has failed with.
func explain(option, dir string, err error) error {
	var missing *vfs.MissingCall
	switch {
	case errors.As(err, &missing):
		other := "choose a folder on another file system"
		if option == "--run" {
			other = "if it shows a bucket, give that by its address, --run s3://bucket/prefix; else " + other
		}
		return failure.Of(failure.ErrOption, "%s %s: its file system refuses %s (%w): %s", option, dir, missing.Call, missing.Err, other)
	case option == "--run" && (errors.Is(err, fs.ErrPermission) || errors.Is(err, unix.EROFS)):
		return failure.As(ErrReadOnly, fmt.Errorf("%s %s cannot be written to: %w", option, dir, err))
	}
	return fmt.Errorf("%s %s: %w; %s", option, dir, err, vfs.Remedy(err, dir))
}

// said holds what was said, so that it is said once: a process may open a run directory often.
var said sync.Map

// weaker says what a run directory does not promise where it is.
func weaker(a vfs.Abilities, run string, warn func(text string, args ...any)) {
	say := func(text string, because error) {
		if _, before := said.LoadOrStore(run+"\n"+text, true); before {
			return
		}
		args := []any{"run", run}
		if because != nil {
			args = append(args, "because", because)
		}
		warn(text, args...)
	}
	if a.Sync != nil {
		say("the file system cannot sync folders: files that were written last may be lost in a power failure; ndls verify finds that", a.Sync)
	}
	if a.Lock != nil {
		say("the file system has no locks: do not start two commands on this run directory at the same time", a.Lock)
	}
	if a.Markers {
		say("the file system has neither hard links nor renames that replace nothing: do not start two coordinators of this run on two machines", nil)
	}
}
