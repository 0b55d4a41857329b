package export

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"unsafe"

	"ndls/catalog"
	"ndls/internal/mem"
	"ndls/internal/seal"
	"ndls/internal/storage"
	"ndls/shards"
	"ndls/tiles"
)

// view sees bytes as values of T; they start where T may.
func view[T any](b []byte) []T {
	if len(b) == 0 {
		return nil
	}
	var zero T
	return unsafe.Slice((*T)(unsafe.Pointer(&b[0])), len(b)/int(unsafe.Sizeof(zero)))
}

var idColumn = column{"id", int64Kind, 0}

func open(ctx context.Context, cat *catalog.Catalog, o Options) (*source, error) {
	switch o.What {
	case "lsi":
		return lsiSource(cat, o.Budget), nil
	case "nodes":
		s, err := summary(ctx, cat)
		return nodeSource(cat, s.Weighted, s.Directed, o.Budget), err
	case "edges":
		s, err := summary(ctx, cat)
		if err != nil {
			return nil, err
		}
		return edgeSource(ctx, cat, s.Weighted, o.Budget)
	case "features":
		return tileSource(ctx, cat, o.Budget)
	}
	src, err := rowSource(ctx, cat, made[o.What].kinds[0], o.Budget)
	if err == nil && o.TrueLabels {
		err = src.addTruth(ctx, cat, o.Budget)
	}
	return src, err
}

// summary describes the graph; it is empty where none is committed yet.
func summary(ctx context.Context, cat *catalog.Catalog) (shards.Summary, error) {
	if _, ok := cat.Lookup(shards.SummaryPath); !ok {
		return shards.Summary{}, nil
	}
	return shards.ReadSummary(ctx, cat)
}

// eachFile opens the files of a kind in order; visit gets the number of rows
// in the files before.
func eachFile(ctx context.Context, cat *catalog.Catalog, kind string,
	visit func(e catalog.Entry, r storage.Reader, before int64) error,
) error {
	var before int64
	for _, e := range cat.Entries(kind) {
		r, err := cat.Open(ctx, e)
		if err != nil {
			return err
		}
		if err := errors.Join(visit(e, r, before), r.Close()); err != nil {
			return err
		}
		before += e.Rows
	}
	return nil
}

// eachVerified is eachFile that compares each file with its checksum once visit is done with it.
func eachVerified(ctx context.Context, cat *catalog.Catalog, kind string,
	visit func(e catalog.Entry, r storage.Reader, before int64) error,
) error {
	var before int64
	for _, e := range cat.Entries(kind) {
		v, err := cat.OpenVerified(ctx, e)
		if err != nil {
			return err
		}
		if err = visit(e, v, before); err == nil {
			err = v.Finish()
		}
		if err := errors.Join(err, v.Close()); err != nil {
			return err
		}
		before += e.Rows
	}
	return nil
}

func countRows(cat *catalog.Catalog, kind string) int64 {
	var n int64
	for _, e := range cat.Entries(kind) {
		n += e.Rows
	}
	return n
}

// readers are those that read tables.
func readers(budget *mem.Budget) shards.Readers {
	return shards.Readers{Threads: runtime.GOMAXPROCS(0), Budget: budget}
}

func lsiSource(cat *catalog.Catalog, budget *mem.Budget) *source {
	return &source{
		columns: []column{idColumn, {"k", int32Kind, 0}, {"capped", boolKind, 0}},
		rows:    countRows(cat, catalog.KindLSI),
		scan: func(ctx context.Context, visit func(int64, [][]byte) error) error {
			return eachFile(ctx, cat, catalog.KindLSI, func(e catalog.Entry, r storage.Reader, before int64) error {
				return shards.ReadLSI(r, e.Path, readers(budget), func(first int64, b shards.LSIBatch) error {
					return visit(before+first, [][]byte{mem.AsBytes(b.ID), mem.AsBytes(b.K), mem.AsBytes(b.Capped)})
				})
			})
		},
	}
}

// edgeSource reads the edges as they are stored; its first column is no input id.
func edgeSource(ctx context.Context, cat *catalog.Catalog, weighted bool, b *mem.Budget) (*source, error) {
	columns := []column{{"src", uint32Kind, 0}, {"dst", uint32Kind, 0}}
	if weighted {
		columns = append(columns, column{"weight", float32Kind, 0})
	}
	edges, err := openEdges(ctx, cat, weighted, b)
	if err != nil {
		return nil, err
	}
	return &source{
		columns: columns,
		rows:    edges.rows(),
		free:    edges.close,
		scan: func(ctx context.Context, visit func(int64, [][]byte) error) error {
			before := int64(0)
			return edges.each(ctx, func(src, dst []uint32, weights []float32) error {
				cols := [][]byte{mem.AsBytes(src), mem.AsBytes(dst)}
				if weighted {
					cols = append(cols, mem.AsBytes(weights))
				}
				err := visit(before, cols)
				before += int64(len(src))
				return err
			})
		},
	}, nil
}

// nodeSource reads the node table. In a graph with weights it has the strengths too, and in a
// graph with directions how many edges begin at each node.
func nodeSource(cat *catalog.Catalog, weighted, directed bool, budget *mem.Budget) *source {
	columns := []column{idColumn, {"degree", uint32Kind, 0}, {"component", uint32Kind, 0}, {"label", int32Kind, 0}, {"split", splitKind, 0}}
	if weighted {
		columns = append(columns, column{"strength", float32Kind, 0})
	}
	if directed {
		columns = append(columns, column{"out_degree", uint32Kind, 0})
	}
	return &source{
		columns: columns,
		rows:    countRows(cat, catalog.KindNodes),
		scan: func(ctx context.Context, visit func(int64, [][]byte) error) error {
			return eachFile(ctx, cat, catalog.KindNodes, func(e catalog.Entry, r storage.Reader, before int64) error {
				return shards.ReadNodes(r, e.Path, readers(budget), func(first int64, b shards.NodeBatch) error {
					cols := [][]byte{mem.AsBytes(b.ID), mem.AsBytes(b.Degree), mem.AsBytes(b.Component), mem.AsBytes(b.Label), b.Split}
					if weighted {
						strength := make([]float32, len(b.Strength))
						for i, s := range b.Strength {
							strength[i] = float32(s)
						}
						cols = append(cols, mem.AsBytes(strength))
					}
					if directed {
						cols = append(cols, mem.AsBytes(b.OutDegree))
					}
					return visit(before+first, cols)
				})
			})
		},
	}
}

// idsAtATime is the number of ids that are read of a record batch at a time.
const idsAtATime = 1 << 14

// rowSource reads Arrow row files. A scan holds the largest record batch in memory of the
// budget: a row of many classes is long. The first scan compares the files with their checksums, and fails before it
// gives the last rows of one that is damaged.
func rowSource(ctx context.Context, cat *catalog.Catalog, kind string, b *mem.Budget) (*source, error) {
	var schema shards.RowSchema
	most := int64(0) // rows of a record batch
	err := eachFile(ctx, cat, kind, func(e catalog.Entry, r storage.Reader, before int64) error {
		rr, err := shards.OpenRows(r, e.Path)
		if err != nil {
			return err
		}
		if before > 0 && rr.Schema() != schema {
			return fmt.Errorf("%s has other columns than the files before it: %w", e.Path, seal.ErrCorrupt)
		}
		schema = rr.Schema()
		for i := range rr.NumBatches() {
			_, rows := rr.BatchRows(i)
			most = max(most, rows)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	columns := []column{idColumn}
	if schema.Label {
		columns = append(columns, column{"label", int32Kind, 0})
	}
	for _, name := range schema.Lists() {
		columns = append(columns, column{name, float32Kind, schema.Width})
	}
	src := &source{columns: columns, rows: countRows(cat, kind), memory: rowBatchBytes(schema, most)}
	src.ids = func(ctx context.Context, visit func(int64, []int64) error) error {
		ids := make([]int64, idsAtATime)
		return eachFile(ctx, cat, kind, func(e catalog.Entry, r storage.Reader, before int64) error {
			rr, err := shards.OpenRows(r, e.Path)
			if err != nil {
				return err
			}
			for i := range rr.NumBatches() {
				first, rows := rr.BatchRows(i)
				for at := int64(0); at < rows; at += idsAtATime {
					part := ids[:min(rows-at, idsAtATime)]
					if err := rr.ReadIDs(i, at, part); err != nil {
						return err
					}
					if err := visit(before+first+at, part); err != nil {
						return err
					}
				}
			}
			return nil
		})
	}
	src.scan = func(ctx context.Context, visit func(int64, [][]byte) error) error {
		batch, free, err := newRowBatch(b, schema, most)
		if err != nil {
			return err
		}
		defer free()
		each := eachVerified
		if src.verified {
			each = eachFile
		}
		err = each(ctx, cat, kind, func(e catalog.Entry, r storage.Reader, before int64) error {
			rr, err := shards.OpenRows(r, e.Path)
			if err != nil {
				return err
			}
			for i := range rr.NumBatches() {
				if err := rr.ReadLists(i, batch); err != nil {
					return err
				}
				cols := [][]byte{mem.AsBytes(batch.ID)}
				if schema.Label {
					cols = append(cols, mem.AsBytes(batch.Label))
				}
				for list := range slices.Chunk(batch.Values, len(batch.ID)*schema.Width) {
					cols = append(cols, mem.AsBytes(list))
				}
				if err := visit(before+batch.First, cols); err != nil {
					return err
				}
			}
			return nil
		})
		src.verified = src.verified || err == nil
		return err
	}
	return src, nil
}

// rowBatchBytes returns the memory of a record batch of so many rows.
func rowBatchBytes(s shards.RowSchema, rows int64) int64 {
	return rows*(12+4*int64(s.Values())) + 3*4096
}

// newRowBatch is memory of the budget for a record batch of so many rows.
func newRowBatch(b *mem.Budget, s shards.RowSchema, rows int64) (_ *shards.RowBatch, free func(), err error) {
	var (
		id     *mem.Array[int64]
		label  *mem.Array[int32]
		values *mem.Array[float32]
	)
	free = func() {
		id.Free()
		label.Free()
		values.Free()
	}
	if id, err = mem.Alloc[int64](b, rows, "ids of a record batch"); err == nil {
		label, err = mem.Alloc[int32](b, rows, "labels of a record batch")
	}
	if err == nil {
		values, err = mem.Alloc[float32](b, rows*int64(s.Values()), "a record batch")
	}
	if err != nil {
		free()
		return nil, nil, err
	}
	return &shards.RowBatch{ID: id.S[:0], Label: label.S[:0], Values: values.S[:0]}, free, nil
}

// nodeIDs reads the input id of every node, in order of node, or, where place is not nil, to
// place[node]: 4·n bytes.
func nodeIDs(ctx context.Context, cat *catalog.Catalog, place []uint32, b *mem.Budget) (*mem.Array[uint32], error) {
	nodes := nodeSource(cat, false, false, b)
	ids, err := mem.Alloc[uint32](b, nodes.rows, "ids of nodes")
	if err != nil {
		return nil, err
	}
	err = nodes.scan(ctx, func(first int64, cols [][]byte) error {
		for i, id := range view[int64](cols[0]) {
			at := first + int64(i)
			if place != nil {
				at = int64(place[at])
			}
			ids.S[at] = uint32(id)
		}
		return ctx.Err()
	})
	if err != nil {
		ids.Free()
		return nil, err
	}
	return ids, nil
}

// tileBytes bounds the memory that rows are put together from tiles with, tileShare the
// share of what is free of the budget.
const (
	tileBytes = 8 << 20
	tileShare = 8
)

// tileSource puts feature rows together from their tiles. A scan reads each tile once, and
// fails before it gives the last rows of one that is damaged.
func tileSource(ctx context.Context, cat *catalog.Catalog, b *mem.Budget) (*source, error) {
	s, err := shards.ReadSummary(ctx, cat)
	if err != nil {
		return nil, err
	}
	ids, err := nodeIDs(ctx, cat, nil, b)
	if err != nil {
		return nil, err
	}
	matrix := tiles.Open(cat, b, tiles.Features(s))
	batch := matrix.Batch(s.Features, min(tileBytes, b.Free()/tileShare))
	wide := make([]int64, batch)
	idsOf := func(first int64, n int) []int64 {
		for i, id := range ids.S[first : first+int64(n)] {
			wide[i] = int64(id)
		}
		return wide[:n]
	}
	return &source{
		columns: []column{idColumn, {"feature", float32Kind, s.Features}}, rows: s.Nodes,
		ids: func(_ context.Context, visit func(int64, []int64) error) error {
			for first := int64(0); first < int64(len(ids.S)); first += int64(batch) {
				if err := visit(first, idsOf(first, int(min(int64(batch), int64(len(ids.S))-first)))); err != nil {
					return err
				}
			}
			return nil
		},
		scan: func(ctx context.Context, visit func(int64, [][]byte) error) error {
			for i := range matrix.Intervals() {
				if err := matrix.Read(ctx, i, 0, s.Features, batch, func(row int64, values []float32) error {
					return visit(row, [][]byte{mem.AsBytes(idsOf(row, len(values)/s.Features)), mem.AsBytes(values)})
				}); err != nil {
					return err
				}
			}
			return nil
		},
		memory: matrix.ReadBytes(s.Features, batch), free: ids.Free,
	}, nil
}
