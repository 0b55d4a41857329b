package column

import (
	"context"
	"fmt"
	"io"
	"strings"

	"ndls/dataset/array"
	"ndls/dataset/graph"
	"ndls/dataset/npy"
)

// IDs streams the nodes of a part of a split.
type IDs interface {
	// Next returns a node, or io.EOF.
	Next() (int64, error)
	// Position names the row that Next returned last.
	Position() string
	Close() error
}

// List opens the nodes of a part of a split.
type List struct {
	Split graph.Split
	Open  func(context.Context) (IDs, error)
}

// Lists is a split whose parts are stored one by one, as lists of nodes or as masks.
type Lists struct {
	Parts []List
	Limit graph.IDLimit
}

// Open reads the parts one after the other.
func (l *Lists) Open(ctx context.Context) (graph.SplitReader, error) {
	return &listReader{graph.NewChain(len(l.Parts), func(i int) (IDs, error) { return l.Parts[i].Open(ctx) }), l}, nil
}

type listReader struct {
	graph.Chain[IDs]
	*Lists
}

func (r *listReader) Position() string { return r.Now.Position() }

func (r *listReader) Next() (id uint32, split graph.Split, err error) {
	err = r.Step(func(ids IDs) error {
		node, err := ids.Next()
		if err != nil {
			return err
		}
		if problem := r.Limit.Check(node, false); problem != "" {
			return graph.BadData(ids.Position(), "%s", problem)
		}
		id, split = uint32(node), r.Parts[r.At].Split
		return nil
	})
	return id, split, err
}

// RangeList is the nodes from lo to below hi.
func RangeList(split graph.Split, lo, hi int64) List {
	return List{split, func(ctx context.Context) (IDs, error) { return &rangeIDs{ctx, lo, hi}, nil }}
}

type rangeIDs struct {
	ctx       context.Context
	next, end int64
}

func (r *rangeIDs) Close() error { return nil }

func (r *rangeIDs) Position() string { return fmt.Sprintf("node %d", r.next-1) }

func (r *rangeIDs) Next() (int64, error) {
	if r.next >= r.end {
		return 0, io.EOF
	}
	r.next++
	if r.next%(1<<16) == 0 {
		return r.next - 1, r.ctx.Err()
	}
	return r.next - 1, nil
}

// VectorList is a list of nodes in a vector of integers.
func VectorList(split graph.Split, v array.Vector, shape []int64) (List, error) {
	if v.Type == npy.Bool || len(shape) != 1 && !(len(shape) == 2 && shape[1] == 1) {
		return List{}, graph.BadData(v.Name, "dtype %s, shape %v: a vector of the node ids of the %s nodes is needed", v.Type, shape, split)
	}
	return List{split, func(ctx context.Context) (IDs, error) {
		ids, err := v.Integers(ctx, 0)
		if err != nil {
			return nil, err
		}
		return &vectorIDs{Closer: ids, next: ids.Next, name: v.Name}, nil
	}}, nil
}

type vectorIDs struct {
	io.Closer
	next func() (int64, error)
	name string
	row  int64
}

func (r *vectorIDs) Position() string { return graph.RowOf(r.name, r.row-1) }

func (r *vectorIDs) Next() (int64, error) {
	r.row++
	return r.next()
}

// MaskOf is the nodes, from first on, whose booleans are true in an array of shape (nodes), (splits, nodes) or (nodes, splits). Number
// pick of several splits counts; splits is the number of splits, 0 if the mask is for all.
func MaskOf(split graph.Split, v array.Vector, shape []int64, nodes, first, pick int64) (l List, splits int64, err error) {
	c := Vector{Values: v}
	switch {
	case len(shape) == 1 && shape[0] == nodes:
		return MaskColumn(split, Chunk{c, Nodes{First: first}}), 0, nil
	case len(shape) == 2 && shape[1] == nodes:
		splits = shape[0]
		if pick < splits {
			c.Values = v.Part(pick*nodes, nodes)
		}
	case len(shape) == 2 && shape[0] == nodes:
		splits, c.Width, c.Pick = shape[1], shape[1], pick
	default:
		return l, 0, graph.BadData(v.Name, "has shape %v: a mask has a boolean for each of the %d nodes, or one for each node and split", shape, nodes)
	}
	if pick >= splits {
		return l, splits, graph.BadData(v.Name, "has %d splits, numbered from 0: split=%d is none of them", splits, pick)
	}
	return MaskColumn(split, Chunk{c, Nodes{First: first}}), splits, nil
}

// MaskColumn is the nodes whose value in a column is 1 or true.
func MaskColumn(split graph.Split, c Column) List {
	return List{split, func(ctx context.Context) (IDs, error) {
		r, err := c.Open(ctx)
		if err != nil {
			return nil, err
		}
		return columnIDs{r}, nil
	}}
}

type columnIDs struct{ Reader }

func (r columnIDs) Next() (int64, error) {
	for {
		id, value, err := r.NextValue()
		if err != nil {
			return 0, err
		}
		switch strings.ToLower(value) {
		case "1", "true":
			return int64(id), nil
		case "0", "false":
		default:
			return 0, graph.BadData(r.Position(), "holds %q: a mask is a boolean, or 0 or 1, for each node", value)
		}
	}
}
