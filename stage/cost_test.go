package stage

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"ndls/estimate"
	"ndls/internal/control"
	"ndls/internal/mem"
	"ndls/partition"
)

var papers = estimate.Counts{
	Nodes: 111_059_956, Edges: 1_615_000_000, StatedNodes: true, Features: 128, Half: true, Classes: 172,
	Training: 1_207_179, Validation: 125_265, Labelled: 1_546_782, Hops: estimate.DefaultHops,
}

func namesOf(list []control.Figures) (s []control.Stage) {
	for _, x := range list {
		s = append(s, x.Stage)
	}
	return s
}

// labelledPlan is the default plan for the labelled rows alone, with 16 probes.
func labelledPlan() control.Plan {
	p := control.DefaultPlan()
	p.Smooth.Targets, p.LSI.Probes = control.LabelledTargets, 16
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
	if lsi.Stage != control.LSI || lsi.ColumnsPerPass != 32 || lsi.Passes != estimate.DefaultHops || lsi.PeakBytes < 14_200_000_000 || lsi.PeakBytes > 18_000_000_000 {
		t.Errorf("%+v", lsi)
	}
	// The hop streams are read in every pass.
	if stream := partition.HopBytes(partition.Counts{Nodes: papers.Nodes, Edges: papers.Edges}); lsi.BytesRead < 10*stream || lsi.BytesRead > 11*stream {
		t.Errorf("lsi reads %d", lsi.BytesRead)
	}
	smooth := list[2]
	if rows := papers.Labelled * (8 + 4*128); smooth.DiskBytes != rows {
		t.Errorf("smooth adds %d bytes, the labelled rows are %d", smooth.DiskBytes, rows)
	}
	_, err = estimate.Run(papers, p, control.Resources{Memory: 1 << 30, Threads: 2}, 0, Costs(Possible(p, papers)...)...)
	if !errors.Is(err, mem.ErrBudget) || !strings.Contains(err.Error(), "would do") {
		t.Errorf("1 GiB: error %v", err)
	}
}

func TestStages(t *testing.T) {
	plan := control.DefaultPlan()
	noFeatures := plan
	noFeatures.Partition.Features = "none"
	withoutSmoothLabels := slices.DeleteFunc(slices.Clone(Whole()), func(s control.Stage) bool { return s == control.LabelDepth || s == control.SmoothLabels })
	for _, tc := range []struct {
		name   string
		counts estimate.Counts
		plan   control.Plan
		want   []control.Stage
	}{
		{"everything", papers, plan, Whole()},
		{"some targets", papers, labelledPlan(), withoutSmoothLabels},
		{"no classes", estimate.Counts{Nodes: 10, Edges: 5, Features: 3}, plan, Whole()[:3]},
		{"no features", estimate.Counts{Nodes: 10, Edges: 5}, plan, Whole()[:2]},
		{"features left out", papers, noFeatures, Whole()[:2]},
	} {
		list, err := estimate.Run(tc.counts, tc.plan, control.Resources{Memory: 64 << 30, Threads: 1}, 0, Costs(Possible(tc.plan, tc.counts)...)...)
		if err != nil || !slices.Equal(namesOf(list), tc.want) {
			t.Errorf("%s: %v, %v", tc.name, namesOf(list), err)
		}
	}
	if _, err := estimate.Run(estimate.Counts{}, plan, control.Resources{Memory: 1 << 30}, 0, Costs(control.Partition)...); !errors.Is(err, control.ErrOption) {
		t.Errorf("no nodes: %v", err)
	}
}

// The remedy of a refusal works, and what fits stays within the budget.
func TestKeepsItsPromise(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.Int64Range(1, 1<<32-1).Draw(t, "nodes")
		c := estimate.Counts{
			Nodes: n, Edges: rapid.Int64Range(0, 1<<36).Draw(t, "edges"), StatedNodes: rapid.Bool().Draw(t, "stated"),
			Features: rapid.IntRange(0, 2000).Draw(t, "features"), Classes: rapid.IntRange(0, 300).Draw(t, "classes"),
			Half: rapid.Bool().Draw(t, "half"), Training: rapid.Int64Range(0, min(n, 1<<20)).Draw(t, "training"),
			Components: rapid.Int64Range(0, min(n, 1<<20)).Draw(t, "components"), Hops: rapid.IntRange(0, 60).Draw(t, "hops"),
		}
		p := control.DefaultPlan()
		p.LSI.Mode = rapid.SampledFrom([]string{"influence-sketch", "feature", "feature-sketch"}).Draw(t, "mode")
		p.LSI.Active = rapid.SampledFrom([]string{"exact", "settled"}).Draw(t, "active")
		p.Precision = rapid.SampledFrom([]string{"float32", "float16"}).Draw(t, "precision")
		p.Smooth.Targets = rapid.SampledFrom([]string{control.AllTargets, control.LabelledTargets}).Draw(t, "targets")
		p.Labels.Rule = rapid.SampledFrom([]string{"ndls", "ndls-reference"}).Draw(t, "label rule")
		r := control.Resources{
			Memory: rapid.Int64Range(1, 1<<38).Draw(t, "memory"), Threads: rapid.IntRange(1, 64).Draw(t, "threads"),
			BlockColumns: rapid.SampledFrom([]int{0, 16, 17, 64}).Draw(t, "columns"),
		}
		workers := rapid.IntRange(1, 64).Draw(t, "workers")
		list, err := estimate.RunShared(c, p, r, workers, 0, Costs(Possible(p, c)...)...)
		if err != nil {
			for _, x := range list {
				r.Memory = max(r.Memory, x.LeastBytes)
			}
			if list, err = estimate.RunShared(c, p, r, workers, 0, Costs(Possible(p, c)...)...); err != nil {
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
	p := control.DefaultPlan()
	r := control.Resources{Memory: 1 << 40, Threads: 2}
	for _, s := range Of(control.LSI, control.Smooth, control.LabelDepth, control.SmoothLabels) {
		if !s.Shares(p) {
			t.Errorf("%s cannot be shared", s.Name())
		}
		alone, err := estimate.Run(papers, p, r, 0, s)
		if err != nil {
			t.Fatal(err)
		}
		before, _ := estimate.Share(papers, p, r, s, papers.Nodes)
		if before != alone[0].LeastBytes {
			t.Errorf("%s: all rows need %d, one worker %d", s.Name(), before, alone[0].LeastBytes)
		}
		for _, workers := range []int{2, 3, 5, 16, 100} {
			least, resident := estimate.Share(papers, p, r, s, estimate.Part(papers.Nodes, workers))
			if least > before || !resident {
				t.Errorf("%s: a worker of %d needs %d, one of fewer %d; in memory: %v", s.Name(), workers, least, before, resident)
			}
			before = least
			for _, short := range []int64{0, 1} {
				_, err := estimate.RunShared(papers, p, control.Resources{Memory: least - short, Threads: 2}, workers, 0, s)
				if errors.Is(err, mem.ErrBudget) != (short > 0) {
					t.Errorf("%s, %d workers with %d bytes less than the least: error %v", s.Name(), workers, short, err)
				}
			}
		}
	}
}

func TestCheckDisk(t *testing.T) {
	p := control.DefaultPlan()
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
