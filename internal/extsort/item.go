package extsort

import (
	"math"
	"sync"
	"unsafe"
)

// Item is a sorted item: a key, or a key with a value beside it.
type Item interface{ uint64 | Record }

// Record is a key with a value. Records are in the order of their keys, and those of one key
// in the order of their values. No value is negative or NaN.
type Record struct {
	Key   uint64
	Value float32
	// Repeated is the number of further records with this key and this value that were added.
	Repeated uint32
}

// End is larger than every key.
const End = ^uint64(0)

// The functions below tell code for any item what it must know about the item. The compiler makes such
// code once for keys and once for records, and each time width is a constant there: code behind "if
// wide" exists for records only.

// width is the size of an item in bytes.
func width[T Item]() int64 {
	var item T
	return int64(unsafe.Sizeof(item))
}

// wide says that items are records.
func wide[T Item]() bool {
	var item T
	return unsafe.Sizeof(item) > 8
}

// Key is the key of an item.
func Key[T Item](item *T) uint64 { return *first(item) }

// Value is the value of a record, and 0 of a key.
func Value[T Item](item *T) float32 {
	if wide[T]() {
		return record(item).Value
	}
	return 0
}

// SetKey gives an item another key.
func SetKey[T Item](item *T, key uint64) { *first(item) = key }

// Set makes an item. A key alone has no space for the value.
func Set[T Item](item *T, key uint64, value float32) {
	if wide[T]() {
		*record(item) = Record{Key: key, Value: value}
		return
	}
	*first(item) = key
}

// Repeated returns the number of further records like this one that were added, and 0 for a key.
func Repeated[T Item](item *T) int64 {
	if wide[T]() {
		return int64(record(item).Repeated)
	}
	return 0
}

// first is the key of an item, its first word.
func first[T Item](item *T) *uint64 { return (*uint64)(unsafe.Pointer(item)) }

// record is an item that is known to be a record.
func record[T Item](item *T) *Record { return (*Record)(unsafe.Pointer(item)) }

// least is the smallest item with a key.
func least[T Item](key uint64) (item T) {
	SetKey(&item, key)
	return item
}

// less reports whether x comes before y.
func less[T Item](x, y *T) bool {
	return *first(x) < *first(y) || wide[T]() && record(x).less(record(y))
}

// less reports whether a record comes before another one that has no smaller key.
func (r *Record) less(o *Record) bool { return r.Key == o.Key && r.Value < o.Value }

// same reports whether y only repeats x.
func same[T Item](x, y *T) bool {
	return *first(x) == *first(y) && (!wide[T]() || record(x).same(record(y)))
}

// same reports whether a record repeats another one with its key. A number of repetitions that
// has no space stays with a record of its own.
func (r *Record) same(o *Record) bool {
	return r.Value == o.Value && uint64(r.Repeated)+uint64(o.Repeated) < math.MaxUint32
}

// join notes in x that y, which is the same, will be dropped.
func join[T Item](x, y *T) {
	if wide[T]() {
		record(x).Repeated += record(y).Repeated + 1
	}
}

// keyBatches and recordBatches are buffers for a batch of items.
var (
	keyBatches    = sync.Pool{New: func() any { b := make([]uint64, BatchKeys); return &b }}
	recordBatches = sync.Pool{New: func() any { b := make([]Record, BatchKeys); return &b }}
)

// batches are the buffers for items of this type.
func batches[T Item]() *sync.Pool {
	if wide[T]() {
		return &recordBatches
	}
	return &keyBatches
}
