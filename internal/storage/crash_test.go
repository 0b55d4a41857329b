package storage_test

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"path/filepath"
	"syscall"
	"testing"

	"ndls/internal/storage"
	"ndls/internal/storage/storagetest"
	"ndls/internal/vfs"
	"ndls/internal/vfs/vfstest"
)

// TestMemoryDisk runs the contract of a store on a disk in memory.
func TestMemoryDisk(t *testing.T) {
	storagetest.Run(t, func(t *testing.T) storage.Store {
		dir := filepath.Join("/disks", t.Name())
		t.Cleanup(vfstest.NewMem(dir).Mount())
		return openLocal(t, filepath.Join(dir, "run"))
	})
}

func openLocal(t *testing.T, dir string) *storage.Local {
	t.Helper()
	l, err := storage.NewLocal(dir)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// TestCommittedSurvivesPowerFailure commits files in folders that are new, or that a
// process made which was stopped before it synced them: a power failure takes none.
func TestCommittedSurvivesPowerFailure(t *testing.T) {
	const disk = "/disks/power"
	for _, share := range []float64{0, 0.5} {
		m := vfstest.NewMem(disk)
		unmount := m.Mount()
		if _, err := vfs.MkdirAll(disk+"/a/left/behind", 0o755); err != nil {
			t.Fatal(err)
		}
		content := map[string][]byte{}
		names := []string{"top", "graph/edges/0", "graph/edges/1", "left/behind/0", "graph/nodes/deep/er/0", "top"}
		// A store that is there already, and one that is not.
		for _, dir := range []string{disk + "/a", disk + "/c/d/run"} {
			store := openLocal(t, dir)
			for i, name := range names {
				data := bytes.Repeat([]byte{byte(i + 1)}, 10_000*i)
				content[filepath.Join(dir, name)] = data
				storagetest.Write(t, store, name, data)
			}
			w, err := store.CreateNew(context.Background(), "journal/1")
			if err != nil {
				t.Fatal(err)
			}
			_, _ = w.Write([]byte("record"))
			if _, err := w.Commit(context.Background()); err != nil {
				t.Fatal(err)
			}
			content[filepath.Join(dir, "journal/1")] = []byte("record")
		}
		unmount()
		unmount = m.CrashClone(rand.New(rand.NewPCG(1, 2)), share).Mount()
		for path, want := range content {
			if got, err := vfs.ReadFile(path); err != nil || !bytes.Equal(got, want) {
				t.Errorf("share %v: %s: %d bytes, %v; want %d", share, path, len(got), err, len(want))
			}
		}
		unmount()
	}
}

// TestFaultsOfTheDisk fails each operation of the disk during a commit: the store says so,
// and holds the old bytes or the new ones.
func TestFaultsOfTheDisk(t *testing.T) {
	const disk = "/disks/faults"
	older, newer := []byte("older"), bytes.Repeat([]byte("newer"), 500_000)
	for _, errno := range []syscall.Errno{syscall.EIO, syscall.ENOSPC} {
		for _, dies := range []bool{false, true} {
			for at := 1; ; at++ {
				m := vfstest.NewMem(disk)
				unmount := m.Mount()
				storagetest.Write(t, openLocal(t, disk+"/run"), "graph/edges/0", older)
				unmount()

				faults := vfstest.NewFaults(m, vfstest.Plan{At: at, Errno: errno, Dies: dies})
				unmount = vfs.Mount(disk, faults)
				err := commit(disk+"/run", "graph/edges/0", newer)
				unmount()
				if !dies && err != nil && (!errors.Is(err, storage.ErrDisk) || errors.Is(err, storage.ErrNoSpace) != (errno == syscall.ENOSPC)) {
					t.Errorf("%s: %v", faults.Felt(), err)
				}
				after := m.Clone()
				if err == nil {
					after = m.CrashClone(rand.New(rand.NewPCG(1, uint64(at))), 0)
				}
				unmount = after.Mount()
				got := storagetest.Read(t, openLocal(t, disk+"/run"), "graph/edges/0")
				if replaced := bytes.Equal(got, newer); !replaced && (err == nil || !bytes.Equal(got, older)) {
					t.Errorf("%s: %v: the store holds %d bytes", faults.Felt(), err, len(got))
				}
				unmount()
				if faults.Felt() == "" {
					if err != nil || at < 10 {
						t.Fatalf("%v after %d operations", err, at-1)
					}
					break
				}
			}
		}
	}
}

func commit(dir, name string, data []byte) error {
	l, err := storage.NewLocal(dir)
	if err != nil {
		return err
	}
	w, err := l.Create(context.Background(), name)
	if err != nil {
		return err
	}
	defer w.Abort()
	if _, err := w.Write(data); err != nil {
		return err
	}
	_, err = w.Commit(context.Background())
	return err
}
