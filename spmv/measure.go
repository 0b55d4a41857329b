package spmv

import (
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"ndls/internal/mem"
	"ndls/internal/packed"
)

// Measurement is how fast one loop ran, round by round.
type Measurement struct {
	// What is "gather", the sum of random rows, the limit of any kernel that
	// reads one row an edge; "csr", one sum after the other by destination; or
	// "pass", what Pass.Run does.
	What string
	// Rates are edges, or rows gathered, per second of each round.
	Rates []float64
}

// readPast is how many indices the measured loops may read past the last.
const readPast = 16

// Measure times the three loops in turn, rounds times after one round that does
// not count, on a graph of uniformly random directed edges: no skew helps.
// Memory: 2·nodes·columns·4 + 8·edges + 8·nodes bytes. columns is 16, 32 or 64.
func Measure(k *Kernel, b *mem.Budget, nodes, edges int64, columns, threads, rounds int, seed uint64) ([]Measurement, error) {
	width := map[int]int{16: 0, 32: 1, 64: 2}
	if _, ok := width[columns]; !ok {
		return nil, fmt.Errorf("spmv: %d columns: there are loops for 16, 32 and 64", columns)
	}
	if nodes < 1 || nodes >= 1<<32 || edges < 1 || edges >= 1<<32 {
		return nil, fmt.Errorf("spmv: %d nodes and %d edges: each is at least 1 and below 2^32", nodes, edges)
	}
	m := &measured{kernel: k, width: width[columns], threads: threads, nodes: nodes}
	defer m.free()
	if err := m.allocate(b, edges, columns, seed); err != nil {
		return nil, err
	}
	loops := []struct {
		what string
		run  func() error
	}{{"gather", m.runGather}, {"csr", m.runCSR}, {"pass", m.runPass}}
	result := make([]Measurement, len(loops))
	for round := -1; round < rounds; round++ {
		for i, l := range loops {
			start := time.Now()
			if err := l.run(); err != nil {
				return nil, err
			}
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
	kernel     *Kernel
	width      int
	threads    int
	nodes      int64
	edges      int64
	cur, next  Rows
	arrays     []*mem.Array[uint32]
	rows       [2]*mem.Array[float32]
	degree     []uint32 // of the rows
	offsets    []uint32 // of the rows, then the end
	src        []uint32 // by destination
	words      [][]packed.Frame
	blockEdges []int64
}

func (m *measured) free() {
	for _, a := range m.arrays {
		a.Free()
	}
	for _, a := range m.rows {
		a.Free()
	}
}

func (m *measured) array(b *mem.Budget, n int64, what string) ([]uint32, error) {
	a, err := mem.Alloc[uint32](b, n, what)
	if err != nil {
		return nil, err
	}
	m.arrays = append(m.arrays, a)
	return a.S, nil
}

func (m *measured) allocate(b *mem.Budget, edges int64, columns int, seed uint64) (err error) {
	for i := range m.rows {
		if m.rows[i], err = mem.Alloc[float32](b, m.nodes*int64(columns), "measured rows"); err != nil {
			return err
		}
	}
	m.cur, m.next = Rows{columns, m.rows[0].S}, Rows{columns, m.rows[1].S}
	for i := range m.cur.S {
		m.cur.S[i] = float32(i&1023) - 511.5
	}
	if m.degree, err = m.array(b, m.nodes, "degrees"); err != nil {
		return err
	}
	if m.offsets, err = m.array(b, m.nodes+1, "offsets"); err != nil {
		return err
	}
	if m.src, err = m.array(b, edges+readPast, "sources"); err != nil {
		return err
	}
	words, err := m.array(b, edges+edges/8+1024, "packed edges")
	if err != nil {
		return err
	}
	m.draw(edges, words, seed)
	return nil
}

// draw makes the edges of each block with ascending sources, packs them, and
// sorts them by destination.
func (m *measured) draw(edges int64, words []uint32, seed uint64) {
	state := seed*2 + 1
	random := func(n uint64) uint64 {
		state ^= state << 13
		state ^= state >> 7
		state ^= state << 17
		return state % n
	}
	blocks := int((m.nodes + packed.BlockRows - 1) / packed.BlockRows)
	m.words, m.blockEdges = make([][]packed.Frame, blocks), make([]int64, blocks)
	used := 0
	for b := range blocks {
		lo := int64(b) << packed.BlockShift
		rows := min(packed.BlockRows, m.nodes-lo)
		want := max(edges*rows/m.nodes, 1)
		step := 2 * float64(m.nodes) / float64(want) / (1 << 32)
		position, src, first := 0.0, uint64(0), used
		var n int64
		for n < want {
			position += step * float64(random(1<<32))
			d := uint64(position) - src
			if position >= float64(m.nodes) || used+2 > len(words) {
				break
			}
			src += d
			row := uint32(random(uint64(rows)))
			if d < packed.Escape {
				words[used] = uint32(d)<<packed.BlockShift | row
			} else {
				words[used] = packed.Escape<<packed.BlockShift | row
				used++
				words[used] = uint32(src)
			}
			used++
			n++
			m.degree[lo+int64(row)]++
		}
		if n > 0 {
			m.words[b] = []packed.Frame{{Block: uint32(b), Edges: uint32(n), Words: words[first:used]}}
		}
		m.blockEdges[b] = n
		m.edges += n
	}
	at := uint32(0)
	for i, d := range m.degree {
		m.offsets[i] = at
		at += d
	}
	// Filling moves each offset to the end of its row; shifting them back by one
	// row restores them.
	for b, frames := range m.words {
		for _, f := range frames {
			f.Visit(func(src, row uint32) {
				i := int64(b)<<packed.BlockShift + int64(row)
				m.src[m.offsets[i]] = src
				m.offsets[i]++
			})
		}
	}
	copy(m.offsets[1:], m.offsets[:m.nodes])
	m.offsets[0] = 0
}

// share calls work for ranges of [0, n), handed out from a queue.
func (m *measured) share(n, size int64, work func(lo, hi int64)) {
	var next atomic.Int64
	var wg sync.WaitGroup
	for range m.threads {
		wg.Go(func() {
			for {
				lo := next.Add(size) - size
				if lo >= n {
					return
				}
				work(lo, min(lo+size, n))
			}
		})
	}
	wg.Wait()
}

// runGather reads, for every edge, the row of the source in CSR order.
func (m *measured) runGather() error {
	stride := uintptr(m.cur.Stride) * 4
	m.share(m.edges, 1<<20, func(lo, hi int64) {
		var out [64]float32
		m.kernel.gather[m.width](&out[0], &m.cur.S[0], stride, &m.src[lo], uint64(hi-lo))
	})
	return nil
}

func (m *measured) runCSR() error {
	stride := uintptr(m.cur.Stride) * 4
	m.share(m.nodes, 1<<16, func(lo, hi int64) {
		m.kernel.sumCSR[m.width](&m.next.S[0], &m.cur.S[0], stride, &m.offsets[lo], &m.src[0], uint64(lo), uint64(hi-lo))
	})
	return nil
}

func (m *measured) runPass() error {
	p := &Pass{Source: m, Degree: m.degree, Kernel: m.kernel, Threads: m.threads, directed: true}
	_, err := p.Run(m.cur, m.next, nil)
	return err
}

// NumNodes, Blocks, Edges and Open implement packed.Source in memory.
func (m *measured) NumNodes() int64                   { return m.nodes }
func (m *measured) Blocks() int                       { return len(m.words) }
func (m *measured) Edges(b int) int64                 { return m.blockEdges[b] }
func (m *measured) Open(b int) (packed.Frames, error) { return &inMemory{m.words[b]}, nil }

type inMemory struct{ rest []packed.Frame }

func (f *inMemory) Next() (packed.Frame, error) {
	if len(f.rest) == 0 {
		return packed.Frame{}, io.EOF
	}
	next := f.rest[0]
	f.rest = f.rest[1:]
	return next, nil
}

func (f *inMemory) Close() error { return nil }
