package catalog

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"ndls/internal/storage/storagetest"
)

// TestViewsFollowByChanges updates views that are behind by different numbers of changes. Each then
// lists what its owner lists, and gets no more entries than the owner lists, or fewestRecent.
func TestViewsFollowByChanges(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ctx := t.Context()
		store := storagetest.NewMem()
		owner, err := Open(ctx, store)
		if err != nil {
			t.Fatal(err)
		}
		views := []*Catalog{NewView(store, nil, nil), NewView(store, nil, nil)}
		seen := make([]Version, len(views))
		for range rapid.IntRange(1, 12).Draw(t, "steps") {
			switch rapid.IntRange(0, 6).Draw(t, "step") {
			case 0: // another owner takes the run directory over
				if owner, err = Open(ctx, store); err != nil {
					t.Fatal(err)
				}
			case 1, 2:
				i := rapid.IntRange(0, len(views)-1).Draw(t, "view")
				l := owner.Since(seen[i])
				if !l.Whole && len(l.Added)+len(l.Removed) > max(len(owner.All()), fewestRecent) {
					t.Fatalf("%d added and %d removed of %d", len(l.Added), len(l.Removed), len(owner.All()))
				}
				if l.Whole && seen[i] == l.Version {
					t.Fatal("all is listed for a view that lacks nothing")
				}
				views[i].Update(l)
				seen[i] = l.Version
				if got, want := views[i].All(), owner.All(); !slices.Equal(got, want) {
					t.Fatalf("the view lists %v, its owner %v", paths(got), paths(want))
				}
			default:
				var added []Entry
				var removed []string
				for i := range rapid.SampledFrom([]int{1, 3, 700}).Draw(t, "files") {
					e := Describe(KindEdges, fmt.Sprint("f", rapid.IntRange(0, 9).Draw(t, "file")+i))
					if rapid.Bool().Draw(t, "removed") {
						removed = append(removed, e.Path)
					} else if !slices.ContainsFunc(added, func(x Entry) bool { return x.Path == e.Path }) {
						e.Bytes = int64(rapid.IntRange(0, 3).Draw(t, "bytes"))
						added = append(added, e)
					}
				}
				slices.Sort(removed)
				if err := owner.Apply(ctx, added, slices.Compact(removed), false); err != nil {
					t.Fatal(err)
				}
			}
		}
	})
}

// TestUpdateWaitsForAChange updates a view while it makes a change of its own, after which its
// owner has removed the file again. The view does not list the file in the end.
func TestUpdateWaitsForAChange(t *testing.T) {
	ctx := t.Context()
	s := newShared(t)
	var view *Catalog
	updated := make(chan struct{})
	view = NewView(s.store, nil, func(ctx context.Context, added []Entry, removed []string, del bool) error {
		before := s.owner.Since(Version{}).Version
		if err := errors.Join(s.owner.Apply(ctx, added, removed, del), s.owner.Apply(ctx, nil, []string{"file"}, false)); err != nil {
			return err
		}
		l := s.owner.Since(before)
		go func() {
			view.Update(l)
			close(updated)
		}()
		time.Sleep(20 * time.Millisecond) // an update that does not wait is over by then
		return nil
	})
	if err := view.Apply(ctx, []Entry{Describe(KindEdges, "file")}, nil, false); err != nil {
		t.Fatal(err)
	}
	<-updated
	if got := view.All(); len(got) > 0 {
		t.Errorf("the view lists %v, which its owner has removed", paths(got))
	}
}
