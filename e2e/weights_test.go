package e2e

import (
	"encoding/csv"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"ndls/internal/testgraph"
)

// weightedJob is a graph with weights of more than one strip, through all stages.
const weightedJob = "--dataset synthetic:nodes=36000,edges=90000,features=37,classes=6,seed=9,weights=10 --runs 1 --epochs 2 --epsilon 0.1 --kmax 40 --probes 16 --label-kmax 4 --targets all"

// inHalves has groups of two workers that take one half of a panel each.
const inHalves = "--workers 4 --threads 1 --memory 640MiB --parallel grid --group-size 2 --group-columns 8"

// TestWeightedBytes: the files of a run with weights depend neither on threads, memory and
// kernel nor on the workers, in whichever way these share the run.
func TestWeightedBytes(t *testing.T) {
	t.Parallel()
	want := hashesOf(t, weightedJob, "--threads 1 --memory 1GiB")
	for _, way := range []string{
		"--threads 5 --memory 160MiB", "--threads 2 --memory 1GiB --kernel go",
		"--workers 2 --threads 1 --memory 512MiB", "--workers 2 --threads 1 --memory 512MiB --parallel intervals",
		inHalves,
	} {
		compare(t, way, hashesOf(t, weightedJob, way), want)
	}
}

// TestWeightsEqualTheDefinition compares what the program writes for a graph with weights, in
// several components, with dense float64 matrices.
func TestWeightsEqualTheDefinition(t *testing.T) {
	t.Parallel()
	const n, width, kmax, epsilon = 120, 5, 60, 0.0437
	g := testgraph.Random(n, 150, 3).RandomWeights(30, 4)
	x := make([]float64, n*width)
	for i := range x {
		x[i] = float64(float32(math.Sin(float64(3*i)) * 2))
	}
	dir := t.TempDir()
	var edges, features strings.Builder
	fmt.Fprintln(&edges, "from,to,since,amount")
	for i, a := range g.Adj {
		for k, j := range a {
			if int(j) > i || k%2 == 0 { // some edges in both directions
				fmt.Fprintf(&edges, "%d,%d,1999,%s\n", i, j, strconv.FormatFloat(float64(g.Weights[i][k]), 'g', -1, 32))
			}
		}
	}
	fmt.Fprintln(&features, "id,a,b,c,d,e")
	for i := range n {
		fmt.Fprint(&features, i)
		for _, v := range x[i*width : (i+1)*width] {
			fmt.Fprintf(&features, ",%s", strconv.FormatFloat(v, 'g', -1, 32))
		}
		fmt.Fprintln(&features)
	}
	write(t, filepath.Join(dir, "edges.csv"), edges.String())
	write(t, filepath.Join(dir, "features.csv"), features.String())
	for _, r := range []float64{0, 0.5, 1} {
		for _, stationary := range []string{"global", "component"} {
			t.Run(fmt.Sprintf("r=%g/%s", r, stationary), func(t *testing.T) {
				o := testgraph.NewOracle(g, r, stationary == "component")
				k, _ := testgraph.LSI(o.Distances(o.Identity(), n, kmax), epsilon)
				rows := o.Smooth(x, width, k)
				to := filepath.Join(t.TempDir(), "run")
				run(t, strings.Fields(fmt.Sprintf("run --run %s --quiet --dataset edges:%s?weight=amount&features=%s --lsi influence-exact --r %g --stationary %s --epsilon %g --kmax %d --targets all --normalize none",
					to, filepath.Join(dir, "edges.csv"), filepath.Join(dir, "features.csv"), r, stationary, epsilon, kmax))...)
				for i, row := range exported(t, to, "lsi") {
					if row[0] != float64(i) || row[1] != float64(k[i]) {
						t.Errorf("node %v has K = %v, the definition says %d for node %d", row[0], row[1], k[i], i)
					}
				}
				for i, row := range exported(t, to, "smoothed") {
					for c, want := range rows[i*width : (i+1)*width] {
						if got := row[len(row)-width+c]; math.Abs(got-want) > 1e-5*max(1, math.Abs(want)) {
							t.Fatalf("node %d, column %d: %g, the definition says %g", i, c, got, want)
						}
					}
				}
				weights := map[[2]float64]float64{}
				for _, row := range exported(t, to, "edges") {
					weights[[2]float64{row[0], row[1]}] = row[2]
				}
				for i, a := range g.Adj {
					for k, j := range a {
						if i < int(j) && float32(weights[[2]float64{float64(i), float64(j)}]) != g.Weights[i][k] {
							t.Fatalf("edge %d, %d is exported with weight %g, not %g", i, j, weights[[2]float64{float64(i), float64(j)}], g.Weights[i][k])
						}
					}
				}
			})
		}
	}
}

func write(t *testing.T, file, text string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// exported are the rows of an artifact as CSV, without the header. What is no number is 0.
func exported(t *testing.T, dir, what string) (rows [][]float64) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "out.csv")
	run(t, "export", "--run", dir, "--what", what, "--format", "csv", "--out", file, "--quiet")
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	all, err := csv.NewReader(f).ReadAll()
	if err != nil || len(all) < 2 {
		t.Fatal(len(all), err)
	}
	for _, fields := range all[1:] {
		var row []float64
		for _, field := range fields {
			x, _ := strconv.ParseFloat(field, 64)
			row = append(row, x)
		}
		rows = append(rows, row)
	}
	return rows
}

// TestWeightsSettle: rows of a graph with weights settle, and are as near to exact ones as the
// bound says. K is that of an exact run.
func TestWeightsSettle(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	const width = 245
	const job = "--dataset synthetic:nodes=4000,edges=9000,features=245,classes=3,seed=5,weights=10 --epsilon 0.02 --kmax 80 --runs 1 --epochs 1 --label-depth 0 --block-columns 16 --quiet"
	made := func(name string, options ...string) (k, rows [][]float64, edges float64) {
		t.Helper()
		to := filepath.Join(dir, name)
		run(t, append(append([]string{"run", "--run", to}, strings.Fields(job)...), options...)...)
		run(t, "verify", "--run", to, "--quiet")
		return exported(t, to, "lsi"), exported(t, to, "smoothed"), smoothingOf(t, to).Edges
	}
	exactK, exact, all := made("exact")
	for _, c := range []struct {
		name    string
		options []string
		bound   float64
	}{
		{"deviation", []string{"--active", "settled", "--deviation", "0.01"}, 0.01},
		{"slack", []string{"--active", "settled", "--slack", "8"}, 0.01},
	} {
		k, rows, edges := made(c.name, c.options...)
		if c.name == "deviation" && !reflect.DeepEqual(k, exactK) {
			t.Error("another K than without settled rows")
		}
		mean := 0.0
		for i, row := range rows {
			off, length := 0.0, 0.0
			for at, x := range row[len(row)-width:] {
				want := exact[i][len(row)-width+at]
				off += (x - want) * (x - want)
				length += want * want
			}
			mean += math.Sqrt(off/length) / float64(len(rows))
		}
		if reported := smoothingOf(t, filepath.Join(dir, c.name)).Deviation.Mean; !(mean > 0 && mean <= c.bound) || !(reported > 0 && reported <= c.bound) {
			t.Errorf("%s: rows are %g away from exact ones in the mean, the run says %g", c.name, mean, reported)
		}
		if edges > 0.8*all {
			t.Errorf("%s: %g edges are read, %g without settled rows", c.name, edges, all)
		}
	}
}

// smoothing is what run.json says of the stage smooth.
type smoothing struct {
	Name      string
	Edges     float64 `json:"edges_streamed"`
	Deviation struct{ Mean float64 }
}

func smoothingOf(t *testing.T, dir string) smoothing {
	t.Helper()
	var record struct{ Stages []smoothing }
	decode(t, filepath.Join(dir, "run.json"), &record)
	for _, s := range record.Stages {
		if s.Name == "smooth" {
			return s
		}
	}
	t.Fatal("run.json has no stage smooth")
	return smoothing{}
}
