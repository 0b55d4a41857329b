package columnar

import "ndls/internal/mem"

// Room holds the buffers of a reader. Large ones lie outside of the Go heap, on which they would stay
// after Close until they are collected.
type Room struct {
	Held  int64 // bytes in all buffers
	large map[*byte]*mem.Array[byte]
}

// MaxHeld is the most bytes that readers hold in buffers.
const MaxHeld = 512 << 20

// largeBuffer is the size of buffers in bytes from which on they lie outside of the heap.
const largeBuffer = 256 << 10

// Grow gives *b, nil or a buffer of the room, a length of n bytes. What it held is lost if it has to grow.
func (r *Room) Grow(b *[]byte, n int) error {
	if n <= cap(*b) {
		*b = (*b)[:n]
		return nil
	}
	r.drop(*b)
	*b = nil
	if n < largeBuffer {
		*b = make([]byte, n)
	} else {
		a, err := mem.Map[byte](int64(n), "a buffer of columns")
		if err != nil {
			return err
		}
		if r.large == nil {
			r.large = map[*byte]*mem.Array[byte]{}
		}
		*b = a.S
		r.large[&a.S[0]] = a
	}
	r.Held += int64(cap(*b))
	return nil
}

// drop frees a buffer.
func (r *Room) drop(b []byte) {
	if cap(b) == 0 {
		return
	}
	r.Held -= int64(cap(b))
	if first := &b[:1][0]; r.large[first] != nil {
		r.large[first].Free()
		delete(r.large, first)
	}
}

// Close frees the large buffers, which nobody may use from then on.
func (r *Room) Close() {
	for _, a := range r.large {
		a.Free()
	}
	r.large, r.Held = nil, 0
}
