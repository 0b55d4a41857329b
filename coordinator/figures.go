package coordinator

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"math"
	"path/filepath"
	"slices"
	"strings"

	"ndls/estimate"
	"ndls/internal/control"
	"ndls/internal/progress"
	"ndls/internal/vfs"
	"ndls/shards"
	"ndls/stage"
	"ndls/stage/registry"
)

// forecast plans the stages of a job: what they take and how long.
type forecast struct{ *Job }

func (j *Job) forecast() forecast { return forecast{j} }

// counts returns what is known of the graph: first what the dataset states, later what the partition found, then what other stages found.
// Without a number of nodes the counts are not enough to plan.
func (j forecast) counts(ctx context.Context, rec *Record) (estimate.Counts, error) {
	c := j.Counts
	if rec.Done(control.Partition) {
		sum, err := shards.ReadSummary(ctx, j.Catalog)
		if err != nil {
			return c, err
		}
		hops, on := c.Hops, c.TrainOn
		c = stage.CountsOf(j.Catalog, sum)
		c.Hops, c.TrainOn = hops, on
	}
	c.Epsilons = j.Inputs.LabelEpsilons
	c.Hops = cmp.Or(c.Hops, j.Plan.LSI.Kmax)
	for _, x := range rec.Stages {
		if x.State == Complete {
			stage.Learn(&c, x.StageReport)
		}
	}
	return c, nil
}

// besideBytes bounds what a small run directory holds beside catalogued output: catalogue, journal, record and reports took 294 kB.
const besideBytes = 384 << 10

// bytes returns the disk space of the catalogued output of some stages, in whole pages, and of what lies beside it.
func (j forecast) bytes(of func(control.Stage) bool) (n int64) {
	n = besideBytes
	for _, e := range j.Catalog.Entries("") {
		if of(control.Stage(e.Stage)) {
			n += wholePages(e.Bytes)
		}
	}
	return n
}

// wholePages rounds the size of a file up to what it takes on a disk.
func wholePages(n int64) int64 { return (n + 4095) / 4096 * 4096 }

// figures plans a stage from what is known now. It returns nil if that is not enough.
func (j forecast) figures(ctx context.Context, rec *Record, s control.Stage) (*control.Figures, error) {
	c, err := j.counts(ctx, rec)
	if err != nil || c.Nodes == 0 {
		return nil, err
	}
	if j.Resources.Memory == 0 {
		return j.sharedFigures(ctx, c, s)
	}
	held := j.bytes(func(by control.Stage) bool { return by != s })
	list, err := j.estimate(ctx, c, held, s)
	if err != nil {
		return nil, err
	}
	return &list[0], j.checkDisk(c, held, s)
}

// expected returns the expected seconds of a stage with these figures and of those after it. planned may be nil. Complete stages tell how
// much faster or slower than their plans this run is.
func (j forecast) expected(ctx context.Context, rec *Record, s control.Stage, planned *control.Figures,
	later []control.Stage,
) progress.Stage {
	pace := rec.pace()
	x := progress.Stage{Name: string(s), After: -1}
	if planned != nil {
		x.Planned = pace * planned.Seconds
	}
	c, err := j.counts(ctx, rec)
	if err != nil || c.Nodes == 0 {
		return x
	}
	if planned == nil {
		if list, err := j.times(ctx, c, s); err == nil {
			x.Planned = pace * list[0].Seconds
		}
	}
	later = slices.DeleteFunc(slices.Clone(later), func(s control.Stage) bool {
		return rec.Done(s) || registry.Of(s)[0].Lacks(j.Plan, c.Facts(j.Plan)) != ""
	})
	list, err := j.times(ctx, c, later...)
	if err != nil {
		return x // the stage itself will say what does not fit
	}
	x.After = 0
	for _, f := range list {
		x.After += pace * f.Seconds
	}
	return x
}

// errNobody reports that no worker is present for which stages could be planned.
var errNobody = errors.New("no worker is here")

// times plans the seconds of stages. If each worker has its own resources, it plans for the present workers, each with the resources of the
// one with most memory. It refuses nothing.
func (j forecast) times(ctx context.Context, c estimate.Counts, stages ...control.Stage) ([]control.Figures, error) {
	if j.Resources.Memory > 0 {
		return j.estimate(ctx, c, 0, stages...)
	}
	here := j.Tasks.Here()
	if len(here) == 0 {
		return nil, errNobody
	}
	most := slices.MaxFunc(here, func(a, b control.Hello) int { return cmp.Compare(a.Memory, b.Memory) })
	return j.Parallel.Figures(j.GroupSize, c, j.Plan, most.Resources(), j.Tasks.Workers(), 0, registry.Costs(stages...)...)
}

// paceWeight is the number of planned seconds that pace adds to the complete stages, so that a stage of a moment has little influence on
// stages of hours.
const paceWeight = 10

// pace returns the factor between the planned seconds of a stage and the seconds in this run.
func (r *Record) pace() float64 {
	planned, took := float64(paceWeight), float64(paceWeight)
	for _, x := range r.Stages {
		if x.State == Complete && x.Planned != nil {
			planned += x.Planned.Seconds
			took += x.Seconds
		}
	}
	return took / planned
}

// sharedFigures plans the partition for the workers that are present when it begins. It refuses a partition whose largest piece fits into
// the memory of no worker, which would otherwise be found out late.
func (j forecast) sharedFigures(ctx context.Context, c estimate.Counts, s control.Stage) (*control.Figures, error) {
	if s != control.Partition || len(j.Tasks.UnderWay()) > 0 {
		return nil, nil
	}
	list, err := j.Tasks.Sharers(ctx, false)
	there := slices.Concat(list.Fit, list.Held)
	if err != nil || len(there) == 0 {
		return nil, err
	}
	most := slices.MaxFunc(there, func(a, b control.Hello) int { return cmp.Compare(a.Memory, b.Memory) })
	workers := j.Tasks.Workers()
	planned, err := estimate.RunCut(c, j.Plan, most.Resources(), workers, 0, registry.Costs(s)...)
	if err != nil {
		return nil, err
	}
	free, ok := freeSpace(j.Store.URI(), "")
	if !ok {
		return &planned[0], nil
	}
	free.Same, free.Scratch = false, math.MaxInt64 // each worker has its own
	held := j.bytes(func(control.Stage) bool { return true })
	return &planned[0], estimate.CheckDisk(c, j.Plan, most.Resources(), workers, 0, held, free, registry.Costs(s)...)
}

// measureFrom is the number of seconds, planned with usual speeds, from which this machine is measured first. A measurement takes a second.
const measureFrom = 60

// estimate plans stages as workers will share them. If they take long, it uses the measured speeds of the machine.
func (j forecast) estimate(ctx context.Context, c estimate.Counts, held int64, stages ...control.Stage) ([]control.Figures, error) {
	list, err := j.estimated(c, held, stages...)
	if err != nil || j.Measure == nil {
		return list, err
	}
	seconds := 0.0
	for _, f := range list {
		seconds += f.Seconds
	}
	if seconds < measureFrom {
		return list, nil
	}
	measure := j.Measure
	j.Measure = nil
	if j.Resources.Speeds, err = measure(ctx); err != nil {
		j.Resources.Speeds = control.Speeds{}
		j.Log.Warn("cannot measure the machine; seconds are planned with usual speeds", "because", err)
		return list, ctx.Err()
	}
	s := j.Resources.Speeds
	j.Log.Info("measured the machine", "edges_per_second", s.Edges, "flops", s.Flops, "values_per_second", s.Values,
		"bytes_written_per_second", s.Write, "bytes_read_per_second", s.Read)
	return j.estimated(c, held, stages...)
}

// noteLimits copies the highest speeds of the host into the record, if they were measured.
func (j forecast) noteLimits(rec *Record) {
	if l := control.LimitsOf(j.Resources.Speeds, j.Resources.Threads); l != nil {
		rec.Limits = l
	}
}

func (j forecast) estimated(c estimate.Counts, held int64, stages ...control.Stage) ([]control.Figures, error) {
	return j.Parallel.Figures(j.GroupSize, c, j.Plan, j.resources(), j.Workers, held, registry.Costs(stages...)...)
}

// refuse returns an error if the stages to run do not fit, before they begin.
func (j forecast) refuse(ctx context.Context, rec *Record, stages []control.Stage) error {
	c, err := j.counts(ctx, rec)
	if err != nil || c.Nodes == 0 || j.Resources.Memory == 0 {
		return err
	}
	stages = slices.DeleteFunc(slices.Clone(stages), func(s control.Stage) bool {
		return rec.Done(s) || registry.Of(s)[0].Lacks(j.Plan, c.Facts(j.Plan)) != ""
	})
	held := j.bytes(func(s control.Stage) bool { return !slices.Contains(stages, s) })
	if _, err := j.estimate(ctx, c, held, stages...); err != nil {
		return err
	}
	return j.checkDisk(c, held, stages...)
}

func (j forecast) checkDisk(c estimate.Counts, held int64, stages ...control.Stage) error {
	r := j.resources()
	there := j.bytes(func(control.Stage) bool { return true })
	free, ok := freeSpace(j.Store.URI(), r.Scratch)
	switch {
	case j.Resources.Disk > 0 && (!ok || j.Resources.Disk-there < free.Run):
		free = estimate.Space{Run: max(j.Resources.Disk-there, 0), Same: true, Bounded: true}
	case !ok:
		return nil
	}
	return estimate.CheckDisk(c, j.Plan, r, j.Workers, held, there, free, registry.Costs(stages...)...)
}

// resources returns the resources of the job. Run directory and temporary files can use no more of a disk than is free on it.
func (j forecast) resources() control.Resources {
	r := j.Resources
	if free, ok := freeSpace(j.Store.URI(), r.Scratch); ok && free.Same {
		most := j.bytes(func(control.Stage) bool { return true }) + free.Run
		if r.Disk == 0 || most < r.Disk {
			r.Disk = max(most, 1)
		}
	}
	return r
}

// freeSpace asks the file systems of two folders, which need not exist yet. ok is false for stores that are no folder, and for file systems
// that report no size, such as ramfs.
func freeSpace(run, scratch string) (s estimate.Space, ok bool) {
	if strings.Contains(run, "://") {
		return s, false
	}
	var devices [2]uint64
	for i, dir := range []string{run, scratch} {
		device, space, err := existing(dir)
		if err != nil || space.Total == 0 {
			return s, false
		}
		devices[i] = device
		if i == 0 {
			s.Run = space.Free
		} else {
			s.Scratch = space.Free
		}
	}
	s.Same = devices[0] == devices[1]
	return s, true
}

// existing asks the file system of the nearest existing folder above dir.
func existing(dir string) (device uint64, space vfs.Space, err error) {
	if dir, err = filepath.Abs(dir); err != nil {
		return 0, space, err
	}
	info, err := vfs.Stat(dir)
	for errors.Is(err, fs.ErrNotExist) && dir != filepath.Dir(dir) {
		dir = filepath.Dir(dir)
		info, err = vfs.Stat(dir)
	}
	if err != nil {
		return 0, space, err
	}
	space, err = vfs.Statfs(dir)
	return vfs.Device(info), space, err
}
