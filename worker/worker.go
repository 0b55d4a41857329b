package worker

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime/debug"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"golang.org/x/sys/unix"

	"ndls/catalog"
	"ndls/internal/busy"
	"ndls/internal/control"
	"ndls/internal/direct"
	"ndls/internal/mem"
	"ndls/internal/storage"
	"ndls/internal/tracing"
	"ndls/internal/vfs"
	"ndls/spmv"
	"ndls/stage"
	"ndls/stage/registry"
)

// Worker runs tasks against one run directory, one at a time.
type Worker struct {
	store *storage.Counting
	cat   *catalog.Catalog
	// session stays open between tasks of the same part, which differ only in their columns, and in
	// bounds that are not rows of the graph. It is nil before the first task.
	session *stage.Session
	part    control.Task
	saver   *saver
	gangs   *gangs
	// scratchOnly says that the coordinator measures the run directory: many workers that walk
	// through a shared folder burden its server, and find the same.
	scratchOnly bool
	// disk watches the disk of the task under way.
	disk atomic.Pointer[diskWatch]
}

// New returns a worker on the run directory behind store, whose catalogue is
// cat. [Worker.Close] must be called after tasks that are parts of a stage.
func New(store *storage.Counting, cat *catalog.Catalog) *Worker {
	return &Worker{store: store, cat: cat, gangs: noGangs()}
}

// Close releases what the worker keeps between tasks.
func (w *Worker) Close() {
	if w.session != nil {
		w.session.Close()
	}
	w.session = nil
	w.gangs.close()
}

// Execute runs a task. It returns after the task's output is committed. After an error or a
// cancelled context, running the same task again continues where the catalogue ends.
func (w *Worker) Execute(ctx context.Context, t control.Task) (control.StageReport, error) {
	if _, err := vfs.MkdirAll(t.Resources.Scratch, 0o777); err != nil {
		return control.StageReport{}, fmt.Errorf("worker: scratch: %w", err)
	}
	if err := w.keep(t); err != nil {
		return control.StageReport{}, err
	}
	// Where the kernel allows it, the peak resident size starts anew with the task, without what
	// earlier tasks have left; elsewhere it is the peak of the process.
	debug.FreeOSMemory()
	_ = os.WriteFile("/proc/self/clear_refs", []byte("5"), 0)
	folders := []string{t.Resources.Scratch}
	if !w.scratchOnly {
		folders = append(folders, w.store.URI())
	}
	disk := watchDisk(folders...)
	w.disk.Store(disk)
	env := &stage.Env{
		Session: w.session, Task: t, Plan: t.Plan, Inputs: t.Inputs, Resources: t.Resources,
		Catalog: w.cat, Disk: disk, Traffic: w.traffic, Report: control.StageReport{Stage: t.Stage},
	}
	env.States, env.Peers = &checkpoints{env, w.saver}, peers{env, w.gangs}
	read, written := w.traffic()
	threads := busy.Start(t.Resources.Threads, busy.ProcessTime)
	start := time.Now()
	traced, span := tracing.Span(ctx, "task", attribute.String("ndls.stage", string(t.Stage)), attribute.String("ndls.task", t.ID()),
		attribute.String("ndls.plan", t.Plan.Hash()))
	err := registry.Execute(traced, env)
	span(err, attribute.Int64("ndls.edges", env.Report.EdgesStreamed))
	env.Report.Seconds = time.Since(start).Seconds()
	env.Report.Busy = (*control.Busy)(threads.Stop())
	env.Report.MeasuredDisk = disk.stop()
	readNow, writtenNow := w.traffic()
	env.Report.BytesRead += readNow - read // in addition to what the stage has read of other run directories
	env.Report.BytesWritten += writtenNow - written
	env.Report.PlannedPeak = mem.Total(env.Budget.Peak())
	if env.Report.MeasuredPeak, err = peakRSS(err); err != nil {
		w.Close()
		return env.Report, err
	}
	if env.Whole() {
		w.Close()
	}
	return env.Report, nil
}

// traffic returns the bytes read and written so far in the run directory and in scratch.
func (w *Worker) traffic() (read, written int64) {
	read, written = direct.ScratchTraffic()
	return read + w.store.BytesRead(), written + w.store.BytesWritten()
}

// usage returns the present usage of the process.
func (w *Worker) usage() (u control.Usage) {
	u.Read, u.Written = w.traffic()
	passes := spmv.TrafficSoFar()
	u.Edges, u.Rows = passes.Edges, passes.Rows
	if disk := w.disk.Load(); disk != nil {
		u.Disk = disk.last.Load()
	}
	// If the kernel does not report the resident size, it is left out.
	if status, err := os.ReadFile("/proc/self/status"); err == nil {
		u.Memory, _ = residentSize(string(status))
	}
	return u
}

// peakRSS reads the process's peak resident size, unless err says that the stage failed already.
func peakRSS(err error) (int64, error) {
	if err != nil {
		return 0, err
	}
	status, err := os.ReadFile("/proc/self/status")
	if errors.Is(err, fs.ErrNotExist) { // without /proc: the peak since the process began
		var used unix.Rusage
		err = unix.Getrusage(unix.RUSAGE_SELF, &used)
		return used.Maxrss << 10, err
	}
	if err != nil {
		return 0, fmt.Errorf("worker: peak memory: %w", err)
	}
	return peakSize(string(status))
}

// keep opens what the part of t needs and closes the rest.
func (w *Worker) keep(t control.Task) error {
	if t.Shares() {
		t.Part = control.Strips // a choice has the same rows
	}
	t = stage.Sharing(t)
	t.FirstPanel, t.LastPanel = 0, 0
	if w.session != nil && w.part == t {
		return nil
	}
	w.Close()
	w.cat.Bind(registry.Binding(t.Plan))
	budget, err := mem.NewBudget(t.Resources.Memory)
	if err != nil {
		return err
	}
	w.session, w.part = &stage.Session{Budget: budget}, t
	return nil
}
