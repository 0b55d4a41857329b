package extsort

import (
	"bytes"
	"errors"
	"os"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"ndls/internal/storage"
	"ndls/internal/vfs"
)

// blocks returns the disk usage of a file.
func blocks(t *testing.T, f vfs.File) int64 {
	t.Helper()
	st, err := f.Stat()
	must(t, err)
	return st.Sys().(*syscall.Stat_t).Blocks * 512
}

// TestSpilledShrinks drops what was read, and reads the rest.
func TestSpilledShrinks(t *testing.T) {
	s, err := NewScratch(scratchFolder(t))
	must(t, err)
	defer func() { must(t, s.Remove()) }()
	out, err := s.Create()
	must(t, err)
	data := bytes.Repeat([]byte("scratch."), 3*dropStep/8)
	must(t, out.Write(data))
	in, err := out.Finish()
	must(t, err)
	defer in.Close()
	if got := blocks(t, in.holes); got < int64(len(data)) {
		t.Fatalf("%d bytes on disk, %d written", got, len(data))
	}
	in.Drop(dropStep - 1)
	if got := blocks(t, in.holes); got < int64(len(data)) {
		t.Errorf("%d bytes on disk after a small step", got)
	}
	in.Drop(2*dropStep + 100)
	if errors.Is(in.holes.Punch(0, 4096), unix.EOPNOTSUPP) {
		t.Skip("the file system of the temporary folder makes no holes")
	}
	if got := blocks(t, in.holes); got > int64(len(data))-2*dropStep+64<<10 {
		t.Errorf("%d bytes on disk after two of three thirds were dropped", got)
	}
	rest := make([]byte, dropStep-4096)
	if _, err := in.ReadAt(rest, 2*dropStep+4096); err != nil || !bytes.Equal(rest, data[:len(rest)]) {
		t.Errorf("what was not dropped has changed: %v", err)
	}
}

// TestSpillErrorSaysWhatToDo checks that the error of a full disk names its kind and the way out.
func TestSpillErrorSaysWhatToDo(t *testing.T) {
	s, err := NewScratch(scratchFolder(t))
	must(t, err)
	defer func() { must(t, s.Remove()) }()
	err = s.failed(&os.PathError{Op: "write", Path: "x", Err: syscall.ENOSPC})
	if !errors.Is(err, storage.ErrDisk) || !errors.Is(err, syscall.ENOSPC) || !bytes.Contains([]byte(err.Error()), []byte("choose another folder")) {
		t.Error(err)
	}
}
