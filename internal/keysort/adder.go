package keysort

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"math/bits"
	"slices"

	"github.com/zeebo/xxh3"

	"ndls/internal/mem"
)

// maxKey is the length of the longest key.
const maxKey = math.MaxUint16

// A record is a count of 4 bytes, a length of 2 bytes and the key; it starts at a multiple
// of 8 bytes, so that 32 bits tell where.
const (
	recordHead  = 6
	recordAlign = 8
)

// entry is a record to be sorted, by the eight bytes behind what all keys have in common.
type entry struct {
	prefix uint64
	at     uint32
	_      uint32
}

const (
	// usualRecord is the length of a record for which memory is shared out.
	usualRecord = 32
	// keyBytes is the memory of a key beside its record: an entry, and a slot of a table that is
	// filled to three quarters.
	keyBytes   = entryBytes + 8*4/3 + 1
	entryBytes = 16
	// leastBytes is the smallest memory of an adder: it holds a few of the longest keys.
	leastBytes = 1 << 20
)

// Adder adds the keys of one goroutine.
type Adder struct {
	s       *Sorter
	records *mem.Array[byte]
	entries *mem.Array[entry]
	slots   *mem.Array[uint64] // hash bits above 32, and 1 + the number of the entry
	longest int                // length of the longest key that was added
	used    int64              // bytes of records
	n       int                // keys
}

// newAdder takes so many bytes of the budget.
func (s *Sorter) newAdder(size int64) (a *Adder, err error) {
	a = &Adder{s: s}
	defer func() {
		if err != nil {
			a.free()
		}
	}()
	n := capacity(size)
	if a.entries, err = mem.Alloc[entry](s.budget, n, "keys to sort"); err != nil {
		return nil, err
	}
	if a.slots, err = mem.Alloc[uint64](s.budget, n*4/3+1, "keys to sort"); err != nil {
		return nil, err
	}
	a.records, err = mem.Alloc[byte](s.budget, min(size-n*keyBytes, math.MaxUint32*recordAlign), "keys to sort")
	return a, err
}

// capacity returns the number of keys that an adder with so many bytes can hold.
func capacity(size int64) int64 { return max(size/(usualRecord+keyBytes), 16) }

func (a *Adder) free() {
	a.records.Free()
	a.entries.Free()
	a.slots.Free()
}

// Add adds a key.
func (a *Adder) Add(key []byte) error { return a.add(key, 1) }

func (a *Adder) add(key []byte, times uint32) error {
	if len(key) > maxKey {
		return fmt.Errorf("a key of %d bytes is longer than %d", len(key), maxKey)
	}
	size := int64(recordHead+len(key)+recordAlign-1) &^ (recordAlign - 1)
	a.longest = max(a.longest, len(key))
	hash := xxh3.Hash(key)
	for {
		slot, found := a.find(hash, key)
		if found {
			count := a.records.S[int64(a.entries.S[uint32(*slot)-1].at)*recordAlign:]
			total := uint64(binary.LittleEndian.Uint32(count)) + uint64(times)
			binary.LittleEndian.PutUint32(count, uint32(min(total, math.MaxUint32)))
			return nil
		}
		if a.n < len(a.entries.S) && a.used+size <= int64(len(a.records.S)) {
			record := a.records.S[a.used:]
			binary.LittleEndian.PutUint32(record, times)
			binary.LittleEndian.PutUint16(record[4:], uint16(len(key)))
			copy(record[recordHead:], key)
			a.entries.S[a.n].at = uint32(a.used / recordAlign)
			a.n++
			a.used += size
			*slot = hash&^math.MaxUint32 | uint64(a.n)
			return nil
		}
		if err := a.spill(); err != nil {
			return err
		}
	}
}

// find is the slot of a key, or the free one where it belongs.
func (a *Adder) find(hash uint64, key []byte) (slot *uint64, found bool) {
	n := uint64(len(a.slots.S))
	at, _ := bits.Mul64(hash, n)
	for {
		slot = &a.slots.S[at]
		if *slot == 0 {
			return slot, false
		}
		if (*slot^hash)>>32 == 0 && bytes.Equal(a.key(a.entries.S[uint32(*slot)-1].at), key) {
			return slot, true
		}
		if at++; at == n {
			at = 0
		}
	}
}

// key returns the key of the record at a place.
func (a *Adder) key(at uint32) []byte {
	record := a.records.S[int64(at)*recordAlign:]
	return record[recordHead:][:binary.LittleEndian.Uint16(record[4:])]
}

// times returns the number of times that the key of the record came.
func (a *Adder) times(at uint32) uint32 {
	return binary.LittleEndian.Uint32(a.records.S[int64(at)*recordAlign:])
}

// sort brings the keys into order.
func (a *Adder) sort() {
	entries := a.entries.S[:a.n]
	if len(entries) == 0 {
		return
	}
	common := a.key(entries[0].at)
	for _, e := range entries[1:] {
		common = common[:shared(common, a.key(e.at))]
	}
	skip := len(common)
	for i := range entries {
		entries[i].prefix = prefix(a.key(entries[i].at)[skip:])
	}
	slices.SortFunc(entries, func(x, y entry) int {
		if x.prefix != y.prefix {
			if x.prefix < y.prefix {
				return -1
			}
			return 1
		}
		return bytes.Compare(a.key(x.at)[skip:], a.key(y.at)[skip:])
	})
}

// shared returns the length of the common beginning of two keys in bytes.
func shared(a, b []byte) int {
	n := min(len(a), len(b))
	for i := range n {
		if a[i] != b[i] {
			return i
		}
	}
	return n
}

// prefix is the first eight bytes of a key as a number, with zeros behind a shorter one.
func prefix(key []byte) uint64 {
	if len(key) >= 8 {
		return binary.BigEndian.Uint64(key)
	}
	var p [8]byte
	copy(p[:], key)
	return binary.BigEndian.Uint64(p[:])
}

// spill writes the keys to a run and forgets them.
func (a *Adder) spill() error {
	a.sort()
	w, err := a.s.newRun()
	if err != nil {
		return err
	}
	for _, e := range a.entries.S[:a.n] {
		if err := w.write(a.key(e.at), a.times(e.at)); err != nil {
			w.abort()
			return err
		}
	}
	if err := w.finish(); err != nil {
		return err
	}
	a.used, a.n = 0, 0
	clear(a.slots.S)
	return nil
}
