package partition

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"ndls/dataset"
	"ndls/internal/storage/storagetest"
)

// gathered is a graph whose readers wait, before their first batch, until so many of them
// are open: of edges, and of features.
type gathered struct {
	*fake
	edges, features *gathering
}

// gathering lets nobody pass before all have come.
type gathering struct {
	mu      sync.Mutex
	missing int
	all     chan struct{}
}

func newGathering(n int) *gathering { return &gathering{missing: n, all: make(chan struct{})} }

func (g *gathering) wait() error {
	g.mu.Lock()
	if g.missing--; g.missing == 0 {
		close(g.all)
	}
	g.mu.Unlock()
	select {
	case <-g.all:
		return nil
	case <-time.After(30 * time.Second):
		return errors.New("the others did not come")
	}
}

func (g *gathered) Info() dataset.Info {
	info := g.fake.Info()
	info.CutsFeatures = true
	return info
}

func (g *gathered) Edges(ctx context.Context, s dataset.Share) (dataset.EdgeReader, error) {
	r, err := g.fake.Edges(ctx, s)
	return &gatheredEdges{EdgeReader: r, with: g.edges}, err
}

type gatheredEdges struct {
	dataset.EdgeReader
	with *gathering
	past bool
}

func (r *gatheredEdges) Read(batch []dataset.Edge, weights []float32) (int, error) {
	if !r.past {
		if err := r.with.wait(); err != nil {
			return 0, err
		}
		r.past = true
	}
	return r.EdgeReader.Read(batch, weights)
}

func (g *gathered) Features(ctx context.Context, s dataset.Share) (dataset.FeatureReader, error) {
	r, err := g.fake.Features(ctx, s)
	if s.IsWhole() {
		return r, err
	}
	return &gatheredRows{FeatureReader: r, with: g.features}, err
}

type gatheredRows struct {
	dataset.FeatureReader
	with *gathering
	past bool
}

func (r *gatheredRows) Next() (dataset.FeatureRow, error) {
	if !r.past {
		if err := r.with.wait(); err != nil {
			return dataset.FeatureRow{}, err
		}
		r.past = true
	}
	return r.FeatureReader.Next()
}

// TestReadsOnAllThreads has all threads read edges at the same time, and features, and
// compares the files with those of one thread.
func TestReadsOnAllThreads(t *testing.T) {
	const threads = 4
	graph := randomGraph(3000, 20_000, 40)
	o := Options{Budget: budget(t, 512<<20), Threads: threads, Scratch: scratchFolder(t), Features: true}
	want, got := storagetest.NewMem(), storagetest.NewMem()
	one := o
	one.Threads = 1
	_, err := Run(context.Background(), graph, openCatalog(t, want), one)
	must(t, err)
	all := &gathered{graph, newGathering(threads), newGathering(threads)}
	_, err = Run(context.Background(), all, openCatalog(t, got), o)
	must(t, err)
	checkSame(t, got, want)
}

// TestFirstBadRow names the first bad row of edges and of features, on any number of threads.
func TestFirstBadRow(t *testing.T) {
	edges := randomGraph(3000, 20_000, 0)
	for _, row := range []int{12_345, 15_000, 19_999} {
		edges.edges[row] = dataset.Edge{U: 5, V: 3000}
	}
	features := randomGraph(3000, 100, 3)
	for _, row := range []int{1700, 2900} {
		features.features[row].ID = 3001
	}
	for _, threads := range []int{1, 2, 5, 16} {
		for _, c := range []struct {
			graph *fake
			want  string
		}{
			{edges, "fake: edge row 12346 is (5, 3000), and node ids end at 2999: correct the row or the number of nodes"},
			{features, "fake: feature row 1701 names node 3001, and node ids end at 2999: correct the row or the number of nodes"},
		} {
			all := &gathered{c.graph, newGathering(1), newGathering(1)}
			all.edges.missing, all.features.missing = 0, 0
			close(all.edges.all)
			close(all.features.all)
			_, err := Run(context.Background(), all, openCatalog(t, storagetest.NewMem()),
				Options{Budget: budget(t, 512<<20), Threads: threads, Scratch: scratchFolder(t), Features: true})
			if fmt.Sprint(err) != c.want || !errors.Is(err, dataset.ErrData) {
				t.Errorf("%d threads: %v, want %s", threads, err, c.want)
			}
		}
	}
}
