package vfs

import (
	"errors"
	"slices"
	"syscall"
)

var (
	// ErrDisk marks the errors of a full or failing disk.
	ErrDisk = errors.New("disk full or failing")
	// ErrNoSpace marks those of ErrDisk that say that the disk is full or a quota is used
	// up: trying again helps only after someone has made room.
	ErrNoSpace = errors.New("no space left on the disk")
)

// Mark marks an error of an operation on files that tells of the disk and not of the
// caller. The text stays the same. Implementations of [FS] call it on what they return.
func Mark(err error) error {
	var errno syscall.Errno
	switch {
	case err == nil || !errors.As(err, &errno):
		return err
	case errno == syscall.ENOSPC || errno == syscall.EDQUOT:
		return diskError{err, true}
	case slices.Contains([]syscall.Errno{syscall.EIO, syscall.EROFS, syscall.EFBIG, syscall.ESTALE}, errno):
		return diskError{err, false}
	}
	return err
}

// diskError is an error with the marks ErrDisk and perhaps ErrNoSpace.
type diskError struct {
	error
	full bool
}

func (e diskError) Is(target error) bool { return target == ErrDisk || e.full && target == ErrNoSpace }

func (e diskError) Unwrap() error { return e.error }
