package ndls

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
	"strings"

	"github.com/apache/arrow/go/v14/arrow"

	"ndls/catalog"
	"ndls/coordinator"
	"ndls/export"
	"ndls/internal/control/address"
	"ndls/internal/failure"
	"ndls/internal/rundir"
	"ndls/internal/share"
	"ndls/internal/storage"
	"ndls/shards"
	"ndls/stage/registry"
)

// Directory is a run directory that is open for reading. It is the state of the
// moment at which it was opened, and is safe for concurrent use.
type Directory struct {
	uri     string
	record  *coordinator.Record
	cat     *catalog.Catalog
	problem string
}

// Open opens a run directory for reading: a folder, or s3://bucket/prefix. It
// reads the record, the journal and the catalogue, and lists the files; it does not read the data. The
// error wraps [ErrCorrupt] where the catalogue does not list what was committed.
func Open(ctx context.Context, dir string) (_ *Directory, err error) {
	defer func() { err = interruption(ctx, err) }()
	s, err := openStanding(ctx, dir)
	if err != nil {
		return nil, err
	}
	return &Directory{uri: dir, record: s.Record, cat: s.Catalog, problem: s.Problem()}, nil
}

// openStanding opens a run directory that holds a run.
func openStanding(ctx context.Context, dir string) (*coordinator.Standing, error) {
	store, _, err := openStore(ctx, dir, false)
	if err != nil {
		return nil, err
	}
	s, err := coordinator.Stand(ctx, store)
	switch {
	case err != nil:
		return nil, err
	case s == nil: // its files went meanwhile
		return nil, failure.Of(ErrNoRun, "--run %s holds no run; ndls partition or ndls run starts one", dir)
	}
	return s, s.Differ()
}

// Problem says what is missing or damaged in the run directory while the catalogue lists all that was committed; "" if
// nothing is known to be. Bytes of files are not read for that: [Directory.Verify] does.
func (d *Directory) Problem() string { return d.problem }

// URI is the name under which the run directory was opened.
func (d *Directory) URI() string { return d.uri }

// Record says what was asked for, and how far it is.
func (d *Directory) Record() *Record { return d.record }

// Working reports whether a process works on the run directory now. In an object store it
// reports whether a coordinator has left its address there, which one that was killed did,
// too.
func (d *Directory) Working(ctx context.Context) bool {
	if rundir.Remote(d.uri) {
		_, err := address.Read(ctx, d.cat.Store())
		return err == nil
	}
	unlock, err := rundir.Lock(d.uri)
	if err == nil {
		unlock()
	}
	return errors.Is(err, ErrBusy)
}

// Graph describes the graph as imported. The error wraps [ErrNoRun] where the
// partition is not complete.
func (d *Directory) Graph(ctx context.Context) (Graph, error) {
	if _, ok := d.cat.Lookup(shards.SummaryPath); !ok {
		return Graph{}, failure.Of(ErrNoRun, "%[1]s holds no graph yet; run this first: ndls partition --dataset URI --run %[1]s", d.uri)
	}
	g, err := shards.ReadSummary(ctx, d.cat)
	return g, interruption(ctx, registry.Explain(err, d.cat))
}

// Report says what the run found and what it took.
func (d *Directory) Report(ctx context.Context) (Report, error) {
	g, err := d.Graph(ctx)
	if err != nil {
		return Report{}, err
	}
	return coordinator.NewReport(d.record, g), nil
}

// FileGroup adds up the files of one kind.
type FileGroup struct {
	Kind  string `json:"kind"`
	Files int    `json:"files"`
	Rows  int64  `json:"rows"`
	Bytes int64  `json:"bytes"`
}

// Files adds up what is committed, by kind.
func (d *Directory) Files() []FileGroup {
	list := []FileGroup{}
	for _, e := range d.cat.Entries("") {
		i := slices.IndexFunc(list, func(g FileGroup) bool { return g.Kind == e.Kind })
		if i < 0 {
			i = len(list)
			list = append(list, FileGroup{Kind: e.Kind})
		}
		g := &list[i]
		g.Files++
		g.Rows += e.Rows
		g.Bytes += e.Bytes
	}
	slices.SortFunc(list, func(a, b FileGroup) int { return cmp.Compare(a.Kind, b.Kind) })
	return list
}

// Part is one of N parts of some work, the I-th of them, from 1 on, which machines do without knowing of each other. The
// zero value is all of the work.
type Part = share.Part

// Verified says what [Directory.Verify] has read and checked: files and bytes, of how many.
type Verified = coordinator.Verified

// Verify reads every committed file of a part again and checks it: its checksum, its rows, and
// the counts against the graph. A file is in one part, and parts have about as many bytes, as far as
// whole files allow. What does not belong to one file is checked with one of the parts, so that all together check what
// Part{} does. The error wraps [ErrCorrupt] and names every damaged file.
func (d *Directory) Verify(ctx context.Context, p Part) (Verified, error) {
	return d.VerifyWithin(ctx, p, 0)
}

// VerifyWithin does what Verify does, within so many bytes of memory, 0 for the default of [Resources].
func (d *Directory) VerifyWithin(ctx context.Context, p Part, memory int64) (Verified, error) {
	budget, err := Resources{Memory: memory}.Budget()
	if err != nil {
		return Verified{}, err
	}
	defer budget.Close()
	v, err := coordinator.Verify(ctx, d.cat, d.record, p, budget)
	if d.problem != "" && (err == nil || !strings.Contains(Message(err), d.problem)) && p.I <= 1 {
		err = errors.Join(failure.Of(ErrCorrupt, "%s", d.problem), err)
	}
	return v, interruption(ctx, err)
}

// ExportOptions say what to write where.
type ExportOptions struct {
	// What is one of [Artifacts], Format one of [Formats].
	What, Format string
	// Part writes one of several ranges of the input ids, which have about as many rows; edges are
	// in the part of the end that comes first. Parts in their order are the whole export.
	Part Part
	// TrueLabels adds to predictions the name of the predicted class, the true label of each
	// node, -1 for none, its name, and the split.
	TrueLabels bool
	// Out is a file outside of every run directory. It appears complete or not at all;
	// what is there is replaced only with Force. A pipe or a device takes the rows as
	// they come. A name that ends in .gz or .zst gets compressed bytes.
	Out   string
	Force bool
	// To, unless nil, takes the rows as they come, in place of Out.
	To io.Writer
	// Memory is the most memory in bytes that the export may take, 0 for the default
	// of [Resources].
	Memory int64
}

// Artifacts lists what can be exported, Formats how.
func Artifacts() []string { return slices.Clone(export.Artifacts) }

// Formats lists the formats of an export.
func Formats() []string { return slices.Clone(export.Formats) }

// Export writes an artifact, or a part of it, as one file, its rows in ascending order of input id, and
// returns the number of rows.
func (d *Directory) Export(ctx context.Context, o ExportOptions) (rows int64, err error) {
	budget, err := Resources{Memory: o.Memory}.Budget()
	if err != nil {
		return 0, err
	}
	defer budget.Close()
	rows, err = export.Run(ctx, d.cat, export.Options{
		What: o.What, Format: o.Format, Part: o.Part, TrueLabels: o.TrueLabels,
		Out: o.Out, Force: o.Force, To: o.To, Budget: budget,
	})
	return rows, interruption(ctx, registry.Explain(err, d.cat))
}

// Records streams an artifact, one of [Artifacts], as Arrow record batches in the order
// in which the run directory holds it: rows in order of node, each with its input id in
// the column id, and edges as node numbers src and dst, both directions of each. Row i of
// nodes is node i. A batch is valid until the next one is asked for; call its Retain
// method only together with a copy. Every file is verified before the first batch. The
// last pair has an error if the artifact is missing or damaged.
//
//	nodes        id, degree, component, label (-1 for none), split
//	lsi          id, k, capped
//	features     id, feature
//	smoothed     id, feature
//	soft-labels  id, probability
//	predictions  id, label, probability
//	edges        src, dst
func (d *Directory) Records(ctx context.Context, artifact string) iter.Seq2[arrow.Record, error] {
	return func(yield func(arrow.Record, error) bool) {
		budget, err := Resources{}.Budget()
		if err == nil {
			budget.Close() // what yield has on the heap is the caller's own
			err = export.Records(ctx, d.cat, artifact, budget, func(r arrow.Record) error {
				if !yield(r, nil) {
					return errEnough
				}
				return nil
			})
		}
		if err != nil && !errors.Is(err, errEnough) {
			yield(nil, interruption(ctx, registry.Explain(err, d.cat)))
		}
	}
}

// errEnough ends a stream whose reader has seen enough.
var errEnough = errors.New("the reader has seen enough")

// Leftover is a file of a run directory that no catalogue names.
type Leftover struct {
	Name  string `json:"file"`
	Bytes int64  `json:"bytes"`
	// Deleted says that it was removed, Foreign that ndls did not write it: it is kept.
	Deleted bool `json:"deleted"`
	Foreign bool `json:"foreign,omitempty"`
}

// GC lists what interrupted runs left behind in a run directory: unfinished files,
// spills, and files that are no longer in the catalogue. With remove it removes them;
// it refuses with [ErrBusy] while another process works on the run directory. Files
// that ndls did not write are listed as foreign and kept.
func GC(ctx context.Context, dir string, remove bool) (left []Leftover, err error) {
	defer func() { err = interruption(ctx, err) }()
	if remove {
		unlock, err := lockExisting(ctx, dir)
		if err != nil {
			return nil, err
		}
		defer unlock()
	}
	s, err := openStanding(ctx, dir)
	if err != nil {
		return nil, err
	}
	if remove && !s.Sound() {
		return nil, fmt.Errorf("nothing was removed, since files that the catalogue does not list may be of use: %w", s.Err())
	}
	cat := s.Catalog
	orphans, foreign, err := cat.Orphans(ctx)
	if err != nil {
		return nil, err
	}
	for _, o := range orphans {
		if remove {
			if err := cat.Store().Remove(ctx, o.Name); err != nil {
				return left, fmt.Errorf("removing %s: %w", o.Name, err)
			}
		}
		left = append(left, Leftover{Name: o.Name, Bytes: o.Size, Deleted: remove})
	}
	for _, f := range foreign {
		left = append(left, Leftover{Name: f.Name, Bytes: f.Size, Foreign: true})
	}
	return left, nil
}

// lockExisting locks a run directory that is known to be one.
func lockExisting(ctx context.Context, dir string) (unlock func(), err error) {
	store, _, err := openStore(ctx, dir, false)
	if err != nil {
		return nil, err
	}
	if _, err := address.Read(ctx, store); err == nil && rundir.Remote(dir) {
		return nil, failure.Of(ErrBusy, "--run %s: a coordinator is working on it, or was killed: start it again and let it end, or remove %s", dir, address.Name)
	}
	return rundir.Lock(dir)
}

// Catalog lists the committed files, for programs that read them as they are.
func (d *Directory) Catalog() *catalog.Catalog { return d.cat }

// openStore opens a run directory, which must be one of ours; create allows it to be
// missing or empty, too. The record is nil if there is none yet.
func openStore(ctx context.Context, dir string, create bool) (storage.Store, *coordinator.Record, error) {
	store, err := rundir.Open(ctx, dir, create)
	if err != nil {
		return nil, nil, err
	}
	rec, err := coordinator.ReadRecord(ctx, store)
	if errors.Is(err, ErrForeign) {
		advice := "give a folder in which ndls partition or ndls run has begun a run"
		if create {
			advice = "nothing was changed; choose an empty or new folder"
		}
		return nil, nil, failure.As(ErrForeign, fmt.Errorf("%w: %s", err, advice))
	}
	if err != nil && !(create && errors.Is(err, coordinator.ErrNoRecord)) {
		return nil, nil, err
	}
	if rec == nil && !create {
		return nil, nil, failure.Of(ErrNoRun, "--run %s holds no run; ndls partition or ndls run starts one", dir)
	}
	return store, rec, nil
}
