package vfs

import (
	"errors"
	"fmt"
	"io/fs"
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

// Unsupported reports whether an error of a call may mean that the file system does not know
// the call, or does not allow it to anyone: those of FUSE, of networks and of FAT use all of these.
func Unsupported(err error) bool {
	var errno syscall.Errno
	return errors.As(err, &errno) && slices.Contains(unsupported, errno)
}

var unsupported = []syscall.Errno{
	syscall.EPERM, syscall.EACCES, syscall.EINVAL, syscall.ENOSYS, syscall.EOPNOTSUPP, syscall.ENOTTY, syscall.EXDEV, syscall.EMLINK,
	syscall.EBADF, syscall.ENOLCK, syscall.EISDIR,
}

// Remedy says what a user can do about an error of a call on a file in the folder dir.
func Remedy(err error, dir string) string {
	var errno syscall.Errno
	switch errors.As(err, &errno); {
	case errors.Is(err, ErrNoSpace):
		return fmt.Sprintf("free space in %s or choose another folder, then run again", dir)
	case errno == syscall.EFBIG:
		return fmt.Sprintf("the file system of %s, or the limit that ulimit -f shows, takes no larger file (FAT: below 4 GiB): choose a folder on another one", dir)
	case errno == syscall.EROFS || errors.Is(err, fs.ErrPermission):
		return fmt.Sprintf("make %s writable or choose another folder", dir)
	case errors.Is(err, ErrDisk):
		return fmt.Sprintf("see whether the disk of %s works, or choose another folder, then run again", dir)
	case Unsupported(err):
		return fmt.Sprintf("the file system of %s does not know this call: choose a folder on another one", dir)
	}
	return "run again, or choose another folder than " + dir
}

// diskError is an error with the marks ErrDisk and perhaps ErrNoSpace.
type diskError struct {
	error
	full bool
}

func (e diskError) Is(target error) bool { return target == ErrDisk || e.full && target == ErrNoSpace }

func (e diskError) Unwrap() error { return e.error }
