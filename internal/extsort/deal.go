package extsort

import (
	"math/bits"
	"sync"
)

const (
	// dealBits bounds the buckets to which keys are dealt at a time, and blockBits the keys of a block.
	dealBits  = 9
	blockBits = 8
	// leastBlock is the fewest keys of a block.
	leastBlock = 8
)

// dealer deals keys to buckets by a digit: in place, in blocks of keys of one bucket (IPS²Ra; Axtmann and others, ACM TOPC 2022). A slot is
// the space of a block.
type dealer[T Item] struct {
	keys    []T
	shift   uint
	mask    uint64
	block   int // keys of a block, a power of two
	slots   int // that keys have
	past    []T // the slot after them, for which keys are too short
	stripes []stripe[T]
	buckets []bucket
}

// stripe is a part of the slots whose keys one thread gathers.
type stripe[T Item] struct {
	span
	full   int     // the slot after the last block
	blocks []int32 // of each bucket
	held   []T     // for each bucket the keys that are less than a block
	at     []int32 // where the next one goes
}

// bucket holds the keys of a digit, and the slots that begin among them.
type bucket struct {
	mu         sync.Mutex
	begin, end int // of its keys
	first      int // the first slot
	// The slots from first to next hold blocks of this bucket. Those from next to last hold blocks of any bucket, and the others are free.
	next, last int
}

// deal moves the keys of each digit to one place, in ascending order of digits, and returns where those of each digit end. It chooses the
// digit: the highest of the bits that vary. Each thread has an equal part of help.
func deal[T Item](keys, help []T, varying uint64, threads int) (ends []int) {
	each := len(help) / threads
	width := min(bits.Len(uint(2*len(keys)/each)), dealBits, bits.Len64(varying), max(bits.Len(uint(each/leastBlock))-1, 1))
	block := 1 << min(bits.Len(uint(each>>width))-1, blockBits)
	d := &dealer[T]{
		keys: keys, shift: uint(bits.Len64(varying) - width), mask: 1<<width - 1, block: block, slots: len(keys) / block,
		past: make([]T, block), stripes: make([]stripe[T], threads), buckets: make([]bucket, 1<<width),
	}
	for i, part := range cut(d.slots, threads) {
		d.stripes[i] = stripe[T]{
			span: part, held: help[i*each:][:block<<width], at: make([]int32, 1<<width), blocks: make([]int32, 1<<width),
		}
	}
	parallel(threads, threads, func(i int) { d.gather(&d.stripes[i]) })
	d.divide()
	parallel(threads, threads, func(i int) { d.exchange(i * len(d.buckets) / threads) })
	for i := range d.buckets {
		d.fill(i)
		ends = append(ends, d.buckets[i].end)
	}
	return ends
}

// digit returns the bucket of a key.
func (d *dealer[T]) digit(key *T) int { return int(Key(key) >> (d.shift & 63) & d.mask) }

// slot returns the keys of a slot.
func (d *dealer[T]) slot(i int) []T {
	if i == d.slots {
		return d.past
	}
	return d.keys[i*d.block:][:d.block]
}

// gather collects the keys of a stripe by bucket. Whole blocks go to the first slots of the stripe, whose keys are already collected.
func (d *dealer[T]) gather(s *stripe[T]) {
	keys := d.keys[s.lo*d.block : s.hi*d.block]
	if s == &d.stripes[len(d.stripes)-1] {
		keys = d.keys[s.lo*d.block:]
	}
	at, held, shift, mask, size := s.at, s.held, d.shift&63, d.mask, int32(d.block)
	for i := range at {
		at[i] = int32(i) * size
	}
	s.full = s.lo
	for i := range keys {
		k := keys[i]
		digit := Key(&keys[i]) >> shift & mask
		n := at[digit]
		held[n] = k
		n++
		if n&(size-1) == 0 {
			n -= size
			copy(d.keys[s.full*d.block:], held[n:][:size])
			s.full++
			s.blocks[digit]++
		}
		at[digit] = n
	}
}

// divide gives each bucket its keys and its slots, and moves the blocks there to the first of them.
func (d *dealer[T]) divide() {
	at, part := 0, 0
	occupied := func(slot int) bool {
		for ; slot >= d.stripes[part].hi; part++ {
		}
		for ; slot < d.stripes[part].lo; part-- {
		}
		return slot < d.stripes[part].full
	}
	for i := range d.buckets {
		b := &d.buckets[i]
		b.begin = at
		for k := range d.stripes {
			s := &d.stripes[k]
			at += (int(s.blocks[i])-i)*d.block + int(s.at[i])
		}
		b.end = at
		b.first = (b.begin + d.block - 1) / d.block
		b.next, b.last = b.first, min((b.end+d.block-1)/d.block, d.slots)
		for slot := b.first; slot < b.last; slot++ {
			if occupied(slot) {
				continue
			}
			for b.last--; b.last > slot && !occupied(b.last); b.last-- {
			}
			if b.last > slot {
				copy(d.slot(slot), d.slot(b.last))
			}
		}
	}
}

// exchange moves blocks to their buckets, until no bucket has one that is not its own. It begins with one of the buckets.
func (d *dealer[T]) exchange(from int) {
	block, other := make([]T, d.block), make([]T, d.block)
	for i := range d.buckets {
		for d.take((from+i)%len(d.buckets), block) {
			for d.put(block, other) {
				block, other = other, block
			}
		}
	}
}

// own passes over the blocks that are in their bucket already.
func (d *dealer[T]) own(i int) {
	b := &d.buckets[i]
	for b.next < b.last && d.digit(&d.slot(b.next)[0]) == i {
		b.next++
	}
}

// take removes a block from a bucket, unless all that are left are its own.
func (d *dealer[T]) take(i int, block []T) bool {
	b := &d.buckets[i]
	b.mu.Lock()
	d.own(i)
	taken := b.next < b.last
	if taken {
		b.last--
		copy(block, d.slot(b.last))
	}
	b.mu.Unlock()
	return taken
}

// put puts a block into its bucket. If it takes the place of another one, that is in other.
func (d *dealer[T]) put(block, other []T) (taken bool) {
	i := d.digit(&block[0])
	b := &d.buckets[i]
	b.mu.Lock()
	d.own(i)
	place := d.slot(b.next)
	if taken = b.next < b.last; taken {
		copy(other, place)
	}
	copy(place, block)
	b.next++
	b.mu.Unlock()
	return taken
}

// fill completes a bucket, after all before it: with the keys of its last block that are behind its end, and with those that the stripes
// hold.
func (d *dealer[T]) fill(i int) {
	b := &d.buckets[i]
	from, to := b.first*d.block, b.next*d.block
	before, after := d.keys[b.begin:max(min(from, b.end), b.begin)], d.keys[min(to, b.end):b.end]
	add := func(keys []T) {
		n := copy(before, keys)
		before = before[n:]
		after = after[copy(after, keys[n:]):]
	}
	switch {
	case from == to:
	case b.next > d.slots: // the last block is in past
		add(d.past[copy(d.keys[to-d.block:b.end], d.past):])
	case to > b.end:
		add(d.keys[b.end:to])
	}
	for k := range d.stripes {
		s := &d.stripes[k]
		add(s.held[i*d.block : s.at[i]])
	}
}
