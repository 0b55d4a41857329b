package imports_test

import (
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"ndls/internal/control"
	"ndls/internal/storage/storagetest"
	"ndls/plan"
	"ndls/stage/imports"
	"ndls/stage/stagetest"
)

// TestDegrees describes a graph whose degrees and components can be counted by hand: a
// star of five leaves, a triangle, an edge, and a node 12 without edges.
func TestDegrees(t *testing.T) {
	file := filepath.Join(t.TempDir(), "edges.txt")
	if err := os.WriteFile(file, []byte("0 1\n0 2\n0 3\n0 4\n0 5\n6 7\n7 8\n8 6\n9 10\n12 12\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	reports := stagetest.Run(t, storagetest.NewMem(), plan.Default(), stagetest.On(t, "edges:"+file), control.Partition, imports.Degrees)
	got := reports[1]
	want := &control.DegreesReport{
		Mean: 18. / 12, Largest: 5,
		Degrees:    []control.Range{{Count: 1}, {From: 1, To: 1, Count: 7}, {From: 2, To: 3, Count: 3}, {From: 4, To: 7, Count: 1}},
		Components: []control.Range{{From: 1, To: 1, Count: 1}, {From: 2, To: 3, Count: 2}, {From: 4, To: 7, Count: 1}},
	}
	if got.Rows != 12 || !reflect.DeepEqual(got.Degrees, want) {
		t.Errorf("%d nodes, %+v; want %+v", got.Rows, got.Degrees, want)
	}
}
