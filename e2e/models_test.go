package e2e

import (
	"path/filepath"
	"slices"
	"testing"
	"time"
)

// modelJob is gridJob with a model whose training takes some seconds.
var modelJob = append(slices.Clone(gridJob), "--epochs", "24", "--patience", "0", "--hidden", "100", "--layers", "3")

// TestModelsTogether has groups train the model of a run: of two workers and of three, and of two one of which is killed when
// the group begins and another time in the midst of an epoch, with one that takes its place.
func TestModelsTogether(t *testing.T) {
	whole(t)
	t.Parallel()
	want := wantOf(t, modelJob...)
	for name, tc := range map[string]struct {
		size   string
		killed bool
	}{"two": {"2", false}, "three": {"3", false}, "killed": {"2", true}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCluster(t)
			c.mode = mode{job: modelJob, share: []string{"--parallel", "grid", "--group-size", tc.size}}
			c.prepare("partition", "lsi", "smooth")
			if tc.killed {
				c.coordinator(2)
				c.worker([]string{"gang-done:1:kill"}, "--memory", "512MiB")
				c.worker([]string{"renew:2:kill"}, "--memory", "512MiB")
				awaitEvery(t, 20*time.Millisecond, "a death", func() bool { return c.died.Load() > 0 })
				c.worker(nil, "--memory", "512MiB")
			} else {
				c.coordinator(3)
				for range 3 {
					c.worker(nil, "--memory", "512MiB")
				}
			}
			c.end(name, want)
			var report struct {
				Stages []struct {
					Name    string  `json:"name"`
					Network float64 `json:"network_bytes"`
				} `json:"stages"`
			}
			decode(t, filepath.Join(c.dir, "report.json"), &report)
			for _, s := range report.Stages {
				// Beside other programs both kills may come before anything is sent; the third worker trains alone then.
				if s.Name == "train" && s.Network < 1e6 && !tc.killed {
					t.Errorf("the workers that trained sent %.0f bytes to each other", s.Network)
				}
			}
			if tc.killed && c.died.Load() == 0 {
				t.Error("no worker was killed")
			}
		})
	}
}
