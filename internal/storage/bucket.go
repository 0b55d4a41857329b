package storage

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"ndls/internal/mem"
)

// Bucket is a Store in an object store. An attempt is an upload that the server
// publishes at its end, so attempts are never listed.
type Bucket struct {
	client *client
	prefix string // of the keys of its files: "" or with a slash at the end
	uri    string
}

// URI is the bucket and the prefix, without parameters.
func (b *Bucket) URI() string { return b.uri }

// Close drops the connections to the server. Nothing may be open.
func (b *Bucket) Close() error {
	b.client.http.CloseIdleConnections()
	return nil
}

// explain turns an error of the server into one of this package.
func (b *Bucket) explain(ctx context.Context, doing, name string, err error) error {
	at := fmt.Sprintf("storage: %s %s in %s", doing, name, b.uri)
	switch hint := wayOut(err); {
	case ctx.Err() != nil:
		return fmt.Errorf("%s: %w", at, ctx.Err())
	case notThere(err) && hint == "":
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
	w := &bucketWriter{store: b, name: name, fresh: fresh, attempt: newAttempt(), sum: newHasher()}
	w.ctx, w.cancel = context.WithCancel(ctx)
	return w, nil
}

// bucketWriter holds a part that is filled while the one before is sent. A file that fits into one is sent by Commit.
type bucketWriter struct {
	store         *Bucket
	name, attempt string
	fresh         bool // the file must not exist
	ctx           context.Context
	cancel        context.CancelFunc
	part, spare   []byte     // the one being filled, and the one that was sent
	sending       chan error // of the part on its way, nil if there is none
	upload        *upload    // nil before the first part was sent
	sum           *hasher
	size          int64
	err           error // of a part
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
	for len(p) > 0 {
		if err := w.ctx.Err(); err != nil {
			w.err = err
		}
		if len(w.part) == uploadPart && w.err == nil {
			w.send()
		}
		if w.err != nil {
			return total - len(p), w.store.explain(w.ctx, "write", w.name, w.err)
		}
		n := min(len(p), uploadPart-len(w.part))
		w.part = append(w.room(n), p[:n]...)
		_, _ = w.sum.Write(p[:n])
		w.size += int64(n)
		p = p[n:]
	}
	return total, nil
}

// room is the part being filled, with room for n bytes more. Its buffer doubles, and never exceeds a part.
func (w *bucketWriter) room(n int) []byte {
	need := len(w.part) + n
	if need <= cap(w.part) {
		return w.part
	}
	return append(make([]byte, 0, min(max(need, 2*cap(w.part)), uploadPart)), w.part...)
}

// send has the part that is full sent, once the one before is.
func (w *bucketWriter) send() {
	if w.wait(); w.err != nil {
		return
	}
	full := w.part
	w.part, w.spare = w.spare[:0], full
	sending := make(chan error, 1)
	w.sending = sending
	go func() {
		if w.upload == nil {
			var err error
			if w.upload, err = w.store.client.begin(w.ctx, w.store.prefix+w.name, w.attempt); err != nil {
				sending <- err
				return
			}
		}
		sending <- w.upload.send(w.ctx, full)
	}()
}

// wait waits for the part on its way.
func (w *bucketWriter) wait() {
	if w.sending != nil {
		w.err = errors.Join(w.err, <-w.sending)
		w.sending = nil
	}
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
	err := w.publish()
	if err == nil {
		return digest, nil
	}
	// The server may have done it and the reply was lost, so that the request
	// was sent again and refused: what is there tells.
	there, found := w.store.client.head(w.ctx, w.store.prefix+w.name)
	switch {
	case found == nil && there.attempt == w.attempt:
		return digest, nil
	case w.fresh && (found == nil || code(err) == "PreconditionFailed"):
		return Digest{}, fmt.Errorf("storage: commit %s in %s: %w", w.name, w.store.uri, ErrExist)
	}
	return Digest{}, w.store.explain(w.ctx, "commit", w.name, err)
}

// publish sends what is left and has the server publish the file. After an error no upload is left.
func (w *bucketWriter) publish() error {
	if w.wait(); w.err == nil && w.upload == nil {
		return w.store.client.put(w.ctx, w.store.prefix+w.name, w.attempt, w.part, w.fresh)
	}
	err := w.err
	if err == nil {
		err = w.upload.send(w.ctx, w.part)
	}
	if err == nil {
		err = w.upload.complete(w.ctx, w.fresh)
	}
	if err != nil {
		w.drop()
	}
	return err
}

// drop removes the upload, if there is one.
func (w *bucketWriter) drop() {
	if w.upload == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(w.ctx), abortTimeout)
	defer cancel()
	_ = w.upload.abort(ctx) // a rule of the bucket ends what is left
}

// Abort implements Writer.
func (w *bucketWriter) Abort() {
	if w.done {
		return
	}
	w.done = true
	w.sum.finish()
	w.cancel()
	w.wait()
	w.drop()
}

// Open implements Store.
func (b *Bucket) Open(ctx context.Context, name string) (Reader, error) {
	o, err := b.head(ctx, "open", name)
	if err != nil {
		return nil, err
	}
	return &bucketReader{store: b, ctx: ctx, name: name, size: o.size, etag: o.etag, version: o.version}, nil
}

func (b *Bucket) head(ctx context.Context, doing, name string) (object, error) {
	if err := errors.Join(ctx.Err(), checkName(name)); err != nil {
		return object{}, err
	}
	o, err := b.client.head(ctx, b.prefix+name)
	if err != nil {
		return object{}, b.explain(ctx, doing, name, err)
	}
	return o, nil
}

// bucketReader reads one version of an object.
type bucketReader struct {
	store *Bucket
	ctx   context.Context
	name  string
	size  int64
	etag  string // "" where the server gives none

	version string
}

func (r *bucketReader) Size() int64 { return r.size }

// Version implements Versioned.
func (r *bucketReader) Version() string { return r.version }

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
	body, size, version, err := r.store.client.get(r.ctx, r.store.prefix+r.name, r.etag, off, end)
	replaced := code(err) == "PreconditionFailed"
	if err == nil && (size != r.size || version != r.version) {
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
	o, err := b.head(ctx, "stat", name)
	if err != nil {
		return Info{}, err
	}
	return Info{Name: name, Size: o.size}, nil
}

// List implements Store.
func (b *Bucket) List(ctx context.Context, prefix string) ([]Info, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	var out []Info
	for token := ""; ; {
		page, err := b.client.list(ctx, b.prefix+prefix, token, listPage, retryable)
		if err != nil {
			return nil, b.explain(ctx, "list", prefix+"*", err)
		}
		for _, object := range page.Contents {
			if name := strings.TrimPrefix(object.Key, b.prefix); checkNew(name) == nil { // others put there
				out = append(out, Info{Name: name, Size: object.Size})
			}
		}
		if token = page.NextContinuationToken; !page.IsTruncated || token == "" {
			break
		}
	}
	slices.SortFunc(out, func(a, b Info) int { return strings.Compare(a.Name, b.Name) })
	return out, nil
}

// listPage is the most that a server gives of a list at a time.
const listPage = 1000

// Remove implements Store.
func (b *Bucket) Remove(ctx context.Context, name string) error {
	if err := errors.Join(ctx.Err(), checkName(name)); err != nil {
		return err
	}
	if err := b.client.remove(ctx, b.prefix+name); err != nil {
		if err = b.explain(ctx, "remove", name, err); !errors.Is(err, ErrNotExist) {
			return err
		}
	}
	return nil
}
