package train

import (
	"testing"

	"ndls/internal/mem"
)

// BenchmarkEpoch trains on rows of the shape of Cora's: 140 for training, 500
// for validation, 1433 values.
func BenchmarkEpoch(b *testing.B) {
	p := clouds(640, 1433, 7, 640)
	for i := range p.Splits {
		p.Splits[i] = Valid
		if i < 140 {
			p.Splits[i] = Train
		}
	}
	o := DefaultOptions()
	o.Epochs, o.Runs = b.N, 1
	r, err := FitRuns(b.Context(), p, o, Resources{Budget: benchBudget(b)})
	if err != nil {
		b.Fatal(err)
	}
	r.Free()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "epochs/s")
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
