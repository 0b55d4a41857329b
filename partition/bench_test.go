package partition

import (
	"context"
	"fmt"
	"io"
	"testing"

	"ndls/catalog"
	"ndls/dataset"
	"ndls/internal/rng"
	"ndls/internal/storage"
)

// skewed makes its edges up while they are read, so that a benchmark times the
// partitioner and not a parser.
type skewed struct {
	fake
	rows int
}

func (s *skewed) Edges(context.Context) (dataset.EdgeReader, error) {
	return &skewedEdges{left: s.rows, nodes: uint64(s.info.NumNodes)}, nil
}

type skewedEdges struct {
	left  int
	nodes uint64
}

func (r *skewedEdges) Read(batch []dataset.Edge) (int, error) {
	if r.left == 0 {
		return 0, io.EOF
	}
	n := min(r.left, len(batch))
	for i := range batch[:n] {
		h := rng.Hash(1, uint64(r.left-i))
		square := (h & 0xffffff) * (h & 0xffffff) >> 24
		batch[i] = dataset.Edge{U: uint32(square * r.nodes >> 24), V: uint32(h >> 32 * r.nodes >> 32)}
	}
	r.left -= n
	return n, nil
}

func (r *skewedEdges) Close() error { return nil }

func BenchmarkRun(b *testing.B) {
	const rows = 10_000_000
	for _, c := range []struct {
		name    string
		free    int64
		threads int
	}{
		{"memory, 1 thread", 1 << 30, 1},
		{"memory, 2 threads", 1 << 30, 2},
		{"48 MiB, 1 thread", 48 << 20, 1},
		{"48 MiB, 2 threads", 48 << 20, 2},
	} {
		b.Run(c.name, func(b *testing.B) {
			for b.Loop() {
				store, err := storage.NewLocal(b.TempDir())
				must(b, err)
				ds := &skewed{fake{info: dataset.Info{NumNodes: 1_000_000, EdgeHint: rows}}, rows}
				s, err := Run(context.Background(), ds, openCatalog(b, store), Options{Budget: budget(b, c.free), Threads: c.threads, Scratch: b.TempDir()})
				must(b, err)
				b.Log(fmt.Sprint(s.Edges, " unique edges, shards of ", openCatalog(b, store).Entries(catalog.KindEdges)[0].Bytes>>20, " MiB"))
			}
			b.ReportMetric(float64(rows)*float64(b.N)/b.Elapsed().Seconds(), "edges/s")
		})
	}
}
