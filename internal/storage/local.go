package storage

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"ndls/internal/direct"
	"ndls/internal/mem"
	"ndls/internal/vfs"
)

// attemptSuffix ends the name of every unfinished write of a Local store.
const attemptSuffix = ".tmp"

// Local is a Store in a folder of a local or mounted file system. An attempt at
// name is the file name.XXXXXXXXXXXXXXXX.tmp beside it.
type Local struct {
	dir string
	// temporary says that nobody needs the files after a crash.
	temporary bool

	mu      sync.Mutex
	durable map[string]bool // folders whose names were synced into the folders above
}

// NewLocal returns the store in dir, which is made if it is missing.
func NewLocal(dir string) (*Local, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("storage: resolving %s: %w", dir, err)
	}
	l := &Local{dir: abs, durable: map[string]bool{}}
	made, err := vfs.MkdirAll(abs, 0o777)
	if err == nil {
		err = l.syncMade(made)
	}
	if err != nil {
		return nil, fmt.Errorf("storage: making folder: %w", missing(err))
	}
	return l, nil
}

// NewTemporary is [NewLocal] for files that nobody needs after a crash: a commit does not wait
// until they are durable.
func NewTemporary(dir string) (*Local, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("storage: resolving %s: %w", dir, err)
	}
	if _, err := vfs.MkdirAll(abs, 0o777); err != nil {
		return nil, fmt.Errorf("storage: making folder: %w", missing(err))
	}
	return &Local{dir: abs, temporary: true}, nil
}

// makeFolder makes a folder of the store, and sees that a power failure does not take it
// away. A folder that is there already may have been made by another process that died
// before it synced the name; therefore each process syncs each name once.
func (l *Local) makeFolder(dir string) error {
	made, err := vfs.MkdirAll(dir, 0o777)
	if err != nil || l.temporary {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.syncMade(made); err != nil {
		return err
	}
	for ; dir != l.dir && !l.durable[dir]; dir = filepath.Dir(dir) {
		if err := l.syncMade([]string{dir}); err != nil {
			return err
		}
	}
	if !l.durable[l.dir] {
		// The folder above the store is the user's and may be closed to this process.
		if err := vfs.SyncDir(filepath.Dir(l.dir)); errors.Is(err, ErrDisk) {
			return err
		}
		l.durable[l.dir] = true
	}
	return nil
}

// syncMade makes the names of folders durable.
func (l *Local) syncMade(folders []string) error {
	for _, folder := range folders {
		if err := vfs.SyncDir(filepath.Dir(folder)); err != nil {
			return err
		}
		l.durable[folder] = true
	}
	return nil
}

// URI is the store's folder.
func (l *Local) URI() string { return l.dir }

// Path returns the place of name, whether it exists or not, on the local file system.
func (l *Local) Path(name string) string { return filepath.Join(l.dir, filepath.FromSlash(name)) }

// checkName refuses names that leave the store.
func checkName(name string) error {
	if !fs.ValidPath(name) || name == "." {
		return fmt.Errorf("storage: %q is not a name inside a store", name)
	}
	return nil
}

// checkNew refuses also the names that attempts have.
func checkNew(name string) error {
	if strings.HasSuffix(name, attemptSuffix) {
		return fmt.Errorf("storage: %q is no name for a file: %s marks attempts", name, attemptSuffix)
	}
	return checkName(name)
}

// CheckName refuses names that no file of a store may have.
func CheckName(name string) error { return checkNew(name) }

// committed is the path of a file that is not an attempt, if there is one.
func (l *Local) committed(ctx context.Context, name string) (string, fs.FileInfo, error) {
	if err := errors.Join(ctx.Err(), checkName(name)); err != nil {
		return "", nil, err
	}
	path := l.Path(name)
	st, err := vfs.Stat(path)
	if err == nil && (!st.Mode().IsRegular() || strings.HasSuffix(name, attemptSuffix)) {
		err = fs.ErrNotExist
	}
	return path, st, err
}

// missing marks the error of a file that is not there.
func missing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%w: %w", ErrNotExist, err)
	}
	return err
}

// Create implements Store.
func (l *Local) Create(ctx context.Context, name string) (Writer, error) {
	return l.create(ctx, name, vfs.Rename)
}

// CreateNew implements Store.
func (l *Local) CreateNew(ctx context.Context, name string) (Writer, error) {
	return l.create(ctx, name, publishNew)
}

// publishNew gives a finished attempt its name unless the name is taken.
func publishNew(tmp, path string) error {
	err := vfs.PublishNew(tmp, path)
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%w: %w", ErrExist, err)
	}
	return err
}

// newAttempt returns 16 random hex digits.
func newAttempt() string {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}

// create starts an attempt to which publish gives its name.
func (l *Local) create(ctx context.Context, name string, publish func(tmp, path string) error) (Writer, error) {
	if err := errors.Join(ctx.Err(), checkNew(name)); err != nil {
		return nil, err
	}
	path := l.Path(name)
	if err := l.makeFolder(filepath.Dir(path)); err != nil {
		return nil, fmt.Errorf("storage: create %s: %w", path, missing(err))
	}
	tmp := path + "." + newAttempt() + attemptSuffix
	sum := sha256.New()
	w, err := direct.CreateWith(tmp, func(p []byte) { sum.Write(p) })
	if err != nil {
		return nil, fmt.Errorf("storage: create %s: %w", path, missing(err))
	}
	return &localWriter{path: path, tmp: tmp, publish: publish, w: w, sum: sum, temporary: l.temporary}, nil
}

type localWriter struct {
	path, tmp string
	publish   func(tmp, path string) error
	w         *direct.Writer
	sum       hash.Hash // of what is flushed
	temporary bool
	done      bool
}

func (w *localWriter) Write(p []byte) (int, error) {
	if w.done {
		return 0, fmt.Errorf("storage: write %s: %w", w.path, os.ErrClosed)
	}
	n, err := w.w.Write(p)
	if err != nil {
		return n, w.explain("write", err)
	}
	return n, nil
}

// explain says where the disk gave up and after how many bytes.
func (w *localWriter) explain(doing string, err error) error {
	return fmt.Errorf("storage: %s %s, %s so far: %w; %s", doing, w.path, mem.Bytes(w.w.Size()), missing(err), vfs.Remedy(err, filepath.Dir(w.path)))
}

// Sum implements Writer.
func (w *localWriter) Sum() string {
	w.w.Flush()
	return hex.EncodeToString(w.sum.Sum(nil))
}

// Commit implements Writer.
func (w *localWriter) Commit(ctx context.Context) (Digest, error) {
	if w.done {
		return Digest{}, fmt.Errorf("storage: commit %s: %w", w.path, os.ErrClosed)
	}
	if err := ctx.Err(); err != nil {
		w.Abort()
		return Digest{}, err
	}
	w.done = true
	digest := Digest{Bytes: w.w.Size(), SHA256: w.Sum()}
	finish := w.w.Finish
	if w.temporary {
		finish = w.w.FinishTemporary
	}
	err := finish()
	if err == nil {
		err = w.publish(w.tmp, w.path)
	}
	if err != nil {
		_ = vfs.Remove(w.tmp)
		if errors.Is(err, ErrExist) {
			return Digest{}, fmt.Errorf("storage: commit %s: %w", w.path, err)
		}
		return Digest{}, w.explain("commit", err)
	}
	if w.temporary {
		return digest, nil
	}
	if err := vfs.SyncDir(filepath.Dir(w.path)); err != nil {
		return Digest{}, w.explain("commit", err)
	}
	return digest, nil
}

// Abort implements Writer.
func (w *localWriter) Abort() {
	if w.done {
		return
	}
	w.done = true
	w.w.Abort()
	_ = vfs.Remove(w.tmp)
}

// Open implements Store.
func (l *Local) Open(ctx context.Context, name string) (Reader, error) {
	path, _, err := l.committed(ctx, name)
	var f *direct.File
	if err == nil {
		f, err = direct.Open(path)
	}
	if err != nil {
		return nil, fmt.Errorf("storage: open %s in %s: %w", name, l.dir, missing(err))
	}
	return &localReader{f}, nil
}

type localReader struct{ *direct.File }

func (r *localReader) ReadAt(p []byte, off int64) (int, error) {
	n, err := r.File.ReadAt(p, off)
	if err != nil && err != io.EOF {
		err = fmt.Errorf("storage: read %s at byte %d: %w", r.Name(), off, missing(err))
	}
	return n, err
}

// StartAt implements direct.Starter.
func (r *localReader) StartAt(q *direct.Queue, slot int, p []byte, off int64) {
	r.StartFor(r, q, slot, p, off)
}

// Stat implements Store.
func (l *Local) Stat(ctx context.Context, name string) (Info, error) {
	_, st, err := l.committed(ctx, name)
	if err != nil {
		return Info{}, fmt.Errorf("storage: stat %s in %s: %w", name, l.dir, missing(err))
	}
	return Info{Name: name, Size: st.Size()}, nil
}

// List implements Store.
func (l *Local) List(ctx context.Context, prefix string) ([]Info, error) {
	var out []Info
	err := vfs.WalkDir(l.dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil {
			err = ctx.Err()
		}
		if errors.Is(err, fs.ErrNotExist) {
			return nil // removed since its folder was read
		}
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		rel, err := filepath.Rel(l.dir, path)
		if err != nil {
			return err
		}
		name := filepath.ToSlash(rel)
		if !strings.HasPrefix(name, prefix) {
			return nil
		}
		st, err := d.Info()
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		out = append(out, Info{Name: name, Size: st.Size(), Attempt: strings.HasSuffix(name, attemptSuffix)})
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("storage: list %s: %w", l.dir, missing(err))
	}
	slices.SortFunc(out, func(a, b Info) int { return strings.Compare(a.Name, b.Name) })
	return out, nil
}

// Remove implements Store. Folders that become empty stay.
func (l *Local) Remove(ctx context.Context, name string) error {
	if err := errors.Join(ctx.Err(), checkName(name)); err != nil {
		return err
	}
	path := l.Path(name)
	if err := vfs.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("storage: remove %s: %w", path, missing(err))
	}
	return nil
}
