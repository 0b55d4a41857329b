package storage

import (
	"context"
	"errors"
	"io"

	"ndls/internal/vfs"
)

var (
	// ErrNotExist reports, wrapped with the file's name, that a file of a Store was never committed
	// or was removed.
	ErrNotExist = errors.New("file does not exist")
	// ErrExist reports, wrapped with the file's name, that Commit of an attempt of CreateNew met an
	// existing file.
	ErrExist = errors.New("file exists")
	// ErrReplaced reports a file that is another one by now than when it was opened.
	ErrReplaced = errors.New("it was replaced since it was opened")
	// ErrDigest marks a stored file whose bytes are not those that its reader
	// knows were committed.
	ErrDigest = errors.New("bytes are not those that were committed")
	// ErrDisk marks a full or failing disk or store; the wrapped error has the reason.
	ErrDisk = vfs.ErrDisk
	// ErrNoSpace marks those of ErrDisk that say that the disk is full or a quota is used
	// up: trying again helps only after someone has made room.
	ErrNoSpace = vfs.ErrNoSpace
)

// Store is the one seam through which run directories are read and written.
// Names are slash-separated and relative to the store's root.
type Store interface {
	// Create starts one attempt at writing name. Nothing is visible under
	// name before Writer.Commit; what name held before stays until then. The
	// attempt of a remote store ends with ctx.
	Create(ctx context.Context, name string) (Writer, error)
	// CreateNew is Create for a file that must not exist: Commit fails with
	// ErrExist if it does by then. Of several attempts at a name at most one
	// commits. After another error of Commit the file may be there or not.
	CreateNew(ctx context.Context, name string) (Writer, error)
	// Open opens a committed file for reading at any offset. Once the file is
	// replaced, its reader gives the old bytes or fails with ErrReplaced. Reads of a remote
	// store end with ctx.
	Open(ctx context.Context, name string) (Reader, error)
	// Stat describes a committed file, or fails with ErrNotExist.
	Stat(ctx context.Context, name string) (Info, error)
	// List returns every file whose name starts with prefix, sorted by name,
	// left-over attempts included where the store can see them.
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

// Digest holds what Commit knows about the bytes it made visible.
type Digest struct {
	Bytes  int64  `json:"bytes"`
	SHA256 string `json:"sha256"` // lower-case hex
}

// Writer is one attempt at a file. Exactly one of Commit and Abort ends it;
// Abort after Commit does nothing, so it can be deferred.
type Writer interface {
	io.Writer
	// Sum is the SHA-256, in lower-case hex, of all that was written. Nothing may be
	// written after it; Commit or Abort follow.
	Sum() string
	// Commit flushes, makes the bytes durable and publishes them under the
	// file's name in one atomic step.
	Commit(ctx context.Context) (Digest, error)
	// Abort removes the attempt.
	Abort()
}

// OpenDigest opens a file of which the caller knows what was committed. A store
// that keeps copies then gives the right one or fails with ErrDigest; of other
// stores the bytes are not checked.
func OpenDigest(ctx context.Context, s Store, name string, want Digest) (Reader, error) {
	if keeper, ok := s.(interface {
		OpenDigest(ctx context.Context, name string, want Digest) (Reader, error)
	}); ok {
		return keeper.OpenDigest(ctx, name, want)
	}
	return s.Open(ctx, name)
}

// Put commits text under a name. create is the Create or the CreateNew of a store.
func Put(ctx context.Context, create func(ctx context.Context, name string) (Writer, error), name string, text []byte) error {
	w, err := create(ctx, name)
	if err != nil {
		return err
	}
	defer w.Abort()
	if _, err := w.Write(text); err != nil {
		return err
	}
	_, err = w.Commit(ctx)
	return err
}

// Get reads a file from its front: all of it, or the first `most` bytes.
func Get(ctx context.Context, s Store, name string, most int64) ([]byte, error) {
	r, err := s.Open(ctx, name)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	return io.ReadAll(io.NewSectionReader(r, 0, min(r.Size(), most)))
}

// Reader reads a committed file. It is safe for concurrent use.
type Reader interface {
	io.ReaderAt
	io.Closer
	Size() int64
}

// Versioned is a Reader that knows the version of the file that it reads.
type Versioned interface {
	Reader
	// Version differs between a file and one that replaces it by other bytes.
	Version() string
}
