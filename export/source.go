package export

import (
	"context"
	"errors"
	"fmt"
	"io"
	"unsafe"

	"ndls/catalog"
	"ndls/internal/mem"
	"ndls/internal/seal"
	"ndls/internal/storage"
	"ndls/shards"
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
		return lsiSource(cat), nil
	case "nodes":
		return nodeSource(cat), nil
	case "edges":
		return edgeSource(cat), nil
	case "features":
		return tileSource(ctx, cat, o.Budget)
	}
	return rowSource(ctx, cat, made[o.What].kinds[0])
}

// eachFile opens the files of a kind in order; visit gets the number of rows
// in the files before.
func eachFile(ctx context.Context, cat *catalog.Catalog, kind string, visit func(e catalog.Entry, r storage.Reader, before int64) error) error {
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

func countRows(cat *catalog.Catalog, kind string) int64 {
	var n int64
	for _, e := range cat.Entries(kind) {
		n += e.Rows
	}
	return n
}

func lsiSource(cat *catalog.Catalog) *source {
	return &source{
		columns: []column{idColumn, {"k", int32Kind, 0}, {"capped", boolKind, 0}},
		rows:    countRows(cat, catalog.KindLSI),
		scan: func(ctx context.Context, visit func(int64, [][]byte) error) error {
			return eachFile(ctx, cat, catalog.KindLSI, func(e catalog.Entry, r storage.Reader, before int64) error {
				return shards.ReadLSI(r, e.Path, func(first int64, b shards.LSIBatch) error {
					return visit(before+first, [][]byte{mem.AsBytes(b.ID), mem.AsBytes(b.K), mem.AsBytes(b.Capped)})
				})
			})
		},
	}
}

// edgeSource reads the edge shards as they are; its first column is no input id.
func edgeSource(cat *catalog.Catalog) *source {
	return &source{
		columns: []column{{"src", uint32Kind, 0}, {"dst", uint32Kind, 0}},
		rows:    countRows(cat, catalog.KindEdges),
		scan: func(ctx context.Context, visit func(int64, [][]byte) error) error {
			src, dst := make([]uint32, edgeBatch), make([]uint32, edgeBatch)
			return eachFile(ctx, cat, catalog.KindEdges, func(e catalog.Entry, r storage.Reader, before int64) error {
				edges, err := shards.OpenEdges(r, e.Path)
				if err != nil {
					return err
				}
				for {
					n, err := edges.Read(src, dst)
					if n > 0 {
						if err := visit(before, [][]byte{mem.AsBytes(src[:n]), mem.AsBytes(dst[:n])}); err != nil {
							return err
						}
						before += int64(n)
					}
					if err == io.EOF {
						return nil
					}
					if err != nil {
						return err
					}
				}
			})
		},
	}
}

func nodeSource(cat *catalog.Catalog) *source {
	return &source{
		columns: []column{idColumn, {"degree", uint32Kind, 0}, {"component", uint32Kind, 0}, {"label", int32Kind, 0}, {"split", splitKind, 0}},
		rows:    countRows(cat, catalog.KindNodes),
		scan: func(ctx context.Context, visit func(int64, [][]byte) error) error {
			return eachFile(ctx, cat, catalog.KindNodes, func(e catalog.Entry, r storage.Reader, before int64) error {
				return shards.ReadNodes(r, e.Path, func(first int64, b shards.NodeBatch) error {
					return visit(before+first, [][]byte{
						mem.AsBytes(b.ID), mem.AsBytes(b.Degree), mem.AsBytes(b.Component), mem.AsBytes(b.Label), b.Split,
					})
				})
			})
		},
	}
}

// rowSource reads Arrow row files.
func rowSource(ctx context.Context, cat *catalog.Catalog, kind string) (*source, error) {
	var schema shards.RowSchema
	err := eachFile(ctx, cat, kind, func(e catalog.Entry, r storage.Reader, before int64) error {
		rr, err := shards.OpenRows(r, e.Path)
		if err != nil {
			return err
		}
		if before > 0 && rr.Schema() != schema {
			return fmt.Errorf("%s has other columns than the files before it: %w", e.Path, seal.ErrCorrupt)
		}
		schema = rr.Schema()
		return nil
	})
	if err != nil {
		return nil, err
	}
	columns := []column{idColumn}
	if schema.Label {
		columns = append(columns, column{"label", int32Kind, 0})
	}
	columns = append(columns, column{schema.Column, float32Kind, schema.Width})
	scan := func(ctx context.Context, visit func(int64, [][]byte) error) error {
		var b shards.RowBatch
		return eachFile(ctx, cat, kind, func(e catalog.Entry, r storage.Reader, before int64) error {
			rr, err := shards.OpenRows(r, e.Path)
			if err != nil {
				return err
			}
			for i := range rr.NumBatches() {
				if err := rr.ReadBatch(i, &b); err != nil {
					return err
				}
				cols := [][]byte{mem.AsBytes(b.ID)}
				if schema.Label {
					cols = append(cols, mem.AsBytes(b.Label))
				}
				if err := visit(before+b.First, append(cols, mem.AsBytes(b.Values))); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return &source{columns: columns, rows: countRows(cat, kind), scan: scan}, nil
}

// nodeIDs reads the input id of every node: 4·n bytes.
func nodeIDs(ctx context.Context, cat *catalog.Catalog, b *mem.Budget) (*mem.Array[uint32], error) {
	nodes := nodeSource(cat)
	ids, err := mem.Alloc[uint32](b, nodes.rows, "ids of nodes")
	if err != nil {
		return nil, err
	}
	err = nodes.scan(ctx, func(first int64, cols [][]byte) error {
		for i, id := range view[int64](cols[0]) {
			ids.S[first+int64(i)] = uint32(id)
		}
		return ctx.Err()
	})
	if err != nil {
		ids.Free()
		return nil, err
	}
	return ids, nil
}

// tileBytes is how much of the tiles of one interval is read at a time.
const tileBytes = 4 << 20

// tileSource puts feature rows together from their tiles.
func tileSource(ctx context.Context, cat *catalog.Catalog, b *mem.Budget) (*source, error) {
	s, err := shards.ReadSummary(ctx, cat)
	if err != nil {
		return nil, err
	}
	ids, err := nodeIDs(ctx, cat, b)
	if err != nil {
		return nil, err
	}
	panels := (s.Features + shards.TileColumns - 1) / shards.TileColumns
	rowBytes := int64(shards.TileRowBytes(s.HalfFeatures()))
	step := max(tileBytes/(rowBytes*int64(panels)), 1)
	tile := make([]byte, step*rowBytes)
	values := make([]float32, step*int64(s.Features))
	batchIDs := make([]int64, step)
	scan := func(ctx context.Context, visit func(int64, [][]byte) error) error {
		for lo := int64(0); lo < s.Nodes; lo += s.IntervalRows {
			hi := min(lo+s.IntervalRows, s.Nodes)
			err := readTiles(ctx, cat, int(lo/s.IntervalRows), panels, s.HalfFeatures(), func(files []storage.Reader) error {
				for at := lo; at < hi; at += step {
					n := int(min(step, hi-at))
					for g, f := range files {
						part := tile[:int64(n)*rowBytes]
						if _, err := f.ReadAt(part, (at-lo)*rowBytes); err != nil {
							return err
						}
						for i := range n {
							row := values[i*s.Features:][g*shards.TileColumns : min((g+1)*shards.TileColumns, s.Features)]
							shards.DecodeTile(row, part[int64(i)*rowBytes:], s.HalfFeatures())
						}
					}
					for i := range n {
						batchIDs[i] = int64(ids.S[at+int64(i)])
					}
					if err := visit(at, [][]byte{mem.AsBytes(batchIDs[:n]), mem.AsBytes(values[:n*s.Features])}); err != nil {
						return err
					}
				}
				return nil
			})
			if err != nil {
				return err
			}
		}
		return nil
	}
	return &source{columns: []column{idColumn, {"feature", float32Kind, s.Features}}, rows: s.Nodes, scan: scan, free: ids.Free}, nil
}

// readTiles opens the tiles of an interval for visit.
func readTiles(ctx context.Context, cat *catalog.Catalog, interval, panels int, half bool, visit func([]storage.Reader) error) error {
	files := make([]storage.Reader, panels)
	for g := range files {
		path := shards.TilePath("graph/features", interval, g, half)
		e, ok := cat.Lookup(path)
		if !ok {
			return fmt.Errorf("%s is missing; partition again into another run directory: %w", path, seal.ErrCorrupt)
		}
		f, err := cat.Open(ctx, e)
		if err != nil {
			return err
		}
		defer f.Close()
		files[g] = f
	}
	return visit(files)
}
