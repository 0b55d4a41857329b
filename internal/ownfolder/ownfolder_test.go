package ownfolder

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"ndls/internal/vfs/vfstest"
)

func ofHost(name string) bool { return strings.HasPrefix(name, "host-") }

func list(t *testing.T, dir string) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// TestFoldersOfTheDeadGo: the next process removes what killed ones have left, and
// nothing else.
func TestFoldersOfTheDeadGo(t *testing.T) {
	base := filepath.Join(t.TempDir(), "scratch")
	live, release, err := Make(base, "host-1-live", ofHost)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"host-2-dead/cache", "other-3-there", "notes"} {
		if err := os.MkdirAll(filepath.Join(base, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(base, "host-file"), []byte("x"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(base, "host-2-dead", "spill"), []byte("x"), 0o644); err != nil {
		t.Fatal(err)
	}
	_, releaseNext, err := Make(base, "host-4-next", ofHost)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := list(t, base), []string{"host-1-live", "host-4-next", "host-file", "notes", "other-3-there"}; !slices.Equal(got, want) {
		t.Errorf("folders %v, want %v", got, want)
	}
	release()
	releaseNext()
	if _, err := os.Stat(live); !os.IsNotExist(err) {
		t.Errorf("a folder that was given back is there: %v", err)
	}
	if _, _, err := Make(base, "x", ofHost); err == nil {
		t.Error("a name that no sweep would find is taken")
	}
}

// TestManyStartAtOnce: no process removes the folder of another that is just starting.
func TestManyStartAtOnce(t *testing.T) {
	base := t.TempDir()
	var all sync.WaitGroup
	for i := range 16 {
		all.Go(func() {
			for range 20 {
				dir, release, err := Make(base, fmt.Sprint("host-", i), ofHost)
				if err != nil {
					t.Error(err)
					return
				}
				if err := os.WriteFile(filepath.Join(dir, "x"), nil, 0o644); err != nil {
					t.Error(err)
				}
				release()
			}
		})
	}
	all.Wait()
	if got := list(t, base); len(got) > 0 {
		t.Errorf("left: %v", got)
	}
}

// TestOnAnyFileSystem: a folder is recognised as the same by whatever holds it.
func TestOnAnyFileSystem(t *testing.T) {
	const disk = "/disks/own"
	defer vfstest.NewMem(disk).Mount()()
	made := make(chan error, 1)
	go func() {
		_, release, err := Make(disk+"/scratch", "host-1-live", ofHost)
		if err == nil {
			release()
		}
		made <- err
	}()
	select {
	case err := <-made:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(20 * time.Second):
		t.Error("making a folder on a disk in memory does not end")
	}
}
