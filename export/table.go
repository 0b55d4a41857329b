package export

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"

	"ndls/catalog"
	"ndls/internal/extsort"
	"ndls/internal/mem"
	"ndls/internal/progress"
	"ndls/internal/seal"
	"ndls/shards"
)

// kind is the type of a column's values.
type kind uint8

const (
	int64Kind kind = iota
	int32Kind
	uint32Kind
	boolKind
	splitKind
	// classKind is a class that is shown by its name, and no text for a node without one.
	classKind
	float32Kind
	// Numbers of 64 bits that stand for input ids of a type.
	int64IDKind
	uint64IDKind
	textIDKind
)

// splitNames spells the values of a split column.
var splitNames = []string{"", "train", "valid", "test"}

// column describes a column; list is the length of its lists, 0 for a scalar.
type column struct {
	name string
	kind kind
	list int
}

// size is the number of bytes of a row.
func (c column) size() int {
	bytes := []int{
		int64Kind: 8, int32Kind: 4, uint32Kind: 4, boolKind: 1, splitKind: 1, classKind: 4, float32Kind: 4, int64IDKind: 8,
		uint64IDKind: 8, textIDKind: 8,
	}[c.kind]
	return bytes * max(c.list, 1)
}

func rowSize(columns []column) int {
	n := 0
	for _, c := range columns {
		n += c.size()
	}
	return n
}

// source is an artifact in order of node. scan visits all rows in order, each
// batch as one byte slice a column; column 0 is the input id.
type source struct {
	columns []column
	rows    int64
	scan    func(ctx context.Context, visit func(first int64, cols [][]byte) error) error
	// ids visits the input ids of all rows in order, which it does not check. It is nil where nothing
	// but a scan has them.
	ids func(ctx context.Context, visit func(first int64, ids []int64) error) error
	// verified says that the files were compared with their checksums.
	verified bool
	// memory is the memory of a scan, charged to the budget.
	memory int64
	free   func()
}

// eachID visits the input ids of all rows in order.
func (s *source) eachID(ctx context.Context, visit func(first int64, ids []int64) error) error {
	if s.ids != nil {
		return s.ids(ctx, visit)
	}
	return s.scan(ctx, func(first int64, cols [][]byte) error { return visit(first, view[int64](cols[0])) })
}

func exportTable(ctx context.Context, cat *catalog.Catalog, o Options, out io.Writer) (int64, error) {
	src, err := open(ctx, cat, o)
	if err != nil {
		return 0, err
	}
	if src.free != nil {
		defer src.free()
	}
	place, err := places(ctx, src, o.Budget)
	if errors.Is(err, seal.ErrCorrupt) {
		// The checksums say which file it is.
		err = cmp.Or(verify(ctx, cat, o.What), err)
	}
	if err != nil {
		return 0, err
	}
	defer place.Free()
	names, err := openNames(ctx, cat, shards.IDsPath)
	if err != nil {
		return 0, err
	}
	defer names.close()
	if o.TrueLabels {
		s, err := shards.ReadSummary(ctx, cat)
		if err != nil {
			return 0, err
		}
		names.classes = s.Classes
	}
	src.columns = names.columns(src.columns)
	first, end := o.Part.Range(src.rows)
	w, err := newWriter(o.Format, out, src.columns, end-first, names)
	if err != nil {
		return 0, err
	}
	if err := ordered(ctx, src, place.S, first, end, o.Budget, w); err != nil {
		return 0, err
	}
	return end - first, w.close()
}

// places gives for every row its rank by id.
func places(ctx context.Context, src *source, b *mem.Budget) (*mem.Array[uint32], error) {
	keys, err := mem.Alloc[uint64](b, src.rows, "ids to sort")
	if err != nil {
		return nil, err
	}
	defer keys.Free()
	m := progress.Start(ctx, "read ids", src.rows, "rows")
	defer m.Done()
	var seen int64
	err = src.eachID(ctx, func(first int64, ids []int64) error {
		if first != seen || first+int64(len(ids)) > src.rows {
			return fmt.Errorf("rows %d to %d where row %d of %d was expected: %w", first, first+int64(len(ids)), seen, src.rows, seal.ErrCorrupt)
		}
		for i, id := range ids {
			if id < 0 || id >= 1<<32 {
				return fmt.Errorf("row %d has the impossible id %d: %w", first+int64(i), id, seal.ErrCorrupt)
			}
			keys.S[first+int64(i)] = uint64(id)<<32 | uint64(first+int64(i))
		}
		seen += int64(len(ids))
		m.Add(int64(len(ids)))
		return ctx.Err()
	})
	if err != nil {
		return nil, err
	}
	if seen != src.rows {
		return nil, fmt.Errorf("%d rows, the catalogue says %d: %w", seen, src.rows, seal.ErrCorrupt)
	}
	extsort.SortKeys(keys.S, runtime.GOMAXPROCS(0))
	place, err := mem.Alloc[uint32](b, src.rows, "places of rows")
	if err != nil {
		return nil, err
	}
	for i, key := range keys.S {
		if i > 0 && key>>32 == keys.S[i-1]>>32 {
			place.Free()
			return nil, fmt.Errorf("id %d has two rows: %w", key>>32, seal.ErrCorrupt)
		}
		place.S[uint32(key)] = uint32(i)
	}
	return place, nil
}

// ordered writes the rows of src whose places are from first to below end, by their place: one range of
// places after the other, each with a scan of its own.
func ordered(ctx context.Context, src *source, place []uint32, first, end int64, b *mem.Budget, w writer) error {
	size := int64(rowSize(src.columns))
	// Every column's array is rounded up to pages.
	room := (b.Free() - src.memory - 8192*int64(len(src.columns))) / size
	span := max(min(room, end-first), 1)
	arrays := make([]*mem.Array[byte], len(src.columns))
	for i, c := range src.columns {
		a, err := mem.Alloc[byte](b, span*int64(c.size()), "rows in order")
		if err != nil {
			return err
		}
		defer a.Free()
		arrays[i] = a
	}
	m := progress.Start(ctx, "export", end-first, "rows")
	defer m.Done()
	for lo := first; lo < end; lo += span {
		hi := min(lo+span, end)
		err := src.scan(ctx, func(first int64, cols [][]byte) error {
			n := len(cols[0]) / 8
			for i := range n {
				at := int64(place[first+int64(i)])
				if at < lo || at >= hi {
					continue
				}
				for c := range cols {
					s := src.columns[c].size()
					copy(arrays[c].S[int(at-lo)*s:], cols[c][i*s:(i+1)*s])
				}
			}
			return ctx.Err()
		})
		if err != nil {
			return err
		}
		cols := make([][]byte, len(arrays))
		for i, a := range arrays {
			cols[i] = a.S[:int(hi-lo)*src.columns[i].size()]
		}
		if err := w.write(cols, int(hi-lo)); err != nil {
			return err
		}
		m.Add(hi - lo)
	}
	return nil
}
