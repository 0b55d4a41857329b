package spmv

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"ndls/internal/packed"
)

// weightedFrame packs edges given as (src, row) with random weights, and gives those too.
func weightedFrame(t testing.TB, edges [][2]uint32, seed uint64) (out packed.Frame, weights []float32) {
	t.Helper()
	rng := rand.New(rand.NewPCG(seed, 6))
	e := packed.NewWeightedEncoder(func(f packed.Frame, _ []byte) error {
		if out.Edges > 0 {
			t.Fatal("more than one frame")
		}
		f.Words = append(make([]byte, 0, len(f.Words)+1), f.Words...)
		f.Weights = slices.Clone(f.Weights)
		out = f
		return nil
	})
	for _, x := range edges {
		w := float32(math.Exp(4 * rng.NormFloat64()))
		weights = append(weights, w)
		if err := e.AddWeighted(x[0], x[1], w); err != nil {
			t.Fatal(err)
		}
	}
	if err := e.Flush(); err != nil {
		t.Fatal(err)
	}
	return out, weights
}

// TestAccumulateWeighted compares every kernel with plain sums of products, bit by bit: each
// width and precision, narrow and wide words, skips, lengths around the depth of the ring, and
// frames that were cut.
func TestAccumulateWeighted(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	const n, rows, window = 300000, 50, 9000
	for _, k := range available() {
		for _, p := range []Precision{Float32, Float16} {
			for _, width := range []int{16, 32, 48, 64, 112} {
				z, values := randomRows(p, window, width, 1)
				for _, count := range []int{1, 2, 31, 32, 33, 63, 64, 65, 3000} {
					base := uint32(rng.IntN(n - window))
					edges := randomEdges(rng, window, rows, count)
					for i := range edges {
						edges[i][0] += base
					}
					if base > 0 {
						edges = append([][2]uint32{{rng.Uint32N(base), 7}}, edges...)
					}
					edges = append(edges, [2]uint32{base + window + 1000, 3})
					f, weights := weightedFrame(t, edges, uint64(count))
					f, ok := f.Trim(base, base+window)
					if !ok || int(f.Edges) != count || len(f.Weights) != packed.WeightBytes*count {
						t.Fatalf("%d edges are left of %d", f.Edges, count)
					}
					want := make([]float32, rows*width)
					fill(want, 9, false)
					buf, got := aligned(rows*width, 0)
					copy(got, want)
					for i, e := range edges {
						if e[0] < base || e[0] >= base+window {
							continue
						}
						for c := range width {
							want[int(e[1])*width+c] += float32(weights[i] * values[int(e[0]-base)*width+c])
						}
					}
					k.Add(Addition{Acc: got, Cols: width, Rows: z, First: base}, f, new(Decoded))
					if err := sameBits(got, want); err != nil {
						t.Fatalf("%s, %v, width %d, %d edges in words of %d: %v", k.Name(), p, width, count, f.Width, err)
					}
					checkGuards(t, "accumulateWeighted", buf, got)
				}
			}
		}
	}
}

// BenchmarkAccumulateWeighted is BenchmarkAccumulate with a weight for each edge, of as many
// edges as fit into a frame.
func BenchmarkAccumulateWeighted(b *testing.B) {
	rng := rand.New(rand.NewPCG(3, 4))
	const n = 1 << 20
	f, _ := weightedFrame(b, randomEdges(rng, n, packed.StripRows, 30000), 1)
	for _, k := range available() {
		for _, p := range []Precision{Float32, Float16} {
			for _, width := range []int{16, 32, 64} {
				b.Run(fmt.Sprintf("%s/%v/columns=%d", k.Name(), p, width), func(b *testing.B) {
					z := Rows{Stride: width, S: make([]float32, n*width)}
					if p == Float16 {
						z = Rows{Stride: width, H: make([]uint16, n*width)}
					}
					acc := make([]float32, packed.StripRows*width)
					var buf Decoded
					for b.Loop() {
						k.Add(Addition{Acc: acc, Cols: width, Rows: z}, f, &buf)
					}
					b.ReportMetric(float64(f.Edges)*float64(b.N)/b.Elapsed().Seconds()/1e6, "Medges/s")
				})
			}
		}
	}
}
