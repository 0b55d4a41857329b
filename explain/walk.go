package explain

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"ndls/catalog"
	"ndls/internal/elementary"
	"ndls/internal/mem"
	"ndls/internal/progress"
	"ndls/internal/storage"
	"ndls/shards"
	"ndls/tiles"
)

// shardsReader reads a committed file.
type shardsReader = storage.Reader

// edgeBatch is how many edges are read at a time.
const edgeBatch = 1 << 16

// edges are the edges of the graph, in either direction, in memory or in their shards.
type edges struct {
	cat      *catalog.Catalog
	weighted bool
	// src, dst and weight hold all of them, in the order of the shards, or are nil.
	src, dst *mem.Array[uint32]
	weight   *mem.Array[float32]
	at       int64
}

func (g *edges) free() {
	g.src.Free()
	g.dst.Free()
	g.weight.Free()
}

// count is how many there are.
func (g *edges) count() (n int64) {
	for _, e := range g.cat.Entries(catalog.KindEdges) {
		n += e.Rows
	}
	return n
}

// hold reserves memory for all of them, if the budget has that much beside other bytes.
func (g *edges) hold(b *mem.Budget, other int64) (err error) {
	n := g.count()
	need := 8*n + 3*4096
	if g.weighted {
		need += 4 * n
	}
	if b.Free()-other < need {
		return nil
	}
	if g.src, err = mem.Alloc[uint32](b, n, "edges"); err != nil {
		return err
	}
	if g.dst, err = mem.Alloc[uint32](b, n, "edges"); err != nil {
		return err
	}
	if g.weighted {
		g.weight, err = mem.Alloc[float32](b, n, "weights of edges")
	}
	return err
}

// each visits all edges: weight is nil where they have none.
func (g *edges) each(ctx context.Context, visit func(src, dst []uint32, weight []float32)) error {
	if g.src == nil || g.at < int64(len(g.src.S)) {
		return g.read(ctx, catalog.KindEdges, func(int64, int64) bool { return true }, visit)
	}
	for lo := 0; lo < len(g.src.S); lo += edgeBatch {
		hi := min(lo+edgeBatch, len(g.src.S))
		var weight []float32
		if g.weighted {
			weight = g.weight.S[lo:hi]
		}
		visit(g.src.S[lo:hi], g.dst.S[lo:hi], weight)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
	return nil
}

// read visits the edges of the shards of a kind whose destinations [lo, hi) are wanted.
func (g *edges) read(ctx context.Context, kind string, want func(lo, hi int64) bool, visit func(src, dst []uint32, weight []float32)) error {
	src, dst := make([]uint32, edgeBatch), make([]uint32, edgeBatch)
	var weight []float32
	if g.weighted {
		weight = make([]float32, edgeBatch)
	}
	for _, e := range g.cat.Entries(kind) {
		r, err := g.cat.Open(ctx, e)
		if err != nil {
			return err
		}
		err = func() error {
			shard, err := shards.OpenEdges(r, e.Path)
			if err != nil || !want(shard.Meta().Lo, shard.Meta().Hi) {
				return err
			}
			for {
				n, err := shard.ReadWeighted(src, dst, weight)
				if errors.Is(err, io.EOF) {
					return nil
				}
				if err != nil {
					return err
				}
				visit(src[:n], dst[:n], weight[:min(n, len(weight))])
				if ctx.Err() != nil {
					return context.Cause(ctx)
				}
			}
		}()
		if err = errors.Join(err, r.Close()); err != nil {
			return err
		}
	}
	return nil
}

// keep takes a batch of edges into memory.
func (g *edges) keep(src, dst []uint32, weight []float32) {
	if g.src == nil {
		return
	}
	copy(g.src.S[g.at:], src)
	copy(g.dst.S[g.at:], dst)
	if g.weighted {
		copy(g.weight.S[g.at:], weight)
	}
	g.at += int64(len(src))
}

// walkBytes is what the walk takes for n nodes beside the edges.
func (e *explanation) walkBytes() int64 {
	bytes := 21 * e.sum.Nodes
	if e.ofFeatures() {
		bytes += 8 * e.sum.Nodes
	}
	return bytes + 16<<20
}

// readEdges finds the neighbours, and takes the edges into memory where there is room for them.
func (e *explanation) readEdges(ctx context.Context) (err error) {
	e.edges = &edges{cat: e.cat, weighted: e.sum.Weighted}
	degree := int64(e.node.Degree)
	if e.beside, err = mem.Alloc[uint32](e.Budget, degree, "neighbours"); err != nil {
		return tooSmall("neighbours", err)
	}
	if e.weight, err = mem.Alloc[float32](e.Budget, degree, "weights of neighbours"); err != nil {
		return tooSmall("neighbours", err)
	}
	node, found := uint32(e.node.Node), int64(0)
	look := func(src, dst []uint32, weight []float32) {
		for i, d := range dst {
			if d != node || found == degree {
				continue
			}
			e.beside.S[found] = src[i]
			if weight != nil {
				e.weight.S[found] = weight[i]
			}
			found++
		}
	}
	has := func(lo, hi int64) bool { return lo <= e.node.Node && e.node.Node < hi }
	if e.sum.Directed {
		// The shards of reversed edges have the edges that begin at the node.
		for _, kind := range []string{catalog.KindEdges, catalog.KindReversed} {
			if err := e.edges.read(ctx, kind, has, look); err != nil {
				return err
			}
		}
		return e.sorted(found)
	}
	if err := e.edges.hold(e.Budget, e.walkBytes()); err != nil {
		return tooSmall("edges", err)
	}
	all := e.edges.src != nil
	if err := e.edges.read(ctx, catalog.KindEdges, func(lo, hi int64) bool { return all || has(lo, hi) }, func(src, dst []uint32, weight []float32) {
		e.edges.keep(src, dst, weight)
		look(src, dst, weight)
	}); err != nil {
		return err
	}
	return e.sorted(found)
}

// sorted brings the neighbours that were found into the order of nodes.
func (e *explanation) sorted(found int64) error {
	if found != int64(e.node.Degree) {
		return fmt.Errorf("node %s has degree %d, and the shards have %d of its edges: run ndls verify", e.ID, e.node.Degree, found)
	}
	if e.sum.Directed { // a neighbour in either direction stands there once or twice
		slices.Sort(e.beside.S)
	}
	return nil
}

// ofFeatures says whether the run has found K from features.
func (e *explanation) ofFeatures() bool { return strings.HasPrefix(e.Mode, "feature") }

// walk is the influence row of the node, hop by hop.
type walk struct {
	*explanation
	degree    *mem.Array[uint32]
	strength1 *mem.Array[float32]
	mine      *mem.Array[bool] // nodes that share the stationary state
	v, a      *mem.Array[float64]
	// difference is u_k − Ĩ_i, where distances are of features.
	difference *mem.Array[float64]
	// share is d̃_i^r / vol.
	share float64
}

func (w *walk) free() {
	w.degree.Free()
	w.strength1.Free()
	w.mine.Free()
	w.v.Free()
	w.a.Free()
	w.difference.Free()
}

// degree1 is d̃ of a node.
func (w *walk) degree1(j int) float64 {
	if w.strength1 != nil {
		return float64(w.strength1.S[j])
	}
	return float64(w.degree.S[j]) + 1
}

// distances computes the distance of the node from its stationary state at each hop.
func (e *explanation) distances(ctx context.Context) error {
	if e.sum.Directed {
		return nil
	}
	w := &walk{explanation: e}
	defer w.free()
	if err := w.open(ctx); err != nil {
		return tooSmall("distances", err)
	}
	d := &Distances{Of: "influence", Hops: []float64{}}
	if e.ofFeatures() {
		d.Of = "features"
		if len(e.cat.Entries(catalog.KindFeatures)) == 0 {
			return nil // they were removed, or the run has none
		}
	}
	least := e.Hops
	if least == 0 && e.node.K != nil {
		least = e.node.K.K
	}
	meter := progress.Start(ctx, "distances", 0, "edges")
	defer meter.Done()
	for hop := 0; ; hop++ {
		meter.Within(fmt.Sprintf("hop %d of at most %d", hop, e.Kmax))
		if err := w.hop(ctx, hop, meter); err != nil {
			return err
		}
		x, err := w.distance(ctx)
		if err != nil {
			return err
		}
		d.Hops = append(d.Hops, x)
		_, settled := d.Below(e.Epsilon)
		if hop == e.Kmax || hop >= least && (settled || e.Hops > 0) {
			break
		}
	}
	if hop, ok := d.Below(e.Epsilon); ok {
		d.K = &hop
	}
	e.node.Distances = d
	return nil
}

// open reads degrees and the component.
func (w *walk) open(ctx context.Context) (err error) {
	n := w.sum.Nodes
	want := shards.NodeComponent
	if w.sum.Weighted {
		w.strength1, err = mem.Alloc[float32](w.Budget, n, "strengths")
		want |= shards.NodeStrength
	} else {
		w.degree, err = mem.Alloc[uint32](w.Budget, n, "degrees")
		want |= shards.NodeDegree
	}
	if err != nil {
		return err
	}
	if w.mine, err = mem.Alloc[bool](w.Budget, n, "nodes of the component"); err != nil {
		return err
	}
	rows := []**mem.Array[float64]{&w.v, &w.a}
	if w.ofFeatures() {
		rows = append(rows, &w.difference)
	}
	for _, row := range rows {
		if *row, err = mem.Alloc[float64](w.Budget, n, "a row of the influence matrix"); err != nil {
			return err
		}
	}
	volume := 0.0
	if err := shards.VisitNodes(ctx, w.cat, want, func(first int64, b shards.NodeBatch) error {
		for i, c := range b.Component {
			j := int(first) + i
			if w.sum.Weighted {
				w.strength1.S[j] = float32(b.Strength[i] + 1)
			} else {
				w.degree.S[j] = b.Degree[i]
			}
			if w.mine.S[j] = w.Global || c == w.node.Component; w.mine.S[j] {
				volume += w.degree1(j)
			}
		}
		return nil
	}); err != nil {
		return err
	}
	w.share = elementary.Pow(w.degree1(int(w.node.Node)), w.R) / volume
	return nil
}

// hop makes a = v Ã of the hop before, and v of this one; at hop 0 a is that of the node itself.
func (w *walk) hop(ctx context.Context, hop int, meter *progress.Meter) error {
	v, a := w.v.S, w.a.S
	if hop == 0 {
		i := int(w.node.Node)
		a[i] = elementary.Pow(w.degree1(i), w.R) // u = a D̃^(−r) is 1
		v[i] = elementary.Pow(w.degree1(i), w.R-1)
		return nil
	}
	copy(a, v) // the self-loop
	if err := w.edges.each(ctx, func(src, dst []uint32, weight []float32) {
		if weight == nil {
			for i, s := range src {
				a[s] += v[dst[i]]
			}
		} else {
			for i, s := range src {
				a[s] += float64(float64(weight[i]) * v[dst[i]])
			}
		}
		meter.Add(int64(len(src)))
	}); err != nil {
		return err
	}
	for j := range v {
		v[j] = a[j] / w.degree1(j)
	}
	return nil
}

// distance is that of the present hop.
func (w *walk) distance(ctx context.Context) (float64, error) {
	sum := 0.0
	for j, a := range w.a.S {
		d1 := w.degree1(j)
		x := a
		if w.mine.S[j] {
			x -= float64(w.share * d1)
		}
		if x == 0 && w.difference == nil {
			continue
		}
		if w.difference != nil {
			w.difference.S[j] = float64(x * elementary.Pow(d1, -w.R))
			continue
		}
		sum += float64(float64(x*x) * elementary.Pow(d1, -2*w.R))
	}
	if w.difference == nil {
		return math.Sqrt(sum), nil
	}
	return w.ofRows(ctx)
}

// ofRows is ‖difference · P‖₂ with the features P, whose rows are divided by their L1 norms.
func (w *walk) ofRows(ctx context.Context) (float64, error) {
	width := w.sum.Features
	sums := make([]float64, width)
	j := 0
	columns := tiles.Open(w.cat, w.Budget, tiles.Features(w.sum)).On(w.Threads)
	if err := columns.Rows(ctx, 0, width, func(rows []float32) error {
		for row := range slices.Chunk(rows, width) {
			x := w.difference.S[j]
			j++
			if x == 0 {
				continue
			}
			if norm := l1(row); !w.sum.Normalized && norm > 0 {
				x /= norm
			}
			for c, value := range row {
				sums[c] += float64(x * float64(value))
			}
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return nil
	}); err != nil {
		return 0, err
	}
	sum := 0.0
	for _, x := range sums {
		sum += float64(x * x)
	}
	return math.Sqrt(sum), nil
}

// l1 is the L1 norm of a row.
func l1(row []float32) (norm float64) {
	for _, x := range row {
		norm += math.Abs(float64(x))
	}
	return norm
}
