package export

import (
	"context"
	"slices"

	"github.com/apache/arrow/go/v14/arrow"
	"github.com/apache/arrow/go/v14/arrow/array"

	"ndls/catalog"
	"ndls/internal/failure"
	"ndls/internal/mem"
)

// Records visits the rows of an artifact as Arrow record batches, in the order in which
// the run directory holds them: rows by node, and edges by what is stored, both
// directions of each, as internal node numbers src and dst. A batch is valid until visit
// returns.
func Records(ctx context.Context, cat *catalog.Catalog, what string, b *mem.Budget, visit func(arrow.Record) error) error {
	if !slices.Contains(Artifacts, what) {
		return failure.Of(ErrOption, "%q is none of %v", what, Artifacts)
	}
	if err := verify(ctx, cat, what); err != nil {
		return err
	}
	src, err := open(ctx, cat, Options{What: what, Budget: b})
	if err != nil {
		return err
	}
	src.verified = true // before any row is visited
	if src.free != nil {
		defer src.free()
	}
	found := &names{}
	if what != "edges" {
		if found, err = openNames(ctx, cat, ""); err != nil {
			return err
		}
		defer found.close()
		src.columns = found.columns(src.columns)
	}
	schema := arrowSchema(src.columns)
	return src.scan(ctx, func(_ int64, cols [][]byte) error {
		rec, err := record(schema, src.columns, cols, found)
		if err != nil {
			return err
		}
		defer rec.Release()
		if err := visit(rec); err != nil {
			return err
		}
		return ctx.Err()
	})
}

// record wraps the columns of a batch.
func record(schema *arrow.Schema, columns []column, cols [][]byte, names *names) (arrow.Record, error) {
	keys, err := names.find(columns, cols)
	if err != nil {
		return nil, err
	}
	n := len(cols[0]) / columns[0].size()
	arrays := make([]arrow.Array, len(cols))
	for i, c := range columns {
		var data *array.Data
		if c.isID() {
			data = names.data(schema.Field(i).Type, keys[i])
		} else {
			data = columnData(c, schema.Field(i).Type, cols[i], n, names)
		}
		arrays[i] = array.MakeFromData(data)
		data.Release()
		defer arrays[i].Release()
	}
	return array.NewRecord(schema, arrays, int64(n)), nil
}
