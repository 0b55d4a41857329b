package ndls

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"ndls/coordinator"
	"ndls/internal/control"
	"ndls/internal/rundir"
	"ndls/internal/vfs"
)

// SplitAccuracy is an accuracy on each split, nil for a split without nodes.
type SplitAccuracy = control.SplitAccuracy

// A RunSummary is a run directory at a glance.
type RunSummary struct {
	Run string `json:"run"`
	// Problem says what is missing or damaged. Where State is empty no more is known of it: its record or its catalogue is
	// damaged, or of another version.
	Problem string `json:"problem,omitempty"`
	// Dataset is the dataset of the run, as its plan names it.
	Dataset string `json:"dataset,omitempty"`
	State   State  `json:"state,omitempty"`
	// Reason says why State is FAILED, Stopped that nothing has failed: somebody has stopped the run, and the
	// same command continues it.
	Reason  string `json:"reason,omitempty"`
	Stopped bool   `json:"stopped,omitempty"`
	// Stage is the first stage that is not complete, of those that were asked for; "" if there is none.
	Stage Stage `json:"stage,omitempty"`
	// Working reports whether a process works on the run now.
	Working bool `json:"working"`
	// Bytes is the size of the committed files.
	Bytes int64 `json:"bytes"`
	// Before and After are the accuracies before and after label smoothing.
	Before SplitAccuracy `json:"before_label_smoothing,omitzero"`
	After  SplitAccuracy `json:"after_label_smoothing,omitzero"`
	// Changed is the time of the last write of the record, as far as the file system tells.
	Changed time.Time `json:"changed,omitzero"`
}

// Summary says what [List] says of the run directory.
func (d *Directory) Summary(ctx context.Context) RunSummary {
	rec := d.record
	s := RunSummary{
		Run: d.uri, Problem: d.problem, Dataset: rec.Plan.Partition.Dataset, State: rec.State, Reason: rec.Reason,
		Stopped: rec.Stopped, Changed: d.Changed(),
	}
	if s.State == Running {
		s.Working = d.Working(ctx)
	}
	for _, x := range rec.Progress() {
		if x.State != Complete {
			s.Stage = x.Stage
			break
		}
	}
	for _, g := range d.Files() {
		s.Bytes += g.Bytes
	}
	if x := rec.Stage(StageEvaluate); x != nil && x.Accuracy != nil {
		s.Before, s.After = x.Accuracy.Base, x.Accuracy.Smoothed
	}
	return s
}

// Changed returns the time of the last write of the record, such as when the stage under way began;
// the zero time for a run directory in an object store.
func (d *Directory) Changed() time.Time { return changed(d.uri) }

// changed returns the time of the last write of the record of a local run directory.
func changed(dir string) (at time.Time) {
	if rundir.Remote(dir) {
		return at
	}
	if info, err := vfs.Stat(filepath.Join(dir, coordinator.RecordName)); err == nil {
		at = info.ModTime()
	}
	return at
}

// List calls visit for each run directory that is one of some folders or lies below one, in order of
// name. It reads records and catalogues, and no data. Folders inside of a run directory, links, and folders that cannot be
// read are passed over. A prefix of an object store, s3://bucket/prefix, is a folder, too.
func List(ctx context.Context, folders []string, visit func(RunSummary) error) (err error) {
	defer func() { err = interruption(ctx, err) }()
	for _, folder := range folders {
		below := runsBelow
		if rundir.Remote(folder) {
			below = runsInStore
		} else if info, err := vfs.Stat(folder); err != nil {
			return err
		} else if !info.IsDir() {
			return fmt.Errorf("%s is a file; give a folder", folder)
		}
		if err := below(ctx, folder, func(dir string) error { return summarise(ctx, dir, visit) }); err != nil {
			return err
		}
	}
	return nil
}

// summarise gives visit a run directory, unless it is none.
func summarise(ctx context.Context, dir string, visit func(RunSummary) error) error {
	d, err := Open(ctx, dir)
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.Is(err, ErrForeign), errors.Is(err, ErrNoRun):
		return nil
	case err != nil:
		return visit(RunSummary{Run: dir, Problem: Message(err), Changed: changed(dir)})
	}
	return visit(d.Summary(ctx))
}

// runsBelow finds folders with a record.
func runsBelow(ctx context.Context, dir string, visit func(dir string) error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if info, err := vfs.Stat(filepath.Join(dir, coordinator.RecordName)); err == nil && info.Mode().IsRegular() {
		return visit(dir)
	}
	entries, err := vfs.ReadDir(dir)
	if err != nil {
		return nil //nolint:nilerr // a folder that may not be read is passed over
	}
	for _, e := range entries {
		if !e.IsDir() {
			continue
		}
		if err := runsBelow(ctx, filepath.Join(dir, e.Name()), visit); err != nil {
			return err
		}
	}
	return nil
}

// runsInStore finds prefixes of an object store with a record.
func runsInStore(ctx context.Context, uri string, visit func(dir string) error) error {
	store, err := rundir.Open(ctx, uri, false)
	if err != nil {
		return err
	}
	files, err := store.List(ctx, "")
	if err != nil {
		return err
	}
	base, query, _ := strings.Cut(uri, "?")
	if query != "" {
		query = "?" + query
	}
	last := "" // the run directory whose files come
	for _, f := range files {
		name, isRecord := strings.CutSuffix("/"+f.Name, "/"+coordinator.RecordName)
		if !isRecord || f.Attempt || last != "" && strings.HasPrefix("/"+f.Name, last) {
			continue
		}
		last = name + "/"
		if err := visit(strings.TrimSuffix(base, "/") + name + query); err != nil {
			return err
		}
	}
	return nil
}
