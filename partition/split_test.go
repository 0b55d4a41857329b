package partition

import (
	"cmp"
	"context"
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"ndls/dataset"
	"ndls/internal/rng"
	"ndls/internal/storage/storagetest"
)

func TestParseSplit(t *testing.T) {
	for _, c := range []struct {
		text string
		want drawnSplit
		ok   bool
	}{
		{"", nil, true},
		{"random:20,30", &randomSplit{20, 30}, true},
		{"random:1,0", &randomSplit{1, 0}, true},
		{"share:0.6,0.2", &shareSplit{"share:0.6,0.2", 0.6, 0.2}, true},
		{"share:1,0", &shareSplit{"share:1,0", 1, 0}, true},
		{"share:0,0.5", nil, false},
		{"share:0.6,0.5", nil, false},
		{"share:0.6,-0.1", nil, false},
		{"share:NaN,0.1", nil, false},
		{"share:0.6", nil, false},
		{"share:0.6,0.2,0.2", nil, false},
		{"random:0,30", nil, false},
		{"random:-1,30", nil, false},
		{"random:20,-1", nil, false},
		{"random:20", nil, false},
		{"random:20,30,40", nil, false},
		{"random:20,x", nil, false},
		{"random:99999999999999,1", nil, false},
		{"20,30", nil, false},
		{"published", nil, false},
	} {
		got, err := parseSplit(c.text)
		if (err == nil) != c.ok || !reflect.DeepEqual(got, c.want) {
			t.Errorf("%q: %v, %v", c.text, got, err)
		}
	}
}

func TestDrawn(t *testing.T) {
	for _, c := range []struct {
		split                  string
		labelled, train, valid int64
	}{{"", 9, 0, 0}, {"random:20,30", 9, 80, 120}, {"share:0.5,0.25", 8, 4, 2}, {"share:0.5,0.5", 3, 2, 1}} {
		if train, valid, err := Drawn(c.split, 4, c.labelled); err != nil || train != c.train || valid != c.valid {
			t.Errorf("%q of %d nodes: %d, %d, %v", c.split, c.labelled, train, valid, err)
		}
	}
}

func FuzzParseSplit(f *testing.F) {
	f.Add("random:20,30")
	f.Fuzz(func(t *testing.T, s string) {
		r, err := parseSplit(s)
		if err != nil || s == "" {
			return
		}
		if train, valid := r.counts(1, 1000); train < 0 || valid < 0 || strings.HasPrefix(s, "share:") && train+valid > 1000 {
			t.Errorf("%q: %v takes %d and %d", s, r, train, valid)
		}
	})
}

// naiveDraw ranks each class by hash.
func naiveDraw(r randomSplit, seed uint64, ids []uint32, labels []int32) []uint8 {
	classes := map[int32][]int{}
	for node, label := range labels {
		if label != noLabel {
			classes[label] = append(classes[label], node)
		}
	}
	splits := make([]uint8, len(ids))
	for _, nodes := range classes {
		slices.SortFunc(nodes, func(a, b int) int {
			return cmp.Compare(rng.Hash(seed, uint64(ids[a])), rng.Hash(seed, uint64(ids[b])))
		})
		for i, node := range nodes {
			switch {
			case int64(i) < r.train:
				splits[node] = uint8(dataset.Train)
			case int64(i) < r.train+r.valid:
				splits[node] = uint8(dataset.Valid)
			default:
				splits[node] = uint8(dataset.Test)
			}
		}
	}
	return splits
}

func TestRandomSplit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(0, 300).Draw(t, "nodes")
		classes := rapid.IntRange(1, 5).Draw(t, "classes")
		seed := rapid.Uint64().Draw(t, "seed")
		r := randomSplit{rapid.Int64Range(1, 40).Draw(t, "train"), rapid.Int64Range(0, 40).Draw(t, "valid")}
		ids, labels := make([]uint32, n), make([]int32, n)
		for i := range ids {
			ids[i] = uint32(i * 7 % 1009)
			labels[i] = int32(rng.Hash(seed, uint64(i), 1)%uint64(classes+1)) - 1
		}
		b := budget(t, 1<<20)
		splits := make([]uint8, n)
		if err := r.draw(b, seed, classes, ids, labels, splits); err != nil {
			t.Fatal(err)
		}
		if want := naiveDraw(r, seed, ids, labels); !slices.Equal(splits, want) {
			t.Fatalf("split %d, want %d", splits, want)
		}
		if b.Free() != 1<<20 {
			t.Fatal("memory not given back")
		}
	})
}

// TestSplitLeavesNothing refuses a split that takes every node for training, and names
// the classes that have no validation or test node.
func TestSplitLeavesNothing(t *testing.T) {
	names := []string{"a", "b", "c", "d", "e", "f", "g"}
	for _, c := range []struct {
		split    string
		size     []int64
		warnings []string
		err      error
		message  string
	}{
		{"random:20,30", []int64{51, 60, 1000}, nil, nil, ""},
		{"random:20,0", []int64{21, 60}, nil, nil, ""},
		{"random:20,30", []int64{50, 60}, []string{"--split random:20,30 leaves no test node to class a: ask for fewer nodes of each class"}, nil, ""},
		{
			"random:20,30",
			[]int64{20, 60, 5},
			[]string{"leaves no validation node to classes a, c:", "leaves no test node to classes a, c:"},
			nil, "",
		},
		{"random:20,0", []int64{20, 60}, []string{"leaves no test node to class a:"}, nil, ""},
		{"random:20,30", []int64{1, 1, 1, 1, 1, 1, 60}, []string{"classes a, b, c, d, e and 1 others", "classes a, b, c, d, e and 1 others"}, nil, ""},
		{"random:1000,1000", []int64{50, 50}, nil, ErrSplit, "no class has more than 50 labelled nodes"},
		{"random:1,0", []int64{0, 0}, nil, dataset.ErrData, "no node has a label"},
		{"share:0.6,0.2", []int64{6, 4}, nil, nil, ""},
		{"share:0.01,0.2", []int64{6, 4}, nil, dataset.ErrData, "takes none of 10 labelled nodes"},
		{"share:0.99,0", []int64{6, 4}, nil, ErrSplit, "leaves no node for validation or testing of 10"},
		{"share:0.6,0.2", []int64{0, 0}, nil, dataset.ErrData, "no node has a label"},
	} {
		r, err := parseSplit(c.split)
		must(t, err)
		warnings, err := r.check(names[:len(c.size)], c.size)
		if !errors.Is(err, c.err) || err != nil && !strings.Contains(err.Error(), c.message) {
			t.Errorf("%s of %d: %v, want %v", c.split, c.size, err, c.err)
		}
		if !slices.EqualFunc(warnings, c.warnings, strings.Contains) {
			t.Errorf("%s of %d: warnings %q, want %q", c.split, c.size, warnings, c.warnings)
		}
	}
}

// TestSplitWarns has the warnings in the summary, and refuses before anything is
// committed.
func TestSplitWarns(t *testing.T) {
	ctx := context.Background()
	f := randomGraph(60, 150, 0)
	cat := openCatalog(t, storagetest.NewMem())
	o := Options{Budget: budget(t, 48<<20), Scratch: scratchFolder(t), Split: "random:1000,1000"}
	if _, err := Run(ctx, f, cat, o); !errors.Is(err, ErrSplit) || len(cat.Entries("")) > 0 {
		t.Errorf("%v, and %d files", err, len(cat.Entries("")))
	}
	o.Split = "random:5,25"
	s, err := Run(ctx, f, cat, o)
	must(t, err)
	if len(s.Warnings) != 1 || !strings.Contains(s.Warnings[0], "leaves no test node to classes even, odd") {
		t.Errorf("warnings %q", s.Warnings)
	}
}
