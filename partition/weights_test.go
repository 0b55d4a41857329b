package partition

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"ndls/catalog"
	"ndls/dataset"
	"ndls/internal/extsort"
	"ndls/internal/packed"
	"ndls/internal/rng"
	"ndls/internal/storage"
	"ndls/internal/storage/storagetest"
	"ndls/shards"
)

// weighted is a graph with weights.
func weighted(nodes, edges int) *fake {
	f := randomGraph(nodes, edges, 20)
	f.info.Weighted = true
	f.weight = func(u, v uint32) float32 {
		return float32(math.Exp(4*rng.Float64(rng.Hash(9, uint64(u), uint64(v))) - 2))
	}
	return f
}

// TestWeights: the files do not depend on budget, threads and the order of the input. The edges
// equal those of the graph without weights. Each has its weight, in shard and hop stream, in both
// directions, and strengths are their sums.
func TestWeights(t *testing.T) {
	f := weighted(3000, 60_000)
	unknown := *f
	unknown.info.NumNodes = -1
	var want []catalog.Entry
	for _, c := range []struct {
		name    string
		f       *fake
		free    int64
		threads int
		files   int // spilled
	}{
		{"plenty", f, 64 << 20, 2, 1},
		{"one thread", f, 64 << 20, 1, 1},
		{"edges turned, rows shuffled", f.shuffled(1), 64 << 20, 3, 1},
		{"number of nodes unknown", &unknown, 64 << 20, 2, 1},
		{"runs", f, 1 << 20, 2, 5},
		{"runs, five threads", f.shuffled(6), 1 << 20, 5, 5},
		{"merges of merges", f, 400 << 10, 2, 12},
	} {
		t.Run(c.name, func(t *testing.T) {
			store := storagetest.NewMem()
			cat := openCatalog(t, store)
			b := budget(t, c.free)
			o := Options{Budget: b, Threads: c.threads, Scratch: scratchFolder(t), Features: true}
			j, err := newJob(c.f, cat, o)
			must(t, err)
			summary, err := j.run(context.Background())
			must(t, errors.Join(err, j.close()))
			if files := j.scratch.Files(); files < c.files {
				t.Errorf("%d files spilled, at least %d expected", files, c.files)
			}
			if b.Free() != c.free {
				t.Errorf("%d bytes not given back", c.free-b.Free())
			}
			got := cat.Entries("")
			if want == nil {
				want = got
				checkWeights(t, cat, summary, c.f, naiveRun(c.f, o))
			}
			if !slices.Equal(got, want) {
				t.Errorf("committed\n%v, want\n%v", got, want)
			}
		})
	}
}

func checkWeights(t *testing.T, cat *catalog.Catalog, s shards.Summary, f *fake, want naive) {
	t.Helper()
	if !s.Weighted || s.Edges != want.summary.Edges || s.Repeated != want.summary.Repeated || s.SelfLoops != want.summary.SelfLoops {
		t.Errorf("summary %+v, want %+v", s, want.summary)
	}
	if !slices.Equal(readEdges(t, cat), want.edges) || !slices.Equal(readHops(t, cat), want.edges) {
		t.Error("other edges than without weights")
	}
	weight := func(u, v uint32) float32 {
		return f.weight(min(want.ids[u], want.ids[v]), max(want.ids[u], want.ids[v]))
	}
	strength := make([]float64, len(want.ids))
	for _, e := range cat.Entries(catalog.KindEdges) {
		file, err := cat.Open(t.Context(), e)
		must(t, err)
		r, err := shards.OpenEdges(file, e.Path)
		must(t, err)
		src, dst, weights := make([]uint32, e.Rows), make([]uint32, e.Rows), make([]float32, e.Rows)
		for at := 0; at < len(src); {
			n, err := r.ReadWeighted(src[at:], dst[at:], weights[at:])
			must(t, err)
			at += n
		}
		for i, w := range weights {
			if w != weight(src[i], dst[i]) {
				t.Fatalf("edge %d → %d has weight %v in its shard, not %v", src[i], dst[i], w, weight(src[i], dst[i]))
			}
			strength[dst[i]] += float64(w)
		}
		must(t, file.Close())
	}
	stream, err := shards.OpenHopStream(t.Context(), cat)
	must(t, err)
	defer stream.Close()
	for strip := range stream.Strips() {
		frames, err := stream.Open(t.Context(), strip, 0, uint32(stream.NumNodes()))
		must(t, err)
		for frame, err := frames.Next(); err == nil; frame, err = frames.Next() {
			at := 0
			frame.Visit(func(src, row uint32) {
				dst := uint32(strip)*packed.StripRows + row
				if w := frame.Weight(at); w != weight(src, dst) {
					t.Fatalf("edge %d → %d has weight %v in its hop stream, not %v", src, dst, w, weight(src, dst))
				}
				at++
			})
		}
		must(t, frames.Close())
	}
	e, _ := cat.Lookup(NodesPath)
	file, err := cat.Open(t.Context(), e)
	must(t, err)
	must(t, shards.ReadNodes(file, e.Path, shards.Readers{}, func(first int64, b shards.NodeBatch) error {
		for i, got := range b.Strength {
			node := first + int64(i)
			if b.Degree[i] != want.degree[node] || math.Abs(got-strength[node]) > 1e-12*strength[node] {
				t.Fatalf("node %d has strength %v, the sum of its weights is %v", node, got, strength[node])
			}
		}
		if len(b.Strength) != len(b.ID) {
			t.Fatalf("%d strengths of %d nodes", len(b.Strength), len(b.ID))
		}
		return nil
	}))
	must(t, file.Close())

	// A stream that is made from its shard has the same bytes.
	hops := cat.Entries(catalog.KindHops)
	must(t, cat.Remove(t.Context(), func(e catalog.Entry) bool { return e.Kind == catalog.KindHops }))
	must(t, EnsureHops(t.Context(), cat))
	if got := cat.Entries(catalog.KindHops); len(got) != len(hops) || got[0].Checksum != hops[0].Checksum {
		t.Errorf("hop streams %v, made again %v", hops, got)
	}
}

// TestWeightedResume fails at each operation of the store and goes on: the same files.
func TestWeightedResume(t *testing.T) {
	f := weighted(200, 600)
	f.info.NumNodes = -1
	scratch := scratchFolder(t)
	try := func(s storage.Store) error {
		cat, err := catalog.Open(t.Context(), s)
		if err != nil {
			return err
		}
		_, err = Run(t.Context(), f, cat, Options{Budget: budget(t, 48<<20), Scratch: scratch, Features: true, Threads: 2})
		return err
	}
	whole := storagetest.NewMem()
	counted := storagetest.NewFaulty(whole, 0)
	must(t, try(counted))
	want := openCatalog(t, whole).Entries("")
	for failAt := int64(1); failAt <= counted.Ops(); failAt += 3 {
		store := storagetest.NewMem()
		if err := try(storagetest.NewFaulty(store, failAt)); !errors.Is(err, storage.ErrDisk) {
			t.Errorf("operation %d failed, and the run said: %v", failAt, err)
		}
		must(t, try(store))
		if !slices.Equal(openCatalog(t, store).Entries(""), want) {
			t.Errorf("after operation %d failed, other files", failAt)
		}
	}
}

// TestRepeatedWeights: rows that repeat an edge, in either direction, have to agree, or are
// added up where the user asks for that.
func TestRepeatedWeights(t *testing.T) {
	const header = "src,dst,w\n"
	for _, c := range []struct {
		name, rows, more string
		want             map[string]float32
		bad              string // in the error
	}{
		{"each once", "a,b,2\nc,b,0.5\n", "", map[string]float32{"a b": 2, "b c": 0.5}, ""},
		{"both directions", "a,b,2\nb,a,2\nc,b,0.5\nb,c,0.5\n", "", map[string]float32{"a b": 2, "b c": 0.5}, ""},
		{"repeated", "a,b,2\na,b,2\nb,c,1\n", "", map[string]float32{"a b": 2, "b c": 1}, ""},
		{"two weights", "a,b,2\nb,c,1\na,b,3\n", "", nil, `the edge between nodes "a" and "b": of its 2 rows, in either direction, one has weight 2 and another one 3`},
		{"directions differ", "a,b,2\nb,a,2.5\n", "", nil, "repeated=sum"},
		{"sum", "a,b,2\nb,a,2.5\nb,c,1\na,b,1\n", "&repeated=sum", map[string]float32{"a b": 5.5, "b c": 1}, ""},
		{"self-loops do not count", "a,a,7\na,b,1\n", "", map[string]float32{"a b": 1}, ""},
		{"sum too large", "a,b,3e38\na,b,3e38\n", "&repeated=sum", nil, "add up to more than 3.4e38"},
		{"strength too large", "a,b,3e38\na,c,3e38\n", "", nil, "of one node add up to more than 3.4e38"},
	} {
		t.Run(c.name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "edges.csv")
			must(t, os.WriteFile(file, []byte(header+c.rows), 0o644))
			uri := "table:" + file + "?weight=w" + c.more
			ds := openTables(t, uri)
			cat := openCatalog(t, storagetest.NewMem())
			_, err := Run(t.Context(), ds, cat, Options{Budget: budget(t, 32<<20), Scratch: scratchFolder(t)})
			pieces := storagetest.NewMem()
			cluster := &sharedWorkers{
				open: func() (dataset.Dataset, error) { return dataset.Open(t.Context(), uri, dataset.Options{}) }, next: NextNumbered, store: pieces, most: 4, draw: randomDraw(t),
			}
			cluster.option = func() Options { return Options{Budget: budget(t, 32<<20), Scratch: scratchFolder(t)} }
			piecesErr := cluster.do(t.Context())
			if c.want == nil {
				for _, err := range []error{err, piecesErr} {
					if !errors.Is(err, dataset.ErrData) || !strings.Contains(err.Error(), c.bad) {
						t.Errorf("error %v, not %q", err, c.bad)
					}
				}
				return
			}
			must(t, piecesErr)
			must(t, err)
			if got := namedWeights(t, cat); fmt.Sprint(got) != fmt.Sprint(c.want) {
				t.Errorf("weights %v, not %v", got, c.want)
			}
			checkSame(t, pieces, cat.Store())
		})
	}
}

// TestUnited compares pairs that are united batch by batch on several threads with those of all
// rows at once: pairs that end with a batch, and pairs that fill several.
func TestUnited(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		j := &job{}
		j.info.Weighted, j.info.AddRepeated = true, true
		j.o.Threads = rapid.IntRange(1, 5).Draw(t, "threads")
		var rows, want []extsort.Record
		for u := range rapid.IntRange(0, 6).Draw(t, "pairs") {
			n := rapid.SampledFrom([]int{1, 2, 5, unitedRows - 1, unitedRows, 2*unitedRows + 1}).Draw(t, "rows")
			pair := pairRows[extsort.Record]{}
			for i := range n {
				row := extsort.Record{Key: pairKey(uint32(u), uint32(u+1)), Value: float32(i) + 0.1, Repeated: uint32(i % 3)}
				pair.add([]extsort.Record{row})
				rows = append(rows, row)
			}
			one, _ := pair.unite(true)
			want = append(want, one)
		}
		size := rapid.IntRange(1, 3*unitedRows).Draw(t, "batch")
		var got []extsort.Record
		must(t, united(context.Background(), j, func(visit func([]extsort.Record) error) error {
			for part := range slices.Chunk(slices.Clone(rows), size) {
				if err := visit(part); err != nil {
					return err
				}
				clear(part) // batches may be overwritten once they were visited
			}
			return nil
		})(func(pairs []extsort.Record) error {
			got = append(got, pairs...)
			clear(pairs)
			return nil
		}))
		if !slices.Equal(got, want) {
			t.Fatalf("%v, want %v", got, want)
		}
	})
}

// TestUnitedAhead: rows are united while the pairs before them are used.
func TestUnitedAhead(t *testing.T) {
	const parts = 8
	j := &job{}
	j.info.Weighted, j.o.Threads = true, 2
	taken := make(chan struct{}, parts)
	rows := make([]extsort.Record, parts*unitedRows)
	for i := range rows {
		rows[i] = extsort.Record{Key: pairKey(uint32(i), uint32(i+1)), Value: 1}
	}
	pairs, took := 0, 0
	must(t, united(t.Context(), j, func(visit func([]extsort.Record) error) error {
		for part := range slices.Chunk(rows, unitedRows) {
			if err := visit(part); err != nil {
				return err
			}
			taken <- struct{}{}
		}
		return nil
	})(func(part []extsort.Record) error {
		pairs += len(part)
		for want := min(parts, (pairs+unitedRows-1)/unitedRows+1); took < want; took++ {
			select {
			case <-taken:
			case <-time.After(10 * time.Second):
				return fmt.Errorf("%d parts of the rows are taken while %d pairs are used", took, pairs)
			}
		}
		return nil
	}))
	if pairs != len(rows) {
		t.Errorf("%d pairs of %d", pairs, len(rows))
	}
}

// TestByDegree numbers ranks by degree with one table and with several: the same places.
func TestByDegree(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		degrees := rapid.SliceOfN(rapid.Uint32Range(0, 40), 1, 300).Draw(t, "degrees")
		want := make([]uint32, len(degrees))
		for rank, d := range degrees {
			for other, e := range degrees {
				if e > d || e == d && other < rank {
					want[rank]++
				}
			}
		}
		if got := largestOf(degrees, 3); got != slices.Max(degrees) {
			t.Fatalf("the largest degree is %d, not %d", slices.Max(degrees), got)
		}
		tables := make([][]uint32, rapid.IntRange(1, 6).Draw(t, "tables"))
		for i := range tables {
			tables[i] = make([]uint32, slices.Max(degrees)+1)
		}
		got := make([]uint32, len(degrees))
		byDegree(degrees, got, tables)
		if !slices.Equal(got, want) {
			t.Fatalf("places %v, want %v", got, want)
		}
		for d, end := range tables[len(tables)-1] {
			if n := uint32(len(degrees)) - fewer(degrees, uint32(d)); end != n {
				t.Fatalf("nodes of degree %d end before %d, not %d", d, n, end)
			}
		}
	})
}

// fewer counts the degrees below another one.
func fewer(degrees []uint32, d uint32) (n uint32) {
	for _, x := range degrees {
		if x < d {
			n++
		}
	}
	return n
}

// TestWeightsOfSelfLoops: workers that share the steps keep self-loops where these may be all
// that names a node. Their weights need not agree.
func TestWeightsOfSelfLoops(t *testing.T) {
	file := filepath.Join(t.TempDir(), "edges.csv")
	must(t, os.WriteFile(file, []byte("src,dst,w\n5,5,1\n1,2,4\n5,5,2\n2,1,4\n1,1,9\n"), 0o644))
	uri := "edges:" + file + "?weight=w"
	option := func() Options { return Options{Budget: budget(t, 32<<20), Scratch: scratchFolder(t)} }
	whole := openCatalog(t, storagetest.NewMem())
	s, err := Run(t.Context(), openTables(t, uri), whole, option())
	must(t, err)
	if s.Nodes != 3 || s.Edges != 1 || s.SelfLoops != 3 || s.Repeated != 1 {
		t.Errorf("%+v", s)
	}
	cluster := &sharedWorkers{
		open:  func() (dataset.Dataset, error) { return dataset.Open(t.Context(), uri, dataset.Options{}) },
		store: storagetest.NewMem(), most: 4, draw: randomDraw(t), option: option,
	}
	must(t, cluster.do(t.Context()))
	checkSame(t, cluster.store, whole.Store())
}

// TestDescribeRefusesWeights: what an import refuses the description of a graph refuses.
func TestDescribeRefusesWeights(t *testing.T) {
	file := filepath.Join(t.TempDir(), "edges.csv")
	must(t, os.WriteFile(file, []byte("src,dst,w\n1,2,4\n2,1,5\n"), 0o644))
	for more, want := range map[string]bool{"": false, "&repeated=sum": true} {
		s, err := Inspect(t.Context(), openTables(t, "edges:"+file+"?weight=w"+more), openCatalog(t, storagetest.NewMem()),
			Options{Budget: budget(t, 32<<20), Scratch: scratchFolder(t)})
		if want && (err != nil || s.Edges != 1) || !want && !errors.Is(err, dataset.ErrData) {
			t.Errorf("%q: %+v, %v", more, s, err)
		}
	}
}

// namedWeights are the weights of edges between nodes with ids of one letter, a to z.
func namedWeights(t *testing.T, cat *catalog.Catalog) map[string]float32 {
	t.Helper()
	e, _ := cat.Lookup(NodesPath)
	file, err := cat.Open(t.Context(), e)
	must(t, err)
	var names []string
	must(t, shards.ReadNodes(file, e.Path, shards.Readers{}, func(_ int64, b shards.NodeBatch) error {
		for _, id := range b.ID {
			names = append(names, string(rune('a'+id)))
		}
		return nil
	}))
	must(t, file.Close())
	weights := map[string]float32{}
	e = cat.Entries(catalog.KindEdges)[0]
	file, err = cat.Open(t.Context(), e)
	must(t, err)
	r, err := shards.OpenEdges(file, e.Path)
	must(t, err)
	src, dst, w := make([]uint32, 20), make([]uint32, 20), make([]float32, 20)
	n, err := r.ReadWeighted(src, dst, w)
	must(t, err)
	for i := range n {
		u, v := names[src[i]], names[dst[i]]
		weights[min(u, v)+" "+max(u, v)] = w[i]
	}
	must(t, file.Close())
	return weights
}
