package table

import (
	"cmp"
	"context"
	"errors"
	"io"
	"path"
	"slices"
	"strings"
	"sync"

	"ndls/dataset/source"
	"ndls/internal/storage"
)

// openBucket opens the files below a prefix of a bucket, or the one file of that name:
// s3://bucket/prefix, with the parameters that [storage.OpenBucket] has.
func openBucket(ctx context.Context, files *source.Files, uri string) (list []*tableFile, err error) {
	where, query, _ := strings.Cut(uri, "?")
	folder, last := path.Split(strings.TrimSuffix(strings.TrimPrefix(where, "s3://"), "/"))
	if folder == "" { // the whole bucket
		folder, last = last, ""
	}
	store, err := storage.OpenBucket(ctx, strings.TrimSuffix("s3://"+folder, "/")+question(query))
	if err != nil {
		return nil, err
	}
	names, err := listed(ctx, store, last)
	if err != nil {
		return nil, errors.Join(err, store.Close())
	}
	files.Adopt(store)
	for _, info := range names {
		full := store.URI() + "/" + info.Name
		f := &tableFile{name: full, format: formatOf(info.Name)}
		if f.format == unknownFormat {
			return nil, unknownFile(full)
		}
		r, err := store.Open(ctx, info.Name)
		if err != nil {
			return nil, err
		}
		remote := &remoteFile{Reader: r, name: full}
		files.AdoptFile(remote, r.(storage.Versioned).Version())
		if f.src, _, err = source.Of(remote, full); err != nil {
			return nil, err
		}
		list = append(list, f)
	}
	if len(list) == 0 {
		return nil, noFiles(where)
	}
	return list, nil
}

func question(query string) string {
	if query == "" {
		return ""
	}
	return "?" + query
}

// listed lists the file of a name, or those below a folder of that name, but for hidden ones.
func listed(ctx context.Context, store storage.Store, name string) (list []storage.Info, err error) {
	all, err := store.List(ctx, name)
	if err != nil {
		return nil, err
	}
	for _, info := range all {
		rest := strings.TrimPrefix(info.Name, name)
		if name != "" && rest != "" && !strings.HasPrefix(rest, "/") {
			continue
		}
		if info.Attempt || strings.HasSuffix(info.Name, "/") || slices.ContainsFunc(strings.Split(rest, "/"), hidden) {
			continue
		}
		list = append(list, info)
	}
	slices.SortFunc(list, func(a, b storage.Info) int { return cmp.Compare(a.Name, b.Name) })
	return list, nil
}

const (
	// remoteBlock is the number of bytes of a remote file that are requested at a time if little is
	// wanted, remoteBlocks the number of these that are kept.
	remoteBlock  = 1 << 20
	remoteBlocks = 4
)

// remoteFile reads a file of a store. Small reads that follow each other take one request.
type remoteFile struct {
	storage.Reader
	name   string
	mu     sync.Mutex
	blocks []remotePiece // the one that was used last comes first
}

type remotePiece struct {
	off  int64
	data []byte
}

// Name implements source.File.
func (f *remoteFile) Name() string { return f.name }

// ReadAt implements io.ReaderAt.
func (f *remoteFile) ReadAt(p []byte, off int64) (n int, err error) {
	if len(p) >= remoteBlock {
		return f.Reader.ReadAt(p, off)
	}
	for n < len(p) {
		if off+int64(n) >= f.Size() {
			return n, io.EOF
		}
		data, err := f.piece((off + int64(n)) / remoteBlock * remoteBlock)
		if err != nil {
			return n, err
		}
		n += copy(p[n:], data[(off+int64(n))%remoteBlock:])
	}
	return n, nil
}

// piece is the block that begins at a byte.
func (f *remoteFile) piece(off int64) ([]byte, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if i := slices.IndexFunc(f.blocks, func(b remotePiece) bool { return b.off == off }); i >= 0 {
		b := f.blocks[i]
		f.blocks = slices.Insert(slices.Delete(f.blocks, i, i+1), 0, b)
		return b.data, nil
	}
	data := make([]byte, min(remoteBlock, f.Size()-off))
	if n, err := f.Reader.ReadAt(data, off); n < len(data) {
		if err == nil || err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		return nil, err
	}
	f.blocks = slices.Insert(f.blocks[:min(len(f.blocks), remoteBlocks-1)], 0, remotePiece{off, data})
	return data, nil
}
