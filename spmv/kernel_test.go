package spmv

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"unsafe"

	"ndls/internal/mem"
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
	degree := make([]uint32, n)
	hops := make([]uint16, n)
	for i := range degree {
		degree[i] = uint32(i*i) % 97
		hops[i] = uint16(i % 5)
	}
	degree[n/2] = math.MaxUint32
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
		k.Divide(rows, degree)
		norms := make([]float64, n)
		norms[0] = 0.5
		finite := make([]float32, n*width)
		fill(finite, seed+2, false)
		k.SquareNorms(norms, finite)
		var weighted [32]float64
		weighted[3] = 2
		k.WeightedSums(&weighted, finite, degree)
		checkGuards(t, "Divide", buf, rows)
		checkGuards(t, "AddWhere", sumBuf, sum)
		return result{slices.Clone(rows), slices.Clone(sum), norms, weighted}
	}
	got, want := run(k), run(goKernel)
	if err := sameBits(got.rows, want.rows); err != nil {
		t.Error("Divide:", err)
	}
	if err := sameBits(got.sum, want.sum); err != nil {
		t.Error("AddWhere:", err)
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
	var out []byte
	e := packed.NewEncoder(func(f []byte) error {
		if out != nil {
			t.Fatal("more than one frame")
		}
		out = slices.Clone(f)
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
	f, _, err := packed.Decode(out)
	if err != nil {
		t.Fatal(err)
	}
	return f
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

// TestAccumulateAgrees covers frames with and without escapes, every width and
// lengths around the prefetch distance.
func TestAccumulateAgrees(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	const n, rows = 40000, 50
	for _, k := range available() {
		for _, width := range []int{16, 32, 48, 64, 112} {
			for _, count := range []int{1, 2, 15, 16, 17, 18, 100, 3000} {
				edges := randomEdges(rng, n, rows, count)
				f := frame(t, edges)
				z := Rows{Stride: width, S: make([]float32, n*width)}
				fill(z.S, uint64(count), true)
				want := make([]float32, rows*width)
				fill(want, 9, false)
				buf, got := aligned(rows*width, 0)
				copy(got, want)
				for _, e := range edges {
					for c, x := range z.Row(int64(e[0])) {
						want[int(e[1])*width+c] += x
					}
				}
				k.add(got, z, f, 0, width)
				if err := sameBits(got, want); err != nil {
					t.Fatalf("%s, width %d, %d edges: %v", k.Name(), width, count, err)
				}
				checkGuards(t, "accumulate", buf, got)
			}
		}
	}
}

// TestMeasuredLoopsAgree compares the loops that are measured with each other
// and with their Go twins.
func TestMeasuredLoopsAgree(t *testing.T) {
	b, err := mem.NewBudget(512 << 20)
	if err != nil {
		t.Fatal(err)
	}
	for _, columns := range []int{16, 32, 64} {
		var want, wantGather []float32
		for _, k := range available() {
			m := &measured{kernel: k, width: map[int]int{16: 0, 32: 1, 64: 2}[columns], threads: 2, nodes: 40000}
			if columns == 16 && !testing.Short() {
				m.nodes += packed.BlockRows
			}
			if err := m.allocate(b, 300000, columns, 5); err != nil {
				t.Fatal(err)
			}
			if m.edges < 250000 {
				t.Fatalf("only %d edges were drawn", m.edges)
			}
			if err := m.runCSR(); err != nil {
				t.Fatal(err)
			}
			k.Divide(m.next.S, m.degree)
			csr := slices.Clone(m.next.S)
			if err := m.runPass(); err != nil {
				t.Fatal(err)
			}
			if err := sameBits(m.next.S, csr); err != nil {
				t.Errorf("%s, %d columns: pass and CSR: %v", k.Name(), columns, err)
			}
			var out [64]float32
			k.gather[m.width](&out[0], &m.cur.S[0], uintptr(columns)*4, &m.src[0], 1000)
			if want == nil {
				want, wantGather = csr, slices.Clone(out[:])
			} else if err := errors.Join(sameBits(csr, want), sameBits(out[:], wantGather)); err != nil {
				t.Errorf("%s, %d columns: %v", k.Name(), columns, err)
			}
			m.free()
		}
	}
	if _, err := Measure(goKernel, b, 1000, 5000, 16, 2, 2, 1); err != nil {
		t.Error(err)
	}
	if _, err := Measure(goKernel, b, 1000, 5000, 24, 2, 2, 1); err == nil {
		t.Error("24 columns were accepted")
	}
}

func FuzzAccumulate(f *testing.F) {
	f.Add(uint64(1), 16, 40)
	f.Add(uint64(2), 300, 9000)
	f.Fuzz(func(t *testing.T, seed uint64, rows, nodes int) {
		if rows < 1 || rows > 2000 || nodes < rows || nodes > 20000 {
			t.Skip()
		}
		rng := rand.New(rand.NewPCG(seed, 5))
		fr := frame(t, randomEdges(rng, nodes, rows, 1+rng.IntN(4000)))
		z := Rows{Stride: 32, S: make([]float32, nodes*32)}
		fill(z.S, seed, true)
		var first []float32
		for _, k := range available() {
			acc := make([]float32, rows*32)
			k.add(acc, z, fr, 0, 32)
			if first == nil {
				first = acc
			} else if err := sameBits(acc, first); err != nil {
				t.Fatalf("%s: %v", k.Name(), err)
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
	const n, rows = 1 << 20, 1 << 17
	f := frame(b, randomEdges(rng, n, rows, 200000))
	for _, k := range available() {
		for _, width := range []int{16, 32, 64} {
			b.Run(fmt.Sprintf("%s/columns=%d", k.Name(), width), func(b *testing.B) {
				z := Rows{Stride: width, S: make([]float32, n*width)}
				acc := make([]float32, rows*width)
				fill(z.S, 1, false)
				for b.Loop() {
					k.add(acc, z, f, 0, width)
				}
				b.ReportMetric(float64(f.Edges)*float64(b.N)/b.Elapsed().Seconds()/1e6, "Medges/s")
			})
		}
	}
}
