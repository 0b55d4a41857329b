package partition

import (
	"context"
	"math"
	"testing"

	"ndls/dataset"
	"ndls/internal/direct"
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

// TestPlanOfPieces compares a partition by two workers with what was planned: with
// memory for all, and with so little that pieces are spilled.
func TestPlanOfPieces(t *testing.T) {
	ctx := context.Background()
	const uri = "synthetic:nodes=100000,edges=2400000,features=40,seed=3"
	open := func() (dataset.Dataset, error) { return dataset.Open(ctx, uri, dataset.Options{}) }
	c := Counts{Nodes: 100_000, Rows: 2_400_000, Edges: 2_400_000, StatedNodes: true, Features: 40, Threads: 1}
	k := NewCrew(2)
	for name, free := range map[string]int64{"plenty": 256 << 20, "little": 14 << 20} {
		t.Run(name, func(t *testing.T) {
			if testing.Short() && name == "plenty" {
				t.Skip("-short: the one with little memory has more to plan")
			}
			store := storage.NewCounting(storage.NewMem())
			cat := openCatalog(t, store)
			wroteScratch := scratchTraffic()
			used, disk := int64(0), int64(0)
			scratch := scratchFolder(t)
			do := func(work func(Options) error) {
				b := budget(t, free)
				must(t, work(Options{Budget: b, Threads: 1, Scratch: scratch, Features: true}))
				used = max(used, b.Peak())
				held := int64(0)
				for _, e := range cat.Entries("") {
					held += e.Bytes
				}
				disk = max(disk, held)
			}
			for {
				left, err := Next(ctx, cat)
				must(t, err)
				must(t, cat.Remove(ctx, left.Superseded))
				if left.Step == "" {
					break
				}
				if left.Step == Whole {
					ds, err := open()
					must(t, err)
					do(func(o Options) error { _, err := Run(ctx, ds, cat, o); return err })
					must(t, ds.Close())
					continue
				}
				count := map[string]int{Split: k.Tasks, Merge: k.Tasks, Relabel: k.Tasks, Columns: k.Workers}[left.Step]
				size := int(share(int64(len(left.Pieces)), max(count, 1)))
				for i := 0; i < len(left.Pieces); i += size {
					p := Piece{left.Pieces[i].First, left.Pieces[min(i+size, len(left.Pieces))-1].Last}
					do(func(o Options) error { return Execute(ctx, open, cat, o, left.Step, p) })
				}
			}
			check := func(what string, got, want int64) {
				t.Helper()
				if !near(got, want) {
					t.Errorf("%s: %d planned, %d measured", what, got, want)
				}
			}
			limit := budget(t, free).Free()
			memory, least := PieceMemory(c, k, limit)
			if least > limit || memory > limit {
				t.Errorf("%d of memory planned, %d at least, of %d", memory, least, limit)
			}
			if name == "plenty" {
				check("memory", memory, used)
			}
			peak, final := PieceDisk(c, k, limit)
			check("peak disk", peak, disk)
			kept := int64(0)
			for _, e := range cat.Entries("") {
				kept += e.Bytes
			}
			check("disk", final, kept)
			read, written := PieceTraffic(c, k, limit)
			s := scratchTraffic()
			check("read", read, store.BytesRead()+s[0]-wroteScratch[0])
			check("written", written, store.BytesWritten()+s[1]-wroteScratch[1])
		})
	}
}

func scratchTraffic() (t [2]int64) {
	t[0], t[1] = direct.ScratchTraffic()
	return t
}
