package e2e

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"ndls/internal/testkit"
	"ndls/internal/testprogram"
)

// binary is ndls with the points at which tests stop it.
var binary string

func TestMain(m *testing.M) {
	var err error
	if binary, err = testprogram.Build(); err == nil {
		// Most of the tests wait for processes that wait for each other.
		err = flag.Set("test.parallel", strconv.Itoa(2*runtime.GOMAXPROCS(0)))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// whole skips a test with -short. make test has one test of each kind: a run that is killed, workers
// that share columns, intervals or a grid, an object store, and other readers of what we write.
func whole(t *testing.T) {
	t.Helper()
	testkit.Slow(t, "whole runs, of which make test has few")
}

// ofUsers skips a test of what is planned for the blocks and strips of users.
func ofUsers(t *testing.T) {
	t.Helper()
	if testprogram.Small {
		t.Skip("it is planned for the blocks of users")
	}
}

// run executes the program and returns what it wrote.
func run(t testing.TB, args ...string) (stdout string) {
	t.Helper()
	cmd := exec.Command(binary, args...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		t.Fatalf("ndls %s: %v\n%s", strings.Join(args, " "), err, errs.String())
	}
	return out.String()
}

// hashes gives the SHA-256 of every file that a run commits. Records of how the
// run went, and scratch, are left out.
func hashes(t testing.TB, dir string) map[string]string {
	t.Helper()
	sums := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		if d.IsDir() {
			if name == "scratch" || name == "journal" || name == "cluster" || name == "catalog" {
				return filepath.SkipDir
			}
			return nil
		}
		if name == "run.json" || strings.HasPrefix(name, "report.") {
			return nil
		}
		b, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		sum := sha256.Sum256(b)
		sums[filepath.ToSlash(name)] = hex.EncodeToString(sum[:])
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return sums
}

// hashesOf makes a run and returns the hashes of its files.
func hashesOf(t *testing.T, job, way string) map[string]string {
	dir := filepath.Join(t.TempDir(), "run")
	run(t, strings.Fields(fmt.Sprintf("run --run %s --quiet %s %s", dir, job, way))...)
	return hashes(t, dir)
}

func compare(t testing.TB, what string, got, want map[string]string) {
	t.Helper()
	if maps.Equal(got, want) {
		return
	}
	for name, sum := range want {
		if got[name] != sum {
			t.Errorf("%s: %s has SHA-256 %.12s, want %.12s", what, name, got[name], sum)
		}
	}
	for name := range got {
		if want[name] == "" {
			t.Errorf("%s: %s should not be there", what, name)
		}
	}
}

var errExit *exec.ExitError

// exitStatus is how a command ended, -1 for a signal.
func exitStatus(err error) int {
	if err == nil {
		return 0
	}
	if errors.As(err, &errExit) {
		return errExit.ExitCode()
	}
	return -2
}

// decode reads a file of JSON, such as run.json or report.json.
func decode(t testing.TB, file string, to any) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err == nil {
		err = json.Unmarshal(text, to)
	}
	if err != nil {
		t.Fatalf("%s: %v", file, err)
	}
}
