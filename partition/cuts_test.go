package partition

import (
	"context"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"ndls/catalog"
	"ndls/dataset"
	"ndls/internal/extsort"
	"ndls/internal/packed"
	"ndls/internal/rng"
	"ndls/internal/storage/storagetest"
	"ndls/internal/testkit"
)

// TestCuts: files begin at strips, at blocks unless a block alone has too many edges, and at all
// intervals; no file has too many edges unless it is one strip; and keys tell all places apart.
func TestCuts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		nodes := rapid.Int64Range(1, 9*BlockRows).Draw(t, "nodes")
		interval := BlockRows * rapid.Int64Range(1, 4).Draw(t, "blocks")
		most := rapid.Int64Range(1, 2000).Draw(t, "most")
		edges := make([]int64, packed.Strips(nodes))
		seed := rapid.Uint64().Draw(t, "seed")
		for i := range edges {
			edges[i] = int64(rng.Hash(seed, uint64(i)) % (1 + 4000/uint64(1+i)))
		}
		sum := func(lo, hi int64) (n int64) {
			for _, e := range edges[lo>>packed.StripShift : packed.Strips(hi)] {
				n += e
			}
			return n
		}
		c := cutAt(nodes, interval, edges, most)
		if c[0] != 0 || c[c.files()] != nodes || !slices.IsSorted(c) {
			t.Fatalf("cuts %d", c)
		}
		for lo := int64(0); lo < nodes; lo += interval {
			if !slices.Contains(c, lo) {
				t.Fatalf("no file begins at row %d: %d", lo, c)
			}
		}
		for i := range c.files() {
			lo, hi := c[i], c[i+1]
			block := lo &^ rowMask
			switch all := sum(lo, hi); {
			case lo == hi, lo%packed.StripRows != 0:
				t.Fatalf("cuts %d", c)
			case all > most && hi-lo > packed.StripRows && sum(lo, lo+packed.StripRows) != all && sum(lo, hi-1-(hi-1)%packed.StripRows) != 0:
				t.Fatalf("file %d of rows %d to %d has %d edges of %d", i, lo, hi, all, most)
			case lo != block && sum(block, min(block+BlockRows, nodes)) <= most:
				t.Fatalf("a file begins at row %d, inside a block of few edges", lo)
			}
		}
		k := newEdgeKeys(c)
		for range 100 {
			row := uint32(rapid.Int64Range(0, nodes-1).Draw(t, "row"))
			src := uint32(rapid.Int64Range(0, nodes-1).Draw(t, "source"))
			i, found := slices.BinarySearch(c, int64(row))
			if !found {
				i--
			}
			for _, reversed := range []bool{false, true} {
				key := k.of(src, row)
				if reversed {
					key += k.reversedOffset()
				}
				if s, d := k.edge(key); s != src || d != row {
					t.Fatalf("the key of %d → %d is that of %d → %d", src, row, s, d)
				}
				if first, end := k.first(c[i], reversed), k.first(c[i+1], reversed); key < first || key >= end {
					t.Fatalf("the key of %d → %d is not in file %d", src, row, i)
				}
			}
		}
	})
}

// TestCutsAreFull: a file takes the blocks that fill it, and none behind a part of a divided block.
func TestCutsAreFull(t *testing.T) {
	edges := func(blocks ...[]int64) (all []int64) {
		for _, b := range blocks {
			all = append(all, append(b, make([]int64, packed.BlockStrips-len(b))...)...)
		}
		return all
	}
	for _, c := range []struct {
		edges []int64
		want  cuts
	}{
		{edges([]int64{3}, []int64{3, 4}), cuts{0, 2 * BlockRows}},
		{edges([]int64{3}, []int64{4, 4}), cuts{0, BlockRows, 2 * BlockRows}},
		{edges([]int64{6, 6}, nil), cuts{0, packed.StripRows, BlockRows, 2 * BlockRows}},
	} {
		if got := cutAt(2*BlockRows, 4*BlockRows, c.edges, 10); !slices.Equal(got, c.want) {
			t.Errorf("strips of %d edges: cuts %d, want %d", c.edges, got, c.want)
		}
	}
}

// TestLastKey: no key belongs to rows behind the last group, where the groups fill the keys.
func TestLastKey(t *testing.T) {
	k := &edgeKeys{shift: 62, groups: []uint16{0, 1}, base: []uint32{0, BlockRows}}
	if got := k.first(2*packed.StripRows, true); got != extsort.End {
		t.Errorf("the key behind all others is %x", got)
	}
}

// TestCutsLeaveRoomForKeys: in the largest graphs keys have no room for as many groups as there
// would be.
func TestCutsLeaveRoomForKeys(t *testing.T) {
	for _, c := range []struct {
		nodes    int64
		reversed bool
	}{{dataset.MaxID + 1, false}, {dataset.MaxID - 3*BlockRows, false}, {maxDirected, true}, {3_563_602_789, false}} {
		edges := make([]int64, packed.Strips(c.nodes))
		for i := range edges {
			edges[i] = 4e9 / int64(1+i)
		}
		cut := cutEdges(c.nodes, 16*BlockRows, edges, c.reversed)
		k := newEdgeKeys(cut)
		groups := len(k.base)
		if c.reversed {
			groups *= 2
		}
		if last := k.first(cut[cut.files()-1], c.reversed); groups > 1<<(64-k.shift) || last == ^uint64(0) {
			t.Errorf("%d nodes: %d groups, the last key is %x", c.nodes, groups, last)
		}
		t.Logf("%d nodes: %d files, %d groups", c.nodes, cut.files(), len(k.base))
	}
}

// hubs is a graph whose first block has most edges, with a component of most nodes, many
// small ones, and isolated nodes.
func hubs() *fake {
	const nodes = 2*BlockRows + 2*packed.StripRows + 4000
	const small = nodes / 8 // nodes of small components, and without edges
	f := &fake{info: dataset.Info{NumNodes: nodes}}
	s := rng.New(8)
	for range 150_000 {
		hub := uint32(s.Intn(1 + s.Intn(1+s.Intn(nodes/54))))
		f.edges = append(f.edges, dataset.Edge{U: 17 * hub, V: uint32(s.Intn(nodes - small))})
	}
	for range 20_000 { // small components
		u := uint32(nodes - small + s.Intn(small*2/3))
		f.edges = append(f.edges, dataset.Edge{U: u, V: u - u%3})
	}
	return f
}

// TestFilesOfEqualEdges cuts graphs to files by a small number of edges. One worker and several
// write the same files, and these have the edges of a graph in few files.
func TestFilesOfEqualEdges(t *testing.T) {
	testkit.NotUnderRace(t, "TestResume, TestBytesDoNotDependOnResources and TestDirectionsInIntervals start the same goroutines")
	before := fileEdges
	defer func() { fileEdges = before }()
	plain := hubs()
	directed, withWeights, unknown := *plain, *plain, *plain
	directed.info.Directed = true
	withWeights.info.Weighted, withWeights.weight = true, func(u, v uint32) float32 { return 1 + float32(rng.Hash(9, uint64(u), uint64(v))%5) }
	unknown.info.NumNodes = -1
	for name, f := range map[string]*fake{"plain": plain, "directions": &directed, "weights": &withWeights, "nodes unknown": &unknown} {
		t.Run(name, func(t *testing.T) {
			counts := []int{1, 2, 3, 5} // of workers
			if testing.Short() {
				if name != "plain" {
					t.Skip("-short: one graph, and three workers")
				}
				counts = []int{3}
			}
			option := func() Options {
				return Options{Budget: budget(t, 128<<20), Scratch: scratchFolder(t), Threads: 2, IntervalBlocks: 2}
			}
			run := func(most int64) *catalog.Catalog {
				t.Helper()
				fileEdges = most
				cat := openCatalog(t, storagetest.NewMem())
				_, err := Run(t.Context(), f, cat, option())
				must(t, err)
				return cat
			}
			few, many := run(before), run(5000)
			kinds := []string{catalog.KindHops}
			if f.info.Directed {
				kinds = append(kinds, catalog.KindReversedHops)
			}
			for _, kind := range kinds {
				a, b := readHopsOf(t, few, kind), readHopsOf(t, many, kind)
				if !slices.Equal(a, b) {
					t.Errorf("%s: %d edges, and in few files %d", kind, len(b), len(a))
				}
				if n := len(many.Entries(kind)); n < 6 || n <= 2*len(few.Entries(kind)) {
					t.Errorf("%d files of %s", n, kind)
				}
			}
			for _, workers := range counts {
				c := &sharedWorkers{
					open: func() (dataset.Dataset, error) { return f, nil }, store: storagetest.NewMem(), option: option,
					workers: workers,
				}
				must(t, c.do(context.Background()))
				if got, want := openCatalog(t, c.store).Entries(""), many.Entries(""); !slices.Equal(got, want) {
					t.Errorf("%d workers left\n%v, one process\n%v", workers, got, want)
				}
			}
		})
	}
}
