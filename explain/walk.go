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
	"ndls/internal/packed"
	"ndls/internal/progress"
	"ndls/internal/storage"
	"ndls/shards"
	"ndls/tiles"
)

// storageReader reads a committed file.
type storageReader = storage.Reader

// besideEdges is the memory that is left for tables and tiles where the edges are in memory.
const besideEdges = 16 << 20

// visit calls edge for each edge into the rows of a strip, with its weight, 1 where edges have none.
func visit(ctx context.Context, stream *shards.HopStream, strip int, edge func(src, dst uint32, weight float32)) (err error) {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	frames, err := stream.Open(ctx, strip, 0, uint32(stream.NumNodes()))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, frames.Close()) }()
	first := uint32(strip) << packed.StripShift
	for {
		f, err := frames.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		i, weight := 0, float32(1)
		f.Visit(func(src, row uint32) {
			if len(f.Weights) > 0 {
				weight = f.Weight(i)
				i++
			}
			edge(src, first+row, weight)
		})
	}
}

// readEdges finds the neighbours, and takes the edges into memory where there is room for them.
func (e *explanation) readEdges(ctx context.Context) (err error) {
	if err := e.Budget.Reserve(shards.ReadAheadBytes, "reading edges"); err != nil {
		return tooSmall("edges", err)
	}
	e.release = func() { e.Budget.Release(shards.ReadAheadBytes) }
	degree := int64(e.node.Degree)
	if e.beside, err = mem.Alloc[uint32](e.Budget, degree, "neighbours"); err != nil {
		return tooSmall("neighbours", err)
	}
	if e.weight, err = mem.Alloc[float32](e.Budget, degree, "weights of neighbours"); err != nil {
		return tooSmall("neighbours", err)
	}
	kinds := []string{catalog.KindHops}
	if e.sum.Directed {
		// The reversed edges have those that begin at the node.
		kinds = append(kinds, catalog.KindReversedHops)
	}
	found := int64(0)
	for _, kind := range kinds {
		if err := func() error {
			stream, err := shards.OpenHopStreamOf(ctx, e.cat, kind)
			if err != nil {
				return err
			}
			defer stream.Close()
			return visit(ctx, stream, int(e.node.Node>>packed.StripShift), func(src, dst uint32, weight float32) {
				if int64(dst) == e.node.Node && found < degree {
					e.beside.S[found], e.weight.S[found] = src, weight
					found++
				}
			})
		}(); err != nil {
			return err
		}
	}
	return e.sorted(found)
}

// sorted brings the neighbours that were found into the order of nodes.
func (e *explanation) sorted(found int64) error {
	if found != int64(e.node.Degree) {
		return fmt.Errorf("node %s has degree %d, and the hop streams have %d of its edges: run ndls verify", e.ID, e.node.Degree, found)
	}
	if e.sum.Directed { // a neighbour in either direction stands there once or twice
		slices.Sort(e.beside.S)
	}
	return nil
}

// ofFeatures reports whether the run has found K from features.
func (e *explanation) ofFeatures() bool { return strings.HasPrefix(e.Mode, "feature") }

// walk is the influence row of the node, hop by hop.
type walk struct {
	*explanation
	stream    *shards.HopStream
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
	if w.stream != nil {
		w.stream.Close()
	}
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
	if err := shards.VisitNodes(ctx, w.cat, want, w.readers(), func(first int64, b shards.NodeBatch) error {
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
	if w.stream, err = shards.OpenHopStream(ctx, w.cat); err != nil {
		return err
	}
	if w.Budget.Free()-besideEdges >= w.stream.Bytes() {
		return w.stream.Load(ctx, w.Budget, w.Threads)
	}
	return nil
}

// hop makes a = v Ã of the hop before, and v of this one; at hop 0 a belongs to the node itself.
func (w *walk) hop(ctx context.Context, hop int, meter *progress.Meter) error {
	v, a := w.v.S, w.a.S
	if hop == 0 {
		i := int(w.node.Node)
		a[i] = elementary.Pow(w.degree1(i), w.R) // u = a D̃^(−r) is 1
		v[i] = elementary.Pow(w.degree1(i), w.R-1)
		return nil
	}
	copy(a, v) // the self-loop
	for strip := range w.stream.Strips() {
		if err := visit(ctx, w.stream, strip, func(src, dst uint32, weight float32) {
			a[src] += float64(float64(weight) * v[dst])
		}); err != nil {
			return err
		}
		meter.Add(w.stream.Edges(strip))
	}
	for j := range v {
		v[j] = a[j] / w.degree1(j)
	}
	return nil
}

// distance returns the distance at the present hop.
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
