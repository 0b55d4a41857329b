package shards

import (
	"context"
	"errors"
	"reflect"
	"testing"

	"ndls/internal/seal"
	"ndls/internal/storage/storagetest"
)

func TestSummaryRoundTrip(t *testing.T) {
	ctx := context.Background()
	store := storagetest.NewMem()
	c := openCatalog(t, store)
	if _, err := ReadSummary(ctx, c); err == nil || errors.Is(err, seal.ErrCorrupt) {
		t.Errorf("summary of an empty run directory: %v", err)
	}
	want := Summary{
		Name: "cora", Nodes: 2708, Edges: 5278, InputRows: 10556, SelfLoops: 1, Repeated: 2, Components: 78, LargestComponent: 2485,
		Features: 1433, Classes: []string{"a", "b"}, Labelled: 2708, Splits: map[string]int64{"train": 140, "test": 1000},
		BlockRows: 1 << 20, IntervalRows: 1 << 24, Normalized: true, HasSplits: true,
	}
	if err := WriteSummary(ctx, c, want); err != nil {
		t.Fatal(err)
	}
	got, err := ReadSummary(ctx, openCatalog(t, store))
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, %v, want %+v", got, err, want)
	}
	if err := store.FlipByte(SummaryPath, 20); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadSummary(ctx, c); !errors.Is(err, seal.ErrCorrupt) {
		t.Errorf("damaged summary: %v, want seal.ErrCorrupt", err)
	}
}
