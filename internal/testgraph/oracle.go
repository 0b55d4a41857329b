package testgraph

import "math"

// Oracle answers by the paper's definitions with dense float64 matrices: the
// influence matrix I(k) = Â^k with Â = D̃^(r−1) Ã D̃^(−r), and its limit. With weights Ã is
// the matrix of weights plus I, and D̃ has its row sums. With directions, the D̃ on the right has
// the column sums of Ã, and there is no limit.
type Oracle struct {
	R         float64
	Component bool // stationary row per component, else global (equation 2)
	g         Graph
	d1        []float64
	weight    []float64 // Â, dense
	limit     []float64
}

// NewOracle prepares Â and Â^∞ of a graph.
func NewOracle(g Graph, r float64, component bool) *Oracle {
	n := len(g.Adj)
	o := &Oracle{R: r, Component: component, g: g, d1: make([]float64, n), weight: make([]float64, n*n), limit: make([]float64, n*n)}
	for i := range g.Adj {
		o.d1[i] = g.mass(i)
	}
	comp, count := g.Components()
	if !component {
		comp, count = make([]uint32, n), 1
	}
	column := o.d1
	if sent := g.Sent(); sent != nil {
		column = make([]float64, n)
		for j, s := range sent {
			column[j] = float64(s) + 1
		}
	}
	vol := make([]float64, count)
	for i, c := range comp {
		vol[c] += o.d1[i]
	}
	for i := range n {
		for _, j := range append([]uint32{uint32(i)}, g.Adj[i]...) {
			o.weight[i*n+int(j)] = math.Pow(o.d1[i], r-1) * math.Pow(column[j], -r)
		}
		if g.Weights != nil {
			for k, j := range g.Adj[i] {
				o.weight[i*n+int(j)] *= float64(g.Weights[i][k])
			}
		}
		for j := range n {
			if comp[i] == comp[j] {
				o.limit[i*n+j] = math.Pow(o.d1[i], r) * math.Pow(o.d1[j], 1-r) / vol[comp[i]]
			}
		}
	}
	return o
}

// Apply returns Â X for X of the given number of columns.
func (o *Oracle) Apply(x []float64, cols int) []float64 {
	n := len(o.d1)
	y := make([]float64, n*cols)
	for i := range n {
		for _, j := range append([]uint32{uint32(i)}, o.g.Adj[i]...) {
			w := o.weight[i*n+int(j)]
			for c := range cols {
				y[i*cols+c] += w * x[int(j)*cols+c]
			}
		}
	}
	return y
}

// Stationary returns Â^∞ X.
func (o *Oracle) Stationary(x []float64, cols int) []float64 {
	n := len(o.d1)
	y := make([]float64, n*cols)
	for i := range n {
		for j := range n {
			for c := range cols {
				y[i*cols+c] += o.limit[i*n+j] * x[j*cols+c]
			}
		}
	}
	return y
}

// Distances returns D[k][i] = ‖(Â^k X)_i − (Â^∞ X)_i‖₂ for k = 0..kmax.
func (o *Oracle) Distances(x []float64, cols, kmax int) [][]float64 {
	limit := o.Stationary(x, cols)
	var all [][]float64
	for k := 0; ; k++ {
		d := make([]float64, len(o.d1))
		for i := range d {
			for c := range cols {
				e := x[i*cols+c] - limit[i*cols+c]
				d[i] += e * e
			}
			d[i] = math.Sqrt(d[i])
		}
		all = append(all, d)
		if k == kmax {
			return all
		}
		x = o.Apply(x, cols)
	}
}

// Identity is the probe of the definition: Â^k itself.
func (o *Oracle) Identity() []float64 {
	n := len(o.d1)
	x := make([]float64, n*n)
	for i := range n {
		x[i*n+i] = 1
	}
	return x
}

// LSI is the first k ≤ kmax with distance < epsilon, and whether there is none;
// then k is kmax.
func LSI(distances [][]float64, epsilon float64) (k []int, capped []bool) {
	n := len(distances[0])
	k, capped = make([]int, n), make([]bool, n)
	for i := range n {
		k[i], capped[i] = len(distances)-1, true
		for h, d := range distances {
			if d[i] < epsilon {
				k[i], capped[i] = h, false
				break
			}
		}
	}
	return k, capped
}

// Smooth averages hops 0..k[i] of X (definition 3.2 of the paper).
func (o *Oracle) Smooth(x []float64, cols int, k []int) []float64 {
	out := make([]float64, len(x))
	for hop, left := 0, true; left; hop++ {
		left = false
		for i, ki := range k {
			if hop <= ki {
				for c := range cols {
					out[i*cols+c] += x[i*cols+c] / float64(ki+1)
				}
			}
			left = left || hop < ki
		}
		if left {
			x = o.Apply(x, cols)
		}
	}
	return out
}
