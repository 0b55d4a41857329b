package infer

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"ndls/internal/mem"
	"ndls/internal/testgraph"
	"ndls/smooth"
)

// dense is the definition in float64: an old graph whose hops are held fixed, and new nodes.
type dense struct {
	old      testgraph.Graph
	hops     [][]float64 // X^(k) of the old nodes
	f, last  int
	r        float64
	global   bool
	m        int
	adjacent [][]int // neighbours of each new node: new ones below m, then m + old node
	weight   [][]float32
	x        []float64
}

// z are Z^(0), …, Z^(H) of the new nodes.
func (d *dense) z() [][]float64 {
	z := [][]float64{make([]float64, d.m*d.f)}
	for v := range d.m {
		for c := range d.f {
			z[0][v*d.f+c] = d.x[v*d.f+c] * math.Pow(d.degree(v), -d.r)
		}
	}
	for k := 1; k <= d.last; k++ {
		next := make([]float64, d.m*d.f)
		for v := range d.m {
			for c := range d.f {
				sum := z[k-1][v*d.f+c]
				for i, u := range d.adjacent[v] {
					w := float64(d.weight[v][i])
					if u < d.m {
						sum += w * z[k-1][u*d.f+c]
					} else {
						sum += w * d.hops[k-1][(u-d.m)*d.f+c] * math.Pow(d.oldDegree(u-d.m), -d.r)
					}
				}
				next[v*d.f+c] = sum / d.degree(v)
			}
		}
		z = append(z, next)
	}
	return z
}

func (d *dense) degree(v int) float64 { return sum(d.weight[v]) + 1 }

func (d *dense) oldDegree(u int) float64 {
	if d.old.Weights != nil {
		return sum(d.old.Weights[u]) + 1
	}
	return float64(len(d.old.Adj[u])) + 1
}

func sum(weights []float32) (total float64) {
	for _, w := range weights {
		total += float64(w)
	}
	return total
}

// component is the component of each old node, 0 for all where there is one stationary row.
func (d *dense) component() (of []uint32, count int) {
	if d.global {
		return make([]uint32, len(d.old.Adj)), 1
	}
	return d.old.Components()
}

// means are the stationary rows of the components.
func (d *dense) means() [][]float64 {
	of, count := d.component()
	rows, volume := make([][]float64, count), make([]float64, count)
	for i := range rows {
		rows[i] = make([]float64, d.f)
	}
	for j, c := range of {
		volume[c] += d.oldDegree(j)
		for k := range d.f {
			rows[c][k] += math.Pow(d.oldDegree(j), 1-d.r) * d.hops[0][j*d.f+k]
		}
	}
	for c := range rows {
		for k := range d.f {
			rows[c][k] /= volume[c]
		}
	}
	return rows
}

// patch are the new nodes that can be reached from v by new nodes, v included.
func (d *dense) patch(v int) (all []int) {
	seen := map[int]bool{v: true}
	for all = []int{v}; ; {
		n := len(all)
		for _, a := range slices.Clone(all) {
			for _, u := range d.adjacent[a] {
				if u < d.m && !seen[u] {
					seen[u] = true
					all = append(all, u)
				}
			}
		}
		if len(all) == n {
			return all
		}
	}
}

// stationary is z̄ of a new node.
func (d *dense) stationary(v int, z [][]float64) []float64 {
	of, _ := d.component()
	means := d.means()
	sum, total := make([]float64, d.f), 0.0
	for _, a := range d.patch(v) {
		for i, u := range d.adjacent[a] {
			if u >= d.m {
				w := float64(d.weight[a][i])
				total += w
				for c, x := range means[of[u-d.m]] {
					sum[c] += w * x
				}
			}
		}
	}
	if total == 0 && d.global {
		return means[0]
	}
	if total == 0 {
		for _, a := range d.patch(v) {
			total += d.degree(a)
			for c := range sum {
				sum[c] += d.degree(a) * z[0][a*d.f+c]
			}
		}
	}
	for c := range sum {
		sum[c] /= total
	}
	return sum
}

// distances of a new node at each hop.
func (d *dense) distances(v int, z [][]float64) (all []float64) {
	zbar := d.stationary(v, z)
	for k := range z {
		square := 0.0
		for c, x := range zbar {
			square += math.Pow(z[k][v*d.f+c]-x, 2)
		}
		all = append(all, math.Pow(d.degree(v), d.r)*math.Sqrt(square))
	}
	return all
}

// output is the row of a new node by the definitions of the rules.
func (d *dense) output(v, k int, rule string, z [][]float64) []float64 {
	x := func(hop, c int) float64 { return math.Pow(d.degree(v), d.r) * z[hop][v*d.f+c] }
	row := make([]float64, d.f)
	for c := range row {
		switch rule {
		case "ndls":
			for hop := range k + 1 {
				row[c] += x(hop, c) / float64(k+1)
			}
		case "ndls-reference":
			for hop := range max(k, 1) {
				row[c] += 0.85 * x(hop, c) / float64(max(k, 1))
			}
			row[c] += 0.15 * x(0, c)
		case "sgc":
			row[c] = x(3, c)
		case "sgc by node":
			row[c] = x(min(k, 3), c)
		case "appnp":
			for hop := range 3 {
				row[c] += 0.15 * math.Pow(0.85, float64(hop)) * x(hop, c)
			}
			row[c] += math.Pow(0.85, 3) * x(3, c)
		case "appnp by node":
			for hop := range min(k, 3) {
				row[c] += 0.15 * math.Pow(0.85, float64(hop)) * x(hop, c)
			}
			row[c] += math.Pow(0.85, float64(min(k, 3))) * x(min(k, 3), c)
		case "sign":
			row = nil
			for hop := range d.last + 1 {
				for c := range d.f {
					row = append(row, math.Pow(d.degree(v), d.r)*z[hop][v*d.f+c])
				}
			}
			return row
		case "s2gc":
			for hop := 1; hop <= 3; hop++ {
				row[c] += 0.85 * x(hop, c) / 3
			}
			row[c] += 0.15 * x(0, c)
		case "gbp":
			for hop := range 4 {
				row[c] += 0.15 * math.Pow(0.85, float64(hop)) * x(hop, c)
			}
		}
	}
	return row
}

// memory is kept for hops in memory.
type memory struct {
	d *dense
}

func (m memory) last() int  { return m.d.last }
func (m memory) width() int { return m.d.f }

func (m memory) row(node uint32, to []float32) error {
	for hop := range m.d.last + 1 {
		for c := range m.d.f {
			to[hop*m.d.f+c] = float32(m.d.hops[hop][int(node)*m.d.f+c])
		}
	}
	return nil
}

// newDense has an old graph of two large components and some small ones, and new nodes with
// every kind of neighbours. Weights of edges are spread over ten octaves, or all 1.
func newDense(seed uint64, r float64, global, weighted bool) *dense {
	rng := rand.New(rand.NewPCG(seed, 7))
	var edges [][2]int
	const half, n = 150, 310
	for i := 1; i < half; i++ {
		edges = append(edges, [2]int{i, rng.IntN(i)}, [2]int{half + i, half + rng.IntN(i)}, [2]int{i, rng.IntN(half)})
	}
	edges = append(edges, [2]int{300, 301}, [2]int{302, 303})
	d := &dense{old: testgraph.New("old", n, edges), f: 19, last: 9, r: r, global: global, m: 60}
	if weighted {
		d.old = d.old.RandomWeights(32, seed)
	}
	x := make([]float64, n*d.f)
	for i := range x {
		x[i] = float64(float32(rng.Float64() - 0.3))
	}
	oracle := testgraph.NewOracle(d.old, r, true)
	for range d.last + 1 {
		d.hops = append(d.hops, x)
		x = oracle.Apply(x, d.f)
	}
	d.adjacent = make([][]int, d.m)
	join := func(v, u int) {
		if u != v && !slices.Contains(d.adjacent[v], u) {
			d.adjacent[v] = append(d.adjacent[v], u)
			if u < d.m {
				d.adjacent[u] = append(d.adjacent[u], v)
			}
		}
	}
	for v := range d.m {
		switch {
		case v < 20: // one component
			for range 1 + rng.IntN(6) {
				join(v, d.m+rng.IntN(half))
			}
		case v < 30: // several components
			for range 2 + rng.IntN(6) {
				join(v, d.m+rng.IntN(n))
			}
		case v < 50: // patches with some old nodes
			join(v, 30+rng.IntN(20))
			if v%3 == 0 {
				join(v, d.m+rng.IntN(n))
			}
		case v < 57: // a patch of its own
			join(v, 50+rng.IntN(7))
		}
	}
	for v := range d.adjacent {
		slices.Sort(d.adjacent[v])
		var weights []float32
		for _, u := range d.adjacent[v] {
			w := float32(1)
			if weighted {
				pair := rand.New(rand.NewPCG(seed, uint64(min(u, v)*(d.m+n)+max(u, v))))
				w = float32(math.Pow(32, 2*pair.Float64()-1))
			}
			weights = append(weights, w)
		}
		d.weight = append(d.weight, weights)
	}
	d.x = make([]float64, d.m*d.f)
	for i := range d.x {
		d.x[i] = float64(float32(rng.Float64() - 0.3))
	}
	return d
}

// engineOf prepares the engine for a dense definition.
func engineOf(t *testing.T, d *dense, rule string, epsilon float64, threads int) *engine {
	t.Helper()
	e := &engine{kept: memory{d}, r: d.r, alone: !d.global, epsilon: epsilon, threads: threads}
	var err error
	name, byNode := strings.CutSuffix(rule, " by node")
	if e.rule, err = smooth.NewRule(name, 0.15, 3); err == nil && byNode {
		e.rule, err = e.rule.ByNode()
	}
	if err != nil {
		t.Fatal(err)
	}
	var used []int
	for _, list := range d.adjacent {
		for _, u := range list {
			if u >= d.m {
				used = append(used, u-d.m)
			}
		}
	}
	slices.Sort(used)
	used = slices.Compact(used)
	of, _ := d.component()
	for _, row := range d.means() {
		e.means = append(e.means, row...)
	}
	for _, u := range used {
		e.node = append(e.node, uint32(u))
		e.degree1 = append(e.degree1, d.oldDegree(u))
		e.mean = append(e.mean, of[u])
	}
	e.m, e.start = d.m, []int64{0}
	for v, list := range d.adjacent {
		for _, u := range list {
			if u >= d.m {
				at, _ := slices.BinarySearch(used, u-d.m)
				u = d.m + at
			}
			e.of = append(e.of, uint32(u))
		}
		e.weight = append(e.weight, d.weight[v]...)
		e.start = append(e.start, int64(len(e.of)))
	}
	return e
}

// TestDefinition compares all new nodes with the definition: K is the same, and rows are equal
// up to rounding, with and without weights. Threads and batches change no bit.
func TestDefinition(t *testing.T) {
	for i, r := range []float64{0, 0.3, 0.5, 1} {
		for way := range 4 {
			global, weighted := way%2 == 1, way > 1
			d := newDense(uint64(i), r, global, weighted)
			z := d.z()
			// Half-way between two distances, so that rounding changes no K.
			var all []float64
			for v := range d.m {
				all = append(all, d.distances(v, z)...)
			}
			slices.Sort(all)
			epsilon := math.Sqrt(all[len(all)/2] * all[len(all)/2+1])
			for _, rule := range []string{"ndls", "ndls-reference", "sgc", "s2gc", "gbp", "appnp", "sgc by node", "appnp by node", "sign"} {
				var first []float32
				for _, c := range []struct {
					threads int
					memory  int64
				}{{1, 256 << 20}, {4, mem.MinBudget}} {
					e := engineOf(t, d, rule, epsilon, c.threads)
					rows, ks := make([]float32, d.m*e.outWidth()), make([]int, d.m)
					batches := runEngine(t, d, e, c.memory, rows, ks)
					if first == nil {
						first = rows
					} else if !slices.Equal(first, rows) {
						t.Errorf("r=%g weighted=%v %s: %d batches and %d threads give other rows", r, weighted, rule, batches, c.threads)
					}
					compareRows(t, fmt.Sprintf("r=%g global=%v weighted=%v %s", r, global, weighted, rule), d, rule, z, epsilon, rows, ks)
				}
			}
		}
	}
}

func runEngine(t *testing.T, d *dense, e *engine, memory int64, rows []float32, ks []int) (batches int) {
	t.Helper()
	b, err := mem.NewBudget(memory)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	// What is free is little, so that there are several batches.
	if memory == mem.MinBudget {
		held := b.Free() - 200<<10
		if err := b.Reserve(held, "what the test holds"); err != nil {
			t.Fatal(err)
		}
		defer b.Release(held)
	}
	err = e.run(context.Background(), b, func(nodes []uint32, put func(i int, row []float32)) error {
		for i, v := range nodes {
			row := make([]float32, d.f)
			for c := range row {
				row[c] = float32(d.x[int(v)*d.f+c])
			}
			put(i, row)
		}
		return nil
	}, func(b *batch) error {
		batches++
		for i, v := range b.nodes {
			ks[v] = int(b.k[i])
			if b.capped[i] {
				ks[v] = d.last + 1
			}
			w := e.outWidth()
			copy(rows[int(v)*w:], b.out[i*w:(i+1)*w])
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return batches
}

func compareRows(t *testing.T, what string, d *dense, rule string, z [][]float64, epsilon float64, rows []float32, ks []int) {
	t.Helper()
	worst, capped, settled := 0.0, 0, 0
	for v := range d.m {
		k := slices.IndexFunc(d.distances(v, z), func(x float64) bool { return x < epsilon })
		if k < 0 {
			k = d.last + 1
			capped++
		} else {
			settled++
		}
		if ks[v] != k {
			t.Errorf("%s: K of node %d is %d, want %d", what, v, ks[v], k)
			continue
		}
		off, length := 0.0, 0.0
		want := d.output(v, min(k, d.last), rule, z)
		for c, x := range want {
			off += math.Pow(float64(rows[v*len(want)+c])-x, 2)
			length += x * x
		}
		worst = max(worst, math.Sqrt(off/length))
	}
	if !(worst <= 1e-5) || capped == 0 || settled == 0 {
		t.Errorf("%s: worst relative deviation %g; %d nodes settled, %d did not", what, worst, settled, capped)
	}
}

// TestOnePatchTooLarge refuses a patch that does not fit.
func TestOnePatchTooLarge(t *testing.T) {
	d := newDense(1, 0.5, false, false)
	e := engineOf(t, d, "ndls", 0.1, 1)
	b, err := mem.NewBudget(mem.MinBudget)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	held := b.Free() - 20<<10
	if err := b.Reserve(held, "what the test holds"); err != nil {
		t.Fatal(err)
	}
	defer b.Release(held)
	err = e.run(t.Context(), b, func([]uint32, func(int, []float32)) error { return nil }, func(*batch) error { return nil })
	if err == nil {
		t.Error("all patches fit 20 KiB")
	}
}

// TestFitting looks for the threshold among all that make a difference.
func TestFitting(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 5))
	for range 200 {
		last := 1 + rng.IntN(8)
		var least [][]float64
		for range 1 + rng.IntN(12) {
			d, x := []float64{}, rng.Float64()
			for range last + 1 {
				d = append(d, x)
				if rng.IntN(3) > 0 {
					x *= rng.Float64()
				}
			}
			least = append(least, d)
		}
		sum := func(epsilon float64) (n int) {
			for _, d := range least {
				k := slices.IndexFunc(d, func(x float64) bool { return x < epsilon })
				if k < 0 {
					k = last
				}
				n += k
			}
			return n
		}
		total := rng.IntN(last*len(least) + 1)
		best := math.MaxInt
		for _, d := range least {
			for _, x := range d {
				for _, epsilon := range []float64{x * (1 - 1e-9), x * (1 + 1e-9)} {
					best = min(best, max(total-sum(epsilon), sum(epsilon)-total))
				}
			}
		}
		got := fitting(least, total)
		if off := max(total-sum(got), sum(got)-total); off != best {
			t.Fatalf("threshold %g gives %d for %d, best is %d off\n%v", got, sum(got), total, best, least)
		}
	}
}
