package storage

import (
	"context"
	"sync/atomic"

	"ndls/internal/direct"
)

// Counting passes everything on to another Store and counts the bytes of file
// contents that go through it.
type Counting struct {
	Store
	read, written atomic.Int64
}

// NewCounting wraps s.
func NewCounting(s Store) *Counting { return &Counting{Store: s} }

// BytesRead is the number of bytes that readers got so far.
func (c *Counting) BytesRead() int64 { return c.read.Load() }

// BytesWritten is the number of bytes that writers took so far, aborted
// attempts included.
func (c *Counting) BytesWritten() int64 { return c.written.Load() }

// Create implements Store.
func (c *Counting) Create(ctx context.Context, name string) (Writer, error) {
	return c.count(c.Store.Create(ctx, name))
}

// CreateNew implements Store.
func (c *Counting) CreateNew(ctx context.Context, name string) (Writer, error) {
	return c.count(c.Store.CreateNew(ctx, name))
}

func (c *Counting) count(w Writer, err error) (Writer, error) {
	if err != nil {
		return nil, err
	}
	return &countingWriter{w, c}, nil
}

type countingWriter struct {
	Writer
	c *Counting
}

func (w *countingWriter) Write(p []byte) (int, error) {
	n, err := w.Writer.Write(p)
	w.c.written.Add(int64(n))
	return n, err
}

// Open implements Store.
func (c *Counting) Open(ctx context.Context, name string) (Reader, error) {
	return c.countReads(c.Store.Open(ctx, name))
}

// OpenDigest is Open for a file whose bytes the caller knows.
func (c *Counting) OpenDigest(ctx context.Context, name string, want Digest) (Reader, error) {
	return c.countReads(OpenDigest(ctx, c.Store, name, want))
}

func (c *Counting) countReads(r Reader, err error) (Reader, error) {
	if err != nil {
		return nil, err
	}
	return &countingReader{r, c}, nil
}

type countingReader struct {
	Reader
	c *Counting
}

func (r *countingReader) ReadAt(p []byte, off int64) (int, error) {
	n, err := r.Reader.ReadAt(p, off)
	r.c.read.Add(int64(n))
	return n, err
}

// StartAt implements direct.Starter.
func (r *countingReader) StartAt(q *direct.Queue, slot int, p []byte, off int64) {
	r.c.read.Add(max(min(int64(len(p)), r.Size()-off), 0))
	q.Start(slot, r.Reader, p, off)
}
