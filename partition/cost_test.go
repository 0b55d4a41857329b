package partition

import (
	"context"
	"math"
	"testing"

	"ndls/catalog"
	"ndls/dataset"
	"ndls/internal/direct"
	"ndls/internal/storage"
	"ndls/internal/storage/storagetest"
	"ndls/internal/testkit"
	"ndls/internal/testprogram"
)

// near compares within a tenth.
func near(got, want int64) bool { return math.Abs(float64(got-want)) <= 0.1*float64(want) }

// TestDisk holds what was measured of papers100m: with tails=0 at three scales, and what
// the whole graph takes.
func TestDisk(t *testing.T) {
	if testprogram.Small {
		t.Skip("measured with the blocks of users")
	}
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
		if peak, final := Disk(c.counts, 1, c.budget); !near(peak, c.peak) || !near(final, c.final) {
			t.Errorf("%s: %d MB, %d MB in the end, want %d and %d", c.name, peak/mb, final/mb, c.peak/mb, c.final/mb)
		}
	}
}

// TestLeastMemory does a partition with the least memory that is planned.
func TestLeastMemory(t *testing.T) {
	const rows = 300_000
	for _, features := range []int{0, 1} {
		ds := &skewed{fake{info: dataset.Info{NumNodes: 100_000, EdgeHint: rows, NumFeatures: features}, idRows: features > 0}, rows}
		c := Counts{Nodes: 100_000, Rows: rows, Edges: rows, StatedNodes: true, Features: features, Threads: 2}
		_, least := Memory(c, 1, 1<<40)
		b := budget(t, least+least/20)
		o := Options{Budget: b, Threads: 2, Scratch: scratchFolder(t), Features: true}
		_, err := Run(context.Background(), ds, openCatalog(t, storagetest.NewMem()), o)
		must(t, err)
	}
}

// TestPlan compares a partition by one worker and by two with what was planned: with
// memory for all, and with so little that keys and features are spilled.
func TestPlan(t *testing.T) {
	testkit.Slow(t, "partitions of millions of edges")
	ctx := context.Background()
	for _, plan := range []struct {
		name     string
		workers  int
		free     int64
		weighted bool
		noShards bool
	}{
		{"one worker, plenty", 1, 256 << 20, false, false},
		{"one worker, pairs in a file", 1, 60 << 20, false, false},
		{"one worker, little", 1, 20 << 20, false, false},
		{"two workers, plenty", 2, 256 << 20, false, false},
		{"two workers, little", 2, 14 << 20, false, false},
		{"weights, one worker, plenty", 1, 256 << 20, true, false},
		{"weights, one worker, pairs do not stay", 1, 96 << 20, true, false},
		{"weights, one worker, little", 1, 20 << 20, true, false},
		{"weights, two workers, plenty", 2, 256 << 20, true, false},
		{"weights, two workers, little", 2, 14 << 20, true, false},
		{"no shards, one worker, plenty", 1, 256 << 20, false, true},
		{"no shards, two workers, little", 2, 14 << 20, false, true},
		{"no shards, weights, one worker, little", 1, 20 << 20, true, true},
	} {
		t.Run(plan.name, func(t *testing.T) {
			uri := "synthetic:nodes=100000,edges=2400000,features=40,seed=3"
			if plan.weighted {
				uri += ",weights=10"
			}
			open := func() (dataset.Dataset, error) { return dataset.Open(ctx, uri, dataset.Options{}) }
			c := Counts{
				Nodes: 100_000, Rows: 2_400_000, Edges: 2_400_000, StatedNodes: true, Features: 40, Threads: 1, Weighted: plan.weighted, NoShards: plan.noShards,
			}
			store := storage.NewCounting(storagetest.NewMem())
			cat := openCatalog(t, store)
			before := scratchTraffic()
			used, disk := int64(0), int64(0)
			scratch := scratchFolder(t)
			do := func(work func(Options) error) {
				b := budget(t, plan.free)
				must(t, work(Options{Budget: b, Threads: 1, Scratch: scratch, Features: true, NoShards: plan.noShards}))
				used, disk = max(used, b.Peak()), max(disk, bytesOf(cat))
			}
			for {
				left, err := Next(ctx, cat)
				must(t, err)
				must(t, cat.Remove(ctx, left.Superseded))
				if left.Step == "" {
					break
				}
				if left.Step == Whole || plan.workers == 1 {
					ds, err := open()
					must(t, err)
					do(func(o Options) error { _, err := Run(ctx, ds, cat, o); return err })
					must(t, ds.Close())
					continue
				}
				for _, p := range left.Cut(plan.workers) {
					do(func(o Options) error { return Execute(ctx, open, cat, o, left.Step, p) })
				}
			}
			check := func(what string, got, want int64) {
				t.Helper()
				if !near(got, want) && max(got, want) > few {
					t.Errorf("%s: %d planned, %d measured", what, got, want)
				}
			}
			limit := budget(t, plan.free).Free()
			memory, least := Memory(c, plan.workers, limit)
			if least > limit || memory > limit {
				t.Errorf("%d of memory planned, %d at least, of %d", memory, least, limit)
			}
			if plan.free > 64<<20 {
				check("memory", memory, used)
			}
			peak, final := Disk(c, plan.workers, limit)
			if plan.workers > 1 { // what one worker has in scratch files is not seen here
				check("peak disk", peak, disk)
			}
			check("disk", final, bytesOf(cat))
			read, written := Traffic(c, plan.workers, limit)
			s := scratchTraffic()
			check("read", read, store.BytesRead()+s[0]-before[0])
			check("written", written, store.BytesWritten()+s[1]-before[1])
		})
	}
}

// few is the number of bytes of small files that are not planned.
const few = 1 << 13

// bytesOf is the size of all files of a catalogue.
func bytesOf(cat *catalog.Catalog) (bytes int64) {
	for _, e := range cat.Entries("") {
		bytes += e.Bytes
	}
	return bytes
}

func scratchTraffic() (t [2]int64) {
	t[0], t[1] = direct.ScratchTraffic()
	return t
}
