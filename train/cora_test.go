package train

import (
	"io"
	"testing"

	"ndls/catalog"
	"ndls/dataset"
	"ndls/internal/storage/storagetest"
	"ndls/internal/testgraph"
	"ndls/internal/testkit"
	"ndls/shards"
)

// TestCora trains on ten hops of the published citation graph, averaged, which is
// nearly what the paper calls S²GC: stored as float32 and as float16.
func TestCora(t *testing.T) {
	testkit.Slow(t, "the accuracy of whole trainings")
	d, err := dataset.Open(t.Context(), "planetoid:"+testgraph.Published(t, "data/cora")+"/cora", dataset.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	p, values := averaged(t, d, 10)
	res := Resources{Budget: testBudget(t, 96<<20), Threads: 2}
	o := usual()
	o.Epochs, o.Runs = 150, 1
	full := map[uint8]float64{}
	for _, half := range []bool{false, true} {
		schema := shards.RowSchema{Column: "feature", Width: len(values) / len(p.Labels), Half: half}
		src, err := OpenRows(t.Context(), commitBatches(t, storagetest.NewMem(), schema, values, 500, len(p.Labels)), catalog.KindSmoothed)
		if err != nil {
			t.Fatal(err)
		}
		defer src.Close()
		p.Source = src
		r := mustFit(t, p, o, res)
		for _, c := range []struct {
			name     string
			split    uint8
			at, most float64
		}{{"train", Train, 0.95, 1}, {"valid", Valid, 0.78, 0.86}, {"test", Test, 0.79, 0.87}} {
			got := accuracy(t, p, r, res, c.split)
			if got < c.at || got > c.most {
				t.Errorf("float16 %v: %s accuracy %v, expected %v to %v", half, c.name, got, c.at, c.most)
			}
			if !half {
				full[c.split] = got
			} else if d := got - full[c.split]; d < -0.01 || d > 0.01 {
				t.Errorf("%s accuracy %v from float16 rows, %v from float32", c.name, got, full[c.split])
			}
		}
	}
}

// averaged is the problem of a dataset, without a source, and the values of its
// rows: X̃ = 1/(K+1) Σ_{k≤K} X^(k) for reverse transition, X the row-normalised
// features.
func averaged(t *testing.T, d dataset.Dataset, hops int) (p Problem, values []float32) {
	t.Helper()
	info := d.Info()
	n, width := int(info.NumNodes), info.NumFeatures
	x := features(t, d, n, width)
	neighbours := adjacency(t, d, n)
	sum, next := make([]float32, len(x)), make([]float32, len(x))
	for k := 0; ; k++ {
		for i, v := range x {
			sum[i] += v / float32(hops+1)
		}
		if k == hops {
			break
		}
		for i, js := range neighbours {
			row := next[i*width : (i+1)*width]
			copy(row, x[i*width:])
			for _, j := range js {
				for c, v := range x[j*width : (j+1)*width] {
					row[c] += v
				}
			}
			for c := range row {
				row[c] /= float32(len(js) + 1)
			}
		}
		x, next = next, x
	}
	p = Problem{Labels: make([]int32, n), Splits: make([]uint8, n), Classes: len(info.Classes)}
	labels, err := d.Labels(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer labels.Close()
	splits, err := d.Splits(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	defer splits.Close()
	drain(t, func() error {
		id, label, err := labels.Next()
		if err == nil {
			p.Labels[id] = label
		}
		return err
	})
	drain(t, func() error {
		id, split, err := splits.Next()
		if err == nil {
			p.Splits[id] = uint8(split)
		}
		return err
	})
	return p, sum
}

func features(t *testing.T, d dataset.Dataset, n, width int) []float32 {
	t.Helper()
	in, err := d.Features(t.Context(), dataset.Whole)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	x := make([]float32, n*width)
	drain(t, func() error {
		row, err := in.Next()
		for k, i := range row.Indices {
			x[int(row.ID)*width+int(i)] = row.Values[k] / float32(len(row.Indices)) // binary
		}
		return err
	})
	return x
}

func adjacency(t *testing.T, d dataset.Dataset, n int) [][]int {
	t.Helper()
	in, err := d.Edges(t.Context(), dataset.Whole)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	neighbours, seen := make([][]int, n), map[dataset.Edge]bool{}
	buf := make([]dataset.Edge, 1024)
	drain(t, func() error {
		k, err := in.Read(buf, nil)
		for _, e := range buf[:k] {
			if e.U > e.V {
				e.U, e.V = e.V, e.U
			}
			if e.U != e.V && !seen[e] {
				seen[e] = true
				neighbours[e.U] = append(neighbours[e.U], int(e.V))
				neighbours[e.V] = append(neighbours[e.V], int(e.U))
			}
		}
		return err
	})
	return neighbours
}

// drain calls next until it returns io.EOF.
func drain(t *testing.T, next func() error) {
	t.Helper()
	for {
		if err := next(); err == io.EOF {
			return
		} else if err != nil {
			t.Fatal(err)
		}
	}
}
