package stage_test

import (
	"context"
	"testing"

	"ndls/catalog"
	"ndls/internal/storage"
	"ndls/plan"
	"ndls/shards"
	"ndls/spmv"
	"ndls/stage"
	"ndls/stage/stagetest"
)

// whole is every stage of a run.
var whole = stage.Always()

// classes37 is a graph whose classes and features take several panels.
const classes37 = "synthetic:nodes=3000,edges=12000,features=40,classes=37,seed=3"

// fastRP lets the rows be made of the edges alone. There are three panels of two hops.
func fastRP(p *plan.Options) {
	p.Smooth.Rule, p.Smooth.Dimensions, p.Smooth.HopWeights = plan.FastRP, 40, "0,1,0,2"
	p.Train.Epochs = 60
}

func kernelHere(name string) bool {
	_, err := spmv.Select(name)
	return err == nil
}

// rows reads Arrow row files, by input id.
func rows(t testing.TB, store storage.Store, kind string) map[int64][]float32 {
	t.Helper()
	ctx, cat := context.Background(), stagetest.Open(t, store)
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

// labels reads labels and probabilities of Arrow row files, by input id.
func labels(t *testing.T, store storage.Store, kind string) (label map[int64]int32, probability map[int64][]float32) {
	t.Helper()
	ctx, cat := context.Background(), stagetest.Open(t, store)
	label, probability = map[int64]int32{}, map[int64][]float32{}
	for _, e := range cat.Entries(kind) {
		r, err := cat.Open(ctx, e)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		rows, err := shards.OpenRows(r, e.Path)
		if err != nil {
			t.Fatal(err)
		}
		for i := range rows.NumBatches() {
			var b shards.RowBatch
			if err := rows.ReadBatch(i, &b); err != nil {
				t.Fatal(err)
			}
			width := rows.Schema().Width
			for k, id := range b.ID {
				probability[id] = b.Values[k*width : (k+1)*width]
				if rows.Schema().Label {
					label[id] = b.Label[k]
				}
			}
		}
	}
	return label, probability
}

// kOf is K of every node, by input id.
func kOf(t *testing.T, store storage.Store) map[int64]int {
	t.Helper()
	cat, k := stagetest.Open(t, store), map[int64]int{}
	for _, e := range cat.Entries(catalog.KindLSI) {
		r, err := cat.Open(t.Context(), e)
		if err != nil {
			t.Fatal(err)
		}
		if err := shards.ReadLSI(r, e.Path, shards.Readers{}, func(_ int64, b shards.LSIBatch) error {
			for i, id := range b.ID {
				k[id] = int(b.K[i])
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		_ = r.Close()
	}
	return k
}
