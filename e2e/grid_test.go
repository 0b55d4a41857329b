package e2e

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ndls/internal/packed"
)

// gridJob has four strips of rows and four panels of columns, so that workers can share both.
var gridJob = []string{
	"--dataset", fmt.Sprintf("synthetic:nodes=%d,edges=%d,features=60,classes=5,seed=3", 3*packed.StripRows+1000, 6*packed.StripRows),
	"--probes", "32", "--runs", "1", "--epochs", "2", "--epsilon", "0.02", "--kmax", "7", "--label-kmax", "2", "--quiet",
}

// twoDimensions has groups of two workers, each for some columns.
var twoDimensions = mode{job: gridJob, share: []string{"--parallel", "grid", "--group-size", "2"}, late: "gang-done:2"}

// TestGrid has workers share rows and columns: in groups of equal size, with workers of all
// kinds, one that is left over, and members and coordinators that are killed.
func TestGrid(t *testing.T) {
	t.Parallel()
	want := wantOf(t, gridJob...)
	type worker struct {
		hooks []string
		flags []string
	}
	for name, tc := range map[string]struct {
		coordinator []string
		workers     []worker
	}{
		"killed, with one more": {
			coordinator: []string{"gang-done:3:kill", "commit-done:9:kill", "finish:5:kill"},
			workers:     []worker{{hooks: []string{"commit:4:kill", "gang-done:2:kill", "finish:2:kill"}}, {hooks: []string{"gang:3:kill", "commit-done:5:term"}}, {}, {}, {}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCluster(t)
			c.mode = twoDimensions
			c.coordinator(len(tc.workers), tc.coordinator...)
			for _, w := range tc.workers {
				c.worker(w.hooks, w.flags...)
			}
			c.end(name, want)
		})
	}
	for _, tc := range []struct {
		args string
		job  []string
	}{
		{"--workers 4 --parallel grid --memory 640MiB", append(slices.Clone(gridJob), "--smoothed-precision", "float16", "--rule", "appnp", "--targets", "labelled")},
		{"--workers 4 --parallel grid --group-size 2 --memory 640MiB", append(slices.Clone(gridJob), "--tolerance", "0", "--kmax", "14")},
	} {
		t.Run(tc.args+strings.Join(tc.job[len(gridJob):], " "), func(t *testing.T) {
			t.Parallel()
			c := newCluster(t)
			run(t, append(append([]string{"run", "--run", c.dir}, strings.Fields(tc.args)...), tc.job...)...)
			c.end(tc.args, wantOf(t, tc.job...))
		})
	}
}

// TestEdgesOfGroups: workers that share rows read the edges of their rows once where these stay in memory, and else with each hop,
// with the same bytes. With the smaller memory those of one worker stay, and those of the other do not.
func TestEdgesOfGroups(t *testing.T) {
	ofUsers(t)
	whole(t)
	t.Parallel()
	dense := []string{
		"--dataset", "synthetic:nodes=70000,edges=6000000,features=16,classes=5,seed=3",
		"--probes", "16", "--runs", "1", "--epochs", "1", "--kmax", "5", "--epsilon", "0.000001", "--label-kmax", "2", "--quiet",
	}
	want := wantOf(t, dense...)
	read := map[string]float64{}
	for _, memory := range []string{"400MiB", "2GiB"} {
		c := newCluster(t)
		run(t, append([]string{"run", "--run", c.dir, "--workers", "2", "--parallel", "intervals", "--memory", memory}, dense...)...)
		c.end(memory, want)
		var report struct {
			Stages []struct {
				Name string  `json:"name"`
				Read float64 `json:"bytes_read"`
			} `json:"stages"`
		}
		decode(t, filepath.Join(c.folder, "report.json"), &report)
		for _, s := range report.Stages {
			if s.Name == "lsi" {
				read[memory] = s.Read
			}
		}
	}
	const edges = 35e6 // bytes of the hop stream, which five hops read
	if once, often := read["2GiB"], read["400MiB"]; once < edges || once > 1.5*edges || often < 2*once {
		t.Errorf("lsi reads %.0f bytes with much memory, and %.0f with little", once, often)
	}
}
