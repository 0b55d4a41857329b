package partition

import (
	"context"
	"errors"
	"slices"
	"testing"

	"ndls/catalog"
	"ndls/dataset"
	"ndls/internal/storage/storagetest"
	"ndls/internal/testgraph"
	"ndls/internal/testkit"
	"ndls/shards"
)

// TestPublished compares counts with those known of the published graphs.
func TestPublished(t *testing.T) {
	testkit.Slow(t, "whole published graphs")
	for _, c := range []struct {
		name                     string
		nodes, edges, components int64
		features, classes        int
	}{
		{"cora", 2708, 5278, 78, 1433, 7},
		{"citeseer", 3327, 4552, 438, 3703, 6},
	} {
		t.Run(c.name, func(t *testing.T) {
			ctx := context.Background()
			ds, err := dataset.Open(ctx, "planetoid:"+testgraph.Published(t, "data/"+c.name)+"/"+c.name, dataset.Options{})
			must(t, err)
			defer func() { must(t, ds.Close()) }()
			o := Options{Budget: budget(t, 48<<20), Scratch: scratchFolder(t), Features: true}
			s, err := Run(ctx, ds, openCatalog(t, storagetest.NewMem()), o)
			must(t, err)
			if s.Nodes != c.nodes || s.Edges != c.edges || s.Components != c.components || s.Features != c.features || len(s.Classes) != c.classes || !s.Normalized {
				t.Errorf("%+v, want %+v", s, c)
			}
			if s.Splits["train"] != int64(20*c.classes) || s.Splits["valid"] != 500 || s.Splits["test"] != 1000 {
				t.Errorf("splits %v", s.Splits)
			}

			o.Split = "random:20,30"
			s, err = Run(ctx, ds, openCatalog(t, storagetest.NewMem()), o)
			must(t, err)
			if s.Splits["train"] != int64(20*c.classes) || s.Splits["valid"] != int64(30*c.classes) || s.Splits["test"] != s.Labelled-int64(50*c.classes) {
				t.Errorf("random splits %v of %d labelled nodes", s.Splits, s.Labelled)
			}
		})
	}
}

// TestGeneratedColumns makes tiles of all columns at a time, and of a quarter.
func TestGeneratedColumns(t *testing.T) {
	ctx := context.Background()
	var want []catalog.Entry
	for _, free := range []int64{64 << 20, 2 << 20} {
		ds, err := dataset.Open(ctx, "papers100m:scale=1/4096", dataset.Options{})
		must(t, err)
		cat := openCatalog(t, storagetest.NewMem())
		s, err := Run(ctx, ds, cat, Options{Budget: budget(t, free), Threads: 2, Scratch: scratchFolder(t), Features: true})
		must(t, errors.Join(err, ds.Close()))
		if s.FeatureType != shards.Float16 {
			t.Errorf("tiles of %s", s.FeatureType)
		}
		if want == nil {
			want = cat.Entries("")
		}
		if got := cat.Entries(""); !slices.Equal(got, want) {
			t.Errorf("committed\n%v, want\n%v", got, want)
		}
	}
}
