package coordinator

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"ndls/internal/control"
	"ndls/internal/mem"
)

var papers = Shape{Nodes: 111_059_956, Edges: 1_615_000_000, Features: 128, Classes: 172, Training: 1_200_000}

func names(list []StageEstimate) []control.Stage {
	var s []control.Stage
	for _, x := range list {
		s = append(s, x.Stage)
	}
	return s
}

func TestEstimateOfPapers100M(t *testing.T) {
	list, err := Estimate(papers, control.DefaultPlan(), control.Resources{Memory: 32 << 30, Threads: 2})
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(names(list), control.Stages) {
		t.Errorf("stages %v", names(list))
	}
	lsi := list[1]
	// Two arrays of 16 columns and 111M rows are 14.2 GB: 32 columns fit 32 GiB.
	if lsi.ColumnsPerPass != 32 || lsi.Passes != 2*200 {
		t.Errorf("lsi: %d columns, %d passes", lsi.ColumnsPerPass, lsi.Passes)
	}
	if want := int64(400) * 2 * papers.Edges * 4; lsi.BytesRead < want {
		t.Errorf("lsi reads %d, the hop streams alone are %d", lsi.BytesRead, want)
	}

	_, err = Estimate(papers, control.DefaultPlan(), control.Resources{Memory: 8 << 30, Threads: 2})
	if !errors.Is(err, mem.ErrBudget) || !strings.Contains(err.Error(), "would do") {
		t.Errorf("8 GiB: error %v", err)
	}
}

func TestEstimateStages(t *testing.T) {
	plan := control.DefaultPlan()
	noFeatures := plan
	noFeatures.Partition.Features = "none"
	for _, tc := range []struct {
		name  string
		shape Shape
		plan  control.Plan
		want  []control.Stage
	}{
		{"no classes", Shape{Nodes: 10, Edges: 5, Features: 3}, plan, control.Stages[:3]},
		{"no features", Shape{Nodes: 10, Edges: 5}, plan, control.Stages[:2]},
		{"features left out", papers, noFeatures, control.Stages[:2]},
	} {
		list, err := Estimate(tc.shape, tc.plan, control.Resources{Memory: 64 << 30, Threads: 1})
		if err != nil || !slices.Equal(names(list), tc.want) {
			t.Errorf("%s: %v, %v", tc.name, names(list), err)
		}
	}
	if _, err := Estimate(Shape{Nodes: 0}, plan, control.Resources{Memory: 1 << 30}); !errors.Is(err, control.ErrOption) {
		t.Errorf("no nodes: %v", err)
	}
}

// The remedy of a refusal works, and what fits stays within the budget.
func TestEstimateKeepsItsPromise(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := Shape{
			Nodes: rapid.Int64Range(1, 1<<32).Draw(t, "nodes"), Edges: rapid.Int64Range(0, 1<<36).Draw(t, "edges"),
			Features: rapid.IntRange(0, 2000).Draw(t, "features"), Classes: rapid.IntRange(0, 300).Draw(t, "classes"),
			Training: rapid.Int64Range(0, 1<<20).Draw(t, "training"),
		}
		plan := control.DefaultPlan()
		plan.LSI.Mode = rapid.SampledFrom([]string{"influence-sketch", "influence-exact", "feature", "feature-sketch"}).Draw(t, "mode")
		r := control.Resources{
			Memory: rapid.Int64Range(1, 1<<38).Draw(t, "memory"), Threads: rapid.IntRange(1, 64).Draw(t, "threads"),
			BlockColumns: rapid.SampledFrom([]int{0, 16, 17, 64}).Draw(t, "columns"),
		}
		list, err := Estimate(s, plan, r)
		if err != nil {
			for _, x := range list {
				r.Memory = max(r.Memory, x.LeastBytes)
			}
			if list, err = Estimate(s, plan, r); err != nil {
				t.Fatalf("the remedy does not work: %v", err)
			}
		}
		for _, x := range list {
			if x.PeakBytes > r.Memory || x.PeakBytes <= 0 || x.LeastBytes <= 0 {
				t.Fatalf("%s takes %d, needs %d, has %d", x.Stage, x.PeakBytes, x.LeastBytes, r.Memory)
			}
			if x.Seconds < 0 || x.BytesRead < 0 || x.DiskBytes < 0 || x.ScratchBytes < 0 {
				t.Fatalf("negative figures: %+v", x)
			}
		}
	})
}
