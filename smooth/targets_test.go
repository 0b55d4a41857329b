package smooth

import (
	"testing"

	"pgregory.net/rapid"

	"ndls/internal/mem"
)

// Ranges of rows that after gives have the targets that count counts, each once, and no more
// than are asked for.
func TestRangesOfTargets(t *testing.T) {
	budget, err := mem.NewBudget(mem.MinBudget)
	if err != nil {
		t.Fatal(err)
	}
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.Int64Range(1, 5000).Draw(t, "rows")
		targets := AllTargets(n)
		if rapid.Bool().Draw(t, "some") {
			if targets, err = NewTargets(budget, n); err != nil {
				t.Fatal(err)
			}
			step := rapid.Int64Range(1, 300).Draw(t, "step")
			for i := rapid.Int64Range(0, n-1).Draw(t, "first"); i < n; i += step {
				targets.Add(i)
			}
			targets.Finish()
		}
		defer targets.Free()
		most := rapid.Int64Range(64, 700).Draw(t, "most")
		all := int64(0)
		for lo := int64(0); lo < n; {
			hi := targets.after(lo, n, most)
			if hi <= lo {
				t.Fatalf("the rows after %d end at %d", lo, hi)
			}
			seen := int64(0)
			targets.each(lo, hi, func(int64) { seen++ })
			if got := targets.count(lo, hi); got != seen || got > most {
				t.Fatalf("rows [%d, %d): %d targets counted of %d, at most %d were asked for", lo, hi, got, seen, most)
			}
			all, lo = all+seen, hi
		}
		if all != targets.Len() {
			t.Fatalf("%d targets of %d", all, targets.Len())
		}
	})
}

// TestThin leaves targets evenly, the same on any number of threads, and counts those below any
// row.
func TestThin(t *testing.T) {
	budget, err := mem.NewBudget(mem.MinBudget)
	if err != nil {
		t.Fatal(err)
	}
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.Int64Range(1, 200_000).Draw(t, "rows")
		step := rapid.Int64Range(1, 50).Draw(t, "step")
		most := rapid.Int64Range(0, 10_000).Draw(t, "most")
		targets, err := NewTargets(budget, n)
		if err != nil {
			t.Fatal(err)
		}
		defer targets.Free()
		all := (n + step - 1) / step
		for i := int64(0); i < n; i += step {
			targets.Add(i)
		}
		targets.Finish()
		targets.Thin(rapid.IntRange(1, 8).Draw(t, "threads"), most)
		taken := int64(0)
		for i := range n {
			if below := targets.Below(i); below != taken {
				t.Fatalf("%d targets below row %d, want %d", below, i, taken)
			}
			// One after the other: a target is left where too few are so far.
			want := i%step == 0 && (all <= most || taken*all < (i/step+1)*most)
			if targets.Has(i) != want {
				t.Fatalf("row %d is a target: %v", i, targets.Has(i))
			}
			if want {
				taken++
			}
		}
		if taken != targets.Len() || taken != min(most, all) {
			t.Fatalf("%d targets are left, %d were counted, of %d", targets.Len(), taken, most)
		}
	})
}
