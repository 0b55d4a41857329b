package train

import (
	"slices"
	"testing"
)

// The epochs of a run, taken one by one, equal those of FitRuns; with the best of them the
// weights are its model's.
func TestEpochByEpoch(t *testing.T) {
	p, o := clouds(600, 8, 3, 100), quick()
	o.Epochs, o.Runs = 5, 2
	fitted := mustFit(t, p, o, Resources{Budget: testBudget(t, 32<<20), Threads: 1})
	x, err := Begin(t.Context(), p, o, 1, Resources{Budget: testBudget(t, 32<<20), Threads: 2})
	if err != nil {
		t.Fatal(err)
	}
	defer x.Free()
	if !x.InMemory() {
		t.Error("the rows are not in memory")
	}
	for epoch, want := range fitted.Histories[1].Epochs {
		got, err := x.Epoch(t.Context(), epoch)
		if err != nil || got != want {
			t.Errorf("epoch %d: %+v, %v, want %+v", epoch, got, err, want)
		}
		if epoch == fitted.Histories[1].Best && !slices.Equal(x.Model().params, fitted.Models[1].params) {
			t.Error("the weights are not those of FitRuns")
		}
	}
}
