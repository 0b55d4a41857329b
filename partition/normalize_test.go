package partition

import (
	"context"
	"math"
	"strings"
	"testing"

	"ndls/dataset"
	"ndls/internal/rng"
)

// TestNormalizeAuto looks at bags of words, few and many to a row, stored sparse and dense, and
// at embeddings: what rows are decides, and not how they are stored.
func TestNormalizeAuto(t *testing.T) {
	const rows, width = 300, 800
	hash := func(row, column int) uint64 { return rng.Hash(1, uint64(row), uint64(column)) }
	for name, c := range map[string]struct {
		value func(row, column int) float32
		l1    bool
		want  string
	}{
		"few words": {func(r, c int) float32 {
			if hash(r, c)%40 == 0 {
				return 1
			}
			return 0
		}, true, "auto chose l1: of the first 300 feature rows, 2."},
		"many words": {func(r, c int) float32 {
			if hash(r, c)%20 < 7 {
				return 1
			}
			return 0
		}, false, "auto chose none: of the first 300 feature rows, 3"},
		"embedding": {func(r, c int) float32 {
			return float32(rng.Normal(hash(r, c)))
		}, false, "100 % of the values are not zero, some are negative"},
		"few signed numbers": {func(r, c int) float32 {
			if c%100 == 0 {
				return float32(rng.Normal(hash(r, c)))
			}
			return 0
		}, false, "some are negative"},
		"one word in many": {func(r, c int) float32 {
			if c == r {
				return 1000
			}
			return float32(hash(r, c) % 2)
		}, true, "none is negative"},
	} {
		for _, sparse := range []bool{false, true} {
			f := &fake{info: dataset.Info{NumNodes: rows, NumFeatures: width, SparseFeatures: sparse}}
			for r := range rows {
				row := dataset.FeatureRow{ID: uint32(r)}
				for column := range width {
					x := c.value(r, column)
					if name == "one word in many" && column >= width/2 && column != r {
						x = 0
					}
					switch {
					case !sparse:
						row.Dense = append(row.Dense, x)
					case x != 0:
						row.Indices, row.Values = append(row.Indices, uint32(column)), append(row.Values, x)
					}
				}
				f.features = append(f.features, row)
			}
			l1, choice, err := Normalizes(context.Background(), NormalizeAuto, f, nil)
			if err != nil || l1 != c.l1 || !strings.Contains(choice, c.want) {
				t.Errorf("%s, sparse %v: %v, %s, %v", name, sparse, l1, choice, err)
			}
			for option, want := range map[string]bool{NormalizeL1: true, NormalizeNone: false} {
				if l1, choice, err := Normalizes(context.Background(), option, f, nil); err != nil || l1 != want || choice != "" {
					t.Errorf("%s: %v, %s, %v", option, l1, choice, err)
				}
			}
		}
	}
}

// TestNormalizeAutoOfMembers: rows of nodes that are left out do not decide.
func TestNormalizeAutoOfMembers(t *testing.T) {
	f := &fake{info: dataset.Info{NumNodes: 4, NumFeatures: 4}}
	for r := range 4 {
		row := dataset.FeatureRow{ID: uint32(r), Dense: []float32{1, 0, 0, 0}}
		if r == 2 {
			row.Dense[1] = -1
		}
		f.features = append(f.features, row)
	}
	for outside, want := range map[uint32]bool{2: true, 1: false} {
		l1, choice, err := normalizes(t.Context(), NormalizeAuto, f, func(id uint32) (int32, bool) { return noLabel, id != outside })
		if err != nil || l1 != want || !strings.Contains(choice, "first 3 feature rows") {
			t.Errorf("without node %d: %v, %s, %v", outside, l1, choice, err)
		}
	}
}

// TestNormalizeAutoByClasses: bags of words are divided by their lengths unless these tell classes
// apart. Nodes without a known class do not decide, nor do few of them.
func TestNormalizeAutoByClasses(t *testing.T) {
	const rows, width, classes = 6000, 400, 3
	words := func(row int, byClass bool) int {
		n := 5 + int(rng.Hash(1, uint64(row))%20)
		if byClass {
			n += 8 * (row % classes)
		}
		return n
	}
	for name, c := range map[string]struct {
		byClass bool
		known   int // the last so many rows have a class that is known
		l1      bool
		want    string
	}{
		"lengths tell classes":      {true, 300, false, "auto chose none: of the first 4096 feature rows, "},
		"lengths tell nothing":      {false, 300, true, "auto chose l1"},
		"no class is known":         {true, 0, true, "auto chose l1"},
		"few classes are known":     {true, 29, true, "auto chose l1"},
		"behind the first rows too": {true, 6000, false, "lie between classes"},
	} {
		f := &fake{info: dataset.Info{NumNodes: rows, NumFeatures: width, SparseFeatures: true}}
		for r := range rows {
			row := dataset.FeatureRow{ID: uint32(r)}
			for i := range words(r, c.byClass) {
				row.Indices, row.Values = append(row.Indices, uint32(i)), append(row.Values, 1)
			}
			f.features = append(f.features, row)
		}
		known := make([]int32, rows)
		for r := range known {
			known[r] = int32(r % classes)
			if r < rows-c.known {
				known[r] = noLabel
			}
		}
		l1, choice, err := Normalizes(t.Context(), NormalizeAuto, f, known)
		if err != nil || l1 != c.l1 || !strings.Contains(choice, c.want) {
			t.Errorf("%s: %v, %s, %v", name, l1, choice, err)
		}
	}
}

// TestTold compares ω² with values of the definition, worked out by hand.
func TestTold(t *testing.T) {
	var l lengthsOf
	for range 5 { // class 0: 1, 2, 3, 4; class 2: 3, 4, 5, 6, each five times
		for x := range 4 {
			l.add(0, float64(x+1))
			l.add(2, float64(x+3))
		}
	}
	// 40 numbers with mean 3.5: the sum of squares is 90, 40 of it between classes; within classes
	// a degree of freedom has 50/38.
	want := (40 - 50.0/38) / (90 + 50.0/38)
	if got := l.told(); math.Abs(got-want) > 1e-12 {
		t.Errorf("ω² = %v, want %v", got, want)
	}
}
