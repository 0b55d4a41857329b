package direct

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"ndls/internal/vfs"
)

const (
	// Align is the alignment of offsets, lengths and buffers of direct I/O.
	Align = 4096
	// BufferSize is the size of one transfer.
	BufferSize = 1 << 20
	// Ahead is the number of buffers that a Reader reads ahead of its caller.
	Ahead = 2
)

var pool = sync.Pool{New: func() any { b := AlignedBytes(BufferSize); return &b }}

// AlignedBytes returns n heap bytes that start at a multiple of Align.
func AlignedBytes(n int) []byte {
	b := make([]byte, n+Align)
	skip := -int(uintptr(unsafe.Pointer(&b[0]))) & (Align - 1)
	return b[skip : skip+n : skip+n]
}

func aligned(p []byte, off int64) bool {
	return off%Align == 0 && len(p)%Align == 0 && len(p) > 0 && uintptr(unsafe.Pointer(&p[0]))%Align == 0
}

// handle is an open file whose transfers are direct until the file system refuses that: when it
// is opened, or with a transfer that is not aligned to what it asks for. From then on they are
// buffered, and leave the page cache behind them.
type handle struct {
	vfs.File
	buffered atomic.Bool
}

// openFile opens path with O_DIRECT, or without where that is refused.
func openFile(path string, flag int, perm fs.FileMode) (*handle, error) {
	h := &handle{}
	var err error
	h.File, err = vfs.OpenFile(path, flag|unix.O_DIRECT, perm)
	if errors.Is(err, syscall.EINVAL) || errors.Is(err, syscall.EOPNOTSUPP) {
		h.buffered.Store(true)
		h.File, err = vfs.OpenFile(path, flag&^os.O_EXCL, perm)
	}
	if err != nil {
		return nil, err
	}
	return h, nil
}

// again reports whether a transfer that failed is to be repeated, buffered from now on.
func (h *handle) again(err error) bool {
	if !errors.Is(err, syscall.EINVAL) && !errors.Is(err, syscall.EOPNOTSUPP) || h.File.Buffered() != nil {
		return false
	}
	h.buffered.Store(true)
	return true
}

// ReadAt implements vfs.File.
func (h *handle) ReadAt(p []byte, off int64) (int, error) {
	direct := !h.buffered.Load()
	n, err := h.File.ReadAt(p, off)
	if direct && err != nil && h.again(err) {
		n, err = h.File.ReadAt(p, off)
	}
	if h.buffered.Load() {
		h.Drop(off, int64(len(p)))
	}
	return n, err
}

// WriteAt implements vfs.File. Where it is buffered, it waits until the bytes are on the disk, as
// far as the file system does that.
func (h *handle) WriteAt(p []byte, off int64) (int, error) {
	direct := !h.buffered.Load()
	n, err := h.File.WriteAt(p, off)
	if direct && err != nil && h.again(err) {
		n, err = h.File.WriteAt(p, off)
	}
	if err == nil && h.buffered.Load() {
		if err = h.WriteOut(off, int64(len(p))); vfs.Unsupported(err) {
			err = nil
		}
		h.Drop(off, int64(len(p)))
	}
	return n, err
}

// File is an open file for reading. It is safe for concurrent use.
type File struct {
	f    *handle
	size int64
}

// Open opens a regular file for reading.
func Open(path string) (*File, error) {
	st, err := vfs.Stat(path)
	if err != nil {
		return nil, err
	}
	if !st.Mode().IsRegular() {
		return nil, fmt.Errorf("open %s: not a regular file", path)
	}
	f, err := openFile(path, os.O_RDONLY, 0)
	if err != nil {
		return nil, err
	}
	return &File{f: f, size: st.Size()}, nil
}

// Size is the file's size when it was opened.
func (f *File) Size() int64 { return f.size }

// Name is the path the file was opened with.
func (f *File) Name() string { return f.f.Name() }

// Close closes the file.
func (f *File) Close() error { return f.f.Close() }

// ReadAt implements io.ReaderAt. Transfers whose offset, length and buffer are
// multiples of Align go straight to p.
func (f *File) ReadAt(p []byte, off int64) (int, error) {
	if off < 0 {
		return 0, errors.New("direct: negative offset")
	}
	if off >= f.size {
		if len(p) == 0 {
			return 0, nil
		}
		return 0, io.EOF
	}
	want := min(int64(len(p)), f.size-off)
	var n int
	var err error
	switch {
	case f.f.buffered.Load():
		n, err = f.f.ReadAt(p[:want], off)
	case aligned(p, off):
		n, err = readFull(f.f, p, off, want)
	default:
		n, err = f.bounce(p[:want], off)
	}
	if err == nil && n < len(p) {
		err = io.EOF
	}
	return n, err
}

// readFull reads want ≤ len(p) bytes at off; p is aligned and may be longer.
func readFull(f *handle, p []byte, off, want int64) (int, error) {
	var n int64
	for n < want {
		m, err := f.ReadAt(p[n:], off+n)
		n += int64(m)
		if n >= want {
			break
		}
		if err == nil && m == 0 || err == io.EOF {
			return int(n), io.ErrUnexpectedEOF
		}
		if err != nil && err != io.EOF {
			return int(n), err
		}
		if n%Align != 0 {
			return int(n), io.ErrUnexpectedEOF
		}
	}
	return int(want), nil
}

// bounce copies through an aligned buffer.
func (f *File) bounce(p []byte, off int64) (int, error) {
	bp := pool.Get().(*[]byte)
	defer pool.Put(bp)
	n := 0
	for n < len(p) {
		at := off + int64(n)
		lo := at &^ (Align - 1)
		size := min(int64(BufferSize), (at+int64(len(p)-n)-lo+Align-1)&^(Align-1))
		got, err := readFull(f.f, (*bp)[:size], lo, min(size, f.size-lo))
		if int64(got) > at-lo {
			n += copy(p[n:], (*bp)[at-lo:got])
		}
		if err != nil {
			return n, err
		}
	}
	return n, nil
}

type filled struct {
	buf *[]byte
	n   int
	err error
}

// Reader reads a range of a ReaderAt front to back, ahead of its caller.
type Reader struct {
	ready chan filled
	stop  chan struct{}
	done  chan struct{}
	cur   filled
	pos   int
}

// NewReader reads bytes [off, end) of r. Close must be called; it does not close r.
func NewReader(r io.ReaderAt, off, end int64) *Reader {
	s := &Reader{ready: make(chan filled, Ahead-1), stop: make(chan struct{}), done: make(chan struct{})}
	go s.fill(r, off, end)
	return s
}

func (s *Reader) fill(r io.ReaderAt, off, end int64) {
	defer close(s.done)
	defer close(s.ready)
	for off < end {
		bp := pool.Get().(*[]byte)
		// Up to the next multiple of the buffer size, so that later transfers
		// are aligned wherever the range starts.
		size := min(BufferSize-off%BufferSize, end-off)
		n, err := r.ReadAt((*bp)[:size], off)
		if int64(n) == size {
			err = nil
		} else if err == nil || err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		select {
		case s.ready <- filled{bp, n, err}:
		case <-s.stop:
			pool.Put(bp)
			return
		}
		if err != nil {
			return
		}
		off += size
	}
}

// Read implements io.Reader.
func (s *Reader) Read(p []byte) (int, error) {
	for s.cur.buf == nil || s.pos == s.cur.n {
		if s.cur.err != nil {
			return 0, s.cur.err
		}
		if s.cur.buf != nil {
			pool.Put(s.cur.buf)
			s.cur.buf = nil
		}
		next, ok := <-s.ready
		if !ok {
			s.cur = filled{err: io.EOF}
			return 0, io.EOF
		}
		s.cur, s.pos = next, 0
	}
	n := copy(p, (*s.cur.buf)[s.pos:s.cur.n])
	s.pos += n
	return n, nil
}

// Close stops reading ahead.
func (s *Reader) Close() error {
	select {
	case <-s.stop:
	default:
		close(s.stop)
	}
	<-s.done
	for f := range s.ready {
		pool.Put(f.buf)
	}
	if s.cur.buf != nil {
		pool.Put(s.cur.buf)
	}
	s.cur = filled{err: os.ErrClosed}
	return nil
}

// Writer writes a new file front to back. Finish makes it durable.
type Writer struct {
	f      *handle
	padded bool // the last page reaches beyond the end of the file
	free   chan *buffer
	full   chan *buffer
	beside chan *buffer // nil where nobody else takes the bytes
	done   sync.WaitGroup
	cur    *buffer
	size   int64

	mu  sync.Mutex
	err error
}

// buffer is some bytes of a file on their way to the disk.
type buffer struct {
	bytes *[]byte
	n     int
	users atomic.Int32 // who are not done with it
}

// writerBuffers is the number of buffers of a Writer: one is filled while the other is used.
const writerBuffers = 2

// Create makes a new file, or truncates the one that is there.
func Create(path string) (*Writer, error) { return CreateWith(path, nil) }

// CreateWith is [Create] for a file whose bytes beside also gets, in order, on a goroutine of its own.
func CreateWith(path string, beside func(p []byte)) (*Writer, error) {
	f, err := openFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o666)
	if err != nil {
		return nil, err
	}
	w := &Writer{f: f, free: make(chan *buffer, writerBuffers), full: make(chan *buffer, writerBuffers)}
	for range writerBuffers - 1 {
		w.free <- &buffer{}
	}
	w.cur = &buffer{}
	w.done.Go(w.drain)
	if beside != nil {
		w.beside = make(chan *buffer, writerBuffers)
		w.done.Go(func() {
			for b := range w.beside {
				beside((*b.bytes)[:b.n])
				w.release(b)
			}
		})
	}
	return w, nil
}

// release gives a buffer back once all have used it.
func (w *Writer) release(b *buffer) {
	if b.users.Add(-1) == 0 {
		b.n = 0
		w.free <- b
	}
}

// hand gives the bytes of the present buffer to the disk, and to who takes them beside.
func (w *Writer) hand() {
	b := w.cur
	b.users.Store(1)
	if w.beside != nil {
		b.users.Store(2)
		w.beside <- b
	}
	w.full <- b
}

func (w *Writer) drain() {
	var off int64
	for b := range w.full {
		size := b.n
		if !w.f.buffered.Load() {
			// The padding is cut off by Finish.
			size = RoundUp(size)
			clear((*b.bytes)[b.n:size])
			w.padded = size > b.n
		}
		if w.failure() == nil {
			if _, err := w.f.WriteAt((*b.bytes)[:size], off); err != nil {
				w.fail(err)
			}
			off += int64(b.n)
		}
		w.release(b)
	}
}

func (w *Writer) failure() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.err
}

func (w *Writer) fail(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err == nil {
		w.err = err
	}
}

// Write implements io.Writer. An error of the disk may come with a later call.
func (w *Writer) Write(p []byte) (int, error) {
	if w.cur == nil {
		return 0, os.ErrClosed
	}
	total := len(p)
	for len(p) > 0 {
		if w.cur.bytes == nil {
			w.cur.bytes = pool.Get().(*[]byte)
		}
		m := copy((*w.cur.bytes)[w.cur.n:], p)
		w.cur.n += m
		w.size += int64(m)
		p = p[m:]
		if w.cur.n == BufferSize {
			w.hand()
			w.cur = <-w.free
			if err := w.failure(); err != nil {
				return total - len(p), err
			}
		}
	}
	return total, nil
}

// Size is the number of bytes written so far.
func (w *Writer) Size() int64 { return w.size }

// Flush hands over what is left, and waits until all of it is written, and was taken beside. Nothing may be
// written after it.
func (w *Writer) Flush() {
	if w.cur == nil {
		return
	}
	if w.cur.n > 0 {
		w.hand()
	} else {
		w.free <- w.cur
	}
	w.cur = nil
	close(w.full)
	if w.beside != nil {
		close(w.beside)
	}
	w.done.Wait()
	for range writerBuffers {
		if b := <-w.free; b.bytes != nil {
			pool.Put(b.bytes)
		}
	}
}

// Finish writes what is left, cuts the file to its size, makes it durable and
// closes it.
func (w *Writer) Finish() error { return w.finish(w.f.Sync) }

// FinishTemporary is Finish for a file that nobody needs after a crash: it does not wait until the
// file is durable.
func (w *Writer) FinishTemporary() error { return w.finish(func() error { return nil }) }

func (w *Writer) finish(sync func() error) error {
	w.Flush()
	err := w.failure()
	if err == nil && w.padded {
		err = w.f.Truncate(w.size)
	}
	if err == nil {
		err = sync()
	}
	return errors.Join(err, w.f.Close())
}

// Abort closes the file without finishing it. It does nothing after Finish.
func (w *Writer) Abort() {
	w.Flush()
	_ = w.f.Close()
}
