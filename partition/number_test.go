package partition

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ndls/catalog"
	"ndls/dataset"
	"ndls/internal/inputid"
	"ndls/internal/storage"
	"ndls/internal/storage/storagetest"
	"ndls/internal/testkit"
	"ndls/shards"
)

// keyedTables writes a graph of n nodes with the ids that name gives as tables, each in
// several files, and returns its URI. Node n-1 has no edge.
func keyedTables(t testing.TB, n, m int, name func(i int) string) string {
	t.Helper()
	dir := t.TempDir()
	random := rand.New(rand.NewPCG(uint64(n), uint64(m)))
	write := func(table string, files, rows int, head string, row func(i int) string) {
		must(t, os.MkdirAll(filepath.Join(dir, table), 0o755))
		for f := range files {
			var text strings.Builder
			text.WriteString(head + "\n")
			for i := rows * f / files; i < rows*(f+1)/files; i++ {
				text.WriteString(row(i) + "\n")
			}
			must(t, os.WriteFile(filepath.Join(dir, table, fmt.Sprintf("part-%03d.csv", f)), []byte(text.String()), 0o644))
		}
	}
	write("edges", 7, m, "from,to", func(int) string {
		u := random.IntN(n - 1)
		return name(u) + "," + name(u*random.IntN(n-1)/(n-1))
	})
	order := random.Perm(n)
	write("nodes", 3, n, "f0,key,f1,topic,set", func(i int) string {
		v := order[i]
		return fmt.Sprintf("%d,%s,%g,%s,%s", v, name(v), float64(v)/8, []string{"a", "b", "c", ""}[v%4], []string{"train", "valid", "test"}[v%3])
	})
	return "table:" + dir + "/edges?src=from&dst=to&nodes=" + dir + "/nodes&id=key&features=f0,f1&label=topic&split=set"
}

func openTables(t testing.TB, uri string) dataset.Dataset {
	t.Helper()
	ds, err := dataset.Open(context.Background(), uri, dataset.Options{})
	must(t, err)
	t.Cleanup(func() { must(t, ds.Close()) })
	return ds
}

// named are names in whose order, by bytes or by value, node i comes i-th.
var named = map[string]func(i int) string{
	"string": func(i int) string { return fmt.Sprintf("user/%07d%s", i, strings.Repeat("é", i%5)) },
	"int64":  func(i int) string { return fmt.Sprint(int64(i)*1_000_000_007 - 9_000_000_000) },
	"uint64": func(i int) string { return fmt.Sprint(uint64(i)*3 + 1<<63) },
}

// TestNumberedGraph compares a graph of any ids with the same graph of ids that are numbers:
// all files but those with ids have the same bytes, for any budget, threads and workers.
func TestNumberedGraph(t *testing.T) {
	testkit.NotUnderRace(t, "TestResume, TestBytesDoNotDependOnResources and TestDirectionsInIntervals start the same goroutines")
	const n, m = 30_000, 60_000
	ctx := context.Background()
	run := func(uri string, free int64, threads int) (*catalog.Catalog, shards.Summary) {
		o := Options{Budget: budget(t, free), Threads: threads, Scratch: scratchFolder(t), Features: true}
		cat := openCatalog(t, storagetest.NewMem())
		s, err := Run(ctx, openTables(t, uri), cat, o)
		must(t, err)
		if b := o.Budget; b.Free() != free {
			t.Errorf("%d bytes of the budget were not given back", free-b.Free())
		}
		return cat, s
	}
	plain, want := run(keyedTables(t, n, m, func(i int) string { return fmt.Sprint(i) }), 64<<20, 2)
	if want.IDs != "" || want.Nodes != n || want.Features != 2 || len(want.Classes) != 3 || len(want.Warnings) != 1 || !strings.Contains(want.Warnings[0], "have no edge") {
		t.Fatalf("%+v", want)
	}
	for typ, name := range named {
		uri := keyedTables(t, n, m, name)
		var first []catalog.Entry
		for _, c := range []struct {
			free    int64
			threads int
		}{{64 << 20, 1}, {8 << 20, 3}, {20 << 20, 16}} {
			cat, s := run(uri, c.free, c.threads)
			if first == nil {
				first = cat.Entries("")
				checkNumbered(t, cat, s, plain, want, typ, name)
			}
			if !slices.Equal(cat.Entries(""), first) {
				t.Errorf("%s: with %d bytes and %d threads other files are committed:\n%v\n%v", typ, c.free, c.threads, cat.Entries(""), first)
			}
		}
		store := storagetest.NewMem()
		w := &sharedWorkers{
			open: func() (dataset.Dataset, error) { return dataset.Open(ctx, uri, dataset.Options{}) },
			next: NextNumbered, store: store, most: 4, draw: randomDraw(t),
			option: func() Options {
				return Options{Budget: budget(t, 20<<20), Threads: 2, Scratch: scratchFolder(t), Features: true}
			},
		}
		must(t, w.do(ctx))
		if w.steps[0] != Number || !slices.Equal(openCatalog(t, store).Entries(""), first) {
			t.Errorf("%s: workers that share the steps %v commit other files", typ, w.steps)
		}
	}
}

// TestNodeTwice refuses a table that has a node in two rows.
func TestNodeTwice(t *testing.T) {
	uri := keyedTables(t, 10, 20, func(i int) string { return fmt.Sprint("n", max(i, 1)) })
	_, err := Run(t.Context(), openTables(t, uri), openCatalog(t, storagetest.NewMem()), Options{Budget: budget(t, 64<<20), Scratch: scratchFolder(t)})
	if !errors.Is(err, dataset.ErrData) || !strings.Contains(err.Error(), "n1") {
		t.Errorf("a node in two rows: %v", err)
	}
}

// checkNumbered compares a graph with the plain one, and its ids with name.
func checkNumbered(t *testing.T, cat *catalog.Catalog, s shards.Summary, plain *catalog.Catalog, want shards.Summary, typ string, name func(int) string) {
	t.Helper()
	ctx := context.Background()
	if s.IDs != typ {
		t.Errorf("ids of type %q", s.IDs)
	}
	s.IDs = ""
	if fmt.Sprint(s) != fmt.Sprint(want) {
		t.Errorf("%s: %+v, want %+v", typ, s, want)
	}
	for _, kind := range []string{catalog.KindEdges, catalog.KindHops, catalog.KindFeatures} {
		if got, want := cat.Entries(kind), plain.Entries(kind); !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", typ, got, want)
		}
	}
	open := func(cat *catalog.Catalog, path string) storage.Reader {
		e, ok := cat.Lookup(path)
		if !ok {
			t.Fatalf("no %s", path)
		}
		r, err := cat.Open(ctx, e)
		must(t, err)
		t.Cleanup(func() { _ = r.Close() })
		return r
	}
	var nodes, plainNodes []string
	rows := func(to *[]string) func(int64, shards.NodeBatch) error {
		return func(_ int64, b shards.NodeBatch) error {
			for i := range b.ID {
				*to = append(*to, fmt.Sprint(b.ID[i], b.Degree[i], b.Component[i], b.Label[i], b.Split[i]))
			}
			return nil
		}
	}
	must(t, shards.ReadNodes(open(cat, NodesPath), "nodes", shards.Readers{}, rows(&nodes)))
	must(t, shards.ReadNodes(open(plain, NodesPath), "nodes", shards.Readers{}, rows(&plainNodes)))
	if !slices.Equal(nodes, plainNodes) {
		t.Errorf("%s: the node table differs", typ)
	}
	keys, err := shards.OpenNodeIDs(open(cat, NodesPath), "nodes")
	must(t, err)
	idType, node := keys.IDs().Type, 0
	must(t, keys.Each(func(_ int64, keys [][]byte) error {
		for _, key := range keys {
			var number int
			if _, err := fmt.Sscan(nodes[node], &number); err != nil {
				return err
			}
			if got := string(idType.AppendText(nil, key)); got != name(number) {
				return fmt.Errorf("node %d with number %d has the id %s, not %s", node, number, got, name(number))
			}
			node++
		}
		return nil
	}))
	ids, err := shards.OpenIDs(open(cat, shards.IDsPath), "ids")
	must(t, err)
	at := 0
	must(t, ids.Each(func(_ int64, keys [][]byte) error {
		for _, key := range keys {
			if got := string(idType.AppendText(nil, key)); got != name(at) {
				return fmt.Errorf("id %d is %s, not %s", at, got, name(at))
			}
			at++
		}
		return nil
	}))
	if node != int(s.Nodes) || at != int(s.Nodes) || idType != map[string]inputid.Type{"string": inputid.String, "int64": inputid.Int64, "uint64": inputid.Uint64}[typ] {
		t.Errorf("%d nodes, %d ids of type %s", node, at, idType)
	}
}

// TestNumberedGoesOn fails operations of the store while a graph with text for ids is
// partitioned, and goes on.
func TestNumberedGoesOn(t *testing.T) {
	testkit.NotUnderRace(t, "TestResume, TestBytesDoNotDependOnResources and TestDirectionsInIntervals start the same goroutines")
	ds := openTables(t, keyedTables(t, 2000, 5000, named["string"]))
	run := func(store storage.Store) error {
		o := Options{Budget: budget(t, 16<<20), Scratch: scratchFolder(t), Features: true}
		cat, err := catalog.Open(context.Background(), store)
		if err == nil {
			_, err = Run(context.Background(), ds, cat, o)
		}
		return err
	}
	whole := storagetest.NewMem()
	counted := storagetest.NewFaulty(whole, 0)
	must(t, run(counted))
	for failAt := int64(1); failAt <= counted.Ops(); failAt += 1 + counted.Ops()/60 {
		store := storagetest.NewMem()
		if err := run(storagetest.NewFaulty(store, failAt)); !errors.Is(err, storage.ErrDisk) {
			t.Errorf("operation %d failed, and the run said: %v", failAt, err)
		}
		if err := run(store); err != nil {
			t.Fatalf("after operation %d failed: %v", failAt, err)
		}
		checkSame(t, store, whole)
	}
}
