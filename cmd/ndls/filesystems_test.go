package main

import (
	"io/fs"
	"maps"
	"strings"
	"syscall"
	"testing"

	"ndls"
	"ndls/internal/vfs"
	"ndls/internal/vfs/vfstest"
)

// TestKindsOfFileSystems does a whole run on file systems that lack calls as those that people have do. It has the same
// bytes as on one that lacks nothing, or ends before anything is made. Each says what it does not promise, and
// nothing else.
func TestKindsOfFileSystems(t *testing.T) {
	whole(t)
	const line = "run --run " + faultyDisk + "/run --memory 256MiB --threads 1 --runs 1 --epochs 1 --hidden 8 --probes 16" + tinyGraph
	const coordinators, power, locks = "do not start two coordinators", "cannot sync folders", "has no locks"
	var want map[string]string
	for _, k := range []struct {
		name  string
		lacks vfstest.Lacks
		says  []string
	}{
		{"ext4", vfstest.Lacks{}, nil}, // the first: its bytes equal those of all
		{"FAT", vfstest.Lacks{Link: syscall.EPERM}, nil},
		{"FAT by FUSE", vfstest.Lacks{Link: syscall.EPERM, RenameNew: syscall.EINVAL, Statfs: syscall.ENOSYS}, []string{coordinators}},
		{"flags of renames are ignored", vfstest.Lacks{Link: syscall.ENOSYS, Replaces: true}, []string{coordinators}},
		{"CIFS", vfstest.Lacks{Link: syscall.EOPNOTSUPP, SyncFolder: syscall.EINVAL, RemoveOpen: syscall.EBUSY}, []string{power}},
		{"CIFS that says EACCES", vfstest.Lacks{Link: syscall.EOPNOTSUPP, SyncFolder: syscall.EOPNOTSUPP, RemoveOpen: syscall.EACCES}, []string{power}},
		{"NFS", vfstest.Lacks{Lock: syscall.ENOLCK, RenameNew: syscall.EINVAL, RemoveOpen: syscall.EBUSY}, []string{locks}},
		{"NFS, locks of files alone", vfstest.Lacks{Lock: syscall.EBADF}, []string{locks}},
		{"mergerfs", vfstest.Lacks{Direct: syscall.EINVAL, RenameNew: syscall.EINVAL}, nil},
		{"blocks of 64 KiB", vfstest.Lacks{DirectAlign: 64 << 10}, nil},
		{"no direct I/O", vfstest.Lacks{OpenDirect: syscall.EINVAL}, nil},
		{"few calls", vfstest.Lacks{
			OpenDirect: syscall.EINVAL, Truncate: syscall.EPERM, WriteOut: syscall.ENOSYS, Punch: syscall.EOPNOTSUPP,
			Link: syscall.EPERM, RenameNew: syscall.ENOSYS, Lock: syscall.ENOSYS, SyncFolder: syscall.ENOSYS, RemoveOpen: syscall.EPERM,
		}, []string{coordinators, power, locks}},
		{"s3fs", vfstest.Lacks{
			Link: syscall.EPERM, RenameNew: syscall.EINVAL, OpenDirect: syscall.EINVAL, Space: &vfs.Space{Total: vfs.MaxSpace, Free: vfs.MaxSpace},
		}, []string{coordinators}},
		{"size unknown", vfstest.Lacks{Space: &vfs.Space{}}, nil},
	} {
		t.Run(k.name, func(t *testing.T) {
			mem := vfstest.NewMem(faultyDisk)
			disk, at := vfstest.Lacking(mem, k.lacks), drive(faultyDisk+"-"+strings.ReplaceAll(k.name, " ", "-"))
			r := at.in(disk, line)
			if r.code != 0 {
				t.Fatalf("status %d: %s", r.code, r.stderr)
			}
			if want == nil {
				want = at.committed(t, disk)
			}
			if got := at.committed(t, disk); !maps.Equal(got, want) {
				t.Errorf("other files are committed: %v, want %v", got, want)
			}
			for _, text := range []string{coordinators, power, locks} {
				said, expected := strings.Count(r.stderr, text), 0
				for _, s := range k.says {
					if s == text {
						expected = 1
					}
				}
				if said != expected {
					t.Errorf("it says %q %d times, want %d:\n%s", text, said, expected, r.stderr)
				}
			}
			if warned := strings.Count(r.stderr, `msg="the file system `); warned != len(k.says) {
				t.Errorf("%d warnings:\n%s", warned, r.stderr)
			}
			defer at.mount(disk)()
			_ = vfs.WalkDir(string(at), func(path string, _ fs.DirEntry, err error) error {
				if err != nil || strings.HasSuffix(path, ".tmp") || strings.HasSuffix(path, ".spill") {
					t.Errorf("%s is left, %v", path, err)
				}
				return nil
			})
			if again := at.in(disk, line); again.code != 0 {
				t.Errorf("the same command: status %d: %s", again.code, again.stderr)
			}
		})
	}
	for _, k := range []struct {
		name   string
		lacks  vfstest.Lacks
		status int
		says   string
		left   bool
	}{
		{"a bucket that is mounted", vfstest.Lacks{Link: syscall.EPERM, RenameNew: syscall.EPERM, Rename: syscall.EPERM}, ndls.ExitUsage, "refuses rename (operation not permitted): if it shows a bucket, give that by its address, --run s3://bucket/prefix", false},
		{"renames that are not there", vfstest.Lacks{Rename: syscall.ENOSYS}, ndls.ExitUsage, "refuses rename (function not implemented)", false},
		{"small files alone", vfstest.Lacks{Largest: 16 << 10}, ndls.ExitError, "takes no larger file (FAT: below 4 GiB): choose a folder on another one", true},
	} {
		t.Run(k.name, func(t *testing.T) {
			disk, at := vfstest.Lacking(vfstest.NewMem(faultyDisk), k.lacks), drive(faultyDisk+"-"+strings.ReplaceAll(k.name, " ", "-"))
			if r := at.in(disk, line); r.code != k.status || !strings.Contains(r.stderr, k.says) {
				t.Errorf("status %d: %s", r.code, r.stderr)
			}
			defer at.mount(disk)()
			if _, err := vfs.Stat(string(at) + "/run"); (err == nil) != k.left {
				t.Errorf("the run directory: %v", err)
			}
		})
	}
}

// TestReadOnlyRunDirectory prints what is complete in a run directory that cannot be written to, and
// says so where something would have to be done.
func TestReadOnlyRunDirectory(t *testing.T) {
	disk, at := vfstest.NewMem(faultyDisk), drive(faultyDisk+"-read-only")
	const degrees = "degrees --run " + faultyDisk + "/run --memory 256MiB"
	inPeace(t, vfstest.Moved(disk, faultyDisk, faultyDisk), tinyRun+tinyGraph)
	inPeace(t, vfstest.Moved(disk, faultyDisk, faultyDisk), degrees)
	for _, errno := range []syscall.Errno{syscall.EROFS, syscall.EACCES} {
		before := disk.Clone()
		closed := vfstest.Lacking(disk, vfstest.Lacks{Writes: errno})
		for _, c := range []struct {
			line   string
			status int
		}{
			{tinyRun + tinyGraph, 0},
			{degrees, 0},
			{"smooth --run " + faultyDisk + "/run --memory 256MiB", 0},
			{"inspect --run " + faultyDisk + "/run", 0},
			{"verify --run " + faultyDisk + "/run", 0},
			{"gc --run " + faultyDisk + "/run", 0},
			{"status --run " + faultyDisk + "/run", 0},
			{"spectrum --run " + faultyDisk + "/run --memory 256MiB", ndls.ExitError},
			{degrees + " --resume=false", ndls.ExitError},
		} {
			open, r := at.in(before.Clone(), c.line), at.in(closed, c.line)
			if r.code != c.status {
				t.Errorf("%v, ndls %s: status %d: %s", errno, c.line, r.code, r.stderr)
			}
			if c.status == 0 && strings.HasPrefix(c.line, "degrees") && r.stdout != open.stdout {
				t.Errorf("%v, ndls %s prints other text than where it may write:\n%s", errno, c.line, r.stdout)
			}
			if c.status != 0 && !strings.Contains(r.stderr, "cannot be written to") {
				t.Errorf("%v, ndls %s: %s", errno, c.line, r.stderr)
			}
		}
	}
}
