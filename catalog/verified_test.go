package catalog

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"strings"
	"testing"

	"ndls/internal/seal"
	"ndls/internal/storage"
	"ndls/internal/storage/storagetest"
)

// Whatever is read, in whatever order, Finish finds every changed byte, and the file is
// read about once.
func TestVerifiedFindsEveryChange(t *testing.T) {
	ctx := context.Background()
	rng := rand.New(rand.NewPCG(1, 2))
	data := make([]byte, 3<<20)
	for i := range data {
		data[i] = byte(rng.Uint32())
	}
	store := storage.NewCounting(storagetest.NewMem())
	c := openCatalog(t, store)
	e := mustPut(t, c, KindEdges, "f", string(data), 0, -1)
	patterns := map[string]func(r io.ReaderAt, size int64){
		"nothing": func(io.ReaderAt, int64) {},
		"from start to end": func(r io.ReaderAt, size int64) {
			buf := make([]byte, 70_001)
			for at := int64(0); at < size; at += int64(len(buf)) {
				_, _ = r.ReadAt(buf, at)
			}
		},
		"footer first, then groups": func(r io.ReaderAt, size int64) {
			_, _ = r.ReadAt(make([]byte, 500), size-500)
			_, _ = r.ReadAt(make([]byte, 1<<20), 4)
			_, _ = r.ReadAt(make([]byte, 1<<20), 4+1<<20)
		},
		"the middle alone": func(r io.ReaderAt, size int64) { _, _ = r.ReadAt(make([]byte, 1000), size/2) },
		"twice the same": func(r io.ReaderAt, _ int64) {
			for range 2 {
				_, _ = r.ReadAt(make([]byte, 1<<20), 0)
			}
		},
		"twice a part": func(r io.ReaderAt, _ int64) {
			for at := range int64(3) {
				_, _ = r.ReadAt(make([]byte, 1<<20), at<<19)
			}
		},
	}
	for name, pattern := range patterns {
		for _, at := range []int{-1, 0, 3, 1000, len(data) / 2, len(data)/2 + 500, len(data) - 1} {
			if at >= 0 {
				if err := store.Store.(*storagetest.Mem).FlipByte("f", int64(at)); err != nil {
					t.Fatal(err)
				}
			}
			before := store.BytesRead()
			v, err := c.OpenVerified(ctx, e)
			if err != nil {
				t.Fatal(err)
			}
			pattern(v, v.Size())
			err = v.Finish()
			if (at < 0) != (err == nil) || at >= 0 && !errors.Is(err, seal.ErrCorrupt) {
				t.Errorf("%s, byte %d changed: %v", name, at, err)
			}
			if read := store.BytesRead() - before; !strings.HasPrefix(name, "twice") && read > e.Bytes+e.Bytes/50 {
				t.Errorf("%s: %d bytes read of %d", name, read, e.Bytes)
			}
			_ = v.Close()
			if at >= 0 {
				_ = store.Store.(*storagetest.Mem).FlipByte("f", int64(at))
			}
		}
	}
}
