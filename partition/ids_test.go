package partition

import (
	"errors"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"ndls/dataset"
	"ndls/internal/mem"
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
