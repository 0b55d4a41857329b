package rng

import (
	"math"
	"slices"
	"testing"
)

func TestKnownValues(t *testing.T) {
	// SplitMix64 seeded with 1234567, as in the reference implementation.
	s := &Source{state: 1234567}
	for i, want := range []uint64{6457827717110365317, 3203168211198807973, 9817491932198370423, 4593380528125082431, 16408922859458223821} {
		if got := s.Uint64(); got != want {
			t.Errorf("number %d is %d, want %d", i, got, want)
		}
	}
	// Pinned, because graphs and results are named by their seeds.
	if got, want := Hash(1), uint64(0x910a2dec89025cc1); got != want {
		t.Errorf("Hash(1) is %#x, want %#x", got, want)
	}
}

func TestHash(t *testing.T) {
	seen := map[uint64]bool{}
	for seed := range uint64(10) {
		for a := range uint64(100) {
			for b := range uint64(10) {
				seen[Hash(seed, a, b)] = true
			}
		}
	}
	if len(seen) != 10*100*10 {
		t.Errorf("%d different hashes of 10000 keys", len(seen))
	}
	if Hash(1, 2, 3) == Hash(1, 3, 2) || Hash(1, 2) == Hash(2, 1) || Hash(1, 0) == Hash(1) {
		t.Error("the order and the number of keys must matter")
	}
	if n := testing.AllocsPerRun(100, func() { sink = Hash(1, sink, 3, 4) }); n != 0 {
		t.Errorf("Hash allocates %v times", n)
	}
}

var sink uint64

// moments returns mean and variance of n numbers.
func moments(n int, next func(i int) float64) (mean, variance float64) {
	for i := range n {
		x := next(i)
		mean += x
		variance += x * x
	}
	mean /= float64(n)
	return mean, variance/float64(n) - mean*mean
}

func TestMoments(t *testing.T) {
	const n = 1 << 18
	s := New(3)
	for _, c := range []struct {
		name           string
		next           func(i int) float64
		mean, variance float64
	}{
		{"Float64 of hashes", func(i int) float64 { return Float64(Hash(7, uint64(i))) }, 0.5, 1.0 / 12},
		{"Normal of hashes", func(i int) float64 { return Normal(Hash(7, uint64(i))) }, 0, 1},
		{"Below of hashes", func(i int) float64 { return float64(Below(Hash(7, uint64(i)), 10)) }, 4.5, 8.25},
		{"source Float64", func(int) float64 { return s.Float64() }, 0.5, 1.0 / 12},
		{"source Intn", func(int) float64 { return float64(s.Intn(10)) }, 4.5, 8.25},
	} {
		mean, variance := moments(n, c.next)
		if math.Abs(mean-c.mean) > 5*math.Sqrt(c.variance/n) || math.Abs(variance/c.variance-1) > 0.02 {
			t.Errorf("%s: mean %v, variance %v, want %v and %v", c.name, mean, variance, c.mean, c.variance)
		}
	}
	// A standard normal number is within one deviation 68.27 % of the time.
	within := 0
	for i := range n {
		if math.Abs(Normal(Hash(9, uint64(i)))) < 1 {
			within++
		}
	}
	if share := float64(within) / n; math.Abs(share-0.6827) > 0.01 {
		t.Errorf("%.4f of the normal numbers are within one deviation", share)
	}
}

func TestShuffle(t *testing.T) {
	const rounds = 24000
	counts := map[[4]int]int{}
	s := New(5)
	for range rounds {
		counts[[4]int(s.Perm(4))]++
	}
	if len(counts) != 24 {
		t.Errorf("%d of 24 orders seen", len(counts))
	}
	for p, n := range counts {
		if n < rounds/24*8/10 || n > rounds/24*12/10 {
			t.Errorf("order %v seen %d times of about %d", p, n, rounds/24)
		}
	}
	if !slices.Equal(New(5).Perm(50), New(5).Perm(50)) || slices.Equal(New(5).Perm(50), New(6).Perm(50)) {
		t.Error("the seed must decide the order")
	}
	defer func() {
		if recover() == nil {
			t.Error("Intn(0) must panic")
		}
	}()
	s.Intn(0)
}

func BenchmarkNormal(b *testing.B) {
	var sum float64
	for i := range b.N {
		sum += Normal(Hash(1, uint64(i), 2))
	}
	sink = uint64(int64(sum))
}

// TestStem compares hashes from a stem with whole ones.
func TestStem(t *testing.T) {
	for seed := range uint64(50) {
		for key := range uint64(50) {
			if got, want := Stem(Hash(seed)).Hash(key), Hash(seed, key); got != want {
				t.Fatalf("seed %d, key %d: %x, want %x", seed, key, got, want)
			}
			if got, want := Stem(Hash(seed, 7, key)).Hash(key+1), Hash(seed, 7, key, key+1); got != want {
				t.Fatalf("seed %d, keys 7, %d: %x, want %x", seed, key, got, want)
			}
		}
	}
}
