package e2e

import (
	"encoding/csv"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"ndls/internal/testgraph"
)

// inGroups has groups of two workers.
const inGroups = "--workers 4 --threads 1 --memory 640MiB --parallel grid --group-size 2"

// TestExportedEdges: edges of a graph with weights, or with directions, are exported as they were read.
func TestExportedEdges(t *testing.T) {
	t.Parallel()
	weighted := testgraph.Random(120, 150, 3).RandomWeights(30, 4)
	var text strings.Builder
	fmt.Fprintln(&text, "from,to,since,amount")
	want := map[string]map[[2]float64]float64{"weights": {}, "directions": {}}
	for i, a := range weighted.Adj {
		for k, j := range a {
			if int(j) > i || k%2 == 0 { // some edges in both directions
				fmt.Fprintf(&text, "%d,%d,1999,%s\n", i, j, strconv.FormatFloat(float64(weighted.Weights[i][k]), 'g', -1, 32))
			}
			if int(j) > i {
				want["weights"][[2]float64{float64(i), float64(j)}] = float64(weighted.Weights[i][k])
			}
		}
	}
	edges := filepath.Join(t.TempDir(), "edges.csv")
	write(t, edges, text.String())
	drawn, x := drawDirected(90, 260, 5)
	for _, e := range drawn {
		if e[0] != e[1] {
			want["directions"][[2]float64{float64(e[0]), float64(e[1])}] = 1
		}
	}
	for name, uri := range map[string]string{"weights": "edges:" + edges + "?weight=amount", "directions": directedFiles(t, 90, drawn, x)} {
		dir := filepath.Join(t.TempDir(), name)
		run(t, "partition", "--run", dir, "--quiet", "--dataset", uri)
		got := map[[2]float64]float64{}
		for _, row := range exported(t, dir, "edges") {
			weight := 1.0
			if name == "weights" {
				weight = float64(float32(row[2]))
			}
			got[[2]float64{row[0], row[1]}] = weight
		}
		if !maps.Equal(got, want[name]) {
			t.Errorf("%s: exported\n%v, want\n%v", name, got, want[name])
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
