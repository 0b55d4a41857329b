package coordinator

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"ndls/catalog"
	"ndls/internal/control"
	"ndls/internal/failure"
	"ndls/internal/seal"
	"ndls/internal/storage"
	"ndls/plan"
	"ndls/stage"
	"ndls/stage/registry"
)

// Standing describes the state of a run directory: record, journal and catalogue compared with each other and with the files that exist.
type Standing struct {
	Record  *Record
	Catalog *catalog.Catalog
	// Lacks names what is missing or older than the rest. The next command that works on the run makes it again.
	Lacks []string
	// gone lists the committed files that are missing or have another size.
	gone []goneFile

	journal journalEnd
	broken  error // of the journal: no command can continue with it
	differ  error // record, journal and catalogue do not belong together
}

// goneFile is a committed file and its size, -1 if it is missing.
type goneFile struct {
	catalog.Entry
	size int64
}

const (
	// mostLooks bounds how often Stand reads a run directory that other processes change meanwhile.
	mostLooks = 100
	// lookPause is the time between two such reads.
	lookPause = 10 * time.Millisecond
	// mostNamed is the number of files that a message names.
	mostNamed = 3
)

// Stand reads record, journal and catalogue, and lists the files. If a process works on the run, Stand repeats that until they agree, or
// until two reads give the same result. The error says what cannot be read; a run directory without a record is an error, too.
func Stand(ctx context.Context, store storage.Store) (*Standing, error) {
	before := ""
	for looks := 1; ; looks++ {
		s, seen, err := stand(ctx, store)
		if errors.Is(err, ErrForeign) || errors.Is(err, ErrNoRecord) || errors.Is(err, seal.ErrVersion) || s == nil && err == nil ||
			err == nil && s.Sound() || looks == mostLooks || seen == before || ctx.Err() != nil {
			return s, err
		}
		before = seen
		time.Sleep(lookPause)
	}
}

// stand reads once. seen is equal for two reads with the same result. It reads first what the run writes first, so that no part is newer
// than a part read after it.
func stand(ctx context.Context, store storage.Store) (s *Standing, seen string, err error) {
	rec, err := ReadRecord(ctx, store)
	if err != nil || rec == nil {
		return nil, fmt.Sprint(err), err
	}
	s = &Standing{Record: rec}
	if s.journal, s.broken, err = readJournalEnd(ctx, store); err != nil {
		return nil, fmt.Sprint(rec.Seal, err), err
	}
	if s.Catalog, err = catalog.OpenPublished(ctx, store, rec.Catalog.published()); err != nil {
		return nil, fmt.Sprint(rec.Seal, s.journal.last, err), err
	}
	s.Catalog.Bind(registry.Binding(rec.Plan))
	s.Lacks = s.Catalog.Lacks()
	s.compare()
	if err := s.compareFiles(ctx, store); err != nil {
		return nil, fmt.Sprint(rec.Seal, s.journal.last, s.Catalog.Number(), err), err
	}
	return s, fmt.Sprint(rec.Seal, s.journal.last, s.Catalog.Number()), nil
}

// StandUnrecorded is Stand for a run directory whose record is gone. For an empty store it returns nil.
func StandUnrecorded(ctx context.Context, store storage.Store) (s *Standing, err error) {
	if made, err := holdsRun(ctx, store); err != nil || !made {
		return nil, err
	}
	s = &Standing{Record: &Record{}, Lacks: []string{RecordName + " is missing"}}
	if s.journal, s.broken, err = readJournalEnd(ctx, store); err != nil {
		return nil, err
	}
	if s.Catalog, err = catalog.Open(ctx, store); err != nil {
		return nil, err
	}
	if s.Catalog.Number() < s.journal.catalog {
		s.differ = s.older("it ends with change %d, and %s knows of change %d", s.Catalog.Number(), journalPrefix, s.journal.catalog)
	}
	return s, nil
}

// compare compares record, journal and catalogue.
func (s *Standing) compare() {
	rec, mark := s.Record, s.Record.Catalog
	switch {
	case s.broken != nil:
	case s.journal.last == 0 && rec.Journal > 0:
		s.Lacks = append(s.Lacks, journalPrefix+" is missing")
	case s.journal.last < rec.Journal:
		s.broken = damaged(journalPrefix, "it ends with record %d, and %s knows of record %d: it is older", s.journal.last, RecordName, rec.Journal)
	}
	if known := max(mark.number(), s.journal.catalog); s.Catalog.Number() < known {
		s.differ = s.older("it ends with change %d, and %s knows of change %d", s.Catalog.Number(),
			map[bool]string{true: RecordName, false: journalPrefix}[known == mark.number()], known)
		return
	}
	switch stages := slices.Concat(rec.begun(), rec.Discarding); {
	case s.journal.discards > rec.Discards:
		s.differ = fmt.Errorf("%s is older than %s: it does not know of output that was discarded since; restore it from a copy, or remove it and repeat the command that made the run, with the same options: %w",
			RecordName, journalPrefix, seal.ErrCorrupt)
		return
	case s.journal.stage != "" && !slices.Contains(stages, s.journal.stage):
		s.Lacks = append(s.Lacks, fmt.Sprintf("%s is older than %s", RecordName, journalPrefix))
	}
	s.differ = rec.holds(s.Catalog, rec.Discarding)
}

// older returns the error for a catalogue that lacks changes.
func (s *Standing) older(format string, args ...any) error {
	return fmt.Errorf("%s is older than the rest of the run: %s; restore it from a copy of the run directory, or start again with --resume=false of its first stage: %w",
		catalog.LogPrefix, fmt.Sprintf(format, args...), seal.ErrCorrupt)
}

// holds returns an error unless the catalogue lists the output that the record names, and nothing made with other options. It ignores the
// stages in but.
func (r *Record) holds(cat *catalog.Catalog, but []control.Stage) error {
	left := *r
	left.Stages = slices.DeleteFunc(slices.Clone(r.Stages), func(x StageRecord) bool { return slices.Contains(but, x.Stage) })
	if err := left.Check(cat); err != nil {
		return err
	}
	return onlyOf(cat, r.Plan, but)
}

// onlyOf refuses a catalogue that lists files made under another plan. It ignores the stages in but.
func onlyOf(cat *catalog.Catalog, p plan.Options, but []control.Stage) error {
	plans := registry.Hashes(p)
	for _, e := range cat.All() {
		if e.Plan != plans[e.Stage] && !slices.Contains(but, control.Stage(e.Stage)) {
			return fmt.Errorf("the catalogue lists %s, which %s made with other options than those that %s has: %w; restore %s from a copy of the run directory, or remove it and repeat the command that made the run, with the same options",
				e.Path, e.Stage, RecordName, seal.ErrCorrupt, RecordName)
		}
	}
	return nil
}

// compareFiles finds missing committed files.
func (s *Standing) compareFiles(ctx context.Context, store storage.Store) error {
	files, err := store.List(ctx, "")
	if err != nil {
		return fmt.Errorf("listing %s: %w", store.URI(), err)
	}
	sizes := make(map[string]int64, len(files))
	for _, f := range files {
		sizes[f.Name] = f.Size
	}
	shards := stage.HasShards(s.Catalog)
	for _, e := range s.Catalog.All() {
		size, there := sizes[e.Path]
		switch {
		case there && size == e.Bytes, slices.Contains(s.Record.Discarding, control.Stage(e.Stage)):
		case there:
			s.gone = append(s.gone, goneFile{e, size})
		case !shards || !isHops(e): // the reader of hops makes them again from the shard
			s.gone = append(s.gone, goneFile{e, -1})
		}
	}
	return nil
}

// isHops reports whether a file holds edges of a shard in the form that passes read.
func isHops(e catalog.Entry) bool {
	return e.Kind == catalog.KindHops || e.Kind == catalog.KindReversedHops
}

// Sound reports whether all parts agree and exist. Otherwise no file outside the catalogue may be taken for a leftover.
func (s *Standing) Sound() bool {
	return len(s.Lacks) == 0 && len(s.gone) == 0 && s.broken == nil && s.differ == nil
}

// Differ returns an error if the catalogue does not list what was committed: nothing can then be read from the run directory.
func (s *Standing) Differ() error { return s.differ }

// Problem describes what is wrong with a run directory whose existing committed files can still be read; "" if nothing is. All commands use
// these words.
func (s *Standing) Problem() string {
	var all []string
	if len(s.Lacks) > 0 {
		all = append(all, fmt.Sprintf("%s: the same command as before makes it again, or ndls run --run %s", strings.Join(s.Lacks, ", "), s.Catalog.Store().URI()))
	}
	if s.broken != nil {
		all = append(all, failure.Text(s.broken))
	}
	if err := s.refuseGone(nil); err != nil {
		all = append(all, failure.Text(err))
	}
	return strings.Join(all, "\n")
}

// Err returns an error if anything is wrong with the run directory. It wraps [seal.ErrCorrupt].
func (s *Standing) Err() error {
	if problem := s.Problem(); s.differ == nil && problem != "" {
		return failure.As(seal.ErrCorrupt, errors.New(problem))
	}
	return s.differ
}

// refuseGone returns the error for missing committed files, except those of some stages; nil if there are none.
func (s *Standing) refuseGone(but []control.Stage) error {
	left := slices.DeleteFunc(slices.Clone(s.gone), func(f goneFile) bool { return slices.Contains(but, control.Stage(f.Stage)) })
	if len(left) == 0 {
		return nil
	}
	what := "the catalogue lists it and it is gone"
	if first := left[0]; first.size >= 0 {
		what = fmt.Sprintf("it has %d bytes, the catalogue says %d", first.size, first.Bytes)
	}
	if others := left[1:]; len(others) > 0 {
		var names []string
		for _, f := range others[:min(len(others), mostNamed)] {
			names = append(names, f.Path)
		}
		what += fmt.Sprintf(", and %d other files are gone or cut: %s", len(others), strings.Join(names, ", "))
	}
	return registry.Explain(seal.Corrupt(left[0].Path, "%s", what), s.Catalog)
}

// Refuse returns an error if no stage can run on a run directory after the output of some stages is discarded; nil if some can.
func (s *Standing) Refuse(discard []control.Stage) error {
	if left := slices.DeleteFunc(s.Record.begun(), func(x control.Stage) bool {
		return slices.Contains(discard,
			x)
	}); len(left) == 0 && len(discard) > 0 {
		return nil // nothing of the run is left
	}
	if s.broken != nil {
		return s.broken
	}
	if s.differ != nil {
		// Discarding what differs resolves some differences.
		if known := max(s.Record.Catalog.number(), s.journal.catalog); s.Catalog.Number() < known || s.journal.discards > s.Record.Discards {
			return s.differ
		}
		if err := s.Record.holds(s.Catalog, slices.Concat(discard, s.Record.Discarding)); err != nil {
			return err
		}
	}
	return s.refuseGone(discard)
}

// Reopen opens the catalogue for a process that works on the run. The run directory may be empty.
func (s *Standing) Reopen(ctx context.Context, store storage.Store) (*catalog.Catalog, error) {
	if s == nil {
		return catalog.Open(ctx, store)
	}
	return catalog.OpenPublished(ctx, store, s.Record.Catalog.published())
}

// Recorded reports whether there is a record.
func (s *Standing) Recorded() bool { return s.Record.Format != 0 }

// Least returns the number that the next change of the catalogue must exceed.
func (s *Standing) Least() uint64 { return max(s.Record.Catalog.number(), s.journal.catalog) }

// Known reports whether the record names the last change of the catalogue. Records of earlier versions do not.
func (s *Standing) Known() bool { return s.Record.Catalog != nil }

// journalEnd holds what the journal knows of the rest of the run.
type journalEnd struct {
	last     uint64 // the number of its last record, 0 for none
	stage    control.Stage
	catalog  uint64 // the last change of the catalogue that it confirms
	discards int
}

// readJournalEnd reads the journal as the next coordinator does, and changes nothing. broken is the damage that it finds.
func readJournalEnd(ctx context.Context, store storage.Store) (end journalEnd, broken, err error) {
	j := &Journal{store: store, next: 1, first: 1}
	records, err := j.replay(ctx)
	if errors.Is(err, seal.ErrCorrupt) {
		return end, err, nil
	}
	if err != nil || len(records) == 0 {
		return end, nil, err
	}
	end.last = records[len(records)-1].Number
	for _, r := range records {
		for _, e := range r.Events {
			switch e.Fact {
			case snapshot:
				end.stage, end.catalog, end.discards = e.State.Stage, e.State.Catalog, e.State.Discards
			case phase:
				end.stage = e.Stage
			case forgotten:
				end.stage, end.discards = "", max(end.discards, e.Discards)
			case committed:
				end.catalog = max(end.catalog, e.Catalog)
			}
		}
	}
	return end, nil, nil
}
