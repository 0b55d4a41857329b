package coordinator

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"ndls/catalog"
	"ndls/internal/control"
	"ndls/internal/mem"
	"ndls/internal/seal"
	"ndls/internal/share"
	"ndls/internal/storage"
	"ndls/internal/storage/storagetest"
	"ndls/internal/testkit"
	"ndls/plan"
	"ndls/stage/registry"
)

// finished is a store with a complete run, and the plan that made it.
func finished(t *testing.T) (*storagetest.Mem, plan.Options) {
	t.Helper()
	store := storagetest.NewMem()
	j, _ := setup(t, store, labelled)
	run(t, j, registry.Always()...)
	return store, j.Plan
}

// checkPlan sees that every file was made under the plan of the record, and that what is
// complete is whole.
func checkPlan(t *testing.T, what string, store storage.Store) {
	t.Helper()
	rec := read(t, store)
	cat, err := catalog.Open(context.Background(), store)
	if err != nil {
		t.Fatal(err)
	}
	cat.Bind(registry.Binding(rec.Plan))
	if err := rec.Check(cat); err != nil {
		t.Errorf("%s: %v", what, err)
	}
	for _, e := range cat.All() {
		if err := cat.Verify(context.Background(), e); err != nil {
			t.Errorf("%s: %v", what, err)
		}
		if e.Kind == catalog.KindSummary {
			continue
		}
		if got, want := string(content(t, store, e.Path)), registry.Hashes(rec.Plan)[e.Stage]; got != want {
			t.Errorf("%s: %s holds what plan %s made, the record has %s", what, e.Path, got, want)
		}
	}
	for _, s := range registry.Always() {
		if out := outputs[s].kind; out != "" && rec.Done(s) && len(cat.Entries(out)) == 0 {
			t.Errorf("%s: %s is complete without a file", what, s)
		}
	}
}

// A run that is told to discard ends at every operation, by a full disk from there on or
// by one fault, or loses power; the same command without the wish to discard then gives
// what the new plan asks for, and so do the old options once they discard.
func TestDiscardInterrupted(t *testing.T) {
	ctx := context.Background()
	points, step := 0, int64(1)
	if testing.Short() {
		step = 17
	}
	for _, other := range []bool{true, false} {
		for at := int64(1); ; at += step {
			store, opts := finished(t)
			if other {
				opts.LSI.Epsilon = 0.3
			}
			faulty := storagetest.NewFaulty(store, at)
			fails := func() error {
				cat, err := catalog.Open(ctx, faulty)
				if err != nil {
					return err
				}
				j, f := setup(t, store, labelled)
				j.Store, j.Catalog, f.cat, j.Plan, j.Restart = faulty, cat, cat, opts, true
				_, err = j.Run(ctx, control.LSI)
				return err
			}
			err := fails()
			done := faulty.Ops() < at
			if err != nil && !errors.Is(err, storage.ErrDisk) {
				t.Fatalf("operation %d: %v", at, err)
			}
			for name, s := range map[string]*storagetest.Mem{"fault": store, "power lost": store.CrashClone()} {
				what := fmt.Sprintf("%s at operation %d, other options %v", name, at, other)
				j, _ := setup(t, s, labelled)
				j.Plan = opts
				rec, err := j.Run(ctx, registry.Always()...)
				if errors.Is(err, control.ErrPlanMismatch) {
					// Nothing was discarded yet: the old run is whole.
					checkPlan(t, what+", refused", s)
					j.Restart = true
					rec, err = j.Run(ctx, control.LSI, control.Smooth, control.Train, control.Predict, control.LabelDepth, control.SmoothLabels, control.Evaluate)
				}
				if err != nil {
					t.Fatalf("%s: run again: %v", what, err)
				}
				if rec.State != Complete || rec.Plan != opts {
					t.Errorf("%s: state %s, plan %+v", what, rec.State, rec.Plan.LSI)
				}
				checkPlan(t, what, s)
				points++
			}
			if done {
				break
			}
		}
	}
	if points < 100/int(step) {
		t.Errorf("%d points", points)
	}
	t.Logf("%d points", points)
}

// One changed byte of the record is found.
func TestRecordIsSealed(t *testing.T) {
	testkit.Slow(t, "each byte is changed")
	store, _ := finished(t)
	text := content(t, store, RecordName)
	for at := range text {
		damaged := append([]byte(nil), text...)
		damaged[at] ^= 1
		if err := storage.Put(context.Background(), store.Create, RecordName, damaged); err != nil {
			t.Fatal(err)
		}
		if _, err := ReadRecord(context.Background(), store); !errors.Is(err, seal.ErrCorrupt) && !errors.Is(err, seal.ErrVersion) {
			t.Fatalf("byte %d (%q): %v, want ErrCorrupt", at, text[max(at-20, 0):min(at+20, len(text))], err)
		}
	}
}

// A complete run without its catalogue, or with an older one, is damaged, for every
// verb.
func TestCatalogueGone(t *testing.T) {
	ctx := context.Background()
	for name, damage := range map[string]func(s *storagetest.Mem) error{
		"gone": func(s *storagetest.Mem) error {
			files, err := s.List(ctx, "catalog")
			for _, f := range files {
				err = errors.Join(err, s.Remove(ctx, f.Name))
			}
			return err
		},
		"a file taken off": func(s *storagetest.Mem) error {
			cat, err := catalog.Open(ctx, s)
			if err != nil {
				return err
			}
			return cat.Remove(ctx, func(e catalog.Entry) bool { return e.Kind == catalog.KindLSI })
		},
	} {
		store, opts := finished(t)
		if err := damage(store); err != nil {
			t.Fatal(err)
		}
		rec := read(t, store)
		cat, err := catalog.Open(ctx, store)
		if err != nil {
			t.Fatal(err)
		}
		cat.Bind(registry.Binding(rec.Plan))
		if err := rec.Check(cat); !errors.Is(err, seal.ErrCorrupt) {
			t.Errorf("%s: %v, want ErrCorrupt", name, err)
		}
		j, f := setup(t, store, labelled)
		j.Plan = opts
		if _, err := j.Run(ctx, registry.Always()...); !errors.Is(err, seal.ErrCorrupt) || len(f.executed) > 0 {
			t.Errorf("%s: run: %v after %v, want ErrCorrupt", name, err, f.executed)
		}
	}
}

// The Parquet file of the catalogue is missing or cut: verify says so.
func TestVerifyChecksTheCatalogueFile(t *testing.T) {
	ctx := context.Background()
	for name, damage := range map[string]func(s *storagetest.Mem) error{
		"missing": func(s *storagetest.Mem) error { return s.Remove(ctx, catalog.Name) },
		"cut": func(s *storagetest.Mem) error {
			return s.Corrupt(catalog.Name, func(b []byte) []byte { return b[:len(b)-9] })
		},
	} {
		store, _ := finished(t)
		if err := damage(store); err != nil {
			t.Fatal(err)
		}
		rec := read(t, store)
		cat, err := catalog.Open(ctx, store)
		if err != nil {
			t.Fatal(err)
		}
		cat.Bind(registry.Binding(rec.Plan))
		budget, err := mem.NewBudget(mem.MinBudget)
		if err != nil {
			t.Fatal(err)
		}
		defer budget.Close()
		if _, err := Verify(ctx, cat, rec, share.Part{}, budget); !errors.Is(err, seal.ErrCorrupt) || !strings.Contains(err.Error(), catalog.Name) {
			t.Errorf("%s: %v, want ErrCorrupt that names %s", name, err, catalog.Name)
		}
	}
}

// The record is gone: the same command keeps what is committed.
func TestRecordGone(t *testing.T) {
	ctx := context.Background()
	store, opts := finished(t)
	if err := store.Remove(ctx, RecordName); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadRecord(ctx, store); !errors.Is(err, ErrNoRecord) || !errors.Is(err, seal.ErrCorrupt) {
		t.Errorf("%v, want ErrNoRecord", err)
	}
	j, _ := setup(t, store, labelled)
	before := j.Catalog.All()
	j.Plan = opts
	if rec := run(t, j, registry.Always()...); rec.State != Complete || !reflect.DeepEqual(j.Catalog.All(), before) {
		t.Errorf("state %s; the catalogue changed", rec.State)
	}
}

// A verb that is refused changes nothing.
func TestRefusedVerbChangesNothing(t *testing.T) {
	noFeatures := labelled
	noFeatures.Features = 0
	store := storagetest.NewMem()
	j, _ := setup(t, store, noFeatures)
	if rec := run(t, j, registry.Always()...); rec.State != Complete {
		t.Fatalf("state %s", rec.State)
	}
	before := content(t, store, RecordName)
	j.Whole = false
	for _, s := range []control.Stage{control.Smooth, control.Train, control.Evaluate} {
		if _, err := j.Run(context.Background(), s); err == nil {
			t.Errorf("%s ran without features", s)
		}
	}
	j.Plan.LSI.Epsilon = 0.7
	if _, err := j.Run(context.Background(), control.LSI); !errors.Is(err, control.ErrPlanMismatch) {
		t.Errorf("another plan: %v", err)
	}
	if after := content(t, store, RecordName); string(after) != string(before) {
		t.Errorf("the record changed:\n%s\n%s", before, after)
	}
}
