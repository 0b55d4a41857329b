package partition

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"ndls/catalog"

	"pgregory.net/rapid"

	"ndls/dataset"
	"ndls/internal/mem"
	"ndls/internal/rng"
	"ndls/internal/storage"
	"ndls/internal/testgraph"
)

// uncut is a dataset whose edges can only be read from the beginning.
type uncut struct{ dataset.Dataset }

// sharedWorkers do partitions in pieces, as a cluster does.
type sharedWorkers struct {
	open   func() (dataset.Dataset, error)
	next   func(context.Context, *catalog.Catalog) (Left, error) // nil for Next
	store  storage.Store
	most   int            // tasks of a step
	draw   func(int) int  // a number below
	option func() Options // of the next task
	steps  []string
	// workers, unless 0, has tasks cut as for so many workers.
	workers int
}

// do does all steps, each cut at random, in any order.
func (c *sharedWorkers) do(ctx context.Context) error {
	for {
		cat, err := catalog.Open(ctx, c.store)
		if err != nil {
			return err
		}
		next := c.next
		if next == nil {
			next = Next
		}
		left, err := next(ctx, cat)
		if err != nil {
			return err
		}
		if err := cat.Remove(ctx, left.Superseded); err != nil || left.Step == "" {
			return err
		}
		c.steps = append(c.steps, left.Step)
		if left.Step == Whole {
			ds, err := c.open()
			if err != nil {
				return err
			}
			_, err = Run(ctx, ds, cat, c.option())
			if err := errors.Join(err, ds.Close()); err != nil {
				return err
			}
			continue
		}
		tasks := left.Cut(max(c.workers, 1))
		if c.workers == 0 {
			tasks = c.cut(left.Pieces)
		}
		for _, p := range tasks {
			if err := Execute(ctx, c.open, cat, c.option(), left.Step, p); err != nil {
				return fmt.Errorf("%s %d-%d: %w", left.Step, p.First, p.Last, err)
			}
		}
	}
}

// cut joins pieces that follow each other to some tasks, in any order.
func (c *sharedWorkers) cut(pieces []Piece) (tasks []Piece) {
	begins := map[int]bool{0: true}
	for range c.draw(c.most) {
		begins[c.draw(len(pieces))] = true
	}
	for i, p := range pieces {
		last := len(tasks) - 1
		if !begins[i] && tasks[last].Last == p.First {
			tasks[last].Last = p.Last
			continue
		}
		tasks = append(tasks, p)
	}
	for i := range tasks {
		j := i + c.draw(len(tasks)-i)
		tasks[i], tasks[j] = tasks[j], tasks[i]
	}
	return tasks
}

func rapidDraw(t *rapid.T) func(int) int {
	return func(n int) int { return rapid.IntRange(0, n-1).Draw(t, "choice") }
}

func randomDraw(t *testing.T) func(int) int {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	return rand.New(rand.NewPCG(seed, 0)).IntN
}

// checkSame compares the files of two stores.
func checkSame(t rapid.TB, got, want storage.Store) {
	t.Helper()
	if got, want := openCatalog(t, got).Entries(""), openCatalog(t, want).Entries(""); !slices.Equal(got, want) {
		t.Fatalf("in pieces\n%v, in one\n%v", got, want)
	}
}

// TestPiecesEqualRun compares partitions in pieces with those in one.
func TestPiecesEqualRun(t *testing.T) {
	checks := flag.Lookup("rapid.checks").Value
	before := checks.String()
	must(t, checks.Set("30"))
	defer func() { must(t, checks.Set(before)) }()
	scratch := scratchFolder(t)
	rapid.Check(t, func(t *rapid.T) {
		f := drawGraph(t)
		switch rapid.SampledFrom([]string{"plain", "weights", "directions"}).Draw(t, "edges") {
		case "weights":
			f.info.Weighted = true
			f.weight = func(u, v uint32) float32 { return 1 + float32(rng.Hash(9, uint64(u), uint64(v))%5) }
		case "directions":
			f.info.Directed = true
		}
		var ds dataset.Dataset = f
		if rapid.Bool().Draw(t, "one part") {
			ds = uncut{f}
		}
		o := Options{
			Scratch: scratch, IntervalBlocks: rapid.IntRange(0, 3).Draw(t, "blocks"),
			Features:  rapid.Bool().Draw(t, "features wanted"),
			NoShards:  rapid.Bool().Draw(t, "no shards"),
			Normalize: rapid.SampledFrom([]string{"", NormalizeL1, NormalizeNone}).Draw(t, "normalize"),
		}
		if f.canDraw(2) && rapid.Bool().Draw(t, "random split") {
			o.Split, o.Seed = "random:2,3", rapid.Uint64().Draw(t, "seed")
		}
		drawSparse(t, &o)
		budgets := []*mem.Budget{budget(t, 24<<20), budget(t, 64<<20)}
		c := &sharedWorkers{
			open: func() (dataset.Dataset, error) { return ds, nil }, store: storage.NewMem(),
			most: 5, draw: rapidDraw(t),
		}
		c.option = func() Options {
			o := o
			o.Budget, o.Threads = budgets[c.draw(2)], 1+c.draw(3)
			return o
		}
		whole := storage.NewMem()
		_, err := Run(context.Background(), f, openCatalog(t, whole), c.option())
		must(t, err)
		must(t, c.do(context.Background()))
		checkSame(t, c.store, whole)
		if budgets[0].Free() != 24<<20 || budgets[1].Free() != 64<<20 {
			t.Fatal("bytes were not given back")
		}
	})
}

// TestPiecesUnderMemory has runs, merges of merges, several blocks of run files,
// several intervals and features that are found out to be no float16.
func TestPiecesUnderMemory(t *testing.T) {
	known := randomGraph(3000, 60_000, 70)
	unknown := *known
	unknown.info.NumNodes = -1
	late := wholeNumbers(3000, 70)
	late.features[2000].Dense[50] = 0.1
	intervals := &fake{info: dataset.Info{NumNodes: 2*BlockRows + 1000}}
	s := rng.New(6)
	for range 100_000 {
		intervals.edges = append(intervals.edges, dataset.Edge{U: uint32(s.Intn(2*BlockRows + 1000)), V: uint32(s.Intn(1 + s.Intn(2*BlockRows+1000)))})
	}
	unknownWeights := *weighted(3000, 60_000)
	unknownWeights.info.NumNodes = -1
	intervalWeights := *intervals
	intervalWeights.info.Weighted, intervalWeights.weight = true, unknownWeights.weight
	for _, c := range []struct {
		name        string
		f           *fake
		frees       []int64
		rows, tiles int // how often there is such a step
	}{
		{"number of nodes stated", known, []int64{300 << 10, 1 << 20, 64 << 20}, 1, 1},
		{"number of nodes unknown", &unknown, []int64{12 << 20, 32 << 20}, 1, 1},
		{"float32 in one panel", late, []int64{300 << 10, 64 << 20}, 1, 2},
		{"whole numbers", wholeNumbers(3000, 70), []int64{300 << 10, 64 << 20}, 1, 1},
		{"several intervals", intervals, []int64{40 << 20}, 1, 0},
		{"weights", weighted(3000, 60_000), []int64{500 << 10, 1 << 20, 64 << 20}, 1, 1},
		{"weights, number of nodes unknown", &unknownWeights, []int64{12 << 20, 32 << 20}, 1, 1},
		{"weights, several intervals", &intervalWeights, []int64{64 << 20}, 1, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			scratch := scratchFolder(t)
			cluster := &sharedWorkers{
				open: func() (dataset.Dataset, error) { return c.f, nil }, store: storage.NewMem(), most: 5, draw: randomDraw(t),
			}
			noShards := cluster.draw(2) == 0
			cluster.option = func() Options {
				return Options{
					Budget: budget(t, c.frees[cluster.draw(len(c.frees))]), Threads: 1 + cluster.draw(2), Scratch: scratch,
					Features: true, IntervalBlocks: 1, NoShards: noShards,
				}
			}
			whole := storage.NewMem()
			_, err := Run(context.Background(), c.f, openCatalog(t, whole), cluster.option())
			must(t, err)
			must(t, cluster.do(context.Background()))
			checkSame(t, cluster.store, whole)
			count := func(step string) (n int) {
				for _, s := range cluster.steps {
					if s == step {
						n++
					}
				}
				return n
			}
			// A task that finds float32 tiles makes no others, so that it depends on
			// the order how many panels are left.
			if count(Rows) != c.rows || count(Columns) > c.tiles || (count(Columns) == 0) != (c.tiles == 0) {
				t.Errorf("steps %v", cluster.steps)
			}
		})
	}
}

// TestPiecesOfDatasets takes files and generators of all kinds.
func TestPiecesOfDatasets(t *testing.T) {
	cora := "planetoid:" + testgraph.Published(t, "data/cora") + "/cora"
	for _, c := range []struct{ name, uri string }{
		{"karate", "karate:"},
		{"planetoid", cora},
		{"synthetic", "synthetic:nodes=2000,edges=30000,features=20"},
		{"papers", "papers100m:scale=1/4096"},
		{"synthetic with weights", "synthetic:nodes=2000,edges=30000,features=20,weights=10"},
	} {
		t.Run(c.name, func(t *testing.T) {
			cluster := &sharedWorkers{
				open:  func() (dataset.Dataset, error) { return dataset.Open(context.Background(), c.uri, dataset.Options{}) },
				store: storage.NewMem(), most: 4, draw: randomDraw(t),
			}
			scratch := scratchFolder(t)
			cluster.option = func() Options {
				return Options{Budget: budget(t, 48<<20), Threads: 2, Scratch: scratch, Features: true}
			}
			ds, err := cluster.open()
			must(t, err)
			whole := storage.NewMem()
			_, err = Run(context.Background(), ds, openCatalog(t, whole), cluster.option())
			must(t, errors.Join(err, ds.Close()))
			must(t, cluster.do(context.Background()))
			checkSame(t, cluster.store, whole)
		})
	}
}

// TestPiecesResume fails every storage operation in turn, and goes on, in pieces or
// in one.
func TestPiecesResume(t *testing.T) {
	f := randomGraph(60, 150, 20)
	f.info.NumNodes, f.info.EdgeHint = -1, 200
	scratch := scratchFolder(t)
	option := func() Options { return Options{Budget: budget(t, 6<<20), Scratch: scratch, Features: true} }
	whole := storage.NewMem()
	_, err := Run(context.Background(), f, openCatalog(t, whole), option())
	must(t, err)
	do := func(store storage.Store) error {
		c := &sharedWorkers{open: func() (dataset.Dataset, error) { return f, nil }, store: store, most: 2, draw: func(n int) int { return n / 2 }, option: option}
		return c.do(context.Background())
	}
	counted := storage.NewFaulty(storage.NewMem(), 0)
	must(t, do(counted))
	step := int64(4)
	if testing.Short() {
		step = 20
	}
	for failAt := 1 + rand.Int64N(step); failAt <= counted.Ops(); failAt += step {
		store := storage.NewMem()
		if err := do(storage.NewFaulty(store, failAt)); !errors.Is(err, storage.ErrDisk) {
			t.Errorf("operation %d failed, and the tasks said: %v", failAt, err)
		}
		if rand.IntN(2) == 0 {
			_, err := Run(context.Background(), f, openCatalog(t, store), option())
			must(t, err)
		}
		must(t, do(store))
		checkSame(t, store, whole)
	}
}

// A feature tile that is committed is not written again where the one beside it is
// missing.
func TestTilesThatAreThereAreLeftAlone(t *testing.T) {
	ctx := context.Background()
	const nodes = 50
	graph := randomGraph(nodes, 100, 40)
	store := storage.NewCounting(storage.NewMem())
	cat := openCatalog(t, store)
	open := func() (dataset.Dataset, error) { return graph, nil }
	option := func() Options { return Options{Budget: budget(t, 48<<20), Scratch: scratchFolder(t), Features: true} }
	for {
		left, err := Next(ctx, cat)
		must(t, err)
		if left.Step == Whole {
			break
		}
		for _, p := range left.Cut(1) {
			must(t, Execute(ctx, open, cat, option(), left.Step, p))
		}
	}
	all := cat.Entries(catalog.KindFeatures)
	if len(all) != 3 {
		t.Fatalf("%d tiles", len(all))
	}
	for i, e := range all {
		if e.Lo != 0 || e.Hi != nodes || int(e.First) != i || e.ValueType != catalog.Float32 {
			t.Errorf("the entry of tile %d is %+v", i, e)
		}
	}
	must(t, cat.Remove(ctx, func(e catalog.Entry) bool { return e.Path == all[1].Path }))
	before := store.BytesWritten()
	must(t, Execute(ctx, open, cat, option(), Columns, Piece{0, 3}))
	if got, _ := cat.Lookup(all[1].Path); got != all[1] {
		t.Errorf("the tile was made again as %+v, want %+v", got, all[1])
	}
	if n := store.BytesWritten() - before; n < nodes*64 || n > 2*nodes*64-1 {
		t.Errorf("%d bytes written for a tile of %d", n, nodes*64)
	}
}

func TestPiecesThatAreNone(t *testing.T) {
	f := randomGraph(60, 150, 20)
	cat := openCatalog(t, storage.NewMem())
	o := Options{Budget: budget(t, 48<<20), Scratch: scratchFolder(t), Features: true}
	open := func() (dataset.Dataset, error) { return f, nil }
	for _, c := range []struct {
		step string
		p    Piece
		want string
	}{
		{Split, Piece{5, 5}, "there is no split 5 to 5"},
		{Split, Piece{0, Slices + 1}, "there is no split"},
		{Merge, Piece{0, Slices}, "end at 0, and 0 to 1024 are needed"},
		{Order, Piece{0, 1}, "end at 0, and 0 to 1024 are needed"},
		{Rows, Piece{0, 1}, "there is no rows 0 to 1"},
		{Columns, Piece{0, 1}, "there is no columns 0 to 1"},
		{"fold", Piece{0, 1}, "there is no fold"},
	} {
		if err := Execute(context.Background(), open, cat, o, c.step, c.p); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s %v: %v, want %q", c.step, c.p, err, c.want)
		}
	}
}
