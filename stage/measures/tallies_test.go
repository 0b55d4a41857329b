package measures

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"runtime"
	"runtime/debug"
	"syscall"
	"testing"

	"ndls/catalog"
	"ndls/internal/mem"
	"ndls/internal/seal"
	"ndls/internal/storage"
	"ndls/internal/storage/storagetest"
	"ndls/shards"
	"ndls/stage"
	"ndls/train"
)

// TestLabelTallies writes tallies run by run, as one JSON value is written, and reads them back.
func TestLabelTallies(t *testing.T) {
	cat, err := catalog.Open(t.Context(), storagetest.NewMem())
	if err != nil {
		t.Fatal(err)
	}
	var all struct {
		Runs []train.Tally `json:"runs"`
	}
	f, err := cat.Create(t.Context(), catalog.Describe(catalog.KindLabelTally, LabelTallyPath(0)).In(0))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Abort()
	var text, want bytes.Buffer
	lists := []tallyList{{w: &text}, {w: f}}
	for run := range int32(3) {
		var tally train.Tally
		tally.Count([]int32{run, 4, 2}, []int32{run, 1, 7}, []uint8{train.Train, train.Test, train.Test})
		all.Runs = append(all.Runs, tally)
		for i := range lists {
			if err := lists[i].add(&tally, nil, 0); err != nil {
				t.Fatal(err)
			}
		}
	}
	for i := range lists {
		if err := lists[i].end(); err != nil {
			t.Fatal(err)
		}
	}
	e := json.NewEncoder(&want)
	e.SetIndent("", "  ")
	if err := e.Encode(all); err != nil {
		t.Fatal(err)
	}
	if text.String() != want.String() {
		t.Errorf("written %s, want %s", text.String(), want.String())
	}
	if err := cat.Commit(t.Context(), f); err != nil {
		t.Fatal(err)
	}
	env := &stage.Env{Catalog: cat, Summary: shards.Summary{Classes: make([]string, 8)}}
	var one train.Tally
	for i := range all.Runs {
		if n, err := readTallies(t.Context(), env, LabelTallyPath(0), 3, &one, nil, func(run int, _ float64) {
			if run == i && !reflect.DeepEqual(one, all.Runs[i]) {
				t.Errorf("read %+v, want %+v", one, all.Runs[i])
			}
			if run == i {
				one = train.Tally{} // another tally has its memory now
			}
		}); err != nil || n != 3 {
			t.Errorf("%d tallies: %v", n, err)
		}
	}
	b, err := mem.NewBudget(mem.MinBudget)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	// Of three models, or of two and their mean; files of earlier versions have no mean.
	env.Session = &stage.Session{Budget: b}
	for sets, runs := range map[int]int{2: 2, 3: 3, 4: 3, 5: 5} {
		env.Plan.Train.Runs = runs
		sums, err := SumTallies(t.Context(), env, catalog.KindLabelTally, sets)
		if fits := sets == 3 || sets == 4; fits != (err == nil) {
			t.Errorf("3 tallies were read as those of %d models, %d of them alike: %v", sets, runs, err)
		}
		if err == nil {
			if sums.Sets != 3 || sums.Of[2].Rows != all.Runs[2].Rows {
				t.Errorf("%d sets, %v of %v", sums.Sets, sums.Of[2].Rows, all.Runs[2].Rows)
			}
			sums.Free()
		}
	}
	env.Summary.Classes = env.Summary.Classes[:7]
	if _, err := readTallies(t.Context(), env, LabelTallyPath(0), 3, &one, nil, func(int, float64) {}); !errors.Is(err, seal.ErrCorrupt) {
		t.Errorf("a tally of more classes than there are: %v", err)
	}
}

// broken is a store whose files cannot be read.
type broken struct {
	storage.Store
	err error
}

func (s *broken) Open(ctx context.Context, name string) (storage.Reader, error) {
	r, err := s.Store.Open(ctx, name)
	if err != nil || s.err == nil {
		return r, err
	}
	return brokenReader{r, s.err}, nil
}

type brokenReader struct {
	storage.Reader
	err error
}

func (r brokenReader) ReadAt([]byte, int64) (int, error) { return 0, r.err }

// TestTallyOfBrokenStore: a tally that the store cannot read is not said to be damaged.
func TestTallyOfBrokenStore(t *testing.T) {
	store := &broken{Store: storagetest.NewMem()}
	cat, err := catalog.Open(t.Context(), store)
	if err != nil {
		t.Fatal(err)
	}
	f, err := cat.Create(t.Context(), catalog.Describe(catalog.KindLabelTally, LabelTallyPath(0)).In(0))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Abort()
	list, one := tallyList{w: f}, train.Tally{}
	counted := Breakdown{K: [rangesOfK]rightOf{3: {7, 5}}}
	counted.Confusion[2][confusedClasses] = 9
	if err := errors.Join(list.add(&one, &counted, 2.5), list.end(), cat.Commit(t.Context(), f)); err != nil {
		t.Fatal(err)
	}
	env := &stage.Env{Catalog: cat}
	var sum Breakdown
	loss := 0.0
	read := func() error {
		_, err := readTallies(t.Context(), env, LabelTallyPath(0), 1, &one, &sum, func(_ int, x float64) { loss = x })
		return err
	}
	if err := read(); err != nil || sum != counted || loss != 2.5 {
		t.Fatalf("breakdown %v of %v, loss %v: %v", sum.K[3], counted.K[3], loss, err)
	}
	store.err = syscall.EIO
	if err := read(); !errors.Is(err, syscall.EIO) || errors.Is(err, seal.ErrCorrupt) {
		t.Errorf("the disk fails, and the error is %v", err)
	}
}

// TestTallyMemory writes and reads tallies of few and many classes: beside their counts, which are
// in memory of the budget, they take no more for more classes.
func TestTallyMemory(t *testing.T) {
	for _, classes := range []int{2, 172, 10_000} {
		b, err := mem.NewBudget(mem.MinBudget)
		if err != nil {
			t.Fatal(err)
		}
		tallies, err := train.NewTallies(b, 2, classes)
		if err != nil {
			t.Fatal(err)
		}
		for c := range int32(classes) {
			for split := range uint8(train.Test + 1) {
				for range 3 {
					tallies.Of[0].Count([]int32{c}, []int32{int32(classes) - 1 - c}, []uint8{split})
				}
			}
		}
		// A pipe, so that no text is in memory as a whole.
		from, to := io.Pipe()
		written := make(chan error, 1)
		gc := debug.SetGCPercent(10)
		reads, most, before := 0, uint64(0), heap()
		look := func() {
			if reads++; reads%100 == 1 {
				most = max(most, heap())
			}
		}
		go func() { written <- writeTally(to, &tallies.Of[0], nil, 0, "") }()
		if _, err := readTally(json.NewDecoder(reading{from, look}), classes, &tallies.Of[1], nil); err != nil {
			t.Error(err)
		}
		if err := errors.Join(<-written, from.Close()); err != nil {
			t.Error(err)
		}
		debug.SetGCPercent(gc)
		if fmt.Sprint(tallies.Of[0].Classes) != fmt.Sprint(tallies.Of[1].Classes) || tallies.Of[0].Rows != tallies.Of[1].Rows {
			t.Errorf("%d classes: another tally was read than was written", classes)
		}
		if more := int64(most) - int64(before); more > 64<<10 {
			t.Errorf("%d classes: %d bytes of heap while they were written and read", classes, more)
		}
		tallies.Free()
		b.Close()
	}
}

// heap returns the bytes in use on the heap.
func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// reading looks at something before each read.
type reading struct {
	io.Reader
	look func()
}

func (r reading) Read(p []byte) (int, error) {
	r.look()
	return r.Reader.Read(p)
}
