package coordinator

import (
	"context"
	"errors"
	"fmt"

	"ndls/internal/seal"
	"ndls/internal/storage"
)

// VerifyJournal reads every record of the journal of the run in store, compares it with its checksum, and looks for missing records that
// the next coordinator would read. damaged has an error for each damaged or missing record, which names the file and wraps
// [seal.ErrCorrupt]; err comes from the store. A run without a journal has no damage. Records that a working coordinator removes meanwhile
// seem to be missing.
func VerifyJournal(ctx context.Context, store storage.Store) (damaged []error, err error) {
	files, err := store.List(ctx, journalPrefix)
	if err != nil {
		return nil, fmt.Errorf("listing %s: %w", journalPrefix, err)
	}
	j := &Journal{store: store}
	there := map[uint64]journalRecord{}
	for _, f := range files {
		if f.Attempt {
			continue
		}
		n, err := recordNumber(f.Name)
		if err == nil {
			there[n], err = j.load(ctx, n)
		}
		switch {
		case errors.Is(err, seal.ErrCorrupt):
			damaged = append(damaged, err)
		case err != nil:
			return nil, err
		}
	}
	return append(damaged, missingRecords(there)...), nil
}

// missingRecords has an error for each missing record that would be read: a record after the newest snapshot, or one of the claims that the
// snapshot lists.
func missingRecords(there map[uint64]journalRecord) (missing []error) {
	last := uint64(0)
	for n := range there {
		last = max(last, n)
	}
	need := func(n uint64) {
		if _, ok := there[n]; !ok {
			missing = append(missing, damaged(journalName(n), "it is missing"))
		}
	}
	for n := last; n > 0; n-- {
		need(n)
		r, ok := there[n]
		if ok && r.Number == 0 {
			break // it is damaged, and may be the snapshot
		}
		if r.hasSnapshot() {
			for _, claim := range r.Claims {
				need(claim)
			}
			break
		}
	}
	return missing
}
