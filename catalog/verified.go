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

// Verified checks a listed file while it is read. The caller reads it from start to end, calls Finish, and commits nothing before Finish
// returns without an error. It is not safe for concurrent use.
type Verified struct {
	entry Entry
	file  storage.Reader
	sum   hash.Hash
	done  int64  // bytes of the file in sum
	skip  []byte // for bytes that the reader skips
}

const (
	// tailBytes is the size of the end of a file that may be read before the bytes in front of it: formats with a footer are opened so.
	tailBytes = 1 << 20
	skipBytes = 256 << 10
)

// OpenVerified opens a listed file that is compared with its checksum while it is read. It uses no more memory than Open, and 256 KiB once
// bytes are skipped.
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

// ReadAt implements [storage.Reader]. It first reads the unread bytes in front of off, unless off lies in the last MiB of the file.
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

// Fetch is ReadAt for bytes that the caller later passes to [Verified.Add]. Both may be called at the same time.
func (v *Verified) Fetch(p []byte, off int64) (int, error) { return v.file.ReadAt(p, off) }

// Add adds fetched bytes to the checksum, in the order of the file. It first reads the unread bytes in front of them.
func (v *Verified) Add(p []byte, off int64) error {
	if off > v.done {
		if err := v.advance(off); err != nil {
			return err
		}
	}
	v.add(p, off)
	return nil
}

// add adds the bytes at off to the sum, as far as they continue it.
func (v *Verified) add(p []byte, off int64) {
	if end := off + int64(len(p)); off <= v.done && end > v.done {
		v.sum.Write(p[v.done-off:])
		v.done = end
	}
}

// advance reads up to off.
func (v *Verified) advance(off int64) error {
	if v.skip == nil && v.done < off {
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

// Finish reads the skipped bytes, and returns ErrCorrupt if the file is not the committed one.
func (v *Verified) Finish() error {
	if err := v.advance(v.Size()); err != nil {
		return err
	}
	if got := "sha256:" + hex.EncodeToString(v.sum.Sum(nil)); got != v.entry.Checksum {
		return seal.Corrupt(v.entry.Path, "its checksum is %s, the catalogue says %s", brief(got), brief(v.entry.Checksum))
	}
	return nil
}
