package partition

import (
	"context"
	"math"
	"testing"

	"ndls/dataset"
	"ndls/internal/storage"
)

// near compares within a tenth.
func near(got, want int64) bool { return math.Abs(float64(got-want)) <= 0.1*float64(want) }

// TestPeakDisk holds what was measured of papers100m: at three scales, and what
// the whole graph takes.
func TestPeakDisk(t *testing.T) {
	const gib, mb = 1 << 30, 1_000_000
	papers := func(divisor int64, features int) Counts {
		return Counts{
			Nodes: 111_059_956 / divisor, Rows: 1_615_685_872 / divisor, Edges: 1_553_500_000 / divisor,
			StatedNodes: true, Features: features, Half: true, Threads: 2,
		}
	}
	wide := papers(16, 128)
	wide.Half = false
	for _, c := range []struct {
		name        string
		counts      Counts
		budget      int64
		peak, final int64
	}{
		{"1/256", papers(256, 128), gib, 216 * mb, 216 * mb},
		{"1/64", papers(64, 128), gib, 870 * mb, 870 * mb},
		{"1/16", papers(16, 128), gib, 3588 * mb, 3588 * mb},
		{"1/16, too little memory for its tiles", papers(16, 128), 300 << 20, 3588 * mb, 3588 * mb},
		{"1/16, not float16", wide, gib, 5365 * mb, 5365 * mb},
		{"1/4, no features", papers(4, 0), 4 * gib, 8047 * mb, 8047 * mb},
		{"whole, no features", papers(1, 0), 16 * gib, 34_700 * mb, 34_700 * mb},
		{"whole", papers(1, 128), 16 * gib, 63_100 * mb, 63_100 * mb},
	} {
		if peak, final := PeakDisk(c.counts, c.budget); !near(peak, c.peak) || !near(final, c.final) {
			t.Errorf("%s: %d MB, %d MB in the end, want %d and %d", c.name, peak/mb, final/mb, c.peak/mb, c.final/mb)
		}
	}
}

// TestPeakMemory runs what it plans: with that memory, and with the least.
func TestPeakMemory(t *testing.T) {
	const rows = 300_000
	for _, features := range []int{0, 20} {
		ds := &skewed{fake{info: dataset.Info{NumNodes: 100_000, EdgeHint: rows}}, rows}
		if features > 0 {
			ds.info.NumFeatures, ds.idRows = 1, true
		}
		c := Counts{Nodes: 100_000, Rows: rows, Edges: rows, StatedNodes: true, Features: ds.info.NumFeatures, Threads: 2}
		plenty, least := PeakMemory(c, 1<<40)
		for _, want := range []int64{plenty, least} {
			if got, _ := PeakMemory(c, want); got != want {
				t.Errorf("a budget of %d is used to %d", want, got)
			}
			b := budget(t, want+want/20)
			before := b.Limit() - b.Free()
			o := Options{Budget: b, Threads: 2, Scratch: scratchFolder(t), Features: true}
			_, err := Run(context.Background(), ds, openCatalog(t, storage.NewMem()), o)
			must(t, err)
			if used := b.Peak() - before; want == plenty && !near(used, plenty) {
				t.Errorf("%d bytes of %d planned used", used, plenty)
			}
		}
	}
}
