package coordinator

import (
	"testing"

	"ndls/catalog"
	"ndls/internal/control"
)

// A plan may let features go after the partition is complete: the record stays that of the
// catalogue, before and after they are removed.
func TestOutputsWithoutFeatures(t *testing.T) {
	store, plan := finished(t)
	cat, err := catalog.Open(t.Context(), store)
	if err != nil {
		t.Fatal(err)
	}
	f, err := cat.Create(t.Context(), catalog.Describe(catalog.KindFeatures, "graph/features/tile-00000-00000.f32").In(0).Panels(0, 1).Of(string(control.Partition)))
	if err != nil {
		t.Fatal(err)
	}
	if err := cat.Commit(t.Context(), f); err != nil {
		t.Fatal(err)
	}
	with := outputsOf(cat, plan, control.Partition)
	plan.DropFeatures = true
	without := outputsOf(cat, plan, control.Partition)
	if with.Files != without.Files+1 || with.SHA256 == without.SHA256 {
		t.Errorf("with features %+v, without %+v", with, without)
	}
	if err := cat.Remove(t.Context(), func(e catalog.Entry) bool { return e.Kind == catalog.KindFeatures }); err != nil {
		t.Fatal(err)
	}
	if got := outputsOf(cat, plan, control.Partition); got != without {
		t.Errorf("after features went %+v, before %+v", got, without)
	}
}
