package keysort

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"math/bits"
	"slices"
	"sync/atomic"
	"unsafe"

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

// record returns where the record begins.
func (e entry) record() int64 { return int64(e.at) * recordAlign }

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
	slots   *mem.Array[uint64] // hash bits above 32, and 1 + the place of the record in units of recordAlign
	size    int                // slots in use: few for few keys, so that they stay in the cache
	longest int                // length of the longest key that was added
	used    int64              // bytes of records
	n       int                // keys
	coming  [together]coming   // keys that were given to Add and are not added yet
	given   int                // the number of them
}

// together is the number of keys that are added at a time. The memory that holds them is fetched for all at the same time.
const together = 64

// coming is a key that waits until others have come.
type coming struct {
	hash uint64
	key  []byte
}

// leastSlots is the number of slots in use at first.
const leastSlots = 1 << 12

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
	a.size = min(leastSlots, len(a.slots.S))
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
func (a *Adder) Add(key []byte) error {
	if len(key) > maxKey {
		return fmt.Errorf("a key of %d bytes is longer than %d", len(key), maxKey)
	}
	a.longest = max(a.longest, len(key))
	next := &a.coming[a.given]
	next.hash, next.key = xxh3.Hash(key), append(next.key[:0], key...)
	if a.given++; a.given < together {
		return nil
	}
	return a.addComing()
}

// addComing adds the keys that wait. The compiler keeps atomic loads.
func (a *Adder) addComing() error {
	keys := a.coming[:a.given]
	a.given = 0
	for i := range keys {
		atomic.LoadUint64(&a.slots.S[a.first(keys[i].hash)])
	}
	for i := range keys {
		if slot := a.slots.S[a.first(keys[i].hash)]; slot != 0 {
			atomic.LoadUint64((*uint64)(unsafe.Pointer(&a.records.S[recordOf(slot)])))
		}
	}
	for i := range keys {
		if err := a.add(keys[i].hash, keys[i].key); err != nil {
			return err
		}
	}
	return nil
}

func (a *Adder) add(hash uint64, key []byte) error {
	size := recordSize(len(key))
	for {
		slot := a.find(hash, func(at int64) bool { return bytes.Equal(a.key(at), key) })
		if *slot != 0 {
			count := a.records.S[recordOf(*slot):]
			times := uint64(binary.LittleEndian.Uint32(count)) + 1
			binary.LittleEndian.PutUint32(count, uint32(min(times, math.MaxUint32)))
			return nil
		}
		if a.n < len(a.entries.S) && a.used+size <= int64(len(a.records.S)) {
			record := a.records.S[a.used:]
			binary.LittleEndian.PutUint32(record, 1)
			binary.LittleEndian.PutUint16(record[4:], uint16(len(key)))
			copy(record[recordHead:], key)
			*slot = slotOf(hash, a.used)
			a.n++
			a.used += size
			if 4*a.n > 3*a.size && a.size < len(a.slots.S) {
				a.grow()
			}
			return nil
		}
		if err := a.spill(); err != nil {
			return err
		}
	}
}

// recordSize returns the number of bytes of a record with a key of so many bytes.
func recordSize(key int) int64 { return int64(recordHead+key+recordAlign-1) &^ (recordAlign - 1) }

// recordOf returns where the record of a slot begins.
func recordOf(slot uint64) int64 { return int64(uint32(slot)-1) * recordAlign }

// slotOf returns the slot of the record at byte at.
func slotOf(hash uint64, at int64) uint64 { return hash&^math.MaxUint32 | uint64(at/recordAlign+1) }

// grow doubles the slots in use.
func (a *Adder) grow() {
	clear(a.slots.S[:a.size])
	a.size = min(2*a.size, len(a.slots.S))
	a.each(func(at int64, key []byte) {
		hash := xxh3.Hash(key)
		*a.find(hash, func(int64) bool { return false }) = slotOf(hash, at)
	})
}

// each visits all records.
func (a *Adder) each(visit func(at int64, key []byte)) {
	for at := int64(0); at < a.used; {
		key := a.key(at)
		visit(at, key)
		at += recordSize(len(key))
	}
}

// first is the slot where the search for a hash begins.
func (a *Adder) first(hash uint64) int {
	at, _ := bits.Mul64(hash, uint64(a.size))
	return int(at)
}

// find is the slot of the record with a hash that is wanted, or the free one where it belongs.
func (a *Adder) find(hash uint64, wanted func(at int64) bool) *uint64 {
	for at := a.first(hash); ; {
		slot := &a.slots.S[at]
		if *slot == 0 || (*slot^hash)>>32 == 0 && wanted(recordOf(*slot)) {
			return slot
		}
		if at++; at == a.size {
			at = 0
		}
	}
}

// key returns the key of the record at a place.
func (a *Adder) key(at int64) []byte {
	record := a.records.S[at:]
	return record[recordHead:][:binary.LittleEndian.Uint16(record[4:])]
}

// times returns the number of times that the key of the record came.
func (a *Adder) times(at int64) uint32 {
	return binary.LittleEndian.Uint32(a.records.S[at:])
}

// sort brings the keys into order.
func (a *Adder) sort() {
	entries := a.entries.S[:a.n]
	if len(entries) == 0 {
		return
	}
	n := 0
	a.each(func(at int64, _ []byte) {
		entries[n].at = uint32(at / recordAlign)
		n++
	})
	common := a.key(entries[0].record())
	for _, e := range entries[1:] {
		common = common[:shared(common, a.key(e.record()))]
	}
	skip := len(common)
	for i := range entries {
		entries[i].prefix = prefix(a.key(entries[i].record())[skip:])
	}
	slices.SortFunc(entries, func(x, y entry) int {
		if x.prefix != y.prefix {
			if x.prefix < y.prefix {
				return -1
			}
			return 1
		}
		return bytes.Compare(a.key(x.record())[skip:], a.key(y.record())[skip:])
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
		if err := w.write(a.key(e.record()), a.times(e.record())); err != nil {
			w.abort()
			return err
		}
	}
	if err := w.finish(); err != nil {
		return err
	}
	a.used, a.n = 0, 0
	clear(a.slots.S[:a.size])
	return nil
}
