package storagetest

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"sync"

	"ndls/internal/storage"
)

// Mem is a Store in memory, for tests. It is safe for concurrent use.
type Mem struct {
	mu       sync.Mutex
	files    map[string][]byte
	attempts map[string]*memWriter
	serial   int
}

// NewMem returns an empty store.
func NewMem() *Mem {
	return &Mem{files: map[string][]byte{}, attempts: map[string]*memWriter{}}
}

// URI implements Store.
func (m *Mem) URI() string { return "mem:" }

// CrashClone returns what a machine that lost power now would find: every
// committed file, and of each attempt a part from its start.
func (m *Mem) CrashClone() *Mem {
	m.mu.Lock()
	defer m.mu.Unlock()
	c := NewMem()
	c.serial = m.serial
	for name, data := range m.files {
		c.files[name] = slices.Clone(data)
	}
	for name, w := range m.attempts {
		kept := &memWriter{store: c, name: w.name, attempt: name, done: true}
		kept.buf.Write(w.buf.Bytes()[:w.buf.Len()/2])
		c.attempts[name] = kept
	}
	return c
}

// Corrupt lets change rewrite the bytes of a committed file, behind the back of
// whoever recorded its checksum.
func (m *Mem) Corrupt(name string, change func([]byte) []byte) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	data, ok := m.files[name]
	if !ok {
		return fmt.Errorf("storage: corrupt %s: %w", name, storage.ErrNotExist)
	}
	m.files[name] = change(slices.Clone(data))
	return nil
}

// FlipByte inverts one byte of a committed file.
func (m *Mem) FlipByte(name string, offset int64) error {
	return m.Corrupt(name, func(b []byte) []byte {
		b[offset] ^= 0xff
		return b
	})
}

// Create implements Store.
func (m *Mem) Create(ctx context.Context, name string) (storage.Writer, error) {
	return m.create(ctx, name, false)
}

// CreateNew implements Store.
func (m *Mem) CreateNew(ctx context.Context, name string) (storage.Writer, error) {
	return m.create(ctx, name, true)
}

func (m *Mem) create(ctx context.Context, name string, fresh bool) (storage.Writer, error) {
	if err := errors.Join(ctx.Err(), storage.CheckName(name)); err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.serial++
	w := &memWriter{store: m, name: name, fresh: fresh, attempt: fmt.Sprintf("%s.%016x%s", name, m.serial, ".tmp")}
	m.attempts[w.attempt] = w
	return w, nil
}

type memWriter struct {
	store         *Mem
	name, attempt string
	fresh         bool // the file must not exist
	buf           bytes.Buffer
	done          bool
}

func (w *memWriter) Write(p []byte) (int, error) {
	w.store.mu.Lock()
	defer w.store.mu.Unlock()
	if w.done {
		return 0, fmt.Errorf("storage: write %s: %w", w.name, os.ErrClosed)
	}
	return w.buf.Write(p)
}

func (w *memWriter) Sum() string {
	w.store.mu.Lock()
	defer w.store.mu.Unlock()
	sum := sha256.Sum256(w.buf.Bytes())
	return hex.EncodeToString(sum[:])
}

func (w *memWriter) Commit(ctx context.Context) (storage.Digest, error) {
	w.store.mu.Lock()
	defer w.store.mu.Unlock()
	if w.done {
		return storage.Digest{}, fmt.Errorf("storage: commit %s: %w", w.name, os.ErrClosed)
	}
	w.done = true
	delete(w.store.attempts, w.attempt)
	if err := ctx.Err(); err != nil {
		return storage.Digest{}, err
	}
	if _, there := w.store.files[w.name]; there && w.fresh {
		return storage.Digest{}, fmt.Errorf("storage: commit %s: %w", w.name, storage.ErrExist)
	}
	data := w.buf.Bytes()
	w.store.files[w.name] = data
	sum := sha256.Sum256(data)
	return storage.Digest{Bytes: int64(len(data)), SHA256: hex.EncodeToString(sum[:])}, nil
}

func (w *memWriter) Abort() {
	w.store.mu.Lock()
	defer w.store.mu.Unlock()
	if !w.done {
		w.done = true
		delete(w.store.attempts, w.attempt)
	}
}

// Open implements Store. The reader keeps seeing the bytes of now.
func (m *Mem) Open(ctx context.Context, name string) (storage.Reader, error) {
	if err := errors.Join(ctx.Err(), checkName(name)); err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	data, ok := m.files[name]
	if !ok {
		return nil, fmt.Errorf("storage: open %s: %w", name, storage.ErrNotExist)
	}
	return NewBytesReader(data), nil
}

// NewBytesReader returns a Reader of data.
func NewBytesReader(data []byte) storage.Reader { return bytesReader{bytes.NewReader(data)} }

type bytesReader struct{ *bytes.Reader }

func (r bytesReader) Close() error { return nil }

// Stat implements Store.
func (m *Mem) Stat(ctx context.Context, name string) (storage.Info, error) {
	if err := errors.Join(ctx.Err(), checkName(name)); err != nil {
		return storage.Info{}, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	data, ok := m.files[name]
	if !ok {
		return storage.Info{}, fmt.Errorf("storage: stat %s: %w", name, storage.ErrNotExist)
	}
	return storage.Info{Name: name, Size: int64(len(data))}, nil
}

// List implements Store.
func (m *Mem) List(ctx context.Context, prefix string) ([]storage.Info, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	var out []storage.Info
	for name, data := range m.files {
		out = append(out, storage.Info{Name: name, Size: int64(len(data))})
	}
	for name, w := range m.attempts {
		out = append(out, storage.Info{Name: name, Size: int64(w.buf.Len()), Attempt: true})
	}
	out = slices.DeleteFunc(out, func(i storage.Info) bool { return !strings.HasPrefix(i.Name, prefix) })
	slices.SortFunc(out, func(a, b storage.Info) int { return strings.Compare(a.Name, b.Name) })
	return out, nil
}

// Remove implements Store.
func (m *Mem) Remove(ctx context.Context, name string) error {
	if err := errors.Join(ctx.Err(), checkName(name)); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.files, name)
	if w, ok := m.attempts[name]; ok {
		w.done = true
		delete(m.attempts, name)
	}
	return nil
}

// checkName refuses names that leave the store.
func checkName(name string) error {
	if !fs.ValidPath(name) || name == "." {
		return fmt.Errorf("storage: %q is not a name inside a store", name)
	}
	return nil
}
