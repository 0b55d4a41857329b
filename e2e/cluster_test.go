package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
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
	// token is the token of every job here.
	token = "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"
	// quick is a lease after which a killed worker is missed soon.
	quick = "2s"
	// patience bounds how long a process may take.
	patience = 8 * time.Minute
)

// job takes a second or two through all stages; smoothing has seven panels.
var job = []string{
	"--dataset", "synthetic:nodes=8000,edges=40000,features=100,classes=6,seed=9",
	"--runs", "3", "--epochs", "4", "--probes", "32", "--epsilon", "0.05", "--quiet",
}

// outputs has the hashes of what a job leaves, run in one process, by its flags.
var outputs sync.Map

// wantOf runs a job in one process, once, and returns the hashes of its files.
func wantOf(t *testing.T, flags ...string) map[string]string {
	t.Helper()
	once, _ := outputs.LoadOrStore(strings.Join(flags, " "), sync.OnceValue(func() map[string]string {
		dir, err := os.MkdirTemp("", "ndls-e2e-one")
		if err != nil {
			t.Error(err)
			return nil
		}
		defer os.RemoveAll(dir)
		dir = filepath.Join(dir, "run")
		run(t, append([]string{"run", "--run", dir, "--memory", "512MiB"}, flags...)...)
		return hashes(t, dir)
	}))
	want := once.(func() map[string]string)()
	if len(want) < 6 {
		t.Fatalf("only %d files: %v", len(want), want)
	}
	return want
}

// mode is a way in which workers share a run, and a job for which that is enough.
type mode struct {
	job []string
	// share lists further options of the coordinator.
	share []string
	// late is a point of a worker, one of two, in a stage that they share in this way.
	late string
}

var (
	columns   = mode{job: job, late: "commit:3"}
	intervals = mode{job: rowsJob, share: []string{"--parallel", "intervals"}, late: "gang-done:2"}
)

// inModes runs a test for each way in which workers share a run; the grid, which is made of the
// other two, with `make faults` alone.
func inModes(t *testing.T, test func(t *testing.T, m mode)) {
	t.Parallel()
	modes := map[string]mode{"columns": columns, "intervals": intervals}
	if os.Getenv("NDLS_FAULTS") != "" {
		modes["grid"] = twoDimensions
	}
	for name, m := range modes {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, m)
		})
	}
}

// cluster is a run directory with processes that work on it.
type cluster struct {
	t *testing.T
	// dir is the run directory, folder where its files are to be looked at.
	dir, folder string
	mode
	lease    string
	patience time.Duration // with a process
	env      []string      // beside the token's
	wg       sync.WaitGroup
	died     atomic.Int64 // of hooks
	fails    atomic.Bool
}

func newCluster(t *testing.T) *cluster {
	dir := filepath.Join(t.TempDir(), "run")
	return &cluster{t: t, dir: dir, folder: dir, mode: columns, lease: quick, patience: patience}
}

// launch makes the command that starts the program somewhere.
type launch func(ctx context.Context, args ...string) *exec.Cmd

// here starts the program on this host.
func here(ctx context.Context, args ...string) *exec.Cmd {
	return exec.CommandContext(ctx, binary, args...)
}

// process starts the program with a hook, or without for "".
func (c *cluster) process(hook string, args ...string) (*exec.Cmd, *bytes.Buffer, func()) {
	return c.processAt(here, hook, args...)
}

func (c *cluster) processAt(at launch, hook string, args ...string) (*exec.Cmd, *bytes.Buffer, func()) {
	ctx, cancel := context.WithTimeout(context.Background(), c.patience)
	cmd := at(ctx, args...)
	cmd.Env = append(append(os.Environ(), "NDLS_TOKEN="+token, "NDLS_HOOK="+hook), c.env...)
	var text bytes.Buffer
	cmd.Stdout, cmd.Stderr = &text, &text
	return cmd, &text, cancel
}

// keep runs a process, and again with the next hook each time that it dies of one,
// in the end without.
func (c *cluster) keep(hooks []string, args ...string) { c.keepAt(here, hooks, args...) }

func (c *cluster) keepAt(at launch, hooks []string, args ...string) {
	c.wg.Go(func() {
		for i := 0; ; i++ {
			hook := ""
			if i < len(hooks) {
				hook = hooks[i]
			}
			cmd, text, cancel := c.processAt(at, hook, args...)
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

func (c *cluster) coordinator(workers int, hooks ...string) {
	c.keep(hooks, c.coordinatorArgs(workers)...)
}

func (c *cluster) coordinatorArgs(workers int, more ...string) []string {
	args := append([]string{"coordinator", "--run", c.dir, "--lease", c.lease, "--checkpoint", "1ms", "--workers", strconv.Itoa(workers)}, c.job...)
	return append(append(args, c.share...), more...)
}

var workerArgs = []string{"--quiet", "--memory", "256MiB", "--threads", "1"}

func (c *cluster) worker(hooks []string, extra ...string) {
	c.keep(hooks, c.workerArgs(extra...)...)
}

func (c *cluster) workerArgs(more ...string) []string {
	return append(append([]string{"worker", "--run", c.dir}, workerArgs...), more...)
}

// end waits for all processes and compares what they leave with want.
func (c *cluster) end(what string, want map[string]string) {
	c.t.Helper()
	c.wg.Wait()
	if c.fails.Load() {
		return
	}
	for _, verb := range [][]string{{"verify"}, {"gc", "--delete"}} {
		cmd, text, cancel := c.process("", append(verb, "--run", c.dir, "--quiet")...)
		if err := cmd.Run(); err != nil {
			c.t.Errorf("%s: %v: %v\n%s", what, verb, err, text)
		}
		cancel()
	}
	compare(c.t, what, hashes(c.t, c.folder), want)
}

// TestClusterSameBytes runs the job with two workers that differ, as processes. Draws of
// TestMetamorphic have more of them in one process.
func TestClusterSameBytes(t *testing.T) {
	t.Parallel()
	want := wantOf(t, job...)
	for name, workers := range map[string][][]string{
		"two": {{"--memory", "1GiB", "--kernel", "go"}, {"--memory", "150MiB", "--threads", "3"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCluster(t)
			c.coordinator(len(workers))
			for _, extra := range workers {
				c.worker(nil, extra...)
			}
			c.end(name, want)
		})
	}
	t.Run("on this host", func(t *testing.T) {
		t.Parallel()
		c := newCluster(t)
		run(t, append([]string{"run", "--run", c.dir, "--workers", "2", "--memory", "512MiB"}, job...)...)
		c.end("--workers 2", want)
	})
}

// TestClusterEndsAtOnce has no process wait for others when the run is complete. A
// goodbye in gossip takes more than a second; a busy machine may hold one up as long
// once or twice.
func TestClusterEndsAtOnce(t *testing.T) {
	whole(t)
	t.Parallel()
	const tries = 3
	for try := 1; ; try++ {
		c := newCluster(t)
		c.job = []string{"--dataset", "karate:", "--runs", "1", "--epochs", "1", "--quiet"}
		c.coordinator(1)
		await(t, "a coordinator", func() bool {
			_, err := os.Stat(filepath.Join(c.dir, "cluster", "coordinator.json"))
			return err == nil
		})
		c.worker(nil)
		c.wg.Wait()
		late := time.Now()
		st, err := os.Stat(filepath.Join(c.dir, "run.json")) // written at the end
		if err != nil {
			t.Fatal(err)
		}
		took := late.Sub(st.ModTime())
		if took < time.Second {
			return
		}
		if try == tries {
			t.Fatalf("the processes ended %v after the run", took)
		}
	}
}

// TestWorkerComesFirst has a worker wait for the coordinator that goes on with a run of
// which all that was asked for so far is complete, or begins one: the worker has no file there yet.
func TestWorkerComesFirst(t *testing.T) {
	whole(t)
	t.Parallel()
	want := wantOf(t, job...)
	for _, made := range []bool{true, false} {
		t.Run(fmt.Sprintf("made=%v", made), func(t *testing.T) {
			t.Parallel()
			c := newCluster(t)
			if made {
				run(t, "partition", "--run", c.dir, "--dataset", job[1], "--quiet")
			} else if err := os.MkdirAll(c.dir, 0o755); err != nil {
				t.Fatal(err)
			}
			c.worker(nil)
			time.Sleep(time.Second)
			if list, err := filepath.Glob(filepath.Join(c.dir, "cluster", "*")); err != nil || !made && len(list) > 0 {
				t.Errorf("the worker has written %v, error %v", list, err)
			}
			c.coordinator(1)
			c.end("worker first", want)
		})
	}
}

// TestClusterSurvives kills processes at points of their protocol. Each is started
// again, as Slurm or Kubernetes would.
func TestClusterSurvives(t *testing.T) {
	whole(t)
	t.Parallel()
	want := wantOf(t, job...)
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
			c := newCluster(t)
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

// probesJob has so many probes and edges that workers share the panels of the probe, of which each commits two files.
var probesJob = []string{
	"--dataset", "synthetic:nodes=70000,edges=1800000,features=16,classes=4,seed=9",
	"--runs", "4", "--epochs", "2", "--probes", "320", "--epsilon", "0.05", "--kmax", "6", "--quiet",
}

// TestProbesAreShared kills workers while they share the panels of the probe, and in the next stretch.
func TestProbesAreShared(t *testing.T) {
	whole(t)
	t.Parallel()
	want := wantOf(t, probesJob...)
	c := newCluster(t)
	c.job = probesJob
	c.prepare("partition")
	hooks := [][]string{{"commit:12:kill", "commit-done:18:kill"}, {"commit-done:15:kill"}}
	c.coordinator(len(hooks))
	for _, h := range hooks {
		c.worker(h)
	}
	c.end("panels of the probe", want)
	if c.died.Load() < 2 {
		t.Errorf("%d workers died: they did not share the panels", c.died.Load())
	}
}

// status is the output of ndls status.
type status struct {
	Tasks       map[string]int `json:"tasks"`
	Losses      []any          `json:"losses"`
	Workers     []any          `json:"workers"`
	SecondsLost float64        `json:"seconds_lost"`
	Coordinator *bool          `json:"coordinator"` // false once it has ended
}

// await asks the coordinator until the answer pleases.
func (c *cluster) await(what string, pleases func(status) bool) {
	c.t.Helper()
	c.awaitAt(here, nil, what, pleases)
}

func (c *cluster) awaitAt(at launch, keys []string, what string, pleases func(status) bool) {
	c.t.Helper()
	const pause = 200 * time.Millisecond // a process that asks takes a tenth of a second
	awaitEvery(c.t, pause, what, func() bool {
		cmd, text, cancel := c.processAt(at, "", append([]string{"status", "--run", c.dir, "--json", "--quiet"}, keys...)...)
		defer cancel()
		var s status
		return cmd.Run() == nil && json.Unmarshal(text.Bytes(), &s) == nil && pleases(s)
	})
}

// lost pleases once a lease is lost.
func lost(s status) bool { return len(s.Losses) > 0 }

// working pleases once more than so many tasks run, or the job has ended: what is left of it may take less time than a look.
func working(beside int) func(s status) bool {
	return func(s status) bool { return s.Tasks["running"] > beside || s.Coordinator != nil && !*s.Coordinator }
}

// TestZombie stops a worker at a commit, or once its gang is whole, until its lease is
// lost and another worker is there, and lets it go on: what it does for that lease is
// refused, and it works on.
func TestZombie(t *testing.T) {
	whole(t)
	inModes(t, func(t *testing.T, m mode) {
		c := newCluster(t)
		c.mode = m
		want := wantOf(t, m.job...)
		beside := 0
		if m.share != nil {
			beside = 1
			c.worker(nil)
		}
		c.coordinator(1 + beside)
		goOn := c.stopsAt(here, m.late, c.workerArgs()...)
		c.await("a lost lease", lost)
		c.worker(nil)
		c.await("running tasks", working(beside))
		goOn()
		c.end("zombie", want)
		c.lostIn(m)
	})
}

// lostIn sees in the report that a gang has lost a worker, where there are gangs.
func (c *cluster) lostIn(m mode) {
	c.t.Helper()
	if c.t.Failed() || m.share == nil {
		return
	}
	losses := c.losses()
	for _, l := range losses {
		if strings.Contains(l.Task, "/strips/") {
			return
		}
	}
	c.t.Errorf("no gang has lost a worker: %+v", losses)
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
	awaitEvery(t, 20*time.Millisecond, what, holds)
}

func awaitEvery(t *testing.T, pause time.Duration, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !holds(); time.Sleep(pause) {
		if time.Now().After(deadline) {
			t.Fatalf("%s does not come", what)
		}
	}
}

// TestWorkersOnThisHost kills a worker that ndls run has started, which then starts
// another; and ndls run itself, with which its workers end.
func TestWorkersOnThisHost(t *testing.T) {
	whole(t)
	t.Parallel()
	want := wantOf(t, job...)
	c := newCluster(t)
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
