package lsi

import (
	"context"
	"fmt"
	"math"

	"gonum.org/v1/gonum/mat"

	"ndls/hops"
	"ndls/internal/mem"
	"ndls/internal/packed"
	"ndls/spmv"
)

const (
	// spectrumColumns is the number of sequences of hops that run side by side, each from its own
	// random signs. A pass moves as many columns in any case.
	spectrumColumns = packed.PanelColumns
	// SpectrumHops is the largest number of hops that [SecondEigenvalue] makes, spectrumError the
	// error at which it stops.
	SpectrumHops  = 300
	spectrumError = 1e-5
	// spectrumRounding is the error that float32 rows leave.
	spectrumRounding = 2e-6
	// invariant is the norm below which a row of hops counts as a combination of the rows before
	// it.
	invariant = 1e-5
	// ritzEvery is the number of hops between two computations of eigenvalues.
	ritzEvery = 10
)

// Spectrum describes the eigenvalues of a component's part of Â. They are the same for every r.
type Spectrum struct {
	// Lambda2 is the absolute value of the eigenvalue with the second largest absolute value. Some
	// eigenvalue of the component, other than the largest, has an absolute value within Error of
	// it.
	Lambda2 float64
	Error   float64
	// Hops is the number of hops made.
	Hops int
}

// SpectrumPlan returns the layout that fits c, and the memory of [SecondEigenvalue].
func SpectrumPlan(c hops.Capacity) (spmv.Layout, int64, error) {
	c.Columns, c.Asked, c.Precision = spectrumColumns, spectrumColumns, spmv.Float32
	return c.Layout(func(spmv.Layout) int64 { return 2 * (spectrumColumns*4*c.Nodes + 4096) })
}

// SecondEigenvalue finds λ₂ of the nodes whose component has this number, by the Lanczos iteration
// in the inner product Σ d̃ x y, in which a hop is symmetric. After each hop it subtracts the part
// along the eigenvector of the largest eigenvalue, 1; that vector is constant. One worker has all
// rows.
func SecondEigenvalue(ctx context.Context, g hops.Graph, component []uint32, number uint32, seed uint64,
	l spmv.Layout,
) (_ Spectrum, _ hops.Stats, err error) {
	z := &lanczos{g: g, n: g.Source.NumNodes(), within: func(i int64) bool { return component[i] == number }}
	defer z.free()
	if z.rows, err = g.NewBlock(l); err != nil {
		return Spectrum{}, hops.Stats{}, err
	}
	for _, v := range []**mem.Array[float32]{&z.now, &z.before} {
		if *v, err = mem.Alloc[float32](g.Budget, z.n*spectrumColumns, "rows of two hops"); err != nil {
			return Spectrum{}, hops.Stats{}, err
		}
	}
	for i := range z.n {
		if z.within(i) {
			z.volume += g.Degree1(i)
		}
	}
	if err := z.begin(ctx, seed); err != nil {
		return Spectrum{}, hops.Stats{}, err
	}
	streams := g.NewStreams(1, 0, nil)
	defer streams.Close()
	walk := streams.Walk(z.rows, 0)
	for hop := 1; ; hop++ {
		if _, err := walk.Next(ctx, SpectrumHops-hop+1, nil); err != nil {
			return Spectrum{}, walk.Stats, err
		}
		more, err := z.step()
		if err != nil {
			return Spectrum{}, walk.Stats, err
		}
		if more && hop%ritzEvery != 0 && hop < SpectrumHops {
			continue
		}
		s, err := z.ritz()
		if err != nil || !more || s.Error <= spectrumError || hop == SpectrumHops {
			s.Hops, s.Error = hop, s.Error+spectrumRounding
			return s, walk.Stats, err
		}
	}
}

// lanczos runs one iteration for each column, side by side.
type lanczos struct {
	g      hops.Graph
	n      int64
	within func(i int64) bool
	volume float64 // Σ d̃ of the component

	rows        *spmv.Block         // of a hop
	now, before *mem.Array[float32] // the last two rows that are orthonormal, node by node
	// alpha and beta hold, one number a hop, the diagonal and the off-diagonal of each column's
	// tridiagonal matrix. done says that a column has ended.
	alpha, beta [spectrumColumns][]float64
	done        [spectrumColumns]bool
}

func (z *lanczos) free() {
	if z.rows != nil {
		z.rows.Free()
	}
	z.now.Free()
	z.before.Free()
}

// perColumn is a number for each column.
type perColumn = [spectrumColumns]float64

// sums adds up the values of `of` for each row, strip by strip in ascending order, so that the
// result does not depend on threads. walk visits all rows, strips concurrently.
func (z *lanczos) sums(walk func(visit func(first int64, rows []float32)) error,
	of func(i int64, row []float32, sum *[2]perColumn),
) (all [2]perColumn, err error) {
	parts := make([][2]perColumn, packed.Strips(z.n))
	err = walk(func(first int64, rows []float32) {
		part := &parts[first>>packed.StripShift]
		for i := first; len(rows) > 0; i, rows = i+1, rows[spectrumColumns:] {
			if z.within(i) {
				of(i, rows[:spectrumColumns], part)
			}
		}
	})
	for _, p := range parts {
		for k := range all {
			for c := range all[k] {
				all[k][c] += p[k][c]
			}
		}
	}
	return all, err
}

func (z *lanczos) look(visit func(first int64, rows []float32)) error {
	return z.rows.Strips(func(first int64, rows []float32) error {
		visit(first, rows)
		return nil
	})
}

func (z *lanczos) edit(visit func(first int64, rows []float32)) error { return z.rows.Edit(visit) }

// begin makes random rows orthogonal to the constant one.
func (z *lanczos) begin(ctx context.Context, seed uint64) error {
	if err := z.g.Make(ctx, z.rows, func(i int64, to []float32) {
		if !z.within(i) {
			return
		}
		for c := range to {
			to[c] = sign(seed, uint64(i), c)
		}
	}, nil); err != nil {
		return err
	}
	_, err := z.orthonormal(func(int64, int, float64) float64 { return 0 })
	return err
}

// step makes the next orthonormal rows from the rows after a hop. more reports whether a column
// continues.
func (z *lanczos) step() (more bool, err error) {
	dots, err := z.sums(z.look, func(i int64, row []float32, sum *[2]perColumn) {
		d, now := z.g.Degree1(i), z.now.S[i*spectrumColumns:][:spectrumColumns]
		for c, x := range row {
			sum[0][c] += float64(d * float64(x) * float64(now[c]))
		}
	})
	if err != nil {
		return false, err
	}
	alpha, last := dots[0], perColumn{}
	for c := range alpha {
		if n := len(z.beta[c]); n > 0 {
			last[c] = z.beta[c][n-1]
		}
	}
	norms, err := z.orthonormal(func(i int64, c int, x float64) float64 {
		at := i*spectrumColumns + int64(c)
		return float64(alpha[c]*float64(z.now.S[at])) + float64(last[c]*float64(z.before.S[at]))
	})
	for c, norm := range norms {
		if z.done[c] {
			continue
		}
		z.alpha[c], z.beta[c] = append(z.alpha[c], alpha[c]), append(z.beta[c], norm)
		z.done[c] = norm < invariant
		more = more || !z.done[c]
	}
	return more, err
}

// orthonormal subtracts from each value the result of less and the part along the constant row. It
// divides columns by their norms, which it returns. The result becomes the rows of now.
func (z *lanczos) orthonormal(less func(i int64, c int, x float64) float64) (norms perColumn, err error) {
	means, err := z.sums(z.edit, func(i int64, row []float32, sum *[2]perColumn) {
		d := z.g.Degree1(i)
		for c, x := range row {
			row[c] = float32(float64(x) - less(i, c, float64(x)))
			sum[0][c] += float64(d * float64(row[c]))
		}
	})
	if err != nil {
		return norms, err
	}
	squares, err := z.sums(z.edit, func(i int64, row []float32, sum *[2]perColumn) {
		d := z.g.Degree1(i)
		for c, x := range row {
			row[c] = float32(float64(x) - means[0][c]/z.volume)
			sum[0][c] += float64(d * float64(row[c]) * float64(row[c]))
		}
	})
	if err != nil {
		return norms, err
	}
	var by perColumn
	for c, sum := range squares[0] {
		if norms[c] = math.Sqrt(sum); norms[c] >= invariant && !z.done[c] {
			by[c] = 1 / norms[c]
		}
	}
	z.now, z.before = z.before, z.now
	_, err = z.sums(z.edit, func(i int64, row []float32, _ *[2]perColumn) {
		for c, x := range row {
			row[c] = float32(float64(x) * by[c])
		}
		copy(z.now.S[i*spectrumColumns:], row)
	})
	return norms, err
}

// ritz returns the largest eigenvalue of all columns. Except for rounding, no column gives more
// than λ₂.
func (z *lanczos) ritz() (best Spectrum, err error) {
	column := -1
	for c := range z.alpha {
		values, _, err := z.eigen(c, false)
		if err != nil {
			return best, err
		}
		for _, value := range values {
			if x := math.Abs(value); column < 0 || x > best.Lambda2 {
				best.Lambda2, column = x, c
			}
		}
	}
	// The rest of the column after its last hop bounds the error.
	values, vectors, err := z.eigen(column, true)
	if err != nil {
		return best, err
	}
	m, at := len(values), 0
	for k, value := range values {
		if math.Abs(value) > math.Abs(values[at]) {
			at = k
		}
	}
	best.Error = z.beta[column][m-1] * math.Abs(vectors.At(m-1, at))
	best.Lambda2 = min(best.Lambda2, 1)
	return best, nil
}

// eigen returns the eigenvalues of a column's tridiagonal matrix, and its eigenvectors if they are
// wanted.
func (z *lanczos) eigen(column int, wanted bool) (values []float64, vectors mat.Dense, err error) {
	m := len(z.alpha[column])
	t := mat.NewSymDense(m, nil)
	for k, a := range z.alpha[column] {
		t.SetSym(k, k, a)
		if k > 0 {
			t.SetSym(k-1, k, z.beta[column][k-1])
		}
	}
	var eigen mat.EigenSym
	if !eigen.Factorize(t, wanted) {
		return nil, vectors, fmt.Errorf("found no eigenvalues of a matrix of %d rows", m)
	}
	if wanted {
		eigen.VectorsTo(&vectors)
	}
	return eigen.Values(nil), vectors, nil
}
