package coordinator

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"ndls/internal/seal"
	"ndls/internal/storage"
)

// JournalCheck holds the findings of [VerifyJournal].
type JournalCheck struct {
	Records int
	Bytes   int64
	// Damaged has an error for each damaged or missing record. Each error names the file and wraps [seal.ErrCorrupt].
	Damaged []error
}

// VerifyJournal reads every record of the journal of the run in store, compares it with its checksum, and reports missing records that the
// next coordinator would read. It reads a few kilobytes for each task since the last snapshot. An error other than those in Damaged comes
// from the store. A run without a journal has no damage. Records that a working coordinator removes meanwhile seem to be missing.
func VerifyJournal(ctx context.Context, store storage.Store) (check JournalCheck, err error) {
	files, err := store.List(ctx, journalPrefix)
	if err != nil {
		return check, fmt.Errorf("listing %s: %w", journalPrefix, err)
	}
	j := &Journal{store: store}
	there := map[uint64]journalRecord{}
	var numbers []uint64
	for _, f := range files {
		if f.Attempt {
			continue
		}
		n, err := recordNumber(f.Name)
		if err != nil {
			check.Damaged = append(check.Damaged, err)
			continue
		}
		r, err := j.load(ctx, n)
		switch {
		case errors.Is(err, seal.ErrCorrupt):
			check.Damaged = append(check.Damaged, err)
		case err != nil:
			return check, err
		}
		check.Records++
		check.Bytes += f.Size
		there[n], numbers = r, append(numbers, n)
	}
	check.Damaged = append(check.Damaged, missingRecords(numbers, there)...)
	return check, nil
}

// missingRecords has an error for each missing record that would be read: a record after the newest snapshot, or one of the claims that the
// snapshot lists.
func missingRecords(numbers []uint64, there map[uint64]journalRecord) (missing []error) {
	if len(numbers) == 0 {
		return nil
	}
	last := slices.Max(numbers)
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
