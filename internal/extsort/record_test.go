package extsort

import (
	"bytes"
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"ndls/internal/rng"
	"ndls/internal/seal"
	"ndls/internal/storage/storagetest"
)

// counted sorts records, and counts equal ones in one of them.
func counted(records []Record) []Record {
	sorted := slices.Clone(records)
	slices.SortFunc(sorted, compare)
	var all []Record
	for _, r := range sorted {
		if last := len(all) - 1; last >= 0 && all[last].Key == r.Key && all[last].Value == r.Value {
			all[last].Repeated++
		} else {
			all = append(all, r)
		}
	}
	return all
}

// TestSortsRecords compares with a plain sort: few and many records, keys and values that are
// repeated rarely and often, in memory, with runs, and with so many runs that some are merged
// first.
func TestSortsRecords(t *testing.T) {
	folder := scratchFolder(t)
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.SampledFrom([]int{0, 1, 2, 255, 5000, 60_000}).Draw(t, "records")
		keys := rapid.SampledFrom([]uint64{1, 7, 1 << 20, 1 << 62}).Draw(t, "keys")
		values := rapid.SampledFrom([]int{1, 5, 1 << 20}).Draw(t, "values")
		draw := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		records := make([]Record, n)
		for i := range records {
			records[i] = Record{Key: draw.Uint64N(keys) << 1, Value: float32(draw.IntN(values)) + 0.5}
		}
		want := counted(records)
		free := rapid.SampledFrom([]int64{160 << 10, 600 << 10, 64 << 20}).Draw(t, "free")
		b := budget(t, free)
		s, err := NewScratch(folder)
		must(t, err)
		defer func() { must(t, s.Remove()) }()
		o := Options{Threads: rapid.SampledFrom([]int{1, 2, 5}).Draw(t, "threads"), Want: rapid.SampledFrom([]int64{0, int64(n)}).Draw(t, "want")}
		sorter, err := NewSorter[Record](context.Background(), b, s, o)
		must(t, err)
		defer sorter.Close()
		for part := range slices.Chunk(records, 1000) {
			must(t, sorter.Add(part))
		}
		must(t, sorter.Finish())
		o.Width = 16
		if spilled := s.Files() > 0; spilled != o.Spills(int64(n), free) {
			t.Fatalf("%d records in %d bytes: spilled %v, not %v", n, free, spilled, !spilled)
		}
		if rapid.Bool().Draw(t, "spill what is in memory") {
			must(t, sorter.Spill())
			if n > 0 && s.Files() == 0 || b.Free() != free {
				t.Fatalf("%d files, %d bytes of the budget are not given back", s.Files(), free-b.Free())
			}
		}
		var got []Record
		var mu sync.Mutex
		take := func(part []Record) error {
			mu.Lock()
			defer mu.Unlock()
			got = append(got, part...)
			return nil
		}
		if rapid.Bool().Draw(t, "in order") {
			must(t, sorter.InOrder(take))
		} else {
			must(t, sorter.Each(take))
			slices.SortFunc(got, compare)
		}
		if !slices.Equal(got, want) {
			t.Fatalf("%d records of %d, %d expected", len(got), n, len(want))
		}
		if b.Free() != free {
			t.Fatalf("%d bytes were not given back", free-b.Free())
		}
	})
}

// TestRecordFiles writes records to run files of which several have the same keys, and merges
// ranges of keys. All records of a key are in one range.
func TestRecordFiles(t *testing.T) {
	const slicesOf = 4
	var files RunFiles[Record]
	var all []Record
	b := budget(t, 16<<20)
	for i := range uint64(3) {
		records := make([]Record, 3*blockKeys+100)
		for k := range records {
			h := rng.Hash(7, i, uint64(k))
			records[k] = Record{Key: h % 3000, Value: 1 + float32(h>>32%7)}
		}
		all = append(all, records...)
		var file bytes.Buffer
		w, err := NewRunWriter[Record](b, &file, int64(len(records)))
		must(t, err)
		must(t, w.Write(counted(records)))
		_, err = w.Close([2]int64{1, 2})
		must(t, err)
		w.Free()
		if _, err := OpenRun[uint64](b, storagetest.NewBytesReader(file.Bytes()), "run"); !errors.Is(err, seal.ErrCorrupt) {
			t.Errorf("records were opened as keys: %v", err)
		}
		r, err := OpenRun[Record](b, storagetest.NewBytesReader(file.Bytes()), "run")
		must(t, err)
		files = append(files, r)
		var read []Record
		must(t, RunFiles[Record]{r}.InOrder(t.Context(), 2, func(part []Record) error {
			read = append(read, part...)
			return nil
		}))
		if !slices.Equal(read, counted(records)) {
			t.Errorf("%d records were read in order", len(read))
		}
	}
	defer files.Close()
	want := counted(all)
	var got []Record
	s, err := NewScratch(scratchFolder(t))
	must(t, err)
	defer func() { must(t, s.Remove()) }()
	for i := range slicesOf {
		lo, hi := files.Border(i, slicesOf), files.Border(i+1, slicesOf)
		// Merge takes its files over: each has to be opened again.
		var again RunFiles[Record]
		for _, f := range files {
			r, err := OpenRun[Record](b, f.file, "run")
			must(t, err)
			again = append(again, r)
		}
		m := Merge(t.Context(), b, s, 2, again, lo, hi)
		must(t, m.InOrder(func(part []Record) error {
			for _, r := range part {
				if r.Key < lo || r.Key >= hi {
					t.Errorf("key %d in the range from %d to %d", r.Key, lo, hi)
				}
			}
			got = append(got, part...)
			return nil
		}))
	}
	if !slices.Equal(got, want) {
		t.Errorf("%d records in all ranges, want %d", len(got), len(want))
	}
}

// TestRecordScratchFile: what was written comes back, and damage is found.
func TestRecordScratchFile(t *testing.T) {
	records := make([]Record, 3*blockKeys+7)
	for i := range records {
		records[i] = Record{Key: uint64(i) * 3, Value: float32(i)}
	}
	for _, damaged := range []bool{false, true} {
		s, err := NewScratch(scratchFolder(t))
		must(t, err)
		w, err := CreateKeys[Record](s)
		must(t, err)
		for part := range slices.Chunk(records, 1500) {
			must(t, w.Write(part))
		}
		f, err := w.Finish()
		must(t, err)
		if damaged {
			_, err := f.f.holes.WriteAt([]byte{1}, 2*blockKeys*16+9)
			must(t, err)
		}
		n := 0
		err = f.Each(t.Context(), 1, func(part []Record) error {
			for _, r := range part {
				if r != records[r.Key/3] {
					t.Errorf("record %+v", r)
				}
			}
			n += len(part)
			return nil
		})
		if damaged && !errors.Is(err, seal.ErrCorrupt) || !damaged && (err != nil || n != len(records)) {
			t.Errorf("damaged %v: %d records, %v", damaged, n, err)
		}
		must(t, s.Remove())
	}
}

// TestNumberOfRepetitions: a number of repetitions that has no space stays with a second
// record, and none is lost.
func TestNumberOfRepetitions(t *testing.T) {
	many := Record{Key: 1, Value: 2, Repeated: math.MaxUint32 - 1}
	one := Record{Key: 1, Value: 2}
	if got := unique([]Record{many, one, one, one}); !slices.Equal(got, []Record{{1, 2, math.MaxUint32}, {1, 2, 1}}) {
		t.Errorf("%+v", got)
	}
	if got := unique([]Record{one, one, many}); !slices.Equal(got, []Record{{1, 2, 1}, many}) {
		t.Errorf("%+v", got)
	}
}

// TestRecordsAreDamaged changes the value of a record in a run: no wrong one is given.
func TestRecordsAreDamaged(t *testing.T) {
	b := budget(t, 256<<10)
	s, err := NewScratch(scratchFolder(t))
	must(t, err)
	defer func() { must(t, s.Remove()) }()
	sorter, err := NewSorter[Record](t.Context(), b, s, Options{Threads: 1})
	must(t, err)
	defer sorter.Close()
	for i := range uint64(100_000) {
		must(t, sorter.Add([]Record{{Key: rng.Hash(1, i) >> 1, Value: 1}}))
	}
	must(t, sorter.Finish())
	_, err = sorter.runs[0].(*KeyFile[Record]).f.holes.WriteAt([]byte{0xa5}, 1000*16+9)
	must(t, err)
	if err := sorter.InOrder(func([]Record) error { return nil }); !errors.Is(err, seal.ErrCorrupt) {
		t.Error(err)
	}
}

// BenchmarkSortRecords sorts in memory, on two threads.
func BenchmarkSortRecords(b *testing.B) {
	draw := rand.New(rand.NewPCG(1, 1))
	source := make([]Record, 1<<21)
	for i := range source {
		source[i] = Record{Key: draw.Uint64N(1 << 50), Value: 1}
	}
	records := make([]Record, len(source))
	for b.Loop() {
		copy(records, source)
		SortKeys(records, 2)
	}
	b.ReportMetric(float64(len(records))*float64(b.N)/b.Elapsed().Seconds()/1e6, "Mrecords/s")
}
