package catalog

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"hash"
	"io"

	"ndls/internal/seal"
	"ndls/internal/storage"
)

// Verified is a listed file that is checked while it is read. Whoever reads it does so
// from its start to its end, calls Finish, and commits nothing before Finish has
// returned without an error. It is not safe for concurrent use.
type Verified struct {
	entry Entry
	file  storage.Reader
	sum   hash.Hash
	done  int64  // bytes of the file that sum has
	skip  []byte // for bytes that the reader leaves out
}

const (
	// tailBytes is how near to its end a file may be read before what is in front of that
	// was read: formats with a footer are opened so.
	tailBytes = 1 << 20
	skipBytes = 256 << 10
)

// OpenVerified opens a listed file whose bytes are compared with its checksum while they
// are read. It takes no more memory than Open, and 256 KiB once bytes are left out.
func (c *Catalog) OpenVerified(ctx context.Context, e Entry) (*Verified, error) {
	r, err := c.Open(ctx, e)
	if err != nil {
		return nil, err
	}
	return &Verified{entry: e, file: r, sum: sha256.New()}, nil
}

// Size implements [storage.Reader].
func (v *Verified) Size() int64 { return v.file.Size() }

// Close implements [storage.Reader].
func (v *Verified) Close() error { return v.file.Close() }

// ReadAt implements [storage.Reader]. Bytes in front of what is asked for that were not
// read yet are read too, but for those in front of the last MiB of the file.
func (v *Verified) ReadAt(p []byte, off int64) (int, error) {
	if off > v.done && off < v.Size()-tailBytes {
		if err := v.advance(off); err != nil {
			return 0, err
		}
	}
	n, err := v.file.ReadAt(p, off)
	v.add(p[:n], off)
	return n, err
}

// Fetch is ReadAt for bytes that [Verified.Add] takes later. Both may be called at the same time.
func (v *Verified) Fetch(p []byte, off int64) (int, error) { return v.file.ReadAt(p, off) }

// Add takes bytes that were fetched, in the order of the file. Those in front of them are read if they were
// not yet.
func (v *Verified) Add(p []byte, off int64) error {
	if off > v.done {
		if err := v.advance(off); err != nil {
			return err
		}
	}
	v.add(p, off)
	return nil
}

// add sums bytes at off, as far as they come next.
func (v *Verified) add(p []byte, off int64) {
	if end := off + int64(len(p)); off <= v.done && end > v.done {
		v.sum.Write(p[v.done-off:])
		v.done = end
	}
}

// advance reads up to off.
func (v *Verified) advance(off int64) error {
	if v.skip == nil {
		v.skip = make([]byte, min(skipBytes, v.Size()))
	}
	for v.done < off {
		n, err := v.file.ReadAt(v.skip[:min(off-v.done, int64(len(v.skip)))], v.done)
		v.sum.Write(v.skip[:n])
		v.done += int64(n)
		if err != nil && !(errors.Is(err, io.EOF) && v.done >= off) {
			return err
		}
		if n == 0 && v.done < off {
			return io.ErrUnexpectedEOF
		}
	}
	return nil
}

// Finish reads what was left out, and fails with ErrCorrupt if the file is not the one
// that was committed.
func (v *Verified) Finish() error {
	if err := v.advance(v.Size()); err != nil {
		return err
	}
	if got := "sha256:" + hex.EncodeToString(v.sum.Sum(nil)); got != v.entry.Checksum {
		return seal.Corrupt(v.entry.Path, "its checksum is %s, the catalogue says %s", brief(got), brief(v.entry.Checksum))
	}
	return nil
}
