package storage

import (
	"context"
	"errors"
	"io"
)

var (
	// ErrNotExist is what a Store returns, wrapped with the file's name, for a
	// file that was never committed or was removed.
	ErrNotExist = errors.New("file does not exist")
	// ErrDisk marks a full or failing disk; the wrapped error has the reason.
	ErrDisk = errors.New("disk full or failing")
)

// Store is the one seam through which run directories are read and written.
// Names are slash-separated and relative to the store's root.
type Store interface {
	// Create starts one attempt at writing name. Nothing is visible under
	// name before Writer.Commit; what name held before stays until then.
	Create(ctx context.Context, name string) (Writer, error)
	// Open opens a committed file for reading at any offset.
	Open(ctx context.Context, name string) (Reader, error)
	// Stat describes a committed file, or fails with ErrNotExist.
	Stat(ctx context.Context, name string) (Info, error)
	// List returns every file whose name starts with prefix, sorted by name,
	// left-over attempts included.
	List(ctx context.Context, prefix string) ([]Info, error)
	// Remove deletes a file; one that does not exist is no error.
	Remove(ctx context.Context, name string) error
	// URI names the store in messages.
	URI() string
}

// Info describes a stored file.
type Info struct {
	Name string
	Size int64
	// Attempt is true for an unfinished or abandoned write.
	Attempt bool
}

// Digest is what Commit knows about the bytes it made visible.
type Digest struct {
	Bytes  int64
	SHA256 string // lower-case hex
}

// Writer is one attempt at a file. Exactly one of Commit and Abort ends it;
// Abort after Commit does nothing, so it can be deferred.
type Writer interface {
	io.Writer
	// Commit flushes, makes the bytes durable and publishes them under the
	// file's name in one atomic step.
	Commit(ctx context.Context) (Digest, error)
	// Abort removes the attempt.
	Abort()
}

// Reader reads a committed file. It is safe for concurrent use.
type Reader interface {
	io.ReaderAt
	io.Closer
	Size() int64
}
