package storage

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/s3"
	"gocloud.dev/blob"
	"gocloud.dev/gcerrors"

	"ndls/internal/mem"
)

// attemptKey is the metadata that says which attempt wrote an object.
const attemptKey = "ndls-attempt"

// Bucket is a Store in an object store. An attempt is an upload that the server
// publishes at its end, so attempts are never listed.
type Bucket struct {
	bucket    *blob.Bucket
	uri       string
	client    *s3.Client // nil unless the server speaks S3
	transport *http.Transport
}

// NewBucket returns the store in an open bucket; uri names it in messages.
func NewBucket(b *blob.Bucket, uri string) *Bucket {
	s := &Bucket{bucket: b, uri: uri}
	b.As(&s.client)
	return s
}

// URI is the bucket and the prefix, without parameters.
func (b *Bucket) URI() string { return b.uri }

// Close drops the connections to the server. Nothing may be open.
func (b *Bucket) Close() error {
	err := b.bucket.Close()
	if b.transport != nil {
		b.transport.CloseIdleConnections()
	}
	return err
}

// explain turns an error of the server into one of this package.
func (b *Bucket) explain(ctx context.Context, doing, name string, err error) error {
	at := fmt.Sprintf("storage: %s %s in %s", doing, name, b.uri)
	switch hint := wayOut(err); {
	case ctx.Err() != nil:
		return fmt.Errorf("%s: %w", at, ctx.Err())
	case gcerrors.Code(err) == gcerrors.NotFound && hint == "":
		return fmt.Errorf("%s: %w", at, ErrNotExist)
	default:
		return fmt.Errorf("%s: %w%s", at, err, hint)
	}
}

// Create implements Store.
func (b *Bucket) Create(ctx context.Context, name string) (Writer, error) {
	return b.create(ctx, name, false)
}

// CreateNew implements Store. The server must know conditional writes.
func (b *Bucket) CreateNew(ctx context.Context, name string) (Writer, error) {
	return b.create(ctx, name, true)
}

func (b *Bucket) create(ctx context.Context, name string, fresh bool) (Writer, error) {
	if err := errors.Join(ctx.Err(), checkNew(name)); err != nil {
		return nil, err
	}
	w := &bucketWriter{store: b, name: name, fresh: fresh, attempt: newAttempt()}
	w.ctx, w.cancel = context.WithCancel(ctx)
	opts := &blob.WriterOptions{
		ContentType: "application/octet-stream",
		IfNotExist:  fresh,
		Metadata:    map[string]string{attemptKey: w.attempt},
	}
	if b.client != nil {
		opts.BeforeWrite = boundUpload(b.client)
	}
	var body *io.PipeReader
	body, w.body = io.Pipe()
	w.sum, w.ended = newHasher(), make(chan struct{})
	go func() {
		defer close(w.ended)
		w.err = b.bucket.Upload(w.ctx, name, body, opts)
		_ = body.CloseWithError(w.err) // for writes that wait
	}()
	return w, nil
}

type bucketWriter struct {
	store         *Bucket
	name, attempt string
	fresh         bool // the file must not exist
	ctx           context.Context
	cancel        context.CancelFunc
	body          *io.PipeWriter
	ended         chan struct{} // closed when the upload ended with err
	err           error
	sum           *hasher
	size          int64
	done          bool
}

func (w *bucketWriter) Write(p []byte) (int, error) {
	if w.done {
		return 0, fmt.Errorf("storage: write %s: %w", w.name, os.ErrClosed)
	}
	if w.size+int64(len(p)) > maxUpload {
		return 0, fmt.Errorf("storage: write %s in %s: a file there has at most %s; cut the graph into more intervals",
			w.name, w.store.uri, mem.Bytes(maxUpload))
	}
	total := len(p)
	for len(p) > 0 { // some at a time, so that they are summed while others are sent
		n, err := w.body.Write(p[:min(len(p), hashBuffer)])
		w.size += int64(n)
		_, _ = w.sum.Write(p[:n])
		if p = p[n:]; err != nil {
			return total - len(p), w.store.explain(w.ctx, "write", w.name, err)
		}
	}
	return total, nil
}

// Sum implements Writer.
func (w *bucketWriter) Sum() string { return w.sum.finish() }

// Commit implements Writer.
func (w *bucketWriter) Commit(ctx context.Context) (Digest, error) {
	if w.done {
		return Digest{}, fmt.Errorf("storage: commit %s: %w", w.name, os.ErrClosed)
	}
	if err := errors.Join(ctx.Err(), w.ctx.Err()); err != nil {
		w.Abort()
		return Digest{}, err
	}
	w.done = true
	defer w.cancel()
	defer context.AfterFunc(ctx, w.cancel)()
	digest := Digest{Bytes: w.size, SHA256: w.sum.finish()}
	_ = w.body.Close()
	<-w.ended
	if w.err == nil {
		return digest, nil
	}
	// The server may have done it and the reply was lost, so that the request
	// was sent again and refused: what is there tells.
	attrs, found := w.store.bucket.Attributes(w.ctx, w.name)
	switch {
	case found == nil && attrs.Metadata[attemptKey] == w.attempt:
		return digest, nil
	case w.fresh && (found == nil || gcerrors.Code(w.err) == gcerrors.FailedPrecondition):
		return Digest{}, fmt.Errorf("storage: commit %s in %s: %w", w.name, w.store.uri, ErrExist)
	}
	return Digest{}, w.store.explain(w.ctx, "commit", w.name, w.err)
}

// Abort implements Writer.
func (w *bucketWriter) Abort() {
	if w.done {
		return
	}
	w.done = true
	w.sum.finish()
	w.cancel() // before the body ends, since some servers' drivers publish what they got
	_ = w.body.CloseWithError(context.Canceled)
	<-w.ended
}

// Open implements Store.
func (b *Bucket) Open(ctx context.Context, name string) (Reader, error) {
	attrs, err := b.attributes(ctx, "open", name)
	if err != nil {
		return nil, err
	}
	return &bucketReader{store: b, ctx: ctx, name: name, size: attrs.Size, modTime: attrs.ModTime, etag: attrs.ETag}, nil
}

func (b *Bucket) attributes(ctx context.Context, doing, name string) (*blob.Attributes, error) {
	if err := errors.Join(ctx.Err(), checkName(name)); err != nil {
		return nil, err
	}
	attrs, err := b.bucket.Attributes(ctx, name)
	if err != nil {
		return nil, b.explain(ctx, doing, name, err)
	}
	return attrs, nil
}

// bucketReader reads one version of an object.
type bucketReader struct {
	store   *Bucket
	ctx     context.Context
	name    string
	size    int64
	modTime time.Time
	etag    string
}

func (r *bucketReader) Size() int64 { return r.size }

// Version returns Info.Version of the opened version.
func (r *bucketReader) Version() string { return versionOf(r.etag, r.modTime) }

func (r *bucketReader) Close() error { return nil }

// ReadAt implements io.ReaderAt by one request, and more where bodies break off.
func (r *bucketReader) ReadAt(p []byte, off int64) (int, error) {
	if off < 0 {
		return 0, fmt.Errorf("storage: read %s at byte %d", r.name, off)
	}
	s := &bucketStream{r: r, off: off, end: min(off+int64(len(p)), r.size)}
	defer s.Close()
	n, err := io.ReadFull(s, p)
	if err == io.ErrUnexpectedEOF {
		err = io.EOF
	}
	return n, err
}

// stream reads the whole file by one request.
func (r *bucketReader) stream() io.ReadCloser { return &bucketStream{r: r, end: r.size} }

// request asks for a range of the version that was opened.
func (r *bucketReader) request(off, end int64) (io.ReadCloser, error) {
	body, err := r.store.bucket.NewRangeReader(r.ctx, r.name, off, end-off, &blob.ReaderOptions{
		BeforeRead: func(as func(any) bool) error {
			var get *s3.GetObjectInput
			if as(&get) && r.etag != "" {
				get.IfMatch = &r.etag
			}
			return nil
		},
	})
	replaced := gcerrors.Code(err) == gcerrors.FailedPrecondition
	if err == nil && (body.Size() != r.size || !body.ModTime().Equal(r.modTime)) {
		replaced = true
		_ = body.Close()
	}
	if replaced {
		return nil, fmt.Errorf("storage: read %s in %s: %w", r.name, r.store.uri, ErrReplaced)
	}
	if err != nil {
		return nil, r.store.explain(r.ctx, "read", r.name, err)
	}
	return body, nil
}

// bucketStream reads bytes [off, end) and asks again for what is missing when a
// body breaks off. Requests that fail were repeated below.
type bucketStream struct {
	r        *bucketReader
	off, end int64
	body     io.ReadCloser // nil before the first read and after a break
	failures int           // since the last byte
}

func (s *bucketStream) Read(p []byte) (int, error) {
	for s.off < s.end {
		if s.body == nil {
			var err error
			if s.body, err = s.r.request(s.off, s.end); err != nil {
				return 0, err
			}
		}
		n, err := s.body.Read(p[:min(int64(len(p)), s.end-s.off)])
		s.off += int64(n)
		if n > 0 {
			s.failures = 0
			return n, nil
		}
		if err != nil {
			if err := s.broke(err); err != nil {
				return 0, err
			}
		}
	}
	return 0, io.EOF
}

// broke drops a body that ended too soon, and waits.
func (s *bucketStream) broke(err error) error {
	_ = s.Close()
	s.failures++
	if s.failures == maxAttempts {
		return s.r.store.explain(s.r.ctx, "read", s.r.name, fmt.Errorf("the body broke off %d times at byte %d: %w", s.failures, s.off, err))
	}
	return pause(s.r.ctx, delay(s.failures-1))
}

func (s *bucketStream) Close() error {
	if s.body == nil {
		return nil
	}
	err := s.body.Close()
	s.body = nil
	return err
}

// Stat implements Store.
func (b *Bucket) Stat(ctx context.Context, name string) (Info, error) {
	attrs, err := b.attributes(ctx, "stat", name)
	if err != nil {
		return Info{}, err
	}
	return Info{Name: name, Size: attrs.Size, Version: versionOf(attrs.ETag, attrs.ModTime)}, nil
}

// versionOf changes when an object is replaced.
func versionOf(etag string, modified time.Time) string {
	if etag != "" {
		return etag
	}
	return modified.UTC().Format(time.RFC3339Nano)
}

// List implements Store.
func (b *Bucket) List(ctx context.Context, prefix string) ([]Info, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	var out []Info
	for it := b.bucket.List(&blob.ListOptions{Prefix: prefix}); ; {
		object, err := it.Next(ctx)
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, b.explain(ctx, "list", prefix+"*", err)
		}
		if checkNew(object.Key) == nil { // others put there
			out = append(out, Info{Name: object.Key, Size: object.Size})
		}
	}
	slices.SortFunc(out, func(a, b Info) int { return strings.Compare(a.Name, b.Name) })
	return out, nil
}

// Remove implements Store.
func (b *Bucket) Remove(ctx context.Context, name string) error {
	if err := errors.Join(ctx.Err(), checkName(name)); err != nil {
		return err
	}
	if err := b.bucket.Delete(ctx, name); err != nil {
		if err = b.explain(ctx, "remove", name, err); !errors.Is(err, ErrNotExist) {
			return err
		}
	}
	return nil
}
