package vfs_test

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"ndls/internal/vfs"
	"ndls/internal/vfs/vfstest"
)

// TestMemoryIsLikeADisk does the same random operations in a folder of the operating
// system and in memory, there also under another name: the same results, the same errors.
func TestMemoryIsLikeADisk(t *testing.T) {
	const memory = "/disks/like"
	for name, disk := range map[string]vfs.FS{
		"in its place": vfstest.NewMem(memory),
		"moved":        vfstest.Moved(vfstest.NewMem("/disks/hidden"), "/disks/hidden", memory),
	} {
		t.Run(name, func(t *testing.T) {
			defer vfs.Mount(memory, disk)()
			isLikeADisk(t, memory)
		})
	}
}

func isLikeADisk(t *testing.T, memory string) {
	on := t.TempDir()
	r := rand.New(rand.NewPCG(1, 2))
	names := []string{"a", "b", "c", "a/x", "a/y", "b/x", "a/x/deep", "none/x"}
	for step := range 4000 {
		op, from, to, n := r.IntN(9), names[r.IntN(len(names))], names[r.IntN(len(names))], r.IntN(9000)
		got := operate(filepath.Join(memory, from), filepath.Join(memory, to), op, n)
		want := operate(filepath.Join(on, from), filepath.Join(on, to), op, n)
		if got != want {
			t.Fatalf("step %d: operation %d of %s, %s: %s; the operating system: %s", step, op, from, to, got, want)
		}
		if got, want := tree(t, memory), tree(t, on); got != want {
			t.Fatalf("step %d: operation %d of %s, %s leaves\n%s\nthe operating system\n%s", step, op, from, to, got, want)
		}
	}
}

// operate does an operation and says how it went.
func operate(from, to string, op, n int) string {
	data := bytes.Repeat([]byte{byte(n)}, n)
	change := func(flag int, do func(f vfs.File) error) error {
		f, err := vfs.OpenFile(from, flag, 0o644)
		if err != nil {
			return err
		}
		return errors.Join(do(f), f.Close())
	}
	var err error
	switch op {
	case 0:
		err = vfs.Mkdir(from, 0o755)
	case 1:
		err = vfs.WriteFile(from, data, 0o644)
	case 2:
		err = change(os.O_RDWR, func(f vfs.File) error { _, err := f.WriteAt(data, int64(n/2)); return err })
	case 3:
		err = change(os.O_WRONLY, func(f vfs.File) error { return f.Truncate(int64(n)) })
	case 4:
		if a, err := vfs.Stat(from); err == nil && a.IsDir() {
			return "folders are not renamed here"
		}
		err = vfs.Rename(from, to)
	case 5:
		if a, err := vfs.Stat(from); err == nil && a.IsDir() {
			return "folders have one name"
		}
		err = vfs.Link(from, to)
	case 6:
		err = vfs.Remove(from)
	case 7:
		err = vfs.RemoveAll(from)
	case 8:
		_, err = vfs.MkdirAll(from, 0o755)
	}
	for _, known := range []error{fs.ErrNotExist, fs.ErrExist, syscall.ENOTDIR, syscall.EISDIR} {
		if errors.Is(err, known) {
			return known.Error()
		}
	}
	return fmt.Sprint(err != nil)
}

// tree returns the content of a folder.
func tree(t *testing.T, root string) string {
	t.Helper()
	var lines []string
	err := vfs.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			lines = append(lines, strings.TrimPrefix(path, root)+"/")
			return err
		}
		data, err := vfs.ReadFile(path)
		lines = append(lines, fmt.Sprintf("%s %d %x", strings.TrimPrefix(path, root), len(data), data[:min(len(data), 9)]))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(lines, "\n")
}

// TestPowerFailure keeps what was synced, and nothing that was not.
func TestPowerFailure(t *testing.T) {
	const disk = "/disks/failure"
	m := vfstest.NewMem(disk)
	unmount := m.Mount()
	file := func(name, text string, sync bool) {
		f, err := vfs.OpenFile(disk+"/"+name, os.O_WRONLY|os.O_CREATE, 0o644)
		if err == nil {
			_, err = f.WriteAt([]byte(text), 0)
		}
		if err == nil && sync {
			err = f.Sync()
		}
		if err = errors.Join(err, f.Close()); err != nil {
			t.Fatal(err)
		}
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	file("synced", "old", true)
	file("bytes only", "text", false)
	file("removed", "text", true)
	must(vfs.Mkdir(disk+"/folder", 0o755))
	must(vfs.SyncDir(disk))
	file("synced", "new", false)
	file("name only", "text", true)
	must(vfs.Remove(disk + "/removed"))
	file("folder/lost", "text", true)
	must(vfs.Rename(disk+"/synced", disk+"/renamed"))
	unmount()
	for _, c := range []struct {
		share float64
		want  []string
	}{
		{0, []string{"/", "/bytes only 0 ", "/folder/", "/removed 4 74657874", "/synced 3 6f6c64"}},
		{1, []string{"/", "/bytes only 4 74657874", "/folder/", "/folder/lost 4 74657874", "/name only 4 74657874", "/renamed 3 6e6577"}},
	} {
		unmount := m.CrashClone(rand.New(rand.NewPCG(1, 2)), c.share).Mount()
		if got := strings.Split(tree(t, disk), "\n"); !slices.Equal(got, c.want) {
			t.Errorf("share %v: %q, want %q", c.share, got, c.want)
		}
		unmount()
	}
}

// TestMarks: what tells of the disk is marked, and the text stays.
func TestMarks(t *testing.T) {
	for _, c := range []struct {
		errno      syscall.Errno
		disk, full bool
	}{
		{syscall.ENOSPC, true, true},
		{syscall.EDQUOT, true, true},
		{syscall.EIO, true, false},
		{syscall.ESTALE, true, false},
		{syscall.ENOENT, false, false},
		{syscall.EACCES, false, false},
	} {
		plain := &fs.PathError{Op: "write", Path: "x", Err: c.errno}
		err := fmt.Errorf("wrapped: %w", vfs.Mark(plain))
		if errors.Is(err, vfs.ErrDisk) != c.disk || errors.Is(err, vfs.ErrNoSpace) != c.full || !errors.Is(err, c.errno) || err.Error() != "wrapped: "+plain.Error() {
			t.Errorf("%v: %v", c.errno, err)
		}
	}
}

// TestReplaceFile: a file has its old bytes or the new ones, and nothing is left of an attempt.
func TestReplaceFile(t *testing.T) {
	dir := t.TempDir()
	file, folder := filepath.Join(dir, "a"), filepath.Join(dir, "b")
	for _, text := range []string{"old and long", "new"} {
		if err := vfs.ReplaceFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if got, err := vfs.ReadFile(file); err != nil || string(got) != text {
			t.Errorf("%q, %v, want %q", got, err, text)
		}
	}
	if err := vfs.Mkdir(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := vfs.ReplaceFile(folder, []byte("new"), 0o644); err == nil {
		t.Error("a folder was replaced")
	}
	if got, want := tree(t, dir), "/\n/a 3 6e6577\n/b/"; got != want {
		t.Errorf("%q is left, want %q", got, want)
	}
}
