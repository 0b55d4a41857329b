package direct

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"ndls/internal/vfs"
	"ndls/internal/vfs/vfstest"
)

// openFiles is the number of files that this process has open below dir.
func openFiles(t *testing.T, dir string) (n int) {
	t.Helper()
	fds, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Skip(err)
	}
	for _, fd := range fds {
		if path, err := os.Readlink(filepath.Join("/proc/self/fd", fd.Name())); err == nil && filepath.Dir(path) == dir {
			n++
		}
	}
	return n
}

// TestScratchClosesWhatFails fails each operation of making a scratch file: no file stays
// open.
func TestScratchClosesWhatFails(t *testing.T) {
	dir := t.TempDir()
	for at := 1; ; at++ {
		faults := vfstest.NewFaults(vfs.OS{}, vfstest.Plan{At: at, Errno: syscall.EIO})
		unmount := vfs.Mount(dir, faults)
		s, err := NewScratch(dir)
		unmount()
		if faults.Felt() == "" {
			if err != nil || at < 4 {
				t.Fatalf("%v after %d operations", err, at-1)
			}
			_ = s.Close()
			return
		}
		if !errors.Is(err, vfs.ErrDisk) {
			t.Errorf("%s: %v", faults.Felt(), err)
		}
		if n := openFiles(t, dir); n > 0 {
			t.Errorf("%s: %d files stay open", faults.Felt(), n)
		}
	}
}

// TestWriterHandsErrorsOn fails each operation of writing a file: Finish says so, and
// tells a full disk from a broken one.
func TestWriterHandsErrorsOn(t *testing.T) {
	content := bytes.Repeat([]byte("content "), 3<<20/8)
	for _, errno := range []syscall.Errno{syscall.EIO, syscall.ENOSPC} {
		for at := 1; ; at++ {
			m := vfstest.NewMem("/disk")
			faults := vfstest.NewFaults(m, vfstest.Plan{At: at, Errno: errno})
			unmount := vfs.Mount("/disk", faults)
			err := writeAll("/disk/file", content)
			unmount()
			if faults.Felt() == "" {
				if err != nil || at < 5 {
					t.Fatalf("%v after %d operations", err, at-1)
				}
				break
			}
			if !errors.Is(err, vfs.ErrDisk) || errors.Is(err, vfs.ErrNoSpace) != (errno == syscall.ENOSPC) {
				t.Errorf("%s: %v", faults.Felt(), err)
			}
		}
	}
}

func writeAll(path string, content []byte) error {
	w, err := Create(path)
	if err != nil {
		return err
	}
	defer w.Abort()
	if _, err := w.Write(content); err != nil {
		return err
	}
	return w.Finish()
}

// TestQueueReadsOtherFileSystems reads from one that has no descriptors for the kernel.
func TestQueueReadsOtherFileSystems(t *testing.T) {
	defer vfstest.NewMem("/disk").Mount()()
	content := bytes.Repeat([]byte("0123456789abcdef"), 4*Align/16)
	if err := writeAll("/disk/file", content); err != nil {
		t.Fatal(err)
	}
	f, err := Open("/disk/file")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	q := NewQueue()
	defer q.Close()
	p := AlignedBytes(2 * Align)
	q.Start(0, f, p, Align)
	if n, err := q.Wait(0); n != len(p) || err != nil || !bytes.Equal(p, content[Align:3*Align]) {
		t.Errorf("%d bytes, %v", n, err)
	}
}
