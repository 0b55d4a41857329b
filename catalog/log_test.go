package catalog

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"ndls/internal/seal"
	"ndls/internal/storage"
	"ndls/internal/storage/storagetest"
	"ndls/internal/vfs"
	"ndls/internal/vfs/vfstest"
)

// A commit writes as much at ten thousand files as at one hundred, snapshots included.
func TestCostOfACommitDoesNotGrow(t *testing.T) {
	ctx := context.Background()
	store := storage.NewCounting(storagetest.NewMem())
	c := openCatalog(t, store)
	add := func(from, to int) int64 {
		before := store.BytesWritten()
		for i := from; i < to; i++ {
			e := Describe(KindFeatures, fmt.Sprintf("tile-%06d", i)).In(i)
			if err := c.Apply(ctx, []Entry{e}, nil, false); err != nil {
				t.Fatal(err)
			}
		}
		return (store.BytesWritten() - before) / int64(to-from)
	}
	few := add(0, 2000)
	add(2000, 8000)
	many := add(8000, 10_000)
	if many > few+few/2 {
		t.Errorf("%d bytes a commit at first, %d with 10,000 files", few, many)
	}
	if got := len(openCatalog(t, store).All()); got != 10_000 {
		t.Errorf("reopened: %d files", got)
	}
}

func TestSnapshotsReplaceChanges(t *testing.T) {
	ctx := context.Background()
	store := storagetest.NewMem()
	c := openCatalog(t, store)
	for i := range 5 {
		mustPut(t, c, KindEdges, fmt.Sprint("e", i), "x", int32(i), -1)
	}
	if err := c.Publish(ctx); err != nil {
		t.Fatal(err)
	}
	mustPut(t, c, KindEdges, "later", "x", 9, -1)
	files, err := store.List(ctx, logPrefix)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, f := range files {
		names = append(names, f.Name)
	}
	if want := []string{snapshotName(5), changeName(6)}; !slices.Equal(names, want) {
		t.Errorf("the log has %v, want %v", names, want)
	}
	again := openCatalog(t, store)
	if !reflect.DeepEqual(again.All(), c.All()) || again.Number() != 6 {
		t.Errorf("reopened: number %d, %v", again.Number(), again.All())
	}
	if err := again.Check(ctx, false); err != nil {
		t.Errorf("check: %v", err)
	}
}

// A snapshot does not remove a change that was written while it was made.
func TestSnapshotKeepsLaterChanges(t *testing.T) {
	ctx := context.Background()
	store := storagetest.NewMem()
	c := openCatalog(t, store)
	mustPut(t, c, KindEdges, "e", "x", 0, -1)
	data, err := encodeCatalog(c.All(), 1)
	if err != nil {
		t.Fatal(err)
	}
	mustPut(t, c, KindEdges, "f", "x", 1, -1)
	if err := c.log.snapshot(ctx, 1, data); err != nil {
		t.Fatal(err)
	}
	if got := openCatalog(t, store).All(); !slices.Equal(got, c.All()) {
		t.Errorf("reopened: %v, not %v", got, c.All())
	}
}

func TestDamagedLog(t *testing.T) {
	ctx := context.Background()
	for name, damage := range map[string]func(s *storagetest.Mem) error{
		"a change is missing": func(s *storagetest.Mem) error { return s.Remove(ctx, changeName(4)) },
		"a byte of a change":  func(s *storagetest.Mem) error { return s.FlipByte(changeName(4), 40) },
		"the snapshot is gone": func(s *storagetest.Mem) error {
			return errors.Join(s.Remove(ctx, snapshotName(3)), s.Remove(ctx, Name))
		},
		"a byte of the snapshot": func(s *storagetest.Mem) error { return s.FlipByte(snapshotName(3), 40) },
		"a change under the name of the next one": func(s *storagetest.Mem) error {
			text := storeBytes(t, s, changeName(4))
			return s.Corrupt(changeName(5), func([]byte) []byte { return text })
		},
		"a snapshot under the name of the next one": func(s *storagetest.Mem) error {
			data, err := encodeCatalog(nil, 2)
			return errors.Join(err, s.Corrupt(snapshotName(3), func([]byte) []byte { return data }))
		},
		"a change without a seal": func(s *storagetest.Mem) error {
			return s.Corrupt(changeName(4), func(b []byte) []byte {
				return regexp.MustCompile("crc32c:[0-9a-f]{8}").ReplaceAll(b, []byte(seal.Unsealed))
			})
		},
		"another file": func(s *storagetest.Mem) error {
			return storage.Put(ctx, s.CreateNew, logPrefix+"notes.txt", []byte("x"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			store := storagetest.NewMem()
			c := openCatalog(t, store)
			for i := range 3 {
				mustPut(t, c, KindEdges, fmt.Sprint("e", i), "x", int32(i), -1)
			}
			if err := c.Publish(ctx); err != nil {
				t.Fatal(err)
			}
			for i := range 2 {
				mustPut(t, c, KindEdges, fmt.Sprint("f", i), "x", int32(i), -1)
			}
			if err := damage(store); err != nil {
				t.Fatal(err)
			}
			if _, err := Open(ctx, store); !errors.Is(err, seal.ErrCorrupt) || !strings.Contains(err.Error(), logPrefix) {
				t.Errorf("got %v, want ErrCorrupt that names a file of %s", err, logPrefix)
			}
		})
	}
}

func TestCheckFindsAMissingOrOlderFile(t *testing.T) {
	ctx := context.Background()
	for name, damage := range map[string]func(s *storagetest.Mem, older []byte) error{
		"older": func(s *storagetest.Mem, older []byte) error {
			return s.Corrupt(Name, func([]byte) []byte { return older })
		},
		"missing": func(s *storagetest.Mem, _ []byte) error { return s.Remove(ctx, Name) },
		"flipped": func(s *storagetest.Mem, _ []byte) error { return s.FlipByte(Name, 60) },
	} {
		store := storagetest.NewMem()
		c := openCatalog(t, store)
		mustPut(t, c, KindEdges, "e", "x", 0, -1)
		if err := c.Publish(ctx); err != nil {
			t.Fatal(err)
		}
		older := storeBytes(t, store, Name)
		mustPut(t, c, KindEdges, "f", "x", 1, -1)
		if err := c.Publish(ctx); err != nil {
			t.Fatal(err)
		}
		if err := damage(store, older); err != nil {
			t.Fatal(err)
		}
		if err := openCatalog(t, store).Check(ctx, true); !errors.Is(err, seal.ErrCorrupt) {
			t.Errorf("%s: %v, want ErrCorrupt", name, err)
		}
	}
}

// Two owners, one of which does not know yet that it was superseded: no change is lost.
func TestTwoOwners(t *testing.T) {
	ctx := context.Background()
	store := storagetest.NewMem()
	a := openCatalog(t, store)
	mustPut(t, a, KindEdges, "first", "x", 0, -1)
	b := openCatalog(t, store)
	mustPut(t, a, KindEdges, "late", "x", 1, -1)
	mustPut(t, b, KindEdges, "new", "x", 2, -1)
	if err := b.Publish(ctx); err != nil {
		t.Fatal(err)
	}
	if err := a.Publish(ctx); err != nil {
		t.Fatal(err)
	}
	want := []string{"first", "late", "new"}
	for name, c := range map[string]*Catalog{"the new owner": b, "reopened": openCatalog(t, store)} {
		if got := paths(c.All()); !slices.Equal(got, want) {
			t.Errorf("%s lists %v, want %v", name, got, want)
		}
	}
}

// What another plan made is not seen, and what has the same bytes is listed anew in one
// step.
func TestBinding(t *testing.T) {
	ctx := context.Background()
	store := storagetest.NewMem()
	stages := map[string]string{KindLSI: "lsi", KindSmoothed: "smooth"}
	bound := func(lsi, smooth string) *Catalog {
		c := openCatalog(t, store)
		c.Bind(Binding{Stages: stages, Plans: map[string]string{"lsi": lsi, "smooth": smooth}})
		return c
	}
	c := bound("A", "B")
	e := mustPut(t, c, KindLSI, "lsi/part-00000.parquet", "k", 0, -1)
	if e.Stage != "lsi" || e.Plan != "A" {
		t.Errorf("entry %+v", e)
	}
	mustPut(t, c, KindSmoothed, "smoothed/part-00000.arrow", "s", 0, -1)
	if _, err := c.Create(ctx, Describe(KindLSI, "lsi/part")); err == nil || !strings.Contains(err.Error(), "no such name") {
		t.Errorf("a name that gc would keep: %v", err)
	}
	other := bound("A2", "B")
	if _, ok := other.Lookup("lsi/part-00000.parquet"); ok || len(other.Entries(KindLSI)) != 0 || len(other.Entries(KindSmoothed)) != 1 {
		t.Errorf("under another plan: %v", other.Entries(""))
	}
	if got := paths(other.All()); !slices.Equal(got, []string{"lsi/part-00000.parquet", "smoothed/part-00000.arrow"}) {
		t.Errorf("all: %v", got)
	}
	before := other.Number()
	mustPut(t, other, KindLSI, "lsi/part-00000.parquet", "k", 0, -1)
	if got := other.Number() - before; got != 1 {
		t.Errorf("the same bytes are listed anew in %d steps", got)
	}
	if _, ok := bound("A", "B").Lookup("lsi/part-00000.parquet"); ok {
		t.Error("the old plan still has it")
	}
	before = other.Number()
	mustPut(t, other, KindLSI, "lsi/part-00000.parquet", "k", 0, -1)
	if got := other.Number() - before; got != 0 {
		t.Errorf("the same file again makes %d changes", got)
	}
	if orphans, _, err := other.Orphans(ctx); err != nil || len(orphans) != 0 {
		t.Errorf("orphans %v, %v", orphans, err)
	}
	b := Binding{Plans: map[string]string{"lsi": "A"}}
	if b.holds(Entry{Stage: "lsi"}) || !b.holds(Entry{Stage: "lsi", Plan: "A"}) {
		t.Error("a file of no plan is taken for one of the plan, or a file of the plan is not")
	}
}

// stuck is a store whose writes wait.
type stuck struct {
	storage.Store
	entered, release chan struct{}
}

func (s *stuck) CreateNew(ctx context.Context, name string) (storage.Writer, error) {
	close(s.entered)
	<-s.release
	return s.Store.CreateNew(ctx, name)
}

// Reading the catalogue does not wait for a store that is slow.
func TestReadersDoNotWaitForTheStore(t *testing.T) {
	ctx := context.Background()
	mem := storagetest.NewMem()
	mustPut(t, openCatalog(t, mem), KindEdges, "e", "x", 0, -1)
	store := &stuck{mem, make(chan struct{}), make(chan struct{})}
	c := openCatalog(t, store)
	done := make(chan error)
	go func() { done <- c.Apply(ctx, []Entry{Describe(KindEdges, "f").In(1)}, nil, false) }()
	<-store.entered
	if got := paths(c.Entries(KindEdges)); !slices.Equal(got, []string{"e"}) {
		t.Errorf("while a change waits: %v", got)
	}
	if _, ok := c.Lookup("f"); ok {
		t.Error("a change is seen before it is durable")
	}
	close(store.release)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if _, ok := c.Lookup("f"); !ok {
		t.Error("a durable change is not seen")
	}
}

// TestChangesAreWrittenTogether: changes that come while one is written share the next record.
// Their result equals the result of one after the other, also when reopened.
func TestChangesAreWrittenTogether(t *testing.T) {
	store := &gate{Store: storagetest.NewMem(), open: make(chan struct{}), asked: make(chan struct{}, 1)}
	c, err := Open(t.Context(), store)
	if err != nil {
		t.Fatal(err)
	}
	const many = 200
	var writing sync.WaitGroup
	apply := func(added []Entry, removed ...string) {
		writing.Go(func() {
			if err := c.Apply(t.Context(), added, removed, false); err != nil {
				t.Error(err)
			}
		})
	}
	apply([]Entry{Describe(KindEdges, "first")})
	<-store.asked
	for i := range many {
		apply([]Entry{Describe(KindEdges, fmt.Sprint("e", i)), Describe(KindHops, fmt.Sprint("h", i))})
	}
	for waits := 0; waits < many; {
		c.adding.Lock()
		if waits = 0; c.pending != nil {
			waits = len(c.pending.changes)
		}
		c.adding.Unlock()
		time.Sleep(time.Millisecond)
	}
	close(store.open)
	writing.Wait()
	if got := c.Number(); got != 2 {
		t.Errorf("%d records for %d changes", got, 1+many)
	}
	again, err := Open(t.Context(), store)
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(again.All(), c.All()) || len(c.All()) != 1+2*many {
		t.Errorf("%d files, %d when reopened", len(c.All()), len(again.All()))
	}
}

// gate is a store that creates nothing before it is open.
type gate struct {
	storage.Store
	open  chan struct{}
	asked chan struct{}
}

func (g *gate) CreateNew(ctx context.Context, name string) (storage.Writer, error) {
	select {
	case g.asked <- struct{}{}:
	default:
	}
	<-g.open
	return g.Store.CreateNew(ctx, name)
}

// TestOtherBytesAreListedAnew replaces a file. It is off the list before other bytes take its place, so that an interruption leaves no wrong
// entry.
func TestOtherBytesAreListedAnew(t *testing.T) {
	c := openCatalog(t, storagetest.NewMem())
	mustPut(t, c, KindModel, "a", "x", -1, -1)
	before := c.Number()
	mustPut(t, c, KindModel, "a", "y", -1, -1)
	if got := c.Number() - before; got != 2 {
		t.Errorf("other bytes under the same name make %d changes, want one that removes the file and one that lists it", got)
	}
}

// TestMerged compares what changes come to together with what they come to in turn.
func TestMerged(t *testing.T) {
	at := func(path string, rows int64) Entry {
		e := Describe(KindEdges, path)
		e.Rows = rows
		return e
	}
	changes := []change{
		{Added: []Entry{at("first", 1), at("a", 1), at("b", 1)}},
		{Removed: []string{"a", "old"}},
		{Added: []Entry{at("a", 2), at("c", 1)}, Removed: []string{"b"}},
		{Added: []Entry{at("c", 2)}, Removed: []string{"c"}},
		{Removed: []string{"nothing"}},
	}
	list := func() *Catalog { return NewView(storagetest.NewMem(), []Entry{at("old", 1), at("b", 7)}, nil) }
	one, all := list(), list()
	for _, x := range changes {
		one.change(x.Added, x.Removed)
	}
	x := merged(changes)
	all.change(x.Added, x.Removed)
	if !reflect.DeepEqual(one.All(), all.All()) || len(all.All()) != 3 {
		t.Errorf("%v in turn, %v together", one.All(), all.All())
	}
}

// TestPublishedStandsIn takes away or damages what the catalogue consists of, once no change came after its last
// snapshot, and once some did: what lists all the same is used and made again, and what does not is refused.
func TestPublishedStandsIn(t *testing.T) {
	ctx := context.Background()
	for _, c := range []struct {
		name    string
		later   bool
		damage  func(s *storagetest.Mem) error
		lacks   string
		refused bool
	}{
		{"nothing", false, func(*storagetest.Mem) error { return nil }, "", false},
		{"catalog.parquet gone", false, func(s *storagetest.Mem) error { return s.Remove(ctx, Name) }, "catalog.parquet is missing", false},
		{"catalog.parquet cut", true, func(s *storagetest.Mem) error { return s.Corrupt(Name, func(b []byte) []byte { return b[:40] }) }, "catalog.parquet is damaged", false},
		{"snapshot gone", false, func(s *storagetest.Mem) error { return s.Remove(ctx, snapshotName(2)) }, "catalog/0000000002.parquet is missing", false},
		{"snapshot gone, changes after it", true, func(s *storagetest.Mem) error { return s.Remove(ctx, snapshotName(2)) }, "catalog/0000000002.parquet is missing", false},
		{"snapshot cut", true, func(s *storagetest.Mem) error {
			return s.Corrupt(snapshotName(2), func(b []byte) []byte { return b[:40] })
		}, "catalog/0000000002.parquet is damaged", false},
		{"both gone", false, func(s *storagetest.Mem) error {
			return errors.Join(s.Remove(ctx, Name), s.Remove(ctx, snapshotName(2)))
		}, "", true},
		{"a change gone", true, func(s *storagetest.Mem) error { return s.Remove(ctx, changeName(3)) }, "", true},
	} {
		store := storagetest.NewMem()
		owner := openCatalog(t, store)
		mustPut(t, owner, KindModel, "a", "x", -1, -1)
		mustPut(t, owner, KindModel, "b", "x", -1, -1)
		if err := owner.Publish(ctx); err != nil {
			t.Fatal(err)
		}
		if c.later {
			mustPut(t, owner, KindModel, "c", "x", -1, -1)
			mustPut(t, owner, KindModel, "d", "x", -1, -1)
		}
		if err := c.damage(store); err != nil {
			t.Fatal(err)
		}
		again, err := OpenPublished(ctx, store, owner.Published())
		if c.refused {
			if !errors.Is(err, seal.ErrCorrupt) {
				t.Errorf("%s: %v", c.name, err)
			}
			continue
		}
		if err != nil || !slices.Equal(again.All(), owner.All()) || strings.Join(again.Lacks(), ", ") != c.lacks {
			t.Errorf("%s: %v; lacks %q, not %q", c.name, err, again.Lacks(), c.lacks)
			continue
		}
		if err := again.Mend(ctx, 0); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		mended, err := OpenPublished(ctx, store, again.Published())
		if err != nil || !slices.Equal(mended.All(), owner.All()) || len(mended.Lacks()) > 0 || mended.Number() != owner.Number() {
			t.Errorf("%s, mended: %v; lacks %q", c.name, err, mended.Lacks())
		}
	}
}

// TestDeletesWhatItKnows has a view ask for the removal of a file that was never listed: it stays.
func TestDeletesWhatItKnows(t *testing.T) {
	ctx := context.Background()
	store := storagetest.NewMem()
	owner := openCatalog(t, store)
	mustPut(t, owner, KindModel, "a", "x", -1, -1)
	storagetest.Write(t, store, "notes.txt", []byte("x"))
	if err := owner.Apply(ctx, nil, []string{"a", "notes.txt"}, true); err != nil {
		t.Fatal(err)
	}
	if _, err := store.Stat(ctx, "notes.txt"); err != nil {
		t.Errorf("a file that was never listed: %v", err)
	}
	if _, err := store.Stat(ctx, "a"); !errors.Is(err, storage.ErrNotExist) {
		t.Errorf("a file that was listed: %v", err)
	}
	mustPut(t, owner, KindModel, "a", "x", -1, -1)
	if err := owner.delete(ctx, "a"); err != nil { // it was listed again in the meantime
		t.Fatal(err)
	}
	if _, err := store.Stat(ctx, "a"); err != nil {
		t.Errorf("a file that is listed again: %v", err)
	}
}

// unsure is a store whose file is there although its Commit says otherwise.
type unsure struct{ storage.Store }

type unsureWriter struct{ storage.Writer }

func (s unsure) CreateNew(ctx context.Context, name string) (storage.Writer, error) {
	w, err := s.Store.CreateNew(ctx, name)
	return unsureWriter{w}, err
}

func (w unsureWriter) Commit(ctx context.Context) (storage.Digest, error) {
	d, err := w.Writer.Commit(ctx)
	return d, errors.Join(err, storage.ErrDisk)
}

// TestFailedChangeThatIsThere lists a change whose writer was told that it failed, and whose file is there: views hear of it before another
// change is made.
func TestFailedChangeThatIsThere(t *testing.T) {
	store := storagetest.NewMem()
	c := openCatalog(t, store)
	mustPut(t, c, KindEdges, "first", "x", 0, -1)
	before := c.Since(Version{}).Version
	c.log.store = unsure{store}
	if err := c.Remove(context.Background(), func(Entry) bool { return true }); !errors.Is(err, storage.ErrDisk) {
		t.Fatalf("the change failed with %v", err)
	}
	if l := c.Since(before); len(c.All()) > 0 || !slices.Equal(l.Removed, []string{"first"}) || len(openCatalog(t, store).All()) > 0 {
		t.Errorf("the catalogue lists %v, and views hear of %+v", c.All(), l)
	}
}

// TestChangesOutlivePowerFailures fails each operation of three commits once. What the owner counts and lists then is there after a power
// failure, too.
func TestChangesOutlivePowerFailures(t *testing.T) {
	const disk = "/disks/catalog"
	try := func(plan vfstest.Plan) (ops int, felt string) {
		m := vfstest.NewMem(disk)
		faults := vfstest.NewFaults(m, plan)
		unmount := vfs.Mount(disk, faults)
		defer func() { unmount() }()
		store, err := storage.NewLocal(disk)
		if err != nil {
			return faults.Ops(), faults.Felt()
		}
		c, err := Open(t.Context(), store)
		if err != nil {
			return faults.Ops(), faults.Felt()
		}
		for _, path := range []string{"a", "b", "c"} {
			_ = put(c, KindModel, path, path, -1, -1)
		}
		number, listed := c.Number(), c.All()
		unmount()
		unmount = vfs.Mount(disk, m.CrashClone(rand.New(rand.NewPCG(1, 2)), 0))
		again := openCatalog(t, store)
		if again.Number() != number || !reflect.DeepEqual(again.All(), listed) {
			t.Errorf("%s: %d changes, %v; after a power failure %d, %v", faults.Felt(), number, paths(listed), again.Number(), paths(again.All()))
		}
		return faults.Ops(), faults.Felt()
	}
	ops, _ := try(vfstest.Plan{})
	for at := 1; at <= ops; at++ {
		if _, felt := try(vfstest.Plan{At: at, Errno: syscall.EIO}); felt == "" {
			t.Errorf("no operation %d", at)
		}
	}
}
