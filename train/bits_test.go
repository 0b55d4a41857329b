package train

import (
	"math"
	"testing"

	"ndls/internal/rng"
	"ndls/train/dense"
)

// TestKnownBits pins the weights of small models: they are the same on every
// platform, with every kernel, and change only with the algorithm. The steps of one have one piece each, those of the other four.
func TestKnownBits(t *testing.T) {
	for batch, want := range map[int]uint64{64: 0x1393e3fcabc602ca, 400: 0x4cc37586750a6ab3} {
		o := quick()
		o.Epochs, o.BatchSize, o.Schedule = 5, batch, Cosine
		for _, kernel := range []string{"go", "avx2", "avx512"} {
			if _, err := dense.Select(kernel); err != nil {
				continue
			}
			r := mustFit(t, clouds(800, 40, 35, 100), o, Resources{Budget: testBudget(t, 32<<20), Kernel: kernel})
			digest := uint64(0)
			for _, w := range r.Models[0].params {
				digest = rng.Hash(digest, uint64(math.Float32bits(w)))
			}
			if digest != want {
				t.Errorf("%s: the weights of steps of %d rows hash to %#x, want %#x", kernel, batch, digest, want)
			}
		}
	}
}
