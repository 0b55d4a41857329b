package train

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"ndls/catalog"
	"ndls/internal/seal"
	"ndls/internal/storage"
	"ndls/internal/storage/storagetest"
	"ndls/shards"
)

// commit writes smoothed rows as a run does: parts[i] rows in interval i, cut
// into record batches of at most 100 rows.
func commit(t testing.TB, store storage.Store, schema shards.RowSchema, values []float32, parts ...int) *catalog.Catalog {
	t.Helper()
	return commitBatches(t, store, schema, values, 100, parts...)
}

// commitBatches is commit with record batches of at most batch rows.
func commitBatches(t testing.TB, store storage.Store, schema shards.RowSchema, values []float32, batch int, parts ...int) *catalog.Catalog {
	t.Helper()
	ctx := t.Context()
	c, err := catalog.Open(ctx, store)
	if err != nil {
		t.Fatal(err)
	}
	row := 0
	for i, n := range parts {
		f, err := c.Create(ctx, catalog.Describe(catalog.KindSmoothed, fmt.Sprintf("smoothed/part-%05d.arrow", i)).In(i))
		if err != nil {
			t.Fatal(err)
		}
		w, err := shards.NewRowWriter(f, schema, nil)
		if err != nil {
			t.Fatal(err)
		}
		for end := row + n; row < end; {
			step := min(batch, end-row)
			id := make([]int64, step)
			for k := range id {
				id[k] = int64(1000 + row + k)
			}
			if err := w.Write(id, nil, values[row*schema.Width:(row+step)*schema.Width]); err != nil {
				t.Fatal(err)
			}
			row += step
		}
		if f.Rows, err = w.Close(); err != nil {
			t.Fatal(err)
		}
		if err := c.Commit(ctx, f); err != nil {
			t.Fatal(err)
		}
	}
	return c
}

func TestSmoothedRows(t *testing.T) {
	const width = 3
	values := make([]float32, 530*width)
	for i := range values {
		values[i] = float32(i) / 8 // exact in float16 up to 256
	}
	for _, c := range []struct {
		name  string
		half  bool
		parts []int
	}{
		{"one file", false, []int{530}},
		{"several files", false, []int{230, 100, 1, 199}},
		{"intervals without rows", false, []int{0, 230, 0, 0, 300, 0}},
		{"float16", true, []int{230, 300}},
	} {
		t.Run(c.name, func(t *testing.T) {
			schema := shards.RowSchema{Column: "feature", Width: width, Half: c.half}
			cat := commit(t, storagetest.NewMem(), schema, values, c.parts...)
			s, err := OpenRows(t.Context(), cat, catalog.KindSmoothed)
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			if s.NumRows() != 530 || s.Width() != width {
				t.Fatalf("%d rows of %d values", s.NumRows(), s.Width())
			}
			row := int64(0)
			for ids, err := range s.IDs() {
				for _, id := range ids {
					if err != nil || id != 1000+row {
						t.Fatalf("row %d has id %d: %v", row, id, err)
					}
					row++
				}
			}
			if row != 530 {
				t.Errorf("%d ids", row)
			}
			row = 0
			for i, p := range s.Parts() {
				if p != (Part{int32(i), row, int64(c.parts[i])}) {
					t.Errorf("part %d is %+v, from row %d on", i, p, row)
				}
				row += p.Rows
			}
			var batch shards.RowBatch
			row = 0
			for i := range s.NumChunks() {
				first, rows := s.Chunk(i)
				if err := s.ReadChunk(i, &batch); err != nil {
					t.Fatal(err)
				}
				if first != row || batch.First != row || int64(len(batch.ID)) != rows {
					t.Fatalf("chunk %d: rows %d + %d, read %d + %d, want %d", i, first, rows, batch.First, len(batch.ID), row)
				}
				want := values[row*width : (row+rows)*width]
				if batch.ID[0] != 1000+row || !sameBits(batch.Values, want) {
					t.Fatalf("chunk %d holds other rows", i)
				}
				last, err := s.ReadRows(i, rows-1, 1, make([]float32, width+shards.RowSlack))
				if err != nil || !sameBits(last, want[len(want)-width:]) {
					t.Fatalf("the last row of chunk %d is %v: %v", i, last, err)
				}
				row += rows
			}
			if row != 530 {
				t.Errorf("%d rows in all", row)
			}
		})
	}
}

// TestSmoothedRowsTrain is the path of a run: committed files, streamed.
func TestSmoothedRowsTrain(t *testing.T) {
	p := clouds(1500, 12, 4, 1500)
	var batch shards.RowBatch
	if err := p.Source.ReadChunk(0, &batch); err != nil {
		t.Fatal(err)
	}
	cat := commit(t, storagetest.NewMem(), shards.RowSchema{Column: "feature", Width: 12}, batch.Values, 700, 800)
	s, err := OpenRows(t.Context(), cat, catalog.KindSmoothed)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	p.Source = s
	res := Resources{Budget: testBudget(t, 32<<20), Threads: 2}
	r := mustFit(t, p, quick(), res)
	if got := accuracy(t, p, r, res, Test); got != 1 {
		t.Errorf("accuracy %v", got)
	}
}

func TestDamagedRowsAreRefused(t *testing.T) {
	ctx := context.Background()
	schema := shards.RowSchema{Column: "feature", Width: 2}
	values := make([]float32, 2*300)

	t.Run("nothing committed", func(t *testing.T) {
		if _, err := OpenRows(ctx, commit(t, storagetest.NewMem(), schema, nil), catalog.KindSmoothed); err == nil || !strings.Contains(err.Error(), "run ndls smooth first") {
			t.Error(err)
		}
	})
	t.Run("a file is gone", func(t *testing.T) {
		store := storagetest.NewMem()
		c := commit(t, store, schema, values, 150, 150)
		if err := store.Remove(ctx, "smoothed/part-00001.arrow"); err != nil {
			t.Fatal(err)
		}
		if _, err := OpenRows(ctx, c, catalog.KindSmoothed); err == nil || !strings.Contains(err.Error(), "part-00001") {
			t.Error(err)
		}
	})
	t.Run("files of two widths", func(t *testing.T) {
		store := storagetest.NewMem()
		commit(t, store, schema, values, 150)
		c, err := catalog.Open(ctx, store)
		if err != nil {
			t.Fatal(err)
		}
		f, err := c.Create(ctx, catalog.Describe(catalog.KindSmoothed, "smoothed/part-00001.arrow").In(1))
		if err != nil {
			t.Fatal(err)
		}
		w, err := shards.NewRowWriter(f, shards.RowSchema{Column: "feature", Width: 3}, nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := w.Write([]int64{7}, nil, []float32{1, 2, 3}); err != nil {
			t.Fatal(err)
		}
		if f.Rows, err = w.Close(); err != nil {
			t.Fatal(err)
		}
		if err := c.Commit(ctx, f); err != nil {
			t.Fatal(err)
		}
		if _, err := OpenRows(ctx, c, catalog.KindSmoothed); !errors.Is(err, seal.ErrCorrupt) || !strings.Contains(err.Error(), "part-00001") {
			t.Error(err)
		}
	})
	t.Run("a changed value", func(t *testing.T) {
		store := storagetest.NewMem()
		c := commit(t, store, schema, values, 150, 150)
		if err := store.FlipByte("smoothed/part-00000.arrow", 1000); err != nil {
			t.Fatal(err)
		}
		s, err := OpenRows(ctx, c, catalog.KindSmoothed)
		if err == nil {
			defer s.Close()
			p := Problem{Source: s, Labels: make([]int32, 300), Splits: make([]uint8, 300), Classes: 2}
			for i := range p.Splits {
				p.Splits[i] = Train
			}
			_, err = FitRuns(ctx, p, quick(), Resources{Budget: testBudget(t, 32<<20)})
		}
		if !errors.Is(err, seal.ErrCorrupt) || !strings.Contains(err.Error(), "part-00000") {
			t.Error(err)
		}
	})
}
