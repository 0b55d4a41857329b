package dense

import (
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"testing"
)

func numbers(seed uint64, n int) []float32 {
	rng := rand.New(rand.NewPCG(seed, 1))
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(rng.NormFloat64())
	}
	return x
}

// exact is x·y + z by arithmetic of any length, rounded once.
func exact(x, y, z float32) float32 {
	p := new(big.Float).SetPrec(2000).Mul(big.NewFloat(float64(x)), big.NewFloat(float64(y)))
	p.SetPrec(2000).Add(p, big.NewFloat(float64(z)))
	f, _ := p.Float32()
	return f
}

func TestAdd(t *testing.T) {
	check := func(x, y, z float32) {
		t.Helper()
		want := exact(x, y, z)
		product, addend := float64(x)*float64(y), float64(z)
		if got := add(product, addend); !same(got, want) {
			t.Fatalf("%b * %b + %b is %b, want %b", x, y, z, got, want)
		}
		if sum := product + addend; !roundsTwice(sum) && !same(float32(sum), want) {
			t.Fatalf("%b * %b + %b, rounded twice, is %b, want %b", x, y, z, float32(sum), want)
		}
	}
	// Below 2^-126, a little less than half of the last place, which float64 rounds to the half.
	check(0x1p-75*(1+0x1p-23), 0x1p-75*(1-0x1p-23), math.Float32frombits(1<<22+1))
	rng := rand.New(rand.NewPCG(3, 4))
	for range 300_000 {
		// Exponents near each other, so that roundings meet, and the edges of the range.
		draw := func(lo, hi int) float32 {
			return math.Float32frombits(uint32(rng.IntN(2))<<31 | uint32(lo+rng.IntN(hi-lo))<<23 | rng.Uint32()>>9&(0x7fffff<<uint(rng.IntN(24))&0x7fffff))
		}
		x, y := draw(90, 160), draw(90, 160)
		z := float32(float64(x)*float64(y)) * draw(100, 154)
		if rng.IntN(4) == 0 {
			x, y, z = draw(0, 254), draw(0, 254), draw(0, 254)
		}
		check(x, y, z)
	}
}

// same compares bits, but for the sign of zero.
func same(a, b float32) bool {
	return math.Float32bits(a) == math.Float32bits(b) || a == 0 && b == 0
}

// naive is the definition.
func naive(c, a, b []float32, m, n, k int) {
	for i := range m {
		for j := range n {
			for l := range k {
				c[i*n+j] = exact(a[i*k+l], b[l*n+j], c[i*n+j])
			}
		}
	}
}

// AddRows gives the bits of Add, whatever the number of rows.
func TestAddRowsEqualsAdd(t *testing.T) {
	for _, kernel := range available() {
		for _, s := range [][3]int{{1, 1, 1}, {11, 31, 9}, {12, 32, 256}, {23, 70, 300}, {20, 7, 64}, {13, 33, 300}, {48, 172, 257}, {24, 16, 40}, {12, 8, 9}, {12, 4, 9}, {7, 5, 0}} {
			m, n, k := s[0], s[1], s[2]
			a, b, want := numbers(1, m*k), numbers(2, k*n), numbers(3, m*n)
			got := append([]float32(nil), want...)
			left, right := make([]float32, kernel.LeftSize(m, k)), make([]float32, kernel.RightSize(k, n))
			kernel.PackLeft(left, a, 0, m, k, k)
			kernel.PackRight(right, b, n, 0, k, k, n)
			kernel.Add(want, Area{Bottom: m, Right: n}, k, n, left, right)
			kernel.AddRows(got, a, k, n, right, make([]float32, kernel.LeftSize(kernel.Rows(), k)))
			for i := range got {
				if math.Float32bits(got[i]) != math.Float32bits(want[i]) {
					t.Fatalf("%s %v: value %d is %b, want %b", kernel.name, s, i, got[i], want[i])
				}
			}
		}
	}
}

func TestKernelsEqualTheDefinition(t *testing.T) {
	for _, s := range [][3]int{{1, 1, 1}, {12, 32, 1}, {6, 16, 7}, {13, 33, 300}, {25, 5, 64}, {3, 100, 257}, {40, 70, 513}, {24, 48, 20}, {12, 8, 9}, {5, 3, 0}} {
		m, n, k := s[0], s[1], s[2]
		a, b, start := numbers(1, m*k), numbers(2, k*n), numbers(3, m*n)
		want := append([]float32(nil), start...)
		naive(want, a, b, m, n, k)
		for _, kernel := range available() {
			for _, flip := range []bool{false, true} {
				t.Run(fmt.Sprint(s, kernel.name, flip), func(t *testing.T) {
					left, right := make([]float32, kernel.LeftSize(m, k)), make([]float32, kernel.RightSize(k, n))
					got := append([]float32(nil), start...)
					if flip {
						kernel.PackRightT(right, transpose(b, k, n), n, k, k)
						// The inner indices in two parts, as the rows of two microbatches are.
						rows := append(transpose(a, m, k), numbers(9, kernel.Rows())...)
						for _, part := range [][2]int{{0, k / 3}, {k / 3, k}} {
							kernel.AddColumns(got, Area{Bottom: m, Right: n}, k, part[0], part[1], n, false, rows, m, right)
						}
						if k > 0 { // from zeros, whatever was there
							zeros, fresh := make([]float32, m*n), numbers(4, m*n)
							kernel.AddColumns(zeros, Area{Bottom: m, Right: n}, k, 0, k, n, false, rows, m, right)
							kernel.AddColumns(fresh, Area{Bottom: m, Right: n}, k, 0, k, n, true, rows, m, right)
							if !sameBits(zeros, fresh) {
								t.Error("a fresh product is another one than the product added to zeros")
							}
						}
					} else {
						kernel.PackLeft(left, a, 0, m, k, k)
						kernel.PackRight(right, b, n, 0, k, k, n)
						kernel.Add(got, Area{Bottom: m, Right: n}, k, n, left, right)
					}
					for i := range got {
						if math.Float32bits(got[i]) != math.Float32bits(want[i]) {
							t.Fatalf("value %d is %v, want %v", i, got[i], want[i])
						}
					}
				})
			}
		}
	}
}

func transpose(a []float32, m, n int) []float32 {
	t := make([]float32, len(a))
	for i := range m {
		for j := range n {
			t[j*m+i] = a[i*n+j]
		}
	}
	return t
}

func BenchmarkAdd(b *testing.B) {
	for _, s := range [][3]int{{256, 256, 128}, {256, 172, 256}, {1024, 1024, 1024}, {128, 256, 256}} {
		for _, kernel := range available() {
			b.Run(fmt.Sprintf("%dx%dx%d/%s", s[0], s[1], s[2], kernel.name), func(b *testing.B) {
				m, n, k := s[0], s[1], s[2]
				x, y, c := numbers(1, m*k), numbers(2, k*n), make([]float32, m*n)
				left, right := make([]float32, kernel.LeftSize(m, k)), make([]float32, kernel.RightSize(k, n))
				kernel.PackRight(right, y, n, 0, k, k, n)
				for b.Loop() {
					kernel.PackLeft(left, x, 0, m, k, k)
					kernel.Add(c, Area{Bottom: m, Right: n}, k, n, left, right)
				}
				b.ReportMetric(float64(b.N)*2*float64(m)*float64(n)*float64(k)/b.Elapsed().Seconds()/1e9, "GFLOP/s")
			})
		}
	}
}

// values are n numbers of several sizes, some of them far away.
func values(n int) []float32 {
	z := numbers(5, n)
	for i := range z {
		z[i] *= []float32{1, 30, 300, 1e-3}[i%4]
	}
	if n > 8 {
		z[1], z[4] = float32(math.Inf(-1)), -2000
	}
	return z
}

var lengths = []int{1, 3, 7, 8, 9, 15, 16, 17, 40, 172}

func TestExps(t *testing.T) {
	for i, n := range append(slices.Clone(lengths), lengths...) {
		z := values(n)
		if i >= len(lengths) { // powers of about one size, so that the order of their sum shows
			for j := range z {
				z[j] /= 100
			}
		}
		largest := 3.0
		for _, v := range z {
			largest = max(largest, float64(v))
		}
		want := make([]float64, n)
		wantSum := goKernel.Exps(want, z, largest)
		total := new(big.Float)
		for i, x := range z {
			if exact := math.Exp(float64(x) - largest); math.Abs(want[i]-exact) > 2e-15*exact+1e-307 {
				t.Errorf("e^%v is %v, want %v", float64(x)-largest, want[i], exact)
			}
			total.Add(total, big.NewFloat(want[i]))
		}
		if exact, _ := total.Float64(); math.Abs(wantSum-exact) > 1e-14*exact {
			t.Errorf("the sum of %d values is %v, want %v", n, wantSum, exact)
		}
		for _, k := range available() {
			p := make([]float64, n)
			if sum := k.Exps(p, z, largest); math.Float64bits(sum) != math.Float64bits(wantSum) {
				t.Errorf("%s: the sum of %d values is %v, want %v", k.name, n, sum, wantSum)
			}
			for i := range p {
				if math.Float64bits(p[i]) != math.Float64bits(want[i]) {
					t.Errorf("%s: e^%v is %v, want %v", k.name, float64(z[i])-largest, p[i], want[i])
				}
			}
		}
	}
	for _, k := range available() {
		p := make([]float64, 8)
		sum := k.Exps(p, []float32{0, float32(math.NaN()), 0, 0, 0, 0, 0, 0}, 0)
		if !math.IsNaN(sum) || !math.IsNaN(p[1]) || p[0] != 1 {
			t.Errorf("%s: %v with sum %v", k.name, p, sum)
		}
	}
}

func TestLargest(t *testing.T) {
	for _, n := range lengths {
		z := values(n)
		for at := range z {
			old := z[at]
			z[at] = 1e6
			for _, k := range available() {
				if got := k.Largest(z); got != 1e6 {
					t.Errorf("%s: the largest of %d values is %v, want value %d", k.name, n, got, at)
				}
			}
			z[at] = old
		}
	}
}

func TestScale(t *testing.T) {
	for _, n := range lengths {
		p := make([]float64, n)
		goKernel.Exps(p, values(n), 3)
		for _, k := range available() {
			to := make([]float32, n)
			k.Scale(to, p, 0.3)
			for i := range to {
				if want := float32(p[i] * 0.3); to[i] != want {
					t.Errorf("%s: value %d of %d is %v, want %v", k.name, i, n, to[i], want)
				}
			}
		}
	}
}

func TestRectify(t *testing.T) {
	for _, n := range lengths {
		for _, k := range available() {
			z, x := values(n), values(n)
			if n > 8 {
				z[2], x[2] = float32(math.NaN()), float32(math.NaN())
			}
			k.Rectify(x)
			for i, v := range z {
				want := v
				if v < 0 {
					want = 0
				}
				if math.Float32bits(x[i]) != math.Float32bits(want) {
					t.Errorf("%s: value %d of %d is %v, want %v", k.name, i, n, x[i], want)
				}
			}
		}
	}
}

// Each kernel adds the values there are, and no more.
func TestSum(t *testing.T) {
	for _, n := range []int{0, 1, 15, 16, 17, 31, 32, 33, 100, 1536} {
		x, start := numbers(1, n+1), numbers(2, n+1)
		for _, k := range available() {
			to := append([]float32(nil), start...)
			k.Sum(to[:n], x[:n])
			for i, v := range to {
				want := start[i]
				if i < n {
					want += x[i]
				}
				if v != want {
					t.Errorf("%s: value %d of %d is %v, want %v", k.name, i, n, v, want)
				}
			}
		}
	}
}
