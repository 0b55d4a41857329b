package column

import (
	"context"
	"errors"
	"io"

	"ndls/dataset/graph"
)

// Chunk is a column that has values of some nodes.
type Chunk struct {
	Column
	// First is the node of the first row, and the others follow it; or IDs opens the nodes of all rows, below Limit.
	First int64
	IDs   func(context.Context) (IDs, error)
	Limit graph.IDLimit
}

// Chunks are such columns, one after the other.
type Chunks []Chunk

// Where implements [Column].
func (c Chunks) Where() string { return c[0].Where() }

// Open implements [Column].
func (c Chunks) Open(ctx context.Context) (Reader, error) {
	return &chunkReader{graph.NewChain(len(c), func(i int) (*openChunk, error) { return c[i].open(ctx) }), c.Where()}, nil
}

type chunkReader struct {
	graph.Chain[*openChunk]
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
	err = r.Step(func(now *openChunk) (err error) {
		id, value, err = now.NextValue()
		return err
	})
	return id, value, err
}

// openChunk reads a chunk. ids is nil where its nodes follow each other.
type openChunk struct {
	Reader
	*Chunk
	ids IDs
}

func (c *Chunk) open(ctx context.Context) (_ *openChunk, err error) {
	r := &openChunk{Chunk: c}
	if r.Reader, err = c.Column.Open(ctx); err != nil || c.IDs == nil {
		return r, err
	}
	if r.ids, err = c.IDs(ctx); err != nil {
		return nil, errors.Join(err, r.Reader.Close())
	}
	return r, nil
}

// Close implements [Reader].
func (r *openChunk) Close() error {
	if r.ids == nil {
		return r.Reader.Close()
	}
	return errors.Join(r.Reader.Close(), r.ids.Close())
}

// NextValue implements [Reader].
func (r *openChunk) NextValue() (uint32, string, error) {
	id, value, err := r.Reader.NextValue()
	if r.ids == nil || err != nil && err != io.EOF {
		return id + uint32(r.First), value, err
	}
	node, end := r.ids.Next() // at the end, too: it checks the checksum
	if end != nil {
		return 0, "", end
	}
	if err != nil {
		return 0, "", err
	}
	if problem := r.Limit.Check(node, false); problem != "" {
		return 0, "", graph.BadData(r.ids.Position(), "%s", problem)
	}
	return uint32(node), value, nil
}
