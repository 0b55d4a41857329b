package stage

import (
	"bytes"
	"encoding/json"
	"reflect"
	"slices"
	"testing"

	"ndls/catalog"
	"ndls/internal/storage"
	"ndls/train"
)

// TestLabelTallies writes tallies run by run, as one JSON value is written, and reads them back.
func TestLabelTallies(t *testing.T) {
	cat, err := catalog.Open(t.Context(), storage.NewMem())
	if err != nil {
		t.Fatal(err)
	}
	var all struct {
		Runs []train.Tally `json:"runs"`
	}
	f, err := cat.Create(t.Context(), catalog.Describe(catalog.KindLabelTally, labelTallyPath(0)).In(0))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Abort()
	var text, want bytes.Buffer
	lists := []tallyList{{w: &text}, {w: f}}
	for run := range int32(3) {
		var tally train.Tally
		tally.Count([]int32{run, 4, 2}, []int32{run, 1, 7}, []uint8{train.Train, train.Test, train.Test})
		all.Runs = append(all.Runs, tally)
		for i := range lists {
			if err := lists[i].add(tally); err != nil {
				t.Fatal(err)
			}
		}
	}
	for i := range lists {
		if err := lists[i].end(); err != nil {
			t.Fatal(err)
		}
	}
	e := json.NewEncoder(&want)
	e.SetIndent("", "  ")
	if err := e.Encode(all); err != nil {
		t.Fatal(err)
	}
	if text.String() != want.String() {
		t.Errorf("written %s, want %s", text.String(), want.String())
	}
	if err := cat.Commit(t.Context(), f); err != nil {
		t.Fatal(err)
	}
	env := &Env{Catalog: cat}
	var got []train.Tally
	if err := env.readLabelTallies(t.Context(), 0, 3, func(run int, tally train.Tally) { got = slices.Insert(got, run, tally) }); err != nil || !reflect.DeepEqual(got, all.Runs) {
		t.Errorf("read %+v, %v", got, err)
	}
	for _, runs := range []int{2, 4} {
		if err := env.readLabelTallies(t.Context(), 0, runs, func(int, train.Tally) {}); err == nil {
			t.Errorf("3 tallies were read as those of %d runs", runs)
		}
	}
}
