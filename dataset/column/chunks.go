package column

import (
	"context"
	"errors"
	"io"

	"ndls/dataset/graph"
)

// Nodes says to which nodes the rows of a part belong.
type Nodes struct {
	// First is the node of the first row, and the others follow it; or IDs opens the nodes of all rows, below Limit.
	First int64
	IDs   func(context.Context) (IDs, error)
	Limit graph.IDLimit
}

// Open opens the nodes of the rows.
func (n *Nodes) Open(ctx context.Context) (r *NodeReader, err error) {
	r = &NodeReader{nodes: n}
	if n.IDs != nil {
		r.ids, err = n.IDs(ctx)
	}
	return r, err
}

// NodeReader gives the nodes of the rows of a part.
type NodeReader struct {
	nodes *Nodes
	ids   IDs // nil where nodes follow each other
}

// Of returns the node of the row that was read last, or why there is none. row is its number in the part; err is the error of its reader,
// io.EOF behind the last row.
func (r *NodeReader) Of(row uint32, err error) (uint32, error) {
	if r.ids == nil || err != nil && err != io.EOF {
		return row + uint32(r.nodes.First), err
	}
	node, end := r.ids.Next() // at the end, too: it checks the checksum
	switch {
	case end != nil:
		return 0, end
	case err != nil:
		return 0, err
	}
	if problem := r.nodes.Limit.Check(node, false); problem != "" {
		return 0, graph.BadData(r.ids.Position(), "%s", problem)
	}
	return uint32(node), nil
}

// Close closes the nodes.
func (r *NodeReader) Close() error {
	if r.ids == nil {
		return nil
	}
	return r.ids.Close()
}

// Chunk is a column that has values of some nodes.
type Chunk struct {
	Column
	Nodes
}

// Open implements [Column].
func (c Chunk) Open(ctx context.Context) (Reader, error) {
	r, err := c.Column.Open(ctx)
	if err != nil {
		return nil, err
	}
	nodes, err := c.Nodes.Open(ctx)
	if err != nil {
		return nil, errors.Join(err, r.Close())
	}
	return &openChunk{r, nodes}, nil
}

// openChunk reads a chunk.
type openChunk struct {
	Reader
	nodes *NodeReader
}

// Close implements [Reader].
func (r *openChunk) Close() error { return errors.Join(r.Reader.Close(), r.nodes.Close()) }

// NextValue implements [Reader].
func (r *openChunk) NextValue() (uint32, string, error) {
	id, value, err := r.Reader.NextValue()
	id, err = r.nodes.Of(id, err)
	return id, value, err
}

// Chunks are several columns, one after the other.
type Chunks []Chunk

// Where implements [Column].
func (c Chunks) Where() string { return c[0].Where() }

// Open implements [Column].
func (c Chunks) Open(ctx context.Context) (Reader, error) {
	return &chunkReader{graph.NewChain(len(c), func(i int) (Reader, error) { return c[i].Open(ctx) }), c.Where()}, nil
}

type chunkReader struct {
	graph.Chain[Reader]
	where string
}

// Position implements [Reader].
func (r *chunkReader) Position() string {
	if r.Now == nil {
		return r.where
	}
	return r.Now.Position()
}

// NextValue implements [Reader].
func (r *chunkReader) NextValue() (id uint32, value string, err error) {
	err = r.Step(func(now Reader) (err error) {
		id, value, err = now.NextValue()
		return err
	})
	return id, value, err
}
