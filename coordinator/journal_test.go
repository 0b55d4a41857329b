package coordinator

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"testing"

	"ndls/internal/control"
	"ndls/internal/seal"
	"ndls/internal/storage"
	"ndls/internal/storage/storagetest"
)

func openJournal(t *testing.T, s storage.Store) *Journal {
	t.Helper()
	j, err := OpenJournal(context.Background(), s)
	if err != nil {
		t.Fatal(err)
	}
	return j
}

// lease is an event that can be told from others by its number.
func leaseEvent(n uint64) event { return event{Fact: leased, Task: "lsi", Worker: "w", Fencing: n} }

func appendTo(j *Journal, events ...event) error {
	return j.wait(context.Background(), j.add(events...))
}

// numbers of the leases of events.
func fencings(events []event) (all []uint64) {
	for _, e := range events {
		all = append(all, e.Fencing)
	}
	return all
}

func names(t *testing.T, s storage.Store) string {
	t.Helper()
	files, err := s.List(context.Background(), journalPrefix)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, f := range files {
		all = append(all, strings.TrimLeft(strings.TrimSuffix(strings.TrimPrefix(f.Name, journalPrefix), ".json"), "0"))
	}
	return strings.Join(all, " ")
}

func TestJournalRemembers(t *testing.T) {
	store := storagetest.NewMem()
	j := openJournal(t, store)
	if got := names(t, store); got != "" || len(j.read) > 0 {
		t.Fatalf("an unused journal has records %s, %v", got, j.read)
	}
	for n := range uint64(3) {
		if err := appendTo(j, leaseEvent(2*n+1), leaseEvent(2*n+2)); err != nil {
			t.Fatal(err)
		}
	}
	again := openJournal(t, store)
	if got := fmt.Sprint(fencings(again.read)); got != "[1 2 3 4 5 6]" {
		t.Errorf("read %s", got)
	}
	if got := names(t, store); got != "1 2 3 4 5" { // a claim, three records, a claim
		t.Errorf("records %s", got)
	}
}

// TestSnapshotStandsForItsWholeRecord has events before a snapshot in its record.
func TestSnapshotStandsForItsWholeRecord(t *testing.T) {
	store := storagetest.NewMem()
	j := openJournal(t, store)
	for _, events := range [][]event{
		{leaseEvent(1)},
		{leaseEvent(2), {Fact: snapshot, State: &state{Fencing: 2}}, leaseEvent(3)},
		{leaseEvent(4)},
	} {
		if err := appendTo(j, events...); err != nil {
			t.Fatal(err)
		}
	}
	again := openJournal(t, store)
	if got := fmt.Sprint(fencings(again.read)); got != "[0 3 4]" || again.read[0].Fact != snapshot {
		t.Errorf("read %s", got)
	}
}

func TestCompactionKeepsTheClaims(t *testing.T) {
	store := storagetest.NewMem()
	zombie := openJournal(t, store)
	if err := appendTo(zombie, leaseEvent(1)); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		j := openJournal(t, store)
		if err := appendTo(j, leaseEvent(2), leaseEvent(3)); err != nil {
			t.Fatal(err)
		}
		if err := appendTo(j, event{Fact: snapshot, State: &state{Fencing: 3}}); err != nil {
			t.Fatal(err)
		}
		j.tidy(context.Background())
	}
	// Claims 1, 3, 6, 9 and the last snapshot.
	if got := names(t, store); got != "1 3 6 9 11" {
		t.Errorf("records %s", got)
	}
	// Its next number equals that of the claim that superseded it.
	if err := appendTo(zombie, leaseEvent(4)); !errors.Is(err, ErrSuperseded) {
		t.Errorf("the first coordinator wrote on: %v", err)
	}
	if j := openJournal(t, store); len(j.read) != 1 || j.read[0].State.Fencing != 3 {
		t.Errorf("read %+v", j.read)
	}
}

// The journal stays short by itself in a long run.
func TestJournalSweeps(t *testing.T) {
	store := storagetest.NewMem()
	j := openJournal(t, store)
	for n := range uint64(3 * compactAfter) {
		events := []event{leaseEvent(n + 1)}
		if j.full() {
			events = append(events, event{Fact: snapshot, State: &state{Fencing: n + 1}})
		}
		if err := appendTo(j, events...); err != nil {
			t.Fatal(err)
		}
		if n%64 == 0 {
			j.tidy(t.Context()) // as a scheduler does beside its tasks
		}
	}
	if got := len(strings.Fields(names(t, store))); got > 2*compactAfter {
		t.Errorf("%d records after %d", got, 3*compactAfter)
	}
	again := openJournal(t, store)
	if again.read[0].Fact != snapshot && again.read[1].Fact != snapshot {
		t.Error("read from before the last snapshot")
	}
	if last := again.read[len(again.read)-1].Fencing; last != 3*compactAfter {
		t.Errorf("the last event is %d", last)
	}
}

func TestTwoCoordinators(t *testing.T) {
	store := storagetest.NewMem()
	first, second := openJournal(t, store), openJournal(t, store)
	if err := appendTo(first, leaseEvent(1)); err != nil {
		t.Fatal(err)
	}
	if err := appendTo(second, leaseEvent(1)); !errors.Is(err, ErrSuperseded) {
		t.Errorf("both began the journal: %v", err)
	}
	third := openJournal(t, store)
	for range 2 {
		if err := appendTo(first, leaseEvent(2)); !errors.Is(err, ErrSuperseded) {
			t.Errorf("a superseded coordinator wrote: %v", err)
		}
	}
	if err := appendTo(third, leaseEvent(2)); err != nil {
		t.Error(err)
	}
}

// What comes while a record is being written shares the next one.
func TestJournalGroups(t *testing.T) {
	store := storagetest.NewMem()
	j := openJournal(t, store)
	if err := appendTo(j, leaseEvent(1)); err != nil {
		t.Fatal(err)
	}
	j.writing.Lock() // a record is being written
	const many = 50
	var wg sync.WaitGroup
	errs := make(chan error, many)
	for n := range uint64(many) {
		b := j.add(leaseEvent(n + 2))
		wg.Go(func() { errs <- j.wait(context.Background(), b) })
	}
	j.writing.Unlock()
	wg.Wait()
	close(errs)
	for err := range errs {
		if err != nil {
			t.Error(err)
		}
	}
	if got := names(t, store); got != "1 2 3" {
		t.Errorf("%d events made records %s", many, got)
	}
	if got := openJournal(t, store).read; len(got) != many+1 || got[many].Fencing != many+1 {
		t.Errorf("read %v", fencings(got))
	}
}

// unsure stores a file and says that it failed, once, as a network does; the
// client library under it tries again by itself and finds the file.
type unsure struct{ storage.Store }

func (u unsure) CreateNew(ctx context.Context, name string) (storage.Writer, error) {
	w, err := u.Store.CreateNew(ctx, name)
	return unsureWriter{w, name}, err
}

type unsureWriter struct {
	storage.Writer
	name string
}

func (w unsureWriter) Commit(ctx context.Context) (storage.Digest, error) {
	if d, err := w.Writer.Commit(ctx); err != nil {
		return d, err
	}
	return storage.Digest{}, fmt.Errorf("put %s: %w", w.name, storage.ErrExist)
}

func TestOwnRecordIsNotAnothers(t *testing.T) {
	j := openJournal(t, unsure{storagetest.NewMem()})
	if err := appendTo(j, leaseEvent(1)); err != nil {
		t.Error(err)
	}
}

// A caller that goes away does not end the journal.
func TestJournalOutlivesItsCallers(t *testing.T) {
	store := storagetest.NewMem()
	j := openJournal(t, store)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := j.wait(ctx, j.add(leaseEvent(1))); err != nil {
		t.Error(err)
	}
	if err := appendTo(j, leaseEvent(2)); err != nil || names(t, store) != "1 2 3" {
		t.Errorf("records %s: %v", names(t, store), err)
	}
}

// looked is a store that does something before it answers whether a file exists.
type looked struct {
	storage.Store
	before func()
}

func (l *looked) Stat(ctx context.Context, name string) (storage.Info, error) {
	l.before()
	return l.Store.Stat(ctx, name)
}

// A record that the coordinator writes while it looks for records of others is its own.
func TestLookDuringAWrite(t *testing.T) {
	store := &looked{Store: storagetest.NewMem()}
	j := openJournal(t, store)
	var wrote error
	store.before = func() { wrote = appendTo(j, leaseEvent(1)) }
	if err := j.look(context.Background()); err != nil || wrote != nil {
		t.Error(err, wrote)
	}
}

func TestDamagedJournal(t *testing.T) {
	for _, tc := range []struct {
		name   string
		damage func(*storagetest.Mem) error
		want   string
	}{
		{"missing in the middle", func(s *storagetest.Mem) error { return s.Remove(context.Background(), journalName(3)) }, "00000003.json: it is missing"},
		{"cut off", func(s *storagetest.Mem) error {
			return s.Corrupt(journalName(3), func(b []byte) []byte { return b[:len(b)/2] })
		}, "00000003.json"},
		{"empty", func(s *storagetest.Mem) error {
			return s.Corrupt(journalName(4), func([]byte) []byte { return nil })
		}, "00000004.json"},
		{"another's number", func(s *storagetest.Mem) error {
			text := must(storage.Get(context.Background(), s, journalName(2), maxJournalRecord))
			return s.Corrupt(journalName(3), func([]byte) []byte { return text })
		}, "it holds record 2"},
		{"a changed digit", func(s *storagetest.Mem) error {
			return s.Corrupt(journalName(3), func(b []byte) []byte { return bytes.Replace(b, []byte(`"fencing":2`), []byte(`"fencing":7`), 1) })
		}, "its bytes have the sum"},
		{"no sum", func(s *storagetest.Mem) error {
			return s.Corrupt(journalName(3), func(b []byte) []byte {
				return regexp.MustCompile(`"crc32c":"\w+"`).ReplaceAll(b, []byte(`"crc32c":""`))
			})
		}, "its bytes have the sum"},
		{"a foreign file", func(s *storagetest.Mem) error {
			return storage.Put(context.Background(), s.Create, journalPrefix+"notes.txt", []byte("hello"))
		}, "notes.txt: it is no record"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			store := storagetest.NewMem()
			j := openJournal(t, store)
			for n := range uint64(3) {
				if err := appendTo(j, leaseEvent(n+1)); err != nil {
					t.Fatal(err)
				}
			}
			if err := tc.damage(store); err != nil {
				t.Fatal(err)
			}
			_, err := OpenJournal(context.Background(), store)
			if !errors.Is(err, seal.ErrCorrupt) || !strings.Contains(err.Error(), tc.want) || !strings.Contains(err.Error(), "remove the folder journal/") {
				t.Errorf("error %v, want one with %q", err, tc.want)
			}
		})
	}
}

func must[T any](x T, err error) T {
	if err != nil {
		panic(err)
	}
	return x
}

// Every byte of a record counts.
func TestEveryByteIsChecked(t *testing.T) {
	store := storagetest.NewMem()
	if err := appendTo(openJournal(t, store), leaseEvent(1)); err != nil {
		t.Fatal(err)
	}
	text := must(storage.Get(context.Background(), store, journalName(2), maxJournalRecord))
	for at := range len(text) - 1 { // all but the end of the line
		changed := bytes.Clone(text)
		changed[at] ^= 0xff
		if _, err := parseRecord(changed); err == nil {
			t.Errorf("byte %d may be anything", at)
		}
	}
}

// Whatever operation of the store fails, what was confirmed is read again, in
// order, with at most what was not confirmed after it.
func TestJournalFailsAtEveryStep(t *testing.T) {
	script := func(s storage.Store) (confirmed uint64, err error) {
		for range 3 {
			j, err := OpenJournal(context.Background(), s)
			if err != nil {
				return confirmed, err
			}
			if len(j.read) > 0 {
				if err := appendTo(j, event{Fact: snapshot, State: &state{Fencing: confirmed}}); err != nil {
					return confirmed, err
				}
				j.tidy(context.Background())
			}
			for range 2 {
				if err := appendTo(j, leaseEvent(confirmed+1)); err != nil {
					return confirmed, err
				}
				confirmed++
			}
		}
		return confirmed, nil
	}
	count := storagetest.NewFaulty(storagetest.NewMem(), 0)
	if n, err := script(count); err != nil || n != 6 {
		t.Fatal(n, err)
	}
	for at := int64(1); at <= count.Ops(); at++ {
		store := storagetest.NewMem()
		confirmed, err := script(storagetest.NewFaulty(store, at))
		if err != nil && !errors.Is(err, storage.ErrDisk) {
			t.Fatalf("operation %d: error %v", at, err)
		}
		last := uint64(0)
		for _, e := range openJournal(t, store.CrashClone()).read {
			if e.Fact == snapshot {
				last = e.State.Fencing
			} else if last++; e.Fencing != last {
				t.Fatalf("operation %d: event %d in place of %d", at, e.Fencing, last)
			}
		}
		if last < confirmed || last > confirmed+1 {
			t.Fatalf("operation %d: %d events read, %d confirmed", at, last, confirmed)
		}
	}
}

// TestVerifyJournal: each byte of each record is looked at, and none may be missing.
func TestVerifyJournal(t *testing.T) {
	ctx := context.Background()
	store := storagetest.NewMem()
	if damaged, err := VerifyJournal(ctx, store); err != nil || len(damaged) > 0 {
		t.Fatalf("no journal: %v, %v", damaged, err)
	}
	for range 2 {
		j := openJournal(t, store)
		for _, e := range []event{leaseEvent(1), {Fact: snapshot, State: &state{Fencing: 1}}, leaseEvent(2)} {
			if err := appendTo(j, e); err != nil {
				t.Fatal(err)
			}
		}
		j.tidy(ctx)
	}
	// Claims 1 and 5, the last snapshot 7, and what came after it.
	if got := names(t, store); got != "1 5 7 8" {
		t.Fatalf("records %s", got)
	}
	if damaged, err := VerifyJournal(ctx, store); err != nil || len(damaged) > 0 {
		t.Fatalf("nothing is wrong: %v, %v", damaged, err)
	}
	for _, n := range []uint64{1, 5, 7, 8} {
		name := journalName(n)
		for at := range must(store.Stat(ctx, name)).Size - 1 { // all but the end of the line
			s := store.CrashClone()
			if err := s.FlipByte(name, at); err != nil {
				t.Fatal(err)
			}
			damaged, err := VerifyJournal(ctx, s)
			if err != nil || len(damaged) != 1 || !errors.Is(damaged[0], seal.ErrCorrupt) || !strings.Contains(damaged[0].Error(), name) {
				t.Fatalf("byte %d of %s: %v, %v", at, name, damaged, err)
			}
		}
		s := store.CrashClone()
		if err := s.Remove(ctx, name); err != nil {
			t.Fatal(err)
		}
		damaged, err := VerifyJournal(ctx, s)
		if n == 8 {
			continue // nobody was told of what came after the last record that is there
		}
		if err != nil || len(damaged) == 0 || !strings.Contains(damaged[0].Error(), name+": it is missing") {
			t.Errorf("without %s: %v, %v", name, damaged, err)
		}
	}
	s := store.CrashClone()
	if err := storage.Put(ctx, s.CreateNew, journalPrefix+"notes.txt", []byte("x")); err != nil {
		t.Fatal(err)
	}
	if damaged, err := VerifyJournal(ctx, s); err != nil || len(damaged) != 1 {
		t.Errorf("a foreign file: %v, %v", damaged, err)
	}
	if _, err := VerifyJournal(ctx, storagetest.NewFaulty(store, 2)); !errors.Is(err, storage.ErrDisk) {
		t.Errorf("a store that fails: %v", err)
	}
	store = storagetest.NewMem()
	if err := appendTo(openJournal(t, store), leaseEvent(1)); err != nil {
		t.Fatal(err)
	}
	if err := store.Remove(ctx, journalName(1)); err != nil {
		t.Fatal(err)
	}
	if damaged, err := VerifyJournal(ctx, store); err != nil || len(damaged) != 1 || !strings.Contains(damaged[0].Error(), journalName(1)) {
		t.Errorf("without the first record, before a snapshot: %v, %v", damaged, err)
	}
}

func FuzzParseRecord(f *testing.F) {
	for _, r := range []journalRecord{
		{Number: 1, By: "a", Claim: true},
		{Number: 2, By: "a", Events: []event{leaseEvent(1), {Fact: ended, Fencing: 1, Outcome: &control.Outcome{Report: &control.StageReport{Stage: control.LSI}}}}},
		{Number: 3, By: "a", Claims: []uint64{1}, Events: []event{{Fact: snapshot, State: &state{Fencing: 1, Tasks: []taskState{{part: part{Part: control.Whole}}}}}}},
	} {
		f.Add(must(encodeRecord(r)))
	}
	f.Add([]byte(`{"crc32c":"00000000","record":{}}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		r, err := parseRecord(text)
		if err != nil {
			return
		}
		again, err := parseRecord(must(encodeRecord(r)))
		if err != nil || again.Number != r.Number || len(again.Events) != len(r.Events) {
			t.Fatalf("%+v became %+v, %v", r, again, err)
		}
		// Events of any content are refused or applied, without a panic.
		l := newLeases(DefaultLease)
		for _, e := range r.Events {
			if l.apply(epoch, e) != nil {
				return
			}
		}
	})
}
