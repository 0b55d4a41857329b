package smooth

import (
	"math"
	"slices"

	"ndls/hops"
	"ndls/internal/inorder"
	"ndls/internal/mem"
	"ndls/internal/packed"
	"ndls/spmv"
)

// outputs turns sums of rows of Z into output rows.
type outputs struct {
	s            *Smoother
	most         int // largest number of hops that a node counts
	col, columns int
	put          func(rows []float32) error
	batches      []output
}

// outputRows is the largest number of rows that are put at a time.
const outputRows = 512

// output holds some output rows of a strip.
type output struct {
	lo, hi int64     // the nodes that contain the targets
	first  int64     // number of the first target
	sums   []float32 // of the targets
	rows   []float32
	large  bool // a value is not a finite float32
}

// strip puts the targets of a strip. x returns row i of X^(0), the row of the given target, on any
// thread. The threads share the rows.
func (o *outputs) strip(lo int64, x func(i, target int64) []float32) error {
	targets, threads := o.s.o.Targets, max(o.s.g.Threads, 1)
	stride := int64(o.s.o.Layout.Columns)
	end := min(lo+packed.StripRows, o.s.n)
	return o.s.sumsOf(lo, o.most, func(sums []float32) error {
		if o.batches == nil {
			o.batches = make([]output, 2*threads)
		}
		workers := threads
		if threads == 1 {
			workers = 0
		}
		line := inorder.New(workers, o.batches, func(b *output) error {
			b.rows, b.large = b.rows[:0], false
			target := b.first
			targets.each(b.lo, b.hi, func(i int64) {
				o.row(b, i, b.sums[:stride], x(i, target))
				b.sums = b.sums[stride:]
				target++
			})
			return nil
		}, func(b *output) error {
			if b.large {
				return spmv.TooLarge(o.s.o.Layout.Precision)
			}
			return o.put(b.rows)
		})
		first := targets.Before(lo)
		for at := lo; at < end; {
			from := at
			at = targets.after(from, end, outputRows)
			n := targets.count(from, at)
			if n == 0 {
				continue
			}
			b, err := line.Next()
			if err != nil {
				break // which Close returns
			}
			b.lo, b.hi, b.first, b.sums = from, at, first, sums
			first, sums = first+n, sums[n*stride:]
			line.Put()
		}
		return line.Close()
	})
}

// sumsOf passes the sums of the strip that starts at row lo to use. Those of a history are made as if no node counted more than most hops.
func (s *Smoother) sumsOf(lo int64, most int, use func(sums []float32) error) error {
	if s.history != nil {
		return s.history.with(s, lo, most, use)
	}
	return s.sums.with(0, lo, read, use)
}

// each puts the targets of all strips. x returns the row of a target of X^(0) by its number, on any
// thread; without x these rows are zero.
func (o *outputs) each(x func(target int64) []float32) error {
	if x == nil {
		zero := make([]float32, o.s.o.Layout.Columns)
		x = func(int64) []float32 { return zero }
	}
	return o.s.eachStrip(func(lo int64) error {
		return o.strip(lo, func(_, target int64) []float32 { return x(target) })
	})
}

// beside reads X^(0), which arrives some rows at a time, together with the strips.
func (o *outputs) beside(x hops.Rows) error {
	stride := int64(o.s.o.Layout.Columns)
	rows := min(o.s.n, packed.StripRows)
	strip, err := mem.Alloc[float32](o.s.g.Budget, rows*stride, "rows of hop 0")
	if err != nil {
		return err
	}
	defer strip.Free()
	lo, at := int64(0), int64(0)
	return x(func(part []float32) error {
		for len(part) > 0 {
			hi := min(lo+packed.StripRows, o.s.n)
			n := min(int64(len(part)), (hi-at)*stride)
			copy(strip.S[(at-lo)*stride:], part[:n])
			part, at = part[n:], at+n/stride
			if at < hi {
				continue
			}
			if err := o.strip(lo, func(i, _ int64) []float32 { return strip.S[(i-lo)*stride:][:stride] }); err != nil {
				return err
			}
			lo = hi
		}
		return nil
	})
}

// row appends the output row of node i:
//
//	factor·d̃^r·(Σ_k w_k Z^(k)) + residual·X^(0)
//
// Where hops are cut off behind one that is not the node's last, x is the row of that hop, which
// then weighs what a last one does.
func (o *outputs) row(b *output, i int64, sum, x []float32) {
	s := o.s
	count := min(int(s.counts.S[i]), o.most)
	factor := s.o.Rule.factor(count) * s.g.State.Up(i)
	residual := s.o.Rule.residual(count)
	if s.finals != nil && s.history == nil && count < int(s.counts.S[i]) {
		residual += float64(s.o.Rule.factor(count) * (s.finals[count-1] - s.weights[count-1]))
	}
	from := len(b.rows)
	b.rows = slices.Grow(b.rows, o.columns)[:from+o.columns]
	sum, x = sum[o.col:o.col+o.columns], x[o.col:o.col+o.columns]
	row, largest := b.rows[from:], uint32(0)
	for c, value := range sum {
		row[c] = float32(float64(factor*float64(value)) + float64(residual*float64(x[c])))
		largest = max(largest, math.Float32bits(row[c])&^(1<<31))
	}
	b.large = b.large || largest > math.Float32bits(math.MaxFloat32)
}
