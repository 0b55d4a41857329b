package partition

import (
	"cmp"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"ndls/dataset"
	"ndls/internal/rng"
)

func TestParseSplit(t *testing.T) {
	for _, c := range []struct {
		text string
		want *randomSplit
		ok   bool
	}{
		{"", nil, true},
		{"random:20,30", &randomSplit{20, 30}, true},
		{"random:1,0", &randomSplit{1, 0}, true},
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
		if (err == nil) != c.ok || (got == nil) != (c.want == nil) || got != nil && *got != *c.want {
			t.Errorf("%q: %v, %v", c.text, got, err)
		}
	}
}

func FuzzParseSplit(f *testing.F) {
	f.Add("random:20,30")
	f.Fuzz(func(t *testing.T, s string) {
		if r, err := parseSplit(s); err == nil && s != "" && (r.train < 1 || r.valid < 0) {
			t.Errorf("%q: %v", s, r)
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
