package e2e

import (
	"bytes"
	"debug/buildinfo"
	"debug/elf"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// fileSystemsEnv is set where the tests have to find every tool that they use; builtEnv names the
// program that make build has made.
const (
	fileSystemsEnv = "NDLS_FILE_SYSTEMS"
	builtEnv       = "NDLS_BUILT"
)

// onSmall is a run that takes a second.
func onSmall(dir string) []string {
	return strings.Fields("run --dataset synthetic:nodes=3000,edges=12000,features=20,classes=4,seed=1 --memory 300MiB --threads 1 --runs 1 --epochs 3 --run " + dir)
}

// needs skips a test where a tool is missing, or this is not root.
func needs(t *testing.T, tools ...string) {
	t.Helper()
	skip := t.Skipf
	if os.Getenv(fileSystemsEnv) != "" {
		skip = t.Fatalf
	}
	if os.Getuid() != 0 {
		skip("only root may mount")
	}
	for _, tool := range tools {
		if _, err := exec.LookPath(tool); err != nil {
			skip("%v", err)
		}
	}
}

// shell runs commands of a shell in a folder.
func shell(t *testing.T, dir, script string) {
	t.Helper()
	cmd := exec.Command("bash", "-euo", "pipefail", "-c", script)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", script, err, out)
	}
}

// TestFileSystems does a whole run on file systems that are mounted here: the same bytes everywhere, nothing is
// left behind, and a warning where a promise is weaker.
func TestFileSystems(t *testing.T) {
	whole(t)
	reference := filepath.Join(t.TempDir(), "run")
	run(t, onSmall(reference)...)
	want := hashes(t, reference)
	for _, c := range []struct {
		name         string
		tools        []string
		mount, after string // commands of a shell, which mount to the folder m
		warns        string
	}{
		{"tmpfs", nil, "mount -t tmpfs tmpfs m", "umount m", ""},
		{"ramfs", nil, "mount -t ramfs ramfs m", "umount m", ""},
		{"overlay", nil, "mkdir low up; mount -t tmpfs tmpfs up; mkdir up/up up/work; mount -t overlay overlay -o lowerdir=low,upperdir=up/up,workdir=up/work m", "umount m; umount up", ""},
		{"exFAT by FUSE", []string{"mkfs.exfat", "mount.exfat-fuse", "losetup", "fusermount"}, "truncate -s 64M image; mkfs.exfat image; losetup -f --show image >loop; mount.exfat-fuse $(<loop) m", "fusermount -u m; losetup -d $(<loop)", "do not start two coordinators"},
		{"mergerfs", []string{"mergerfs", "fusermount"}, "mkdir a b; mergerfs -o cache.files=off a:b m", "fusermount -u m", ""},
		{"bindfs", []string{"bindfs", "fusermount"}, "mkdir a; bindfs a m", "fusermount -u m", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			needs(t, c.tools...)
			if strings.Contains(c.mount, "fuse") || strings.Contains(c.mount, "bindfs") || strings.Contains(c.mount, "mergerfs") {
				if _, err := os.Stat("/dev/fuse"); err != nil {
					t.Skip(err)
				}
			}
			dir := t.TempDir()
			shell(t, dir, "mkdir m; "+c.mount)
			t.Cleanup(func() { unmount(t, dir, c.after) })
			at := filepath.Join(dir, "m", "run")
			for round := range 2 { // the second one finds all complete
				out, err := exec.Command(binary, onSmall(at)...).CombinedOutput()
				if err != nil {
					t.Fatalf("%v\n%s", err, out)
				}
				if warned := strings.Count(string(out), `msg="the file system `); (c.warns != "") != (warned == 1) || !strings.Contains(string(out), c.warns) {
					t.Errorf("round %d: %d warnings, want %q:\n%s", round, warned, c.warns, out)
				}
			}
			compare(t, c.name, hashes(t, at), want)
			run(t, "verify", "--run", at)
			noLeftovers(t, at)
		})
	}
}

// unmount ends what a program of FUSE may still be busy with.
func unmount(t *testing.T, dir, script string) {
	for begun := time.Now(); ; time.Sleep(100 * time.Millisecond) {
		cmd := exec.Command("bash", "-euo", "pipefail", "-c", script)
		cmd.Dir = dir
		out, err := cmd.CombinedOutput()
		if err == nil {
			return
		}
		if time.Since(begun) > 10*time.Second {
			t.Errorf("%s: %v\n%s", script, err, out)
			return
		}
	}
}

func noLeftovers(t *testing.T, dir string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if err == nil && (strings.HasSuffix(path, ".tmp") || strings.HasSuffix(path, ".spill")) {
			t.Errorf("%s is left", path)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// TestCallsThatTheKernelRefuses has strace refuse calls of the program as file systems do that cannot be mounted here.
func TestCallsThatTheKernelRefuses(t *testing.T) {
	whole(t)
	needs(t, "strace")
	reference := filepath.Join(t.TempDir(), "run")
	run(t, onSmall(reference)...)
	want := hashes(t, reference)
	for _, c := range []struct {
		name   string
		inject []string
		status int
		says   string
	}{
		{"links", []string{"linkat:error=EPERM"}, 0, ""},
		{"links and renames without replacing", []string{"linkat:error=EOPNOTSUPP", "renameat2:error=EINVAL"}, 0, "do not start two coordinators"},
		{"locks", []string{"flock:error=ENOLCK"}, 0, "has no locks"},
		{"renames", []string{"renameat:error=EPERM"}, 2, "refuses rename (operation not permitted): if it shows a bucket, give that by its address, --run s3://bucket/prefix"},
		{"sizes", []string{"statfs:error=ENOSYS"}, 0, ""},
		{"holes and waiting", []string{"fallocate:error=EOPNOTSUPP", "sync_file_range:error=ENOSYS"}, 0, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			args := []string{"-f", "-q", "-o", "/dev/null"}
			for _, inject := range c.inject {
				args = append(args, "-e", "inject="+inject)
			}
			at := filepath.Join(t.TempDir(), "run")
			out, err := exec.Command("strace", append(append(args, binary), onSmall(at)...)...).CombinedOutput()
			if got := exitStatus(err); got != c.status || !strings.Contains(string(out), c.says) {
				t.Fatalf("status %d, want %d and %q:\n%s", got, c.status, c.says, out)
			}
			if c.status == 0 {
				compare(t, c.name, hashes(t, at), want)
				noLeftovers(t, at)
			} else if _, err := os.Stat(at); err == nil {
				t.Error("the run directory is left")
			}
		})
	}
}

// TestReadOnlyMount prints what is complete in a run directory on a file system that is mounted read only.
func TestReadOnlyMount(t *testing.T) {
	needs(t)
	dir := t.TempDir()
	at := filepath.Join(dir, "run")
	run(t, onSmall(at)...)
	run(t, "degrees", "--run", at, "--memory", "300MiB")
	shell(t, dir, "mkdir ro; mount --bind run ro; mount -o remount,bind,ro ro")
	defer unmount(t, dir, "umount ro")
	ro := filepath.Join(dir, "ro")
	for _, line := range []string{
		"degrees --memory 300MiB", "inspect", "verify", "status", "gc", "smooth --memory 300MiB",
		"export --what smoothed --format csv --out " + dir + "/rows.csv", "export --what edges --format csv --out " + dir + "/edges.csv",
	} {
		words := strings.Fields(line)
		run(t, append([]string{words[0], "--run", ro}, words[1:]...)...)
	}
	run(t, "report", ro, "--out", filepath.Join(dir, "report.html"))
	run(t, onSmall(ro)...)
	run(t, append(onSmall(ro), "--workers", "2", "--memory", "640MiB")...)
	if out, err := exec.Command(binary, "spectrum", "--run", ro).CombinedOutput(); exitStatus(err) != 1 || !strings.Contains(string(out), "cannot be written to") {
		t.Errorf("%v: %s", err, out)
	}
}

// TestGroupSharesRun has one user begin a run with umask 002, killed before its end, and another one of the
// same group continue it.
func TestGroupSharesRun(t *testing.T) {
	whole(t)
	needs(t)
	dir, err := os.MkdirTemp("", "ndls-group") // not t.TempDir, into which others may not go
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	const group = 54321
	program := filepath.Join(dir, "ndls")
	text, err := os.ReadFile(binary)
	if err == nil {
		err = os.WriteFile(program, text, 0o755)
	}
	if err == nil {
		err = os.Chown(dir, 0, group)
	}
	if err == nil {
		err = os.Chmod(dir, 0o2775)
	}
	if err != nil {
		t.Fatal(err)
	}
	at := filepath.Join(dir, "run")
	as := func(user uint32, words ...string) (string, error) {
		cmd := exec.Command("sh", append([]string{"-c", `umask 002; exec "$0" "$@"`, program}, words...)...)
		cmd.Dir = dir
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: user, Gid: group}}
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	// The first one dies in the middle: its spills and attempts are left in folders of its own.
	killed := strings.Fields("partition --dataset synthetic:nodes=3000,edges=12000,features=20,classes=4,seed=1 --memory 300MiB --threads 1 --run " + at)
	if out, err := as(54322, killed...); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	shell(t, dir, "mkdir -p run/scratch/sort-1; : >run/scratch/sort-1/000001.spill; : >run/run.json.0123456789abcdef.tmp; chown -R 54322:54321 run; chmod 775 run/scratch run/scratch/sort-1; chmod 664 run/scratch/sort-1/*")
	if out, err := as(54323, onSmall(at)...); err != nil {
		t.Fatalf("the other one: %v: %s", err, out)
	}
	if out, err := as(54322, "gc", "--delete", "--run", at); err != nil {
		t.Fatalf("the first one: %v: %s", err, out)
	}
	err = filepath.WalkDir(at, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err == nil && info.Mode().Perm()&0o060 != 0o060 {
			t.Errorf("%s has mode %v", path, info.Mode())
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// TestWithoutProc runs where /proc is not mounted.
func TestWithoutProc(t *testing.T) {
	whole(t)
	needs(t)
	reference := filepath.Join(t.TempDir(), "run")
	run(t, onSmall(reference)...)
	for _, more := range []string{"", "--workers 2 --memory 600MiB"} {
		at := filepath.Join(t.TempDir(), "run")
		cmd := exec.Command("sh", append(append([]string{"-c", `mount --make-rprivate / && umount -l /proc && exec "$0" "$@"`, binary}, onSmall(at)...), strings.Fields(more)...)...)
		cmd.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS}
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Errorf("%s: %v\n%s", more, err, out)
			continue
		}
		compare(t, "without /proc "+more, hashes(t, at), hashes(t, reference))
	}
}

// TestLimitsOfTheShell says in a sentence what ulimit does not allow.
func TestLimitsOfTheShell(t *testing.T) {
	program, static := os.Getenv(builtEnv), true
	if program == "" {
		program, static = binary, false // the C library reserves more
	}
	for _, c := range []struct {
		limit, more string
		status      int
		says        string
	}{
		{"-v 1048576", "", 3, "the limit of address space, 1.0 GiB (ulimit -v 1048576)"},
		{"-v 8000000", "--memory 16GiB", 3, "--memory 16.0 GiB: the limit of address space"},
		{"-v 8000000", "", 0, ""},
		{"-f 100", "", 1, "takes no larger file (FAT: below 4 GiB)"},
	} {
		if c.limit == "-v 1048576" && !static {
			continue
		}
		at := filepath.Join(t.TempDir(), "run")
		words := append([]string{"-c", "ulimit " + c.limit + `; exec "$0" "$@"`, program}, onSmall(at)...)
		out, err := exec.Command("bash", append(words, strings.Fields(c.more)...)...).CombinedOutput()
		if got := exitStatus(err); got != c.status || !strings.Contains(string(out), c.says) || bytes.Contains(out, []byte("goroutine")) {
			t.Errorf("ulimit %s: status %d, want %d and %q:\n%.2000s", c.limit, got, c.status, c.says, out)
		}
	}
}

// TestBuild sees that the program that make build makes is one static file, stripped, that knows its commit.
func TestBuild(t *testing.T) {
	built := os.Getenv(builtEnv)
	if built == "" {
		t.Skip("make file-systems names the program in " + builtEnv)
	}
	f, err := elf.Open(built)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for _, p := range f.Progs {
		if p.Type == elf.PT_INTERP || p.Type == elf.PT_DYNAMIC {
			t.Errorf("it is linked to libraries: it has %v", p.Type)
		}
	}
	if f.Section(".symtab") != nil || f.Section(".debug_info") != nil {
		t.Error("it has tables for debuggers")
	}
	info, err := buildinfo.ReadFile(built)
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]string{}
	for _, s := range info.Settings {
		known[s.Key] = s.Value
	}
	if known["CGO_ENABLED"] != "0" || len(info.Deps) == 0 {
		t.Errorf("go version -m says %v, %d modules", known, len(info.Deps))
	}
	if st, err := os.Stat("../.git"); err == nil && st.IsDir() { // Go does not look into the folder of a worktree
		out, err := exec.Command(built, "version").Output()
		if err != nil || known["vcs.revision"] == "" || !strings.Contains(string(out), fmt.Sprintf("commit    %s", known["vcs.revision"])) {
			t.Errorf("%v, commit %q: %s", err, known["vcs.revision"], out)
		}
	}
}
