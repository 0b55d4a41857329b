package train

import (
	"slices"
	"testing"
)

// TestHeld trains on rows that are held, those that train or validate alone, and on the whole source: models and
// their course are the same, whether a step takes all rows or some.
func TestHeld(t *testing.T) {
	p := clouds(3000, 24, 3, 700)
	keep := func(row int64) bool { return p.Splits[row] == Train || p.Splits[row] == Valid }
	rows := int64(0)
	held := Problem{Classes: p.Classes}
	for row := range p.Source.NumRows() {
		if keep(row) {
			rows++
			held.Labels, held.Splits = append(held.Labels, p.Labels[row]), append(held.Splits, p.Splits[row])
		}
	}
	b := testBudget(t, 64<<20)
	h, err := Hold(t.Context(), p.Source, rows, keep, b)
	if err != nil {
		t.Fatal(err)
	}
	defer h.Free()
	if taken := 64<<20 - b.Free(); taken > HeldBytes(rows, 24) {
		t.Errorf("%d bytes are held, %d were planned", taken, HeldBytes(rows, 24))
	}
	if h.NumRows() != rows || rows == p.Source.NumRows() || h.NumChunks() != p.Source.NumChunks() {
		t.Fatalf("%d of %d rows, in %d of %d chunks", h.NumRows(), p.Source.NumRows(), h.NumChunks(), p.Source.NumChunks())
	}
	held.Source = h
	for _, batch := range []int{0, 64} {
		o := quick()
		o.BatchSize, o.Runs = batch, 2
		want := mustFit(t, p, o, Resources{Budget: testBudget(t, 64<<20), Threads: 2})
		got := mustFit(t, held, o, Resources{Budget: testBudget(t, 64<<20), Threads: 2})
		for run := range want.Models {
			if !slices.Equal(got.Models[run].params, want.Models[run].params) || !slices.Equal(got.Histories[run].Epochs, want.Histories[run].Epochs) {
				t.Errorf("batches of %d: run %d is another one on held rows", batch, run)
			}
		}
	}
}
