package ndls_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ndls"
)

// TestFailureOutsideATask names what has failed where no task of a worker has: stages are asked for without one that
// they read from.
func TestFailureOutsideATask(t *testing.T) {
	for name, watching := range map[string]ndls.Watching{
		"nobody watches": {}, "metrics are written": {MetricsFile: filepath.Join(t.TempDir(), "metrics.prom")}, "a page is served": {HTTP: "127.0.0.1:0"},
	} {
		c := quick(filepath.Join(t.TempDir(), "run"))
		c.Watching = watching
		_, err := ndls.Run(context.Background(), c, ndls.StagePartition, ndls.StageLSI, ndls.StageSmooth, ndls.StageTrain, ndls.StageSmoothLabels)
		if err == nil || errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "smooth-labels reads the output of predict") || ndls.ExitStatus(err) != ndls.ExitError {
			t.Errorf("%s: %v, status %d", name, err, ndls.ExitStatus(err))
		}
	}
}

// TestStoppedWhileWatched has a run that somebody watches end by its context: it is told as that.
func TestStoppedWhileWatched(t *testing.T) {
	ctx, cancel := context.WithCancelCause(context.Background())
	c := quick(filepath.Join(t.TempDir(), "run"))
	c.Watching.MetricsFile = filepath.Join(t.TempDir(), "metrics.prom")
	c.Progress = func(ndls.Progress) {}
	cancel(ndls.ErrTerminated)
	if _, err := ndls.Run(ctx, c); ndls.ExitStatus(err) != ndls.ExitTerminated {
		t.Errorf("%v, status %d", err, ndls.ExitStatus(err))
	}
}

// TestAttemptsAtRecordsAreRemoved runs a run again in which a process that was killed has left temporary files of its records. Files
// of a user with other names stay.
func TestAttemptsAtRecordsAreRemoved(t *testing.T) {
	c := quick(filepath.Join(t.TempDir(), "run"))
	if _, err := ndls.Run(context.Background(), c, ndls.StagePartition); err != nil {
		t.Fatal(err)
	}
	put := func(names ...string) {
		t.Helper()
		for _, name := range names {
			if err := os.WriteFile(filepath.Join(c.Run, name), []byte("x"), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	left := func(names ...string) (there []string) {
		for _, name := range names {
			if _, err := os.Stat(filepath.Join(c.Run, name)); err == nil {
				there = append(there, name)
			}
		}
		return there
	}
	const attempt = ".0123456789abcdef.tmp"
	made := []string{"run.json" + attempt, "catalog.parquet" + attempt, "catalog/0000000009.json" + attempt, "journal/00000009.json" + attempt, "report.json" + attempt, "report.html" + attempt, "graph/nodes.parquet" + attempt}
	mine := []string{"run.json.tmp", "run.json.bak", "notes.txt" + attempt, "notes.txt", "journal/notes.txt.gz" + ".tmp"}
	put(made...)
	put(mine...)
	if err := os.Remove(filepath.Join(c.Run, "catalog.parquet")); err != nil {
		t.Fatal(err)
	}
	for i, want := range []int{len(made), 0} { // the first run makes the catalogue again, and removes nothing
		if _, err := ndls.Run(context.Background(), c, ndls.StagePartition); err != nil {
			t.Fatal(err)
		}
		if there := left(made...); len(there) != want {
			t.Errorf("run %d leaves %v", i, there)
		}
	}
	if there := left(mine...); len(there) != len(mine) {
		t.Errorf("of the user's files %v are left", there)
	}
}
