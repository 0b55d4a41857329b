package extsort

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// TestMergeSteps merges the smallest keys of two lists, with keys that both have.
func TestMergeSteps(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		keys := rapid.SliceOfN(rapid.Uint64Range(0, rapid.Uint64Range(0, 300).Draw(t, "largest")), 1, 200)
		a, b := keys.Draw(t, "a"), keys.Draw(t, "b")
		slices.Sort(a)
		slices.Sort(b)
		out := make([]uint64, rapid.IntRange(1, min(len(a), len(b))).Draw(t, "steps"))
		fromA := mergeSteps(out, a, b)
		if fromA < 0 || fromA > len(out) {
			t.Fatalf("%d of %d keys are from a", fromA, len(out))
		}
		all := slices.Concat(a, b)
		slices.Sort(all)
		if !slices.Equal(out, all[:len(out)]) {
			t.Fatalf("merged %v", out)
		}
		taken := slices.Concat(a[:fromA], b[:len(out)-fromA])
		slices.Sort(taken)
		if !slices.Equal(out, taken) {
			t.Fatalf("%d are not from a", fromA)
		}
	})
}

// TestUniqueItems drops repeated keys, also those that two reads have in common.
func TestUniqueItems(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		keys := rapid.SliceOfN(rapid.Uint64Range(0, 40), 0, 100).Draw(t, "keys")
		slices.Sort(keys)
		want := slices.Compact(slices.Clone(keys))
		from := &uniqueItems[uint64]{from: &list[uint64]{keys}}
		var got []uint64
		buf := make([]uint64, rapid.IntRange(2, 20).Draw(t, "batch"))
		for n := from.read(buf); n > 0; n = from.read(buf) {
			got = append(got, buf[:n]...)
		}
		if !slices.Equal(got, want) {
			t.Fatalf("%v, want %v", got, want)
		}
	})
}
