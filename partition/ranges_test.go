package partition

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"ndls/dataset"
	"ndls/internal/rng"
	"ndls/internal/seal"
	"ndls/internal/storage/storagetest"
	"ndls/internal/testkit"
	"ndls/shards"
	"ndls/steps"
)

// labelled gives a graph labels and a published split, in other orders than the edges. Some of the ids have no edge.
func labelled(f *fake, ids []uint32) *fake {
	f.info.Classes = []string{"a", "b", "c"}
	for i, id := range ids {
		if h := rng.Hash(3, uint64(id)); h%3 > 0 {
			f.labels = append(f.labels, labelRow{id, int32(h / 3 % 3)})
		}
		if h := rng.Hash(4, uint64(id)); h%4 > 0 {
			f.splits = append(f.splits, splitRow{id, dataset.Split(h % 4)})
		}
		if i%100 == 0 && len(f.labels) > 0 {
			f.labels = append(f.labels, f.labels[len(f.labels)-1]) // the same twice is no harm
		}
	}
	s := rand.New(rand.NewPCG(5, 0))
	s.Shuffle(len(f.labels), func(i, j int) { f.labels[i], f.labels[j] = f.labels[j], f.labels[i] })
	s.Shuffle(len(f.splits), func(i, j int) { f.splits[i], f.splits[j] = f.splits[j], f.splits[i] })
	return f
}

// withEdges is a graph of n ids, a multiple of stride each.
func withEdges(n int, stride uint32, stated bool, edges func(add func(u, v int))) *fake {
	f := &fake{info: dataset.Info{NumNodes: -1}}
	if stated {
		f.info.NumNodes = int64(n) * int64(stride)
	}
	ids := make([]uint32, n)
	for i := range ids {
		ids[i] = uint32(i) * stride
	}
	edges(func(u, v int) { f.edges = append(f.edges, dataset.Edge{U: ids[u], V: ids[v]}) })
	f.info.EdgeHint = int64(len(f.edges))
	return labelled(f, ids)
}

// sparseEdges are so few that there are many components of all sizes.
func sparseEdges(n int) func(add func(u, v int)) {
	return func(add func(u, v int)) {
		s := rng.New(6)
		for range n * 6 / 10 {
			add(s.Intn(n), s.Intn(n))
		}
	}
}

// TestRangesEqualRun compares node tables that several workers have put together with those of one: nodes are numbered by ranges
// of ids, and components that many ranges share are found.
func TestRangesEqualRun(t *testing.T) {
	testkit.NotUnderRace(t, "TestResume, TestBytesDoNotDependOnResources and TestDirectionsInIntervals start the same goroutines")
	const n = 8000
	order := rand.New(rand.NewPCG(7, 0)).Perm(n)
	path := func(add func(u, v int)) {
		for i := range n - n/10 {
			add(order[i], order[i+1])
		}
	}
	star := func(add func(u, v int)) {
		for i := range n / 2 {
			add(order[0], order[i])
		}
	}
	directed := withEdges(n, 1, true, sparseEdges(n))
	directed.info.Directed = true
	withWeights := func(f *fake) *fake {
		f.info.Weighted, f.weight = true, unevenWeight
		return f
	}
	counts := []int{2, 7} // of workers
	if testing.Short() {
		counts = []int{3}
	}
	before := manyNodes
	defer func() { manyNodes = before }()
	for _, c := range []struct {
		name  string
		f     *fake
		many  int64 // manyNodes
		frees []int64
	}{
		{"many components", withEdges(n, 1, true, sparseEdges(n)), before, []int64{1 << 20, 64 << 20}},
		{"many components, arrays of few ids", withEdges(n, 5, true, sparseEdges(n)), 1000, []int64{12 << 20, 64 << 20}},
		{"number of nodes unknown", withEdges(n, 17, false, sparseEdges(n)), before, []int64{16 << 20, 64 << 20}},
		{"one long path", withEdges(n, 1, true, path), before, []int64{1 << 20}},
		{"one long path, number of nodes unknown", withEdges(n, 17, false, path), before, []int64{16 << 20}},
		{"a star", withEdges(n, 1, true, star), before, []int64{1 << 20, 64 << 20}},
		{"no edges", withEdges(n, 1, true, func(func(u, v int)) {}), before, []int64{1 << 20}},
		{"directions", directed, before, []int64{1 << 20, 64 << 20}},
		{"weights, many components", withWeights(withEdges(n, 1, true, sparseEdges(n))), before, []int64{1 << 20, 64 << 20}},
		{"weights, arrays of few ids", withWeights(withEdges(n, 5, true, sparseEdges(n))), 1000, []int64{12 << 20, 64 << 20}},
		{"weights, number of nodes unknown", withWeights(withEdges(n, 17, false, sparseEdges(n))), before, []int64{16 << 20, 64 << 20}},
		{"weights, a star", withWeights(withEdges(n, 1, true, star)), before, []int64{1 << 20, 64 << 20}},
	} {
		for _, o := range []Options{
			{},
			{Split: "random:20,30", Splits: 3, Seed: 8},
			{Split: "share:0.6,0.2", Seed: 9, DropEdges: 0.3},
			{LabelsPerClass: 50, Splits: 2, Seed: 10},
			{Only: OnlyTrainValid, Split: "share:0.3,0.2"},
		} {
			t.Run(fmt.Sprintf("%s, %s %d %s", c.name, o.Split, o.LabelsPerClass, o.Only), func(t *testing.T) {
				if o.Only != "" && len(c.f.edges) == 0 {
					t.Skip("nodes are those of edges")
				}
				manyNodes = c.many
				frees := c.frees
				if o.Only != "" {
					frees = []int64{64 << 20} // ids of members are ranked
				}
				scratch := scratchFolder(t)
				with := func(free int64) Options {
					o := o
					o.Budget, o.Threads, o.Scratch = budget(t, free), 2, scratch
					return o
				}
				whole := storagetest.NewMem()
				_, err := Run(t.Context(), c.f, openCatalog(t, whole), with(64<<20))
				must(t, err)
				for _, workers := range counts {
					w := &sharedWorkers{
						open: func() (dataset.Dataset, error) { return c.f, nil }, store: storagetest.NewMem(), workers: workers, draw: randomDraw(t),
					}
					w.option = func() Options { return with(frees[w.draw(len(frees))]) }
					must(t, w.do(context.Background()))
					for _, step := range []string{Rank, Components, Nodes} {
						if !slices.Contains(w.steps, step) {
							t.Errorf("steps %v", w.steps)
						}
					}
					checkSame(t, w.store, whole)
				}
			})
		}
	}
}

// unevenWeight is the weight of an edge, from 2^-40 to 2^41, so that float64 sums of them depend on their order.
func unevenWeight(u, v uint32) float32 {
	h := rng.Hash(12, uint64(u), uint64(v))
	return float32(math.Ldexp(1+float64(h>>40)/(1<<24), int(h%81)-40))
}

// TestOrderOfStrengths: the strength of a node is the sum of the weights of its edges in ascending order of their other
// ends, and in another order it would be another number.
func TestOrderOfStrengths(t *testing.T) {
	const n, centre = 3000, 1000
	f := withEdges(n, 1, true, func(add func(u, v int)) {
		for v := n - 1; v >= 0; v-- {
			add(centre, v)
		}
	})
	f.info.Weighted, f.weight = true, unevenWeight
	want, downward := 0.0, 0.0
	for v := range uint32(n) {
		if v != centre {
			want += float64(unevenWeight(min(v, centre), max(v, centre)))
		}
		if w := n - 1 - v; w != centre {
			downward += float64(unevenWeight(min(w, centre), max(w, centre)))
		}
	}
	if want == downward {
		t.Fatal("the order of these weights does not matter")
	}
	for _, workers := range []int{1, 2, 3} {
		w := &sharedWorkers{
			open: func() (dataset.Dataset, error) { return f, nil }, store: storagetest.NewMem(), workers: workers, draw: randomDraw(t),
			option: func() Options { return Options{Budget: budget(t, 8<<20), Threads: 2, Scratch: scratchFolder(t)} },
		}
		must(t, w.do(t.Context()))
		cat := openCatalog(t, w.store)
		e, _ := cat.Lookup(NodesPath)
		r, err := cat.Open(t.Context(), e)
		must(t, err)
		found := false
		must(t, shards.ReadNodes(r, e.Path, shards.Readers{}, func(_ int64, b shards.NodeBatch) error {
			for i, id := range b.ID {
				if id == centre {
					found = true
					if b.Strength[i] != want {
						t.Errorf("%d workers: the strength is %v, want %v", workers, b.Strength[i], want)
					}
				}
			}
			return nil
		}))
		must(t, r.Close())
		if !found {
			t.Errorf("%d workers: the node table has no node %d", workers, centre)
		}
	}
}

// TestPartsOfNodes: several tasks write parts of the node table, and one joins them beside those that write files of edges.
func TestPartsOfNodes(t *testing.T) {
	testkit.NotUnderRace(t, "TestResume, TestBytesDoNotDependOnResources and TestDirectionsInIntervals start the same goroutines")
	n := 3<<18 + 1000
	f := withEdges(n, 1, true, sparseEdges(n))
	o := Options{Budget: budget(t, 256<<20), Threads: 2, Scratch: scratchFolder(t), Split: "random:20,30", Splits: 2}
	whole := storagetest.NewMem()
	_, err := Run(t.Context(), f, openCatalog(t, whole), o)
	must(t, err)
	store := storagetest.NewMem()
	cat := openCatalog(t, store)
	open := func() (dataset.Dataset, error) { return f, nil }
	parts, joins := 0, 0
	for {
		left, err := nextOf(t.Context(), cat, inCatalog(cat))
		must(t, err)
		must(t, cat.Remove(t.Context(), left.Superseded))
		if left.Step == Whole {
			_, err := Run(t.Context(), f, cat, o)
			must(t, err)
			break
		}
		tasks := left.Cut(4)
		if left.Step == Rows {
			joins++
			if _, ok := cat.Lookup(NodesPath); ok || tasks[0].First != left.ordered.rowPieces() {
				t.Errorf("tasks %v of %d files: the first one joins the node table", tasks, left.ordered.rowPieces())
			}
		}
		for _, p := range tasks {
			must(t, Execute(t.Context(), open, cat, o, left.Step, p))
		}
		if left.Step == Nodes {
			parts = len(runs(cat, Nodes))
		}
	}
	if parts != 4 || joins != 1 {
		t.Errorf("%d parts, joined %d times", parts, joins)
	}
	checkSame(t, store, whole)
}

// TestDamagedRanges refuses files of ranked nodes whose bytes are not those that were written.
func TestDamagedRanges(t *testing.T) {
	const n, free = 20_000, 300 << 10
	f := withEdges(n, 1, true, sparseEdges(n))
	ctx, option := context.Background(), func() Options {
		return Options{Budget: budget(t, free), Scratch: scratchFolder(t)}
	}
	open := func() (dataset.Dataset, error) { return f, nil }
	store := storagetest.NewMem()
	cat := openCatalog(t, store)
	var left steps.Left
	for left.Step != Components {
		var err error
		left, err = Next(ctx, cat)
		must(t, err)
		for _, p := range left.Cut(2) {
			if left.Step != Components {
				must(t, Execute(ctx, open, cat, option(), left.Step, p))
			}
		}
	}
	all := runs(cat, Rank)
	j, err := newJob(nil, cat, option())
	must(t, err)
	files, err := j.ordering().openRanked(ctx)
	must(t, errors.Join(err, j.close()))
	lots := 0
	for _, f := range files {
		lots += len(f.Lots)
	}
	closeRanked(files)
	if lots <= len(all) {
		t.Errorf("%d lots in %d files: memory was not short", lots, len(all))
	}
	e := all[1]
	for at := int64(0); at < e.Bytes; at += e.Bytes/60 + 1 {
		damaged := store.CrashClone()
		must(t, damaged.FlipByte(e.Path, at))
		cat := openCatalog(t, damaged)
		err := Execute(ctx, open, cat, option(), Components, steps.Unit(0))
		if err == nil {
			o := option()
			o.Budget = budget(t, 64<<20) // row groups are in memory
			err = Execute(ctx, open, cat, o, Nodes, steps.Unit(0))
		}
		if !errors.Is(err, seal.ErrCorrupt) {
			t.Errorf("byte %d of %d: error %v", at, e.Bytes, err)
		}
	}
}

// TestLabelsInRanges: what is wrong with labels and splits is refused, whoever reads them.
func TestLabelsInRanges(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(f *fake)
		want   string
	}{
		{"a node has two labels", func(f *fake) { f.labels = append(f.labels, labelRow{f.labels[0].id, 1 - f.labels[0].label%2}) }, "label"},
		{"a node is in two parts", func(f *fake) { f.splits = append(f.splits, splitRow{f.splits[0].id, 1 + f.splits[0].split%3}) }, "split"},
		{"a label is none", func(f *fake) { f.labels[10].label = 3 }, "class 3 of 3"},
		{"a label is of no node", func(f *fake) { f.labels[10].id = 5000 }, "label row 11 names node 5000"},
		{"a split is of no node", func(f *fake) { f.splits[10].id = 5000 }, "split row 11 names node 5000"},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := withEdges(3000, 1, true, sparseEdges(3000))
			c.change(f)
			option := func() Options { return Options{Budget: budget(t, 64<<20), Scratch: scratchFolder(t)} }
			_, want := Run(context.Background(), f, openCatalog(t, storagetest.NewMem()), option())
			if !errors.Is(want, dataset.ErrData) {
				t.Fatalf("all in one: %v", want)
			}
			w := &sharedWorkers{
				open: func() (dataset.Dataset, error) { return f, nil }, store: storagetest.NewMem(), draw: func(n int) int { return n / 2 },
				option: option, workers: 2,
			}
			if err := w.do(context.Background()); !errors.Is(err, dataset.ErrData) || err.Error()[len("order 0-1: "):] != want.Error() {
				t.Errorf("in ranges: %v, want %v", err, want)
			}
		})
	}
}
