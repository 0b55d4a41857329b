package pass

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"ndls/internal/mem"
	"ndls/internal/packed"
	"ndls/spmv"
)

// Sample says what [Kernels] measures.
type Sample struct {
	Nodes, Edges    int64
	Columns         int // 16, 32 or 64
	Precision       spmv.Precision
	Threads, Rounds int
	Seed            uint64
}

// Density is the number of directed edges a row that a sample has: that of
// ogbn-papers100M.
const Density = 29

// Measurement holds the speed of one loop, round by round.
type Measurement struct {
	// What is "gather", the sum of random rows, the limit of any kernel that
	// reads one row an edge in no particular order; "csr", one row after the
	// other; or "pass", strip by strip as in a pass. The last two end with the
	// division and with rows of the sample's precision.
	What string
	// Rates are edges, or rows gathered, per second of each round.
	Rates []float64
}

const (
	// readPast is the number of indices that the measured loops may read past the last.
	readPast = 64
	// measuredRows is the number of rows that CSR sums before it divides them.
	measuredRows = 256
)

// Kernels times the three loops in turn, Rounds times after one round that does
// not count, on a graph of random directed edges: the source is any node, so no
// skew helps; destinations are the first Edges/Density rows in whole strips, so
// that a sample is as dense as a pass over all nodes. Memory, in bytes:
// (Nodes + Edges/Density)·Columns·(4 or 2) + 8.5·Edges + 8·Edges/Density, and
// an accumulator of a strip for each thread where rows are float16.
func Kernels(k *spmv.Kernel, b *mem.Budget, s Sample) ([]Measurement, error) {
	m := &measured{Sample: s, kernel: k}
	defer m.free()
	if err := m.allocate(b); err != nil {
		return nil, err
	}
	loops := []struct {
		what string
		run  func()
	}{{"gather", m.runGather}, {"csr", m.runCSR}, {"pass", m.runPass}}
	result := make([]Measurement, len(loops))
	for round := -1; round < s.Rounds; round++ {
		for i, l := range loops {
			start := time.Now()
			l.run()
			result[i].What = l.what
			if round >= 0 {
				result[i].Rates = append(result[i].Rates, float64(m.edges)/time.Since(start).Seconds())
			}
		}
	}
	return result, nil
}

// measured is a random graph in all the forms that are compared.
type measured struct {
	Sample
	kernel    *spmv.Kernel
	loops     loops // of Columns and Precision
	rows      int64 // destinations
	edges     int64 // that were drawn
	cur, next spmv.Rows
	acc       []float32 // a strip for each thread, where rows are float16
	freed     []func()
	divisors  []float64 // of the destinations: their degrees and one
	offsets   []uint32  // of the destinations, then the end
	src       []uint32  // by destination
	frames    [][]packed.Frame
}

func (m *measured) free() {
	for _, free := range m.freed {
		free()
	}
}

func alloc[T uint32 | float64](m *measured, b *mem.Budget, n int64, what string) ([]T, error) {
	a, err := mem.Alloc[T](b, n, what)
	if err != nil {
		return nil, err
	}
	m.freed = append(m.freed, a.Free)
	return a.S, nil
}

func (m *measured) newRows(b *mem.Budget, n int64) (spmv.Rows, error) {
	a, err := mem.Alloc[byte](b, n*int64(m.Columns)*int64(m.Precision.Bytes()), "measured rows")
	if err != nil {
		return spmv.Rows{}, err
	}
	m.freed = append(m.freed, a.Free)
	if m.Precision == spmv.Float16 {
		return spmv.Rows{Stride: m.Columns, H: mem.View[uint16](a)}, nil
	}
	return spmv.Rows{Stride: m.Columns, S: mem.View[float32](a)}, nil
}

func (m *measured) allocate(b *mem.Budget) (err error) {
	if m.loops, err = loopsOf(m.kernel.Name()).of(m.Precision, m.Columns); err != nil {
		return err
	}
	if m.Nodes < 1 || m.Nodes >= 1<<32 || m.Edges < 1 || m.Edges >= 1<<32 {
		return fmt.Errorf("%d nodes and %d edges: each is at least 1 and below 2^32", m.Nodes, m.Edges)
	}
	m.rows = min(m.Nodes, int64(packed.Strips((m.Edges+Density-1)/Density))*packed.StripRows)
	if m.cur, err = m.newRows(b, m.Nodes); err != nil {
		return err
	}
	if m.next, err = m.newRows(b, m.rows); err != nil {
		return err
	}
	if m.Precision == spmv.Float16 {
		a, err := mem.Alloc[float32](b, int64(m.Threads*packed.StripRows*m.Columns), "accumulators")
		if err != nil {
			return err
		}
		m.freed, m.acc = append(m.freed, a.Free), a.S
	}
	if m.divisors, err = alloc[float64](m, b, m.rows, "divisors"); err != nil {
		return err
	}
	for i := range m.divisors {
		m.divisors[i] = 1
	}
	if m.offsets, err = alloc[uint32](m, b, m.rows+1, "offsets"); err != nil {
		return err
	}
	if m.src, err = alloc[uint32](m, b, m.Edges+readPast, "sources"); err != nil {
		return err
	}
	words, err := mem.Alloc[byte](b, m.Edges/2*9+2*packed.FrameBytes, "packed edges")
	if err != nil {
		return err
	}
	m.freed = append(m.freed, words.Free)
	m.fill()
	if err := m.draw(words.S); err != nil {
		return err
	}
	m.sortByRow()
	return nil
}

// fill gives every row values that differ, exact in float16.
func (m *measured) fill() {
	m.share(m.Nodes, 1<<16, func(_ int, lo, hi int64) {
		part := make([]float32, m.Columns)
		for i := lo; i < hi; i++ {
			for c := range part {
				part[c] = float32((i*int64(m.Columns)+int64(c))&1023) - 511.5
			}
			m.store(m.cur.Slice(i, i+1), part)
		}
	})
}

// draw makes the edges of each strip with ascending sources, packed in words.
func (m *measured) draw(words []byte) error {
	r := rand.New(rand.NewPCG(m.Seed, 1))
	m.frames = make([][]packed.Frame, packed.Strips(m.rows))
	encoder := packed.NewEncoder(func(f packed.Frame, _ []byte) error {
		size := len(f.Words)
		if size >= len(words) { // a byte follows the last word
			return fmt.Errorf("%d bytes of words are left for a frame of %d", len(words), size)
		}
		copy(words, f.Words)
		f.Words, words = words[:size], words[size:]
		m.frames[f.Strip] = append(m.frames[f.Strip], f)
		m.edges += int64(f.Edges)
		return nil
	})
	for s := range m.frames {
		lo := int64(s) << packed.StripShift
		rows := min(packed.StripRows, m.rows-lo)
		step := 2 * float64(m.Nodes) / float64(max(m.Edges*rows/m.rows, 1)) / (1 << 32)
		position := 0.0
		for range max(m.Edges*rows/m.rows, 1) {
			position += step * float64(r.Uint64N(1<<32))
			if position >= float64(m.Nodes) {
				break
			}
			row := lo + int64(r.Uint64N(uint64(rows)))
			if err := encoder.Add(uint32(position), uint32(row)); err != nil {
				return err
			}
			m.divisors[row]++
		}
		if err := encoder.Flush(); err != nil {
			return err
		}
	}
	return nil
}

// sortByRow makes the CSR form of what was drawn.
func (m *measured) sortByRow() {
	at := uint32(0)
	for i, d := range m.divisors {
		m.offsets[i] = at
		at += uint32(d) - 1
	}
	// Filling moves each offset to the end of its row; shifting them back by one
	// row restores them.
	for s, frames := range m.frames {
		for _, f := range frames {
			f.Visit(func(src, row uint32) {
				i := int64(s)<<packed.StripShift + int64(row)
				m.src[m.offsets[i]] = src
				m.offsets[i]++
			})
		}
	}
	copy(m.offsets[1:], m.offsets[:m.rows])
	m.offsets[0] = 0
}

// share calls work for ranges of [0, n), handed out from a queue, on all
// threads.
func (m *measured) share(n, size int64, work func(thread int, lo, hi int64)) {
	var next atomic.Int64
	var wg sync.WaitGroup
	for t := range m.Threads {
		wg.Go(func() {
			for {
				lo := next.Add(size) - size
				if lo >= n {
					return
				}
				work(t, lo, min(lo+size, n))
			}
		})
	}
	wg.Wait()
}

func (m *measured) curStride() uintptr { return uintptr(m.Columns) * uintptr(m.Precision.Bytes()) }

// runGather reads, for every edge, the row of the source in CSR order.
func (m *measured) runGather() {
	m.share(m.edges, 1<<20, func(_ int, lo, hi int64) {
		var out [64]float32
		m.loops.gather(&out[0], first(m.cur), m.curStride(), &m.src[lo], uint64(hi-lo))
	})
}

// sums returns the rows in which a thread sums rows [lo, hi): the rows of the next hop, or rows
// beside them if those are float16.
func (m *measured) sums(thread int, lo, hi int64) []float32 {
	n := (hi - lo) * int64(m.Columns)
	if m.Precision == spmv.Float16 {
		return m.acc[int64(thread)*packed.StripRows*int64(m.Columns):][:n]
	}
	return m.next.S[lo*int64(m.Columns):][:n]
}

// finish divides the sums of rows [lo, hi) and stores them.
func (m *measured) finish(sums []float32, lo, hi int64) {
	m.kernel.Divide(sums, m.divisors[lo:hi], 1)
	m.store(m.next.Slice(lo, hi), sums)
}

func (m *measured) runCSR() {
	m.share(m.rows, 1<<14, func(thread int, begin, end int64) {
		for lo := begin; lo < end; lo += measuredRows {
			hi := min(lo+measuredRows, end)
			sums := m.sums(thread, lo, hi)
			m.loops.sumCSR(&sums[0], uintptr(m.Columns)*4, first(m.cur), m.curStride(), &m.offsets[lo], &m.src[0], uint64(lo), uint64(hi-lo))
			m.finish(sums, lo, hi)
		}
	})
}

func (m *measured) runPass() {
	buffers := make([]spmv.Decoded, m.Threads)
	m.share(m.rows, packed.StripRows, func(thread int, lo, hi int64) {
		sums := m.sums(thread, lo, hi)
		m.load(sums, m.cur.Slice(lo, hi))
		for _, f := range m.frames[lo>>packed.StripShift] {
			m.kernel.Add(spmv.Addition{Acc: sums, Cols: m.Columns, Rows: m.cur}, f, &buffers[thread])
		}
		m.finish(sums, lo, hi)
	})
}

// load copies rows, as float32, to dst.
func (m *measured) load(dst []float32, rows spmv.Rows) {
	if rows.H != nil {
		m.kernel.Widen(dst, rows.H)
		return
	}
	copy(dst, rows.S)
}

// store rounds src to the precision of rows. Sums of float32 rows are in place.
func (m *measured) store(rows spmv.Rows, src []float32) {
	if rows.H != nil {
		m.kernel.Narrow(rows.H, src)
	} else if &rows.S[0] != &src[0] {
		copy(rows.S, src)
	}
}

// first points to the first row.
func first(rows spmv.Rows) *byte {
	raw, _, _ := rows.Bytes()
	return &raw[0]
}
