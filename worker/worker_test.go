package worker

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"ndls/catalog"
	"ndls/internal/control"
	"ndls/internal/storage"
	"ndls/internal/testgraph"
	"ndls/shards"
	"ndls/spmv"
)

// means are what a task is given beside its plan.
type means struct {
	control.Resources
	control.Inputs
}

func (m means) task(s control.Stage, p control.Plan) control.Task {
	return control.Task{Stage: s, Part: control.Whole, Plan: p, Inputs: m.Inputs, Resources: m.Resources}
}

// resources are generous unless a test says otherwise.
func resources(t testing.TB, dataset string) means {
	return means{
		control.Resources{Memory: 1 << 30, Threads: 2, Scratch: t.TempDir(), Kernel: "auto"},
		control.Inputs{Dataset: dataset},
	}
}

func execute(t testing.TB, store storage.Store, plan control.Plan, res means, stages ...control.Stage) []control.StageReport {
	t.Helper()
	counting := storage.NewCounting(store)
	cat, err := catalog.Open(context.Background(), counting)
	if err != nil {
		t.Fatal(err)
	}
	var reports []control.StageReport
	for _, s := range stages {
		r, err := New(counting, cat).Execute(context.Background(), res.task(s, plan))
		if err != nil {
			t.Fatalf("%s: %v", s, err)
		}
		reports = append(reports, r)
	}
	return reports
}

// rows reads Arrow row files, by input id.
func rows(t testing.TB, store storage.Store, kind string) map[int64][]float32 {
	t.Helper()
	ctx := context.Background()
	cat, err := catalog.Open(ctx, store)
	if err != nil {
		t.Fatal(err)
	}
	out := map[int64][]float32{}
	for _, e := range cat.Entries(kind) {
		r, err := cat.Open(ctx, e)
		if err != nil {
			t.Fatal(err)
		}
		rr, err := shards.OpenRows(r, e.Path)
		if err != nil {
			t.Fatal(err)
		}
		for i := range rr.NumBatches() {
			var b shards.RowBatch
			if err := rr.ReadBatch(i, &b); err != nil {
				t.Fatal(err)
			}
			w := rr.Schema().Values()
			for k, id := range b.ID {
				out[id] = b.Values[k*w : (k+1)*w]
			}
		}
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
	}
	return out
}

type smoothedGolden struct {
	Cases []struct {
		R          float64 `json:"r"`
		Eps        float64 `json:"eps"`
		Stationary string  `json:"stationary"`
		Rows       []struct {
			Node    int64              `json:"node"`
			K       int                `json:"K"`
			Sum     float64            `json:"sum"`
			L2      float64            `json:"l2"`
			Entries map[string]float64 `json:"entries"`
		} `json:"rows"`
	} `json:"cases"`
}

// TestGoldenSmoothedCora takes Cora from its published files to smoothed rows,
// by exact LSI, and compares with the golden vectors at 1e-5 relative. Two cases are
// computed, which share no option, by the kernel that is selected; make golden computes
// all, and by the Go twin too.
func TestGoldenSmoothedCora(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: exact LSI of Cora, twice")
	}
	raw, err := os.ReadFile(testgraph.Published(t, "golden/cora_smoothed.json"))
	if err != nil {
		t.Fatal(err)
	}
	var gold smoothedGolden
	if err := json.Unmarshal(raw, &gold); err != nil {
		t.Fatal(err)
	}
	if len(gold.Cases) == 0 {
		t.Fatal("no cases")
	}
	dataset := "planetoid:" + testgraph.Published(t, "data/cora") + "/cora"
	kernels := []string{"auto"}
	if testgraph.AllGolden() {
		kernels = append(kernels, "go")
	}
	for _, c := range gold.Cases {
		if !testgraph.AllGolden() && (c.R > 0) != (c.Stationary == "component") {
			continue
		}
		for _, kernel := range kernels {
			store := storage.NewMem()
			plan := control.DefaultPlan()
			plan.Partition.Dataset = "cora"
			plan.LSI.Mode, plan.LSI.R, plan.LSI.Epsilon, plan.LSI.Stationary = "influence-exact", c.R, c.Eps, c.Stationary
			res := resources(t, dataset)
			res.Kernel = kernel
			execute(t, store, plan, res, control.Partition, control.LSI, control.Smooth)
			got := rows(t, store, catalog.KindSmoothed)
			if len(got) != 2708 {
				t.Fatalf("%d rows", len(got))
			}
			worst := 0.0
			near := func(what string, node int64, x float32, want float64) {
				d := math.Abs(float64(x)-want) / math.Abs(want)
				worst = max(worst, d)
				if d > 1e-5 {
					t.Errorf("r=%g eps=%g %s, kernel %s, node %d: %s is %g, golden %g", c.R, c.Eps, c.Stationary, kernel, node, what, x, want)
				}
			}
			for _, row := range c.Rows {
				var sum, l2 float64
				for _, x := range got[row.Node] {
					sum += float64(x)
					l2 += float64(x) * float64(x)
				}
				near("sum", row.Node, float32(sum), row.Sum)
				near("norm", row.Node, float32(math.Sqrt(l2)), row.L2)
				for name, want := range row.Entries {
					i, err := strconv.Atoi(name)
					if err != nil {
						t.Fatal(err)
					}
					near("entry "+name, row.Node, got[row.Node][i], want)
				}
			}
			t.Logf("r=%g eps=%g %s, kernel %s: worst relative error %.2g", c.R, c.Eps, c.Stationary, kernel, worst)
		}
	}
}

func kernelHere(name string) bool {
	_, err := spmv.Select(name)
	return err == nil
}

// TestSoftLabelsOfAnotherModel smooths given soft labels: those of the run
// itself, exported by hand, must give what the run's own give; wrong files are
// refused.
func TestSoftLabelsOfAnotherModel(t *testing.T) {
	plan := smallPlan()
	plan.Train.Runs = 1
	store := storage.NewMem()
	execute(t, store, plan, resources(t, small), whole...)
	plan.Labels.Depth = "3"
	execute(t, store, plan, resources(t, small), control.SmoothLabels)
	want := rows(t, store, catalog.KindPredictions)

	dir := t.TempDir()
	soft := rows(t, store, catalog.KindSoftLabels)
	var text strings.Builder
	text.WriteString("id,a,b,c,d\n")
	for id := range int64(len(soft)) {
		fmt.Fprintf(&text, "%d", id)
		for _, x := range soft[id] {
			fmt.Fprintf(&text, ",%v", x)
		}
		text.WriteString("\n")
	}
	lines := strings.SplitAfter(text.String(), "\n")
	for name, c := range map[string]struct{ text, problem string }{
		"all.csv":      {text.String(), ""},
		"missing.csv":  {strings.Join(lines[:len(lines)-2], ""), "2999 rows for 3000 nodes"},
		"twice.csv":    {text.String() + lines[1], "has a second row"},
		"unknown.csv":  {text.String() + "3000,1,0,0,0\n", "unknown"},
		"negative.csv": {strings.Replace(text.String(), "\n17,", "\n17,-", 1), "probabilities are at least 0"},
		"narrow.csv":   {"id,a\n0,1\n", "give 4 probabilities"},
	} {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(c.text), 0o644); err != nil {
			t.Fatal(err)
		}
		other := storage.NewMem()
		p := plan
		p.Labels.SoftLabels = name
		res := resources(t, small)
		res.SoftLabels = path
		p.Labels.Depth = "3"
		execute(t, other, p, res, control.Partition, control.LSI)
		cat, err := catalog.Open(context.Background(), other)
		if err != nil {
			t.Fatal(err)
		}
		_, err = New(storage.NewCounting(other), cat).Execute(context.Background(), res.task(control.SmoothLabels, p))
		if c.problem != "" {
			if err == nil || !strings.Contains(err.Error(), c.problem) || !strings.Contains(err.Error(), name) {
				t.Errorf("%s: %v, want it to say %q", name, err, c.problem)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		got := rows(t, other, catalog.KindPredictions)
		for id, w := range want {
			if !slices.Equal(got[id], w) {
				t.Fatalf("node %d: %v, from the run's own soft labels %v", id, got[id], w)
			}
		}
	}
}
