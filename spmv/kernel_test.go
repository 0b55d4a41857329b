package spmv

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"unsafe"

	"ndls/internal/packed"
)

// guard is written around buffers; no kernel may change it.
const guard = float32(-123456.75)

// aligned returns n floats that start offset floats past a 64-byte boundary,
// inside guards.
func aligned(n, offset int) (buf, s []float32) {
	buf = make([]float32, n+96)
	for i := range buf {
		buf[i] = guard
	}
	skip := (-int(uintptr(unsafe.Pointer(&buf[0]))) & 63) / 4
	at := 16 + skip + offset
	return buf, buf[at : at+n : at+n]
}

func checkGuards(t *testing.T, what string, buf, s []float32) {
	t.Helper()
	lo := int(uintptr(unsafe.Pointer(&s[0]))-uintptr(unsafe.Pointer(&buf[0]))) / 4
	for i, x := range buf {
		if (i < lo || i >= lo+len(s)) && x != guard {
			t.Fatalf("%s wrote outside its rows, at %d of [%d, %d)", what, i, lo, lo+len(s))
		}
	}
}

var special = []float32{
	0, float32(math.Copysign(0, -1)), 1, -1, 1e-42, -1e-42, 3e38, -3e38,
	float32(math.Inf(1)), float32(math.Inf(-1)), float32(math.NaN()), 1e-20, 7.25,
}

func fill(s []float32, seed uint64, withSpecial bool) {
	rng := rand.New(rand.NewPCG(seed, 2))
	for i := range s {
		s[i] = float32(rng.NormFloat64())
		if withSpecial && rng.IntN(8) == 0 {
			s[i] = special[rng.IntN(len(special))]
		}
	}
}

func sameBits(a, b []float32) error {
	for i := range a {
		x, y := math.Float32bits(a[i]), math.Float32bits(b[i])
		// Which NaN comes out of two is the processor's choice.
		if x != y && !(a[i] != a[i] && b[i] != b[i]) {
			return fmt.Errorf("value %d: %x, not %x", i, x, y)
		}
	}
	return nil
}

var sizes = []int{1, 2, 3, 4, 7, 8, 9, 15, 16, 31, 63, 64, 100, 257}

// TestKernelsAgree compares each kernel with its Go twin, bit by bit.
func TestKernelsAgree(t *testing.T) {
	for _, k := range available() {
		for _, width := range []int{16, 32, 48, 64, 112, 160} {
			for _, n := range sizes {
				if testing.Short() && n > 64 {
					continue
				}
				for offset := 0; offset < 16; offset += 5 {
					t.Run(fmt.Sprintf("%s/width=%d/rows=%d/offset=%d", k.Name(), width, n, offset), func(t *testing.T) {
						testRows(t, k, n, width, offset)
					})
				}
			}
		}
	}
}

func testRows(t *testing.T, k *Kernel, n, width, offset int) {
	seed := uint64(n*1000 + width + offset)
	divisors := make([]float64, n)
	hops := make([]uint16, n)
	for i := range divisors {
		divisors[i] = 1 + float64(i*i%97)/3
		hops[i] = uint16(i % 5)
	}
	divisors[n/2] = 1 << 32
	divisors[n/3] = 1<<24 + 1 // not a float32
	type result struct {
		rows, sum []float32
		norms     []float64
		weighted  [32]float64
	}
	run := func(k *Kernel) result {
		buf, rows := aligned(n*width, offset)
		sumBuf, sum := aligned(n*width, offset)
		fill(rows, seed, true)
		fill(sum, seed+1, true)
		k.AddWhere(sum, rows, hops, 2, 0.625)
		weights := []float32{0, 0.25, 0, 1.3, 7e-3}
		k.AddWeighed(sum, rows, hops, weights)
		k.Divide(rows, divisors, 1)
		_, self := aligned(n*width, offset)
		fill(self, seed+3, true)
		k.Start(rows, self, divisors, 0.5)
		k.Divide(rows, divisors, 0.5)
		norms := make([]float64, n)
		norms[0] = 0.5
		finite := make([]float32, n*width)
		fill(finite, seed+2, false)
		k.SquareNorms(norms, finite)
		var weighted [32]float64
		weighted[3] = 2
		k.WeightedSums(&weighted, finite, divisors)
		checkGuards(t, "Divide", buf, rows)
		checkGuards(t, "AddWhere and AddWeighed", sumBuf, sum)
		return result{slices.Clone(rows), slices.Clone(sum), norms, weighted}
	}
	got, want := run(k), run(goKernel)
	if err := sameBits(got.rows, want.rows); err != nil {
		t.Error("Divide and Start:", err)
	}
	if err := sameBits(got.sum, want.sum); err != nil {
		t.Error("AddWhere and AddWeighed:", err)
	}
	if !slices.Equal(got.norms, want.norms) {
		t.Error("SquareNorms:", got.norms, want.norms)
	}
	if got.weighted != want.weighted {
		t.Error("WeightedSums:", got.weighted, want.weighted)
	}
}

// frame packs edges given as (src, row).
func frame(t testing.TB, edges [][2]uint32) packed.Frame {
	t.Helper()
	var out packed.Frame
	e := packed.NewEncoder(func(f packed.Frame, _ []byte) error {
		if out.Edges > 0 {
			t.Fatal("more than one frame")
		}
		f.Words = append(make([]byte, 0, len(f.Words)+1), f.Words...) // and a byte that is read
		out = f
		return nil
	})
	for _, x := range edges {
		if err := e.Add(x[0], x[1]); err != nil {
			t.Fatal(err)
		}
	}
	if err := e.Flush(); err != nil {
		t.Fatal(err)
	}
	return out
}

func randomEdges(rng *rand.Rand, n, rows, count int) [][2]uint32 {
	edges := make([][2]uint32, count)
	for i := range edges {
		edges[i] = [2]uint32{uint32(rng.IntN(n)), uint32(rng.IntN(rows))}
	}
	slices.SortFunc(edges, func(a, b [2]uint32) int {
		if a[0] != b[0] {
			return int(a[0]) - int(b[0])
		}
		return int(a[1]) - int(b[1])
	})
	return edges
}

// randomRows makes n rows of either precision and the same as float32.
func randomRows(p Precision, n, width int, seed uint64) (z Rows, values []float32) {
	values = make([]float32, n*width)
	fill(values, seed, true)
	if p == Float32 {
		return Rows{Stride: width, S: values}, values
	}
	z = Rows{Stride: width, H: make([]uint16, n*width)}
	goKernel.Narrow(z.H, values)
	goKernel.Widen(values, z.H)
	return z, values
}

// TestAccumulateAgrees covers frames with and without escapes, every width and
// precision, lengths around the depth of the ring, frames that were cut, and
// rows that do not start at source 0.
func TestAccumulateAgrees(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	const n, rows = 300000, 50
	for _, k := range available() {
		for _, p := range []Precision{Float32, Float16} {
			for _, width := range []int{16, 32, 48, 64, 112} {
				const window = 9000
				z, values := randomRows(p, window, width, 1)
				for _, count := range []int{1, 2, 127, 128, 129, 255, 256, 257, 3000} {
					base := uint32(rng.IntN(n - window))
					// Edges on both sides of the window are cut off.
					edges := randomEdges(rng, window, rows, count)
					for i := range edges {
						edges[i][0] += base
					}
					if base > 0 {
						edges = append([][2]uint32{{rng.Uint32N(base), 7}}, edges...)
					}
					edges = append(edges, [2]uint32{base + window + 1000, 3})
					f, ok := frame(t, edges).Trim(base, base+window)
					if !ok || int(f.Edges) != count {
						t.Fatalf("%d edges are left of %d", f.Edges, count)
					}
					want := make([]float32, rows*width)
					fill(want, 9, false)
					buf, got := aligned(rows*width, 0)
					copy(got, want)
					for _, e := range edges {
						if e[0] < base || e[0] >= base+window {
							continue
						}
						for c := range width {
							want[int(e[1])*width+c] += values[int(e[0]-base)*width+c]
						}
					}
					var decoded Decoded
					k.Add(Addition{Acc: got, Cols: width, Rows: z, First: base}, f, &decoded)
					if err := sameBits(got, want); err != nil {
						t.Fatalf("%s, %v, width %d, %d edges: %v", k.Name(), p, width, count, err)
					}
					checkGuards(t, "accumulate", buf, got)
				}
			}
		}
	}
}

// TestAccumulateSlices adds columns in slices: the same as at once.
func TestAccumulateSlices(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	f := frame(t, randomEdges(rng, 500, 40, 2000))
	for _, p := range []Precision{Float32, Float16} {
		z, _ := randomRows(p, 500, 112, 8)
		for _, k := range available() {
			whole, sliced := make([]float32, 40*112), make([]float32, 40*112)
			var buf Decoded
			k.Add(Addition{Acc: whole, Cols: 112, Rows: z}, f, &buf)
			for _, col := range []int{0, 16, 64} {
				k.Add(Addition{Acc: sliced, Col: col, Cols: map[int]int{0: 16, 16: 48, 64: 48}[col], Rows: z}, f, &buf)
			}
			if err := sameBits(sliced, whole); err != nil {
				t.Errorf("%s, %v: %v", k.Name(), p, err)
			}
		}
	}
}

// TestConversionsAgree converts every float16, and every kind of float32.
func TestConversionsAgree(t *testing.T) {
	halves := make([]uint16, 1<<16)
	for i := range halves {
		halves[i] = uint16(i)
	}
	floats := make([]float32, 1<<18+5)
	rng := rand.New(rand.NewPCG(1, 1))
	for i := range floats {
		floats[i] = math.Float32frombits(rng.Uint32())
		if i%2 == 0 {
			// Near what float16 can hold, and half way between two of them.
			floats[i] = float32(math.Ldexp(float64(rng.IntN(1<<12)), rng.IntN(32)-27))
		}
	}
	copy(floats, special)
	for _, k := range available() {
		wide, want := make([]float32, len(halves)), make([]float32, len(halves))
		k.Widen(wide, halves)
		goKernel.Widen(want, halves)
		for i := range wide {
			if math.Float32bits(wide[i]) != math.Float32bits(want[i]) {
				t.Fatalf("%s: float16 %#04x becomes %x, not %x", k.Name(), i, math.Float32bits(wide[i]), math.Float32bits(want[i]))
			}
		}
		const first = 1 << 10
		for _, n := range []int{1, 15, 17} { // values that fill no panel
			k.Widen(wide[:n], halves[first:first+n])
			if err := sameBits(wide[:n], want[first:first+n]); err != nil {
				t.Errorf("%s: %d values: %v", k.Name(), n, err)
			}
		}
		for _, n := range []int{0, 1, 15, 16, 17, len(floats)} {
			narrow, wantHalf := make([]uint16, n+1), make([]uint16, n+1)
			k.Narrow(narrow[:n], floats[:n])
			goKernel.Narrow(wantHalf[:n], floats[:n])
			for i := range narrow {
				if narrow[i] != wantHalf[i] {
					t.Fatalf("%s: %x becomes %#04x, not %#04x", k.Name(), math.Float32bits(floats[i]), narrow[i], wantHalf[i])
				}
			}
		}
	}
}

func FuzzAccumulate(f *testing.F) {
	f.Add(uint64(1), 16, 40)
	f.Add(uint64(2), 300, 9000)
	f.Fuzz(func(t *testing.T, seed uint64, rows, nodes int) {
		if rows < 1 || rows > 2000 || nodes < rows || nodes > 20000 {
			return
		}
		rng := rand.New(rand.NewPCG(seed, 5))
		fr := frame(t, randomEdges(rng, nodes, rows, 1+rng.IntN(4000)))
		for _, p := range []Precision{Float32, Float16} {
			z, _ := randomRows(p, nodes, 32, seed)
			var first []float32
			for _, k := range available() {
				acc := make([]float32, rows*32)
				k.Add(Addition{Acc: acc, Cols: 32, Rows: z}, fr, new(Decoded))
				if first == nil {
					first = acc
				} else if err := sameBits(acc, first); err != nil {
					t.Fatalf("%s, %v: %v", k.Name(), p, err)
				}
			}
		}
	})
}

func TestSelect(t *testing.T) {
	for _, k := range available() {
		got, err := Select(k.Name())
		if err != nil || got.Name() != k.Name() {
			t.Errorf("Select(%q) = %v, %v", k.Name(), got, err)
		}
	}
	if k, err := Select("auto"); err != nil || k != available()[0] {
		t.Errorf("auto gave %v, %v", k, err)
	}
	if _, err := Select("sse"); err == nil {
		t.Error("an unknown kernel was accepted")
	}
}

func BenchmarkAccumulate(b *testing.B) {
	rng := rand.New(rand.NewPCG(3, 4))
	const n = 1 << 20
	f := frame(b, randomEdges(rng, n, packed.StripRows, 60000))
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

// TestComputedRowsAgree compares the loops for hops that compute a part of the rows with their Go twins.
func TestComputedRowsAgree(t *testing.T) {
	for _, k := range available() {
		for _, width := range []int{16, 48} {
			for _, n := range sizes {
				for offset := 0; offset < 16; offset += 5 {
					testComputed(t, k, n, width, offset)
				}
			}
		}
	}
}

func testComputed(t *testing.T, k *Kernel, n, width, offset int) {
	seed := uint64(n*1000 + width + offset)
	roles, divisors := make([]Role, n), make([]float64, n)
	for i := range roles {
		roles[i], divisors[i] = Role(i*7/3%3), 1+float64(i*i%97)/3
	}
	run := func(k *Kernel) []float32 {
		buf, rows := aligned(n*width, offset)
		_, from := aligned(n*width, offset)
		fill(rows, seed, true)
		fill(from, seed+1, true)
		k.loadComputed(rows, Rows{Stride: width, S: from}, roles)
		k.divideComputed(rows, divisors, roles, 0.5)
		checkGuards(t, "rows that are computed", buf, rows)
		return rows
	}
	if err := sameBits(run(k), run(goKernel)); err != nil {
		t.Errorf("%s, %d rows of %d columns: %v", k.Name(), n, width, err)
	}
}
