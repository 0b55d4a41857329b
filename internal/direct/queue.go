package direct

import (
	"io"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"

	"ndls/internal/invariants"
)

// QueueDepth is the number of reads that a Queue can have under way.
const QueueDepth = 16

// Queue has several reads under way at the same time. Reads of a [File] are handed
// to the kernel (Linux asynchronous I/O, io_submit(2)), so that whoever starts
// them goes on computing: a goroutine for each would need a processor to start
// its read, and keep it for a while. Other readers get such goroutines. It is
// not safe for concurrent use.
type Queue struct {
	kernel uintptr // its context, 0 where there is none
	slots  [QueueDepth]read
	events [QueueDepth]ioEvent
}

// read is a slot of a Queue.
type read struct {
	r    io.ReaderAt
	p    []byte
	off  int64
	n    int
	err  error
	busy bool // started and not waited for
	ours bool // read by a goroutine, that says so in ends
	done bool // the kernel has finished it
	ends chan struct{}
	cb   ioControl
}

// ioControl and ioEvent are struct iocb and struct io_event of linux/aio_abi.h on
// machines with little-endian words.
type ioControl struct {
	data   uint64
	_      [2]uint32 // key, flags of the read
	_      uint16    // operation: 0 is IOCB_CMD_PREAD
	_      int16     // priority
	file   uint32
	buf    uint64
	bytes  uint64
	offset int64
	_      uint64    // reserved
	_      [2]uint32 // flags, file of events
}

type ioEvent struct {
	data   uint64
	_      uint64 // the request's address
	result int64
	_      int64
}

// queues holds those that were closed, for reuse: the kernel takes milliseconds to end a
// context.
var queues struct {
	sync.Mutex
	free []*Queue
}

// NewQueue returns a queue, which is to be closed.
func NewQueue() *Queue {
	queues.Lock()
	defer queues.Unlock()
	if n := len(queues.free); n > 0 {
		q := queues.free[n-1]
		queues.free = queues.free[:n-1]
		return q
	}
	q := &Queue{}
	if _, _, errno := unix.Syscall(unix.SYS_IO_SETUP, QueueDepth, uintptr(unsafe.Pointer(&q.kernel)), 0); errno != 0 {
		q.kernel = 0 // it has no contexts left, or may not be asked
	}
	for i := range q.slots {
		q.slots[i].ends = make(chan struct{}, 1)
	}
	return q
}

// Close waits for what is under way.
func (q *Queue) Close() {
	for i := range q.slots {
		if q.slots[i].busy {
			_, _ = q.Wait(i)
		}
	}
	if q.kernel == 0 {
		return // the next one may get a context
	}
	queues.Lock()
	defer queues.Unlock()
	queues.free = append(queues.free, q)
}

// Starter is a reader that starts reads of its own kind.
type Starter interface {
	// StartAt starts the read for [Queue.Start].
	StartAt(q *Queue, slot int, p []byte, off int64)
}

// Start begins to read len(p) bytes at off of r; slot must be free, and p is the
// queue's until Wait.
func (q *Queue) Start(slot int, r io.ReaderAt, p []byte, off int64) {
	if s, ok := r.(Starter); ok {
		s.StartAt(q, slot, p, off)
		return
	}
	q.begin(slot, r, p, off)
	q.spawn(slot)
}

func (q *Queue) begin(slot int, r io.ReaderAt, p []byte, off int64) {
	s := &q.slots[slot]
	if invariants.Enabled {
		invariants.Check(!s.busy, "slot %d of a queue is still busy", slot)
	}
	*s = read{r: r, p: p, off: off, busy: true, ends: s.ends}
}

// spawn reads in a goroutine, for which Wait waits.
func (q *Queue) spawn(slot int) {
	s := &q.slots[slot]
	s.ours = true
	go func() {
		s.n, s.err = s.r.ReadAt(s.p, s.off)
		s.ends <- struct{}{}
	}()
}

// StartAt implements [Starter].
func (f *File) StartAt(q *Queue, slot int, p []byte, off int64) { f.StartFor(f, q, slot, p, off) }

// StartFor is StartAt on behalf of r, whose ReadAt reads f and says in its own words
// what fails.
func (f *File) StartFor(r io.ReaderAt, q *Queue, slot int, p []byte, off int64) {
	q.begin(slot, r, p, off)
	fd, ours := f.f.Descriptor()
	if !ours || f.f.buffered.Load() || !aligned(p, off) || q.kernel == 0 || !q.submit(slot, fd) {
		q.spawn(slot)
	}
}

// submit hands a read to the kernel, and reports whether that took it.
func (q *Queue) submit(slot int, fd uintptr) bool {
	s := &q.slots[slot]
	s.cb = ioControl{
		data: uint64(slot), file: uint32(fd), buf: uint64(uintptr(unsafe.Pointer(&s.p[0]))), bytes: uint64(len(s.p)), offset: s.off,
	}
	list := [1]*ioControl{&s.cb}
	n, _, errno := unix.Syscall(unix.SYS_IO_SUBMIT, q.kernel, 1, uintptr(unsafe.Pointer(&list)))
	return errno == 0 && n == 1
}

// Wait waits for a read that was started, and frees its slot. It returns the result of the reader's
// ReadAt.
func (q *Queue) Wait(slot int) (int, error) {
	s := &q.slots[slot]
	switch {
	case s.ours:
		<-s.ends
	default:
		for !s.done {
			q.reap()
		}
		if s.n < len(s.p) {
			// The end of the file, or an error: ReadAt knows what to say.
			s.n, s.err = s.r.ReadAt(s.p, s.off)
		}
	}
	n, err := s.n, s.err
	*s = read{ends: s.ends}
	return n, err
}

// reap waits until the kernel has finished something.
func (q *Queue) reap() {
	n, _, errno := unix.Syscall6(unix.SYS_IO_GETEVENTS, q.kernel, 1, QueueDepth, uintptr(unsafe.Pointer(&q.events)), 0, 0)
	if errno == unix.EINTR {
		return
	}
	if errno != 0 {
		q.abandon()
		return
	}
	for _, e := range q.events[:n] {
		s := &q.slots[e.data]
		s.done, s.n = true, int(max(e.result, 0))
	}
}

// abandon gives the kernel's context up. io_destroy(2) returns after the last of its
// reads has ended, so that nothing writes to their buffers any more. Wait then reads
// again, by ReadAt, and the queue goes on with goroutines.
func (q *Queue) abandon() {
	_, _, _ = unix.Syscall(unix.SYS_IO_DESTROY, q.kernel, 0, 0)
	q.kernel = 0
	for i := range q.slots {
		if s := &q.slots[i]; s.busy && !s.ours {
			s.done, s.n = true, 0
		}
	}
}
