package catalog

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"ndls/internal/direct"
	"ndls/internal/invariants"
	"ndls/internal/seal"
	"ndls/internal/share"
	"ndls/internal/storage"
)

// Name is the path of the catalogue as one Parquet file, in every run directory. The file is complete after each stage; between two stages
// it lacks the latest changes.
const Name = "catalog.parquet"

// Publish makes a change of the catalogue durable: it removes paths from the list and adds entries to it. del says that the removed files
// are deleted, too. If it fails, nothing is changed, or the same change may be published again.
type Publish func(ctx context.Context, added []Entry, removed []string, del bool) error

// Catalog is the list of committed files of a run directory. A file exists when its entry does. A Catalog is safe for concurrent use.
//
// One Catalog at a time, the owner, may write to a run directory ([Open]). Others are views ([NewView]): they write files, and the owner
// publishes their changes.
type Catalog struct {
	store   storage.Store
	publish Publish // nil for the owner
	binding Binding

	adding  sync.Mutex
	pending *batch // the owner's next write; nil if there is none

	changing  sync.Mutex // held while a change is made durable, or a file is deleted
	log       *log       // of the owner
	published Published  // by the owner
	number    atomic.Uint64

	mu     sync.RWMutex // never held while waiting for a store
	byPath map[string]Entry
	byKind map[string]map[string]Entry // by kind, then path
	recent *recent                     // latest changes, of the owner; nil in a view
}

// NewView returns a view of a catalogue that lists entries now. It passes every change to publish, and applies it when publish returns
// without an error.
func NewView(store storage.Store, entries []Entry, publish Publish) *Catalog {
	c := &Catalog{store: store, publish: publish}
	c.replace(entries)
	return c
}

// Published describes the bytes of the file under [Name], and what they list.
type Published struct {
	// Number is the number of the last change that the file includes, 0 if unknown.
	Number uint64 `json:"number,omitempty"`
	SHA256 string `json:"sha256,omitempty"`
}

// Open reads the catalogue of a run directory; it is empty if none was written. Open fails with ErrVersion or ErrCorrupt.
func Open(ctx context.Context, store storage.Store) (*Catalog, error) {
	return OpenPublished(ctx, store, Published{})
}

// OpenPublished is Open for a run whose record knows how the file under Name was last published. That file then replaces a snapshot that is
// missing or damaged, and [Catalog.Lacks] lists what has to be made again.
func OpenPublished(ctx context.Context, store storage.Store, p Published) (*Catalog, error) {
	log, entries, changes, err := openLog(ctx, store, p)
	if err != nil {
		return nil, err
	}
	c := &Catalog{store: store, log: log, published: p}
	c.number.Store(log.number)
	c.replace(entries)
	if len(c.byPath) != len(entries) {
		return nil, seal.Corrupt(Name, "it lists a file twice")
	}
	c.recent = newRecent()
	for _, x := range changes {
		c.change(x.Added, x.Removed)
	}
	if p.Number > 0 {
		err = c.comparePublished(ctx)
	}
	return c, err
}

// comparePublished records whether the file under Name is missing, damaged, or neither the last published one nor equal to the catalogue.
func (c *Catalog) comparePublished(ctx context.Context) error {
	entries, sum, err := readPublished(ctx, c.store)
	switch {
	case errors.Is(err, storage.ErrNotExist):
		c.log.lacks = append(c.log.lacks, Name+" is missing")
	case errors.Is(err, seal.ErrCorrupt):
		c.log.lacks = append(c.log.lacks, Name+" is damaged")
	case err != nil:
		return err
	case sum != c.published.SHA256 && !slices.Equal(entries, c.All()):
		c.log.lacks = append(c.log.lacks, Name+" is older than "+logPrefix)
	}
	return nil
}

// Lacks lists the parts of the catalogue that are missing or damaged although the rest holds all their content. [Catalog.Mend] makes them
// again.
func (c *Catalog) Lacks() []string {
	if c.log == nil {
		return nil
	}
	return slices.Clone(c.log.lacks)
}

// Mend makes again what the catalogue lacks. It raises the number of the last change to at least least, so that a catalogue which starts
// anew continues the numbers of the one before.
func (c *Catalog) Mend(ctx context.Context, least uint64) error {
	c.changing.Lock()
	raised := c.log.number < least
	if raised {
		c.log.number = least
		c.number.Store(least)
	}
	lacks := c.log.lacks
	c.log.lacks = nil
	entries, number := c.All(), c.log.number
	c.changing.Unlock()
	if !raised && len(lacks) == 0 {
		return nil
	}
	// A damaged snapshot may exist under this name.
	data, err := encodeCatalog(entries, number)
	if err == nil {
		err = storage.Put(ctx, c.store.Create, snapshotName(number), data)
	}
	if err != nil {
		return fmt.Errorf("write catalogue: %w", err)
	}
	return c.Publish(ctx)
}

// Published returns how the file under Name was last published.
func (c *Catalog) Published() Published {
	c.changing.Lock()
	defer c.changing.Unlock()
	return c.published
}

// Bind binds the catalogue to a plan: new entries get its stages and hashes, and only [Catalog.All] lists files made under another plan.
// The caller calls it before several goroutines use the catalogue.
func (c *Catalog) Bind(b Binding) { c.binding = b }

// replace makes the catalogue list exactly these entries.
func (c *Catalog) replace(entries []Entry) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.byPath, c.byKind = make(map[string]Entry, len(entries)), map[string]map[string]Entry{}
	for _, e := range entries {
		c.list(e)
	}
}

// list adds an entry to the list; mu is held.
func (c *Catalog) list(e Entry) {
	c.unlistPath(e.Path)
	c.byPath[e.Path] = e
	if c.byKind[e.Kind] == nil {
		c.byKind[e.Kind] = map[string]Entry{}
	}
	c.byKind[e.Kind][e.Path] = e
}

// unlistPath removes a path from the list; mu is held.
func (c *Catalog) unlistPath(path string) {
	if e, ok := c.byPath[path]; ok {
		delete(c.byPath, path)
		delete(c.byKind[e.Kind], path)
	}
}

// change applies a change in memory.
func (c *Catalog) change(added []Entry, removed []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, path := range removed {
		c.unlistPath(path)
	}
	for _, e := range added {
		c.list(e)
	}
	if c.recent != nil {
		c.recent.add(change{Added: added, Removed: removed}, len(c.byPath))
	}
	if invariants.Enabled && len(c.byPath) <= checkedEntries {
		c.checkLists()
	}
}

// changes reports whether a change has any effect.
func (c *Catalog) changes(added []Entry, removed []string) bool {
	c.mu.RLock()
	defer c.mu.RUnlock()
	isAdded := map[string]bool{}
	for _, e := range added {
		isAdded[e.Path] = true
		if c.byPath[e.Path] != e {
			return true
		}
	}
	return slices.ContainsFunc(removed, func(path string) bool {
		_, listed := c.byPath[path]
		return listed && !isAdded[path]
	})
}

// Store returns the store that holds the files.
func (c *Catalog) Store() storage.Store { return c.store }

// Number returns the number of changes to the catalogue of a run directory, counted from its first. It is 0 for a view. It does not wait
// for a change that is being written.
func (c *Catalog) Number() uint64 { return c.number.Load() }

// Entries returns the files of a kind, or of all kinds for "", that were made under the plan to which the catalogue is bound. They are
// sorted by interval, block and path.
func (c *Catalog) Entries(kind string) []Entry {
	c.mu.RLock()
	from := c.byKind[kind]
	if kind == "" {
		from = c.byPath
	}
	out := make([]Entry, 0, len(from))
	for _, e := range from {
		if c.binding.holds(e) {
			out = append(out, e)
		}
	}
	c.mu.RUnlock()
	slices.SortFunc(out, compareEntries)
	return out
}

// All returns every listed file, whatever plan made it, in the order of Entries.
func (c *Catalog) All() []Entry {
	c.mu.RLock()
	out := slices.Collect(maps.Values(c.byPath))
	c.mu.RUnlock()
	slices.SortFunc(out, compareEntries)
	return out
}

// Lookup returns the entry of a path, if the file was made under the plan to which the catalogue is bound.
func (c *Catalog) Lookup(path string) (Entry, bool) {
	e, ok := c.lookup(path)
	return e, ok && c.binding.holds(e)
}

func (c *Catalog) lookup(path string) (Entry, bool) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	e, ok := c.byPath[path]
	return e, ok
}

// File is a file being written. Set Rows before the commit.
type File struct {
	// Rows is the number of rows for the entry.
	Rows  int64
	entry Entry
	w     storage.Writer
}

// Create starts an attempt at a file that e describes; see [Describe]. The file that has this path stays until Commit. Commit sets Bytes
// and Checksum of e; the binding sets Stage and Plan.
func (c *Catalog) Create(ctx context.Context, e Entry) (*File, error) {
	if e.Kind == "" || IsRecord(e.Path) {
		return nil, fmt.Errorf("create %q of kind %q", e.Path, e.Kind)
	}
	if c.binding.Plans != nil && !Made(e.Path) {
		return nil, fmt.Errorf("create %q in a run directory: ndls gives no such name, so gc would keep what an interruption leaves of it", e.Path)
	}
	w, err := c.store.Create(ctx, e.Path)
	if err != nil {
		return nil, fmt.Errorf("create %s: %w", e.Path, err)
	}
	return &File{w: w, entry: e, Rows: e.Rows}, nil
}

// Path returns the path that the file will have.
func (f *File) Path() string { return f.entry.Path }

// Write implements io.Writer.
func (f *File) Write(p []byte) (int, error) { return f.w.Write(p) }

// Sum returns the SHA-256, in lower-case hex, of all bytes written. Nothing may be written after it.
func (f *File) Sum() string { return f.w.Sum() }

// Abort drops the attempt. It does nothing after a commit.
func (f *File) Abort() { f.w.Abort() }

// Write creates the file that e describes, lets write fill it, and commits it alone. The file has the rows of e unless write sets others.
// After an error it is not listed.
func (c *Catalog) Write(ctx context.Context, e Entry, write func(*File) error) error {
	b := c.Batch()
	defer b.Abort()
	if err := b.Write(ctx, e, write); err != nil {
		return err
	}
	return b.Commit(ctx)
}

// Batch collects files that are committed together. Abort or Commit ends it.
type Batch struct {
	c     *Catalog
	files []*File
}

// Batch returns a batch without files.
func (c *Catalog) Batch() *Batch { return &Batch{c: c} }

// Create adds a file that e describes; see [Catalog.Create].
func (b *Batch) Create(ctx context.Context, e Entry) (*File, error) {
	f, err := b.c.Create(ctx, e)
	if err == nil {
		b.files = append(b.files, f)
	}
	return f, err
}

// Write adds a file that e describes, and lets write fill it. After an error the batch is without this file.
func (b *Batch) Write(ctx context.Context, e Entry, write func(*File) error) error {
	f, err := b.c.Create(ctx, e)
	if err != nil {
		return err
	}
	if err := write(f); err != nil {
		f.Abort()
		return err
	}
	b.files = append(b.files, f)
	return nil
}

// Commit commits the files, all or none; see [Catalog.Commit].
func (b *Batch) Commit(ctx context.Context) error { return b.c.Commit(ctx, b.files...) }

// Abort drops the files unless they are committed.
func (b *Batch) Abort() {
	for _, f := range b.files {
		f.Abort()
	}
}

// commitsTogether is the number of files of a commit that are made durable at the same time. Each mostly waits for the disk or the store.
const commitsTogether = 8

// Commit makes the files durable and lists all of them in one step: a reopened catalogue has all or none. After an error none is listed,
// and the written files are orphans. The files must have different paths. A file that replaces a listed one with the same bytes stays
// listed throughout. One with other bytes is unlisted from before its bytes change until the step.
func (c *Catalog) Commit(ctx context.Context, files ...*File) error {
	defer func() {
		for _, f := range files {
			f.Abort()
		}
	}()
	added := make([]Entry, len(files))
	var others []string // paths listed with other bytes
	for i, f := range files {
		if slices.ContainsFunc(added[:i], func(e Entry) bool { return e.Path == f.entry.Path }) {
			return fmt.Errorf("commit %s twice in one step", f.entry.Path)
		}
		e := c.binding.stamp(f.entry)
		e.Rows, e.Checksum = f.Rows, "sha256:"+f.w.Sum()
		added[i] = e
		if old, listed := c.lookup(e.Path); listed && old.Checksum != e.Checksum {
			others = append(others, e.Path)
		}
	}
	if len(others) > 0 {
		if err := c.Apply(ctx, nil, others, false); err != nil {
			return err
		}
	}
	if err := share.Each(commitsTogether, len(files), func(i int) error {
		digest, err := files[i].w.Commit(ctx)
		if err != nil {
			return fmt.Errorf("commit %s: %w", files[i].entry.Path, err)
		}
		added[i].Bytes = digest.Bytes
		return nil
	}); err != nil {
		return err
	}
	return c.Apply(ctx, added, nil, false)
}

// Remove removes every entry that matches from the list, in one step, then deletes the files. It includes entries of every plan. match must
// not call the catalogue.
func (c *Catalog) Remove(ctx context.Context, match func(Entry) bool) error {
	var gone []string
	for _, e := range c.All() {
		if match(e) {
			gone = append(gone, e.Path)
		}
	}
	if len(gone) == 0 {
		return nil
	}
	slices.Sort(gone)
	return c.Apply(ctx, nil, gone, true)
}

// Apply removes paths from the list and adds entries to it, in one step. With del it then deletes the removed files that are not added,
// except files that the owner neither lists nor has listed recently. A change that was applied may be applied again. Changes of several
// callers that arrive while one is written are written together.
func (c *Catalog) Apply(ctx context.Context, added []Entry, removed []string, del bool) error {
	if c.publish != nil {
		c.changing.Lock()
		defer c.changing.Unlock()
		if err := c.publish(ctx, added, removed, del); err != nil {
			return fmt.Errorf("change catalogue: %w", err)
		}
		c.change(added, removed)
		return nil
	}
	listed := c.knows(removed)
	if c.changes(added, removed) {
		if err := c.write(ctx, added, removed); err != nil {
			return err
		}
		c.compact(ctx)
	}
	if !del {
		return nil
	}
	for _, path := range listed {
		if err := c.delete(ctx, path); err != nil {
			return err
		}
	}
	return nil
}

// knows returns those of the paths that are listed, or that one of the latest changes removed from the list.
func (c *Catalog) knows(paths []string) (known []string) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	var gone map[string]bool
	for _, path := range paths {
		_, listed := c.byPath[path]
		if !listed && gone == nil {
			gone = c.recent.removed()
		}
		if listed || gone[path] {
			known = append(known, path)
		}
	}
	return known
}

// batch holds changes that are written as one.
type batch struct {
	changes []change
	files   int
	written bool
	err     error
}

// write makes a change durable and then applies it, together with waiting changes of other callers.
func (c *Catalog) write(ctx context.Context, added []Entry, removed []string) error {
	files := len(added) + len(removed)
	c.adding.Lock()
	if c.pending == nil || c.pending.files > 0 && c.pending.files+files > mostTogether {
		c.pending = &batch{}
	}
	b := c.pending
	b.changes, b.files = append(b.changes, change{Added: added, Removed: removed}), b.files+files
	c.adding.Unlock()

	c.changing.Lock()
	defer c.changing.Unlock()
	if b.written {
		return b.err
	}
	c.adding.Lock()
	if c.pending == b {
		c.pending = nil
	}
	c.adding.Unlock()
	b.written = true
	x := merged(b.changes)
	// The batch includes changes of other callers, who still wait.
	b.err = c.log.add(context.WithoutCancel(ctx), x.Added, x.Removed, func(x change) { c.change(x.Added, x.Removed) })
	c.number.Store(c.log.number)
	if b.err == nil {
		c.change(x.Added, x.Removed)
	}
	return b.err
}

// merged returns one change with the effect of several, applied in order.
func merged(changes []change) change {
	if len(changes) == 1 {
		return changes[0]
	}
	var all change
	last := map[string]int{} // the place of a path in all.Added, or -1 if it was removed
	var paths []string
	set := func(path string, at int) {
		if _, known := last[path]; !known {
			paths = append(paths, path)
		}
		last[path] = at
	}
	var added []Entry
	for _, x := range changes {
		for _, path := range x.Removed {
			set(path, -1)
		}
		for _, e := range x.Added {
			set(e.Path, len(added))
			added = append(added, e)
		}
	}
	for _, path := range paths {
		if at := last[path]; at < 0 {
			all.Removed = append(all.Removed, path)
		} else {
			all.Added = append(all.Added, added[at])
		}
	}
	return all
}

// delete deletes a file that is not listed. Meanwhile no change is written that might list it.
func (c *Catalog) delete(ctx context.Context, path string) error {
	c.changing.Lock()
	defer c.changing.Unlock()
	if _, listed := c.lookup(path); listed {
		return nil
	}
	if err := c.store.Remove(ctx, path); err != nil {
		return fmt.Errorf("remove %s: %w", path, err)
	}
	return nil
}

// compact writes a snapshot when enough has changed since the last one, while others change the catalogue. The preceding change is durable:
// if the snapshot fails, a later change tries again.
func (c *Catalog) compact(ctx context.Context) {
	c.changing.Lock()
	c.mu.RLock()
	files := len(c.byPath)
	c.mu.RUnlock()
	number, since := c.log.number, c.log.since
	due := since >= max(minChanges, files)
	var entries []Entry
	if due {
		entries, c.log.since = c.All(), 0
	}
	c.changing.Unlock()
	if !due {
		return
	}
	data, err := encodeCatalog(entries, number)
	if err == nil {
		err = c.log.snapshot(ctx, number, data)
	}
	if err != nil {
		c.changing.Lock()
		c.log.since += since
		c.changing.Unlock()
	}
}

// Publish writes the catalogue as one Parquet file, under Name. The owner calls it after each stage.
func (c *Catalog) Publish(ctx context.Context) error {
	c.changing.Lock()
	entries, number := c.All(), c.log.number
	c.log.since = 0
	c.changing.Unlock()
	data, err := encodeCatalog(entries, number)
	if err != nil {
		return err
	}
	if err := c.log.snapshot(ctx, number, data); err != nil {
		return err
	}
	// The bytes depend on the list, not on its history.
	if data, err = encodeCatalog(entries, 0); err == nil {
		err = storage.Put(ctx, c.store.Create, Name, data)
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", Name, err)
	}
	c.changing.Lock()
	c.published = Published{number, sumOf(data)}
	c.changing.Unlock()
	return nil
}

// Check reads the Parquet file under Name, which must exist once a stage has ended. With all, if no change came after that, the file must
// list what the catalogue lists.
func (c *Catalog) Check(ctx context.Context, all bool) error {
	entries, _, err := readSnapshot(ctx, c.store, Name)
	if errors.Is(err, storage.ErrNotExist) {
		return damagedLog(Name, "it is missing")
	}
	if err != nil {
		return err
	}
	if all && !slices.Equal(entries, c.All()) {
		return damagedLog(Name, "it lists other files than %s", logPrefix)
	}
	return nil
}

// Open opens a listed file for reading at any offset. It compares the size with the entry, but not the bytes.
func (c *Catalog) Open(ctx context.Context, e Entry) (storage.Reader, error) {
	sum, _ := strings.CutPrefix(e.Checksum, "sha256:")
	r, err := storage.OpenDigest(ctx, c.store, e.Path, storage.Digest{Bytes: e.Bytes, SHA256: sum})
	return e.opened(r, err)
}

// OpenOnce is Open for a file that is read once, or in part: it makes no local copy.
func (c *Catalog) OpenOnce(ctx context.Context, e Entry) (storage.Reader, error) {
	r, err := c.store.Open(ctx, e.Path)
	return e.opened(r, err)
}

// opened compares an opened file with its entry.
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

// Stream reads a listed file from start to end, ahead of its caller. The last Read returns ErrCorrupt in place of io.EOF if the checksum of
// the entry does not match.
func (c *Catalog) Stream(ctx context.Context, e Entry) (io.ReadCloser, error) {
	v, err := c.OpenVerified(ctx, e)
	if err != nil {
		return nil, err
	}
	return &stream{ctx: ctx, Verified: v, ahead: direct.NewReader(v.file, 0, v.Size())}, nil
}

type stream struct {
	*Verified
	ctx   context.Context
	ahead *direct.Reader
}

func (s *stream) Read(p []byte) (int, error) {
	if err := s.ctx.Err(); err != nil {
		return 0, err
	}
	n, err := s.ahead.Read(p)
	s.add(p[:n], s.done)
	if err == io.EOF {
		return n, cmp.Or(s.Finish(), io.EOF)
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

// Orphans returns the files in the store that no entry names, including attempts. Records of the run are not orphans. Files whose names
// ndls never gives are foreign: only their owner may remove them.
func (c *Catalog) Orphans(ctx context.Context) (orphans, foreign []storage.Info, err error) {
	all, err := c.store.List(ctx, "")
	if err != nil {
		return nil, nil, fmt.Errorf("list files: %w", err)
	}
	for _, i := range all {
		_, listed := c.lookup(i.Name)
		switch {
		case !Made(i.Name) && !listed:
			foreign = append(foreign, i)
		case i.Attempt || !listed && !IsRecord(i.Name):
			orphans = append(orphans, i)
		}
	}
	return orphans, foreign, nil
}

// brief returns the beginning of a checksum, long enough to show that two differ.
func brief(checksum string) string {
	const long = len("sha256:") + 8
	if len(checksum) <= long {
		return checksum
	}
	return checksum[:long] + "…"
}
