package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

const (
	// token is that of every job here.
	token = "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"
	// quick is a lease after which a killed worker is missed soon.
	quick = "2s"
	// patience bounds how long a process may take.
	patience = 3 * time.Minute
)

// job takes a second or two through all stages; smoothing has seven granules.
var job = []string{
	"--dataset", "synthetic:nodes=8000,edges=40000,features=100,classes=6,seed=9",
	"--runs", "3", "--epochs", "4", "--epsilon", "0.05", "--quiet",
}

// wantOf runs the job in one process and returns the hashes of its files.
func wantOf(t *testing.T) map[string]string {
	dir := filepath.Join(t.TempDir(), "one")
	run(t, append([]string{"run", "--run", dir, "--memory", "512MiB"}, job...)...)
	want := hashes(t, dir)
	if len(want) < 20 {
		t.Fatalf("only %d files: %v", len(want), want)
	}
	return want
}

// crew is a run directory with processes that work on it.
type crew struct {
	t     *testing.T
	dir   string
	wg    sync.WaitGroup
	died  atomic.Int64 // of hooks
	fails atomic.Bool
}

func newCrew(t *testing.T) *crew { return &crew{t: t, dir: filepath.Join(t.TempDir(), "run")} }

// process starts the program with a hook, or without for "".
func (c *crew) process(hook string, args ...string) (*exec.Cmd, *bytes.Buffer, func()) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	cmd := exec.CommandContext(ctx, binary, args...)
	cmd.Env = append(os.Environ(), "NDLS_TOKEN="+token, "NDLS_HOOK="+hook)
	var text bytes.Buffer
	cmd.Stdout, cmd.Stderr = &text, &text
	return cmd, &text, cancel
}

// keep runs a process, and again with the next hook each time that it dies of one,
// in the end without.
func (c *crew) keep(hooks []string, args ...string) {
	c.wg.Go(func() {
		for i := 0; ; i++ {
			hook := ""
			if i < len(hooks) {
				hook = hooks[i]
			}
			cmd, text, cancel := c.process(hook, args...)
			err := cmd.Run()
			cancel()
			s := cmd.ProcessState.ExitCode()
			switch {
			case s == 0:
				return
			case hook != "" && (s == -1 || s == 75):
				c.died.Add(1)
				continue
			}
			c.fails.Store(true)
			c.t.Errorf("ndls %s with hook %q: %v\n%s", strings.Join(args, " "), hook, err, text)
			return
		}
	})
}

func (c *crew) coordinator(workers int, hooks ...string) {
	args := append([]string{"coordinator", "--run", c.dir, "--lease", quick, "--checkpoint", "1ms", "--workers", strconv.Itoa(workers)}, job...)
	c.keep(hooks, args...)
}

var workerArgs = []string{"--quiet", "--memory", "256MiB", "--threads", "1"}

func (c *crew) worker(hooks []string, extra ...string) {
	args := append([]string{"worker", "--run", c.dir}, workerArgs...)
	c.keep(hooks, append(args, extra...)...)
}

// end waits for all processes and compares what they leave with want.
func (c *crew) end(what string, want map[string]string) {
	c.t.Helper()
	c.wg.Wait()
	if c.fails.Load() {
		return
	}
	run(c.t, "verify", "--run", c.dir, "--quiet")
	run(c.t, "gc", "--run", c.dir, "--delete", "--quiet")
	compare(c.t, what, hashes(c.t, c.dir), want)
}

// TestClusterSameBytes runs the job with workers of all kinds.
func TestClusterSameBytes(t *testing.T) {
	t.Parallel()
	want := wantOf(t)
	for name, workers := range map[string][][]string{
		"one":  {{"--memory", "150MiB", "--threads", "2"}},
		"two":  {{"--memory", "1GiB", "--kernel", "go"}, {"--memory", "150MiB", "--threads", "3"}},
		"four": {{"--memory", "130MiB"}, {"--block-columns", "16"}, {"--memory", "200MiB"}, {"--threads", "2"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCrew(t)
			c.coordinator(len(workers))
			for _, extra := range workers {
				c.worker(nil, extra...)
			}
			c.end(name, want)
		})
	}
	t.Run("on this host", func(t *testing.T) {
		t.Parallel()
		c := newCrew(t)
		run(t, append([]string{"run", "--run", c.dir, "--workers", "2", "--memory", "512MiB"}, job...)...)
		c.end("--workers 2", want)
	})
}

// TestClusterSurvives kills processes at points of their protocol. Each is started
// again, as Slurm or Kubernetes would.
func TestClusterSurvives(t *testing.T) {
	t.Parallel()
	want := wantOf(t)
	for name, hooks := range map[string]struct{ coordinator, first, second []string }{
		"workers killed": {
			first:  []string{"next-done:1:kill", "commit:2:kill", "finish:2:kill", "commit-done:4:kill"},
			second: []string{"commit-done:1:kill", "finish-done:2:kill"},
		},
		"coordinator killed": {
			coordinator: []string{"join-done:1:kill", "next-done:2:kill", "commit:3:kill", "commit-done:3:kill", "finish:2:kill", "finish-done:2:kill"},
		},
		"all killed": {
			coordinator: []string{"commit:6:kill", "finish:3:kill"},
			first:       []string{"commit-done:3:kill", "next-done:2:kill"},
			second:      []string{"finish:1:kill", "commit:2:kill"},
		},
		"killed in the partition": {
			coordinator: []string{"commit-done:2:kill", "finish:3:kill"},
			first:       []string{"commit:1:kill", "commit-done:1:kill", "finish:1:kill", "next-done:2:kill"},
			second:      []string{"commit-done:2:kill", "commit:1:kill", "finish-done:2:kill", "commit-done:1:kill"},
		},
		"told to stop": {
			coordinator: []string{"finish-done:3:term"},
			first:       []string{"commit:2:term", "next-done:2:term"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCrew(t)
			c.coordinator(2, hooks.coordinator...)
			c.worker(hooks.first)
			c.worker(hooks.second)
			c.end(name, want)
			if all := len(hooks.coordinator) + len(hooks.first) + len(hooks.second); c.died.Load() < int64(all/2) {
				t.Errorf("only %d of %d processes died", c.died.Load(), all)
			}
		})
	}
}

// status asks the coordinator until the answer pleases.
func (c *crew) status(pleases func(tasks map[string]int, losses int) bool) {
	c.t.Helper()
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		cmd, text, cancel := c.process("", "status", "--run", c.dir, "--json", "--quiet")
		err := cmd.Run()
		cancel()
		var st struct {
			Tasks  map[string]int `json:"tasks"`
			Losses []any          `json:"losses"`
		}
		if err == nil && json.Unmarshal(text.Bytes(), &st) == nil && pleases(st.Tasks, len(st.Losses)) {
			return
		}
	}
	c.t.Fatal("the status did not come to please")
}

// TestZombie stops a worker at a commit until its lease is lost and another worker
// is there, and lets it go on: the commit is refused, and it works on.
func TestZombie(t *testing.T) {
	t.Parallel()
	want := wantOf(t)
	c := newCrew(t)
	c.coordinator(1)
	cmd, text, cancel := c.process("commit:3:stop", append([]string{"worker", "--run", c.dir}, workerArgs...)...)
	defer cancel()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	c.status(func(_ map[string]int, losses int) bool { return losses > 0 })
	c.worker(nil)
	c.status(func(tasks map[string]int, _ int) bool { return tasks["running"] > 0 })
	if err := cmd.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("the worker that stood still: %v\n%s", err, text)
	}
	c.end("zombie", want)
}

// children lists the processes that a process has started.
func children(t *testing.T, pid int) (pids []int) {
	t.Helper()
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range threads {
		text, _ := os.ReadFile(path) // the thread may have ended
		for _, field := range strings.Fields(string(text)) {
			if child, err := strconv.Atoi(field); err == nil {
				pids = append(pids, child)
			}
		}
	}
	return pids
}

// await looks until something holds.
func await(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !holds(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%s does not come", what)
		}
	}
}

// TestWorkersOnThisHost kills a worker that ndls run has started, which then starts
// another; and ndls run itself, with which its workers end.
func TestWorkersOnThisHost(t *testing.T) {
	t.Parallel()
	want := wantOf(t)
	c := newCrew(t)
	args := append([]string{"run", "--run", c.dir, "--workers", "2", "--memory", "512MiB"}, job...)
	for _, victim := range []string{"run", "worker"} {
		cmd, text, cancel := c.process("", args...)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		var workers []int
		await(t, "a second worker", func() bool {
			workers = children(t, cmd.Process.Pid)
			return len(workers) == 2
		})
		pid := workers[0]
		if victim == "run" {
			pid = cmd.Process.Pid
		}
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		err := cmd.Wait()
		cancel()
		if (err == nil) != (victim == "worker") {
			t.Errorf("ndls run after its %s was killed: %v\n%s", victim, err, text)
		}
		for _, w := range workers {
			await(t, "the end of a worker", func() bool {
				stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", w))
				return err != nil || strings.Contains(string(stat), ") Z ")
			})
		}
	}
	c.end("after kills", want)
}

// TestChaos draws points at which processes die; NDLS_CHAOS says how many rounds,
// one if it is not set.
func TestChaos(t *testing.T) {
	rounds := 1
	if v := os.Getenv("NDLS_CHAOS"); v != "" {
		var err error
		if rounds, err = strconv.Atoi(v); err != nil {
			t.Fatalf("NDLS_CHAOS=%s is no number of rounds", v)
		}
	}
	want := wantOf(t)
	for round := range rounds {
		seed := uint64(time.Now().UnixNano())
		rng := rand.New(rand.NewPCG(seed, 0))
		draw := func(most int) (hooks []string) {
			points := []string{"join", "next-done", "commit", "commit-done", "renew-done", "finish", "finish-done"}
			actions := []string{"kill", "kill", "term"}
			for range rng.IntN(most + 1) {
				hooks = append(hooks, fmt.Sprintf("%s:%d:%s", points[rng.IntN(len(points))], 1+rng.IntN(6), actions[rng.IntN(len(actions))]))
			}
			return hooks
		}
		c := newCrew(t)
		workers := 1 + rng.IntN(4)
		c.coordinator(1+rng.IntN(workers), draw(5)...)
		for range workers {
			c.worker(draw(4), "--memory", fmt.Sprint(130+rng.IntN(400), "MiB"), "--threads", strconv.Itoa(1+rng.IntN(3)))
		}
		c.end(fmt.Sprintf("round %d, seed %d", round, seed), want)
		t.Logf("round %d, seed %d: %d workers, %d deaths", round, seed, workers, c.died.Load())
		if t.Failed() {
			return
		}
	}
}
