package dataset

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// arraysOf holds what NumPy and SciPy read from a file.
type arraysOf struct {
	Edges    [][2]uint32
	Weights  []float32
	Features [][]float32
	Labels   []int32
	Split    map[string]Split
}

// TestArraysOfPython reads arrays and matrices that NumPy and SciPy have written, in every type and
// order, and compares with what these libraries read from them.
func TestArraysOfPython(t *testing.T) {
	python := os.Getenv("NDLS_PYTHON")
	if python == "" && os.Getenv("CI") == "true" {
		t.Fatal("NDLS_PYTHON is not set, and CI=true requires it: it names a python with numpy and scipy")
	}
	if python == "" {
		t.Skip("NDLS_PYTHON is not set: it names a python with numpy and scipy")
	}
	dir := t.TempDir()
	if out, err := exec.Command(python, "testdata/arrays.py", dir).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	data, err := os.ReadFile(filepath.Join(dir, "cases.json"))
	if err != nil {
		t.Fatal(err)
	}
	var cases map[string]arraysOf
	if err := json.Unmarshal(data, &cases); err != nil || len(cases) < 300 {
		t.Fatalf("%d cases, %v", len(cases), err)
	}
	for uri, want := range cases {
		d, err := Open(t.Context(), strings.ReplaceAll(uri, "%s", dir), Options{})
		if err != nil {
			t.Errorf("%s: %v", uri, err)
			continue
		}
		compareArrays(t, uri, d, want)
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	}
	for file, want := range map[string]string{"half": "square", "bsr": ".tocsr()", "dia": ".tocsr()"} {
		for _, kind := range []string{"npz:", "edges:"} {
			if err := readAll(t, kind+dir+"/"+file+".npz"); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s%s: %v lacks %q", kind, file, err, want)
			}
		}
	}
}

func compareArrays(t *testing.T, uri string, d Dataset, want arraysOf) {
	t.Helper()
	info := d.Info()
	if want.Edges != nil {
		compareEdges(t, uri, d, want)
	}
	if want.Features != nil {
		rows, err := readFeatures(d)
		if err != nil || len(rows) != len(want.Features) || info.NumFeatures != len(want.Features[0]) {
			t.Errorf("%s: %d rows of %d features, %v", uri, len(rows), info.NumFeatures, err)
			return
		}
		for i, r := range rows {
			got := make([]float32, info.NumFeatures)
			for k, c := range r.indices {
				got[c] = r.values[k]
			}
			if int(r.id) != i || !slices.Equal(got, want.Features[i]) {
				t.Errorf("%s: row %d is %v, want %v", uri, r.id, got, want.Features[i])
				return
			}
		}
	}
	if want.Labels != nil {
		labels, err := readLabels(d)
		if err != nil || len(labels) != len(want.Labels) || len(info.Classes) != 3 {
			t.Errorf("%s: %d labels of classes %v, %v", uri, len(labels), info.Classes, err)
		}
		for i, label := range want.Labels {
			if labels[uint32(i)] != label {
				t.Errorf("%s: node %d has label %d, want %d", uri, i, labels[uint32(i)], label)
				break
			}
		}
	}
	if want.Split != nil {
		splits, err := readSplits(d)
		if err != nil || len(splits) != len(want.Split) {
			t.Errorf("%s: %d nodes in the split, want %d, %v", uri, len(splits), len(want.Split), err)
		}
		for node, split := range want.Split {
			if id, _ := strconv.Atoi(node); splits[uint32(id)] != split {
				t.Errorf("%s: node %s is in %v, want %v", uri, node, splits[uint32(id)], split)
				break
			}
		}
	}
}

// compareEdges compares edges in any order; directions count.
func compareEdges(t *testing.T, uri string, d Dataset, want arraysOf) {
	t.Helper()
	type edge struct {
		Edge
		weight float32
	}
	var got, wanted []edge
	if d.Info().Weighted != (want.Weights != nil) {
		t.Errorf("%s: weighted is %v", uri, d.Info().Weighted)
		return
	}
	for i, e := range want.Edges {
		w := edge{Edge: Edge{U: e[0], V: e[1]}}
		if want.Weights != nil {
			w.weight = want.Weights[i]
		}
		wanted = append(wanted, w)
	}
	if want.Weights != nil {
		r, err := d.Edges(t.Context(), Whole)
		if err != nil {
			t.Errorf("%s: %v", uri, err)
			return
		}
		defer r.Close()
		batch, weights := make([]Edge, 7), make([]float32, 7)
		for {
			n, err := r.Read(batch, weights)
			if n == 0 {
				if err == nil || err.Error() != "EOF" {
					t.Errorf("%s: %v", uri, err)
				}
				break
			}
			for i := range n {
				got = append(got, edge{batch[i], weights[i]})
			}
		}
	} else {
		edges, err := readEdges(d, 7)
		if err != nil {
			t.Errorf("%s: %v", uri, err)
		}
		for _, e := range edges {
			got = append(got, edge{Edge: e})
		}
	}
	byEnds := func(a, b edge) int {
		if a.U != b.U {
			return int(a.U) - int(b.U)
		}
		return int(a.V) - int(b.V)
	}
	slices.SortFunc(got, byEnds)
	slices.SortFunc(wanted, byEnds)
	if !slices.Equal(got, wanted) {
		t.Errorf("%s: %d edges differ from %d", uri, len(got), len(wanted))
	}
}
