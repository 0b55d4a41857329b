package planetoid

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"

	"ndls/dataset/array"
	"ndls/dataset/column"
	"ndls/dataset/graph"
	"ndls/dataset/layout"
	"ndls/dataset/pickle"
	"ndls/dataset/source"
	"ndls/dataset/table"
)

const (
	// planetoidValid is the size of the validation set of the public split.
	planetoidValid = 500
	// maxPlanetoid is the largest number of nodes of a set in this form; the ids of its test nodes
	// are kept in memory as one bit each.
	maxPlanetoid = 1 << 24
)

// planetoid is a citation graph in the form of Yang, Cohen and Salakhutdinov
// (ICML 2016).
type planetoid struct {
	*layout.Graph
	prefix       string
	allx, tx     *array.Sparse
	ally, ty     labels
	lists, index *source.Source
	isTest       []uint64 // bit i is node ally.rows+i
}

// labels is a label matrix of 0 and 1.
type labels struct {
	column.OneHot
	rows int64
}

// Open opens planetoid:DIR/NAME.
func Open(ctx context.Context, rest string, o graph.Options) (graph.Dataset, error) {
	path, err := graph.PathOf(rest)
	if err != nil {
		return nil, err
	}
	dir, name := filepath.Split(path)
	if name == "" {
		return nil, graph.BadURI("planetoid:%s: the name of the set is missing: planetoid:DIR/cora reads DIR/ind.cora.*", rest)
	}
	p := &planetoid{
		prefix: filepath.Join(dir, "ind."+name) + ".",
		Graph:  &layout.Graph{Known: graph.Info{Name: name, Identity: "planetoid:" + graph.EscapePath(name)}},
	}
	p.EdgeList = graph.EdgeFunc(p.edges)
	return p.Opened(p.open(ctx, o))
}

func (p *planetoid) open(ctx context.Context, o graph.Options) (err error) {
	for _, step := range []struct {
		suffix string
		to     *labels
	}{{"ally", &p.ally}, {"ty", &p.ty}} {
		if *step.to, err = p.labels(ctx, step.suffix); err != nil {
			return err
		}
	}
	y, err := p.labels(ctx, "y")
	if err != nil {
		return err
	}
	if p.ally.Width != p.ty.Width || y.rows > p.ally.rows {
		return graph.BadData(p.prefix+"ally", "%d rows of %d classes do not go with the %d training rows of y and the %d classes of ty: the files do not belong together",
			p.ally.rows, p.ally.Width, y.rows, p.ty.Width)
	}
	if p.lists, err = p.source("graph"); err != nil {
		return err
	}
	// About three bytes of pickle for each entry of the lists.
	p.Known.EdgeHint = p.lists.Size / 3
	if err := p.readIndex(ctx); err != nil {
		return err
	}
	test := column.Chunk{Column: p.ty, Nodes: p.test()}
	if p.Classes, err = column.OpenLabels(ctx, column.Chunks{{Column: p.ally}, test}); err == nil {
		err = p.Classes.Count(int(p.ally.Width))
	}
	if err != nil {
		return err
	}
	// The public split: the first nodes train, the 500 after them validate, those of test.index test.
	p.Membership = &column.Lists{Limit: graph.AnyID, Parts: []column.List{
		column.RangeList(graph.Train, 0, y.rows), column.RangeList(graph.Valid, y.rows, min(y.rows+planetoidValid, p.ally.rows)),
		{Split: graph.Test, Open: p.openIndex},
	}}
	if o.NoFeatures {
		return nil
	}
	return p.openFeatures(ctx)
}

func (p *planetoid) source(suffix string) (*source.Source, error) {
	s, _, err := p.Open(p.prefix + suffix)
	if errors.Is(err, fs.ErrNotExist) && suffix == "allx" {
		return nil, fmt.Errorf("%w: the features of all nodes that are not test nodes are in it; put it there, or leave the features out (--features none)", err)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w: a set in Planetoid form has the files x, y, tx, ty, allx, ally, graph and test.index", err)
	}
	return s, err
}

func (p *planetoid) labels(ctx context.Context, suffix string) (l labels, err error) {
	src, err := p.source(suffix)
	if err != nil {
		return l, err
	}
	value, err := array.Unpickle(ctx, src, 0)
	if err != nil {
		return l, err
	}
	v, shape, err := array.PickledVector(src, 0, value, "labels")
	if err != nil {
		return l, err
	}
	if len(shape) != 2 || shape[0] > maxPlanetoid || shape[1] < 1 || shape[1] > column.MaxClasses {
		return l, graph.BadData(src.Name, "has shape %v: labels are a matrix with one column for each class", shape)
	}
	return labels{column.OneHot{Values: v, Width: shape[1]}, shape[0]}, nil
}

func (p *planetoid) csr(ctx context.Context, suffix string) (*array.Sparse, error) {
	src, err := p.source(suffix)
	if err != nil {
		return nil, err
	}
	value, err := array.Unpickle(ctx, src, 0)
	if err != nil {
		return nil, err
	}
	return array.PickledMatrix(src, 0, value)
}

func (p *planetoid) openFeatures(ctx context.Context) (err error) {
	if p.allx, err = p.csr(ctx, "allx"); err != nil {
		return err
	}
	if p.tx, err = p.csr(ctx, "tx"); err != nil {
		return err
	}
	for _, m := range []struct {
		x *array.Sparse
		y labels
	}{{p.allx, p.ally}, {p.tx, p.ty}} {
		if m.x.Rows != m.y.rows {
			return graph.BadData(m.x.Name, "has %d rows, the labels have %d: the files do not belong together", m.x.Rows, m.y.rows)
		}
	}
	if p.allx.Cols != p.tx.Cols {
		return graph.BadData(p.allx.Name, "has %d columns, tx has %d: the files do not belong together", p.allx.Cols, p.tx.Cols)
	}
	p.Known.NumFeatures, p.Known.SparseFeatures, p.FeatureRows = int(p.allx.Cols), true, layout.FeatureChunks{
		{Rows: graph.FeatureFunc(p.allx.Features)}, {Rows: graph.FeatureFunc(p.tx.Features), Nodes: p.test()}, {Rows: graph.FeatureFunc(p.zeros)},
	}
	return graph.CheckSize(p.allx.Name, p.allx.Rows, p.allx.Cols)
}

// readIndex checks the test ids and finds the number of nodes.
func (p *planetoid) readIndex(ctx context.Context) (err error) {
	if p.index, err = p.source("test.index"); err != nil {
		return err
	}
	ids, err := p.openIndex(ctx)
	if err != nil {
		return err
	}
	defer ids.Close()
	first, count := p.ally.rows, int64(0)
	p.Known.NumNodes = first
	for ; ; count++ {
		id, err := ids.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			return err
		}
		if id < first {
			return graph.BadData(ids.Position(), "node %d is one of the %d nodes of ally: the files do not belong together", id, first)
		}
		word, bit := (id-first)/64, uint64(1)<<((id-first)%64)
		if need := word + 1 - int64(len(p.isTest)); need > 0 {
			p.isTest = append(p.isTest, make([]uint64, need)...)
		}
		if p.isTest[word]&bit != 0 {
			return graph.BadData(ids.Position(), "node %d is there twice: each test node has one row", id)
		}
		p.isTest[word] |= bit
		p.Known.NumNodes = max(p.Known.NumNodes, id+1)
	}
	if count != p.ty.rows {
		return graph.BadData(p.index.Name, "has %d lines, ty has %d rows: the files do not belong together", count, p.ty.rows)
	}
	return nil
}

// openIndex gives the node of each row of tx and ty.
func (p *planetoid) openIndex(ctx context.Context) (column.IDs, error) {
	form := table.Text{List: true, Bare: true, Advice: "fetch it again"}
	t, err := table.OpenNumbered(ctx, ".index", form, graph.IDLimit{N: maxPlanetoid}, p.index)
	if err != nil {
		return nil, err
	}
	return t.IDs(ctx)
}

// edges gives the lists of the graph: both directions, with repetitions.
func (p *planetoid) edges(ctx context.Context) (graph.EdgeReader, error) {
	value, err := array.Unpickle(ctx, p.lists, 0)
	if err != nil {
		return nil, err
	}
	dict, ok := value.(*pickle.Dict)
	if !ok {
		return nil, graph.BadData(p.lists.Name, "holds a %T, not a dict of lists: fetch it again", value)
	}
	return &dictEdges{
		name: p.lists.Name, pairs: dict.Pairs,
		limit: graph.IDLimit{N: p.Known.NumNodes, Stated: "ally and test.index state them"},
	}, nil
}

// dictEdges streams a dict of node → list of neighbours.
type dictEdges struct {
	name  string
	pairs []pickle.Pair
	pos   int // within the list of pairs[0]
	limit graph.IDLimit
}

func (d *dictEdges) Close() error { return nil }

func (d *dictEdges) Read(batch []graph.Edge, _ []float32) (int, error) {
	n := 0
	for n < len(batch) && len(d.pairs) > 0 {
		node, isID := d.pairs[0].Key.(int64)
		list, isList := d.pairs[0].Value.(*pickle.List)
		if !isID || !isList || len(list.Items) > 0 {
			return 0, graph.BadData(d.name, "the entry of %s is not a node with a list of nodes: fetch it again", pickle.Describe(d.pairs[0].Key))
		}
		if d.pos == len(list.Ints) {
			d.pairs, d.pos = d.pairs[1:], 0
			continue
		}
		other := list.Ints[d.pos]
		for _, id := range [2]int64{node, other} {
			if id < 0 || id >= d.limit.N {
				return 0, graph.BadData(d.name, "neighbour %d of node %d: %s", other, node, d.limit.Problem(id))
			}
		}
		batch[n] = graph.Edge{U: uint32(node), V: uint32(other)}
		n++
		d.pos++
	}
	if n == 0 && len(batch) > 0 {
		return 0, io.EOF
	}
	return n, nil
}

// test are the nodes of the rows of tx and ty.
func (p *planetoid) test() column.Nodes { return column.Nodes{IDs: p.openIndex, Limit: graph.AnyID} }

// zeros gives a row of zeros for each node behind those of ally that is no test node.
func (p *planetoid) zeros(context.Context) (graph.FeatureReader, error) {
	return &zeroRows{p, p.ally.rows}, nil
}

type zeroRows struct {
	p    *planetoid
	next int64
}

func (r *zeroRows) Close() error { return nil }

func (r *zeroRows) Next() (graph.FeatureRow, error) {
	for ; r.next < r.p.Known.NumNodes; r.next++ {
		if i := r.next - r.p.ally.rows; r.p.isTest[i/64]>>(i%64)&1 == 0 {
			r.next++
			return graph.FeatureRow{ID: uint32(r.next - 1)}, nil
		}
	}
	return graph.FeatureRow{}, io.EOF
}
