package lsi

import (
	"context"
	"fmt"
	"math"

	"ndls/hops"
	"ndls/internal/direct"
	"ndls/internal/mem"
	"ndls/internal/packed"
	"ndls/internal/progress"
	"ndls/internal/share"
	"ndls/internal/stationary"
	"ndls/spmv"
)

const (
	// DirectionHops is the number of hops that random columns make before they become directions: those in which rows
	// come near the stationary ones soonest have nearly gone from them.
	DirectionHops = 20
	// directionSeed makes the columns from which directions come other ones than the random columns of the probe.
	directionSeed = 0xd1b54a32d192ed03
	// dependent is the squared length, as a share of the longest one's, below which a column counts as a combination of
	// the columns before it. It is well above the rounding of float32 columns.
	dependent = 1e-12
	// directionValues bounds the values of directions that are read at a time.
	directionValues = 1 << 16
)

// Directions is the probe [Q | (1 − QQᵀ) R/√s]: n × q orthonormal columns Q, which hold the directions in which rows of
// the graph come near their stationary rows late, beside s random columns for the rest. The part of a squared distance
// that lies in Q is exact, and what the random columns estimate is small where Q holds what decays slowly (Hutch++, Meyer
// et al., arXiv 2010.09649, for each row in place of the trace). Q is an orthonormal basis of D̃^(1−r) P^k G, less the
// stationary part, for random signs G and k = [DirectionHops]: its columns tend to the left eigenvectors of D̃^(r−1) Ã D̃^(−r)
// with the largest eigenvalues.
type Directions struct {
	random  *signs
	columns int // q, in whole panels
	n       int64
	threads int
	budget  *mem.Budget
	// rows holds the columns, panel by panel, as float32.
	rows *direct.Scratch
	// inner is Qᵀ R/√s.
	inner *mem.Array[float64]
}

// DirectionsPlan returns the layout of the blocks with which so many directions are found that fits c, and the memory of
// [NewDirections] beside what [DirectionsBytes] returns. If nothing fits, that is the smallest layout, and the error wraps
// mem.ErrBudget.
func DirectionsPlan(c hops.Capacity, directions int) (spmv.Layout, int64, error) {
	c.Columns, c.Precision = directions, spmv.Float32
	return c.Layout(func(l spmv.Layout) int64 { return 8*c.Components*int64(l.Columns) + hops.ReadBytes })
}

// DirectionsBytes returns the memory that a probe of so many directions and random columns holds.
func DirectionsBytes(directions, random int) int64 {
	return direct.RoundUp(8*int64(directions)*int64(random)) + 2*direct.RoundUp(8*int64(directions)*int64(directions)) + hops.ReadBytes/2
}

// NewDirections finds so many directions, a multiple of 16, beside width random columns, which equal those of [Signs]. l is
// the layout of the blocks. The caller closes the probe, whose scratch file has 4·n·directions bytes. All workers that share
// the rows of the graph call it.
func NewDirections(ctx context.Context, g hops.Graph, seed uint64, ids []uint32, width, directions int, l spmv.Layout,
) (_ *Directions, stats hops.Stats, err error) {
	p := &Directions{
		random: &signs{seed, ids, width}, columns: directions, n: g.Source.NumNodes(), threads: max(g.Threads, 1), budget: g.Budget,
	}
	defer func() {
		if err != nil {
			p.Close()
		}
	}()
	if p.rows, err = direct.NewScratch(g.Scratch); err != nil {
		return nil, stats, fmt.Errorf("scratch file: %w", err)
	}
	if p.inner, err = mem.Alloc[float64](g.Budget, int64(directions*width), "products of directions"); err != nil {
		return nil, stats, err
	}
	if stats, err = p.propagate(ctx, g, seed^directionSeed, l); err != nil {
		return nil, stats, fmt.Errorf("directions: %w", err)
	}
	for range 2 { // columns of float32 that were far from orthogonal are orthogonal to rounding the second time
		if err = p.orthonormal(ctx, g); err != nil {
			return nil, stats, fmt.Errorf("directions: %w", err)
		}
	}
	return p, stats, p.multiply(ctx, g)
}

// Close frees memory and disk space. p may be nil.
func (p *Directions) Close() {
	if p == nil {
		return
	}
	p.inner.Free()
	if p.rows != nil {
		_ = p.rows.Close()
	}
}

// Columns implements [Probe].
func (p *Directions) Columns() int { return p.columns + p.random.width }

// Sketch implements [Probe].
func (*Directions) Sketch() bool { return true }

// panelBytes is the size of a panel of rows.
func (p *Directions) panelBytes() int64 { return direct.RoundUp(p.n * packed.PanelColumns * 4) }

// propagate writes D̃^(1−r) P^k G to rows.
func (p *Directions) propagate(ctx context.Context, g hops.Graph, seed uint64, l spmv.Layout) (stats hops.Stats, err error) {
	meter := progress.Start(ctx, "directions", int64(hops.Blocks(p.columns, l))*DirectionHops*hops.NumEdges(g.Source), "edges")
	defer meter.Done()
	mean, err := g.State.NewMean(l.Columns)
	if err != nil {
		return stats, err
	}
	defer mean.Free()
	b, err := g.NewBlock(l)
	if err != nil {
		return stats, err
	}
	defer b.Free()
	streams := g.NewStreams(1, 0, nil)
	defer streams.Close()
	start := signs{seed, p.random.ids, p.columns}
	for first := 0; first < p.columns; first += l.Columns {
		if err := start.fill(ctx, g, b, first, 1, mean); err != nil {
			return stats, err
		}
		walk := streams.Walk(b, 0)
		for hop := range DirectionHops {
			edges, err := walk.Next(ctx, DirectionHops-hop, nil)
			meter.Add(edges)
			if err != nil {
				stats.Add(walk.Stats)
				return stats, err
			}
		}
		stats.Add(walk.Stats)
		if err := b.Edit(func(first int64, rows []float32) {
			for i := first; len(rows) > 0; i, rows = i+1, rows[l.Columns:] {
				by := g.Degree1(i) / g.State.Up(i)
				for c, x := range rows[:l.Columns] {
					rows[c] = float32(float64(x) * by)
				}
			}
		}); err != nil {
			return stats, err
		}
		panels := min(l.Columns, p.columns-first) / packed.PanelColumns
		if err := b.Save(p.rows, int64(first/packed.PanelColumns)*p.panelBytes(), panels); err != nil {
			return stats, err
		}
	}
	return stats, nil
}

// someRows is some rows of the directions.
type someRows struct {
	p      *Directions
	lo     int64
	n      int
	panels []*mem.Array[float32] // 16 columns each
}

// directionRows is the number of rows that are read at a time: whole pages of each panel.
func (p *Directions) directionRows() int {
	return max(directionValues/p.columns/64, 1) * 64
}

// at returns value c of row i of the chunk.
func (x *someRows) at(i, c int) float64 {
	return float64(x.panels[c/packed.PanelColumns].S[i*packed.PanelColumns+c%packed.PanelColumns])
}

// chunks shows all rows in ascending order, some at a time. With store it writes them back as show leaves them.
func (p *Directions) chunks(ctx context.Context, store bool, show func(x *someRows) error) (err error) {
	rows := p.directionRows()
	x := &someRows{p: p}
	defer func() {
		for _, panel := range x.panels {
			panel.Free()
		}
	}()
	for range p.columns / packed.PanelColumns {
		panel, err := mem.Alloc[float32](p.budget, int64(rows*packed.PanelColumns), "directions")
		if err != nil {
			return err
		}
		x.panels = append(x.panels, panel)
	}
	for x.lo = 0; x.lo < p.n; x.lo += int64(rows) {
		x.n = int(min(int64(rows), p.n-x.lo))
		size := direct.RoundUp(int64(x.n) * packed.PanelColumns * 4)
		if err := x.move(size, p.rows.ReadAt); err != nil {
			return err
		}
		if err := show(x); err != nil {
			return err
		}
		if store {
			if err := x.move(size, p.rows.WriteAt); err != nil {
				return err
			}
		}
		if err := ctx.Err(); err != nil {
			return context.Cause(ctx)
		}
	}
	return nil
}

// move reads or writes the panels of the chunk.
func (x *someRows) move(size int64, by func(b []byte, off int64) error) error {
	for k, panel := range x.panels {
		if err := by(mem.AsBytes(panel.S)[:size], int64(k)*x.p.panelBytes()+x.lo*packed.PanelColumns*4); err != nil {
			return fmt.Errorf("directions: %w", err)
		}
	}
	return nil
}

// orthonormal makes the columns orthonormal, by a Cholesky decomposition with pivots of their products. Columns that are
// combinations of others become zero.
func (p *Directions) orthonormal(ctx context.Context, g hops.Graph) error {
	q := p.columns
	products, err := mem.Alloc[float64](p.budget, int64(q*q), "products of directions")
	if err != nil {
		return err
	}
	defer products.Free()
	// Each sum runs in ascending order of row, so threads divide the columns.
	if err := g.Group.OrderedSum(ctx, products.S, func() error {
		return p.chunks(ctx, false, func(x *someRows) error {
			return share.Ranges(p.threads, q, 4, func(lo, hi int) error {
				for a := lo; a < hi; a++ {
					for i := range x.n {
						v := x.at(i, a)
						for panel := 0; panel*packed.PanelColumns <= a; panel++ {
							to := products.S[a*q+panel*packed.PanelColumns:][:packed.PanelColumns]
							for c, w := range x.panels[panel].S[i*packed.PanelColumns:][:packed.PanelColumns] {
								to[c] += float64(v * float64(w))
							}
						}
					}
				}
				return nil
			})
		})
	}); err != nil {
		return err
	}
	order, rank := cholesky(products.S, q)
	return p.chunks(ctx, true, func(x *someRows) error {
		return share.Ranges(p.threads, x.n, 64, func(lo, hi int) error {
			from, to := make([]float64, q), make([]float64, q)
			for i := lo; i < hi; i++ {
				for c := range from {
					from[c] = x.at(i, c)
				}
				solve(products.S, order[:rank], from, to)
				for c, v := range to {
					x.panels[c/packed.PanelColumns].S[i*packed.PanelColumns+c%packed.PanelColumns] = float32(v)
				}
			}
			return nil
		})
	})
}

// cholesky decomposes the symmetric matrix a, q × q, of which the lower triangle is given, with pivots: order lists its rows,
// and row order[j] of the lower triangular factor is at a[order[j]·q:], column l of it for order[l]. It ends with the first
// rank rows, when what is left is nothing but rounding.
func cholesky(a []float64, q int) (order []int, rank int) {
	at := func(i, j int) *float64 {
		if i < j {
			i, j = j, i
		}
		return &a[i*q+j]
	}
	// l holds the factor, by place in the order; left the squared lengths of what is left of each row.
	l, left := make([]float64, q*q), make([]float64, q)
	order = make([]int, q)
	for i := range order {
		order[i], left[i] = i, *at(i, i)
	}
	longest := 0.0
	for _, x := range left {
		longest = max(longest, x)
	}
	for rank = 0; rank < q; rank++ {
		best := rank
		for j := rank + 1; j < q; j++ {
			if left[order[j]] > left[order[best]] {
				best = j
			}
		}
		order[rank], order[best] = order[best], order[rank]
		pivot := order[rank]
		if !(left[pivot] > dependent*longest) {
			break
		}
		length := math.Sqrt(left[pivot])
		l[pivot*q+rank] = length
		for _, i := range order[rank+1:] {
			sum := *at(i, pivot)
			for k := range rank {
				sum -= float64(l[i*q+k] * l[pivot*q+k])
			}
			sum /= length
			l[i*q+rank] = sum
			left[i] -= float64(sum * sum)
		}
	}
	copy(a, l)
	return order, rank
}

// solve makes the row from of the columns orthonormal with the factor l of their products, and writes it to the row to. Column
// j of to comes from column order[j]; columns past the rank are zero.
func solve(l []float64, order []int, from, to []float64) {
	q := len(to)
	clear(to)
	for j, pivot := range order {
		sum := from[pivot]
		for k, x := range to[:j] {
			sum -= float64(l[pivot*q+k] * x)
		}
		to[j] = sum / l[pivot*q+j]
	}
}

// multiply computes Qᵀ R/√s.
func (p *Directions) multiply(ctx context.Context, g hops.Graph) error {
	width, unit := p.random.width, p.random.unit(1)
	random, err := mem.Alloc[float32](p.budget, int64(p.directionRows()*width), "random columns")
	if err != nil {
		return err
	}
	defer random.Free()
	return g.Group.OrderedSum(ctx, p.inner.S, func() error {
		return p.chunks(ctx, false, func(x *someRows) error {
			_ = share.Ranges(p.threads, x.n, 64, func(lo, hi int) error {
				for i := lo; i < hi; i++ {
					p.random.row(x.lo+int64(i), 0, unit, random.S[i*width:(i+1)*width])
				}
				return nil
			})
			return share.Ranges(p.threads, p.columns, 4, func(lo, hi int) error {
				for a := lo; a < hi; a++ {
					to := p.inner.S[a*width : (a+1)*width]
					for i := range x.n {
						v := x.at(i, a)
						for c, w := range random.S[i*width : (i+1)*width] {
							to[c] += float64(v * float64(w))
						}
					}
				}
				return nil
			})
		})
	})
}

// fill implements [Probe].
func (p *Directions) fill(ctx context.Context, g hops.Graph, b *spmv.Block, first int, scale float32, mean *stationary.Mean) error {
	columns := b.Layout().Columns
	some := min(max(directionValues/columns, 1), p.directionRows())
	out, err := mem.Alloc[float32](p.budget, int64(some*columns), "rows of the probe")
	if err != nil {
		return err
	}
	defer out.Free()
	return g.Fill(ctx, b, func(put func([]float32) error) error {
		return p.chunks(ctx, false, func(x *someRows) error {
			for from := 0; from < x.n; from += some {
				rows := min(some, x.n-from)
				_ = share.Ranges(p.threads, rows, 16, func(lo, hi int) error {
					rest := make([]float64, columns)
					for i := lo; i < hi; i++ {
						p.row(x, from+i, first, scale, rest, out.S[i*columns:(i+1)*columns])
					}
					return nil
				})
				if err := put(out.S[:rows*columns]); err != nil {
					return err
				}
			}
			return nil
		})
	}, mean)
}

// row sets columns first, first+1, … of a row, multiplied by scale. rest is memory for as many values.
func (p *Directions) row(x *someRows, i, first int, scale float32, rest []float64, to []float32) {
	clear(to)
	for c := first; c < p.columns && len(to) > 0; c++ {
		to[0] = float32(x.at(i, c)) * scale
		to = to[1:]
	}
	width := p.random.width
	if first = max(first-p.columns, 0); len(to) == 0 || first >= width {
		return
	}
	to = to[:min(len(to), width-first)]
	rest = rest[:len(to)]
	p.random.row(x.lo+int64(i), first, p.random.unit(1), to)
	for c, sign := range to {
		rest[c] = float64(sign)
	}
	for a := range p.columns {
		v := x.at(i, a)
		for c, y := range p.inner.S[a*width+first:][:len(rest)] {
			rest[c] -= float64(v * y)
		}
	}
	for c, y := range rest {
		to[c] = float32(y) * scale
	}
}
