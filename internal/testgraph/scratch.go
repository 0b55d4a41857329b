package testgraph

import (
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

// inMemory is a folder that lies in memory, on systems that have one, and room the least number of
// its free bytes.
const (
	inMemory = "/dev/shm"
	room     = 1 << 30
)

// Scratch returns a folder for the scratch files of an engine under test, which goes when
// the test ends. It lies in memory where it can: engines make thousands of small files,
// and how busy a disk is would decide how long the test takes.
func Scratch(t testing.TB) string {
	var free unix.Statfs_t
	if unix.Statfs(inMemory, &free) != nil || int64(free.Bavail)*free.Bsize < room {
		return t.TempDir()
	}
	dir, err := os.MkdirTemp(inMemory, "ndls-test-")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return dir
}
