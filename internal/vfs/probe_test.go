package vfs_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"ndls/internal/vfs"
	"ndls/internal/vfs/vfstest"
)

// kinds are file systems by what they lack, and how names that must be free are given there.
var kinds = []struct {
	name                         string
	lacks                        vfstest.Lacks
	noDirect, noSync, noLock, by bool // by: by markers
}{
	{name: "all"},
	{name: "FAT", lacks: vfstest.Lacks{Link: syscall.EPERM}},
	{name: "SMB", lacks: vfstest.Lacks{Link: syscall.EOPNOTSUPP, SyncFolder: syscall.EINVAL, RemoveOpen: syscall.EBUSY}, noSync: true},
	{name: "links of one name", lacks: vfstest.Lacks{Link: syscall.EMLINK, SyncFolder: syscall.EOPNOTSUPP}, noSync: true},
	{name: "FAT by FUSE", lacks: vfstest.Lacks{Link: syscall.EPERM, RenameNew: syscall.EINVAL}, by: true},
	{name: "flags are ignored", lacks: vfstest.Lacks{Link: syscall.ENOSYS, Replaces: true}, by: true},
	{name: "branches", lacks: vfstest.Lacks{Direct: syscall.EINVAL, RenameNew: syscall.EINVAL}, noDirect: true},
	{name: "large blocks", lacks: vfstest.Lacks{DirectAlign: 64 << 10}, noDirect: true},
	{name: "no direct I/O", lacks: vfstest.Lacks{OpenDirect: syscall.EINVAL}, noDirect: true},
	{name: "no truncate", lacks: vfstest.Lacks{Truncate: syscall.ENOSYS}, noDirect: true},
	{name: "NFS without locks", lacks: vfstest.Lacks{Lock: syscall.ENOLCK, Statfs: syscall.ENOSYS}, noLock: true},
	{name: "locks of files alone", lacks: vfstest.Lacks{Lock: syscall.EBADF}, noLock: true},
}

const kindDisk = "/disks/kind"

// on mounts a new disk of a kind, and returns what is below.
func on(t *testing.T, lacks vfstest.Lacks) *vfstest.Mem {
	t.Helper()
	m := vfstest.NewMem(kindDisk)
	t.Cleanup(vfs.Mount(kindDisk, vfstest.Lacking(m, lacks)))
	return m
}

func names(t *testing.T, dir string) (list []string) {
	t.Helper()
	entries, err := vfs.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		list = append(list, e.Name())
	}
	return list
}

func TestProbe(t *testing.T) {
	for _, k := range kinds {
		t.Run(k.name, func(t *testing.T) {
			on(t, k.lacks)
			a, err := vfs.Probe(kindDisk + "/run.json")
			if err != nil {
				t.Fatal(err)
			}
			if got := [4]bool{a.Direct != nil, a.Sync != nil, a.Lock != nil, a.Markers}; got != [4]bool{k.noDirect, k.noSync, k.noLock, k.by} {
				t.Errorf("direct %v, sync %v, lock %v, markers %v", a.Direct, a.Sync, a.Lock, a.Markers)
			}
			if left := names(t, kindDisk); len(left) > 0 {
				t.Errorf("%v is left", left)
			}
			if err := vfs.SyncDir(kindDisk); err != nil {
				t.Errorf("a folder that cannot be synced: %v", err)
			}
			if f, err := vfs.OpenFile(kindDisk+"/x", os.O_CREATE|os.O_RDWR|syscall.O_DIRECT, 0o666); k.noDirect != errors.Is(err, syscall.EINVAL) {
				t.Errorf("opened for direct I/O: %v", err)
			} else if err == nil {
				_ = f.Close()
			}
		})
	}
}

// TestProbeNamesTheCall that a run cannot do without.
func TestProbeNamesTheCall(t *testing.T) {
	for _, errno := range []syscall.Errno{syscall.EPERM, syscall.ENOSYS, syscall.EOPNOTSUPP} {
		on(t, vfstest.Lacks{Link: syscall.EPERM, Rename: errno})
		_, err := vfs.Probe(kindDisk + "/run.json")
		var missing *vfs.MissingCall
		if !errors.As(err, &missing) || missing.Call != "rename" || missing.Dir != kindDisk || !errors.Is(err, errno) {
			t.Errorf("%v: %v", errno, err)
		}
		if left := names(t, kindDisk); len(left) > 0 {
			t.Errorf("%v is left", left)
		}
	}
}

// TestProbeIsInterrupted kills the process before each operation: what stays has names of attempts.
// An error of the disk is none of the file system's.
func TestProbeIsInterrupted(t *testing.T) {
	attempt := regexp.MustCompile(`^run\.json\.[0-9a-f]{16}\.tmp$`)
	for _, lacks := range []vfstest.Lacks{{}, {Link: syscall.EPERM}, {Link: syscall.EPERM, Replaces: true}} {
		for _, plan := range []vfstest.Plan{{Dies: true}, {Errno: syscall.EIO}} {
			for at := 1; ; at++ {
				m := vfstest.NewMem(kindDisk)
				plan.At = at
				faults := vfstest.NewFaults(vfstest.Lacking(m, lacks), plan)
				unmount := vfs.Mount(kindDisk, faults)
				_, err := vfs.Probe(kindDisk + "/run.json")
				unmount()
				if faults.Felt() == "" {
					if err != nil || at < 15 {
						t.Fatalf("%v after %d operations", err, at-1)
					}
					break
				}
				if plan.Errno != 0 && err != nil && !errors.Is(err, vfs.ErrDisk) {
					t.Errorf("%s: %v", faults.Felt(), err)
				}
				defer vfs.Mount(kindDisk, m)()
				for _, name := range names(t, kindDisk) {
					if !attempt.MatchString(name) {
						t.Errorf("%s: %s is left", faults.Felt(), name)
					}
				}
			}
		}
	}
}

// TestPublishNew has many attempts at each name at the same time, on file systems of all kinds: one
// becomes the file, the others hear that it exists. A probe before them makes no difference.
func TestPublishNew(t *testing.T) {
	for _, k := range kinds {
		for _, probed := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, probed %v", k.name, probed), func(t *testing.T) {
				on(t, k.lacks)
				if probed {
					if _, err := vfs.Probe(kindDisk + "/run.json"); err != nil {
						t.Fatal(err)
					}
				}
				for round := range 20 {
					path := fmt.Sprintf("%s/%d.json", kindDisk, round)
					var all sync.WaitGroup
					var errs [8]error
					for i := range errs {
						attempt := fmt.Sprintf("%s.%016x.tmp", path, i+1)
						if err := vfs.WriteFile(attempt, []byte{byte(i)}, 0o666); err != nil {
							t.Fatal(err)
						}
						all.Go(func() { errs[i] = vfs.PublishNew(attempt, path) })
					}
					all.Wait()
					text, err := vfs.ReadFile(path)
					if err != nil {
						t.Fatal(err)
					}
					for i, err := range errs {
						if i == int(text[0]) && err != nil || i != int(text[0]) && !errors.Is(err, fs.ErrExist) {
							t.Errorf("round %d: the file is of attempt %d, attempt %d got %v", round, text[0], i, err)
						}
					}
				}
				for _, name := range names(t, kindDisk) {
					if strings.Contains(name, ".0000000000000000.") {
						t.Errorf("the marker %s is left", name)
					}
				}
			})
		}
	}
}

// TestMarkerOfADeadProcess holds the next one up for a while.
func TestMarkerOfADeadProcess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		on(t, vfstest.Lacks{Link: syscall.EPERM, RenameNew: syscall.EINVAL})
		path := filepath.Join(kindDisk, "1.json")
		for _, name := range []string{path + ".0000000000000000.tmp", path + ".0123456789abcdef.tmp"} {
			if err := vfs.WriteFile(name, nil, 0o666); err != nil {
				t.Fatal(err)
			}
		}
		begun := time.Now()
		if err := vfs.PublishNew(path+".0123456789abcdef.tmp", path); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(begun); took < 9*time.Second || took > 20*time.Second {
			t.Errorf("the marker held it up for %v", took)
		}
		if got := names(t, kindDisk); len(got) != 1 || got[0] != "1.json" {
			t.Errorf("left are %v", got)
		}
	})
}

// TestNameless removes files that are open, before or after they are closed.
func TestNameless(t *testing.T) {
	for _, errno := range []syscall.Errno{0, syscall.EBUSY, syscall.ETXTBSY, syscall.EACCES} {
		on(t, vfstest.Lacks{RemoveOpen: errno})
		f, err := vfs.CreateTemp(kindDisk, "scratch-*.tmp")
		if err == nil {
			f, err = vfs.Nameless(f)
		}
		if err != nil {
			t.Fatalf("%v: %v", errno, err)
		}
		if _, err := f.WriteAt([]byte("x"), 0); err != nil {
			t.Error(err)
		}
		if err := f.Close(); err != nil {
			t.Error(err)
		}
		if left := names(t, kindDisk); len(left) > 0 {
			t.Errorf("%v: %v is left", errno, left)
		}
	}
}

// TestRemedy says what to do in other words for other reasons.
func TestRemedy(t *testing.T) {
	for errno, want := range map[syscall.Errno]string{
		syscall.ENOSPC: "free space in /d", syscall.EFBIG: "takes no larger file", syscall.EROFS: "make /d writable", syscall.EACCES: "make /d writable",
		syscall.EIO: "whether the disk of /d works", syscall.EINVAL: "does not know this call", syscall.EMFILE: "run again",
	} {
		if got := vfs.Remedy(vfs.Mark(&fs.PathError{Op: "write", Path: "/d/x", Err: errno}), "/d"); !strings.Contains(got, want) {
			t.Errorf("%v: %s", errno, got)
		}
	}
}
