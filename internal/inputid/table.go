package inputid

import (
	"encoding/binary"
	"fmt"
	"math/bits"
	"sync/atomic"

	"github.com/zeebo/xxh3"

	"ndls/internal/mem"
)

// slot is an entry of a table: 96 bits of the hash of a key, and the number of its node
// plus 1, or 0 for a free slot.
type slot struct {
	lo     uint64
	hi     uint32
	number uint32
}

const slotBytes = 16

// capacity is the number of slots for n keys.
func capacity(n int64) int64 { return n + n*3/17 + 1 }

// TableBytes returns the memory of a table of n keys.
func TableBytes(n int64) int64 { return slotBytes*capacity(n) + 4096 }

// Table finds the numbers of nodes by the keys of their ids. Find is safe for concurrent
// use once all keys are added.
type Table struct {
	t     Type
	slots *mem.Array[slot]
	hash  func(key []byte) (lo, hi uint64)
}

// NewTable is an empty table for n ids of a type.
func NewTable(b *mem.Budget, t Type, n int64) (*Table, error) {
	slots, err := mem.Alloc[slot](b, capacity(n), "a table of input ids")
	if err != nil {
		return nil, err
	}
	table := &Table{t: t, slots: slots, hash: hashNumber}
	if t == String {
		table.hash = hashText
	}
	return table, nil
}

// hashNumber mixes the 64 bits of a key. Both steps can be undone.
func hashNumber(key []byte) (lo, hi uint64) {
	x := binary.BigEndian.Uint64(key)
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31, 0
}

func hashText(key []byte) (lo, hi uint64) {
	h := xxh3.Hash128(key)
	return h.Lo, h.Hi
}

// Type is the type of the ids.
func (t *Table) Type() Type { return t.t }

// Free returns the memory.
func (t *Table) Free() {
	if t != nil {
		t.slots.Free()
	}
}

// find is the slot of a key, or the free one where it belongs.
func (t *Table) find(lo uint64, hi uint32) *slot {
	n := uint64(len(t.slots.S))
	at, _ := bits.Mul64(lo, n)
	for {
		s := &t.slots.S[at]
		if s.number == 0 || s.lo == lo && s.hi == hi {
			return s
		}
		if at++; at == n {
			at = 0
		}
	}
}

// Fetched is the most keys of a [Table.Fetch].
const Fetched = 64

// Fetch brings the slots of keys to the cache, all at the same time, for calls of Find that follow soon.
func (t *Table) Fetch(keys [][]byte) {
	var first [Fetched]uint64
	for i, key := range keys {
		if t.t == String || len(key) == 8 {
			lo, _ := t.hash(key)
			first[i], _ = bits.Mul64(lo, uint64(len(t.slots.S)))
		}
	}
	for _, at := range first[:len(keys)] {
		atomic.LoadUint64(&t.slots.S[at].lo) // which the compiler keeps
	}
}

// Add gives a key a number, which is below 2^32-1. A key is added once.
func (t *Table) Add(key []byte, number uint32) error {
	lo, hi := t.hash(key)
	s := t.find(lo, uint32(hi))
	if s.number != 0 {
		return fmt.Errorf("the ids number %d and %d have the same 96 bits of hash, the second one is %s: change one of the two ids",
			s.number-1, number, t.t.Quote(key))
	}
	*s = slot{lo, uint32(hi), number + 1}
	return nil
}

// Find is the number of a key; ok is false for one that is no member.
func (t *Table) Find(key []byte) (number uint32, ok bool) {
	if t.t != String && len(key) != 8 {
		return 0, false
	}
	lo, hi := t.hash(key)
	s := t.find(lo, uint32(hi))
	return s.number - 1, s.number != 0
}
