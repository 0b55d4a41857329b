package ndls

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"ndls/coordinator"
	"ndls/dataset"
	"ndls/estimate"
	"ndls/export"
	"ndls/internal/control"
	"ndls/internal/failure"
	"ndls/internal/mem"
	"ndls/internal/rundir"
	"ndls/internal/seal"
	"ndls/internal/storage"
	"ndls/internal/vfs"
)

// The kinds of errors that the functions of this package return. Ask for them with
// errors.Is; the text of an error is written for the user and does not name the kind.
var (
	// ErrOption reports a value that an option cannot have. Nothing was done.
	ErrOption = failure.ErrOption
	// ErrPlanMismatch reports a run directory that was made with other options, or from
	// a dataset whose files have changed since then.
	ErrPlanMismatch = control.ErrPlanMismatch
	// ErrRefused reports a worker that the coordinator does not want: it belongs to
	// another run or is of another version.
	ErrRefused = control.ErrRefused
	// ErrBudget reports work that does not fit the memory, ErrDisk work that does not
	// fit the disk. ErrUnable reports work that no worker has the memory for.
	ErrBudget = mem.ErrBudget
	ErrDisk   = estimate.ErrDisk
	ErrUnable = control.ErrUnable
	// ErrCorrupt reports a file of a run directory that is not as it was written,
	// ErrVersion one that another version of ndls wrote.
	ErrCorrupt = seal.ErrCorrupt
	ErrVersion = seal.ErrVersion
	// ErrData reports a dataset that cannot be read as what it is said to be.
	ErrData = dataset.ErrData
	// ErrForeign reports a folder that holds something else than a run.
	ErrForeign = coordinator.ErrForeign
	// ErrNoRun reports a folder that holds no run yet.
	ErrNoRun = failure.Kind("no run")
	// ErrBusy reports a run directory on which another process works.
	ErrBusy = rundir.ErrBusy
	// ErrExists reports an output file that is there already.
	ErrExists = export.ErrExists
	// ErrDiffer reports two runs that were compared and are not the same.
	ErrDiffer = failure.Kind("the runs differ")
	// ErrInterrupted reports that the context was cancelled. The same call continues
	// the run.
	ErrInterrupted = errors.New("interrupted by the user; run again to continue")
	// ErrTerminated is a cause for which a command cancels the context when the system
	// tells it to stop. It is an [ErrInterrupted], too. [TerminatedBy] names another signal.
	ErrTerminated = failure.Of(ErrInterrupted, "interrupted by SIGTERM; run again to continue")
)

// TerminatedBy returns an [ErrTerminated] that names the signal by which the system has told a command to stop.
func TerminatedBy(s syscall.Signal) error {
	if s == syscall.SIGTERM {
		return ErrTerminated
	}
	return failure.Of(ErrTerminated, "interrupted by %s; run again to continue", unix.SignalName(s))
}

// An Exit is one row of the table of exit statuses.
type Exit struct {
	Status  int
	Meaning string
	kinds   []error
}

// The exit statuses of the command ndls.
const (
	ExitDone        = 0
	ExitError       = 1
	ExitUsage       = 2
	ExitBudget      = 3
	ExitCorrupt     = 4
	ExitMismatch    = 5
	ExitTerminated  = 75
	ExitInterrupted = 130
)

// Exits is the table of the exit statuses of the command ndls. An error has the status of the first
// row of which it has a kind.
var Exits = []Exit{
	{ExitDone, "done", nil},
	{ExitError, "error", nil},
	{ExitUsage, "wrong usage", []error{ErrOption, dataset.ErrURI}},
	{ExitBudget, "does not fit the memory budget or the disk", []error{ErrBudget, ErrDisk, ErrUnable, storage.ErrNoSpace, syscall.ENOSPC, syscall.EDQUOT}},
	{ExitCorrupt, "corrupt data", []error{ErrCorrupt, ErrData}},
	{ExitMismatch, "the run directory was made with another plan, or a worker was refused", []error{ErrPlanMismatch, ErrRefused}},
	{ExitTerminated, "interrupted by SIGTERM, SIGHUP or SIGUSR1; run again to continue", []error{ErrTerminated}},
	{ExitInterrupted, "interrupted by the user; run again to continue", []error{ErrInterrupted}},
}

// ExitStatus is the exit status of the command ndls after err.
func ExitStatus(err error) int {
	if err == nil {
		return ExitDone
	}
	for _, x := range Exits {
		for _, kind := range x.kinds {
			if errors.Is(err, kind) {
				return x.Status
			}
		}
	}
	return ExitError
}

// Message returns the text of an error for a user: without the names of packages and of kinds.
func Message(err error) string { return inWords(err, failure.Text(err)) }

// inWords says in the text of an error what operations on files lack, in place of which system calls have failed: the
// folder that is missing, where a file was to be written, or the file that was to be read.
func inWords(err error, text string) string {
	var said string
	for _, failed := range pathErrors(err) {
		what := lacks(failed)
		if what == "" {
			continue
		}
		if what == said { // of an operation that followed from the first one, such as removing what was begun
			what = ""
		} else {
			said = what
		}
		text = strings.Replace(text, failed.Error(), what, 1)
	}
	return strings.TrimRight(text, "\n")
}

// pathErrors lists the failed operations on files that an error is made of.
func pathErrors(err error) (list []*fs.PathError) {
	switch x := err.(type) { //nolint:errorlint // this is the walk that errors.As does
	case *fs.PathError:
		return []*fs.PathError{x}
	case interface{ Unwrap() error }:
		return pathErrors(x.Unwrap())
	case interface{ Unwrap() []error }:
		for _, e := range x.Unwrap() {
			list = append(list, pathErrors(e)...)
		}
	}
	return list
}

// lacks says what a failed operation on a file lacks, "" where the error of the system says enough.
func lacks(failed *fs.PathError) string {
	path, folder := failed.Path, filepath.Dir(failed.Path)
	there := func(name string) bool { _, err := vfs.Stat(name); return err == nil }
	switch {
	case errors.Is(failed.Err, fs.ErrNotExist) && !there(folder):
		for up := filepath.Dir(folder); up != folder && !there(up); up = filepath.Dir(folder) {
			folder = up
		}
		if strings.HasSuffix(path, ".tmp") || strings.HasSuffix(path, ".unfinished") { // a file that was to be written
			return fmt.Sprintf("there is no folder %s: make it, or look at the name", folder)
		}
		return fmt.Sprintf("there is no file %s, and no folder %s: look at the name", path, folder)
	case errors.Is(failed.Err, fs.ErrNotExist) && filepath.Ext(path) == "":
		return fmt.Sprintf("there is no file or folder %s: look at the name", path)
	case errors.Is(failed.Err, fs.ErrNotExist):
		return fmt.Sprintf("there is no file %s: look at the name", path)
	case errors.Is(failed.Err, fs.ErrPermission) && there(folder) && !there(path):
		return fmt.Sprintf("you may write nothing to the folder %s: look at its owner and mode, or name another one", folder)
	case errors.Is(failed.Err, fs.ErrPermission):
		return fmt.Sprintf("you may not use %s: look at its owner and mode", path)
	case errors.Is(failed.Err, syscall.EISDIR):
		return fmt.Sprintf("%s is a folder, and a file is wanted", path)
	case errors.Is(failed.Err, syscall.ENOTDIR):
		for up := filepath.Dir(path); up != path && !there(path); up = filepath.Dir(path) {
			path = up
		}
		return fmt.Sprintf("%s is a file, and a folder is wanted", path)
	case errors.Is(failed.Err, syscall.EROFS):
		return fmt.Sprintf("nothing can be written to the file system of %s; give another name", folder)
	}
	return ""
}

// kindOf is a kind of the errors for which a process of ndls ends with a status, nil
// where the status says too little.
func kindOf(status int) error {
	for _, x := range Exits {
		if x.Status == status && len(x.kinds) > 0 {
			return x.kinds[0]
		}
	}
	return nil
}

// interruption returns err, or, where ctx has ended, why that is so.
func interruption(ctx context.Context, err error) error {
	if err == nil || ctx.Err() == nil {
		return err
	}
	return failure.As(ErrInterrupted, context.Cause(ctx))
}
