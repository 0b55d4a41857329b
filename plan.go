package ndls

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"slices"
	"strings"

	"ndls/coordinator"
	"ndls/dataset"
	"ndls/estimate"
	"ndls/internal/control"
	"ndls/internal/direct"
	"ndls/internal/failure"
	"ndls/internal/rundir"
	"ndls/placement"
	"ndls/plan"
	"ndls/stage"
	"ndls/stage/models"
	"ndls/stage/registry"
)

// errNoDataset is the error of a run that would start without a dataset.
var errNoDataset = failure.Of(ErrOption, "--dataset is needed to start; ndls run --help lists the forms of a dataset URI")

// baseOptions returns the options of a run directory, or the defaults if it has none.
func baseOptions(rec *coordinator.Record) Options {
	if rec != nil {
		return rec.Plan
	}
	return plan.Default()
}

// recordedOptions returns the options of a run directory, or the defaults if it holds no run. It
// makes nothing; a command that works on the directory reports what is wrong with it.
func recordedOptions(ctx context.Context, dir string) Options {
	if rundir.Missing(dir) {
		return plan.Default()
	}
	_, rec, err := openStore(ctx, dir, true)
	if err != nil {
		return plan.Default()
	}
	return baseOptions(rec)
}

// options lays what was given over the options of the run directory, if it has some, or over the
// defaults. identity is the options' name of the dataset.
func (j job) options(ctx context.Context, rec *coordinator.Record, identity string) (Options, error) {
	base := baseOptions(rec)
	opts := j.Over(base).Canonical()
	if err := j.checkOptions(base); err != nil {
		return opts, err
	}
	if identity != "" {
		opts.Partition.Dataset = identity
	} else if j.creates && (rec == nil || !rec.Done(control.Partition) || j.Discard) {
		return opts, errNoDataset
	}
	if dataset.IsDirected(opts.Partition.Dataset) {
		opts.Smooth.Direction = cmp.Or(opts.Smooth.Direction, plan.In)
	}
	if j.SoftLabels != "" {
		sum, err := fileSum(ctx, j.SoftLabels)
		if err != nil {
			return opts, fmt.Errorf("--soft-labels: %w", err)
		}
		opts.Labels.SoftLabels = filepath.Base(j.SoftLabels) + "@sha256:" + sum
	} else if opts.Labels.SoftLabels != "" && rec != nil && !rec.Done(control.SmoothLabels) && slices.Contains(j.stages, control.SmoothLabels) {
		return opts, failure.Of(ErrOption, "the run smooths soft labels of another model; give --soft-labels %s again", opts.Labels.SoftLabels)
	}
	if len(j.TrainOn) > 0 {
		if err := j.checkTrainOn(ctx, opts); err != nil {
			return opts, err
		}
		var err error
		if opts.Train.On, err = models.RowsHash(ctx, j.TrainOn, opts); err != nil {
			return opts, err
		}
	} else if opts.Train.On != "" && rec != nil && (!rec.Done(control.Train) || j.Discard) && slices.Contains(j.stages, control.Train) {
		return opts, failure.Of(ErrOption, "the run trains on rows of other run directories; give --train-on again")
	}
	if t := j.targetsFile(); t != "" {
		sum, err := fileSum(ctx, t)
		if err != nil {
			return opts, fmt.Errorf("--targets %s is neither all nor labelled nor a file: %w", t, err)
		}
		opts.Smooth.Targets = filepath.Base(t) + "@sha256:" + sum
	}
	return opts, nil
}

// checkTrainOn refuses run directories whose rows were not smoothed as those of the plan are.
func (j job) checkTrainOn(ctx context.Context, opts Options) error {
	if len(j.TrainOn) > 2 {
		return failure.Of(ErrOption, "--train-on names %d run directories; give one, or one with the training and one with the validation nodes", len(j.TrainOn))
	}
	for _, dir := range j.TrainOn {
		d, err := Open(ctx, dir)
		if err != nil {
			return fmt.Errorf("--train-on: %w", err)
		}
		other := d.record.Plan
		other.Smooth.Targets, other.Smooth.KeepHops = opts.Smooth.Targets, opts.Smooth.KeepHops
		how := slices.DeleteFunc(Needed(opts, control.Smooth), func(s Stage) bool { return s == control.Partition })
		if d := registry.Diff(opts, other, how...); len(d) > 0 {
			return failure.Of(ErrOption, "--train-on %s has rows that were smoothed in another way (%s); smooth them with the same options", dir, strings.Join(d, "; "))
		}
	}
	return nil
}

// targetsFile is the file of target rows that the caller's options name, "" if they
// name none.
func (c Config) targetsFile() string {
	t := c.Over(plan.Default()).Smooth.Targets
	if t == plan.AllTargets || t == plan.LabelledTargets {
		return ""
	}
	return t
}

// fileSum is the SHA-256 of a file in hexadecimal.
func fileSum(ctx context.Context, path string) (string, error) {
	f, err := direct.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	r := direct.NewReader(f, 0, f.Size())
	defer r.Close()
	sum := sha256.New()
	for ctx.Err() == nil {
		if _, err := io.CopyN(sum, r, direct.BufferSize); err == io.EOF {
			return hex.EncodeToString(sum.Sum(nil)), nil
		} else if err != nil {
			return "", err
		}
	}
	return "", ctx.Err()
}

// PlanConfig holds the input of a plan: a dataset, or counts.
type PlanConfig struct {
	// Dataset is the URI of a dataset. What it does not state is counted, which reads
	// it once; so is the part of it that the options import (--only). "" takes Counts.
	Dataset string
	// Counts holds the counts of the graph. With a dataset only Hops is used.
	Counts Counts
	// Options, unless nil, changes the default options.
	Options func(*Options)
	// Resources bounds each worker.
	Resources Resources
	// Workers is the number of workers, 0 for one; Parallel says how they share stages.
	Workers  int
	Parallel string
	// GroupSize is the number of workers that share the rows of a block of columns with "grid"; 0
	// chooses it.
	GroupSize int
	// Measure takes the speeds of this machine for seconds, in place of usual ones. It takes a second,
	// and 128 MiB in Resources.Scratch, or else in the current folder.
	Measure bool
}

// A Forecast holds the planned cost of a run.
type Forecast struct {
	// Stages holds the cost of each stage, Total that of all: sums of what they read, write and
	// compute, the largest of what they hold.
	Stages []Figures
	Total  Figures
	// Assumed holds the assumptions of the figures, which only the run can check.
	Assumed Assumed
	// Speeds holds the speeds of this machine, if they were measured.
	Speeds Speeds
	// Savings are the options that save most time or disk, the best first; none where
	// nothing saves much.
	Savings []Saving
	// SameResults is the same run with the options that save disk and leave results as they are.
	// It is nil where they save little.
	SameResults *Saving
}

// Assumed holds the values that a plan assumes before they are known.
type Assumed struct {
	// Hops is the number of hops until the last node settles.
	Hops int
	// Epochs is the number of epochs of a model, of MostEpochs that it may train.
	Epochs, MostEpochs int
}

// A Saving is an option, or several, with which a run takes less.
type Saving struct {
	// Option is the option as the command spells it, such as "--runs 1"; several have blanks between
	// them.
	Option string
	Total  Figures
}

// Plan works out what each stage of a run takes. Where a stage does not fit it
// returns the forecast all the same, with an error that wraps [ErrBudget] and says
// what would fit.
func Plan(ctx context.Context, c PlanConfig) (_ Forecast, err error) {
	defer func() { err = interruption(ctx, err) }()
	opts := Config{Dataset: c.Dataset, Options: c.Options}.Over(plan.Default())
	if err := registry.Validate(opts); err != nil {
		return Forecast{}, err
	}
	r, err := c.Resources.control("")
	if err != nil {
		return Forecast{}, err
	}
	parallel, err := placement.ParseParallel(c.Parallel, c.GroupSize)
	if err != nil {
		return Forecast{}, err
	}
	counts, err := c.counts(ctx, opts)
	if err != nil {
		return Forecast{}, err
	}
	if c.Measure {
		r.Scratch = cmp.Or(c.Resources.Scratch, ".")
		if r.Speeds, err = measure(ctx, r); err != nil {
			return Forecast{}, err
		}
	}
	figures := func(opts Options) ([]Figures, error) {
		stages := registry.Costs(registry.Possible(opts, counts)...)
		return parallel.Figures(c.GroupSize, counts, opts, r, max(c.Workers, 1), 0, stages...)
	}
	list, err := figures(opts)
	f := Forecast{Stages: list, Total: total(list), Speeds: r.Speeds, Assumed: Assumed{
		Hops: min(counts.Hops, opts.LSI.Kmax), Epochs: opts.Train.Epochs, MostEpochs: opts.Train.Epochs,
	}}
	if slices.ContainsFunc(list, func(f Figures) bool { return f.Stage == control.Train }) {
		f.Assumed.Epochs = models.TrainedEpochs(opts, counts.Validation)
	}
	if err == nil && r.Disk > 0 && f.Total.PeakDiskBytes > r.Disk {
		err = estimate.CheckDisk(counts, opts, r, max(c.Workers, 1), 0, 0, estimate.Space{Run: r.Disk, Same: true, Bounded: true},
			registry.Costs(registry.Possible(opts, counts)...)...)
	}
	if err == nil {
		f.Savings = savings(opts, f.Total, figures)
		f.SameResults = sameResults(opts, f.Total, figures)
	}
	return f, err
}

const (
	// mostNodes is the number of nodes that ids of 32 bits can tell apart, of which one stands for
	// no node.
	mostNodes = math.MaxUint32
	// mostEdges is a number of edges for which the bytes of a run, some hundred for each edge, are
	// far from the end of 64 bits.
	mostEdges = 1 << 50
)

// counts returns the counts of the planned graph.
func (c PlanConfig) counts(ctx context.Context, opts Options) (counts Counts, err error) {
	if (c.Dataset == "") == (c.Counts.Nodes == 0) {
		return counts, failure.Of(ErrOption, "give either --dataset, or --nodes and --edges")
	}
	counts = c.Counts
	if c.Dataset != "" {
		if counts, err = countDataset(ctx, c.Dataset, opts, c.Resources); err != nil {
			return counts, err
		}
		counts.Hops = c.Counts.Hops
	} else if only := opts.Partition.Only; only != "" {
		return counts, failure.Of(ErrOption, "--only %s without --dataset: the size of a part of a graph does not follow from that of the whole; give --dataset, or the --nodes and --edges of the part and leave --only out", only)
	} else {
		dropEdges(opts, &counts)
	}
	if counts.Nodes > mostNodes || counts.Edges > mostEdges {
		return counts, failure.Of(ErrOption, "%d nodes and %d edges: a run takes at most %d nodes, since node ids have 32 bits, and %d edges; plan for a part of the graph",
			counts.Nodes, counts.Edges, int64(mostNodes), int64(mostEdges))
	}
	counts.Hops = cmp.Or(counts.Hops, opts.LSI.Kmax)
	if lack := stage.LacksDirection(opts, counts.Directed); lack != "" {
		return counts, failure.Of(ErrOption, "%s", lack)
	}
	counts.StatedNodes = counts.StatedNodes || c.Dataset == ""
	counts.Labelled = max(counts.Labelled, counts.Training)
	return counts, nil
}

// total adds up the stages of a run.
func total(list []Figures) (t Figures) {
	for _, f := range list {
		t.PeakBytes = max(t.PeakBytes, f.PeakBytes)
		t.LeastBytes = max(t.LeastBytes, f.LeastBytes)
		t.PeakDiskBytes = max(t.PeakDiskBytes, f.PeakDiskBytes)
		t.DiskBytes += f.DiskBytes
		t.BytesRead += f.BytesRead
		t.BytesWritten += f.BytesWritten
		t.NetworkBytes += f.NetworkBytes
		t.Passes += f.Passes
		t.BytesPerPass = max(t.BytesPerPass, f.BytesPerPass)
		t.Seconds += f.Seconds
	}
	return t
}

// lighter are options that save disk. What a run computes is the same: they leave out, or remove,
// files that no later stage reads.
var lighter = []struct {
	option string
	set    func(*Options)
}{
	{"--shards none", func(o *Options) { o.Partition.Shards = "none" }},
	{"--keep-features=false", func(o *Options) { o.DropFeatures = true }},
}

// sameResults is a run that takes full with those of the lighter options that it can have, nil if
// that saves little disk.
func sameResults(opts Options, full Figures, figures func(Options) ([]Figures, error)) *Saving {
	var options []string
	least := full
	for _, c := range lighter {
		other := opts
		c.set(&other)
		if other == opts || registry.Validate(other) != nil {
			continue
		}
		if list, err := figures(other); err == nil {
			opts, least, options = other, total(list), append(options, c.option)
		}
	}
	if float64(least.PeakDiskBytes) > (1-muchSaved)*float64(full.PeakDiskBytes) {
		return nil
	}
	return &Saving{strings.Join(options, " "), least}
}

// cheaper are options with which a run takes less. All of them change results.
var cheaper = []struct {
	option string
	set    func(*Options)
}{
	{"--runs 1", func(o *Options) { o.Train.Runs = 1 }},
	{"--targets labelled", func(o *Options) { o.Smooth.Targets = plan.LabelledTargets }},
	{"--precision float16", func(o *Options) { o.Precision = "float16" }},
	{"--smoothed-precision float16", func(o *Options) { o.Smooth.SmoothedPrecision = "float16" }},
	{"--probabilities best", func(o *Options) { o.Probabilities = plan.BestProbability }},
	{"--label-kmax 10", func(o *Options) { o.Labels.Kmax = min(o.Labels.Kmax, 10) }},
	{"--probes 16", func(o *Options) { o.LSI.Probes = 16 }},
}

const (
	// mostSavings is the number of savings that are worth reading.
	mostSavings = 3
	// muchSaved is the share of time or disk that is worth an option.
	muchSaved = 0.1
)

// savings lists the options that save most of a run which takes full.
func savings(opts Options, full Figures, figures func(Options) ([]Figures, error)) []Saving {
	share := func(s Saving) float64 {
		return max(1-s.Total.Seconds/full.Seconds, 1-float64(s.Total.PeakDiskBytes)/float64(full.PeakDiskBytes))
	}
	var list []Saving
	for _, c := range cheaper {
		other := opts
		c.set(&other)
		if other == opts || registry.Validate(other) != nil {
			continue
		}
		if f, err := figures(other); err == nil {
			if s := (Saving{c.option, total(f)}); share(s) >= muchSaved {
				list = append(list, s)
			}
		}
	}
	slices.SortStableFunc(list, func(a, b Saving) int { return cmp.Compare(share(b), share(a)) })
	return list[:min(len(list), mostSavings)]
}
