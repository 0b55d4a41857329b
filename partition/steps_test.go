package partition

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"ndls/catalog"

	"pgregory.net/rapid"

	"ndls/dataset"
	"ndls/internal/mem"
	"ndls/internal/rng"
	"ndls/internal/seal"
	"ndls/internal/storage"
	"ndls/internal/storage/storagetest"
	"ndls/internal/testgraph"
	"ndls/steps"
)

// uncut is a dataset whose edges can only be read from the beginning.
type uncut struct{ dataset.Dataset }

// sharedWorkers do partitions in pieces, as a cluster does.
type sharedWorkers struct {
	open   func() (dataset.Dataset, error)
	next   func(context.Context, *catalog.Catalog) (steps.Left, error) // nil for Next
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
func (c *sharedWorkers) cut(pieces []steps.Piece) (tasks []steps.Piece) {
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
		f.cuts = rapid.Bool().Draw(t, "features cut")
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
			open: func() (dataset.Dataset, error) { return ds, nil }, store: storagetest.NewMem(),
			most: 5, draw: rapidDraw(t),
		}
		c.option = func() Options {
			o := o
			o.Budget, o.Threads = budgets[c.draw(2)], 1+c.draw(3)
			return o
		}
		whole := storagetest.NewMem()
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
	cut, cutLate := *wholeNumbers(3000, 70), *wholeNumbers(3000, 70)
	cut.cuts, cutLate.cuts = true, true
	cutLate.features[2000].Dense[50] = 0.1
	severalTiles := &fake{info: dataset.Info{NumNodes: BlockRows + 1000, NumFeatures: 1}, edges: known.edges, idRows: true, cuts: true}
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
		{"features in parts", &cut, []int64{300 << 10, 64 << 20}, 1, 1},
		{"features in parts, float32 in one", &cutLate, []int64{300 << 10, 64 << 20}, 1, 1},
		{"features in parts, several intervals", severalTiles, []int64{40 << 20, 400 << 20}, 1, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			scratch := scratchFolder(t)
			cluster := &sharedWorkers{
				open: func() (dataset.Dataset, error) { return c.f, nil }, store: storagetest.NewMem(), most: 5, draw: randomDraw(t),
			}
			noShards := cluster.draw(2) == 0
			cluster.option = func() Options {
				return Options{
					Budget: budget(t, c.frees[cluster.draw(len(c.frees))]), Threads: 1 + cluster.draw(2), Scratch: scratch,
					Features: true, IntervalBlocks: 1, NoShards: noShards,
				}
			}
			whole := storagetest.NewMem()
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
			makes := Columns
			if c.f.cuts {
				makes = Tiles
			}
			if n := count(makes); count(Rows) != c.rows || n > c.tiles || (n == 0) != (c.tiles == 0) || count(Deal) > 0 != c.f.cuts {
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
		{"papers", "papers100m:scale=1/4096,mix=slow"},
		{"synthetic with weights", "synthetic:nodes=2000,edges=30000,features=20,weights=10"},
	} {
		t.Run(c.name, func(t *testing.T) {
			cluster := &sharedWorkers{
				open:  func() (dataset.Dataset, error) { return dataset.Open(context.Background(), c.uri, dataset.Options{}) },
				store: storagetest.NewMem(), most: 4, draw: randomDraw(t),
			}
			scratch := scratchFolder(t)
			cluster.option = func() Options {
				return Options{Budget: budget(t, 48<<20), Threads: 2, Scratch: scratch, Features: true}
			}
			ds, err := cluster.open()
			must(t, err)
			whole := storagetest.NewMem()
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
	f.info.NumNodes, f.info.EdgeHint, f.cuts = -1, 200, rand.IntN(2) == 0
	if f.info.Weighted = rand.IntN(2) == 0; f.info.Weighted {
		f.weight = unevenWeight
	}
	t.Logf("features in parts: %v, weights: %v", f.cuts, f.info.Weighted)
	scratch := scratchFolder(t)
	option := func() Options { return Options{Budget: budget(t, 6<<20), Scratch: scratch, Features: true} }
	whole := storagetest.NewMem()
	_, err := Run(context.Background(), f, openCatalog(t, whole), option())
	must(t, err)
	do := func(store storage.Store) error {
		c := &sharedWorkers{open: func() (dataset.Dataset, error) { return f, nil }, store: store, most: 2, draw: func(n int) int { return n / 2 }, option: option}
		return c.do(context.Background())
	}
	counted := storagetest.NewFaulty(storagetest.NewMem(), 0)
	must(t, do(counted))
	step := int64(4)
	if f.info.Weighted {
		step = 20 // there are more files, and more operations
	}
	if testing.Short() {
		step *= 5
	}
	for failAt := 1 + rand.Int64N(step); failAt <= counted.Ops(); failAt += step {
		store := storagetest.NewMem()
		if err := do(storagetest.NewFaulty(store, failAt)); !errors.Is(err, storage.ErrDisk) {
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
	store := storage.NewCounting(storagetest.NewMem())
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
	must(t, Execute(ctx, open, cat, option(), Columns, steps.Piece{First: 0, Last: 3}))
	if got, _ := cat.Lookup(all[1].Path); got != all[1] {
		t.Errorf("the tile was made again as %+v, want %+v", got, all[1])
	}
	if n := store.BytesWritten() - before; n < nodes*64 || n > 2*nodes*64-1 {
		t.Errorf("%d bytes written for a tile of %d", n, nodes*64)
	}
}

func TestPiecesThatAreNone(t *testing.T) {
	f := randomGraph(60, 150, 20)
	cat := openCatalog(t, storagetest.NewMem())
	o := Options{Budget: budget(t, 48<<20), Scratch: scratchFolder(t), Features: true}
	open := func() (dataset.Dataset, error) { return f, nil }
	for _, c := range []struct {
		step string
		p    steps.Piece
		want string
	}{
		{Split, steps.Piece{First: 5, Last: 5}, "step split has no pieces 5 to 5"},
		{Split, steps.Piece{First: 0, Last: Slices + 1}, "step split has no pieces"},
		{Merge, steps.Piece{First: 0, Last: Slices}, "end at piece 0; pieces 0 to 1024 are needed"},
		{Order, steps.Unit(0), "end at piece 0; pieces 0 to 1024 are needed"},
		{Rows, steps.Unit(0), "step rows has no pieces 0 to 1"},
		{Columns, steps.Unit(0), "step columns has no pieces 0 to 1"},
		{"fold", steps.Unit(0), "step fold has no pieces"},
	} {
		if err := Execute(context.Background(), open, cat, o, c.step, c.p); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s %v: %v, want %q", c.step, c.p, err, c.want)
		}
	}
}

// TestFeaturesInParts names the node that has no row of features or two, whichever workers read the rows, and the first
// row of no node.
func TestFeaturesInParts(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(f *fake)
		want   string
	}{
		{"one comes twice in a part", func(f *fake) { f.features[11].ID = f.features[10].ID }, "has a second feature row"},
		{"one comes twice in two parts", func(f *fake) { f.features[2900].ID = f.features[10].ID }, "has a second feature row"},
		{"one is missing", func(f *fake) { f.features = f.features[:2999] }, "has no feature row"},
		{"one is of no node", func(f *fake) { f.features[2100].ID, f.features[2200].ID = 3001, 3002 }, "feature row 2101 names node 3001"},
		{"one is too long", func(f *fake) { f.features[2100].Dense = make([]float32, 41) }, "feature row 2101"},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := randomGraph(3000, 20_000, 40)
			f.cuts = true
			c.change(f)
			option := func() Options {
				return Options{Budget: budget(t, 64<<20), Threads: 2, Scratch: scratchFolder(t), Features: true}
			}
			_, want := Run(context.Background(), f, openCatalog(t, storagetest.NewMem()), option())
			if !errors.Is(want, dataset.ErrData) || !strings.Contains(want.Error(), c.want) {
				t.Fatalf("all in one: %v", want)
			}
			shared := &sharedWorkers{
				open: func() (dataset.Dataset, error) { return f, nil }, store: storagetest.NewMem(), draw: func(n int) int { return n / 2 },
				option: option, workers: 2,
			}
			if err := shared.do(context.Background()); !errors.Is(err, dataset.ErrData) || !strings.HasSuffix(err.Error(), want.Error()) {
				t.Errorf("in parts: %v, want %v", err, want)
			}
		})
	}
}

// TestDamagedParts refuses feature rows whose bytes are not those that were written, and takes those once that two attempts have
// left.
func TestDamagedParts(t *testing.T) {
	f := wholeNumbers(3000, 40)
	f.cuts = true
	ctx, option := context.Background(), func() Options {
		return Options{Budget: budget(t, 64<<20), Scratch: scratchFolder(t), Features: true}
	}
	open := func() (dataset.Dataset, error) { return f, nil }
	store := storagetest.NewMem()
	cat := openCatalog(t, store)
	var left steps.Left
	for left.Step != Tiles {
		var err error
		left, err = Next(ctx, cat)
		must(t, err)
		for _, p := range left.Cut(2) {
			if left.Step != Tiles {
				must(t, Execute(ctx, open, cat, option(), left.Step, p))
			}
		}
	}
	e := runs(cat, Deal)[1]
	for _, at := range []int64{100, e.Bytes / 3, e.Bytes / 2, e.Bytes - 20, e.Bytes - 2} {
		damaged := store.CrashClone()
		must(t, damaged.FlipByte(e.Path, at))
		if err := Execute(ctx, open, openCatalog(t, damaged), option(), Tiles, steps.Piece{First: 0, Last: 3}); !errors.Is(err, seal.ErrCorrupt) {
			t.Errorf("byte %d of %d: error %v", at, e.Bytes, err)
		}
	}
	// Two attempts may leave the same rows.
	r, err := cat.Stream(ctx, e)
	must(t, err)
	f2, err := cat.Create(ctx, keysOf(Deal, e.Path+"0").Pieces(int(e.FirstPiece), int(e.LastPiece)))
	must(t, err)
	_, err = io.Copy(f2, r)
	must(t, errors.Join(err, r.Close(), cat.Commit(ctx, f2)))
	must(t, Execute(ctx, open, cat, option(), Tiles, steps.Piece{First: 0, Last: 3}))
}
