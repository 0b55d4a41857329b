package partition

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"ndls/catalog"
	"ndls/internal/seal"

	"pgregory.net/rapid"

	"ndls/dataset"
	"ndls/internal/half"
	"ndls/internal/mem"
	"ndls/internal/packed"
	"ndls/internal/rng"
	"ndls/internal/storage"
	"ndls/internal/storage/storagetest"
	"ndls/internal/testkit"
	"ndls/shards"
)

// naive is the twin of a run, built with maps.
type naive struct {
	ids               []uint32 // by node, like all that follows
	degree, component []uint32
	labels            []int32
	splits            []uint8
	features          [][]float32
	edges             [][2]uint32 // both directions, in the order of the shards
	summary           shards.Summary
}

func naiveRun(f *fake, o Options) naive {
	info := f.Info()
	s := shards.Summary{
		Name: info.Name, InputRows: int64(len(f.edges)), Classes: info.Classes, Splits: map[string]int64{},
		BlockRows: BlockRows, IntervalRows: int64(cmp.Or(o.IntervalBlocks, DefaultIntervalBlocks)) * BlockRows,
		HasSplits: info.HasSplits || o.Split != "",
	}
	nodes := map[uint32]bool{}
	for id := range info.NumNodes {
		nodes[uint32(id)] = true
	}
	neighbours := map[uint32]map[uint32]bool{}
	dropped := map[[2]uint32]bool{}
	link := func(u, v uint32) {
		if neighbours[u] == nil {
			neighbours[u] = map[uint32]bool{}
		}
		neighbours[u][v] = true
	}
	for _, e := range f.edges {
		nodes[e.U], nodes[e.V] = true, true
		switch {
		case e.U == e.V:
			s.SelfLoops++
		case neighbours[e.U][e.V], dropped[[2]uint32{e.U, e.V}]:
			s.Repeated++
		case rng.Float64(rng.Hash(o.Seed, 1, uint64(min(e.U, e.V)), uint64(max(e.U, e.V)))) < o.DropEdges:
			dropped[[2]uint32{e.U, e.V}], dropped[[2]uint32{e.V, e.U}] = true, true
			s.Dropped++
		default:
			link(e.U, e.V)
			link(e.V, e.U)
			s.Edges++
		}
	}
	for _, r := range f.labels {
		nodes[r.id] = true
	}
	for _, r := range f.splits {
		nodes[r.id] = true
	}
	for _, r := range f.features {
		nodes[r.ID] = true
	}

	n := naive{ids: slices.Collect(maps.Keys(nodes))}
	slices.SortFunc(n.ids, func(a, b uint32) int {
		return cmp.Or(cmp.Compare(len(neighbours[b]), len(neighbours[a])), cmp.Compare(a, b))
	})
	nodeOf := map[uint32]int{}
	for node, id := range n.ids {
		nodeOf[id] = node
	}
	byNode := make([][]int, len(n.ids))
	n.features = make([][]float32, len(n.ids))
	n.splits = make([]uint8, len(n.ids))
	for node, id := range n.ids {
		n.degree = append(n.degree, uint32(len(neighbours[id])))
		n.labels = append(n.labels, noLabel)
		for other := range neighbours[id] {
			byNode[node] = append(byNode[node], nodeOf[other])
			n.edges = append(n.edges, [2]uint32{uint32(nodeOf[other]), uint32(node)})
		}
	}
	slices.SortFunc(n.edges, func(a, b [2]uint32) int {
		return cmp.Or(cmp.Compare(a[1]/BlockRows, b[1]/BlockRows), cmp.Compare(a[0], b[0]), cmp.Compare(a[1], b[1]))
	})
	n.component = naiveComponents(byNode)
	for _, r := range f.labels {
		n.labels[nodeOf[r.id]] = r.label
	}
	for _, r := range f.splits {
		n.splits[nodeOf[r.id]] = uint8(r.split)
	}
	if r, _ := parseSplit(o.Split); r != nil {
		n.splits = naiveDraw(*r.(*randomSplit), o.Seed, n.ids, n.labels)
		s.Warnings, _ = r.check(info.Classes, classSizes(n.labels, len(info.Classes)))
	}
	if o.Features && info.NumFeatures > 0 {
		s.Features, s.FeatureType = info.NumFeatures, shards.Float16
		s.Normalized = o.Normalize == NormalizeL1
		if o.Normalize == "" || o.Normalize == NormalizeAuto {
			l1, choice, _ := Normalizes(context.Background(), "", f, nil)
			s.Normalized, s.Normalization = l1, choice
		}
		for _, r := range f.features {
			row, node := naiveRow(r, info.NumFeatures, s.Normalized), nodeOf[r.ID]
			training := n.splits[node] == uint8(dataset.Train) && n.labels[node] != noLabel
			if !training && rng.Float64(rng.Hash(o.Seed, 2, uint64(r.ID))) < o.BlankFeatures {
				clear(row)
				s.Blanked++
			}
			n.features[node] = row
			for _, x := range row {
				if half.Float(half.FromFloat(x)) != x {
					s.FeatureType = shards.Float32
				}
			}
		}
	}

	s.Nodes = int64(len(n.ids))
	sizes := map[uint32]int64{}
	for node, c := range n.component {
		sizes[c]++
		if n.labels[node] != noLabel {
			s.Labelled++
		}
		if name := []string{"", "train", "valid", "test"}[n.splits[node]]; name != "" {
			s.Splits[name]++
		}
	}
	s.Components = int64(len(sizes))
	for _, size := range sizes {
		s.LargestComponent = max(s.LargestComponent, size)
	}
	n.summary = s
	return n
}

func naiveRow(r dataset.FeatureRow, width int, normalize bool) []float32 {
	row := make([]float32, (width+15)/16*16)
	copy(row, r.Dense)
	for i, c := range r.Indices {
		row[c] = r.Values[i]
	}
	sum := 0.0
	for _, x := range row {
		sum += math.Abs(float64(x))
	}
	for i, x := range row {
		if normalize && sum > 0 {
			row[i] = float32(float64(x) / sum)
		}
	}
	return row
}

// must stops a test at an error.
func must(t rapid.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func openCatalog(t rapid.TB, s storage.Store) *catalog.Catalog {
	t.Helper()
	cat, err := catalog.Open(context.Background(), s)
	must(t, err)
	return cat
}

// checkCommitted compares all that a run committed with its twin.
func checkCommitted(t rapid.TB, cat *catalog.Catalog, got shards.Summary, want naive) {
	t.Helper()
	if fmt.Sprintf("%+v", got) != fmt.Sprintf("%+v", want.summary) {
		t.Fatalf("summary\n%+v, want\n%+v", got, want.summary)
	}
	ctx := context.Background()
	stored, err := shards.ReadSummary(ctx, cat)
	must(t, err)
	if stored.Nodes != got.Nodes || stored.Repeated != got.Repeated {
		t.Fatalf("committed summary %+v", stored)
	}

	e, _ := cat.Lookup(NodesPath)
	if e.Rows != int64(len(want.ids)) {
		t.Fatalf("node table entry has %d rows", e.Rows)
	}
	r, err := cat.Open(ctx, e)
	must(t, err)
	sum := int64(0)
	must(t, shards.ReadNodes(r, e.Path, shards.Readers{}, func(first int64, b shards.NodeBatch) error {
		for i := range b.ID {
			v := first + int64(i)
			got := fmt.Sprint(b.ID[i], b.Degree[i], b.Component[i], b.Label[i], b.Split[i])
			if want := fmt.Sprint(want.ids[v], want.degree[v], want.component[v], want.labels[v], want.splits[v]); got != want {
				t.Fatalf("node %d: id, degree, component, label, split %s, want %s", v, got, want)
			}
			sum += int64(b.Degree[i])
		}
		return nil
	}))
	must(t, r.Close())
	if sum != 2*got.Edges {
		t.Fatalf("degrees sum to %d for %d edges", sum, got.Edges)
	}

	if got := readEdges(t, cat); !slices.Equal(got, want.edges) {
		t.Fatalf("%d edges in shards, %d wanted, or others", len(got), len(want.edges))
	}
	if got := readHops(t, cat); !slices.Equal(got, want.edges) {
		t.Fatalf("%d edges in hop streams, %d wanted, or others", len(got), len(want.edges))
	}
	for _, e := range cat.Entries(catalog.KindFeatures) {
		r, err := cat.Open(ctx, e)
		must(t, err)
		tile := make([]byte, e.Bytes)
		if _, err := r.ReadAt(tile, 0); err != nil && !errors.Is(err, io.EOF) {
			t.Fatal(err)
		}
		must(t, r.Close())
		var twin bytes.Buffer
		lo := int64(e.Interval) * got.IntervalRows
		for _, row := range want.features[lo : lo+e.Rows] {
			for _, x := range row[e.Block*16:][:16] {
				if got.HalfFeatures() {
					must(t, binary.Write(&twin, binary.LittleEndian, half.FromFloat(x)))
				} else {
					must(t, binary.Write(&twin, binary.LittleEndian, x))
				}
			}
		}
		if !bytes.Equal(tile, twin.Bytes()) {
			t.Fatalf("%s has other values", e.Path)
		}
	}
	if got, want := len(cat.Entries(catalog.KindFeatures)), (want.summary.Features+15)/16*int((got.Nodes+got.IntervalRows-1)/got.IntervalRows); got != want {
		t.Fatalf("%d tiles, want %d", got, want)
	}
}

func readEdges(t rapid.TB, cat *catalog.Catalog) [][2]uint32 {
	t.Helper()
	return readEdgesOf(t, cat, catalog.KindEdges)
}

// readHops gives the edges in the order of shards.
func readHops(t rapid.TB, cat *catalog.Catalog) [][2]uint32 {
	t.Helper()
	return readHopsOf(t, cat, catalog.KindHops)
}

func readHopsOf(t rapid.TB, cat *catalog.Catalog, kind string) [][2]uint32 {
	t.Helper()
	stream, err := shards.OpenHopStreamOf(context.Background(), cat, kind)
	must(t, err)
	defer stream.Close()
	var edges [][2]uint32
	for strip := range stream.Strips() {
		frames, err := stream.Open(context.Background(), strip, 0, uint32(stream.NumNodes()))
		must(t, err)
		for {
			frame, err := frames.Next()
			if errors.Is(err, io.EOF) {
				break
			}
			must(t, err)
			frame.Visit(func(src, row uint32) { edges = append(edges, [2]uint32{src, uint32(strip)*packed.StripRows + row}) })
		}
		must(t, frames.Close())
	}
	slices.SortFunc(edges, func(a, b [2]uint32) int {
		return cmp.Or(cmp.Compare(a[1]/BlockRows, b[1]/BlockRows), cmp.Compare(a[0], b[0]), cmp.Compare(a[1], b[1]))
	})
	return edges
}

// drawGraph draws a dataset with duplicates in both directions, self-loops,
// gaps in the ids and nodes without an edge.
func drawGraph(t *rapid.T) *fake {
	n := rapid.IntRange(1, 40).Draw(t, "ids")
	ids := make([]uint32, n)
	stated := rapid.Bool().Draw(t, "number of nodes stated")
	f := &fake{info: dataset.Info{NumNodes: -1}}
	if stated {
		f.info.NumNodes = int64(n) + rapid.Int64Range(0, 3).Draw(t, "more nodes")
	}
	stride := uint32(1)
	if !stated {
		stride = rapid.SampledFrom([]uint32{1, 7, 40_000, dataset.MaxID / 40}).Draw(t, "stride")
	}
	for i := range ids {
		ids[i] = uint32(i) * stride
	}
	id := rapid.SampledFrom(ids)
	for range rapid.IntRange(0, 120).Draw(t, "edges") {
		f.edges = append(f.edges, dataset.Edge{U: id.Draw(t, "u"), V: id.Draw(t, "v")})
	}
	f.info.EdgeHint = rapid.SampledFrom([]int64{0, 1, int64(len(f.edges))}).Draw(t, "edge hint")
	if rapid.Bool().Draw(t, "labels") {
		f.info.Classes = []string{"a", "b", "c"}
		f.labels = []labelRow{}
		for _, id := range rapid.SliceOfDistinct(id, rapid.ID).Draw(t, "labelled") {
			f.labels = append(f.labels, labelRow{id, int32(id % 3)})
		}
	}
	if rapid.Bool().Draw(t, "splits") {
		f.splits = []splitRow{}
		for _, id := range rapid.SliceOfDistinct(id, rapid.ID).Draw(t, "split nodes") {
			f.splits = append(f.splits, splitRow{id, dataset.Split(1 + id%3)})
		}
	}
	if rapid.Bool().Draw(t, "features") {
		f.info.NumFeatures = rapid.IntRange(1, 90).Draw(t, "width")
		f.info.SparseFeatures = rapid.Bool().Draw(t, "sparse")
		all := slices.Clone(ids)
		if stated {
			for id := uint32(n); int64(id) < f.info.NumNodes; id++ {
				all = append(all, id)
			}
		}
		for _, id := range rapid.Permutation(all).Draw(t, "feature rows") {
			f.features = append(f.features, featureRow(id, f.info.NumFeatures, f.info.SparseFeatures))
		}
	}
	// At least one node.
	if f.info.NumNodes < 0 && len(f.edges)+len(f.labels)+len(f.splits)+len(f.features) == 0 {
		f.edges = []dataset.Edge{{U: ids[0], V: ids[0]}}
	}
	return f
}

// canDraw reports whether a class has more than so many labelled nodes: fewer leave nothing
// to validate or test with.
func (f *fake) canDraw(train int64) bool {
	var labels []int32
	for _, r := range f.labels {
		labels = append(labels, r.label)
	}
	return len(labels) > 0 && slices.Max(classSizes(labels, len(f.info.Classes))) > train
}

func featureRow(id uint32, width int, sparse bool) dataset.FeatureRow {
	row := dataset.FeatureRow{ID: id}
	for c := range width {
		h := rng.Hash(uint64(id), uint64(c))
		switch {
		case !sparse && id%2 == 0:
			row.Dense = append(row.Dense, float32(rng.Normal(h)))
		case !sparse:
			row.Dense = append(row.Dense, float32(h>>60))
		case h%5 == 0 && id%4 != 0: // some rows are all zeros
			row.Indices = append(row.Indices, uint32(c))
			row.Values = append(row.Values, float32(h>>60)+1)
		}
	}
	return row
}

func TestEqualsTwin(t *testing.T) {
	scratch := scratchFolder(t)
	rapid.Check(t, func(t *rapid.T) {
		f := drawGraph(t)
		b := budget(t, rapid.SampledFrom([]int64{24 << 20, 64 << 20}).Draw(t, "budget"))
		o := Options{
			Budget: b, Scratch: scratch,
			Threads:        rapid.IntRange(0, 3).Draw(t, "threads"),
			IntervalBlocks: rapid.IntRange(0, 3).Draw(t, "blocks"),
			Features:       rapid.Bool().Draw(t, "features wanted"),
			Normalize:      rapid.SampledFrom([]string{"", NormalizeAuto, NormalizeL1, NormalizeNone}).Draw(t, "normalize"),
		}
		if f.canDraw(2) && rapid.Bool().Draw(t, "random split") {
			o.Split, o.Seed = "random:2,3", rapid.Uint64().Draw(t, "seed")
		}
		drawSparse(t, &o)
		free := b.Free()
		cat := openCatalog(t, storagetest.NewMem())
		got, err := Run(context.Background(), f, cat, o)
		must(t, err)
		checkCommitted(t, cat, got, naiveRun(f, o))
		if b.Free() != free {
			t.Fatalf("%d bytes not given back", free-b.Free())
		}
	})
}

// randomGraph has skewed degrees, each edge several times in both directions,
// self-loops, and features.
func randomGraph(nodes, edges, width int) *fake {
	f := &fake{info: dataset.Info{NumNodes: int64(nodes), NumFeatures: width, Classes: []string{"even", "odd"}}}
	s := rng.New(5)
	pick := func() uint32 { return uint32(s.Intn(1+s.Intn(nodes)) * 7919 % nodes) }
	for range edges {
		e := dataset.Edge{U: pick(), V: pick()}
		f.edges = append(f.edges, e)
		if s.Intn(3) == 0 {
			f.edges = append(f.edges, dataset.Edge{U: e.V, V: e.U}, e)
		}
	}
	for _, id := range s.Perm(nodes) {
		f.labels = append(f.labels, labelRow{uint32(id), int32(id % 2)})
		if width > 0 {
			f.features = append(f.features, featureRow(uint32(id), width, false))
		}
	}
	return f
}

// wholeNumbers is a graph whose features are exactly float16.
func wholeNumbers(nodes, width int) *fake {
	f := randomGraph(nodes, 2*nodes, width)
	for _, row := range f.features {
		for c := range row.Dense {
			row.Dense[c] = float32(rng.Hash(uint64(row.ID), uint64(c)) % 2048)
		}
	}
	return f
}

// TestFeatureType has one value in the way of float16, or none, under budgets
// that hold all tiles, some of them, or not one.
func TestFeatureType(t *testing.T) {
	testkit.Slow(t, "dozens of partitions")
	for _, c := range []struct {
		name        string
		row, column int
		value       float32
		normalize   string
		want        string
	}{
		{"whole numbers", 0, 0, 17, "", shards.Float16},
		{"the first value", 0, 0, 0.1, "", shards.Float32},
		{"the last value", 2999, 69, 0.1, "", shards.Float32},
		{"a value in the middle", 1500, 40, 65504.5, "", shards.Float32},
		{"normalised", 0, 0, 17, NormalizeL1, shards.Float32},
	} {
		f := wholeNumbers(3000, 70)
		f.features[c.row].Dense[c.column] = c.value
		for _, free := range []int64{64 << 20, 300 << 10, 160 << 10} {
			cat := openCatalog(t, storagetest.NewMem())
			o := Options{Budget: budget(t, free), Threads: 2, Scratch: scratchFolder(t), Features: true, Normalize: c.normalize}
			got, err := Run(context.Background(), f, cat, o)
			must(t, err)
			if got.FeatureType != c.want {
				t.Errorf("%s, %d bytes: %s, want %s", c.name, free, got.FeatureType, c.want)
			}
			checkCommitted(t, cat, got, naiveRun(f, o))
		}
	}
}

// TestTileLot holds how often features are read.
func TestTileLot(t *testing.T) {
	const papers, gib = 111_059_956, 1 << 30
	for _, c := range []struct {
		name    string
		free, n int64
		panels  int
		half    bool
		want    int
	}{
		{"everything fits", gib, 1000, 8, false, 8},
		{"two readings", 15 * gib, papers, 8, true, 4},
		{"three, of equal length", 12 * gib, papers, 8, true, 3},
		{"four", 7 * gib, papers, 8, true, 2},
		{"would be eight: spilled", 4 * gib, papers, 8, true, 8},
		{"not one fits: spilled", gib, papers, 8, true, 8},
		{"float32", 15 * gib, papers, 8, false, 2},
	} {
		if got := tileLot(c.free, c.n, c.panels, c.half); got != c.want {
			t.Errorf("%s: %d tiles at a time, want %d", c.name, got, c.want)
		}
	}
}

// shuffled is the same graph in another order, its edges turned round at random.
func (f *fake) shuffled(seed uint64) *fake {
	s := rng.New(seed)
	g := *f
	g.edges, g.labels, g.features = slices.Clone(f.edges), slices.Clone(f.labels), slices.Clone(f.features)
	s.Shuffle(len(g.edges), func(i, j int) { g.edges[i], g.edges[j] = g.edges[j], g.edges[i] })
	for i, e := range g.edges {
		if s.Intn(2) == 0 {
			g.edges[i] = dataset.Edge{U: e.V, V: e.U}
		}
	}
	s.Shuffle(len(g.labels), func(i, j int) { g.labels[i], g.labels[j] = g.labels[j], g.labels[i] })
	s.Shuffle(len(g.features), func(i, j int) { g.features[i], g.features[j] = g.features[j], g.features[i] })
	return &g
}

// TestBytesDoNotDependOnResources runs one graph under budgets from plenty to
// hardly any, and compares checksums.
func TestBytesDoNotDependOnResources(t *testing.T) {
	known := randomGraph(3000, 60_000, 70)
	unknown := *known
	unknown.info.NumNodes = -1
	hinted := unknown
	hinted.info.EdgeHint = 20_000
	var want []catalog.Entry
	for _, c := range []struct {
		name    string
		f       *fake
		free    int64
		threads int
		files   int // spilled; 0 if none may be
	}{
		{"plenty", known, 64 << 20, 2, 0},
		{"one thread", known, 64 << 20, 1, 0},
		{"edges turned, rows shuffled", known.shuffled(1), 64 << 20, 3, 0},
		{"number of nodes unknown", &unknown, 64 << 20, 2, 0},
		{"more threads than cores", known.shuffled(5), 64 << 20, 16, 0},
		{"pairs in a file", known.shuffled(8), 1700 << 10, 2, 1},
		{"runs", known, 1 << 20, 2, 5},
		{"runs, one thread", known.shuffled(2), 1 << 20, 1, 5},
		{"runs, five threads", known.shuffled(6), 1 << 20, 5, 5},
		{"runs, sixteen threads", known.shuffled(7), 1 << 20, 16, 5},
		{"merges of merges, and cells", known, 150 << 10, 2, 24},
		{"merges of merges on sixteen threads", known, 150 << 10, 16, 24},
		{"number of nodes unknown, runs", hinted.shuffled(3), 12 << 20, 2, 4},
	} {
		t.Run(c.name, func(t *testing.T) {
			cat := openCatalog(t, storagetest.NewMem())
			b := budget(t, c.free)
			o := Options{Budget: b, Threads: c.threads, Scratch: scratchFolder(t), Features: true, Split: "random:20,30", Seed: 4}
			j, err := newJob(c.f, cat, o)
			must(t, err)
			summary, err := j.run(context.Background())
			must(t, errors.Join(err, j.close()))
			if files := j.scratch.Files(); files < c.files || c.files == 0 && files > 0 {
				t.Errorf("%d files spilled, at least %d expected, or none", files, c.files)
			}
			if b.Free() != c.free {
				t.Errorf("%d bytes not given back", c.free-b.Free())
			}
			got := cat.Entries("")
			if want == nil {
				want = got
				checkCommitted(t, cat, summary, naiveRun(c.f, o))
			}
			if !slices.Equal(got, want) {
				t.Errorf("committed\n%v, want\n%v", got, want)
			}
		})
	}
}

// TestSeveralIntervals needs more nodes than a block has rows.
func TestSeveralIntervals(t *testing.T) {
	testkit.NotUnderRace(t, "TestResume, TestBytesDoNotDependOnResources and TestDirectionsInIntervals start the same goroutines")
	const nodes = 2*BlockRows + 1000
	f := &fake{info: dataset.Info{NumNodes: nodes}}
	s := rng.New(6)
	for range 300_000 {
		f.edges = append(f.edges, dataset.Edge{U: uint32(s.Intn(nodes)), V: uint32(s.Intn(1 + s.Intn(nodes)))})
	}
	var want [][2]uint32
	for _, c := range []struct {
		name   string
		free   int64
		blocks int
	}{
		{"an interval for each block", 64 << 20, 1},
		{"two blocks in an interval", 40 << 20, 2},
		{"all in one", 40 << 20, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			cat := openCatalog(t, storagetest.NewMem())
			summary, err := Run(context.Background(), f, cat, Options{Budget: budget(t, c.free), Scratch: scratchFolder(t), IntervalBlocks: c.blocks})
			must(t, err)
			edges := readEdges(t, cat)
			if int64(len(edges)) != 2*summary.Edges || !slices.Equal(readHops(t, cat), edges) {
				t.Errorf("%d edges in shards, %d undirected in the summary, or others in hop streams", len(edges), summary.Edges)
			}
			if want == nil {
				want = edges
				naive := map[[2]uint32]bool{}
				for _, e := range f.edges {
					naive[[2]uint32{min(e.U, e.V), max(e.U, e.V)}] = e.U != e.V
				}
				loops := 0
				for _, edge := range naive {
					if !edge {
						loops++
					}
				}
				if int64(len(naive)-loops) != summary.Edges {
					t.Errorf("%d edges, want %d", summary.Edges, len(naive)-loops)
				}
			}
			if !slices.Equal(edges, want) {
				t.Error("the intervals change the edges")
			}
		})
	}
}

// TestTilesOfSeveralIntervals has a tile larger than the budget.
func TestTilesOfSeveralIntervals(t *testing.T) {
	const nodes = 2*BlockRows + 1000
	f := &fake{info: dataset.Info{NumNodes: nodes, NumFeatures: 1}, idRows: true}
	for id := range uint32(1000) {
		f.edges = append(f.edges, dataset.Edge{U: id * (nodes / 1050), V: 77}, dataset.Edge{U: id, V: id * 7})
	}
	store, err := storage.NewLocal(t.TempDir())
	must(t, err)
	cat := openCatalog(t, store)
	ctx := context.Background()
	_, err = Run(ctx, f, cat, Options{Budget: budget(t, 40<<20), Threads: 2, Scratch: scratchFolder(t), IntervalBlocks: 1, Features: true})
	must(t, err)
	tiles := cat.Entries(catalog.KindFeatures)
	if len(tiles) != 3 || tiles[0].Rows != BlockRows || tiles[2].Rows != 1000 {
		t.Fatalf("tiles %+v", tiles)
	}
	e, _ := cat.Lookup(NodesPath)
	file, err := cat.Open(ctx, e)
	must(t, err)
	defer file.Close()
	var tile io.ReadCloser
	row := make([]float32, packed.PanelColumns)
	must(t, shards.ReadNodes(file, e.Path, shards.Readers{}, func(first int64, b shards.NodeBatch) error {
		for i, id := range b.ID {
			node := first + int64(i)
			if node%BlockRows == 0 {
				next, err := cat.Stream(ctx, tiles[node/BlockRows])
				if err != nil {
					return err
				}
				t.Cleanup(func() { _ = next.Close() })
				tile = next
			}
			if _, err := io.ReadFull(tile, mem.AsBytes(row)); err != nil {
				return err
			}
			if row[0] != float32(id) || row[1] != 0 || row[15] != 0 {
				return fmt.Errorf("node %d, id %d has row %v", node, id, row)
			}
		}
		return nil
	}))
}

func TestRefused(t *testing.T) {
	edge := []dataset.Edge{{U: 0, V: 1}}
	dense := func(id uint32) dataset.FeatureRow { return dataset.FeatureRow{ID: id, Dense: []float32{1, 2}} }
	for _, c := range []struct {
		name string
		f    fake
		o    Options
		want string
	}{
		{"no nodes", fake{info: dataset.Info{NumNodes: -1}}, Options{}, "no nodes"},
		{"no nodes stated", fake{}, Options{}, "no nodes"},
		{"directions and weights", fake{info: dataset.Info{NumNodes: -1, Directed: true, Weighted: true}, edges: edge}, Options{}, "leave out directed=true or the weight"},
		{"too many nodes with directions", fake{info: dataset.Info{NumNodes: 1<<31 + 1, Directed: true}, edges: edge}, Options{}, "can have at most 2147483648: leave out directed=true"},
		{"edge out of range", fake{info: dataset.Info{NumNodes: 2}, edges: []dataset.Edge{{U: 0, V: 1}, {U: 2, V: 0}}}, Options{}, "edge row 2 is (2, 0)"},
		{"no node", fake{info: dataset.Info{NumNodes: -1}, edges: []dataset.Edge{{U: math.MaxUint32}}}, Options{}, "edge row 1"},
		{
			"label out of range",
			fake{info: dataset.Info{NumNodes: 2, Classes: []string{"a"}}, edges: edge, labels: []labelRow{{1, 0}, {2, 0}}},
			Options{},
			"label row 2 names node 2",
		},
		{
			"class out of range",
			fake{info: dataset.Info{NumNodes: 2, Classes: []string{"a"}}, edges: edge, labels: []labelRow{{1, 1}}},
			Options{},
			"class 1 of 1",
		},
		{
			"two labels",
			fake{info: dataset.Info{NumNodes: 2, Classes: []string{"a", "b"}}, edges: edge, labels: []labelRow{{1, 1}, {1, 0}}},
			Options{},
			`fake row 1: node 1 has the label "a", and another one, "b", in fake row 0`,
		},
		{
			"two splits",
			fake{info: dataset.Info{NumNodes: 2}, edges: edge, splits: []splitRow{{1, dataset.Train}, {1, dataset.Test}}},
			Options{},
			"fake row 1: node 1 has the split test, and another one, train, in fake row 0",
		},
		{
			"split out of range",
			fake{info: dataset.Info{NumNodes: 2}, edges: edge, splits: []splitRow{{5, dataset.Train}}},
			Options{},
			"split row 1 names node 5",
		},
		{
			"missing feature row",
			fake{info: dataset.Info{NumNodes: 3, NumFeatures: 2}, edges: edge, features: []dataset.FeatureRow{dense(2)}},
			Options{Features: true},
			"node 0 has no feature row, and one other node has none either",
		},
		{
			"second feature row",
			fake{info: dataset.Info{NumNodes: 2, NumFeatures: 2}, edges: edge, features: []dataset.FeatureRow{dense(1), dense(0), dense(1)}},
			Options{Features: true},
			"fake row 2: node 1 has a second feature row, the first is in fake row 0",
		},
		{
			"feature row out of range",
			fake{info: dataset.Info{NumNodes: 2, NumFeatures: 2}, edges: edge, features: []dataset.FeatureRow{dense(9)}},
			Options{Features: true},
			"feature row 1 names node 9",
		},
		{
			"short feature row",
			fake{info: dataset.Info{NumNodes: 2, NumFeatures: 3}, edges: edge, features: []dataset.FeatureRow{dense(0)}},
			Options{Features: true},
			"feature row 1, node 0: 2 values, not 3",
		},
		{
			"feature column out of range",
			fake{info: dataset.Info{NumNodes: 2, NumFeatures: 3}, edges: edge, features: []dataset.FeatureRow{{Indices: []uint32{3}, Values: []float32{1}}}},
			Options{Features: true},
			"column 3",
		},
		{"random split without labels", fake{info: dataset.Info{NumNodes: 2}, edges: edge}, Options{Split: "random:20,30"}, "no labels"},
		{"unknown split", fake{info: dataset.Info{NumNodes: 2}, edges: edge}, Options{Split: "even"}, "random:20,30"},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.o.Budget, c.o.Scratch = budget(t, 48<<20), scratchFolder(t)
			_, err := Run(context.Background(), &c.f, openCatalog(t, storagetest.NewMem()), c.o)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %q", err, c.want)
			}
			if ofData := reflect.DeepEqual(c.o, Options{Budget: c.o.Budget, Scratch: c.o.Scratch, Features: c.o.Features}); ofData && !errors.Is(err, dataset.ErrData) {
				t.Errorf("%v is no error of the data", err)
			}
			if free := c.o.Budget.Free(); free != 48<<20 {
				t.Errorf("%d bytes not given back", 48<<20-free)
			}
		})
	}
	t.Run("budget too small", func(t *testing.T) {
		b := budget(t, 50<<10)
		_, err := Run(context.Background(), randomGraph(3000, 60_000, 0), openCatalog(t, storagetest.NewMem()), Options{Budget: b, Scratch: scratchFolder(t)})
		if !errors.Is(err, mem.ErrBudget) || b.Free() != 50<<10 {
			t.Errorf("%v, %d bytes free", err, b.Free())
		}
	})
}

// TestGaps has what published citation graphs have: stated nodes that no edge,
// label or split mentions, a feature row of zeros, a self-loop.
func TestGaps(t *testing.T) {
	f := &fake{
		info:   dataset.Info{NumNodes: 6, NumFeatures: 2, SparseFeatures: true, Classes: []string{"a", "b"}},
		edges:  []dataset.Edge{{U: 5, V: 2}, {U: 2, V: 5}, {U: 2, V: 2}, {U: 0, V: 2}},
		labels: []labelRow{{2, 1}, {0, 0}},
		splits: []splitRow{{2, dataset.Train}},
	}
	for _, id := range []uint32{4, 2, 0, 5, 1, 3} {
		row := dataset.FeatureRow{ID: id, Indices: []uint32{0, 1}, Values: []float32{1, float32(id)}}
		if id == 3 {
			row = dataset.FeatureRow{ID: id}
		}
		f.features = append(f.features, row)
	}
	o := Options{Budget: budget(t, 48<<20), Scratch: scratchFolder(t), Features: true}
	cat := openCatalog(t, storagetest.NewMem())
	s, err := Run(context.Background(), f, cat, o)
	must(t, err)
	want := naiveRun(f, o)
	checkCommitted(t, cat, s, want)
	if !slices.Equal(want.ids, []uint32{2, 0, 5, 1, 3, 4}) || s.Components != 4 || s.LargestComponent != 3 || s.SelfLoops != 1 || s.Repeated != 1 || s.Edges != 2 {
		t.Errorf("ids %v, %+v", want.ids, s)
	}
}

func TestFinishedRunIsLeftAlone(t *testing.T) {
	f := randomGraph(50, 100, 3)
	store := storage.NewCounting(storagetest.NewMem())
	o := Options{Budget: budget(t, 48<<20), Scratch: scratchFolder(t), Features: true}
	first, err := Run(context.Background(), f, openCatalog(t, store), o)
	must(t, err)
	written := store.BytesWritten()
	second, err := Run(context.Background(), f, openCatalog(t, store), o)
	must(t, err)
	if fmt.Sprintf("%+v", first) != fmt.Sprintf("%+v", second) || store.BytesWritten() != written {
		t.Errorf("%+v, then %+v; %d bytes written again", first, second, store.BytesWritten()-written)
	}
}

// TestResume fails every storage operation in turn, and runs again.
func TestResume(t *testing.T) {
	known := randomGraph(200, 600, 90)
	unknown := *known
	unknown.info.NumNodes = -1
	later := wholeNumbers(1500, 56)
	later.features[1000].Dense[55] = 0.1
	for _, c := range []struct {
		name string
		f    *fake
		free int64
	}{
		{"number of nodes stated", known, 48 << 20},
		{"number of nodes unknown", &unknown, 48 << 20},
		{"float32 found out late", later, 170 << 10},
	} {
		t.Run(c.name, func(t *testing.T) {
			scratch := scratchFolder(t)
			try := func(s storage.Store) (shards.Summary, error) {
				cat, err := catalog.Open(context.Background(), s)
				if err != nil {
					return shards.Summary{}, err
				}
				b := budget(t, c.free)
				summary, err := Run(context.Background(), c.f, cat, Options{Budget: b, Scratch: scratch, Features: true, Threads: 2})
				if b.Free() != c.free {
					t.Errorf("%d bytes not given back", c.free-b.Free())
				}
				return summary, err
			}
			whole := storagetest.NewMem()
			counted := storagetest.NewFaulty(whole, 0)
			want, err := try(counted)
			must(t, err)
			entries := openCatalog(t, whole).Entries("")
			shorter, step := false, int64(1)
			if testing.Short() {
				step = 5
			}
			for failAt := int64(1); failAt <= counted.Ops(); failAt += step {
				store := storagetest.NewMem()
				if _, err := try(storagetest.NewFaulty(store, failAt)); !errors.Is(err, storage.ErrDisk) {
					t.Errorf("operation %d failed, and the run said: %v", failAt, err)
				}
				again := storagetest.NewFaulty(store, 0)
				got, err := try(again)
				if err != nil {
					t.Fatalf("after operation %d failed: %v", failAt, err)
				}
				orphans, _, err := openCatalog(t, store).Orphans(context.Background())
				must(t, err)
				// What is off the list and could not be deleted is left for gc.
				orphans = slices.DeleteFunc(orphans, func(i storage.Info) bool { return i.Name == orderPath })
				if len(orphans) > 0 {
					t.Errorf("after operation %d failed, %v is left", failAt, orphans)
				}
				if !slices.Equal(openCatalog(t, store).Entries(""), entries) || fmt.Sprintf("%+v", got) != fmt.Sprintf("%+v", want) {
					t.Errorf("after operation %d failed, other results", failAt)
				}
				shorter = shorter || again.Ops() < counted.Ops()*3/4
			}
			if !shorter {
				t.Error("no second run made use of the first")
			}
		})
	}
}

// TestResumeWithAnotherGraph goes on with a graph of other nodes, before and after
// there is a summary.
func TestResumeWithAnotherGraph(t *testing.T) {
	ctx := context.Background()
	cat := openCatalog(t, storagetest.NewMem())
	o := Options{Budget: budget(t, 48<<20), Scratch: scratchFolder(t)}
	open := func() (dataset.Dataset, error) { return randomGraph(50, 100, 0), nil }
	for _, step := range []string{Split, Merge, Count, Gather, Order} {
		left, err := Next(ctx, cat)
		must(t, err)
		for _, p := range left.Cut(1) {
			must(t, Execute(ctx, open, cat, o, step, p))
		}
	}
	other := randomGraph(60, 100, 0)
	if _, err := Run(ctx, other, cat, o); err == nil || !strings.Contains(err.Error(), "holds 50 nodes, fake 60") {
		t.Errorf("60 nodes for a table of 50: %v", err)
	}

	// Without what the step Order leaves, nothing of the other graph is used.
	must(t, cat.Remove(ctx, func(e catalog.Entry) bool { return e.Kind == catalog.KindRun }))
	got, err := Run(ctx, other, cat, o)
	must(t, err)
	must(t, cat.Remove(ctx, func(e catalog.Entry) bool { return e.Kind == catalog.KindSummary }))
	third := randomGraph(70, 100, 0)
	if got, err = Run(ctx, third, cat, o); err != nil || got.Nodes != 70 {
		t.Errorf("%+v, %v", got, err)
	}
	checkCommitted(t, cat, got, naiveRun(third, o))
}

func TestCancel(t *testing.T) {
	for _, free := range []int64{64 << 20, 300 << 10} {
		ctx, cancel := context.WithCancel(context.Background())
		f := randomGraph(3000, 60_000, 0)
		f.onEdges = func(read int) error {
			if read > 30_000 {
				cancel()
			}
			return nil
		}
		b := budget(t, free)
		_, err := Run(ctx, f, openCatalog(t, storagetest.NewMem()), Options{Budget: b, Threads: 2, Scratch: scratchFolder(t)})
		if !errors.Is(err, context.Canceled) || b.Free() != free {
			t.Errorf("%v, %d bytes of %d free", err, b.Free(), free)
		}
		cancel()
	}
}

func TestErrorsOfTheDataset(t *testing.T) {
	broken := errors.New("line 7: no number")
	f := randomGraph(3000, 60_000, 0)
	f.onEdges = func(read int) error {
		if read > 60_000 {
			return broken
		}
		return nil
	}
	b := budget(t, 300<<10)
	_, err := Run(context.Background(), f, openCatalog(t, storagetest.NewMem()), Options{Budget: b, Threads: 2, Scratch: scratchFolder(t)})
	if !errors.Is(err, broken) || b.Free() != 300<<10 {
		t.Errorf("%v, %d bytes free", err, b.Free())
	}
}

// TestScratchFails takes the scratch folder away while edges are read.
func TestScratchFails(t *testing.T) {
	f := randomGraph(3000, 60_000, 0)
	dir := scratchFolder(t)
	f.onEdges = func(read int) error {
		if read < 60_000 {
			return nil
		}
		own, err := filepath.Glob(filepath.Join(dir, "sort-*"))
		for _, path := range own {
			err = errors.Join(err, os.RemoveAll(path))
		}
		return err
	}
	b := budget(t, 300<<10)
	_, err := Run(context.Background(), f, openCatalog(t, storagetest.NewMem()), Options{Budget: b, Scratch: dir})
	if !errors.Is(err, storage.ErrDisk) || !strings.Contains(err.Error(), dir) || b.Free() != 300<<10 {
		t.Errorf("%v, %d bytes free", err, b.Free())
	}
}

// makeEarlier commits a hop stream that says that it has the format of version 3.
func makeEarlier(t *testing.T, cat *catalog.Catalog, e catalog.Entry) {
	t.Helper()
	file, err := cat.Open(t.Context(), e)
	must(t, err)
	data := make([]byte, file.Size())
	_, err = io.ReadFull(io.NewSectionReader(file, 0, file.Size()), data)
	must(t, errors.Join(err, file.Close()))
	at := bytes.LastIndex(data, []byte("NDLSHOPS"))
	if at < 0 {
		t.Fatalf("%s has no trailer", e.Path)
	}
	binary.LittleEndian.PutUint32(data[at+8:], 3)
	f, err := cat.Create(t.Context(), catalog.Describe(catalog.KindHops, e.Path).In(int(e.Interval)))
	must(t, err)
	_, err = f.Write(data)
	must(t, err)
	f.Rows = e.Rows
	must(t, cat.Commit(t.Context(), f))
}

// TestHops compares the hop stream that is written with a shard with one that is made
// from the shard, and has it made again where it is missing or another shard's.
func TestHops(t *testing.T) {
	ctx := context.Background()
	store := storagetest.NewMem()
	cat := openCatalog(t, store)
	_, err := Run(ctx, randomGraph(50, 100, 0), cat, Options{Budget: budget(t, 48<<20), Scratch: scratchFolder(t)})
	must(t, err)
	shard, hops := cat.Entries(catalog.KindEdges)[0], cat.Entries(catalog.KindHops)
	if hops[0].Path != HopPath(0) || hops[0].Rows != shard.Rows {
		t.Errorf("hop stream %+v of %+v", hops[0], shard)
	}
	check := func(what string) {
		t.Helper()
		must(t, EnsureHops(ctx, cat))
		if again := cat.Entries(catalog.KindHops); !slices.Equal(again, hops) {
			t.Errorf("%s: made again as %+v, was %+v", what, again, hops)
		}
	}
	must(t, cat.Remove(ctx, func(e catalog.Entry) bool { return e.Kind == catalog.KindHops }))
	check("not listed")
	must(t, store.Remove(ctx, HopPath(0)))
	check("deleted")
	makeEarlier(t, cat, hops[0])
	check("of an earlier version")
	other := shard
	other.Checksum = "sha256:" + strings.Repeat("ab", 32)
	if ok, err := hasHops(ctx, cat, other); ok || err != nil {
		t.Errorf("the hop stream of another shard is taken: %v", err)
	}
	shard.Rows++
	if err := BuildHops(ctx, cat, shard); !errors.Is(err, seal.ErrCorrupt) {
		t.Errorf("a shard with an edge too few: %v", err)
	}
}

// TestHopsAreWrittenOnTheWay reads no shard to make its hop stream.
func TestHopsAreWrittenOnTheWay(t *testing.T) {
	for _, threads := range []int{1, 2} {
		store := storage.NewCounting(storagetest.NewMem())
		cat := openCatalog(t, store)
		_, err := Run(context.Background(), randomGraph(3000, 60_000, 0), cat, Options{Budget: budget(t, 48<<20), Scratch: scratchFolder(t), Threads: threads})
		must(t, err)
		shard := cat.Entries(catalog.KindEdges)[0]
		if read := store.BytesRead(); read >= shard.Bytes {
			t.Errorf("%d bytes were read of a run directory whose shard has %d", read, shard.Bytes)
		}
	}
}
