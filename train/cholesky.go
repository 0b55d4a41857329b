package train

import "math"

// symmetric holds a symmetric matrix of n rows, and beside it the factors of its sum with a multiple of the identity. On and above the
// diagonal stands the matrix; below it, and in root, stands the factor L, with A + λI = L·Lᵀ.
//
// Each value is a sum in ascending order of one index, each product and each sum rounded to float64. So its bits depend on neither threads
// nor blocks. Package gonum has the same algorithm, but other bits with and without assembly.
type symmetric struct {
	n      int
	values []float64 // n × n
	root   []float64 // the diagonal of L
}

// blockRows is the number of rows, or columns, of a block that one thread computes at a time.
const blockRows = 32

// addRows adds x·xᵀ of each of the rows of x, which have n values, to the matrix.
func (a *symmetric) addRows(threads *threadPool, x []float64) {
	blocks := units(a.n, blockRows)
	threads.share(blocks, func(b int) {
		lo, hi := b*blockRows, min((b+1)*blockRows, a.n)
		for i := lo; i < hi; i += 2 {
			rows := min(2, hi-i)
			j := i
			for ; rows == 2 && j+4 <= a.n; j += 4 {
				addTile(a.values[i*a.n+j:], a.values[(i+1)*a.n+j:], x, a.n, i, j)
			}
			for r := i; r < i+rows; r++ {
				for c := max(j, r); c < a.n; c++ {
					sum := a.values[r*a.n+c]
					for at := 0; at < len(x); at += a.n {
						sum += float64(x[at+r] * x[at+c])
					}
					a.values[r*a.n+c] = sum
				}
			}
		}
	})
}

// addTile adds rows i and i+1 and columns j to j+3 of x·xᵀ for each row of x to the beginnings of p and q.
func addTile(p, q, x []float64, n, i, j int) {
	p, q = p[:4], q[:4]
	p0, p1, p2, p3 := p[0], p[1], p[2], p[3]
	q0, q1, q2, q3 := q[0], q[1], q[2], q[3]
	for at := 0; at < len(x); at += n {
		l, r := x[at+i:][:2], x[at+j:][:4]
		p0 += float64(l[0] * r[0])
		p1 += float64(l[0] * r[1])
		p2 += float64(l[0] * r[2])
		p3 += float64(l[0] * r[3])
		q0 += float64(l[1] * r[0])
		q1 += float64(l[1] * r[1])
		q2 += float64(l[1] * r[2])
		q3 += float64(l[1] * r[3])
	}
	p[0], p[1], p[2], p[3] = p0, p1, p2, p3
	q[0], q[1], q[2], q[3] = q0, q1, q2, q3
}

// trace returns the sum of the diagonal.
func (a *symmetric) trace() (sum float64) {
	for i := range a.n {
		sum += a.values[i*a.n+i]
	}
	return sum
}

// factor computes L for a multiple of the identity. It reports whether the sum is positive definite.
func (a *symmetric) factor(threads *threadPool, lambda float64) bool {
	for first := 0; first < a.n; first += blockRows {
		last := min(first+blockRows, a.n)
		for j := first; j < last; j++ {
			square := a.values[j*a.n+j] + lambda
			a.below(j, j+1, first, j)
			for _, v := range a.values[j*a.n : j*a.n+j] {
				square -= float64(v * v)
			}
			if !(square > 0) || math.IsInf(square, 0) {
				return false
			}
			a.root[j] = math.Sqrt(square)
		}
		rest := a.n - last
		threads.share(units(rest, blockRows), func(b int) {
			lo := last + b*blockRows
			a.below(lo, min(lo+blockRows, a.n), first, last)
		})
	}
	return true
}

// below computes columns [first, last) of L in rows [lo, hi), which are below these columns. The columns before first are there, and so are
// these columns in the rows above lo.
func (a *symmetric) below(lo, hi, first, last int) {
	n, v := a.n, a.values
	for i := lo; i < hi; i++ {
		row := v[i*n : i*n+n]
		j := first
		for ; j+4 <= last; j += 4 {
			subtractDots(v[j*n+i:], n, row[:first], v[j*n:], row[j:j+4])
		}
		for ; j < last; j++ {
			sum := v[j*n+i]
			for k, x := range v[j*n : j*n+first] {
				sum -= float64(row[k] * x)
			}
			row[j] = sum
		}
		for j := first; j < last; j++ {
			sum := row[j]
			for k, x := range v[j*n+first : j*n+j] {
				sum -= float64(row[first+k] * x)
			}
			row[j] = sum / a.root[j]
		}
	}
}

// subtractDots takes the products of a row with the beginnings of four rows, which lie n values apart, off four values, which
// lie n apart, too.
func subtractDots(from []float64, n int, row, rows, to []float64) {
	s0, s1, s2, s3 := from[0], from[n], from[2*n], from[3*n]
	a, b, c, d := rows[:len(row)], rows[n:][:len(row)], rows[2*n:][:len(row)], rows[3*n:][:len(row)]
	for k, x := range row {
		s0 -= float64(x * a[k])
		s1 -= float64(x * b[k])
		s2 -= float64(x * c[k])
		s3 -= float64(x * d[k])
	}
	to[0], to[1], to[2], to[3] = s0, s1, s2, s3
}

// solve writes the solution of (A + λI) z = right to z, after factor. Both have n rows of so many columns.
func (a *symmetric) solve(threads *threadPool, z, right []float64, columns int) {
	copy(z, right)
	const together = 8
	threads.share(units(columns, together), func(b int) {
		lo, hi := b*together, min((b+1)*together, columns)
		at := func(i int) []float64 { return z[i*columns+lo : i*columns+hi] }
		for i := range a.n {
			for k, l := range a.values[i*a.n : i*a.n+i] {
				subtract(at(i), at(k), l)
			}
			divide(at(i), a.root[i])
		}
		for i := a.n - 1; i >= 0; i-- {
			divide(at(i), a.root[i])
			for k, l := range a.values[i*a.n : i*a.n+i] {
				subtract(at(k), at(i), l)
			}
		}
	})
}

// subtract takes a multiple of x off to.
func subtract(to, x []float64, factor float64) {
	for i, v := range x {
		to[i] -= float64(factor * v)
	}
}

// divide divides the values of x.
func divide(x []float64, by float64) {
	for i := range x {
		x[i] /= by
	}
}
