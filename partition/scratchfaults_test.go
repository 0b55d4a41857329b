package partition

import (
	"context"
	"errors"
	"slices"
	"syscall"
	"testing"

	"ndls/internal/storage"
	"ndls/internal/storage/storagetest"
	"ndls/internal/vfs"
	"ndls/internal/vfs/vfstest"
)

// TestEveryScratchOperation fails each operation on scratch files once: the run says that
// the disk failed, or is right all the same; memory and disk come back.
func TestEveryScratchOperation(t *testing.T) {
	t.Run("keys", func(t *testing.T) { everyScratchOperation(t, randomGraph(2000, 60_000, 20), 300<<10) })
	t.Run("weights", func(t *testing.T) { everyScratchOperation(t, weighted(2000, 60_000), 500<<10) })
}

func everyScratchOperation(t *testing.T, f *fake, free int64) {
	const disk = "/disks/partition"
	ctx := context.Background()
	try := func(plan vfstest.Plan) (*vfstest.Faults, storage.Store, error) {
		m := vfstest.NewMem(disk)
		faults := vfstest.NewFaults(m, plan)
		defer vfs.Mount(disk, faults)()
		store, b := storagetest.NewMem(), budget(t, free)
		_, err := Run(ctx, f, openCatalog(t, store), Options{Budget: b, Threads: 2, Scratch: disk, Features: true})
		if b.Free() != free {
			t.Errorf("%s: %d bytes of memory are not given back", faults.Felt(), free-b.Free())
		}
		left, readErr := m.ReadDir(disk)
		if readErr != nil || len(left) > 0 && !errors.Is(err, vfs.ErrDisk) {
			t.Errorf("%s: %d folders stay on the disk, %v", faults.Felt(), len(left), readErr)
		}
		return faults, store, err
	}
	clean, store, err := try(vfstest.Plan{})
	must(t, err)
	want := openCatalog(t, store).Entries("")
	if clean.Kinds()[vfstest.Write] < 10 {
		t.Fatalf("nothing goes to scratch files: %v", clean.Kinds())
	}
	t.Logf("%d operations %v", clean.Ops(), clean.Kinds())
	step := 1
	if testing.Short() {
		step = 7
	}
	failed := 0
	for at := 1; at <= clean.Ops(); at += step {
		plan := vfstest.Plan{At: at, Errno: syscall.EIO}
		if at%2 == 0 {
			plan.Errno = syscall.ENOSPC
		}
		faults, store, err := try(plan)
		switch {
		case err == nil:
			if !slices.Equal(openCatalog(t, store).Entries(""), want) {
				t.Errorf("%s: other results", faults.Felt())
			}
		case !errors.Is(err, storage.ErrDisk) || errors.Is(err, storage.ErrNoSpace) != (plan.Errno == syscall.ENOSPC):
			t.Errorf("%s: %v", faults.Felt(), err)
		default:
			failed++
		}
	}
	if failed < clean.Ops()/step/2 {
		t.Errorf("only %d of %d faults were felt", failed, clean.Ops()/step)
	}
}
