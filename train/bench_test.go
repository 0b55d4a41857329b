package train

import (
	"io"
	"testing"

	"ndls/catalog"
	"ndls/internal/direct"
	"ndls/internal/mem"
	"ndls/internal/storage"
	"ndls/shards"
)

// BenchmarkEpoch trains on rows of the shape of Cora's: 140 for training, 500
// for validation, 1433 values. A fifth of the rows cannot be told. Epochs are validated whole, or as far as it takes.
func BenchmarkEpoch(b *testing.B) {
	p := noisy(640, 1433, 7, 0.25)
	for i := range p.Splits {
		p.Splits[i] = Valid
		if i < 140 {
			p.Splits[i] = Train
		}
	}
	o := usual()
	o.Runs, o.Patience = 1, 0
	b.Run("whole", func(b *testing.B) {
		o := o
		o.Epochs = b.N
		r, err := FitRuns(b.Context(), p, o, Resources{Budget: benchBudget(b)})
		if err != nil {
			b.Fatal(err)
		}
		r.Free()
		b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "epochs/s")
	})
	b.Run("brief", func(b *testing.B) {
		o := o
		o.Epochs = b.N
		if err := FitEach(b.Context(), p, o, []int{0}, Resources{Budget: benchBudget(b)}, func(*Model, History) error { return nil }); err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "epochs/s")
	})
}

// BenchmarkFinish takes steps with a gradient that is there, of the shape of papers100M's model, as each worker does that
// trains with others.
func BenchmarkFinish(b *testing.B) {
	f, err := newFitting(clouds(4000, 128, 172, 4000), Options{Hidden: 256, Layers: 2, LR: 0.01, Schedule: Constant, Epochs: 1, Runs: 1}, Resources{Budget: benchBudget(b)})
	if err != nil {
		b.Fatal(err)
	}
	defer f.free()
	t, err := f.begin(0, 1)
	if err != nil {
		b.Fatal(err)
	}
	defer t.free()
	for b.Loop() {
		step := t.adam.next(0.01, 0)
		t.net.finish(func(lo, hi int) { t.adam.move(t.kernel, step, t.model.params, t.sums[0], lo, hi) })
		t.net.packRest()
	}
	b.ReportMetric(b.Elapsed().Seconds()/float64(b.N)/float64(len(t.model.params))*1e9, "ns/weight")
}

func BenchmarkPredict(b *testing.B) {
	const n = 1 << 14
	values := numbers(1, 128)
	src := &table{width: 128, chunks: evenly(n, n), value: func(row int64, column int) float32 { return values[column] }}
	budget := benchBudget(b)
	models := []*Model{randomModel(b, budget, 1, 128, 256, 172)}
	b.SetBytes(n * 128 * 4)
	for b.Loop() {
		err := Predict(b.Context(), src, models, Resources{Budget: budget, Threads: 1}, func(int64, []int64, int, []float32) error { return nil })
		if err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(n*float64(b.N)/b.Elapsed().Seconds(), "rows/s")
}

func benchBudget(b *testing.B) *mem.Budget {
	b.Helper()
	budget, err := mem.NewBudget(1 << 30)
	if err != nil {
		b.Fatal(err)
	}
	return budget
}

// BenchmarkLoader reads 100000 smoothed rows of 128 values from a local file:
// decoded and checked record batch by record batch, and as plain bytes.
func BenchmarkLoader(b *testing.B) {
	const rows, width = 100_000, 128
	store, err := storage.NewLocal(b.TempDir())
	if err != nil {
		b.Fatal(err)
	}
	schema := shards.RowSchema{Column: "feature", Width: width}
	c := commitBatches(b, store, schema, numbers(1, rows*width), shards.BatchRows(width), rows)
	b.Run("batches", func(b *testing.B) {
		s, err := OpenRows(b.Context(), c, catalog.KindSmoothed)
		if err != nil {
			b.Fatal(err)
		}
		defer s.Close()
		buf, err := newChunkBuffer(benchBudget(b), s)
		if err != nil {
			b.Fatal(err)
		}
		defer buf.free()
		for b.Loop() {
			for i := range s.NumChunks() {
				if err := buf.read(s, i); err != nil {
					b.Fatal(err)
				}
			}
		}
		b.ReportMetric(rows*float64(b.N)/b.Elapsed().Seconds(), "rows/s")
	})
	b.Run("bytes", func(b *testing.B) {
		file, err := c.Open(b.Context(), c.Entries(catalog.KindSmoothed)[0])
		if err != nil {
			b.Fatal(err)
		}
		defer file.Close()
		piece := direct.AlignedBytes(16 << 20)
		for b.Loop() {
			for at := int64(0); at < file.Size(); at += int64(len(piece)) {
				if _, err := file.ReadAt(piece, at); err != nil && err != io.EOF {
					b.Fatal(err)
				}
			}
		}
		b.ReportMetric(rows*float64(b.N)/b.Elapsed().Seconds(), "rows/s")
	})
}
