package ndls

import (
	"cmp"
	"errors"
	"io"
	"log/slog"
	"slices"
	"strings"

	"ndls/coordinator"
	"ndls/estimate"
	"ndls/internal/cgroup"
	"ndls/internal/control"
	"ndls/internal/failure"
	"ndls/internal/mem"
	"ndls/internal/rundir"
	"ndls/plan"
	"ndls/report"
	"ndls/shards"
	"ndls/stage/depth"
	"ndls/stage/imports"
	"ndls/stage/registry"
)

// Stage names one step of a run.
type Stage = control.Stage

// The stages, in the order in which a whole run takes them.
const (
	StagePartition    = control.Partition
	StageLSI          = control.LSI
	StageSmooth       = control.Smooth
	StageTrain        = control.Train
	StagePredict      = control.Predict
	StageLabelDepth   = control.LabelDepth
	StageSmoothLabels = control.SmoothLabels
	StageEvaluate     = control.Evaluate
)

// StageDegrees describes the graph. A whole run leaves it out.
const StageDegrees = imports.Degrees

// StageSpectrum finds the second largest eigenvalue. A whole run leaves it out.
const StageSpectrum = depth.Spectrum

// Stages lists every stage in order.
func Stages() []Stage { return registry.Names() }

// About says in a line what a stage is for, "" for a name that stands for none.
func About(name Stage) string {
	for _, s := range registry.Of(name) {
		return s.About()
	}
	return ""
}

// InWhole reports whether a whole run takes a stage. The others are executed where they are
// named.
func InWhole(name Stage) bool { return slices.Contains(registry.Always(), name) }

// Needed lists a stage and all stages whose output it reads under options o, directly or not, in
// the order of a run.
func Needed(o Options, last Stage) (stages []Stage) {
	var need func(s Stage)
	need = func(s Stage) {
		for _, n := range registry.Needs(o, s) {
			need(n)
		}
		if !slices.Contains(stages, s) {
			stages = append(stages, s)
		}
	}
	need(last)
	return stages
}

// Options decide the bytes of a run directory: the same options and the same
// dataset give the same bytes.
type Options = plan.Options

// FastRP is the rule that makes features of the edges alone.
const FastRP = plan.FastRP

// DefaultOptions holds the default of every option that does not depend on the
// dataset.
func DefaultOptions() Options { return plan.Default() }

// OptionNames lists the options by the names of their flags without dashes. [Options.Set] and [Options.Get] take them.
func OptionNames() []string { return plan.Names() }

// OptionType says what the values of an option are: "number", "whole number", "text" or "true or false"; "" for a
// name that stands for no option.
func OptionType(name string) string {
	if x, ok := plan.Find(name); ok {
		return x.Type()
	}
	return ""
}

// UnusedOption is an option that decides nothing beside other options.
type UnusedOption = plan.Unused

// UnusedOptions lists the options that decide nothing under o, such as hops where the rule takes K
// hops of each node, and why.
func UnusedOptions(o Options) []UnusedOption { return o.Unused() }

// OptionValues lists the words that an option may be, also where it may be something else, such as a number or
// a file. It is empty for other options.
func OptionValues(name string) []string {
	x, _ := plan.Find(name)
	return slices.Clone(x.Words)
}

// CheckOptions says what is wrong about options, as a run does before it begins. Its error wraps [ErrOption].
func CheckOptions(o Options) error { return registry.Validate(o) }

// Types of what a run directory holds.
type (
	// State is the state of a run or of a stage.
	State = coordinator.State
	// Record is run.json: what was asked for, and how far it is.
	Record = coordinator.Record
	// StageRecord is one stage of a record.
	StageRecord = coordinator.StageRecord
	// InputFile is a file of the dataset as the partition has read it.
	InputFile = coordinator.InputFile
	// Report is report.json: what a run found and what it took.
	Report = report.Report
	// Graph describes the graph as imported.
	Graph = shards.Summary
	// Accuracy holds the accuracy of a run's models, Spread a figure over the models.
	Accuracy = control.AccuracyReport
	Spread   = control.Spread
	// Figures holds the planned cost of a stage.
	Figures = control.Figures
	// Counts holds the counts from which a plan is made.
	Counts = estimate.Counts
	// Status is how a run on several machines goes.
	Status = coordinator.Status
	// StageStatus is the state of a stage.
	StageStatus = coordinator.StageStatus
)

// SpreadOf is the mean of figures x and their deviation: those of the models of so many splits,
// split by split, and as many of each.
func SpreadOf(x []float64, splits int) *Spread { return control.SpreadOf(x, splits) }

// The states of a run and of a stage. A run that was killed without warning stays
// RUNNING.
const (
	Running  = coordinator.Running
	Complete = coordinator.Complete
	Failed   = coordinator.Failed
	// Waiting is the state of a stage that has not begun.
	Waiting = coordinator.Waiting
)

// Config says what to run, where and with what.
type Config struct {
	// Run is the run directory: a folder, or s3://bucket/prefix. It is made if it is
	// missing and a dataset is given.
	Run string
	// Dataset is the URI of the dataset. A run directory with a complete partition
	// needs none.
	Dataset string
	// SoftLabels is an Arrow file with the soft labels of another model, which are
	// smoothed in place of the run's own.
	SoftLabels string
	// TrainOn are run directories whose rows models are trained on, in place of the run's own:
	// the rows of the training nodes of the first, and of the validation nodes of the last.
	TrainOn []string
	// columnsOf is the run directory of the training nodes, which says how columns become features.
	columnsOf string
	// LabelEpsilons are distances for which smoothing is to be tried later. Where K is found by this
	// call, it is found for those above Options.LSI.Epsilon, too, in the same passes. They change no result.
	LabelEpsilons []float64
	// Options, unless nil, changes the options: those that the run directory was made
	// with, or the defaults. Smooth.Targets may name a file of input ids.
	Options func(*Options)
	// Check, unless nil, refuses options once Options has changed those of the run directory, or the
	// defaults. It may be called more than once.
	Check func(Options) error
	// Resources bounds what the run may use. It never changes bytes.
	Resources Resources
	// Discard discards what the stages, and those that read their output, have
	// committed. Otherwise the run continues what is there.
	Discard bool
	// Workers are worker processes on this host that share the resources. Without them
	// the calling process does the work.
	Workers Workers
	// Parallel says how workers share stages: "columns", "intervals", "grid", or "auto"
	// (default). A run without workers has nothing to share.
	Parallel string
	// GroupSize is the number of workers that share the rows of a block of columns with "grid"; 0
	// chooses it.
	GroupSize int
	// Watching says how others can see how the run goes.
	Watching Watching
	// Log gets what happens; nil drops it.
	Log *slog.Logger
	// Progress, unless nil, is called once a second with how far the present work is.
	Progress func(Progress)
}

// Over returns base with the options of c laid over it, and with the task that the files of the dataset state unless an option does.
func (c Config) Over(base Options) Options {
	if c.Options != nil {
		c.Options(&base)
	}
	if base.Partition.Task == "" {
		base.Partition.Task = imports.TaskOf(c.Dataset)
	}
	return base
}

// checkOptions refuses options, laid over those of base, that do not go together. The names of
// files and run directories stand for what is read from them later.
func (c Config) checkOptions(base Options) error {
	opts := c.Over(base)
	opts.Labels.SoftLabels = cmp.Or(c.SoftLabels, opts.Labels.SoftLabels)
	opts.Train.On = cmp.Or(strings.Join(c.TrainOn, ","), opts.Train.On)
	if err := registry.Validate(opts); err != nil || c.Check == nil {
		return err
	}
	return c.Check(opts)
}

// job is a Config with its stages.
type job struct {
	Config
	stages []Stage
	// whole leaves out stages that the dataset has nothing for; creates says that the
	// stages may begin with an empty run directory.
	whole, creates bool
}

func newJob(c Config, stages []Stage) (job, error) {
	c.Log = logger(c.Log)
	j := job{Config: c, stages: stages}
	if len(stages) == 0 {
		j.stages, j.whole = registry.Always(), true
	}
	for _, s := range j.stages {
		if len(registry.Of(s)) == 0 {
			return j, failure.Of(ErrOption, "%q is no stage; the stages are %v", s, registry.Names())
		}
	}
	j.creates = slices.Contains(j.stages, control.Partition)
	return j, cmp.Or(j.Watching.check(), rundirName(c.Run))
}

// rundirName refuses what cannot be the name of a run directory.
func rundirName(dir string) error {
	if err := rundir.Check(dir, true); errors.Is(err, rundir.ErrName) {
		return err
	}
	return nil
}

// Workers are worker processes on this host.
type Workers struct {
	// Processes is the number of processes.
	Processes int
	// Program is the program ndls that is started, "" to look for it in PATH.
	Program string
	// LogLevel is the least level of their log, "" for info; the log goes to Output,
	// nil drops it.
	LogLevel string
	Output   io.Writer
}

// Resources bounds what a process may use. It never changes the bytes of a run.
type Resources struct {
	// Memory is the most memory in bytes that the process may cause: heap, arrays and
	// page cache. With 0 it is 3/4 of what is available, at most 8 GiB. What the program
	// had on its heap before comes on top.
	Memory int64
	// Threads is the number of threads that compute, 0 for as many as Go uses.
	Threads int
	// Scratch is a local folder for temporary files, "" for one in the run directory.
	Scratch string
	// Kernel is "auto" (also ""), "avx512", "avx2" or "go".
	Kernel string
	// BlockColumns is the number of columns of a column block, 0 for as many as fit the
	// memory.
	BlockColumns int
	// Disk is the most disk space in bytes that the run directory and temporary files may
	// take together, 0 for as much as is free. Stages that would take more leave out
	// temporary files that save time. It holds for a run without worker processes.
	Disk int64
	// Cache is a local folder, of this process alone, for copies of what is read from
	// an object store; "" is a folder in Scratch. CacheSize is its largest size in
	// bytes, 0 for half of what is free.
	Cache     string
	CacheSize int64
}

// maxDefaultMemory bounds the memory where none is given.
const maxDefaultMemory = 8 << 30

// memory is the budget in bytes, or its default.
func (r Resources) memory() (int64, error) {
	if r.Memory != 0 {
		return r.Memory, nil
	}
	available, err := cgroup.Available()
	if err != nil {
		return 0, failure.Of(ErrOption, "%w; give --memory", err)
	}
	return min(available/4*3, maxDefaultMemory), nil
}

// Budget is a budget of r.Memory, from which the program takes its memory.
func (r Resources) Budget() (*mem.Budget, error) {
	n, err := r.memory()
	if err != nil {
		return nil, err
	}
	return mem.NewBudget(n)
}

// control returns r as a task has it, for a run directory.
func (r Resources) control(dir string) (c control.Resources, err error) {
	if r.BlockColumns < 0 {
		return c, failure.Of(ErrOption, "--block-columns %d is negative", r.BlockColumns)
	}
	if r.BlockColumns%shards.TileColumns != 0 {
		return c, failure.Of(ErrOption, "--block-columns %d is not a multiple of %d; give %d or %d",
			r.BlockColumns, shards.TileColumns, max(r.BlockColumns/shards.TileColumns, 1)*shards.TileColumns,
			(r.BlockColumns/shards.TileColumns+1)*shards.TileColumns)
	}
	c = control.Resources{Threads: threads(r.Threads), Scratch: r.Scratch, Kernel: r.Kernel, BlockColumns: r.BlockColumns, Disk: r.Disk}
	if c.Kernel == "" {
		c.Kernel = "auto"
	}
	if _, err := Kernel(c.Kernel); err != nil {
		return c, failure.Of(ErrOption, "--kernel: %w", err)
	}
	if c.Scratch == "" {
		c.Scratch = rundir.Scratch(dir)
	} else if err := rundir.CheckScratch(c.Scratch); err != nil {
		return c, err
	}
	c.Memory, err = r.memory()
	return c, err
}
