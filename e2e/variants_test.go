package e2e

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"

	"ndls/internal/packed"
)

// TestVariantsSurvive kills workers and the coordinator where every hop is made,
// where some rows only are written, and where edges have weights.
func TestVariantsSurvive(t *testing.T) {
	whole(t)
	t.Parallel()
	for name, job := range map[string][]string{
		"every hop": append(slices.Clone(job), "--tolerance", "0"),
		"labelled":  append(slices.Clone(job), "--targets", "labelled"),
		"weights":   strings.Fields(fmt.Sprintf("--dataset synthetic:nodes=%d,edges=90000,features=37,classes=6,seed=9,weights=10 --runs 1 --epochs 2 --epsilon 0.1 --kmax 40 --probes 16 --label-kmax 4 --targets all --quiet", packed.StripRows+3000)),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCluster(t)
			c.job = job
			want := wantOf(t, c.job...)
			c.coordinator(2, "finish-done:4:kill")
			c.worker([]string{"commit:3:kill", "commit-done:5:kill"})
			c.worker([]string{"next-done:3:kill"}, "--memory", "130MiB")
			c.end(name, want)
			if c.died.Load() < 2 {
				t.Errorf("only %d processes died", c.died.Load())
			}
		})
	}
}

// TestCorrectionSurvives has two workers correct labels and smooth them: one dies while the
// correction or its columns are committed.
func TestCorrectionSurvives(t *testing.T) {
	whole(t)
	t.Parallel()
	for _, rule := range []string{"cs", "cs-nd"} {
		t.Run(rule, func(t *testing.T) {
			t.Parallel()
			c := newCluster(t)
			c.job = append(slices.Clone(job), "--label-rule", rule)
			want := wantOf(t, c.job...)
			c.prepare("partition", "lsi", "smooth", "train")
			c.coordinator(2)
			c.worker([]string{"commit:1:kill", "commit-done:2:kill"})
			c.worker(nil)
			c.end(rule, want)
			if c.died.Load() == 0 {
				t.Error("nobody died")
			}
		})
	}
}

// TestTrainOnSurvives has workers train on the rows of another run directory; who trains dies at
// the first commit.
func TestTrainOnSurvives(t *testing.T) {
	whole(t)
	t.Parallel()
	rows := newCluster(t)
	rows.prepare("partition --only train", "lsi", "smooth")
	c := newCluster(t)
	c.job = append(slices.Clone(job), "--train-on", rows.dir)
	want := wantOf(t, c.job...)
	c.prepare("partition", "lsi", "smooth")
	c.coordinator(2)
	for range 2 {
		c.worker([]string{"commit:1:kill"})
	}
	c.end("train on other rows", want)
	if c.died.Load() == 0 {
		t.Error("nobody died")
	}
}

// prepare does stages of the job in one process, a verb each.
func (c *cluster) prepare(verbs ...string) {
	c.t.Helper()
	flags := map[string][]string{}
	for i := 0; i+1 < len(c.job); i += 2 {
		verb := map[string]string{"--dataset": "partition", "--probes": "lsi", "--epsilon": "lsi", "--kmax": "lsi", "--runs": "train", "--epochs": "train"}[c.job[i]]
		flags[verb] = append(flags[verb], c.job[i], c.job[i+1])
	}
	for _, line := range verbs {
		args := strings.Fields(line)
		run(c.t, slices.Concat(args, flags[args[0]], []string{"--run", c.dir, "--quiet"})...)
	}
}

// TestInductiveOnWorkers trains before test nodes are read, with worker processes, one of which is
// killed in each of the three runs: all three leave what one process leaves.
func TestInductiveOnWorkers(t *testing.T) {
	whole(t)
	t.Parallel()
	one := newCluster(t)
	flags := slices.Concat([]string{"run", "--inductive", "--memory", "512MiB"}, job)
	run(t, slices.Concat(flags, []string{"--run", one.dir})...)
	c := newCluster(t)
	cmd, text, cancel := c.process("", slices.Concat(flags, []string{"--run", c.dir, "--workers", "2"})...)
	defer cancel()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	suffixes := []string{"-train", "-valid", ""}
	for _, suffix := range suffixes {
		var workers []int
		await(t, "workers on "+c.dir+suffix, func() bool {
			_, err := os.Stat(c.dir + suffix)
			workers = children(t, cmd.Process.Pid)
			return err == nil && len(workers) == 2
		})
		if err := syscall.Kill(workers[0], syscall.SIGKILL); err != nil {
			t.Error(err)
		}
	}
	if err := cmd.Wait(); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	for _, suffix := range suffixes {
		run(t, "gc", "--delete", "--run", c.dir+suffix, "--quiet")
		compare(t, "RUN"+suffix, hashes(t, c.dir+suffix), hashes(t, one.dir+suffix))
	}
}
