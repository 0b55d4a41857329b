package partition

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"ndls/catalog"
	"ndls/dataset"
	"ndls/internal/storage/storagetest"
	"ndls/shards"
)

// TestDirections: shards and hop streams have each edge once, from where it begins to where it
// ends, and those of the reversed edges have it the other way round; the node table has how
// many edges begin at a node. Repetitions in one direction count once.
func TestDirections(t *testing.T) {
	scratch := scratchFolder(t)
	rapid.Check(t, func(t *rapid.T) {
		f := drawGraph(t)
		f.info.Directed = true
		cat := openCatalog(t, storagetest.NewMem())
		s, err := Run(context.Background(), f, cat, Options{
			Budget: budget(t, 64<<20), Scratch: scratch, Threads: rapid.IntRange(1, 3).Draw(t, "threads"),
			IntervalBlocks: rapid.IntRange(0, 3).Draw(t, "blocks"),
		})
		must(t, err)
		checkDirections(t, cat, s, f)
	})
}

// TestDirectionsInIntervals is the same for a graph of several intervals.
func TestDirectionsInIntervals(t *testing.T) {
	f := randomGraph(2*BlockRows+100, 50_000, 7)
	f.info.Directed = true
	for _, blocks := range []int{1, 2} {
		cat := openCatalog(t, storagetest.NewMem())
		s, err := Run(context.Background(), f, cat, Options{Budget: budget(t, 256<<20), Scratch: scratchFolder(t), Threads: 2, IntervalBlocks: blocks})
		must(t, err)
		if want := (2 + blocks) / blocks; len(cat.Entries(catalog.KindReversed)) != want || len(cat.Entries(catalog.KindEdges)) != want {
			t.Fatalf("%d shards of reversed edges, not %d", len(cat.Entries(catalog.KindReversed)), want)
		}
		checkDirections(t, cat, s, f)
	}
}

func checkDirections(t rapid.TB, cat *catalog.Catalog, s shards.Summary, f *fake) {
	t.Helper()
	unique := map[dataset.Edge]bool{}
	degree, out := map[uint32]uint32{}, map[uint32]uint32{}
	for _, e := range f.edges {
		if e.U != e.V && !unique[e] {
			unique[e] = true
			degree[e.U]++
			degree[e.V]++
			out[e.U]++
		}
	}
	if s.Edges != int64(len(unique)) || !s.Directed || s.InputRows != s.Edges+s.SelfLoops+s.Repeated {
		t.Fatalf("%+v, and there are %d edges", s, len(unique))
	}
	node, last := map[uint32]uint32{}, uint32(0)
	e, _ := cat.Lookup(NodesPath)
	r, err := cat.Open(context.Background(), e)
	must(t, err)
	must(t, shards.ReadNodes(r, e.Path, shards.Readers{}, func(first int64, b shards.NodeBatch) error {
		for i, id := range b.ID {
			at, id := first+int64(i), uint32(id)
			node[id] = uint32(at)
			if b.Degree[i] != degree[id] || b.OutDegree[i] != out[id] || at > 0 && b.Degree[i] > last {
				return fmt.Errorf("node %d has %d edges, and %d of them begin there; expected %d and %d", at, b.Degree[i], b.OutDegree[i], degree[id], out[id])
			}
			last = b.Degree[i]
		}
		return nil
	}))
	must(t, r.Close())
	var along, against [][2]uint32
	for e := range unique {
		along = append(along, [2]uint32{node[e.U], node[e.V]})
		against = append(against, [2]uint32{node[e.V], node[e.U]})
	}
	for _, c := range []struct {
		shards, hops string
		want         [][2]uint32
	}{{catalog.KindEdges, catalog.KindHops, along}, {catalog.KindReversed, catalog.KindReversedHops, against}} {
		slices.SortFunc(c.want, func(a, b [2]uint32) int {
			return cmp.Or(cmp.Compare(a[1]/BlockRows, b[1]/BlockRows), cmp.Compare(a[0], b[0]), cmp.Compare(a[1], b[1]))
		})
		if got := readEdgesOf(t, cat, c.shards); !slices.Equal(got, c.want) {
			t.Fatalf("%d %s in shards, %d wanted, or others", len(got), c.shards, len(c.want))
		}
		if got := readHopsOf(t, cat, c.hops); !slices.Equal(got, c.want) {
			t.Fatalf("%d edges in %s, %d wanted, or others", len(got), c.hops, len(c.want))
		}
	}
}

// TestReversedHopsAgain: hop streams of reversed edges that are missing are made again, with the
// same bytes.
func TestReversedHopsAgain(t *testing.T) {
	f := randomGraph(3000, 40_000, 7)
	f.info.Directed = true
	cat := openCatalog(t, storagetest.NewMem())
	_, err := Run(context.Background(), f, cat, Options{Budget: budget(t, 64<<20), Scratch: scratchFolder(t)})
	must(t, err)
	before := cat.Entries("")
	must(t, cat.Remove(context.Background(), func(e catalog.Entry) bool { return e.Kind == catalog.KindReversedHops }))
	must(t, EnsureHops(context.Background(), cat))
	if got := cat.Entries(""); !slices.Equal(got, before) {
		t.Errorf("there are\n%v, and there were\n%v", got, before)
	}
}

// readEdgesOf gives the edges of shards of a kind in their order.
func readEdgesOf(t rapid.TB, cat *catalog.Catalog, kind string) (edges [][2]uint32) {
	t.Helper()
	src, dst := make([]uint32, 999), make([]uint32, 999)
	for _, e := range cat.Entries(kind) {
		file, err := cat.Open(context.Background(), e)
		must(t, err)
		r, err := shards.OpenEdges(file, e.Path)
		must(t, err)
		for {
			n, err := r.Read(src, dst)
			if err == io.EOF {
				break
			}
			must(t, err)
			for i := range n {
				edges = append(edges, [2]uint32{src[i], dst[i]})
			}
		}
		must(t, file.Close())
	}
	return edges
}
