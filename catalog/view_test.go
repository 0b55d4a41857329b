package catalog

import (
	"context"
	"errors"
	"maps"
	"slices"
	"testing"

	"ndls/internal/storage"
	"ndls/internal/storage/storagetest"
)

var errLease = errors.New("the lease is lost")

// shared is an owner with views, whose changes it makes unless lost is set.
type shared struct {
	store *storagetest.Mem
	owner *Catalog
	lost  bool
}

func newShared(t testing.TB) *shared {
	store := storagetest.NewMem()
	return &shared{store: store, owner: openCatalog(t, store)}
}

func (s *shared) view() *Catalog {
	return NewView(s.store, s.owner.Entries(""), func(ctx context.Context, added []Entry, removed []string, del bool) error {
		if s.lost {
			return errLease
		}
		return s.owner.Apply(ctx, added, removed, del)
	})
}

func TestViewAndOwnerListTheSame(t *testing.T) {
	ctx := context.Background()
	s := newShared(t)
	a, b := s.view(), s.view()
	mustPut(t, a, KindSmoothedTile, "tile-0", "zero", 0, 0)
	mustPut(t, a, KindSmoothedTile, "tile-0", "zero again", 0, 0)
	mustPut(t, b, KindSmoothedTile, "tile-1", "one", 0, 1)
	if got := paths(a.Entries("")); !slices.Equal(got, []string{"tile-0"}) {
		t.Errorf("a view lists %v before it is replaced", got)
	}
	a.Update(s.owner.Since(Version{}))
	want := []string{"tile-0", "tile-1"}
	for name, c := range map[string]*Catalog{"view": a, "owner": s.owner, "reopened": openCatalog(t, s.store)} {
		if got := paths(c.Entries("")); !slices.Equal(got, want) {
			t.Errorf("%s lists %v, want %v", name, got, want)
		}
		for _, e := range c.Entries("") {
			if err := c.Verify(ctx, e); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
	if err := a.Remove(ctx, func(e Entry) bool { return e.Block == 1 }); err != nil {
		t.Fatal(err)
	}
	if _, err := s.store.Stat(ctx, "tile-1"); !errors.Is(err, storage.ErrNotExist) {
		t.Errorf("the removed file is still there: %v", err)
	}
	if got := paths(openCatalog(t, s.store).Entries("")); !slices.Equal(got, []string{"tile-0"}) {
		t.Errorf("reopened after the removal: %v", got)
	}
}

// TestRefusedChange loses the lease: the view and the list stay as they are, and
// no file that others have listed is deleted.
func TestRefusedChange(t *testing.T) {
	ctx := context.Background()
	s := newShared(t)
	c := s.view()
	mustPut(t, c, KindModel, "model", "first", -1, -1)
	before := s.owner.Entries("")
	s.lost = true
	for name, change := range map[string]func() error{
		"commit":  func() error { return put(c, KindModel, "other", "x", -1, -1) },
		"replace": func() error { return put(c, KindModel, "model", "second", -1, -1) },
		"remove":  func() error { return c.Remove(ctx, func(Entry) bool { return true }) },
	} {
		if err := change(); !errors.Is(err, errLease) {
			t.Errorf("%s: %v, want the error of publishing", name, err)
		}
		if got := c.Entries(""); !slices.Equal(got, before) {
			t.Errorf("%s: the view lists %v, want %v", name, got, before)
		}
		if got := openCatalog(t, s.store).Entries(""); !slices.Equal(got, before) {
			t.Errorf("%s: the catalogue lists %v, want %v", name, got, before)
		}
		for _, e := range s.owner.Entries("") {
			if err := s.owner.Verify(ctx, e); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}

// TestApplyAgain repeats changes, as a worker does that did not hear the answer,
// also after the owner failed half way.
func TestApplyAgain(t *testing.T) {
	ctx := context.Background()
	e := func(path string) Entry { return Entry{Kind: KindModel, Path: path, Interval: -1, Block: -1} }
	changes := func(c *Catalog) error {
		for range 2 {
			if err := c.Apply(ctx, []Entry{e("c")}, []string{"a", "gone before"}, true); err != nil {
				return err
			}
		}
		return nil
	}
	for at := int64(1); ; at++ {
		store := storagetest.NewMem()
		first := openCatalog(t, store)
		mustPut(t, first, KindModel, "a", "x", -1, -1)
		mustPut(t, first, KindModel, "b", "x", -1, -1)
		faulty := storagetest.NewFaulty(store, at)
		err := func() error {
			c, err := Open(ctx, faulty)
			if err != nil {
				return err
			}
			return changes(c)
		}()
		done := faulty.Ops() < at
		if (err == nil) != done {
			t.Fatalf("failure of operation %d: %v", at, err)
		}
		if err := changes(openCatalog(t, store)); err != nil {
			t.Fatalf("failure of operation %d, again: %v", at, err)
		}
		got := map[string]bool{}
		for _, e := range openCatalog(t, store).Entries("") {
			got[e.Path] = true
		}
		if want := map[string]bool{"b": true, "c": true}; !maps.Equal(got, want) {
			t.Errorf("failure of operation %d: lists %v, want %v", at, got, want)
		}
		if _, err := store.Stat(ctx, "a"); !errors.Is(err, storage.ErrNotExist) {
			t.Errorf("failure of operation %d: a is still there: %v", at, err)
		}
		if done {
			if at < 5 {
				t.Errorf("%d operations only", at)
			}
			return
		}
	}
}

func TestRecordsAreNoOrphans(t *testing.T) {
	ctx := context.Background()
	store := storagetest.NewMem()
	c := openCatalog(t, store)
	for _, name := range []string{"run.json", "report.html", "journal/00000001.json", "cluster/coordinator.json", "graph/nodes.parquet"} {
		storagetest.Write(t, store, name, []byte("x"))
	}
	orphans, _, err := c.Orphans(ctx)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, o := range orphans {
		got = append(got, o.Name)
	}
	if want := []string{"graph/nodes.parquet"}; !slices.Equal(got, want) {
		t.Errorf("orphans %v, want %v", got, want)
	}
}
