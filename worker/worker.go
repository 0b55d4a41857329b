package worker

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"time"

	"ndls/catalog"
	"ndls/group"
	"ndls/internal/control"
	"ndls/internal/direct"
	"ndls/internal/mem"
	"ndls/internal/storage"
	"ndls/internal/vfs"
)

// Worker executes tasks against one run directory, one at a time.
type Worker struct {
	store  *storage.Counting
	cat    *catalog.Catalog
	kept   *kept // nil before the first task
	saving *saving
	gangs  *gangs
}

// New returns a worker on the run directory behind store, whose catalogue is
// cat. [Worker.Close] must be called after tasks that are parts of a stage.
func New(store *storage.Counting, cat *catalog.Catalog) *Worker {
	return &Worker{store: store, cat: cat, gangs: noGangs()}
}

// Close gives back what the worker keeps between tasks.
func (w *Worker) Close() {
	if w.kept != nil {
		w.kept.release()
	}
	w.kept = nil
	w.gangs.close()
}

// job is one task being executed.
type job struct {
	*kept
	task   control.Task
	cat    *catalog.Catalog
	plan   control.Plan
	inputs control.Inputs
	res    control.Resources
	disk   *diskWatch
	saving *saving
	gangs  *gangs
	group  group.Group // of workers that share the rows of the graph
	report control.StageReport
}

var stages = map[control.Stage]func(*job, context.Context) error{
	control.Partition:    (*job).partition,
	control.LSI:          (*job).lsi,
	control.Smooth:       (*job).smooth,
	control.Train:        wholeOnly((*job).train),
	control.Predict:      wholeOnly((*job).predict),
	control.SmoothLabels: (*job).smoothLabels,
	control.Evaluate:     wholeOnly((*job).evaluate),
}

// Execute carries out a task. It returns when the task's output is committed;
// after an error or a cancelled context, executing the same task again goes on
// where the catalogue stands.
func (w *Worker) Execute(ctx context.Context, t control.Task) (control.StageReport, error) {
	run, ok := stages[t.Stage]
	if !ok {
		return control.StageReport{}, fmt.Errorf("worker: unknown stage %q", t.Stage)
	}
	if _, err := vfs.MkdirAll(t.Resources.Scratch, 0o755); err != nil {
		return control.StageReport{}, fmt.Errorf("worker: scratch: %w", err)
	}
	if err := w.keep(t); err != nil {
		return control.StageReport{}, err
	}
	// The peak resident size starts anew with the task, without what tasks before
	// have left, where the kernel allows that; elsewhere it is that of the process
	// so far.
	debug.FreeOSMemory()
	_ = os.WriteFile("/proc/self/clear_refs", []byte("5"), 0)
	disk := watchDisk(w.store.URI(), t.Resources.Scratch)
	j := &job{
		kept: w.kept, task: t, cat: w.cat, plan: t.Plan, inputs: t.Inputs, res: t.Resources, disk: disk, saving: w.saving, gangs: w.gangs, group: group.Solo(0),
		report: control.StageReport{Stage: t.Stage},
	}
	read, written := w.traffic()
	start := time.Now()
	err := run(j, ctx)
	j.report.Seconds = time.Since(start).Seconds()
	j.report.MeasuredDisk = disk.stop()
	j.report.BytesRead, j.report.BytesWritten = w.traffic()
	j.report.BytesRead -= read
	j.report.BytesWritten -= written
	j.report.PlannedPeak = j.budget.Peak() + mem.RuntimeShare
	if j.report.MeasuredPeak, err = peakRSS(err); err != nil {
		w.Close()
		return j.report, err
	}
	if isWhole(t.Part) {
		w.Close()
	}
	return j.report, nil
}

// traffic is what went between memory and the run directory or scratch so far.
func (w *Worker) traffic() (read, written int64) {
	read, written = direct.ScratchTraffic()
	return read + w.store.BytesRead(), written + w.store.BytesWritten()
}

// peakRSS reads the process's peak resident size, unless err says the stage
// failed already.
func peakRSS(err error) (int64, error) {
	if err != nil {
		return 0, err
	}
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0, fmt.Errorf("worker: peak memory: %w", err)
	}
	return vmHWM(string(status))
}

// errNoFeatures and errNoLabels say what a dataset lacks for a stage.
var (
	errNoFeatures  = errors.New("the dataset has no features: there is nothing to smooth; `ndls lsi` works without")
	errSomeTargets = errors.New("soft labels are smoothed over the whole graph, and --targets left nodes without: use --targets all, or give --soft-labels for every node")
	errNoLabels    = errors.New("the dataset has no labels or no train and valid split: give labels, or --split random:20,30; `ndls lsi` and `ndls smooth` work without")
)
