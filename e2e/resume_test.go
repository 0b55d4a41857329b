package e2e

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// medium takes a second through all stages.
var medium = []string{
	"run", "--dataset", "synthetic:nodes=20000,edges=150000,features=100,classes=6,seed=9",
	"--runs", "2", "--epochs", "8", "--probes", "32", "--epsilon", "0.02", "--quiet",
}

func mediumRun(dir string, extra ...string) []string {
	args := append([]string{}, medium...)
	return append(append(args, "--run", dir), extra...)
}

// TestKilledAndResumed kills runs with SIGKILL at random moments, resumes them with less memory
// and another kernel, and compares every file with those of a run that was left alone.
func TestKilledAndResumed(t *testing.T) {
	t.Parallel()
	const kills = 4
	base := filepath.Join(t.TempDir(), "base")
	start := time.Now()
	run(t, mediumRun(base, "--memory", "1GiB", "--threads", "2")...)
	took := time.Since(start)
	want := hashes(t, base)
	if len(want) < 10 {
		t.Fatalf("only %d files: %v", len(want), want)
	}

	seed := uint64(time.Now().UnixNano())
	t.Logf("moments drawn with seed %d over %v", seed, took)
	rng := rand.New(rand.NewPCG(seed, 0))
	killed, dirs := 0, 0
	for killed < kills {
		dir := filepath.Join(t.TempDir(), fmt.Sprint("killed", dirs))
		dirs++
		if dirs > 40 {
			t.Fatalf("only %d kills in %d runs", killed, dirs)
		}
		// Up to three kills on the way to the end.
		for range 3 {
			cmd := exec.Command(binary, mediumRun(dir, "--memory", "250MiB", "--threads", "2")...)
			var said bytes.Buffer
			cmd.Stderr = &said
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			timer := time.AfterFunc(time.Duration(rng.Int64N(int64(took))), func() { _ = cmd.Process.Kill() })
			err := cmd.Wait()
			timer.Stop()
			if err == nil {
				break
			}
			if s := exitStatus(err); s != -1 {
				t.Fatalf("a killed run ended with status %d: %s", s, said.Bytes())
			}
			killed++
		}
		run(t, mediumRun(dir, "--memory", "150MiB", "--threads", "3", "--kernel", "go")...)
		run(t, "verify", "--run", dir, "--quiet")
		// What a killed attempt left is listed and removed by gc.
		run(t, "gc", "--run", dir, "--delete", "--quiet")
		compare(t, fmt.Sprintf("killed run %d", dirs-1), hashes(t, dir), want)
	}
	t.Logf("%d kills in %d runs", killed, dirs)
}
