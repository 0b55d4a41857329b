package storagetest

import (
	"context"
	"fmt"
	"sync/atomic"

	"ndls/internal/storage"
)

// Faulty passes everything on to another Store and fails one operation. It
// counts Create, Write, Commit, Open, ReadAt, Stat, List and Remove.
type Faulty struct {
	storage.Store
	failAt int64
	ops    atomic.Int64
}

// NewFaulty wraps s so that its operation failAt, counted from 1, fails with
// [storage.ErrDisk]; 0 only counts.
func NewFaulty(s storage.Store, failAt int64) *Faulty { return &Faulty{Store: s, failAt: failAt} }

// Ops is the number of operations so far.
func (f *Faulty) Ops() int64 { return f.ops.Load() }

// step counts one operation and reports whether it is the one that fails.
func (f *Faulty) step(what, name string) error {
	if n := f.ops.Add(1); n == f.failAt {
		return fmt.Errorf("storage: %s %s: injected fault at operation %d: %w", what, name, n, storage.ErrDisk)
	}
	return nil
}

// Create implements Store.
func (f *Faulty) Create(ctx context.Context, name string) (storage.Writer, error) {
	return f.create(ctx, name, f.Store.Create)
}

// CreateNew implements Store.
func (f *Faulty) CreateNew(ctx context.Context, name string) (storage.Writer, error) {
	return f.create(ctx, name, f.Store.CreateNew)
}

func (f *Faulty) create(ctx context.Context, name string, inner func(context.Context, string) (storage.Writer, error)) (storage.Writer,
	error,
) {
	if err := f.step("create", name); err != nil {
		return nil, err
	}
	w, err := inner(ctx, name)
	if err != nil {
		return nil, err
	}
	return &faultyWriter{Writer: w, f: f, name: name}, nil
}

type faultyWriter struct {
	storage.Writer
	f    *Faulty
	name string
}

func (w *faultyWriter) Write(p []byte) (int, error) {
	if err := w.f.step("write", w.name); err != nil {
		return 0, err
	}
	return w.Writer.Write(p)
}

func (w *faultyWriter) Commit(ctx context.Context) (storage.Digest, error) {
	if err := w.f.step("commit", w.name); err != nil {
		w.Abort()
		return storage.Digest{}, err
	}
	return w.Writer.Commit(ctx)
}

// Open implements Store.
func (f *Faulty) Open(ctx context.Context, name string) (storage.Reader, error) {
	if err := f.step("open", name); err != nil {
		return nil, err
	}
	r, err := f.Store.Open(ctx, name)
	if err != nil {
		return nil, err
	}
	return &faultyReader{Reader: r, f: f, name: name}, nil
}

type faultyReader struct {
	storage.Reader
	f    *Faulty
	name string
}

func (r *faultyReader) ReadAt(p []byte, off int64) (int, error) {
	if err := r.f.step("read", r.name); err != nil {
		return 0, err
	}
	return r.Reader.ReadAt(p, off)
}

// Stat implements Store.
func (f *Faulty) Stat(ctx context.Context, name string) (storage.Info, error) {
	if err := f.step("stat", name); err != nil {
		return storage.Info{}, err
	}
	return f.Store.Stat(ctx, name)
}

// List implements Store.
func (f *Faulty) List(ctx context.Context, prefix string) ([]storage.Info, error) {
	if err := f.step("list", prefix); err != nil {
		return nil, err
	}
	return f.Store.List(ctx, prefix)
}

// Remove implements Store.
func (f *Faulty) Remove(ctx context.Context, name string) error {
	if err := f.step("remove", name); err != nil {
		return err
	}
	return f.Store.Remove(ctx, name)
}
