package artifacts

import (
	"errors"
	"testing"

	"ndls/catalog"
	"ndls/internal/mem"
	"ndls/internal/storage/storagetest"
	"ndls/train"
)

func TestTraining(t *testing.T) {
	for _, half := range []bool{false, true} {
		c, err := catalog.Open(t.Context(), storagetest.NewMem())
		if err != nil {
			t.Fatal(err)
		}
		o := TrainingOptions{Rows: 5000, Width: 40, Hidden: 8, Classes: 3, Half: half, Rounds: 2}
		all, err := Training(t.Context(), c, o, train.Resources{Budget: newBudget(t, 64<<20), Threads: 2})
		if err != nil {
			t.Fatal(err)
		}
		least := int64(5000 * (8 + 4*40))
		if half {
			least = 5000 * (8 + 2*40)
		}
		for i, what := range []string{"the same bytes", "rows checked", "minibatches", "predictions", "training"} {
			m := all[i]
			if m.What != what || m.Rows != 5000 || m.Bytes < least || m.Bytes > least+least/10 || len(m.Seconds) != 2 || m.Seconds[1] <= 0 {
				t.Errorf("%+v", m)
			}
		}
	}
	c, err := catalog.Open(t.Context(), storagetest.NewMem())
	if err != nil {
		t.Fatal(err)
	}
	o := TrainingOptions{Rows: 100_000, Width: 128, Hidden: 8, Classes: 3, Rounds: 1}
	if _, err := Training(t.Context(), c, o, train.Resources{Budget: newBudget(t, 52<<20)}); !errors.Is(err, mem.ErrBudget) {
		t.Errorf("rows that do not fit: %v", err)
	}
}
