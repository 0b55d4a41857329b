package partition

import (
	"math/bits"
	"sync"
	"sync/atomic"

	"ndls/internal/mem"
)

const (
	chunkShift = 15 // ids per chunk: one page of bits
	chunkWords = 1 << chunkShift / 64
	slabChunks = 512 // chunks mapped at a time, one huge page
	maxSlabs   = 1 << (32 - chunkShift) / slabChunks
	// rankWords words share one stored rank; they fill one cache line.
	rankWords = 8
)

// idSet is a set of input ids that ranks its members in ascending order: a bitmap in chunks that exist where ids do. A set of all ids below
// n stores nothing.
type idSet struct {
	budget *mem.Budget
	n      int64
	all    bool // the members are 0..n-1

	chunks *mem.Array[uint32] // by id>>chunkShift: 1 + number of the chunk, 0 if there is none
	slabs  [maxSlabs]atomic.Pointer[mem.Array[uint64]]
	mu     sync.Mutex         // held while a chunk is added
	used   int64              // chunks in use
	ranks  *mem.Array[uint32] // members below each rankWords words, by chunk number
}

// allIDs returns the set 0..n-1.
func allIDs(n int64) *idSet { return &idSet{n: n, all: true} }

// newIDSet returns an empty set.
func newIDSet(b *mem.Budget) (*idSet, error) {
	chunks, err := mem.Alloc[uint32](b, 1<<(32-chunkShift), "id map")
	return &idSet{budget: b, chunks: chunks}, err
}

// add adds id. Several threads may call it. No add may follow rankAll.
func (s *idSet) add(id uint32) error {
	c := atomic.LoadUint32(&s.chunks.S[id>>chunkShift])
	if c == 0 {
		var err error
		if c, err = s.addChunk(id >> chunkShift); err != nil {
			return err
		}
	}
	word, bit := &s.words(c - 1)[id%(1<<chunkShift)/64], uint64(1)<<(id%64)
	if atomic.LoadUint64(word)&bit == 0 {
		atomic.OrUint64(word, bit)
	}
	return nil
}

// words returns the bits of a chunk.
func (s *idSet) words(chunk uint32) *[chunkWords]uint64 {
	return (*[chunkWords]uint64)(s.slabs[chunk/slabChunks].Load().S[chunk%slabChunks*chunkWords:])
}

// addChunk adds a chunk, unless another thread has added it.
func (s *idSet) addChunk(at uint32) (chunk uint32, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := s.chunks.S[at]; c != 0 {
		return c, nil
	}
	if s.used%slabChunks == 0 {
		slab, err := mem.Alloc[uint64](s.budget, slabChunks*chunkWords, "id map")
		if err != nil {
			return 0, err
		}
		s.slabs[s.used/slabChunks].Store(slab)
	}
	s.used++
	atomic.StoreUint32(&s.chunks.S[at], uint32(s.used))
	return uint32(s.used), nil
}

// rankAll ends adding and prepares rank.
func (s *idSet) rankAll() error {
	if s.all {
		return nil
	}
	ranks, err := mem.Alloc[uint32](s.budget, s.used*(chunkWords/rankWords), "id map")
	if err != nil {
		return err
	}
	s.ranks = ranks
	for _, c := range s.chunks.S {
		if c == 0 {
			continue
		}
		for i, w := range s.words(c - 1) {
			if i%rankWords == 0 {
				ranks.S[(int(c-1)*chunkWords+i)/rankWords] = uint32(s.n)
			}
			s.n += int64(bits.OnesCount64(w))
		}
	}
	return nil
}

// rank returns the number of members below id; ok is false if id is not a member.
func (s *idSet) rank(id uint32) (rank uint32, ok bool) {
	if s.all {
		return id, int64(id) < s.n
	}
	c := s.chunks.S[id>>chunkShift]
	if c == 0 {
		return 0, false
	}
	words := s.words(c - 1)
	word := id % (1 << chunkShift) / 64
	r := s.ranks.S[((c-1)*chunkWords+word)/rankWords]
	for _, w := range words[word&^(rankWords-1) : word] {
		r += uint32(bits.OnesCount64(w))
	}
	bit := uint64(1) << (id % 64)
	return r + uint32(bits.OnesCount64(words[word]&(bit-1))), words[word]&bit != 0
}

// each visits the members in ascending order.
func (s *idSet) each(visit func(rank, id uint32) error) error {
	if s.all {
		for id := range s.n {
			if err := visit(uint32(id), uint32(id)); err != nil {
				return err
			}
		}
		return nil
	}
	rank := uint32(0)
	for at, c := range s.chunks.S {
		if c == 0 {
			continue
		}
		for i, w := range s.words(c - 1) {
			for ; w != 0; w &= w - 1 {
				id := uint32(at)<<chunkShift | uint32(i*64+bits.TrailingZeros64(w))
				if err := visit(rank, id); err != nil {
					return err
				}
				rank++
			}
		}
	}
	return nil
}

func (s *idSet) free() {
	s.chunks.Free()
	s.ranks.Free()
	for i := range s.slabs {
		s.slabs[i].Swap(nil).Free()
	}
}
