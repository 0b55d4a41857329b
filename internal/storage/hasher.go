package storage

import (
	"crypto/sha256"
	"encoding/hex"
	"hash"
	"sync"
)

// hasher computes a SHA-256 beside the caller, on copies of what it is given.
type hasher struct {
	h    hash.Hash
	full chan []byte
	free chan []byte
	cur  []byte
	done chan struct{}
}

const hashBuffer = 256 << 10

// hashBuffers are those that no file needs now: there are many small files.
var hashBuffers = sync.Pool{New: func() any { b := make([]byte, 0, hashBuffer); return &b }}

func newHashBuffer() []byte { return (*hashBuffers.Get().(*[]byte))[:0] }

func newHasher() *hasher {
	s := &hasher{
		h: sha256.New(), full: make(chan []byte, 1), free: make(chan []byte, 2), done: make(chan struct{}),
		cur: newHashBuffer(),
	}
	s.free <- newHashBuffer()
	go func() {
		defer close(s.done)
		for b := range s.full {
			s.h.Write(b)
			s.free <- b[:0]
		}
	}()
	return s
}

// Write implements io.Writer.
func (s *hasher) Write(p []byte) (int, error) {
	total := len(p)
	for len(p) > 0 {
		n := min(len(p), hashBuffer-len(s.cur))
		s.cur = append(s.cur, p[:n]...)
		p = p[n:]
		if len(s.cur) == hashBuffer {
			s.full <- s.cur
			s.cur = <-s.free
		}
	}
	return total, nil
}

// finish stops the goroutine and returns the sum in hex.
func (s *hasher) finish() string {
	if s.cur != nil {
		s.full <- s.cur
		close(s.full)
		s.cur = nil
		<-s.done
		for range cap(s.free) {
			b := <-s.free
			hashBuffers.Put(&b)
		}
	}
	<-s.done
	return hex.EncodeToString(s.h.Sum(nil))
}
