package catalog

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"ndls/internal/storage"
)

// TestViewsFollowByChanges has views of different age ask for what has changed. Each then lists
// what its owner lists, and what it is sent is no more than that, or than fewestRecent entries.
func TestViewsFollowByChanges(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ctx := t.Context()
		store := storage.NewMem()
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
				if l.Whole && seen[i].Owner == l.Version.Owner && len(owner.recent.changes) > 0 && seen[i].Number == l.Version.Number {
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
