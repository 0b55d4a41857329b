package shards

import (
	"context"
	"errors"
	"slices"
	"testing"

	"ndls/internal/mem"
	"ndls/internal/seal"
	"ndls/internal/storage"
	"ndls/internal/storage/storagetest"
)

// TestRowsIntoGivenMemory reads whole batches and parts of them, into memory that
// is as long as the rows and into memory with RowSlack, aligned and not.
func TestRowsIntoGivenMemory(t *testing.T) {
	ctx := context.Background()
	store, err := storage.NewLocal(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	budget, err := mem.NewBudget(mem.MinBudget)
	if err != nil {
		t.Fatal(err)
	}
	const rows, width = 3000, 19
	space, err := mem.Alloc[float32](budget, rows*width+RowSlack+1, "rows")
	if err != nil {
		t.Fatal(err)
	}
	defer space.Free()
	for _, schema := range []RowSchema{
		{Column: "feature", Width: width},
		{Column: "feature", Width: width, Half: true},
		{Column: "probability", Width: width, Label: true},
		HopSchema([]int{0, 5}, 9, false),
		HopSchema([]int{0, 5}, 9, true),
	} {
		file := rowFile{Schema: schema, Batches: []RowBatch{
			sampleBatch(schema, 0, 7), sampleBatch(schema, 7, rows), sampleBatch(schema, 7+rows, 1),
		}}
		w, err := store.Create(ctx, "rows.arrow")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := writeRows(w, file); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Commit(ctx); err != nil {
			t.Fatal(err)
		}
		in, err := store.Open(ctx, "rows.arrow")
		if err != nil {
			t.Fatal(err)
		}
		f, err := OpenRows(in, "rows.arrow")
		if err != nil {
			t.Fatal(err)
		}
		for name, memory := range map[string][]float32{
			"none":                  nil,
			"just enough":           space.S[: rows*width : rows*width],
			"with slack":            space.S[:rows*width+RowSlack],
			"with slack, unaligned": space.S[1:],
		} {
			for i, want := range file.Batches {
				b := RowBatch{Values: memory}
				if err := f.ReadBatch(i, &b); err != nil {
					t.Fatal(err)
				}
				if !slices.Equal(b.Values, want.Values) || !slices.Equal(b.ID, want.ID) || !slices.Equal(b.Label, want.Label) {
					t.Errorf("%+v, memory %s: batch %d holds other rows", schema, name, i)
				}
				b.Values = memory
				if err := f.ReadLists(i, &b); err != nil || !slices.Equal(b.Values, byList(schema, want.Values)) {
					t.Errorf("%+v, memory %s: batch %d holds other lists: %v", schema, name, i, err)
				}
				for _, part := range [][2]int64{{0, 1}, {0, int64(len(want.ID))}, {int64(len(want.ID)) - 1, 1}, {int64(len(want.ID)) / 2, int64(len(want.ID)) / 2}} {
					at, n := part[0], part[1]
					ids := make([]int64, n)
					if err := f.ReadIDs(i, at, ids); err != nil || !slices.Equal(ids, want.ID[at:at+n]) {
						t.Errorf("%+v: ids %d to %d of batch %d are others: %v", schema, at, at+n, i, err)
					}
					if memory == nil {
						continue
					}
					got, err := f.ReadValues(i, at, n, memory)
					if err != nil || !slices.Equal(got, want.Values[at*int64(schema.Values()):(at+n)*int64(schema.Values())]) {
						t.Errorf("%+v, memory %s: rows %d to %d of batch %d are others: %v", schema, name, at, at+n, i, err)
					}
				}
			}
		}
		if err := in.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestReadingPastTheEnd uses a reader whose footer describes more than there is.
func TestReadingPastTheEnd(t *testing.T) {
	schema := RowSchema{Column: "feature", Width: 3}
	f, err := OpenRows(storagetest.NewBytesReader(sampleRows(t, schema)), "rows")
	if err != nil {
		t.Fatal(err)
	}
	f.src = storagetest.NewBytesReader(make([]byte, 100))
	for name, err := range map[string]error{
		"ids":    f.ReadIDs(0, 0, make([]int64, 3)),
		"batch":  f.ReadBatch(0, &RowBatch{}),
		"values": second(f.ReadValues(0, 0, 2, make([]float32, 6))),
		"pages":  second(f.ReadValues(0, 0, 2, make([]float32, 6+RowSlack))),
	} {
		if !errors.Is(err, seal.ErrCorrupt) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func second[T any](_ T, err error) error { return err }
