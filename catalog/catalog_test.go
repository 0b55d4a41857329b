package catalog

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"ndls/internal/seal"
	"ndls/internal/seal/sealtest"
	"ndls/internal/storage/storagetest"

	"golang.org/x/sync/errgroup"

	"ndls/internal/storage"
)

func openCatalog(t testing.TB, s storage.Store) *Catalog {
	t.Helper()
	c, err := Open(context.Background(), s)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// put commits one file.
func put(c *Catalog, kind, path, data string, interval, block int32) error {
	e := Describe(kind, path)
	e.Interval, e.Block = interval, block
	f, err := c.Create(context.Background(), e)
	if err != nil {
		return err
	}
	defer f.Abort()
	if _, err := io.WriteString(f, data); err != nil {
		return err
	}
	f.Rows = int64(len(data))
	return c.Commit(context.Background(), f)
}

func mustPut(t testing.TB, c *Catalog, kind, path, data string, interval, block int32) Entry {
	t.Helper()
	if err := put(c, kind, path, data, interval, block); err != nil {
		t.Fatal(err)
	}
	e, ok := c.Lookup(path)
	if !ok {
		t.Fatalf("%s is not listed", path)
	}
	return e
}

func paths(entries []Entry) []string {
	var out []string
	for _, e := range entries {
		out = append(out, e.Path)
	}
	return out
}

func TestCatalogListsWhatWasCommitted(t *testing.T) {
	for name, store := range map[string]storage.Store{"mem": storagetest.NewMem(), "local": newLocal(t)} {
		t.Run(name, func(t *testing.T) {
			c := openCatalog(t, store)
			if got := c.Entries(""); len(got) != 0 {
				t.Fatalf("new catalogue lists %v", got)
			}
			mustPut(t, c, KindEdges, "graph/edges/part-00001.parquet", "one", 1, NotApplicable)
			mustPut(t, c, KindNodes, "graph/nodes.parquet", "nodes", NotApplicable, NotApplicable)
			mustPut(t, c, KindEdges, "graph/edges/part-00000.parquet", "zero", 0, NotApplicable)
			mustPut(t, c, KindFeatures, fmt.Sprintf("graph/features/tile-%05d-%05d.f32", 0, 10), "tile", 0, 10)
			got := mustPut(t, c, KindFeatures, fmt.Sprintf("graph/features/tile-%05d-%05d.f32", 0, 9), "tile", 0, 9)
			sum := sha256.Sum256([]byte("tile"))
			want := Entry{
				Kind: KindFeatures, Path: "graph/features/tile-00000-00009.f32", Rows: 4, Bytes: 4,
				Checksum: "sha256:" + hex.EncodeToString(sum[:]), Interval: 0, Block: 9, Hop: -1, Model: -1,
			}
			if got != want {
				t.Errorf("entry %+v, want %+v", got, want)
			}
			for _, c := range []*Catalog{c, openCatalog(t, store)} {
				if got, want := paths(c.Entries(KindEdges)), []string{"graph/edges/part-00000.parquet", "graph/edges/part-00001.parquet"}; !slices.Equal(got, want) {
					t.Errorf("edges %v, want %v", got, want)
				}
				if got, want := paths(c.Entries("")), []string{
					"graph/nodes.parquet", "graph/edges/part-00000.parquet", "graph/features/tile-00000-00009.f32",
					"graph/features/tile-00000-00010.f32", "graph/edges/part-00001.parquet",
				}; !slices.Equal(got, want) {
					t.Errorf("all %v, want %v", got, want)
				}
				for _, e := range c.Entries("") {
					if err := c.Verify(context.Background(), e); err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
}

func newLocal(t testing.TB) *storage.Local {
	t.Helper()
	l, err := storage.NewLocal(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func TestCatalogBytesDoNotDependOnOrder(t *testing.T) {
	a, b := storagetest.NewMem(), storagetest.NewMem()
	ca, cb := openCatalog(t, a), openCatalog(t, b)
	for i := range 5 {
		mustPut(t, ca, KindEdges, fmt.Sprint("e", i), "x", int32(i), -1)
		mustPut(t, cb, KindEdges, fmt.Sprint("e", 4-i), "x", int32(4-i), -1)
	}
	for _, c := range []*Catalog{ca, cb} {
		if err := c.Publish(context.Background()); err != nil {
			t.Fatal(err)
		}
	}
	if x, y := storeBytes(t, a, Name), storeBytes(t, b, Name); !bytes.Equal(x, y) {
		t.Error("the order of commits changes the catalogue's bytes")
	}
}

func storeBytes(t testing.TB, s storage.Store, name string) []byte {
	t.Helper()
	r, err := s.Open(context.Background(), name)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	data := make([]byte, r.Size())
	if err := seal.ReadFull(r, name, data, 0); err != nil {
		t.Fatal(err)
	}
	return data
}

// workload is a sequence of commits, a replacement and a removal, and what the
// catalogue lists in the end.
func workload(store storage.Store) error {
	ctx := context.Background()
	c, err := Open(ctx, store)
	if err != nil {
		return err
	}
	// One step for two files: both or none.
	var files []*File
	for i, path := range []string{"pair/a", "pair/b"} {
		f, err := c.Create(ctx, Describe(KindFeatures, path).In(0).Panels(i, i+1))
		if err != nil {
			return err
		}
		defer f.Abort()
		if _, err := io.WriteString(f, "contents of "+path); err != nil {
			return err
		}
		files = append(files, f)
	}
	if err := c.Commit(ctx, files...); err != nil {
		return err
	}
	for _, data := range []string{"first", "second version"} {
		if err := put(c, KindModel, "model", data, -1, -1); err != nil {
			return err
		}
	}
	if err := put(c, KindHops, "hops", "derived", 0, -1); err != nil {
		return err
	}
	return c.Remove(ctx, func(e Entry) bool { return e.Kind == KindHops })
}

var workloadResult = []string{"model", "pair/a", "pair/b"}

// checkConsistent opens the catalogue of a store and verifies all it lists.
func checkConsistent(t *testing.T, what string, store storage.Store) *Catalog {
	t.Helper()
	c := openCatalog(t, store)
	listed := map[string]bool{}
	for _, e := range c.Entries("") {
		listed[e.Path] = true
		if err := c.Verify(context.Background(), e); err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	if listed["pair/a"] != listed["pair/b"] {
		t.Errorf("%s: one file of a pair is listed", what)
	}
	return c
}

func TestCatalogSurvivesAFailureOfEveryOperation(t *testing.T) {
	for at := int64(1); ; at++ {
		store := storagetest.NewMem()
		faulty := storagetest.NewFaulty(store, at)
		err := workload(faulty)
		what := fmt.Sprintf("failure of operation %d", at)
		checkConsistent(t, what, store)
		checkConsistent(t, what+", crash", store.CrashClone())
		if faulty.Ops() < at {
			if err != nil || at < 20 {
				t.Errorf("%d operations without a fault: %v", at-1, err)
			}
			return
		}
		if !errors.Is(err, storage.ErrDisk) {
			t.Errorf("%s: %v, want ErrDisk", what, err)
		}
		// Run again: the same end.
		if err := workload(store); err != nil {
			t.Errorf("%s, again: %v", what, err)
		}
		c := checkConsistent(t, what+", again", store)
		got := paths(c.Entries(""))
		if slices.Sort(got); !slices.Equal(got, workloadResult) {
			t.Errorf("%s, again: lists %v, want %v", what, got, workloadResult)
		}
	}
}

// A store whose machine loses power before each operation.
func TestCatalogSurvivesACrashBeforeEveryOperation(t *testing.T) {
	store := &crashing{Mem: storagetest.NewMem()}
	if err := workload(store); err != nil {
		t.Fatal(err)
	}
	if len(store.clones) < 10 {
		t.Fatalf("%d crashes", len(store.clones))
	}
	for i, clone := range store.clones {
		what := fmt.Sprintf("crash %d", i)
		c := checkConsistent(t, what, clone)
		orphans, _, err := c.Orphans(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range orphans {
			if _, listed := c.Lookup(o.Name); listed {
				t.Errorf("%s: %s is listed and an orphan", what, o.Name)
			}
			if err := clone.Remove(context.Background(), o.Name); err != nil {
				t.Error(err)
			}
		}
		checkConsistent(t, what+", orphans removed", clone)
	}
}

type crashing struct {
	*storagetest.Mem
	clones []*storagetest.Mem
}

func (c *crashing) Create(ctx context.Context, name string) (storage.Writer, error) {
	c.clones = append(c.clones, c.CrashClone())
	w, err := c.Mem.Create(ctx, name)
	return &crashingWriter{w, c}, err
}

func (c *crashing) Remove(ctx context.Context, name string) error {
	c.clones = append(c.clones, c.CrashClone())
	return c.Mem.Remove(ctx, name)
}

type crashingWriter struct {
	storage.Writer
	c *crashing
}

func (w *crashingWriter) Commit(ctx context.Context) (storage.Digest, error) {
	w.c.clones = append(w.c.clones, w.c.CrashClone())
	return w.Writer.Commit(ctx)
}

func TestOrphans(t *testing.T) {
	ctx := context.Background()
	store := storagetest.NewMem()
	c := openCatalog(t, store)
	mustPut(t, c, KindEdges, "listed", "x", 0, -1)
	for _, name := range []string{"run.json", "report.json", "report.html", "graph/edges/part-00001.parquet", "notes.txt", "plots/fig.png", "smoothed/mine.csv", "run.json.txt"} {
		storagetest.Write(t, store, name, []byte("x"))
	}
	f, err := c.Create(ctx, Describe(KindEdges, "graph/edges/part-00002.parquet").In(0))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Abort()
	orphans, foreign, err := c.Orphans(ctx)
	if err != nil {
		t.Fatal(err)
	}
	names := func(list []storage.Info) (names []string) {
		for _, i := range list {
			name, _, _ := strings.Cut(i.Name, ".0000")
			names = append(names, name)
		}
		return names
	}
	if got, want := names(orphans), []string{"graph/edges/part-00001.parquet", "graph/edges/part-00002.parquet"}; !slices.Equal(got, want) {
		t.Errorf("orphans %v, want %v", got, want)
	}
	if got, want := names(foreign), []string{"notes.txt", "plots/fig.png", "run.json.txt", "smoothed/mine.csv"}; !slices.Equal(got, want) {
		t.Errorf("foreign %v, want %v", got, want)
	}
}

func TestMade(t *testing.T) {
	for _, name := range []string{
		"scratch/scratch-123.tmp", "scratch/host-1-ab/partition-99/000001.spill", "graph/hops/part-00000-0123456789ab.hops",
		"graph/features/tile-00000-00001.f32.rows-0-32768", "run.json.0123456789abcdef.tmp",
		"checkpoints/smooth/abc/00000-00002/hop-00003-abcdefgh", "model/tally-00000.json", "graph/runs/pairs/0000-0512",
		"predictions/best/run-000/part-00001.panels-00011", "predictions/tiles/tile-00000-00003.rows.0123456789abcdef.tmp",
		"predictions/tiles/tile-00000-00003.rows.rows-0-32768", "predictions/depth.json", "predictions/tally-00000.json", "predictions/written.json", "predictions/breakdown-00000.json",
		"predictions/depth/panel-00002.rows-0-32768", "lsi/epsilon-0.05/part-00000.parquet",
		"lsi/rows/00002-00013", "lsi/squares/00000-00002-00013", "lsi/found/0-1048576-0.05-00013", "lsi/found/0-1048576-sample-00013",
		"lsi/rows/00002-00013.rows-0-32768", "lsi/squares/00000-00002-00013.rows-0-32768",
		"lsi/sample.json", "graph/splits/split-001.u8", "model/scores-00000", "predictions/scores-00001", "graph/reversed/part-00000.parquet", "graph/reversed-hops/part-00000.hops", "hops/part-00000.arrow.0123456789abcdef.tmp",
	} {
		if !Made(name) {
			t.Errorf("%s is not taken for a file of ndls", name)
		}
	}
	for _, name := range []string{"notes.tmp", "scratch/my.txt", "graph/edges/part-00000.parquet.bak", "model/mine.pt", "x/graph/nodes.parquet", "catalog.parquet~"} {
		if Made(name) {
			t.Errorf("%s is taken for a file of ndls", name)
		}
	}
}

func TestIsOutput(t *testing.T) {
	for name, want := range map[string]bool{
		"graph/nodes.parquet": true, "model/run-000.mlp": true,
		"scratch/scratch-123.tmp": false, "run.json": false, "catalog.parquet": false, "catalog/0000000001.json": false, "journal/00000001.json": false, "cluster/key": false,
	} {
		if IsOutput(name) != want {
			t.Errorf("%s is output: %v", name, !want)
		}
	}
}

func TestRemoveDeletesFilesToo(t *testing.T) {
	ctx := context.Background()
	store := storagetest.NewMem()
	c := openCatalog(t, store)
	mustPut(t, c, KindEdges, "a", "x", 0, -1)
	mustPut(t, c, KindHops, "b", "x", 0, -1)
	if err := c.Remove(ctx, func(e Entry) bool { return e.Kind == KindEdges }); err != nil {
		t.Fatal(err)
	}
	if _, ok := c.Lookup("a"); ok {
		t.Error("a is still listed")
	}
	if _, err := store.Stat(ctx, "a"); !errors.Is(err, storage.ErrNotExist) {
		t.Errorf("a is still there: %v", err)
	}
	if got := paths(openCatalog(t, store).Entries("")); !slices.Equal(got, []string{"b"}) {
		t.Errorf("reopened: %v", got)
	}
}

func TestDamageIsFoundAgainstTheCatalogue(t *testing.T) {
	ctx := context.Background()
	for name, damage := range map[string]func(s *storagetest.Mem) error{
		"a byte":   func(s *storagetest.Mem) error { return s.FlipByte("f", 3_000_000) },
		"shorter":  func(s *storagetest.Mem) error { return s.Corrupt("f", func(b []byte) []byte { return b[:len(b)-1] }) },
		"longer":   func(s *storagetest.Mem) error { return s.Corrupt("f", func(b []byte) []byte { return append(b, 0) }) },
		"vanished": func(s *storagetest.Mem) error { return s.Remove(ctx, "f") },
	} {
		t.Run(name, func(t *testing.T) {
			store := storagetest.NewMem()
			c := openCatalog(t, store)
			e := mustPut(t, c, KindEdges, "f", strings.Repeat("0123456789", 500_000), 0, -1)
			if err := c.Verify(ctx, e); err != nil {
				t.Fatal(err)
			}
			if err := damage(store); err != nil {
				t.Fatal(err)
			}
			if err := c.Verify(ctx, e); !errors.Is(err, seal.ErrCorrupt) || !strings.Contains(err.Error(), "f is damaged: ") {
				t.Errorf("verify gives %v, want seal.ErrCorrupt and the name", err)
			}
			if _, err := c.Open(ctx, e); name != "a byte" && !errors.Is(err, seal.ErrCorrupt) {
				t.Errorf("open gives %v, want seal.ErrCorrupt", err)
			}
		})
	}
}

func TestStream(t *testing.T) {
	store := storagetest.NewMem()
	c := openCatalog(t, store)
	data := strings.Repeat("abcdefg", 700_000)
	e := mustPut(t, c, KindEdges, "f", data, 0, -1)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	s, err := c.Stream(ctx, e)
	if err != nil {
		t.Fatal(err)
	}
	got, err := io.ReadAll(s)
	if err != nil || string(got) != data {
		t.Errorf("%d bytes, %v", len(got), err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}

	s, err = c.Stream(ctx, e)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if _, err := s.Read(make([]byte, 10)); err != nil {
		t.Fatal(err)
	}
	cancel()
	if _, err := s.Read(make([]byte, 10)); !errors.Is(err, context.Canceled) {
		t.Errorf("read after cancel gives %v", err)
	}
}

func TestCommitOnePathTwice(t *testing.T) {
	ctx := context.Background()
	store := storagetest.NewMem()
	c := openCatalog(t, store)
	var files []*File
	for range 2 {
		f, err := c.Create(ctx, Describe(KindEdges, "same").In(0))
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, f)
	}
	if err := c.Commit(ctx, files...); err == nil {
		t.Error("one path is committed twice in one step")
	}
	if infos, err := store.List(ctx, ""); err != nil || len(infos) != 0 {
		t.Errorf("left over: %v, %v", infos, err)
	}
}

// meeting is a store whose writers commit when so many of them want to.
type meeting struct {
	storage.Store
	wait sync.WaitGroup
}

func (m *meeting) Create(ctx context.Context, name string) (storage.Writer, error) {
	w, err := m.Store.Create(ctx, name)
	return &meetingWriter{w, m}, err
}

type meetingWriter struct {
	storage.Writer
	m *meeting
}

func (w *meetingWriter) Commit(ctx context.Context) (storage.Digest, error) {
	w.m.wait.Done()
	w.m.wait.Wait()
	return w.Writer.Commit(ctx)
}

// The files of a commit are made durable at the same time: a store whose calls take a second is
// waited for once, not once a file.
func TestFilesAreCommittedTogether(t *testing.T) {
	ctx := context.Background()
	store := &meeting{Store: storagetest.NewMem()}
	store.wait.Add(commitsTogether)
	c := openCatalog(t, store)
	var files []*File
	for i := range commitsTogether {
		f, err := c.Create(ctx, Describe(KindEdges, fmt.Sprint(i)).In(i))
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, f)
	}
	if err := c.Commit(ctx, files...); err != nil {
		t.Fatal(err)
	}
	if got := len(c.Entries(KindEdges)); got != commitsTogether {
		t.Errorf("%d entries", got)
	}
}

func TestConcurrentCommits(t *testing.T) {
	store := storagetest.NewMem()
	c := openCatalog(t, store)
	var g errgroup.Group
	for i := range 16 {
		g.Go(func() error {
			return put(c, KindFeatures, fmt.Sprintf("t/tile-%05d-%05d.f32", i, 0), strings.Repeat("x", i), int32(i), 0)
		})
	}
	if err := g.Wait(); err != nil {
		t.Fatal(err)
	}
	if got := len(checkConsistent(t, "after 16 commits", store).Entries("")); got != 16 {
		t.Errorf("%d entries", got)
	}
}

func TestCatalogOfAnotherVersion(t *testing.T) {
	store := storagetest.NewMem()
	c := openCatalog(t, store)
	mustPut(t, c, KindEdges, "f", "x", 0, -1)
	if err := c.Publish(context.Background()); err != nil {
		t.Fatal(err)
	}
	name := snapshotName(1)
	err := store.Corrupt(name, func(b []byte) []byte {
		at := bytes.LastIndex(b, []byte(catalogVersionKey)) + len(catalogVersionKey)
		b[at+bytes.IndexByte(b[at:], catalogVersion[0])] = '1'
		sealtest.Reseal(b, seal.Parquet)
		return b
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Open(context.Background(), store); !errors.Is(err, seal.ErrVersion) || !strings.Contains(err.Error(), name) {
		t.Errorf("got %v, want seal.ErrVersion and the name", err)
	}
}

// TestCatalogWithOtherColumns refuses a file of an earlier version, whose entries had fewer fields.
func TestCatalogWithOtherColumns(t *testing.T) {
	before, err := os.ReadFile("testdata/version-2.parquet")
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := readCatalog(storagetest.NewBytesReader(before), Name); !errors.Is(err, seal.ErrVersion) {
		t.Errorf("got %v, want seal.ErrVersion", err)
	}
}

func ExampleCatalog_Commit() {
	ctx := context.Background()
	store := storagetest.NewMem()
	c, err := Open(ctx, store)
	if err != nil {
		panic(err)
	}
	f, err := c.Create(ctx, Describe(KindFeatures, "graph/features/tile-00000-00000.f32").In(0).Panels(0, 1))
	if err != nil {
		panic(err)
	}
	defer f.Abort()
	if _, err := f.Write(make([]byte, 64)); err != nil {
		panic(err)
	}
	f.Rows = 1
	if err := c.Commit(ctx, f); err != nil {
		panic(err)
	}
	for _, e := range c.Entries(KindFeatures) {
		fmt.Println(e.Path, e.Rows, e.Bytes, c.Verify(ctx, e))
	}
	// Output: graph/features/tile-00000-00000.f32 1 64 <nil>
}
