package coordinator

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"slices"
	"sync"

	"ndls/internal/seal"
	"ndls/internal/storage"
)

const (
	// journalPrefix is the folder of the journal in a run directory.
	journalPrefix = "journal/"
	// maxJournalRecord bounds the bytes of a file that are read as a record.
	maxJournalRecord = 64 << 20
	// compactAfter is the number of events after which the whole state is written again.
	compactAfter = 512
	// sweepAtOnce is the number of old records that one sweep removes.
	sweepAtOnce = 64
)

// ErrSuperseded reports that another coordinator has taken over the run.
var ErrSuperseded = errors.New("another coordinator has taken over the run")

// Journal holds what a coordinator must remember if it is killed: numbered records in the run directory, each written once. If two
// coordinators write the record with the same number, one succeeds, and the other gets ErrSuperseded from then on. It is safe for
// concurrent use.
type Journal struct {
	store storage.Store
	by    string  // names this coordinator alone
	read  []event // from the last snapshot on

	adding  sync.Mutex // and what follows
	pending *batch
	since   int // events since the last snapshot

	writing sync.Mutex // and what follows
	next    uint64
	first   uint64   // the record with the last snapshot, 1 if there is none
	claims  []uint64 // the first record of each coordinator
	claimed bool     // by this one
	old     []uint64 // records that no one needs
	err     error    // of a record that could not be written
}

// batch holds the events of one future record.
type batch struct {
	events  []event
	written bool
}

// journalRecord is one file of the journal.
type journalRecord struct {
	Number uint64 `json:"number"`
	By     string `json:"by"`
	// Claim marks the first record of a coordinator. It is never removed: otherwise a coordinator that does not know that it was superseded
	// could write a record of the same number.
	Claim bool `json:"claim,omitempty"`
	// Claims lists all claims; it is filled if Events has a snapshot.
	Claims []uint64 `json:"claims,omitempty"`
	Events []event  `json:"events,omitempty"`
}

// sealed is a record in its stored form.
type sealed struct {
	// Sum is the CRC-32C of Record as it stands in the file, in hexadecimal.
	Sum    string          `json:"crc32c"`
	Record json.RawMessage `json:"record"`
}

// OpenJournal reads the journal of the run in store, and takes it over from the coordinator before, which then gets ErrSuperseded. A run
// without a journal gets one with the first record. Open the catalogue after the journal: no earlier coordinator confirms a change that it
// made after that. Errors wrap [seal.ErrCorrupt] for a damaged journal.
func OpenJournal(ctx context.Context, store storage.Store) (*Journal, error) {
	id := make([]byte, 8)
	_, _ = rand.Read(id) // never fails
	j := &Journal{store: store, by: hex.EncodeToString(id), next: 1, first: 1, pending: &batch{}}
	records, err := j.replay(ctx)
	if err != nil || len(records) == 0 {
		return j, err
	}
	for {
		err := j.claim(ctx)
		if err == nil {
			break
		}
		if !errors.Is(err, ErrSuperseded) {
			return nil, err
		}
		// The coordinator before has written a record since.
		r, err := j.load(ctx, j.next)
		if err != nil {
			return nil, err
		}
		records = append(records, r)
		j.take(r)
	}
	for _, r := range records {
		for _, e := range r.Events {
			if e.Fact == snapshot {
				j.read = nil // what is before it in its record is in it
			}
			j.read = append(j.read, e)
		}
	}
	return j, nil
}

// replay reads the records from the last snapshot on.
func (j *Journal) replay(ctx context.Context) ([]journalRecord, error) {
	numbers, err := j.numbers(ctx)
	if err != nil || len(numbers) == 0 {
		return nil, err
	}
	var records []journalRecord
	for n := numbers[len(numbers)-1]; n > 0; n-- {
		r, err := j.load(ctx, n)
		if err != nil {
			return nil, err
		}
		records = append(records, r)
		if r.hasSnapshot() {
			break
		}
	}
	slices.Reverse(records)
	for _, r := range records {
		j.take(r)
	}
	j.old = slices.DeleteFunc(numbers, func(n uint64) bool { return n >= j.first || slices.Contains(j.claims, n) })
	return records, nil
}

// numbers lists the numbers of the records, ascending.
func (j *Journal) numbers(ctx context.Context) ([]uint64, error) {
	files, err := j.store.List(ctx, journalPrefix)
	if err != nil {
		return nil, fmt.Errorf("coordinator: listing the journal: %w", err)
	}
	var numbers []uint64
	for _, f := range files {
		if f.Attempt {
			continue
		}
		n, err := recordNumber(f.Name)
		if err != nil {
			return nil, err
		}
		numbers = append(numbers, n)
	}
	slices.Sort(numbers)
	return numbers, nil
}

// recordNumber returns the number in the name of a record.
func recordNumber(name string) (n uint64, err error) {
	if _, err := fmt.Sscanf(name, journalPrefix+"%d.json", &n); err != nil || name != journalName(n) || n == 0 {
		return 0, damaged(name, "it is no record of a journal")
	}
	return n, nil
}

// take adds a record that was read.
func (j *Journal) take(r journalRecord) {
	j.next = r.Number + 1
	if r.hasSnapshot() {
		j.claims, j.first = slices.Clone(r.Claims), r.Number
	}
	if r.Claim {
		j.claims = append(j.claims, r.Number)
	}
}

func (r journalRecord) hasSnapshot() bool {
	return slices.ContainsFunc(r.Events, func(e event) bool { return e.Fact == snapshot })
}

func journalName(n uint64) string { return fmt.Sprintf("%s%08d.json", journalPrefix, n) }

func damaged(name, format string, a ...any) error {
	return fmt.Errorf("coordinator: %s: %s; restore it, or remove the folder %s once no worker of the run is left: the run then goes on from its catalogue: %w",
		name, fmt.Sprintf(format, a...), journalPrefix, seal.ErrCorrupt)
}

// load reads one record.
func (j *Journal) load(ctx context.Context, n uint64) (r journalRecord, err error) {
	name := journalName(n)
	text, err := storage.Get(ctx, j.store, name, maxJournalRecord)
	if errors.Is(err, storage.ErrNotExist) {
		return r, damaged(name, "it is missing")
	}
	if err != nil {
		return r, fmt.Errorf("coordinator: reading the journal: %w", err)
	}
	if r, err = parseRecord(text); err != nil {
		return r, damaged(name, "%v", err)
	}
	if r.Number != n {
		return r, damaged(name, "it holds record %d", r.Number)
	}
	return r, nil
}

// parseRecord checks the sum of a record and decodes it afterwards.
func parseRecord(text []byte) (r journalRecord, err error) {
	var s sealed
	if err := strict(text, &s); err != nil {
		return r, err
	}
	if got := sumOf(s.Record); got != s.Sum {
		return r, fmt.Errorf("its bytes have the sum %s, it states %q", got, s.Sum)
	}
	if err := strict(s.Record, &r); err != nil {
		return r, err
	}
	if r.Number == 0 || r.By == "" {
		return r, errors.New("it has no number or author")
	}
	for _, e := range r.Events {
		if e.Fact == snapshot && e.State == nil {
			return r, errors.New("it has a snapshot without state")
		}
	}
	return r, nil
}

// strict decodes JSON. It refuses unknown fields and text after the end.
func strict(text []byte, v any) error {
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.DisallowUnknownFields()
	if err := dec.Decode(v); err != nil {
		return err
	}
	if _, err := dec.Token(); err != io.EOF {
		return errors.New("there is something after its end")
	}
	return nil
}

func encodeRecord(r journalRecord) ([]byte, error) {
	body, err := json.Marshal(r)
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(sealed{sumOf(body), body})
	return append(text, '\n'), err
}

func sumOf(body []byte) string {
	return fmt.Sprintf("%08x", crc32.Checksum(body, seal.Castagnoli))
}

// add appends events to the journal in the order of the calls. They are durable once wait returns for the batch.
func (j *Journal) add(events ...event) *batch {
	j.adding.Lock()
	defer j.adding.Unlock()
	for _, e := range events {
		j.since++
		if e.Fact == snapshot {
			j.since = 0
		}
		j.pending.events = append(j.pending.events, e)
	}
	return j.pending
}

// wait writes the batch, together with everything that was added while another record was written. It returns after the batch and
// everything before it are durable. After an error nothing more becomes durable, and nobody may hear of these events.
func (j *Journal) wait(ctx context.Context, b *batch) error {
	j.writing.Lock()
	defer j.writing.Unlock()
	if b.written || j.err != nil {
		return j.err
	}
	j.adding.Lock()
	if j.pending == b {
		j.pending = &batch{}
	}
	j.adding.Unlock()
	b.written = true
	if len(b.events) == 0 {
		return nil
	}
	// The batch also holds events of other callers, whose contexts may still be open.
	j.err = j.put(context.WithoutCancel(ctx), b.events)
	return j.err
}

// put writes one record of events.
func (j *Journal) put(ctx context.Context, events []event) error {
	if !j.claimed {
		if err := j.claim(ctx); err != nil {
			return err
		}
	}
	r := journalRecord{Number: j.next, By: j.by, Events: events}
	if r.hasSnapshot() {
		r.Claims = slices.Clone(j.claims)
	}
	if err := j.write(ctx, r); err != nil {
		return err
	}
	before := j.first
	j.take(r)
	for n := before; n < j.first; n++ {
		if !slices.Contains(j.claims, n) {
			j.old = append(j.old, n)
		}
	}
	return nil
}

// claim writes the coordinator's first record.
func (j *Journal) claim(ctx context.Context) error {
	r := journalRecord{Number: j.next, By: j.by, Claim: true}
	if err := j.write(ctx, r); err != nil {
		return err
	}
	j.take(r)
	j.claimed = true
	return nil
}

// write stores a record under a number that no other record has.
func (j *Journal) write(ctx context.Context, r journalRecord) error {
	text, err := encodeRecord(r)
	if err != nil {
		return fmt.Errorf("coordinator: encoding the journal: %w", err)
	}
	err = storage.Put(ctx, j.store.CreateNew, journalName(r.Number), text)
	if errors.Is(err, storage.ErrExist) {
		// The record is ours if the store refused a repetition after the first attempt was written without an answer.
		if there, readErr := storage.Get(ctx, j.store, journalName(r.Number), maxJournalRecord); readErr == nil && bytes.Equal(there, text) {
			return nil
		}
		return j.superseded(r.Number)
	}
	if err != nil {
		return fmt.Errorf("coordinator: writing the journal: %w", err)
	}
	return nil
}

// last returns the number of the last durable record, 0 if there is none.
func (j *Journal) last() uint64 {
	j.writing.Lock()
	defer j.writing.Unlock()
	return j.next - 1
}

// full reports whether a snapshot is due.
func (j *Journal) full() bool {
	j.adding.Lock()
	defer j.adding.Unlock()
	return j.since >= compactAfter
}

// look finds out whether another coordinator has taken over meanwhile. Records are written while the store answers.
func (j *Journal) look(ctx context.Context) error {
	j.writing.Lock()
	next, err := j.next, j.err
	j.writing.Unlock()
	if err != nil {
		return err
	}
	if _, err := j.store.Stat(ctx, journalName(next)); err != nil {
		return nil // there is none, or the next record will tell
	}
	j.writing.Lock()
	defer j.writing.Unlock()
	if j.err == nil && j.next == next {
		j.err = j.superseded(next)
	}
	return j.err
}

func (j *Journal) superseded(n uint64) error {
	return fmt.Errorf("coordinator: %s: record %d of the journal was written by another: %w", j.store.URI(), n, ErrSuperseded)
}

// tidy removes all records that are needed no more, until ctx ends.
func (j *Journal) tidy(ctx context.Context) {
	for j.sweep(ctx) {
	}
}

// sweep removes some of the records that are needed no more, while other records are written. more reports whether there are further ones.
// The next coordinator finds those that cannot be removed; they do no harm.
func (j *Journal) sweep(ctx context.Context) (more bool) {
	j.writing.Lock()
	n := min(len(j.old), sweepAtOnce)
	some := j.old[:n:n]
	j.old = j.old[n:]
	more = len(j.old) > 0
	j.writing.Unlock()
	for _, record := range some {
		if err := j.store.Remove(ctx, journalName(record)); err != nil {
			return false
		}
	}
	return more
}
