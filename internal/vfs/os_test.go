package vfs

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// TestSpace has what file systems state that know no end, or have less than nothing.
func TestSpace(t *testing.T) {
	for _, c := range []struct {
		name        string
		size        int64
		total, free uint64
		want        Space
	}{
		{"ext4", 4096, 1000, 100, Space{4096000, 409600}},
		{"s3fs", 16 << 20, 1<<40 - 1, 1<<40 - 1, Space{MaxSpace, MaxSpace}},
		{"more bytes than 2^64", 1 << 20, 1<<64 - 1, 1<<63 - 1, Space{MaxSpace, MaxSpace}},
		{"no blocks", 4096, 0, 0, Space{}},
		{"the reserve of NFS is in use", 4096, 1000, 1<<64 - 10, Space{4096000, 0}},
		{"no size of a block", 0, 1000, 100, Space{1000, 100}},
	} {
		if got := spaceOf(&unix.Statfs_t{Frsize: c.size, Bsize: 1, Blocks: c.total, Bavail: c.free}); got != c.want {
			t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
		}
	}
}

// TestUmask has the mode of what is made less the umask, so that a group can share a run directory.
func TestUmask(t *testing.T) {
	dir := t.TempDir()
	defer syscall.Umask(syscall.Umask(0o002))
	if _, err := MkdirAll(filepath.Join(dir, "a", "b"), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := WriteFile(filepath.Join(dir, "a", "f"), nil, 0o666); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]os.FileMode{"a": 0o775, "a/b": 0o775, "a/f": 0o664} {
		if info, err := os.Stat(filepath.Join(dir, name)); err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: %v, %v, want %o", name, info.Mode(), err, want)
		}
	}
}
