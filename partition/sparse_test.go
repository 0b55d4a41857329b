package partition

import (
	"context"
	"fmt"
	"math"
	"testing"

	"pgregory.net/rapid"

	"ndls/catalog"
	"ndls/internal/storage/storagetest"
	"ndls/shards"
)

// drawSparse draws shares of edges and features to leave out, in half of the cases none.
func drawSparse(t *rapid.T, o *Options) {
	o.DropEdges = rapid.SampledFrom([]float64{0, 0, 0.3, 0.9}).Draw(t, "edges dropped")
	o.BlankFeatures = rapid.SampledFrom([]float64{0, 0, 0.4, 1}).Draw(t, "features blanked")
}

// TestSparseShares compares a graph with few edges and features with its twin, and the shares with
// what chance allows: five deviations of a binomial distribution.
func TestSparseShares(t *testing.T) {
	f := randomGraph(3000, 20_000, 20)
	unknown := *f
	unknown.info.NumNodes = -1
	full := naiveRun(f, Options{}).summary
	other := map[string]bool{}
	for _, seed := range []uint64{1, 2} {
		for _, share := range []float64{0.2, 0.75} {
			o := Options{Features: true, Split: "random:100,200", DropEdges: share, BlankFeatures: share, Seed: seed}
			want := naiveRun(f, o)
			for _, c := range []struct {
				name    string
				f       *fake
				free    int64
				threads int
			}{
				{"plenty", f, 64 << 20, 2},
				{"one thread, little memory", f.shuffled(1), 1 << 20, 1},
				{"unknown number of nodes", &unknown, 64 << 20, 3},
			} {
				t.Run(fmt.Sprintf("seed %d, %v, %s", seed, share, c.name), func(t *testing.T) {
					o := o
					o.Budget, o.Threads, o.Scratch = budget(t, c.free), c.threads, scratchFolder(t)
					cat := openCatalog(t, storagetest.NewMem())
					got, err := Run(context.Background(), c.f, cat, o)
					must(t, err)
					checkCommitted(t, cat, got, want)
					other[fmt.Sprint(readEdges(t, cat))] = true
				})
			}
			s := want.summary
			withinChance(t, "dropped edges", s.Dropped, full.Edges, share)
			withinChance(t, "blanked nodes", s.Blanked, s.Nodes-s.Splits["train"], share)
			if s.Edges+s.Dropped != full.Edges || s.Nodes != full.Nodes {
				t.Errorf("%d edges and %d dropped of %d, %d nodes of %d", s.Edges, s.Dropped, full.Edges, s.Nodes, full.Nodes)
			}
		}
	}
	if len(other) != 4 {
		t.Errorf("%d different graphs of two seeds and two shares", len(other))
	}
}

func withinChance(t *testing.T, what string, n, of int64, share float64) {
	t.Helper()
	if mean := share * float64(of); math.Abs(float64(n)-mean) > 5*math.Sqrt(mean*(1-share)) {
		t.Errorf("%s: %d of %d, and a share of %v was asked for", what, n, of, share)
	}
}

// TestSparseDirections drops both directions of an edge or none.
func TestSparseDirections(t *testing.T) {
	f := randomGraph(300, 3000, 0)
	f.info.Directed = true
	cat := openCatalog(t, storagetest.NewMem())
	s, err := Run(context.Background(), f, cat, Options{Budget: budget(t, 24<<20), Scratch: scratchFolder(t), DropEdges: 0.5, Seed: 3})
	must(t, err)
	there := map[[2]uint32]bool{}
	for _, e := range f.edges {
		if e.U != e.V {
			there[[2]uint32{e.U, e.V}] = true
		}
	}
	if int64(len(there)) != s.Edges+s.Dropped {
		t.Fatalf("%d edges and %d dropped, want %d together", s.Edges, s.Dropped, len(there))
	}
	ids := nodeIDs(t, cat)
	kept := map[[2]uint32]bool{}
	for _, e := range readEdges(t, cat) {
		kept[[2]uint32{ids[e[0]], ids[e[1]]}] = true
	}
	if int64(len(kept)) != s.Edges || s.Dropped == 0 {
		t.Fatalf("%d edges, the summary has %d, and %d dropped", len(kept), s.Edges, s.Dropped)
	}
	for e := range there {
		if back := [2]uint32{e[1], e[0]}; there[back] && kept[e] != kept[back] {
			t.Fatalf("of the edges %v and %v one was dropped", e, back)
		}
	}
}

// nodeIDs are the input ids by node.
func nodeIDs(t *testing.T, cat *catalog.Catalog) (ids []uint32) {
	t.Helper()
	e, _ := cat.Lookup(NodesPath)
	r, err := cat.Open(context.Background(), e)
	must(t, err)
	defer r.Close()
	must(t, shards.ReadNodes(r, e.Path, shards.Readers{}, func(_ int64, b shards.NodeBatch) error {
		for _, id := range b.ID {
			ids = append(ids, uint32(id))
		}
		return nil
	}))
	return ids
}
