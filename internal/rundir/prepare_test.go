package rundir

import (
	"math/rand/v2"
	"os"
	"testing"

	"ndls/internal/vfs"
	"ndls/internal/vfs/vfstest"
)

// TestPrepareMakesListsDurable names a file as a process does that dies before it has synced the folder. After Prepare the name outlives a
// power failure.
func TestPrepareMakesListsDurable(t *testing.T) {
	const disk, name = "/disks/run", "/disks/run/catalog/0000000001.json"
	for _, prepares := range []bool{false, true} {
		m := vfstest.NewMem(disk)
		unmount := vfs.Mount(disk, m)
		check := func(err error) {
			if t.Helper(); err != nil {
				t.Fatal(err)
			}
		}
		_, err := vfs.MkdirAll("/disks/run/catalog", 0o777)
		check(err)
		check(vfs.SyncDir(disk))
		f, err := vfs.OpenFile(name, os.O_WRONLY|os.O_CREATE, 0o666)
		check(err)
		check(f.Sync())
		check(f.Close())
		if prepares {
			check(Prepare(disk, "", func(text string, args ...any) { t.Errorf(text, args...) }))
		}
		unmount()
		unmount = vfs.Mount(disk, m.CrashClone(rand.New(rand.NewPCG(1, 2)), 0))
		if _, err := vfs.Stat(name); (err == nil) != prepares {
			t.Errorf("prepared %v: %v", prepares, err)
		}
		unmount()
	}
}
