package estimate

import (
	"fmt"
	"slices"
	"strings"

	"ndls/internal/control"
	"ndls/internal/failure"
	"ndls/internal/mem"
	"ndls/internal/packed"
	"ndls/plan"
)

// ErrDisk reports a run that does not fit the disk.
var ErrDisk = failure.Kind("does not fit the disk")

// Space holds the free bytes for a run directory and for scratch files, and whether both share the
// same space.
type Space struct {
	Run, Scratch int64
	Same         bool
	// Bounded says that the user allows no more, although the disk may have more.
	Bounded bool
}

// need returns the disk that some stages need beyond what is there already. If scratch files have
// space of their own, it leaves out the scratch files that exist while the run directory is small.
func need(list []control.Figures, there int64, same bool) (n Space) {
	for _, f := range list {
		run := f.PeakDiskBytes - there
		if !same {
			run -= f.ScratchBytes
		}
		n.Run, n.Scratch = max(n.Run, run), max(n.Scratch, f.ScratchBytes)
	}
	return n
}

// CheckDisk refuses stages of so many workers with [ErrDisk] if free has no room for them. held is
// as for [Run]; there is the present size of the run directory, partial output of the stages
// included.
func CheckDisk(c Counts, p plan.Options, r control.Resources, workers int, held, there int64, free Space, stages ...Stage) error {
	list, err := RunCut(c, p, r, workers, held, stages...)
	if len(list) == 0 {
		return err
	}
	missing := func(list []control.Figures) (what string, bytes, has int64) {
		switch n := need(list, there, free.Same); {
		case free.Same:
			return "the run directory and scratch files", n.Run, free.Run
		case n.Run > free.Run:
			return "the files of the run directory", n.Run, free.Run
		default:
			return "scratch files", n.Scratch, free.Scratch
		}
	}
	what, bytes, has := missing(list)
	if bytes <= has {
		return nil
	}
	var fits []string
	try := func(flag string, p plan.Options, r control.Resources) {
		possible := slices.DeleteFunc(slices.Clone(stages), func(s Stage) bool { return s.Lacks(p, c.Facts(p)) != "" })
		list, err := RunCut(c, p, r, workers, held, possible...)
		if _, less, _ := missing(list); less < bytes && err == nil {
			fits = append(fits, fmt.Sprintf("%s (%s)", flag, mem.Bytes(max(less, 0))))
		}
	}
	for _, w := range remedies(p, stages) {
		try(w.flag, w.plan, r)
	}
	narrow := r
	narrow.BlockColumns = packed.PanelColumns
	try(fmt.Sprintf("--block-columns %d", packed.PanelColumns), p, narrow)
	state, more := "are free", "another --run or --scratch"
	if free.Bounded {
		state, more = "are left of --disk", "a larger --disk"
	}
	fits = append(fits, more)
	return fmt.Errorf("estimate: %s need %s (%d bytes), %s (%d bytes) %s; what needs less: %s: %w",
		what, mem.Bytes(bytes), bytes, mem.Bytes(has), has, state, strings.Join(fits, ", "), ErrDisk)
}

// remedy is a plan that needs less disk.
type remedy struct {
	flag string
	plan plan.Options
}

// remedies lists the options that can still be changed before these stages.
func remedies(p plan.Options, stages []Stage) (all []remedy) {
	add := func(stage control.Stage, flag string, field func(*plan.Options) *string, value string) {
		q := p
		begins := slices.ContainsFunc(stages, func(s Stage) bool { return s.Name() == stage })
		if x := field(&q); begins && *x != value {
			*x = value
			all = append(all, remedy{flag, q})
		}
	}
	add(control.Smooth, "--targets labelled", func(p *plan.Options) *string { return &p.Smooth.Targets }, plan.LabelledTargets)
	add(control.Predict, "--probabilities best", func(p *plan.Options) *string { return &p.Probabilities }, plan.BestProbability)
	add(control.Smooth, "--smoothed-precision float16", func(p *plan.Options) *string { return &p.Smooth.SmoothedPrecision }, "float16")
	add(control.LSI, "--precision float16", func(p *plan.Options) *string { return &p.Precision }, "float16")
	add(control.Partition, "--shards none", func(p *plan.Options) *string { return &p.Partition.Shards }, "none")
	add(control.Partition, "--features none", func(p *plan.Options) *string { return &p.Partition.Features }, "none")
	if dropped := p; slices.ContainsFunc(stages, func(s Stage) bool { return s.Name() == control.Smooth }) && !p.DropFeatures {
		dropped.DropFeatures = true
		all = append(all, remedy{"--keep-features=false", dropped})
	}
	return all
}
