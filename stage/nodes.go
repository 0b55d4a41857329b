package stage

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"

	"ndls/catalog"
	"ndls/dataset"
	"ndls/internal/extsort"
	"ndls/internal/inputid"
	"ndls/internal/mem"
	"ndls/internal/seal"
	"ndls/partition"
	"ndls/shards"
	"ndls/smooth"
	"ndls/train"
)

// PowerRange returns the smallest and the largest number with this number of bits; 0 bits holds 0 alone.
func PowerRange(power int) (from, to int64) { return 1 << power >> 1, 1<<power - 1 }

// Nodes reads the node table.
type Nodes struct{ *Env }

func (env *Env) Nodes() Nodes { return Nodes{env} }

// Readers returns the threads and the budget for reading tables.
func (env Nodes) Readers() shards.Readers {
	return shards.Readers{Threads: env.Resources.Threads, Budget: env.Budget}
}

// Read visits some columns of the node table, in order.
func (env Nodes) Read(ctx context.Context, want shards.NodeColumns, visit func(first int64, b shards.NodeBatch)) error {
	return shards.VisitNodes(ctx, env.Catalog, want, env.Readers(), func(first int64, b shards.NodeBatch) error {
		visit(first, b)
		return nil
	})
}

// IDs loads the input ids of the task's nodes.
func (env Nodes) IDs(ctx context.Context) (*mem.Array[uint32], error) {
	lo, hi := env.Span(env.Summary.Nodes)
	ids, err := mem.Alloc[uint32](env.Budget, hi-lo, "input ids")
	if err != nil {
		return nil, err
	}
	err = env.Read(ctx, shards.NodeID, func(first int64, b shards.NodeBatch) {
		for i, id := range b.ID {
			if node := first + int64(i); lo <= node && node < hi {
				ids.S[node-lo] = uint32(id)
			}
		}
	})
	if err != nil {
		ids.Free()
		return nil, err
	}
	return ids, nil
}

// KeptIDs returns the input ids of the task's nodes, which the session keeps.
func (env Nodes) KeptIDs(ctx context.Context) (*mem.Array[uint32], error) {
	return Keep(env.Session, "ids", nil, func() (*mem.Array[uint32], error) { return env.IDs(ctx) })
}

// Labelled adds the nodes with a label to t, and the validation nodes among them to valid, unless it is nil.
func (env Nodes) Labelled(ctx context.Context, t, valid *smooth.Targets) error {
	return env.Read(ctx, shards.NodeLabel|shards.NodeSplit, func(first int64, b shards.NodeBatch) {
		for i, label := range b.Label {
			if label < 0 {
				continue
			}
			t.Add(first + int64(i))
			if valid != nil && IsValidation(b.Split[i], label) {
				valid.Add(first + int64(i))
			}
		}
	})
}

// Names opens the ids of the nodes from node on, for writing rows of them. It returns nil if ids are numbers. The caller closes them.
func (env Nodes) Names(ctx context.Context, node int64) (_ *shards.IDReader, closeFile func(), err error) {
	if env.Summary.IDs == "" {
		return nil, func() {}, nil
	}
	entries := env.Catalog.Entries(catalog.KindNodes)
	if len(entries) != 1 {
		return nil, nil, fmt.Errorf("the catalogue names %d node tables: run `ndls partition` first: %w", len(entries), seal.ErrCorrupt)
	}
	r, err := env.Catalog.Open(ctx, entries[0])
	if err != nil {
		return nil, nil, err
	}
	names, err := shards.OpenNodeIDs(r, entries[0].Path)
	if err != nil {
		return nil, nil, errors.Join(err, r.Close())
	}
	names.SkipTo(node)
	return names, func() { _ = r.Close() }, nil
}

// WriteFile writes a file of the catalogue: [catalog.Catalog.Write], or the method of a batch.
type WriteFile = func(ctx context.Context, e catalog.Entry, write func(*catalog.File) error) error

// PutRows takes Arrow rows of nodes, in order of node; ids are numbers if the graph's ids are numbered.
type PutRows = func(ids []int64, labels []int32, values []float32) error

// WriteRows writes a file of Arrow rows of nodes of an interval, which rows passes to put.
func (env Nodes) WriteRows(ctx context.Context, write WriteFile, e catalog.Entry, schema shards.RowSchema,
	rows func(put PutRows) error,
) error {
	names, closeNames, err := env.Names(ctx, int64(e.Interval)*env.Summary.IntervalRows)
	if err != nil {
		return err
	}
	defer closeNames()
	return write(ctx, e, func(f *catalog.File) error {
		w, err := shards.NewRowWriter(f, schema, names)
		if err != nil {
			return err
		}
		if err := rows(w.Write); err != nil {
			return err
		}
		f.Rows, err = w.Close()
		return err
	})
}

// Quote returns the input id of a node as messages show it. id is the number of the id, or the id itself if ids are not numbered.
func (env Nodes) Quote(ctx context.Context, node, id int64) string {
	names, closeNames, err := env.Names(ctx, node)
	if err != nil {
		return "with number " + strconv.FormatInt(id, 10)
	}
	defer closeNames()
	if names == nil {
		return strconv.FormatInt(id, 10)
	}
	keys, err := names.Keys([]int64{id})
	if err != nil {
		return "with number " + strconv.FormatInt(id, 10)
	}
	return names.IDs().Type.Quote(keys[0])
}

// ByKey returns a table of the nodes by the keys of their ids, for graphs whose ids are numbered.
func (env Nodes) ByKey(ctx context.Context) (_ *inputid.Table, err error) {
	names, closeNames, err := env.Names(ctx, 0)
	if err != nil {
		return nil, err
	}
	defer closeNames()
	t, err := inputid.NewTable(env.Budget, names.IDs().Type, env.Summary.Nodes)
	if err != nil {
		return nil, err
	}
	node := uint32(0)
	if err := names.Each(func(_ int64, keys [][]byte) error {
		for _, key := range keys {
			if err := t.Add(key, node); err != nil {
				return err
			}
			node++
		}
		return ctx.Err()
	}); err != nil {
		t.Free()
		return nil, err
	}
	return t, nil
}

// byID finds nodes by input id, or by its number if ids are numbered.
type byID struct {
	keys *mem.Array[uint64] // input id and node, by ascending id
}

// ByID sorts the n nodes by input id. It uses 8·n bytes.
func (env Nodes) ByID(ctx context.Context) (*byID, error) {
	n := env.Summary.Nodes
	keys, err := mem.Alloc[uint64](env.Budget, n, "nodes by id")
	if err != nil {
		return nil, err
	}
	if err := env.Read(ctx, shards.NodeID, func(first int64, b shards.NodeBatch) {
		for i, id := range b.ID {
			node := first + int64(i)
			keys.S[node] = uint64(id)<<32 | uint64(node)
		}
	}); err != nil {
		keys.Free()
		return nil, err
	}
	extsort.SortKeys(keys.S, max(env.Resources.Threads, 1))
	return &byID{keys}, nil
}

// Of returns the node of an input id.
func (b *byID) Of(id int64) (node int64, ok bool) {
	if id < 0 || id>>32 != 0 {
		return 0, false
	}
	at, _ := slices.BinarySearch(b.keys.S, uint64(id)<<32)
	if at == len(b.keys.S) || int64(b.keys.S[at]>>32) != id {
		return 0, false
	}
	return int64(uint32(b.keys.S[at])), true
}

func (b *byID) Free() { b.keys.Free() }

// ReadSplits visits columns of the node table and the place of each node in each split.
func (env Nodes) ReadSplits(ctx context.Context, want shards.NodeColumns,
	visit func(first int64, b shards.NodeBatch, split [][]uint8),
) error {
	return env.VisitSplits(ctx, want, env.Readers(), func(first int64, b shards.NodeBatch, split [][]uint8) error {
		visit(first, b, split)
		return nil
	})
}

// VisitSplits is ReadSplits with given readers; an error of visit ends it. The first split is a column of the table; the others are
// files with a byte per node.
func (env Nodes) VisitSplits(ctx context.Context, want shards.NodeColumns, by shards.Readers,
	visit func(first int64, b shards.NodeBatch, split [][]uint8) error,
) (err error) {
	splits := env.Plan.NumSplits()
	files := make([]splitFile, splits-1)
	defer func() {
		for _, f := range files {
			if f.close != nil {
				err = errors.Join(err, f.close())
			}
		}
	}()
	for i := range files {
		if files[i], err = openSplit(ctx, env.Catalog, i+1); err != nil {
			return err
		}
	}
	parts := make([][]uint8, splits)
	err = shards.VisitNodes(ctx, env.Catalog, want|shards.NodeSplit, by, func(first int64, b shards.NodeBatch) (err error) {
		parts[0] = b.Split
		for i := range files {
			if parts[i+1], err = files[i].next(parts[i+1], len(b.Split)); err != nil {
				return err
			}
		}
		if env.Blind {
			hideTest(b.Label, parts)
		}
		return visit(first, b, parts)
	})
	for i := range files {
		if err == nil {
			err = files[i].finish()
		}
	}
	return err
}

// hideTest removes test nodes from their splits, and the labels of nodes that are then in no split.
func hideTest(labels []int32, splits [][]uint8) {
	for i := range splits[0] {
		seen := false
		for _, split := range splits {
			if split[i] == train.Test {
				split[i] = train.NoSplit
			}
			seen = seen || split[i] != train.NoSplit
		}
		if !seen && i < len(labels) {
			labels[i] = -1
		}
	}
}

// splitFile reads a file with a byte per node: its place in a split.
type splitFile struct {
	path  string
	in    *bufio.Reader
	close func() error
}

func openSplit(ctx context.Context, cat *catalog.Catalog, split int) (f splitFile, err error) {
	f.path = partition.SplitPath(split)
	e, ok := cat.Lookup(f.path)
	if !ok {
		return f, fmt.Errorf("there is no %s: run `ndls partition` with --splits %d or more first", f.path, split+1)
	}
	r, err := cat.Stream(ctx, e)
	if err != nil {
		return f, err
	}
	f.in, f.close = bufio.NewReader(r), r.Close
	return f, nil
}

// next reads the places of the next n nodes into the memory of to.
func (f splitFile) next(to []uint8, n int) ([]uint8, error) {
	if cap(to) < n {
		to = make([]uint8, n)
	}
	to = to[:n]
	if _, err := io.ReadFull(f.in, to); err != nil {
		return nil, f.failed(err)
	}
	for _, x := range to {
		if x > train.Test {
			return nil, seal.Corrupt(f.path, "a node has split value %d; the largest is %d", x, train.Test)
		}
	}
	return to, nil
}

// finish checks that the file ends here.
func (f splitFile) finish() error {
	if _, err := f.in.ReadByte(); err != io.EOF {
		return f.failed(err)
	}
	return nil
}

// failed returns the error for a file that is too short or too long or cannot be read.
func (f splitFile) failed(err error) error {
	if err == nil || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return seal.Corrupt(f.path, "it must have one byte for each node of the node table")
	}
	return fmt.Errorf("%s: %w", f.path, err)
}

// IsTraining reports whether the label of a node is propagated.
func IsTraining(split uint8, label int32) bool {
	return dataset.Split(split) == dataset.Train && label >= 0
}

// IsValidation reports whether a node takes part in choosing the depth.
func IsValidation(split uint8, label int32) bool {
	return dataset.Split(split) == dataset.Valid && label >= 0
}
