package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"time"

	"ndls/catalog"
	"ndls/coordinator"
	"ndls/internal/control"
	"ndls/internal/storage"
	"ndls/plan"
	"ndls/stage/registry"
)

// limits measures what a coordinator with a folder takes for leases and for commits.
func limits(ctx context.Context, w io.Writer, dir string, files []int) error {
	fmt.Fprintln(w, "| what | files in the catalogue | median, ms | longest, ms |")
	fmt.Fprintln(w, "|---|---|---|---|")
	for _, n := range files {
		lease, commit, err := limit(ctx, dir, n)
		if err != nil {
			return err
		}
		for _, x := range []struct {
			what string
			took []time.Duration
		}{{"lease a task and finish it: two records", lease}, {"commit: the catalogue and a record", commit}} {
			slices.Sort(x.took)
			fmt.Fprintf(w, "| %s | %d | %.2f | %.2f |\n", x.what, n, milliseconds(x.took[len(x.took)/2]), milliseconds(x.took[len(x.took)-1]))
		}
	}
	return nil
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// rounds is the number of times that each is measured.
const rounds = 30

// limit measures with so many files in the catalogue.
func limit(ctx context.Context, dir string, files int) (lease, commit []time.Duration, err error) {
	if dir, err = os.MkdirTemp(dir, "limits-"); err != nil {
		return nil, nil, err
	}
	defer os.RemoveAll(dir)
	store, err := storage.NewLocal(dir)
	if err != nil {
		return nil, nil, err
	}
	journal, err := coordinator.OpenJournal(ctx, store)
	if err != nil {
		return nil, nil, err
	}
	cat, err := catalog.Open(ctx, store)
	if err != nil {
		return nil, nil, err
	}
	var listed []catalog.Entry
	for i := range files {
		listed = append(listed, catalog.Entry(entry(i)))
	}
	if err := cat.Apply(ctx, listed, nil, false); err != nil {
		return nil, nil, err
	}
	s, err := coordinator.NewScheduler(ctx, journal, cat, plan.Default(), coordinator.Options{
		Version: version, Log: slog.New(slog.NewTextHandler(io.Discard, nil)),
	})
	if err != nil {
		return nil, nil, err
	}
	var tasks []control.Task
	for i := range rounds {
		tasks = append(tasks, control.Task{Stage: control.Smooth, Part: control.Columns, First: i, Last: i + 1})
	}
	done := make(chan error, 1)
	go func() {
		_, err := s.Run(ctx, tasks)
		done <- err
	}()
	if lease, commit, err = serve(ctx, s, files); err != nil {
		return nil, nil, err
	}
	return lease, commit, <-done
}

// smoothing is the hash of the default plan for smoothed files.
var smoothing = registry.Hashes(plan.Default())[string(control.Smooth)]

func entry(i int) catalog.Entry {
	return catalog.Entry{
		Kind: catalog.KindSmoothedTile, Path: fmt.Sprintf("smoothed/tiles/tile-%05d-00000.f32", i), Bytes: 1 << 30,
		Checksum: fmt.Sprintf("sha256:%064x", uint64(i)*0x9e3779b97f4a7c15), Interval: int32(i), Block: int32(i % 8),
		Stage: string(control.Smooth), Plan: smoothing,
	}
}

// serve is a worker that does nothing but ask, commit and finish.
func serve(ctx context.Context, s *coordinator.Scheduler, files int) (lease, commit []time.Duration, err error) {
	if _, err = s.Join(ctx, control.Hello{Worker: "w", Version: version}); err != nil {
		return nil, nil, err
	}
	for i := range rounds {
		begun := time.Now()
		l, err := s.Next(ctx, "w")
		if err != nil {
			return nil, nil, err
		}
		got := time.Now()
		if err := s.Commit(ctx, l.Fencing, control.Change{Added: []catalog.Entry{entry(files + i)}}); err != nil {
			return nil, nil, err
		}
		committed := time.Now()
		if err := s.Finish(ctx, l.Fencing, control.Outcome{Report: &control.StageReport{Stage: control.Smooth}}); err != nil {
			return nil, nil, err
		}
		lease = append(lease, got.Sub(begun)+time.Since(committed))
		commit = append(commit, committed.Sub(got))
	}
	return lease, commit, nil
}
