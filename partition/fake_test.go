package partition

import (
	"context"
	"io"
	"os"
	"testing"

	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"ndls/dataset"
	"ndls/internal/mem"
	"ndls/internal/testkit"
)

func TestMain(m *testing.M) {
	testkit.GrowHeap()
	goleak.VerifyTestMain(m)
}

type labelRow struct {
	id    uint32
	label int32
}

type splitRow struct {
	id    uint32
	split dataset.Split
}

// fake is a dataset in memory.
type fake struct {
	info     dataset.Info
	edges    []dataset.Edge
	features []dataset.FeatureRow
	labels   []labelRow
	splits   []splitRow
	onEdges  func(read int) error // called before every batch
	idRows   bool                 // the features of every node are its id alone
	cuts     bool                 // feature rows can be read from the middle
	weight   func(u, v uint32) float32
}

func (f *fake) Info() dataset.Info {
	info := f.info
	info.HasLabels, info.HasSplits, info.CutsFeatures = f.labels != nil, f.splits != nil, f.cuts
	if info.Name == "" {
		info.Name = "fake"
	}
	return info
}

func (f *fake) Edges(_ context.Context, s dataset.Share) (dataset.EdgeReader, error) {
	return &fakeEdges{f: f, at: len(f.edges) * s.First / s.Of, end: len(f.edges) * s.Last / s.Of}, nil
}

func (f *fake) Features(_ context.Context, s dataset.Share) (dataset.FeatureReader, error) {
	if n := int(f.info.NumNodes); f.idRows {
		return &idRows{left: int64(n - n*s.First/s.Of), until: int64(n - n*s.Last/s.Of)}, nil
	}
	n := len(f.features)
	return &fakeRows[dataset.FeatureRow]{rows: f.features[n*s.First/s.Of : n*s.Last/s.Of]}, nil
}

func (f *fake) Labels(context.Context) (dataset.LabelReader, error) {
	return fakeLabels{&fakeRows[labelRow]{rows: f.labels}}, nil
}

func (f *fake) Splits(_ context.Context, number int) (dataset.SplitReader, error) {
	if number > 0 {
		return nil, badData("has one published split")
	}
	return fakeSplits{&fakeRows[splitRow]{rows: f.splits}}, nil
}

func (f *fake) Close() error { return nil }

type fakeEdges struct {
	f       *fake
	at, end int
}

func (r *fakeEdges) Read(batch []dataset.Edge, weights []float32) (int, error) {
	if r.f.onEdges != nil {
		if err := r.f.onEdges(r.at); err != nil {
			return 0, err
		}
	}
	n := copy(batch, r.f.edges[r.at:r.end])
	if n == 0 {
		return 0, io.EOF
	}
	r.at += n
	for i := range weights[:min(n, len(weights))] {
		weights[i] = r.f.weight(min(batch[i].U, batch[i].V), max(batch[i].U, batch[i].V))
	}
	return n, nil
}

func (r *fakeEdges) Close() error { return nil }

type fakeRows[T any] struct{ rows []T }

func (r *fakeRows[T]) Next() (row T, err error) {
	if len(r.rows) == 0 {
		return row, io.EOF
	}
	row, r.rows = r.rows[0], r.rows[1:]
	return row, nil
}

func (r *fakeRows[T]) Close() error { return nil }

// idRows gives rows of one feature, the id, from the last node to the first.
type idRows struct {
	left, until int64
	row         [1]float32
}

func (r *idRows) Next() (dataset.FeatureRow, error) {
	if r.left == r.until {
		return dataset.FeatureRow{}, io.EOF
	}
	r.left--
	r.row[0] = float32(r.left)
	return dataset.FeatureRow{ID: uint32(r.left), Dense: r.row[:]}, nil
}

func (r *idRows) Close() error { return nil }

type fakeLabels struct{ *fakeRows[labelRow] }

func (r fakeLabels) Next() (uint32, int32, error) {
	row, err := r.fakeRows.Next()
	return row.id, row.label, err
}

type fakeSplits struct{ *fakeRows[splitRow] }

func (r fakeSplits) Next() (uint32, dataset.Split, error) {
	row, err := r.fakeRows.Next()
	return row.id, row.split, err
}

// budget has free bytes to give.
func budget(t rapid.TB, free int64) *mem.Budget {
	t.Helper()
	b, err := mem.NewBudget(max(mem.MinBudget, mem.Total(free)))
	if err != nil {
		t.Fatal(err)
	}
	if err := b.Reserve(b.Free()-free, "test"); err != nil {
		t.Fatal(err)
	}
	return b
}

// scratchFolder checks at the end that nothing was left in it.
func scratchFolder(t testing.TB) string {
	t.Helper()
	dir := t.TempDir()
	t.Cleanup(func() {
		left, err := os.ReadDir(dir)
		if err != nil {
			t.Error(err)
		}
		for _, e := range left {
			t.Errorf("%s was left in the scratch folder", e.Name())
		}
	})
	return dir
}
