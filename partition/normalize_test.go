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
		"units": {func(r, c int) float32 {
			if c == 7 {
				return 30000 + 9000*float32(rng.Normal(hash(r, c)))
			}
			return float32(rng.Normal(hash(r, c)))
		}, false, "--input-norm standard"},
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
			if name != "units" && strings.Contains(choice, "units") {
				t.Errorf("%s: %s", name, choice)
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
		l1, choice, err := normalizes(t.Context(), NormalizeAuto, f, nil, func(id uint32) bool { return id != outside })
		if err != nil || l1 != want || !strings.Contains(choice, "first 3 feature rows") {
			t.Errorf("without node %d: %v, %s, %v", outside, l1, choice, err)
		}
	}
}

// TestNormalizeAutoOfNeighbours: bags of words are divided by their lengths unless neighbours
// share these.
func TestNormalizeAutoOfNeighbours(t *testing.T) {
	const rows, width = 6000, 400
	for name, c := range map[string]struct {
		share float64 // of the words of a row, those of its neighbours
		edges int
		l1    bool
		want  string
	}{
		"shared":            {0.7, rows, false, "auto chose none: of the first 4096 feature rows, "},
		"not shared":        {0, rows, true, "the lengths of neighbours correlate by"},
		"too few edges":     {0.7, 99, true, "correlate by 0.00"},
		"all of one length": {-1, rows, true, "correlate by 0.00"},
	} {
		f := &fake{info: dataset.Info{NumNodes: rows, NumFeatures: width, SparseFeatures: true}}
		for r := range rows {
			of := func(key uint64) float64 { return float64(rng.Hash(1, key) % 60) }
			words := 5 + int(c.share*of(uint64(r/4))+(1-c.share)*of(uint64(rows+r)))
			if c.share < 0 {
				words = 7
			}
			row := dataset.FeatureRow{ID: uint32(r)}
			for i := range words {
				row.Indices, row.Values = append(row.Indices, uint32(i)), append(row.Values, 1)
			}
			f.features = append(f.features, row)
			if r%4 > 0 && len(f.edges) < c.edges {
				f.edges = append(f.edges, dataset.Edge{U: uint32(r - 1), V: uint32(r)})
			}
		}
		l1, choice, err := Normalizes(t.Context(), NormalizeAuto, f, nil)
		if err != nil || l1 != c.l1 || !strings.Contains(choice, c.want) {
			t.Errorf("%s: %v, %s, %v", name, l1, choice, err)
		}
	}
}

// TestSharedLengths compares the correlation with one worked out by hand.
func TestSharedLengths(t *testing.T) {
	f := &fake{info: dataset.Info{NumNodes: 400, NumFeatures: 1}}
	// Half of the edges join lengths e and e, a quarter e and 1, a quarter 1 and 1: logarithms 1 and 0.
	// Of 400 ends 250 have 1: the mean is 5/8, the variance 15/64, the mean product 1/2.
	for i := range 200 {
		u, v := float32(math.E), float32(math.E)
		if i%4 > 1 {
			v = 1
		}
		if i%4 > 2 {
			u = 1
		}
		f.edges = append(f.edges, dataset.Edge{U: uint32(2 * i), V: uint32(2*i + 1)})
		f.features = append(f.features, dataset.FeatureRow{ID: uint32(2 * i), Dense: []float32{u}}, dataset.FeatureRow{ID: uint32(2*i + 1), Dense: []float32{-v}})
	}
	f.edges = append(f.edges, dataset.Edge{U: 3, V: 3})
	want := (0.5 - 25.0/64) / (15.0 / 64)
	got, err := sharedLengths(t.Context(), f, func(uint32) bool { return true })
	if err != nil || math.Abs(got-want) > 1e-6 {
		t.Errorf("%v, want %v, error %v", got, want, err)
	}
}
