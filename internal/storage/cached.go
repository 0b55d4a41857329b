package storage

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"ndls/internal/direct"
	"ndls/internal/mem"
	"ndls/internal/vfs"
)

const (
	dataSuffix = ".ndls-copy"      // bytes of a copy
	noteSuffix = ".ndls-copy.json" // what they are; a copy exists once its note does
	lockName   = "ndls-cache.lock"
)

// Cached passes everything on to a remote store and keeps whole files whose bytes
// are known in a local folder. It is safe for concurrent use.
type Cached struct {
	Store
	dir   string
	limit int64
	lock  vfs.File

	mu      sync.Mutex
	copies  map[string]*localCopy    // by name
	loading map[string]chan struct{} // closed when the download ends
	used    int64                    // bytes of copies and downloads
	clock   int64                    // counts opens
}

// note says what a copy holds.
type note struct {
	Store string `json:"store"`
	Name  string `json:"name"`
	Digest
}

type localCopy struct {
	note
	path     string // without suffix
	readers  int
	lastOpen int64 // clock
	dropped  bool  // off the list; its space is free once nobody reads
}

// NewCached keeps at most limit bytes of the files of store in dir, which is
// made if it is missing and belongs to this cache alone. Copies of an earlier
// process are found again.
func NewCached(store Store, dir string, limit int64) (*Cached, error) {
	if _, err := vfs.MkdirAll(dir, 0o777); err != nil {
		return nil, fmt.Errorf("storage: making cache: %w", missing(err))
	}
	lock, err := vfs.OpenFile(filepath.Join(dir, lockName), os.O_CREATE|os.O_RDWR, 0o666)
	if err != nil {
		return nil, fmt.Errorf("storage: locking cache: %w", missing(err))
	}
	if err := lock.Lock(); errors.Is(err, unix.EWOULDBLOCK) { // where there are no locks it goes without
		_ = lock.Close()
		return nil, fmt.Errorf("storage: cache %s is in use by another process (%w); give each worker a folder of its own", dir, err)
	}
	c := &Cached{
		Store: store, dir: dir, limit: limit, lock: lock,
		copies: map[string]*localCopy{}, loading: map[string]chan struct{}{},
	}
	if err := c.find(); err != nil {
		_ = lock.Close()
		return nil, fmt.Errorf("storage: reading cache: %w", missing(err))
	}
	c.makeRoom(0)
	return c, nil
}

// find lists the copies in the folder and deletes what is none.
func (c *Cached) find() error {
	files, err := vfs.ReadDir(c.dir)
	if err != nil {
		return err
	}
	paths := map[string]bool{} // without suffix
	for _, f := range files {
		base := strings.TrimSuffix(strings.TrimSuffix(f.Name(), noteSuffix), dataSuffix)
		if base != f.Name() {
			paths[filepath.Join(c.dir, base)] = true
		}
	}
	var found []*localCopy
	for path := range paths {
		copied := &localCopy{path: path}
		if !copied.load(c.URI()) {
			removeCopy(path)
			continue
		}
		found = append(found, copied)
	}
	slices.SortFunc(found, func(a, b *localCopy) int { return cmp.Compare(a.lastOpen, b.lastOpen) })
	for _, copied := range found {
		c.drop(copied.Name) // an older one
		c.copies[copied.Name] = copied
		c.used += copied.Bytes
	}
	c.clock = time.Now().UnixNano()
	return nil
}

// load reads a copy's note and reports whether it is a whole copy of a file of the
// store. It takes the time of its last use for the clock.
func (k *localCopy) load(uri string) bool {
	text, err := vfs.ReadFile(k.path + noteSuffix)
	if err != nil || json.Unmarshal(text, &k.note) != nil {
		return false
	}
	st, err := vfs.Stat(k.path + dataSuffix)
	if err != nil {
		return false
	}
	k.lastOpen = st.ModTime().UnixNano()
	return k.Store == uri && k.Bytes == st.Size()
}

// Close gives the folder free. Files that are open stay readable.
func (c *Cached) Close() error { return c.lock.Close() }

// Holds returns the names of the files that have a copy, sorted.
func (c *Cached) Holds() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Sorted(maps.Keys(c.copies))
}

// OpenDigest is Open for a file whose bytes the caller knows, as a catalogue
// does: a copy is used without asking the store, or made, once for all who wait.
// Other bytes fail with ErrDigest. Files for which there is no room are read
// where they are.
func (c *Cached) OpenDigest(ctx context.Context, name string, want Digest) (Reader, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for {
		if copied := c.copies[name]; copied != nil {
			if copied.Digest == want {
				if r, err := c.reader(copied); err == nil {
					return r, nil
				}
			}
			c.drop(name) // of other bytes, or damaged
		}
		others := c.loading[name]
		if others == nil {
			break
		}
		c.mu.Unlock()
		select {
		case <-others:
		case <-ctx.Done():
		}
		c.mu.Lock()
		if err := ctx.Err(); err != nil {
			return nil, err
		}
	}
	if !c.makeRoom(want.Bytes) {
		c.mu.Unlock()
		defer c.mu.Lock()
		return c.Store.Open(ctx, name)
	}
	c.used += want.Bytes
	ended := make(chan struct{})
	c.loading[name] = ended
	c.mu.Unlock()
	copied, err := c.download(ctx, name, want)
	c.mu.Lock()
	delete(c.loading, name)
	close(ended)
	if err != nil {
		c.used -= want.Bytes
		return nil, err
	}
	c.copies[name] = copied
	return c.reader(copied)
}

// makeRoom drops copies that nobody reads, the longest unused first, until size
// more bytes fit; mu is held.
func (c *Cached) makeRoom(size int64) bool {
	if size > c.limit {
		return false
	}
	for c.used+size > c.limit {
		var oldest *localCopy
		for _, copied := range c.copies {
			if copied.readers == 0 && (oldest == nil || copied.lastOpen < oldest.lastOpen) {
				oldest = copied
			}
		}
		if oldest == nil {
			return false
		}
		c.drop(oldest.Name)
	}
	return true
}

// drop takes a file's copy off the list, if there is one; mu is held.
func (c *Cached) drop(name string) {
	copied := c.copies[name]
	if copied == nil {
		return
	}
	delete(c.copies, name)
	removeCopy(copied.path)
	copied.dropped = true
	c.free(copied)
}

// free takes back the space of a dropped copy once its last reader is gone; mu
// is held.
func (c *Cached) free(copied *localCopy) {
	if copied.dropped && copied.readers == 0 {
		c.used -= copied.Bytes
	}
}

func removeCopy(path string) {
	_ = vfs.Remove(path + noteSuffix)
	_ = vfs.Remove(path + dataSuffix)
}

// download copies a file into the folder. It fails with ErrDigest if its bytes are others.
func (c *Cached) download(ctx context.Context, name string, want Digest) (_ *localCopy, err error) {
	r, err := c.Store.Open(ctx, name)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	if r.Size() != want.Bytes {
		return nil, fmt.Errorf("storage: open %s in %s: it has %d bytes, not %d: %w", name, c.URI(), r.Size(), want.Bytes, ErrDigest)
	}
	copied := &localCopy{path: filepath.Join(c.dir, newAttempt()), note: note{Store: c.URI(), Name: name, Digest: want}}
	defer func() {
		if err != nil {
			removeCopy(copied.path)
		}
	}()
	sum, err := copyFile(r, copied.path+dataSuffix)
	if err != nil {
		return nil, fmt.Errorf("storage: copying %s, %s, to cache %s: %w", name, mem.Bytes(want.Bytes), c.dir, missing(err))
	}
	if sum != want.SHA256 {
		return nil, fmt.Errorf("storage: open %s in %s: its SHA-256 is %s: %w", name, c.URI(), sum, ErrDigest)
	}
	text, err := json.Marshal(copied.note)
	if err == nil {
		err = vfs.WriteFile(copied.path+noteSuffix, text, 0o666)
	}
	if err != nil {
		return nil, fmt.Errorf("storage: noting the copy of %s: %w", name, missing(err))
	}
	return copied, nil
}

// copyFile writes what r reads to a durable file and returns the SHA-256.
func copyFile(r Reader, path string) (string, error) {
	body := wholeFile(r)
	defer body.Close()
	sum := sha256.New()
	w, err := direct.CreateWith(path, func(p []byte) { sum.Write(p) })
	if err != nil {
		return "", err
	}
	defer w.Abort()
	n, err := io.CopyBuffer(w, body, make([]byte, hashBuffer))
	w.Flush()
	if err == nil && n != r.Size() {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		return "", err
	}
	return hex.EncodeToString(sum.Sum(nil)), w.Finish()
}

// wholeFile reads a file by one request where that is possible.
func wholeFile(r Reader) io.ReadCloser {
	if s, ok := r.(interface{ stream() io.ReadCloser }); ok {
		return s.stream()
	}
	return direct.NewReader(r, 0, r.Size())
}

// reader opens a copy; mu is held.
func (c *Cached) reader(copied *localCopy) (Reader, error) {
	f, err := direct.Open(copied.path + dataSuffix)
	if err != nil {
		return nil, fmt.Errorf("storage: open copy of %s: %w", copied.Name, missing(err))
	}
	copied.readers++
	c.clock++
	copied.lastOpen = c.clock
	_ = vfs.Chtimes(copied.path+dataSuffix, time.Now()) // the order of use, for the next process
	return &copyReader{Reader: &localReader{f}, cache: c, copied: copied}, nil
}

type copyReader struct {
	Reader
	cache  *Cached
	copied *localCopy
	once   sync.Once
}

// StartAt implements direct.Starter.
func (r *copyReader) StartAt(q *direct.Queue, slot int, p []byte, off int64) {
	q.Start(slot, r.Reader, p, off)
}

func (r *copyReader) Close() error {
	r.once.Do(func() {
		r.cache.mu.Lock()
		defer r.cache.mu.Unlock()
		r.copied.readers--
		r.cache.free(r.copied)
	})
	return r.Reader.Close()
}

// Remove implements Store and drops the copy.
func (c *Cached) Remove(ctx context.Context, name string) error {
	if err := c.Store.Remove(ctx, name); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.drop(name)
	return nil
}
