package catalog

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"

	"ndls/internal/seal"
	"ndls/internal/storage"
)

// The catalogue is a log of changes in the folder catalog/ of a run directory. Change n is catalog/<n>.json, written once;
// catalog/<n>.parquet is a snapshot of the list after change n. A change always costs one small file, however many files are listed. A
// snapshot is written when the changes since the last one are as many as the files, and after each stage. The files that it replaces are
// then removed.
const (
	// LogPrefix is the folder of the catalogue in a run directory.
	LogPrefix = "catalog/"
	logPrefix = LogPrefix
	// minChanges is the smallest number of changes between two snapshots, except for Publish.
	minChanges = 256
	// maxChangeBytes bounds the size of a change; some hundred thousand files take a tenth of a GB.
	maxChangeBytes = 256 << 20
	// mostTogether bounds the number of files in changes that are written together.
	mostTogether = 1 << 14
	// maxRivals bounds the number of changes by others that are met while one is written.
	maxRivals = 1000
)

// change is one file of the log.
type change struct {
	Seal    string   `json:"seal"`
	Number  uint64   `json:"number"`
	Added   []Entry  `json:"added,omitempty"`
	Removed []string `json:"removed,omitempty"`
}

func changeName(n uint64) string   { return fmt.Sprintf("%s%010d.json", logPrefix, n) }
func snapshotName(n uint64) string { return fmt.Sprintf("%s%010d.parquet", logPrefix, n) }

// log writes the changes of the owner.
type log struct {
	store  storage.Store
	number uint64 // number of the last change
	since  int    // number of changes after the last snapshot
	lacks  []string
}

// damagedLog returns an ErrCorrupt for a file that no stage can write again.
func damagedLog(name, format string, args ...any) error {
	return fmt.Errorf("%s: %s: %w: the list of committed files is not whole; restore the file from a copy of the run directory, or start in a new one",
		name, fmt.Sprintf(format, args...), seal.ErrCorrupt)
}

// openLog reads the last snapshot and the changes after it. p describes the file under Name.
func openLog(ctx context.Context, store storage.Store, p Published) (*log, []Entry, []change, error) {
	l := &log{store: store}
	snapshots, changes, err := l.files(ctx)
	if err != nil {
		return nil, nil, nil, err
	}
	entries, err := l.base(ctx, snapshots, changes, p)
	if err != nil {
		return nil, nil, nil, err
	}
	var list []change
	for _, n := range changes {
		if n <= l.number {
			continue
		}
		if n != l.number+1 {
			return nil, nil, nil, damagedLog(changeName(l.number+1), "it is missing")
		}
		c, err := l.load(ctx, n)
		if err != nil {
			return nil, nil, nil, err
		}
		list = append(list, c)
		l.number, l.since = n, l.since+1
	}
	return l, entries, list, nil
}

// base reads the last snapshot, or the file under Name if that holds the content of the snapshot.
func (l *log) base(ctx context.Context, snapshots, changes []uint64, p Published) ([]Entry, error) {
	lacks := ""
	switch {
	case len(snapshots) > 0:
		last := snapshots[len(snapshots)-1]
		entries, number, err := readSnapshot(ctx, l.store, snapshotName(last))
		if err == nil && number != last {
			err = damagedLog(snapshotName(last), "it holds what was listed after change %d", number)
		}
		if !errors.Is(err, seal.ErrCorrupt) || last != p.Number {
			l.number = last
			return entries, err
		}
		lacks = snapshotName(last) + " is damaged"
	case len(changes) > 0 && changes[0] == 1 || p.Number == 0:
		found, err := exists(ctx, l.store, Name)
		if err != nil || !found || p.Number > 0 {
			return nil, err
		}
		// The file under Name has number 0: changes after it start from 1.
		entries, number, err := readSnapshot(ctx, l.store, Name)
		l.number = number
		return entries, err
	default:
		lacks = snapshotName(p.Number) + " is missing"
	}
	entries, sum, err := readPublished(ctx, l.store)
	switch {
	case errors.Is(err, storage.ErrNotExist), errors.Is(err, seal.ErrCorrupt):
		return nil, damagedLog(snapshotName(p.Number), "%s, and so is %s", strings.TrimPrefix(lacks, snapshotName(p.Number)+" is "), Name)
	case err != nil:
		return nil, err
	case sum != p.SHA256:
		return nil, damagedLog(snapshotName(p.Number), "%s, and %s does not match run.json", strings.TrimPrefix(lacks, snapshotName(p.Number)+" is "), Name)
	}
	l.number, l.lacks = p.Number, []string{lacks}
	return entries, nil
}

// readPublished reads the file under Name, and returns its entries and its checksum.
func readPublished(ctx context.Context, store storage.Store) (entries []Entry, sum string, err error) {
	r, err := store.Open(ctx, Name)
	if err != nil {
		return nil, "", fmt.Errorf("open catalogue: %w", err)
	}
	defer r.Close()
	if entries, _, err = readCatalog(r, Name); err != nil {
		return nil, "", err
	}
	data := make([]byte, r.Size())
	err = seal.ReadFull(r, Name, data, 0)
	return entries, sumOf(data), err
}

// sumOf returns the SHA-256 of data in lower-case hex.
func sumOf(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// files lists the numbers of snapshots and changes, ascending.
func (l *log) files(ctx context.Context) (snapshots, changes []uint64, err error) {
	all, err := l.store.List(ctx, logPrefix)
	if err != nil {
		return nil, nil, fmt.Errorf("listing the catalogue: %w", err)
	}
	for _, f := range all {
		var n uint64
		if f.Attempt {
			continue
		}
		base, kind, _ := strings.Cut(strings.TrimPrefix(f.Name, logPrefix), ".")
		_, err := fmt.Sscanf(base, "%d", &n)
		switch {
		case err == nil && f.Name == changeName(n) && n > 0:
			changes = append(changes, n)
		case err == nil && f.Name == snapshotName(n) && kind == "parquet":
			snapshots = append(snapshots, n)
		default:
			return nil, nil, damagedLog(f.Name, "it does not belong to a catalogue")
		}
	}
	slices.Sort(snapshots)
	slices.Sort(changes)
	return snapshots, changes, nil
}

func exists(ctx context.Context, store storage.Store, name string) (bool, error) {
	_, err := store.Stat(ctx, name)
	if errors.Is(err, storage.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("open catalogue: %w", err)
	}
	return true, nil
}

// load reads one change.
func (l *log) load(ctx context.Context, n uint64) (c change, err error) {
	name := changeName(n)
	text, err := storage.Get(ctx, l.store, name, maxChangeBytes)
	if err != nil {
		return c, fmt.Errorf("read %s: %w", name, err)
	}
	if err := seal.DecodeJSON(text, &c); err != nil {
		return c, damagedLog(name, "%v", err)
	}
	if c.Number != n {
		return c, damagedLog(name, "it holds change %d", c.Number)
	}
	return c, nil
}

// add writes a change under the next number. If a file with that number is there already, adopt applies what it holds, and the change gets
// the number after it. That file may be of another coordinator, or hold this change: a store may lose its answer, or write the file and
// then fail to make its name durable. The second writing makes both names durable. Applying a change twice does no harm. If writing fails
// for another reason than a file that is there, add tries a second time at most.
func (l *log) add(ctx context.Context, added []Entry, removed []string, adopt func(change)) error {
	again := false
	for range maxRivals {
		c := change{Seal: seal.Unsealed, Number: l.number + 1, Added: added, Removed: removed}
		text, err := seal.EncodeJSON(c)
		if err != nil {
			return fmt.Errorf("write catalogue: %w", err)
		}
		if len(text) > maxChangeBytes {
			return fmt.Errorf("write catalogue: one change takes %d bytes; at most %d are possible: list fewer files at a time", len(text), maxChangeBytes)
		}
		err = storage.Put(ctx, l.store.CreateNew, changeName(c.Number), text)
		if err == nil {
			l.number, l.since = c.Number, l.since+1
			return nil
		}
		failed := !errors.Is(err, storage.ErrExist)
		there, unread := l.load(ctx, c.Number)
		switch {
		case unread != nil && failed:
			return fmt.Errorf("write catalogue: %w", err)
		case unread != nil:
			return unread
		}
		adopt(there)
		l.number, l.since = there.Number, l.since+1
		if failed && again {
			return fmt.Errorf("write catalogue: %w", err)
		}
		again = again || failed
	}
	return errors.New("write catalogue: another coordinator keeps writing to it")
}

// snapshot writes the list after change number, then removes the files that it replaces. Files that cannot be removed now are removed after
// a later snapshot.
func (l *log) snapshot(ctx context.Context, number uint64, data []byte) error {
	err := storage.Put(ctx, l.store.CreateNew, snapshotName(number), data)
	if err != nil && !errors.Is(err, storage.ErrExist) {
		return fmt.Errorf("write catalogue: %w", err)
	}
	snapshots, changes, err := l.files(ctx)
	if err != nil {
		return err
	}
	var old []string
	for _, n := range snapshots {
		if n < number {
			old = append(old, snapshotName(n))
		}
	}
	for _, n := range changes {
		if n <= number {
			old = append(old, changeName(n))
		}
	}
	for _, name := range old {
		if err := l.store.Remove(ctx, name); err != nil {
			return nil
		}
	}
	return nil
}
