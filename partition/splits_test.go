package partition

import (
	"cmp"
	"context"
	"io"
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"ndls/catalog"
	"ndls/dataset"
	"ndls/internal/rng"
	"ndls/internal/storage/storagetest"
	"ndls/shards"
)

// TestShareSplit compares a split by share with the ranks of all hashes.
func TestShareSplit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 400).Draw(t, "nodes")
		seed := rapid.Uint64().Draw(t, "seed")
		train := rapid.Float64Range(0.01, 1).Draw(t, "train")
		r := shareSplit{"", train, rapid.Float64Range(0, 1-train).Draw(t, "valid")}
		ids, labels := make([]uint32, n), make([]int32, n)
		var order []int
		for i := range ids {
			ids[i], labels[i] = uint32(i*7%1009), int32(rng.Hash(seed, uint64(i), 1)%3)-1
			if labels[i] != noLabel {
				order = append(order, i)
			}
		}
		slices.SortFunc(order, func(a, b int) int {
			return cmp.Or(cmp.Compare(rng.Hash(seed, uint64(ids[a])), rng.Hash(seed, uint64(ids[b]))), cmp.Compare(ids[a], ids[b]))
		})
		want := make([]uint8, n)
		first := int(math.Round(r.train * float64(len(order))))
		second := first + min(int(math.Round(r.valid*float64(len(order)))), len(order)-first)
		for rank, node := range order {
			want[node] = uint8(dataset.Test)
			if rank < first {
				want[node] = uint8(dataset.Train)
			} else if rank < second {
				want[node] = uint8(dataset.Valid)
			}
		}
		b := budget(t, 4<<20)
		got := make([]uint8, n)
		must(t, r.draw(b, seed, 2, ids, labels, got))
		if !slices.Equal(got, want) {
			t.Fatalf("split %d, want %d", got, want)
		}
		if b.Free() != 4<<20 {
			t.Fatal("memory not given back")
		}
	})
}

// storedSplits reads the splits of a run directory, by node.
func storedSplits(t *testing.T, cat *catalog.Catalog, splits int) (all [][]uint8) {
	t.Helper()
	first := []uint8{}
	for _, e := range cat.Entries(catalog.KindNodes) {
		r, err := cat.Open(context.Background(), e)
		must(t, err)
		defer r.Close()
		must(t, shards.ReadNodes(r, e.Path, shards.Readers{}, func(_ int64, b shards.NodeBatch) error {
			first = append(first, b.Split...)
			return nil
		}))
	}
	all = append(all, first)
	for i := 1; i < splits; i++ {
		e, ok := cat.Lookup(SplitPath(i))
		if !ok {
			t.Fatalf("there is no %s", SplitPath(i))
		}
		r, err := cat.Stream(context.Background(), e)
		must(t, err)
		defer r.Close()
		x, err := io.ReadAll(r)
		must(t, err)
		all = append(all, x)
	}
	return all
}

// TestFurtherSplits draws several splits: split i is the one that the seed plus i draws by
// itself, and the node table is the same with one split and with several.
func TestFurtherSplits(t *testing.T) {
	for _, split := range []string{"random:5,6", "share:0.5,0.25"} {
		f := randomGraph(60, 150, 0)
		o := Options{Budget: budget(t, 48<<20), Scratch: scratchFolder(t), Split: split, Splits: 3, Seed: 11}
		cat := openCatalog(t, storagetest.NewMem())
		_, err := Run(context.Background(), f, cat, o)
		must(t, err)
		got := storedSplits(t, cat, 3)
		for i := range got {
			one := o
			one.Splits, one.Seed = 0, o.Seed+uint64(i)
			alone := openCatalog(t, storagetest.NewMem())
			_, err := Run(context.Background(), f, alone, one)
			must(t, err)
			if want := storedSplits(t, alone, 1)[0]; len(want) != 60 || !slices.Equal(got[i], want) {
				t.Errorf("%s: split %d is %d, want %d", split, i, got[i], want)
			}
		}
		if slices.Equal(got[0], got[1]) || slices.Equal(got[1], got[2]) {
			t.Errorf("%s: splits are equal", split)
		}
	}
	f := randomGraph(60, 150, 0)
	for _, row := range f.labels[:20] {
		f.splits = append(f.splits, splitRow{row.id, dataset.Train})
	}
	_, err := Run(context.Background(), f, openCatalog(t, storagetest.NewMem()), Options{Budget: budget(t, 48<<20), Scratch: scratchFolder(t), Splits: 2})
	if err == nil || !strings.Contains(err.Error(), "has one published split") {
		t.Errorf("a second published split: %v", err)
	}
}

// TestLabelsPerClass draws training nodes beside a published split.
func TestLabelsPerClass(t *testing.T) {
	f := randomGraph(60, 150, 0)
	for i, row := range f.labels[:40] {
		f.splits = append(f.splits, splitRow{row.id, []dataset.Split{dataset.Train, dataset.Valid, dataset.Test, dataset.Test}[i%4]})
	}
	published := openCatalog(t, storagetest.NewMem())
	o := Options{Budget: budget(t, 48<<20), Scratch: scratchFolder(t)}
	_, err := Run(context.Background(), f, published, o)
	must(t, err)
	want := storedSplits(t, published, 1)[0]
	o.LabelsPerClass, o.Splits = 4, 2
	cat := openCatalog(t, storagetest.NewMem())
	s, err := Run(context.Background(), f, cat, o)
	must(t, err)
	got := storedSplits(t, cat, 2)
	if slices.Equal(got[0], got[1]) {
		t.Error("both splits have the same training nodes")
	}
	for i := range got {
		drawn := 0
		for node, x := range got[i] {
			evaluated := want[node] == uint8(dataset.Valid) || want[node] == uint8(dataset.Test)
			if evaluated != (x == uint8(dataset.Valid) || x == uint8(dataset.Test)) || evaluated && x != want[node] {
				t.Fatalf("split %d: node %d is in %d, published in %d", i, node, x, want[node])
			}
			if x == uint8(dataset.Train) {
				drawn++
			}
		}
		if drawn != 8 {
			t.Errorf("split %d: %d training nodes", i, drawn)
		}
	}
	if s.Splits["train"] != 8 || len(s.Warnings) != 0 {
		t.Errorf("%v, %q", s.Splits, s.Warnings)
	}
	o.LabelsPerClass = 1000
	s, err = Run(context.Background(), f, openCatalog(t, storagetest.NewMem()), o)
	if err != nil || len(s.Warnings) != 1 || !strings.Contains(s.Warnings[0], "classes even, odd have fewer") || s.Splits["train"] != 30 {
		t.Errorf("%v, %q, %v", s.Splits, s.Warnings, err)
	}
}
