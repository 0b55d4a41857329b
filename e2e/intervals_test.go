package e2e

import (
	"fmt"
	"path/filepath"
	"testing"

	"ndls/internal/packed"
	"ndls/internal/testprogram"
)

// rowsJob has four strips of rows, so that workers can share them.
var rowsJob = []string{
	"--dataset", fmt.Sprintf("synthetic:nodes=%d,edges=%d,features=20,classes=5,seed=3", 3*packed.StripRows+1000, 8*packed.StripRows),
	"--probes", "16", "--runs", "1", "--epochs", "2", "--epsilon", "0.1", "--kmax", "5", "--label-kmax", "2", "--quiet",
}

// TestIntervals has workers share the rows of the graph: of all kinds, killed in the
// middle of a hop, without a word, or told to stop, and the coordinator likewise.
func TestIntervals(t *testing.T) {
	t.Parallel()
	want := wantOf(t, rowsJob...)
	type worker struct {
		hooks []string
		flags []string
	}
	for name, tc := range map[string]struct {
		coordinator []string
		workers     []worker
		gone        bool // the first worker does not come back
	}{
		"four of different size": {workers: []worker{
			{flags: []string{"--memory", "130MiB"}},
			{flags: []string{"--memory", "300MiB", "--block-columns", "16"}},
			{flags: []string{"--threads", "3"}},
			{flags: []string{"--kernel", "go"}},
		}},
		"members killed": {workers: []worker{
			{hooks: []string{"gang-done:1:kill", "commit:3:kill", "commit-done:6:kill", "finish:1:kill"}},
			{hooks: []string{"commit:5:kill", "gang:2:kill", "commit-done:4:term"}},
		}},
		"coordinator killed": {
			coordinator: []string{"gang:1:kill", "gang-done:1:kill", "commit:4:kill", "commit-done:9:kill", "finish:2:kill"},
			workers:     []worker{{}, {}},
		},
		"one for good": {workers: []worker{{hooks: []string{"commit:4:kill"}}, {}, {}}, gone: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCluster(t)
			c.mode = intervals
			c.coordinator(len(tc.workers), tc.coordinator...)
			for i, w := range tc.workers {
				if tc.gone && i == 0 {
					cmd, _, cancel := c.process(w.hooks[0], append([]string{"worker", "--run", c.dir}, workerArgs...)...)
					c.wg.Go(func() {
						defer cancel()
						_ = cmd.Run()
					})
					continue
				}
				c.worker(w.hooks, w.flags...)
			}
			c.end(name, want)
			bytesOnTheWire(t, c.dir, float64(len(tc.workers)), len(tc.coordinator) == 0 && tc.workers[0].hooks == nil)
		})
	}
	t.Run("on this host", func(t *testing.T) {
		c := newCluster(t)
		run(t, append([]string{"run", "--run", c.dir, "--workers", "2", "--memory", "512MiB", "--parallel", "intervals"}, rowsJob...)...)
		c.end("--workers 2", want)
		bytesOnTheWire(t, c.dir, 2, true)
	})
}

// bytesOnTheWire sees in the report that workers have sent each other rows, where
// nothing was done twice: as many bytes as package group/remote says: of two workers each row goes
// to the other one in each hop; of more, of which each reads about half of the rows of others, these rows alone.
func bytesOnTheWire(t *testing.T, dir string, workers float64, once bool) {
	t.Helper()
	var report struct {
		Stages []struct {
			Name    string  `json:"name"`
			Network float64 `json:"network_bytes"`
			Passes  float64 `json:"passes"`
			Columns float64 `json:"columns_per_pass"`
		} `json:"stages"`
		Dataset struct {
			Nodes float64 `json:"nodes"`
		} `json:"dataset"`
	}
	decode(t, filepath.Join(dir, "report.json"), &report)
	for _, s := range report.Stages {
		if s.Name != "lsi" && s.Name != "smooth" && s.Name != "smooth-labels" {
			continue
		}
		value := 4.0
		if s.Name == "lsi" { // rows of a sketch are float16
			value = 2
		}
		formula := s.Passes * (workers - 1) * report.Dataset.Nodes * s.Columns * value
		t.Logf("%s: %.0f bytes from worker to worker, the formula says %.0f: %.3f", s.Name, s.Network, formula, s.Network/formula)
		least, most := 0.9, 1.1
		if testprogram.Small {
			most = 1.25 // each frame has a header, of fewer rows
		}
		if workers > 2 {
			least, most = 0.35, 0.6
		}
		if ratio := s.Network / formula; once && !(least <= ratio && ratio <= most) {
			t.Errorf("%s: %.0f bytes from worker to worker, the formula says %.0f", s.Name, s.Network, formula)
		}
	}
}
