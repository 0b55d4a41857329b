package coordinator

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
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

// InputFile is a file of the dataset as the partition has read it.
type InputFile = control.InputFile

const (
	// RecordName is the name of the record in every run directory.
	RecordName = "run.json"
	// RecordFormat is the version of the record's fields.
	RecordFormat = 2
	// maxRecord bounds the bytes of a file that are read to find out whether it is a record.
	maxRecord = 64 << 20
)

var (
	// ErrForeign reports a folder that holds something else than a run.
	ErrForeign = failure.Kind("not a run directory")
	// ErrNoRecord reports a run directory whose record is gone.
	ErrNoRecord = failure.Kind("the record is missing")
)

// State is the state of a run or of a stage.
type State string

// These are the states. A run killed without warning stays RUNNING.
const (
	Running  State = "RUNNING"
	Complete State = "COMPLETE"
	Failed   State = "FAILED"
	// Waiting is the state of a stage that has not begun.
	Waiting State = "WAITING"
)

// Record is run.json.
type Record struct {
	// Seal is the CRC-32C of the file; see package seal.
	Seal   string `json:"seal"`
	Format int    `json:"format"`
	State  State  `json:"state"`
	// Reason says why State is FAILED.
	Reason string `json:"reason,omitempty"`
	// Stopped says of a FAILED run that nothing failed: the user has stopped it, and the same command continues it.
	Stopped  bool         `json:"stopped,omitempty"`
	Plan     plan.Options `json:"plan"`
	PlanHash string       `json:"plan_hash"`
	// Inputs lists the files from which the partition was made, or is being made. A generated dataset has none.
	Inputs []InputFile `json:"inputs,omitempty"`
	// Named lists files and folders by the names that commands used.
	Named control.Inputs `json:"named,omitzero"`
	// Versions holds the versions of the program that wrote the record last: ndls, go, commit.
	Versions map[string]string `json:"versions"`
	// Host describes the host of the process that wrote the record last.
	Host *control.Host `json:"host,omitempty"`
	// Finished is the time when the last requested stage was complete, zero before.
	Finished time.Time `json:"finished,omitzero"`
	// Wanted lists the stages requested so far; State is COMPLETE only if all of them are.
	Wanted []control.Stage `json:"wanted"`
	// MemoryBudget is the budget of the last run in bytes.
	MemoryBudget int64 `json:"memory_budget_bytes"`
	// Limits holds the highest speeds of the host in the last run that measured them.
	Limits *control.Limits `json:"limits,omitempty"`
	Stages []StageRecord   `json:"stages"`
	// Discarding lists the stages whose output is being discarded; otherwise it is empty. The next command first finishes an interrupted
	// discard.
	Discarding []control.Stage `json:"discarding,omitempty"`
	// Discards counts how often output was discarded.
	Discards int `json:"discards,omitempty"`
	// Catalog marks the last change of the catalogue when the record was written, and Journal the last record of the journal. Both only grow.
	Catalog *CatalogMark `json:"catalog,omitempty"`
	Journal uint64       `json:"journal,omitempty"`
	// Losses lists the work that had to be done again because a worker was lost or failed.
	Losses []Loss `json:"losses,omitempty"`
}

// StageRecord is one stage that was begun.
type StageRecord struct {
	control.StageReport
	State  State  `json:"state"`
	Reason string `json:"reason,omitempty"`
	// Stopped is described at Record.
	Stopped bool `json:"stopped,omitempty"`
	// Outputs describes the files that a complete stage has left.
	Outputs *Outputs `json:"outputs,omitempty"`
}

// Outputs describes the lasting files of a stage.
type Outputs struct {
	Files int `json:"files"`
	// SHA256 is the sum of their paths and checksums, in order of path.
	SHA256 string `json:"sha256"`
}

// outputsOf describes the output of a stage by the catalogue. It leaves out features and smoothed rows that the plan removes later. It has
// hop streams only if no other file has the edges.
func outputsOf(cat *catalog.Catalog, p plan.Options, s control.Stage) Outputs {
	rows := stage.RowsKind(p)
	lasting := func(kind string) bool {
		switch kind {
		case catalog.KindFeatures:
			return !p.DropFeatures
		case rows:
			return !p.DropSmoothed
		case catalog.KindHops, catalog.KindReversedHops:
			return p.Partition.NoShards()
		}
		return registry.KindOf(kind).Lasting
	}
	var lines []string
	for _, e := range cat.Entries("") {
		if e.Stage == string(s) && lasting(e.Kind) {
			lines = append(lines, e.Path+" "+e.Checksum+"\n")
		}
	}
	slices.Sort(lines)
	sum := sha256.Sum256([]byte(strings.Join(lines, "")))
	return Outputs{len(lines), hex.EncodeToString(sum[:])}
}

// Check compares the stages that are complete with the catalogue, which must be bound to the plan of the record. Its error wraps
// [seal.ErrCorrupt].
func (r *Record) Check(cat *catalog.Catalog) error {
	for _, x := range r.Stages {
		if x.State != Complete || x.Outputs == nil {
			continue
		}
		if got := outputsOf(cat, r.Plan, x.Stage); got != *x.Outputs {
			return fmt.Errorf("%s says that %s left %d files, and the catalogue lists %d or others: %w: restore the catalogue from a copy of the run directory, or do the stage again with ndls %s --run %s --resume=false",
				RecordName, x.Stage, x.Outputs.Files, got.Files, seal.ErrCorrupt, registry.Verb(x.Stage), cat.Store().URI())
		}
	}
	return nil
}

// ReadRecord reads the record of the run in s. For an empty store it returns nil and no error. For a store that holds something else it
// returns [ErrForeign].
func ReadRecord(ctx context.Context, s storage.Store) (*Record, error) {
	for {
		rec, err := readRecord(ctx, s)
		if !errors.Is(err, storage.ErrReplaced) {
			return rec, err
		}
	}
}

func readRecord(ctx context.Context, s storage.Store) (*Record, error) {
	r, err := s.Open(ctx, RecordName)
	if errors.Is(err, storage.ErrNotExist) {
		if made, err := refuseForeign(ctx, s); !made {
			return nil, err
		}
		r, err = s.Open(ctx, RecordName)
	}
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", RecordName, err)
	}
	defer r.Close()
	if r.Size() > maxRecord {
		return nil, failure.Of(ErrForeign, "%s in %s is too large to be a record of ndls", RecordName, s.URI())
	}
	text, err := io.ReadAll(io.NewSectionReader(r, 0, r.Size()))
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", RecordName, err)
	}
	var head struct {
		Format   int    `json:"format"`
		PlanHash string `json:"plan_hash"`
		Plan     struct {
			Format int `json:"format"`
		} `json:"plan"`
	}
	if err := json.Unmarshal(text, &head); err == nil && head.PlanHash != "" && (head.Format != RecordFormat || head.Plan.Format != plan.Format) {
		return nil, fmt.Errorf("%s in %s has format %d with plan format %d, this ndls knows %d and %d; use the version that wrote it or another --run: %w",
			RecordName, s.URI(), head.Format, head.Plan.Format, RecordFormat, plan.Format, seal.ErrVersion)
	}
	var rec Record
	if err := seal.DecodeJSON(text, &rec); err != nil {
		ours, listErr := holdsRun(ctx, s)
		if listErr != nil || !ours && head.PlanHash == "" {
			return nil, errors.Join(listErr, failure.Of(ErrForeign, "%s in %s is no record of ndls", RecordName, s.URI()))
		}
		return nil, fmt.Errorf("%s in %s is damaged: %w: %w: restore it from a copy; or remove it and repeat the command that made the run, with the same options: what was committed under them is kept",
			RecordName, s.URI(), err, seal.ErrCorrupt)
	}
	if rec.Plan.Hash() != rec.PlanHash {
		return nil, fmt.Errorf("plan and plan_hash of %s in %s do not belong together; restore the file or choose another --run: %w",
			RecordName, s.URI(), seal.ErrCorrupt)
	}
	return &rec, nil
}

// refuseForeign fails if s holds anything but unfinished attempts at a record. made reports that another process has just written a record.
func refuseForeign(ctx context.Context, s storage.Store) (made bool, err error) {
	files, err := s.List(ctx, "")
	if err != nil {
		return false, fmt.Errorf("listing %s: %w", s.URI(), err)
	}
	if slices.ContainsFunc(files, func(f storage.Info) bool { return f.Name == RecordName && !f.Attempt }) {
		return true, nil
	}
	if slices.ContainsFunc(files, isOfRun) {
		return false, fmt.Errorf("%s holds files of a run and no %s; repeat the command that made the run, with the same options: what was committed under them is kept: %w: %w",
			s.URI(), RecordName, ErrNoRecord, seal.ErrCorrupt)
	}
	for _, f := range files {
		if f.Attempt && strings.HasPrefix(f.Name, RecordName) {
			continue
		}
		return false, failure.Of(ErrForeign, "%s holds %s and no %s: it is no run directory", s.URI(), f.Name, RecordName)
	}
	return false, nil
}

// holdsRun reports whether a store has a catalogue or a journal.
func holdsRun(ctx context.Context, s storage.Store) (bool, error) {
	files, err := s.List(ctx, "")
	return slices.ContainsFunc(files, isOfRun), err
}

func isOfRun(f storage.Info) bool {
	return !f.Attempt && (f.Name == catalog.Name || strings.HasPrefix(f.Name, "catalog/") || strings.HasPrefix(f.Name, journalPrefix))
}

func (r *Record) write(ctx context.Context, s storage.Store) error {
	r.PlanHash, r.Seal = r.Plan.Hash(), seal.Unsealed
	text, err := seal.EncodeJSON(r)
	if err == nil {
		err = storage.Put(ctx, s.Create, RecordName, text)
	}
	if err != nil {
		return fmt.Errorf("writing %s: %w", RecordName, err)
	}
	return nil
}

// replaceJSON replaces the file name by v in one atomic step.
func replaceJSON(ctx context.Context, s storage.Store, name string, v any) error {
	text, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return err
	}
	return storage.Put(ctx, s.Create, name, append(text, '\n'))
}

// Stage returns the record of s, or nil if it was never begun.
func (r *Record) Stage(s control.Stage) *StageRecord {
	i := slices.IndexFunc(r.Stages, func(x StageRecord) bool { return x.Stage == s })
	if i < 0 {
		return nil
	}
	return &r.Stages[i]
}

// Done reports whether s is complete.
func (r *Record) Done(s control.Stage) bool {
	x := r.Stage(s)
	return x != nil && x.State == Complete
}

// begun lists the stages whose output may exist.
func (r *Record) begun() []control.Stage {
	var begun []control.Stage
	for _, x := range r.Stages {
		begun = append(begun, x.Stage)
	}
	return begun
}

// set replaces or adds a stage, keeping the order of the stages.
func (r *Record) set(x StageRecord) {
	if old := r.Stage(x.Stage); old != nil {
		*old = x
		return
	}
	r.Stages = append(r.Stages, x)
	slices.SortFunc(r.Stages, func(a, b StageRecord) int {
		return registry.Index(a.Stage) - registry.Index(b.Stage)
	})
}

// drop forgets stages, and the inputs together with the partition.
func (r *Record) drop(stages []control.Stage) {
	if slices.Contains(stages, control.Partition) {
		r.Inputs = nil
	}
	r.Stages = slices.DeleteFunc(r.Stages, func(x StageRecord) bool { return slices.Contains(stages, x.Stage) })
}

// missing lists the wanted stages that are not complete.
func (r *Record) missing() []control.Stage {
	return slices.DeleteFunc(slices.Clone(r.Wanted), r.Done)
}

// StageStatus holds the state of a stage of a run.
type StageStatus struct {
	Stage control.Stage `json:"stage"`
	// State is the state in the stage's record, or Waiting.
	State State `json:"state"`
	// Seconds is the time of a complete stage, Reason the cause of a failed one.
	Seconds float64 `json:"seconds,omitempty"`
	Reason  string  `json:"reason,omitempty"`
	// Stopped is described at Record.
	Stopped bool `json:"stopped,omitempty"`
}

// Word returns the state as commands and pages show it: STOPPED in place of FAILED if the run was stopped.
func (r *Record) Word() string { return word(r.State, r.Stopped) }

// Word is described at [Record.Word].
func (x StageRecord) Word() string { return word(x.State, x.Stopped) }

// Word is described at [Record.Word].
func (x StageStatus) Word() string { return word(x.State, x.Stopped) }

func word(s State, stopped bool) string {
	if stopped {
		return "STOPPED"
	}
	return string(s)
}

// Progress lists the requested stages, in the order in which they run.
func (r *Record) Progress() []StageStatus {
	list := []StageStatus{}
	for _, s := range registry.Names() {
		x := r.Stage(s)
		switch {
		case x != nil:
			list = append(list, StageStatus{s, x.State, x.Seconds, x.Reason, x.Stopped})
		case slices.Contains(r.Wanted, s):
			list = append(list, StageStatus{Stage: s, State: Waiting})
		}
	}
	return list
}

// CatalogMark describes the catalogue at the time when a record was written.
type CatalogMark struct {
	// Number is the number of its last change.
	Number    uint64            `json:"number"`
	Published catalog.Published `json:"published,omitzero"`
}

func (m *CatalogMark) number() uint64 {
	if m == nil {
		return 0
	}
	return m.Number
}

func (m *CatalogMark) published() catalog.Published {
	if m == nil {
		return catalog.Published{}
	}
	return m.Published
}
