package partition

import (
	"context"
	"fmt"
	"io"
	"slices"
	"testing"

	"ndls/catalog"
	"ndls/dataset"
	"ndls/internal/extsort"
	"ndls/internal/rng"
	"ndls/internal/storage"
)

// skewed makes its edges up while they are read, so that a benchmark times the
// partitioner and not a parser.
type skewed struct {
	fake
	rows int
}

func (s *skewed) Edges(_ context.Context, of dataset.Share) (dataset.EdgeReader, error) {
	return &skewedEdges{next: s.rows * of.First / of.Of, end: s.rows * of.Last / of.Of, nodes: uint64(s.info.NumNodes)}, nil
}

type skewedEdges struct {
	next, end int
	nodes     uint64
}

// Read implements dataset.EdgeReader. Rows of an edge have one weight.
func (r *skewedEdges) Read(batch []dataset.Edge, weights []float32) (int, error) {
	n := min(r.end-r.next, len(batch))
	if n == 0 {
		return 0, io.EOF
	}
	for i := range batch[:n] {
		h := rng.Hash(1, uint64(r.next+i))
		square := (h & 0xffffff) * (h & 0xffffff) >> 24
		batch[i] = dataset.Edge{U: uint32(square * r.nodes >> 24), V: uint32(h >> 32 * r.nodes >> 32)}
	}
	r.next += n
	for i := range weights[:min(n, len(weights))] {
		e := batch[i]
		weights[i] = 1 + float32(rng.Hash(2, uint64(min(e.U, e.V)), uint64(max(e.U, e.V)))%100)
	}
	return n, nil
}

func (r *skewedEdges) Close() error { return nil }

func BenchmarkRun(b *testing.B) {
	const rows = 10_000_000
	for _, c := range []struct {
		name     string
		free     int64
		threads  int
		weighted bool
	}{
		{"memory, 1 thread", 1 << 30, 1, false},
		{"memory, 2 threads", 1 << 30, 2, false},
		{"48 MiB, 1 thread", 48 << 20, 1, false},
		{"48 MiB, 2 threads", 48 << 20, 2, false},
		{"weights, memory, 2 threads", 1 << 30, 2, true},
		{"weights, 96 MiB, 2 threads", 96 << 20, 2, true},
	} {
		b.Run(c.name, func(b *testing.B) {
			for b.Loop() {
				store, err := storage.NewLocal(b.TempDir())
				must(b, err)
				ds := &skewed{fake{info: dataset.Info{NumNodes: 1_000_000, EdgeHint: rows, Weighted: c.weighted}}, rows}
				s, err := Run(context.Background(), ds, openCatalog(b, store), Options{Budget: budget(b, c.free), Threads: c.threads, Scratch: b.TempDir()})
				must(b, err)
				if s.Edges == 0 {
					b.Fatal("no edges")
				}
				b.Log(fmt.Sprint(s.Edges, " unique edges, shards of ", openCatalog(b, store).Entries(catalog.KindEdges)[0].Bytes>>20, " MiB"))
			}
			b.ReportMetric(float64(rows)*float64(b.N)/b.Elapsed().Seconds(), "edges/s")
		})
	}
}

// BenchmarkUnited unites the rows of pairs with weights, of which each has two.
func BenchmarkUnited(b *testing.B) {
	rows := make([]extsort.Record, 1<<20)
	for i := range rows {
		rows[i] = extsort.Record{Key: pairKey(uint32(i/2), uint32(i/2+1)), Value: 1}
	}
	for _, threads := range []int{1, 2} {
		b.Run(fmt.Sprintf("threads=%d", threads), func(b *testing.B) {
			j := &job{}
			j.info.Weighted, j.o.Threads = true, threads
			for b.Loop() {
				err := united(b.Context(), j, func(visit func([]extsort.Record) error) error {
					for part := range slices.Chunk(rows, extsort.BatchKeys) {
						if err := visit(part); err != nil {
							return err
						}
					}
					return nil
				})(func([]extsort.Record) error { return nil })
				must(b, err)
			}
			b.ReportMetric(float64(len(rows))*float64(b.N)/b.Elapsed().Seconds()/1e6, "Mrows/s")
		})
	}
}

// BenchmarkByDegree orders nodes by degrees of which few are large.
func BenchmarkByDegree(b *testing.B) {
	degrees, to := make([]uint32, 1<<23), make([]uint32, 1<<23)
	for i := range degrees {
		h := rng.Hash(1, uint64(i))
		degrees[i] = uint32(h % (1 + h>>32%(1+h>>48%5000)))
	}
	for _, threads := range []int{1, 2} {
		b.Run(fmt.Sprintf("threads=%d", threads), func(b *testing.B) {
			tables := make([][]uint32, threads)
			for b.Loop() {
				for i := range tables {
					tables[i] = make([]uint32, largestOf(degrees, threads)+1)
				}
				byDegree(degrees, to, tables)
			}
			b.ReportMetric(float64(len(degrees))*float64(b.N)/b.Elapsed().Seconds()/1e6, "Mnodes/s")
		})
	}
}
