package partition

import (
	"errors"
	"slices"
	"testing"

	"golang.org/x/sync/errgroup"
	"pgregory.net/rapid"

	"ndls/dataset"
	"ndls/internal/mem"
	"ndls/internal/rng"
)

func TestIDSet(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := budget(t, 32<<20)
		set, err := newIDSet(b)
		if err != nil {
			t.Fatal(err)
		}
		id := rapid.OneOf(
			rapid.Uint32Range(0, 200),
			rapid.Uint32Range(1<<chunkShift-100, 1<<chunkShift+100),
			rapid.Uint32Range(0, dataset.MaxID),
			rapid.Just(uint32(dataset.MaxID)),
		)
		ids := rapid.SliceOf(id).Draw(t, "ids")
		for _, id := range ids {
			if err := set.add(id); err != nil {
				t.Fatal(err)
			}
		}
		if err := set.rankAll(); err != nil {
			t.Fatal(err)
		}
		slices.Sort(ids)
		ids = slices.Compact(ids)
		checkRanks(t, set, ids)
		probe := id.Draw(t, "probe")
		if _, ok := set.rank(probe); ok != slices.Contains(ids, probe) {
			t.Fatalf("%d is a member: %v", probe, ok)
		}
		set.free()
		if b.Free() != 32<<20 {
			t.Fatal("memory not given back")
		}
	})
}

func TestAllIDs(t *testing.T) {
	set := allIDs(3)
	if err := set.rankAll(); err != nil {
		t.Fatal(err)
	}
	checkRanks(t, set, []uint32{0, 1, 2})
	if _, ok := set.rank(3); ok {
		t.Error("3 is below 3")
	}
	set.free()
}

// checkRanks compares the set with its members in ascending order.
func checkRanks(t rapid.TB, set *idSet, members []uint32) {
	t.Helper()
	if set.n != int64(len(members)) {
		t.Fatalf("%d members, not %d", set.n, len(members))
	}
	for want, id := range members {
		if rank, ok := set.rank(id); !ok || rank != uint32(want) {
			t.Fatalf("%d has rank %d, %v, not %d", id, rank, ok, want)
		}
	}
	var visited []uint32
	if err := set.each(func(rank, id uint32) error {
		if int(rank) != len(visited) {
			t.Fatalf("%d visited as number %d", id, rank)
		}
		visited = append(visited, id)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(visited, members) {
		t.Fatalf("visited %d, not %d", visited, members)
	}
	stop := errors.New("stop")
	if err := set.each(func(uint32, uint32) error { return stop }); len(members) > 0 && !errors.Is(err, stop) {
		t.Fatal(err)
	}
}

func TestIDSetFitsItsBudget(t *testing.T) {
	set, err := newIDSet(budget(t, 2<<20))
	if err != nil {
		t.Fatal(err)
	}
	defer set.free()
	if err := set.add(7); !errors.Is(err, mem.ErrBudget) {
		t.Errorf("a slab of 2 MiB beside the chunk table in a budget of 2 MiB: %v", err)
	}
}

// TestIDSetIsShared adds ids on several threads, many of which are in the same chunks.
func TestIDSetIsShared(t *testing.T) {
	set, err := newIDSet(budget(t, 32<<20))
	must(t, err)
	defer set.free()
	const threads, each = 8, 4000
	var adding errgroup.Group
	for i := range threads {
		adding.Go(func() error {
			for k := range each {
				if err := set.add(uint32(rng.Hash(uint64(i%2), uint64(k)) % (1 << 22))); err != nil {
					return err
				}
			}
			return nil
		})
	}
	must(t, adding.Wait())
	must(t, set.rankAll())
	var members []uint32
	for i := range uint64(2) {
		for k := range uint64(each) {
			members = append(members, uint32(rng.Hash(i, k)%(1<<22)))
		}
	}
	slices.Sort(members)
	checkRanks(t, set, slices.Compact(members))
}
