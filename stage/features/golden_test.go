package features_test

import (
	"encoding/json"
	"math"
	"os"
	"strconv"
	"testing"

	"ndls/catalog"
	"ndls/internal/control"
	"ndls/internal/storage/storagetest"
	"ndls/internal/testgraph"
	"ndls/internal/testkit"
	"ndls/plan"
	"ndls/stage/stagetest"
)

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
	testkit.Slow(t, "exact LSI of Cora, twice")
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
			store := storagetest.NewMem()
			opts := plan.Default()
			opts.Tolerance = 0 // golden rows are of all hops
			opts.Partition.Dataset = "cora"
			opts.LSI.Mode, opts.LSI.R, opts.LSI.Epsilon, opts.LSI.Stationary = "influence-exact", c.R, c.Eps, c.Stationary
			res := stagetest.On(t, dataset)
			res.Kernel = kernel
			stagetest.Run(t, store, opts, res, control.Partition, control.LSI, control.Smooth)
			got := stagetest.Rows(t, store, catalog.KindSmoothed)
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
