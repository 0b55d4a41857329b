package parquet

import (
	"encoding/binary"
	"errors"
)

var (
	errShort  = errors.New("a page has fewer values than it says")
	errLevels = errors.New("a page has fewer levels than values")
	errIndex  = errors.New("a value lies outside of the dictionary")
	errDelta  = errors.New("a page of deltas is damaged")
	errLength = errors.New("a value is longer than its page")
)

// unpack reads numbers of width bits that follow each other, from bit at on. There are bytes for
// all of them.
func unpack(to []uint32, data []byte, at, width int) {
	mask := uint64(1)<<width - 1
	i := 0
	for ; i < len(to) && at>>3+8 <= len(data); i, at = i+1, at+width {
		to[i] = uint32(binary.LittleEndian.Uint64(data[at>>3:]) >> (at & 7) & mask)
	}
	for ; i < len(to); i, at = i+1, at+width {
		to[i] = uint32(field64(data, at, width))
	}
}

// field64 reads a number of up to 64 bits at the end of data, or anywhere in it.
func field64(data []byte, at, width int) (v uint64) {
	if width == 0 {
		return 0
	}
	rest := data[at>>3:]
	shift := at & 7
	if len(rest) >= 8 {
		v = binary.LittleEndian.Uint64(rest) >> shift
	} else {
		for i, b := range rest {
			v |= uint64(b) << (8 * i)
		}
		v >>= shift
	}
	if shift+width > 64 && len(rest) > 8 {
		v |= uint64(rest[8]) << (64 - shift)
	}
	return v << (64 - width) >> (64 - width)
}

// hybrid reads numbers that are stored as runs of one of them, or packed.
type hybrid struct {
	data   []byte
	width  int
	left   int // of the run
	packed []byte
	at     int // bit of packed, which is nil in a run of one value
	value  uint32
}

func newHybrid(data []byte, width int) hybrid { return hybrid{data: data, width: width} }

// run makes sure that some numbers of a run are left.
func (h *hybrid) run() error {
	for h.left == 0 {
		head, n := binary.Uvarint(h.data)
		if n <= 0 || head>>1 > 1<<40 {
			return errShort
		}
		h.data = h.data[n:]
		if head&1 == 0 {
			stored := (h.width + 7) / 8
			if stored > len(h.data) {
				return errShort
			}
			h.value = 0
			for i, b := range h.data[:stored] {
				h.value |= uint32(b) << (8 * i)
			}
			if h.width < 32 && h.value>>h.width != 0 {
				return errShort
			}
			h.packed, h.data, h.left = nil, h.data[stored:], int(head>>1)
			continue
		}
		groups := int(head >> 1) // of eight
		if h.width == 0 {
			h.packed, h.value, h.left = nil, 0, 8*groups
			continue
		}
		size := min(groups*h.width, len(h.data))
		h.packed, h.at, h.data = h.data[:size], 0, h.data[size:]
		if h.left = size * 8 / h.width; h.left == 0 {
			return errShort
		}
	}
	return nil
}

// next reads numbers.
func (h *hybrid) next(to []uint32) error {
	for len(to) > 0 {
		if err := h.run(); err != nil {
			return err
		}
		n := min(h.left, len(to))
		if h.packed == nil {
			for i := range to[:n] {
				to[i] = h.value
			}
		} else {
			unpack(to[:n], h.packed, h.at, h.width)
			h.at += n * h.width
		}
		h.left -= n
		to = to[n:]
	}
	return nil
}

// all reports whether the next n numbers are a run of v, and passes over them if so.
func (h *hybrid) all(v uint32, n int) bool {
	if h.run() != nil || h.packed != nil || h.value != v || h.left < n {
		return false
	}
	h.left -= n
	return true
}

// deltas reads numbers that are stored as differences in blocks.
type deltas struct {
	data        []byte
	block, mini int // numbers in a block and in a part of it
	left        int // numbers
	started     bool
	last        uint64
	least       uint64 // difference in the block
	widths      []byte
	part        int // of the block, next
	inPart      int // numbers left
	width       int
	packed      []byte
	at          int
}

// newDeltas reads the head of such numbers.
func newDeltas(data []byte) (d deltas, err error) {
	var head [4]uint64
	for i := range head {
		v, n := binary.Uvarint(data)
		if n <= 0 {
			return d, errDelta
		}
		head[i], data = v, data[n:]
	}
	block, parts, total := head[0], head[1], head[2]
	if block == 0 || block%128 != 0 || block > 1<<20 || parts == 0 || block%parts != 0 || block/parts%32 != 0 || total > 1<<31 {
		return d, errDelta
	}
	d = deltas{data: data, block: int(block), mini: int(block / parts), left: int(total), last: head[3]>>1 ^ -(head[3] & 1)}
	d.part = int(parts)
	return d, nil
}

// nextPart reads the head of a part, and of a block before it.
func (d *deltas) nextPart() error {
	if d.part++; d.part >= d.block/d.mini {
		v, n := binary.Uvarint(d.data)
		if n <= 0 || d.block/d.mini > len(d.data)-n {
			return errDelta
		}
		d.least = v>>1 ^ -(v & 1)
		d.widths = d.data[n : n+d.block/d.mini]
		d.data, d.part = d.data[n+d.block/d.mini:], 0
	}
	d.width = int(d.widths[d.part])
	size := d.mini / 8 * d.width
	if d.width > 64 {
		return errDelta
	}
	if size > len(d.data) { // some writers end the last part early
		if needed := (min(d.left, d.mini)*d.width + 7) / 8; needed > len(d.data) {
			return errDelta
		}
		size = len(d.data)
	}
	d.packed, d.at, d.data, d.inPart = d.data[:size], 0, d.data[size:], d.mini
	return nil
}

// next reads numbers.
func (d *deltas) next(to []int64) error {
	if len(to) > d.left {
		return errShort
	}
	if len(to) > 0 && !d.started {
		to[0], to = int64(d.last), to[1:]
		d.started = true
		d.left--
	}
	for i := range to {
		if d.inPart == 0 {
			if err := d.nextPart(); err != nil {
				return err
			}
		}
		d.last += d.least + field64(d.packed, d.at, d.width)
		d.at += d.width
		d.inPart--
		d.left--
		to[i] = int64(d.last)
	}
	return nil
}

// rest passes over all numbers, and returns what follows them.
func (d deltas) rest() ([]byte, error) {
	for left := d.left - 1; left > 0; left -= d.mini {
		d.left = left
		if err := d.nextPart(); err != nil {
			return nil, err
		}
	}
	return d.data, nil
}
