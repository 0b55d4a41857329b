package registry

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"ndls/estimate"
	"ndls/internal/control"
	"ndls/internal/failure"
	"ndls/internal/mem"
	"ndls/partition"
	"ndls/plan"
	"ndls/stage/models"
)

var papers = estimate.Counts{
	Nodes: 111_059_956, Edges: 1_615_000_000, StatedNodes: true, Features: 128, Half: true, Classes: 172,
	Training: 1_207_179, Validation: 125_265, Labelled: 1_546_782, Hops: 20,
}

func namesOf(list []control.Figures) (s []control.Stage) {
	for _, x := range list {
		s = append(s, x.Stage)
	}
	return s
}

// labelledPlan is the default plan for the labelled rows alone, with 16 probes.
func labelledPlan() plan.Options {
	p := plan.Default()
	p.Smooth.Targets, p.LSI.Probes = plan.LabelledTargets, 16
	return p
}

func TestPapers100M(t *testing.T) {
	p := labelledPlan()
	p.LSI.Probes = 0 // 32 are chosen
	list, err := estimate.Run(papers, p, control.Resources{Memory: 32 << 30, Threads: 2}, 0, Costs(Possible(p, papers)...)...)
	if err != nil {
		t.Fatal(err)
	}
	lsi := list[1]
	// Two arrays of 32 columns of float16 and 111M rows are 14.2 GB.
	if lsi.Stage != control.LSI || lsi.ColumnsPerPass != 32 || lsi.Passes != papers.Hops || lsi.PeakBytes < 14_200_000_000 || lsi.PeakBytes > 18_000_000_000 {
		t.Errorf("%+v", lsi)
	}
	// The hop streams are read in every pass.
	if stream := partition.HopBytes(partition.Counts{Nodes: papers.Nodes, Edges: papers.Edges}); lsi.BytesRead < 20*stream || lsi.BytesRead > 21*stream {
		t.Errorf("lsi reads %d", lsi.BytesRead)
	}
	smooth := list[2]
	if rows := papers.Labelled * (8 + 4*128); smooth.DiskBytes != rows {
		t.Errorf("smooth adds %d bytes, the labelled rows are %d", smooth.DiskBytes, rows)
	}
	_, err = estimate.Run(papers, p, control.Resources{Memory: 1 << 30, Threads: 2}, 0, Costs(Possible(p, papers)...)...)
	if !errors.Is(err, mem.ErrBudget) || !strings.Contains(err.Error(), "is enough") {
		t.Errorf("1 GiB: error %v", err)
	}
}

// TestTrainOnIsPlanned: where models are trained on rows of other run directories, these are read,
// and not those of the run.
func TestTrainOnIsPlanned(t *testing.T) {
	c, p := papers, plan.Default() // with rows of all nodes
	p.Train.On = "sha256:…"
	c.TrainOn = estimate.OtherRows{Rows: 1_400_000, Training: c.Training, Validation: c.Validation, Nodes: 1_400_000, NodeBytes: 13_000_000}
	list, err := estimate.Run(c, p, control.Resources{Memory: 32 << 30, Threads: 2}, 0, Costs(control.Train)...)
	if err != nil {
		t.Fatal(err)
	}
	if rows := c.TrainOn.Rows*(16+4*128) + c.TrainOn.NodeBytes; list[0].BytesRead != rows {
		t.Errorf("%d bytes are read, the rows and nodes of the other run directories are %d", list[0].BytesRead, rows)
	}
	p.Train.On = ""
	own, err := estimate.Run(c, p, control.Resources{Memory: 32 << 30, Threads: 2}, 0, Costs(control.Train)...)
	if err != nil || own[0].BytesRead < papers.Nodes*4*128 || own[0].PeakBytes < list[0].PeakBytes {
		t.Errorf("on rows of its own: %+v, %v", own[0], err)
	}
}

// TestHopsOfPapers100M: the hops of the labelled rows are as many bytes as they are said to be,
// and are beside their tiles at a time.
func TestHopsOfPapers100M(t *testing.T) {
	figures := func(change func(*plan.Options)) control.Figures {
		p := labelledPlan()
		p.Tolerance = 0 // hops that are written take all passes in any case
		change(&p)
		list, err := estimate.Run(papers, p, control.Resources{Memory: 16 << 30, Threads: 2}, 0, Costs(control.Smooth, control.Train)...)
		if err != nil {
			t.Fatal(err)
		}
		return list[0]
	}
	plain := figures(func(*plan.Options) {})
	sign := figures(func(p *plan.Options) { p.Smooth.Rule, p.Smooth.Hops = "sign", 6 })
	if rows := papers.Labelled * (8 + 7*4*128); sign.DiskBytes != rows || rows < 5_500_000_000 || rows > 5_600_000_000 {
		t.Errorf("7 hops of the labelled rows are %d bytes, %d are planned", rows, sign.DiskBytes)
	}
	if sign.PeakDiskBytes < 2*papers.Labelled*7*4*128 {
		t.Errorf("tiles and rows of 7 hops have %d bytes", sign.PeakDiskBytes)
	}
	if sign.Passes*papers.Hops != plain.Passes*6 {
		t.Errorf("%d passes to hop 6, %d to hop %d", sign.Passes, plain.Passes, papers.Hops)
	}
	beside := figures(func(p *plan.Options) { p.Smooth.KeepHops = "0..2" })
	if want := plain.DiskBytes + papers.Labelled*(8+3*4*128); beside.DiskBytes != want || beside.Passes != plain.Passes {
		t.Errorf("3 hops beside the rule: %d bytes, want %d; %d passes of %d", beside.DiskBytes, want, beside.Passes, plain.Passes)
	}
	labels := figures(func(p *plan.Options) { p.Smooth.LabelColumns = 2 })
	if want := papers.Labelled * (8 + 4*(128+172)); labels.DiskBytes != want || labels.Passes <= 2*plain.Passes {
		t.Errorf("with label columns %d bytes, want %d; %d passes of %d", labels.DiskBytes, want, labels.Passes, plain.Passes)
	}
}

func TestStages(t *testing.T) {
	opts := plan.Default()
	noFeatures := opts
	noFeatures.Partition.Features = "none"
	embedded := noFeatures
	embedded.Smooth.Rule = plan.FastRP
	withoutSmoothLabels := slices.DeleteFunc(slices.Clone(Always()), func(s control.Stage) bool { return s == control.LabelDepth || s == control.SmoothLabels })
	for _, tc := range []struct {
		name   string
		counts estimate.Counts
		plan   plan.Options
		want   []control.Stage
	}{
		{"everything", papers, opts, Always()},
		{"some targets", papers, labelledPlan(), withoutSmoothLabels},
		{"no classes", estimate.Counts{Nodes: 10, Edges: 5, Features: 3}, opts, Always()[:3]},
		{"no features", estimate.Counts{Nodes: 10, Edges: 5}, opts, Always()[:2]},
		{"features left out", papers, noFeatures, Always()[:2]},
		{"features made of the edges", papers, embedded, Always()},
	} {
		list, err := estimate.Run(tc.counts, tc.plan, control.Resources{Memory: 64 << 30, Threads: 1}, 0, Costs(Possible(tc.plan, tc.counts)...)...)
		if err != nil || !slices.Equal(namesOf(list), tc.want) {
			t.Errorf("%s: %v, %v", tc.name, namesOf(list), err)
		}
	}
	if _, err := estimate.Run(estimate.Counts{}, opts, control.Resources{Memory: 1 << 30}, 0, Costs(control.Partition)...); !errors.Is(err, failure.ErrOption) {
		t.Errorf("no nodes: %v", err)
	}
}

// The remedy of a refusal works, and what fits stays within the budget.
func TestKeepsItsPromise(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.Int64Range(1, 1<<32-1).Draw(t, "nodes")
		c := estimate.Counts{
			Nodes: n, Edges: rapid.Int64Range(0, 1<<36).Draw(t, "edges"), StatedNodes: rapid.Bool().Draw(t, "stated"),
			Features: rapid.IntRange(0, 2000).Draw(t, "features"), Classes: rapid.OneOf(rapid.IntRange(0, 300), rapid.SampledFrom([]int{2, 172, 10_000})).Draw(t, "classes"),
			Half: rapid.Bool().Draw(t, "half"), Training: rapid.Int64Range(0, min(n, 1<<20)).Draw(t, "training"),
			Components: rapid.Int64Range(0, min(n, 1<<20)).Draw(t, "components"), Hops: rapid.IntRange(0, 60).Draw(t, "hops"),
		}
		p := plan.Default()
		p.LSI.Mode = rapid.SampledFrom([]string{"influence-sketch", "feature", "feature-sketch"}).Draw(t, "mode")
		p.Precision = rapid.SampledFrom([]string{"float32", "float16"}).Draw(t, "precision")
		p.Smooth.Targets = rapid.SampledFrom([]string{plan.AllTargets, plan.LabelledTargets}).Draw(t, "targets")
		if rapid.Bool().Draw(t, "fastrp") {
			p.Smooth.Rule = plan.FastRP
			p.Smooth.Dimensions = rapid.IntRange(1, 600).Draw(t, "dimensions")
			p.Smooth.HopWeights = rapid.SampledFrom([]string{"", "1", "0,0,0,1", "1,1,1,1,1,1,1,1"}).Draw(t, "weights")
		} else {
			p.Smooth.Rule = rapid.SampledFrom([]string{"ndls", "ndls-reference", "sgc", "appnp", "sign", "nafs"}).Draw(t, "rule")
			if !slices.Contains([]string{"ndls", "ndls-reference"}, p.Smooth.Rule) {
				p.Smooth.Depth = rapid.SampledFrom([]string{"", plan.NodeDepth}).Draw(t, "depth")
			}
		}
		p.Labels.Rule = rapid.SampledFrom([]string{"ndls", "ndls-reference", "cs", "cs-nd"}).Draw(t, "label rule")
		r := control.Resources{
			Memory: rapid.Int64Range(1, 1<<38).Draw(t, "memory"), Threads: rapid.IntRange(1, 64).Draw(t, "threads"),
			BlockColumns: rapid.SampledFrom([]int{0, 16, 17, 64}).Draw(t, "columns"),
		}
		workers := rapid.IntRange(1, 64).Draw(t, "workers")
		sizes := rapid.SliceOfN(rapid.IntRange(1, workers), 1, 4).Draw(t, "sizes of groups")
		list, err := estimate.RunShared(c, p, r, workers, sizes, 0, Costs(Possible(p, c)...)...)
		if err != nil {
			for _, x := range list {
				r.Memory = max(r.Memory, x.LeastBytes)
			}
			if list, err = estimate.RunShared(c, p, r, workers, sizes, 0, Costs(Possible(p, c)...)...); err != nil {
				t.Fatalf("the remedy does not work: %v", err)
			}
		}
		held := int64(0)
		for _, x := range list {
			held += x.DiskBytes
			if x.PeakBytes > r.Memory || x.PeakBytes <= 0 || x.LeastBytes <= 0 {
				t.Fatalf("%s takes %d, needs %d, has %d", x.Stage, x.PeakBytes, x.LeastBytes, r.Memory)
			}
			if x.Seconds < 0 || x.BytesRead < 0 || x.BytesWritten < 0 || x.ScratchBytes < 0 || x.PeakDiskBytes < held {
				t.Fatalf("figures that cannot be: %+v", x)
			}
		}
	})
}

// TestShare: fewer rows never need more memory, the least is enough and no less is,
// and all rows need what one worker does.
func TestShare(t *testing.T) {
	p := plan.Default()
	r := control.Resources{Memory: 1 << 40, Threads: 2}
	for _, s := range Of(control.LSI, control.Smooth, control.LabelDepth, control.SmoothLabels) {
		if !s.Shares(p) {
			t.Errorf("%s cannot be shared", s.Name())
		}
		alone, err := estimate.Run(papers, p, r, 0, s)
		if err != nil {
			t.Fatal(err)
		}
		before, _ := estimate.Share(papers, p, r, s, papers.Nodes, 1, 1)
		if before != alone[0].LeastBytes {
			t.Errorf("%s: all rows need %d, one worker %d", s.Name(), before, alone[0].LeastBytes)
		}
		for _, workers := range []int{2, 3, 5, 16, 100} {
			least, resident := estimate.Share(papers, p, r, s, estimate.Part(papers.Nodes, workers), workers, 1)
			if least > before || !resident {
				t.Errorf("%s: a worker of %d needs %d, one of fewer %d; in memory: %v", s.Name(), workers, least, before, resident)
			}
			before = least
			for _, short := range []int64{0, 1} {
				_, err := estimate.RunShared(papers, p, control.Resources{Memory: least - short, Threads: 2}, workers, []int{workers}, 0, s)
				if errors.Is(err, mem.ErrBudget) != (short > 0) {
					t.Errorf("%s, %d workers with %d bytes less than the least: error %v", s.Name(), workers, short, err)
				}
			}
		}
	}
}

func TestCheckDisk(t *testing.T) {
	p := plan.Default()
	r := control.Resources{Memory: 16 << 30, Threads: 2}
	stages := Costs(Possible(p, papers)...)
	list, err := estimate.Run(papers, p, r, 0, stages...)
	if err != nil {
		t.Fatal(err)
	}
	most := int64(0)
	for _, x := range list {
		most = max(most, x.PeakDiskBytes)
	}
	if err := estimate.CheckDisk(papers, p, r, 1, 0, 0, estimate.Space{Run: most, Same: true}, stages...); err != nil {
		t.Errorf("just enough: %v", err)
	}
	if err := estimate.CheckDisk(papers, p, r, 1, 0, 1<<30, estimate.Space{Run: most - 1<<30, Same: true}, stages...); err != nil {
		t.Errorf("with a part there already: %v", err)
	}
	err = estimate.CheckDisk(papers, p, r, 1, 0, 0, estimate.Space{Run: most - 1, Same: true}, stages...)
	if !errors.Is(err, estimate.ErrDisk) {
		t.Fatalf("a byte too few: %v", err)
	}
	for _, want := range []string{"--targets labelled", "--features none", "--run", "--scratch", " bytes)"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not in %q", want, err)
		}
	}
	// Scratch files of their own: neither place can do for the other.
	if err := estimate.CheckDisk(papers, p, r, 1, 0, 0, estimate.Space{Run: 1, Scratch: most}, stages...); !errors.Is(err, estimate.ErrDisk) {
		t.Errorf("no room for the run directory: %v", err)
	}
	if err := estimate.CheckDisk(papers, p, r, 1, 0, 0, estimate.Space{Run: most, Scratch: 1}, stages...); !errors.Is(err, estimate.ErrDisk) || !strings.Contains(err.Error(), "scratch files need") {
		t.Errorf("no room for scratch files: %v", err)
	}
	// Narrower blocks take less scratch space.
	external := r
	external.Memory = 6 << 30
	if err := estimate.CheckDisk(papers, p, external, 1, 0, 0, estimate.Space{Run: most, Scratch: 1}, Costs(control.Smooth)...); !errors.Is(err, estimate.ErrDisk) || !strings.Contains(err.Error(), "--block-columns 16 (") {
		t.Errorf("blocks of external rows: %v", err)
	}
	// What later stages need no longer counts once features are there.
	if err := estimate.CheckDisk(papers, p, r, 1, 0, 0, estimate.Space{Same: true}, Costs(control.Smooth)...); err == nil || strings.Contains(err.Error(), "--features none") {
		t.Errorf("smooth alone: %v", err)
	}
}

// A model that stops by patience is not planned for all epochs, and one without validation
// nodes is.
func TestTrainedEpochs(t *testing.T) {
	p := plan.Default()
	p.Train.Epochs, p.Train.Patience = 500, 50
	if got := models.TrainedEpochs(p, 10); got <= 50 || got >= 500 {
		t.Errorf("%d of 500 epochs with a patience of 50", got)
	}
	if got := models.TrainedEpochs(p, 0); got != 500 {
		t.Errorf("%d of 500 epochs without validation nodes", got)
	}
	p.Train.Epochs = 20
	if got := models.TrainedEpochs(p, 10); got != 20 {
		t.Errorf("%d of 20 epochs", got)
	}
}

// Seconds follow what a stage has to do: the width of features for partition, threads for
// what they share, and not the hops that no node of a generated graph takes.
func TestPlannedSeconds(t *testing.T) {
	seconds := func(c estimate.Counts, threads int, s control.Stage) float64 {
		list, err := estimate.Run(c, plan.Default(), control.Resources{Memory: 8 << 30, Threads: threads}, 0, Costs(s)...)
		if err != nil {
			t.Fatal(err)
		}
		return list[0].Seconds
	}
	c := estimate.Counts{Nodes: 1 << 20, Edges: 1 << 23, StatedNodes: true, Features: 64, Classes: 10, Training: 1000, Validation: 1000, Labelled: 1 << 20}
	c.Hops = 200
	few := c
	few.Hops = 10
	for s, times := range map[control.Stage]float64{control.LSI: 3, control.Smooth: 2} {
		if many, some := seconds(c, 2, s), seconds(few, 2, s); many < times*some {
			t.Errorf("%s: %.1f s for %d hops, %.1f s for %d", s, many, c.Hops, some, few.Hops)
		}
		if one, two := seconds(c, 1, s), seconds(c, 2, s); two < one/2 || two > one/1.5 {
			t.Errorf("%s: %.1f s with one thread, %.1f s with two", s, one, two)
		}
	}
	wide := c
	wide.Features = 6400
	if narrow, wide := seconds(c, 2, control.Partition), seconds(wide, 2, control.Partition); wide < 10*narrow {
		t.Errorf("partition: %.1f s for 64 columns, %.1f s for 6400", narrow, wide)
	}
	p := plan.Default()
	p.Partition.Fill = "mean"
	fitted := c
	fitted.Fitted = 64
	figures := func(c estimate.Counts) control.Figures {
		list, err := estimate.Run(c, p, control.Resources{Memory: 8 << 30, Threads: 2}, 0, Costs(control.Partition)...)
		if err != nil {
			t.Fatal(err)
		}
		return list[0]
	}
	once := figures(fitted).Seconds - figures(c).Seconds
	p.Partition.Normalize = "quantile"
	if five := figures(fitted).Seconds - figures(c).Seconds; once <= 0 || math.Abs(five-5*once) > 1e-6*five {
		t.Errorf("partition: %.3g s for one reading of 64 columns, %.3g s for five", once, five)
	}
	filled := fitted
	filled.Filled = 64
	if p.Partition.Fill = "neighbours"; figures(filled).Passes == 0 || figures(filled).PeakDiskBytes <= figures(fitted).PeakDiskBytes {
		t.Errorf("partition that neighbours fill: %+v, and %+v before", figures(filled), figures(fitted))
	}
}

// The plan of the LSI stage counts the K tables for other distances: that of label smoothing, and those that are asked for.
func TestFurtherTables(t *testing.T) {
	c := papers
	c.Nodes, c.Edges, c.Training, c.Validation, c.Labelled = 1<<23, 1<<26, 1<<10, 1<<10, 1<<12
	p := labelledPlan()
	p.Smooth.Targets = plan.AllTargets
	of := func(p plan.Options, epsilons string) control.Figures {
		c := c
		c.Epsilons = epsilons
		list, err := estimate.Run(c, p, control.Resources{Memory: 8 << 30, Threads: 2}, 0, Costs(control.LSI)...)
		if err != nil {
			t.Fatal(err)
		}
		return list[0]
	}
	one, table := of(p, ""), 2*c.Nodes+4096
	labels := p
	labels.Labels.Epsilon = 0.1
	for _, x := range []struct {
		plan     plan.Options
		epsilons string
		tables   int64
	}{
		{p, "0.03,0.01", 0}, {p, "0.05,", 1}, {p, "0.05,0.1,0.05", 2}, {labels, "", 1}, {labels, "0.05,0.1", 2},
	} {
		got := of(x.plan, x.epsilons)
		want := x.tables * table
		for _, more := range []int64{got.PeakBytes - one.PeakBytes, got.LeastBytes - one.LeastBytes} {
			if more < want || more > want+want/256 { // with page tables
				t.Errorf("%q: %d bytes more, want %d", x.epsilons, more, want)
			}
		}
		if more := got.DiskBytes - one.DiskBytes; more != x.tables*one.DiskBytes {
			t.Errorf("%q: %d bytes more on disk, a table has %d", x.epsilons, more, one.DiskBytes)
		}
	}
}
