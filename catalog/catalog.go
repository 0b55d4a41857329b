package catalog

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"

	"ndls/internal/direct"
	"ndls/internal/invariants"
	"ndls/internal/seal"
	"ndls/internal/storage"
)

// Name is where the catalogue is, in every run directory.
const Name = "catalog.parquet"

// Kinds of catalogued files.
const (
	KindSummary          = "summary"             // graph/summary.json
	KindEdges            = "edges"               // edge shard
	KindHops             = "hops"                // hop stream
	KindNodes            = "nodes"               // node table
	KindFeatures         = "features"            // tile of input features
	KindLSI              = "lsi"                 // K table
	KindLSIPart          = "lsi-part"            // K of some rows
	KindSmoothedTile     = "smoothed-tile"       // tile of smoothed features
	KindSmoothedPart     = "smoothed-part"       // some rows of such a tile
	KindSmoothed         = "smoothed"            // smoothed features as rows
	KindModel            = "model"               // weights
	KindSoftTile         = "soft-label-tile"     // tile of soft labels
	KindSoftLabels       = "soft_labels"         // soft labels as rows
	KindGivenSoftTile    = "given-label-tile"    // tile of another model's soft labels
	KindSmoothedSoftTile = "smoothed-label-tile" // tile of smoothed soft labels
	KindSmoothedSoftPart = "smoothed-label-part" // some rows of such a tile
	KindPredictions      = "predictions"         // labels and probabilities as rows
	KindReport           = "report"              // report of a run
	KindCheckpoint       = "checkpoint"          // state of a task that is under way
	KindRun              = "run"                 // sorted numbers on their way between tasks of a partition
)

// NotApplicable stands in Entry.Interval and Entry.Block for files that belong
// to no interval or block.
const NotApplicable = -1

// Entry describes one committed file. It is one row of the catalogue.
type Entry struct {
	Kind string `parquet:"name=kind, type=BYTE_ARRAY, convertedtype=UTF8"`
	// Path is relative to the run directory, with slashes.
	Path  string `parquet:"name=path, type=BYTE_ARRAY, convertedtype=UTF8"`
	Rows  int64  `parquet:"name=rows, type=INT64"`
	Bytes int64  `parquet:"name=bytes, type=INT64"`
	// Checksum is "sha256:" and the lower-case hex sum of the file's bytes.
	Checksum string `parquet:"name=checksum, type=BYTE_ARRAY, convertedtype=UTF8"`
	// Interval and Block place the file in the matrix, or are -1.
	Interval int32 `parquet:"name=interval, type=INT32"`
	Block    int32 `parquet:"name=block, type=INT32"`
}

// Publish makes a change of the catalogue durable: paths are taken off the list,
// added are put on it. del says that the removed files are to be deleted too. If
// it fails nothing is changed, or the same change may be published again.
type Publish func(ctx context.Context, added []Entry, removed []string, del bool) error

// Catalog is the list of committed files of a run directory. A file exists when
// its entry does. It is safe for concurrent use.
//
// One Catalog at a time, the owner, may write to a run directory ([Open]).
// Others are views ([NewView]): they write files, and have their changes
// published by the owner.
type Catalog struct {
	store   storage.Store
	publish Publish // nil for the owner
	mu      sync.Mutex
	entries map[string]Entry // by path
}

// NewView returns a view of a catalogue that lists entries now. Every change is
// given to publish, and made in the view once that returns without an error.
func NewView(store storage.Store, entries []Entry, publish Publish) *Catalog {
	c := &Catalog{store: store, publish: publish}
	c.Replace(entries)
	return c
}

// Replace makes a view list entries: others have changed the catalogue too.
func (c *Catalog) Replace(entries []Entry) {
	next := make(map[string]Entry, len(entries))
	for _, e := range entries {
		next[e.Path] = e
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.entries = next
}

// Open reads the catalogue of a run directory; there is an empty one
// where none was written. It fails with ErrVersion or ErrCorrupt.
func Open(ctx context.Context, store storage.Store) (*Catalog, error) {
	c := &Catalog{store: store, entries: map[string]Entry{}}
	r, err := store.Open(ctx, Name)
	if errors.Is(err, storage.ErrNotExist) {
		return c, nil
	}
	if err != nil {
		return nil, fmt.Errorf("open catalogue: %w", err)
	}
	defer r.Close()
	entries, err := readCatalog(r)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		if _, twice := c.entries[e.Path]; twice {
			return nil, seal.Corrupt(Name, "%s is listed twice", e.Path)
		}
		c.entries[e.Path] = e
	}
	return c, nil
}

// Store is where the files are.
func (c *Catalog) Store() storage.Store { return c.store }

// Entries returns the files of a kind, or all for "", sorted by interval, block
// and path.
func (c *Catalog) Entries(kind string) []Entry {
	c.mu.Lock()
	defer c.mu.Unlock()
	var out []Entry
	for _, e := range c.entries {
		if kind == "" || e.Kind == kind {
			out = append(out, e)
		}
	}
	slices.SortFunc(out, compareEntries)
	return out
}

func compareEntries(a, b Entry) int {
	return cmp.Or(cmp.Compare(a.Interval, b.Interval), cmp.Compare(a.Block, b.Block), strings.Compare(a.Path, b.Path))
}

// Lookup returns the entry of a path.
func (c *Catalog) Lookup(path string) (Entry, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e, ok := c.entries[path]
	return e, ok
}

// File is a file being written. Set Rows before the commit.
type File struct {
	// Rows is what the entry will say.
	Rows  int64
	entry Entry
	w     storage.Writer
}

// Create starts an attempt at a file. interval and block may be NotApplicable.
// What path named before stays until Commit.
func (c *Catalog) Create(ctx context.Context, kind, path string, interval, block int32) (*File, error) {
	if kind == "" || isRecord(path) {
		return nil, fmt.Errorf("create %q of kind %q", path, kind)
	}
	w, err := c.store.Create(ctx, path)
	if err != nil {
		return nil, fmt.Errorf("create %s: %w", path, err)
	}
	return &File{w: w, entry: Entry{Kind: kind, Path: path, Interval: interval, Block: block}}, nil
}

// Path is the path the file will have.
func (f *File) Path() string { return f.entry.Path }

// Write implements io.Writer.
func (f *File) Write(p []byte) (int, error) { return f.w.Write(p) }

// Abort drops the attempt. It does nothing after a commit.
func (f *File) Abort() { f.w.Abort() }

// Commit makes the files durable and lists all of them in one step: a reopened
// catalogue has all or none. On an error none is listed and what was written
// are orphans. The files must have different paths.
func (c *Catalog) Commit(ctx context.Context, files ...*File) error {
	defer func() {
		for _, f := range files {
			f.Abort()
		}
	}()
	// No entry may describe bytes that are gone: a path that is about to get
	// others is taken off the list first.
	renewed := map[string]bool{}
	for _, f := range files {
		if renewed[f.entry.Path] {
			return fmt.Errorf("commit %s twice in one step", f.entry.Path)
		}
		renewed[f.entry.Path] = true
	}
	if err := c.unlist(ctx, func(e Entry) bool { return renewed[e.Path] }, false); err != nil {
		return err
	}
	added := make([]Entry, len(files))
	for i, f := range files {
		digest, err := f.w.Commit(ctx)
		if err != nil {
			return fmt.Errorf("commit %s: %w", f.entry.Path, err)
		}
		added[i] = f.entry
		added[i].Rows, added[i].Bytes, added[i].Checksum = f.Rows, digest.Bytes, "sha256:"+digest.SHA256
	}
	return c.Apply(ctx, added, nil, false)
}

// Remove takes every entry that matches off the list, in one step, then deletes
// the files. match must not call the catalogue.
func (c *Catalog) Remove(ctx context.Context, match func(Entry) bool) error {
	return c.unlist(ctx, match, true)
}

func (c *Catalog) unlist(ctx context.Context, match func(Entry) bool, del bool) error {
	c.mu.Lock()
	var gone []string
	for path, e := range c.entries {
		if match(e) {
			gone = append(gone, path)
		}
	}
	c.mu.Unlock()
	if len(gone) == 0 {
		return nil
	}
	slices.Sort(gone)
	return c.Apply(ctx, nil, gone, del)
}

// Apply takes removed paths off the list and puts added on it, in one step; with
// del the removed files that are not added are deleted after that. A change that
// was applied may be applied again.
func (c *Catalog) Apply(ctx context.Context, added []Entry, removed []string, del bool) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	next := maps.Clone(c.entries)
	for _, path := range removed {
		delete(next, path)
	}
	for _, e := range added {
		next[e.Path] = e
	}
	if invariants.Enabled {
		checkEntries(next)
	}
	if c.publish != nil {
		if err := c.publish(ctx, added, removed, del); err != nil {
			return fmt.Errorf("change catalogue: %w", err)
		}
		c.entries = next
		return nil
	}
	if !maps.Equal(next, c.entries) {
		if err := writeCatalog(ctx, c.store, next); err != nil {
			return err
		}
		c.entries = next
	}
	if !del {
		return nil
	}
	for _, path := range removed {
		if _, listed := next[path]; listed {
			continue
		}
		if err := c.store.Remove(ctx, path); err != nil {
			return fmt.Errorf("remove %s: %w", path, err)
		}
	}
	return nil
}

// Open opens a listed file for reading at any offset. Its size must be what the
// entry says; its bytes are not checked.
func (c *Catalog) Open(ctx context.Context, e Entry) (storage.Reader, error) {
	sum, _ := strings.CutPrefix(e.Checksum, "sha256:")
	r, err := storage.OpenDigest(ctx, c.store, e.Path, storage.Digest{Bytes: e.Bytes, SHA256: sum})
	return e.opened(r, err)
}

// OpenOnce is Open for a file that is read once, or in part: no local copy of it
// is made.
func (c *Catalog) OpenOnce(ctx context.Context, e Entry) (storage.Reader, error) {
	r, err := storage.OpenOnce(ctx, c.store, e.Path)
	return e.opened(r, err)
}

// opened compares what was opened with its entry.
func (e Entry) opened(r storage.Reader, err error) (storage.Reader, error) {
	switch {
	case errors.Is(err, storage.ErrNotExist):
		return nil, seal.Corrupt(e.Path, "the catalogue lists it and it is gone")
	case errors.Is(err, storage.ErrDigest):
		return nil, seal.Corrupt(e.Path, "%v", err)
	}
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", e.Path, err)
	}
	if r.Size() != e.Bytes {
		_ = r.Close()
		return nil, seal.Corrupt(e.Path, "it has %d bytes, the catalogue says %d", r.Size(), e.Bytes)
	}
	return r, nil
}

// Stream reads a listed file from start to end, ahead of its caller. In place of
// io.EOF the last Read returns ErrCorrupt if the bytes are not those of the
// entry.
func (c *Catalog) Stream(ctx context.Context, e Entry) (io.ReadCloser, error) {
	r, err := c.Open(ctx, e)
	if err != nil {
		return nil, err
	}
	return &stream{ctx: ctx, entry: e, file: r, ahead: direct.NewReader(r, 0, r.Size()), sum: sha256.New()}, nil
}

type stream struct {
	ctx   context.Context
	entry Entry
	file  storage.Reader
	ahead *direct.Reader
	sum   hash.Hash
}

func (s *stream) Read(p []byte) (int, error) {
	if err := s.ctx.Err(); err != nil {
		return 0, err
	}
	n, err := s.ahead.Read(p)
	s.sum.Write(p[:n])
	if err == io.EOF {
		if got := "sha256:" + hex.EncodeToString(s.sum.Sum(nil)); got != s.entry.Checksum {
			return n, seal.Corrupt(s.entry.Path, "its checksum is %s, the catalogue says %s", got, s.entry.Checksum)
		}
		return n, io.EOF
	}
	if err != nil {
		err = fmt.Errorf("read %s: %w", s.entry.Path, err)
	}
	return n, err
}

func (s *stream) Close() error {
	return errors.Join(s.ahead.Close(), s.file.Close())
}

// Verify reads a listed file and compares it with its checksum.
func (c *Catalog) Verify(ctx context.Context, e Entry) error {
	s, err := c.Stream(ctx, e)
	if err != nil {
		return err
	}
	defer s.Close()
	_, err = io.Copy(io.Discard, s)
	return err
}

// records are the files of a run directory that are not in the catalogue: they say
// how the run goes. Names that end in a slash or a dot are prefixes.
var records = []string{Name, "run.json", "report.", "journal/", "cluster/"}

func isRecord(name string) bool {
	return slices.ContainsFunc(records, func(r string) bool {
		return name == r || strings.HasPrefix(name, r) && strings.ContainsAny(r[len(r)-1:], "/.")
	})
}

// Orphans returns the files in the store that no entry names, attempts
// included. Records of the run are no orphans.
func (c *Catalog) Orphans(ctx context.Context) ([]storage.Info, error) {
	all, err := c.store.List(ctx, "")
	if err != nil {
		return nil, fmt.Errorf("list files: %w", err)
	}
	return slices.DeleteFunc(all, func(i storage.Info) bool {
		if i.Attempt {
			return false
		}
		_, listed := c.Lookup(i.Name)
		return listed || isRecord(i.Name)
	}), nil
}
