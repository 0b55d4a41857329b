package fastrp

import (
	"math"
	"slices"
	"strings"
	"testing"
)

func TestParseWeights(t *testing.T) {
	got, err := ParseWeights("0, 1,-0.5,7.81e0")
	if want := []float64{0, 1, -0.5, 7.81}; err != nil || !slices.Equal(got, want) {
		t.Errorf("%v, %v, want %v", got, err, want)
	}
	for _, tc := range []struct{ text, want string }{
		{"", `weight 0 is ""`},
		{"1,,1", `weight 1 is ""`},
		{"1,NaN", `weight 1 is "NaN"`},
		{"1,1e999", `weight 1 is "1e999"`},
		{"0,0", "all weights are 0"},
		{"1" + strings.Repeat(",1", mostHops), "1025 weights are more than 1024"},
	} {
		if got, err := ParseWeights(tc.text); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%.20q: %v, %v, want %q", tc.text, got, err, tc.want)
		}
	}
}

// An entry of a random row depends on its node and column alone, has the value of the degree,
// and is zero as often as the sparsity says.
func TestRandomRows(t *testing.T) {
	for _, s := range []float64{1, 3, 50} {
		p := Projection{Dimensions: 200, Weights: []float64{1}, DegreePower: -0.5, Sparsity: s, Seed: 7}
		r := p.Random()
		whole, part := make([]float32, 208), make([]float32, 16)
		count := map[float32]int{}
		const nodes = 500
		for id := range uint32(nodes) {
			degree := id % 5
			r.Row(whole, id, degree, 0)
			for first := 0; first < 208; first += 16 {
				r.Row(part, id, degree, first)
				if !slices.Equal(part, whole[first:first+16]) {
					t.Fatalf("node %d, columns from %d: %v, of the whole row %v", id, first, part, whole[first:first+16])
				}
			}
			if slices.ContainsFunc(whole[200:], func(x float32) bool { return x != 0 }) {
				t.Fatalf("node %d has columns past the width: %v", id, whole[200:])
			}
			value := float32(scale / math.Sqrt(float64(degree)+1))
			for _, x := range whole[:200] {
				count[x/value]++
			}
		}
		total := 200.0 * nodes
		for _, x := range []float32{1, -1} {
			want := total / (2 * s)
			if got := float64(count[x]); math.Abs(got-want) > 6*math.Sqrt(want) {
				t.Errorf("sparsity %g: %g entries are %g, want about %g", s, got, x, want)
			}
		}
		if rest := int(total) - count[1] - count[-1] - count[0]; rest != 0 {
			t.Errorf("sparsity %g: %d entries have another value", s, rest)
		}
	}
}

func TestEmbed(t *testing.T) {
	p := Projection{Dimensions: 18, Weights: []float64{0, 2, 0, -3, 5}, Sparsity: 3}
	if got := p.Kept(); !slices.Equal(got, []int{1, 3, 4}) {
		t.Fatalf("kept %v", got)
	}
	// Hop 1 is (3, 0, …, 4), hop 3 is zero, hop 4 is (0, …, 0, 2, 0). What is past the width
	// does not count.
	hops := make([]float32, 3*32)
	hops[0], hops[17], hops[18] = 3, 4, 100
	hops[2*32+16] = 2
	want, got := make([]float32, 18), make([]float32, 18)
	want[0], want[16], want[17] = 2*3/5., 5, 2*4/5.
	e := p.Embedder()
	for range 2 {
		if e.Embed(got, hops); !slices.EqualFunc(got, want, func(a, b float32) bool { return math.Abs(float64(a-b)) < 1e-6 }) {
			t.Errorf("%v, want %v", got, want)
		}
	}
}
