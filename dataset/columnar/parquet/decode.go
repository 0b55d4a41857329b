package parquet

import (
	"encoding/binary"
	"fmt"
)

// The encodings of values.
const (
	plain                                     = 0
	plainDictionary                           = 2
	runLengths                                = 3
	bitPacked                                 = 4 // of levels
	deltaBinary, deltaLengths, deltaByteArray = 5, 6, 7
	rleDictionary                             = 8
	byteStreamSplit                           = 9
)

var encodings = map[int]string{
	plain: "PLAIN", plainDictionary: "PLAIN_DICTIONARY", runLengths: "RLE", bitPacked: "BIT_PACKED", deltaBinary: "DELTA_BINARY_PACKED",
	deltaLengths: "DELTA_LENGTH_BYTE_ARRAY", deltaByteArray: "DELTA_BYTE_ARRAY", rleDictionary: "RLE_DICTIONARY",
	byteStreamSplit: "BYTE_STREAM_SPLIT",
}

func encodingName(e int) string {
	if name, ok := encodings[e]; ok {
		return name
	}
	return fmt.Sprint("encoding ", e)
}

// sizes lists the bytes of a value of each physical type.
var sizes = [...]int{int32s: 4, int64s: 8, int96s: 12, floats: 4, doubles: 8, fixedArrays: 0}

// dictionary holds the values of a dictionary page, as they are stored.
type dictionary struct {
	n    int
	size int // of a value, 0 where they differ
	data []byte
	ends []uint32 // of values of different sizes
}

// set takes the values of a page.
func (d *dictionary) set(data []byte, n, size int) error {
	*d = dictionary{n: n, size: size, data: data, ends: d.ends[:0]}
	if size > 0 {
		if n > len(data)/size {
			return errShort
		}
		return nil
	}
	if n > len(data)/4 {
		return errShort
	}
	for at, i := 0, 0; i < n; i++ {
		if len(data)-at < 4 {
			return errShort
		}
		length := int(binary.LittleEndian.Uint32(data[at:]))
		if at += 4; length < 0 || length > len(data)-at {
			return errLength
		}
		at += length
		d.ends = append(d.ends, uint32(at))
	}
	return nil
}

// value is the bytes of a value of any size.
func (d *dictionary) value(i uint32) []byte {
	if d.size > 0 {
		return d.data[int(i)*d.size : int(i+1)*d.size]
	}
	start := uint32(4)
	if i > 0 {
		start += d.ends[i-1]
	}
	return d.data[start:d.ends[i]:d.ends[i]]
}

// decoder reads the values of a page.
type decoder struct {
	physical int
	size     int // of a value; 0 where values differ in size
	encoding int
	data     []byte
	at       int // byte or value
	stride   int // values of a page of split bytes
	ids      hybrid
	deltas   deltas // numbers, or lengths
	prefixes deltas
	before   []byte // the value that came last
	dict     *dictionary
	scratch  [batch]uint32
	lengths  [batch]int64
	wide     []byte // a value of split bytes
}

// batch is the number of values that are decoded at a time.
const batch = 1024

// reset begins a page. dict is nil where no dictionary came before.
func (d *decoder) reset(encoding int, data []byte, dict *dictionary) (err error) {
	d.encoding, d.data, d.at, d.dict = encoding, data, 0, dict
	numbers := d.physical != byteArrays && d.physical != fixedArrays && d.physical != int96s
	switch {
	case encoding == plain:
		return nil
	case encoding == plainDictionary || encoding == rleDictionary:
		if d.encoding = rleDictionary; dict == nil {
			return fmt.Errorf("a page refers to a dictionary that is not there")
		}
		if len(data) == 0 { // nothing but nulls
			d.ids = hybrid{}
			return nil
		}
		if data[0] > 32 {
			return errIndex
		}
		d.ids = newHybrid(data[1:], int(data[0]))
		return nil
	case encoding == runLengths && d.physical == boolean:
		if len(data) >= 4 {
			data = data[4:]
		}
		d.ids = newHybrid(data, 1)
		return nil
	case encoding == byteStreamSplit && d.size > 0 && d.physical != boolean:
		if d.stride = len(data) / d.size; d.stride*d.size != len(data) {
			return errShort
		}
		return nil
	case len(data) == 0: // nothing but nulls
		d.deltas, d.prefixes, d.before = deltas{}, deltas{}, d.before[:0]
		return nil
	case encoding == deltaBinary && (d.physical == int32s || d.physical == int64s):
		d.deltas, err = newDeltas(data)
		return err
	case encoding == deltaLengths && d.physical == byteArrays:
		if d.deltas, err = newDeltas(data); err == nil {
			d.data, err = d.deltas.rest()
		}
		return err
	case encoding == deltaByteArray && !numbers:
		if d.prefixes, err = newDeltas(data); err != nil {
			return err
		}
		if data, err = d.prefixes.rest(); err == nil {
			d.deltas, err = newDeltas(data)
		}
		if err == nil {
			d.data, err = d.deltas.rest()
		}
		d.before = d.before[:0]
		return err
	}
	return fmt.Errorf("%w as %s", errEncoding, encodingName(encoding))
}

// numbers reads values of the types that fit 64 bits: integers, or the bits of floats.
func (d *decoder) numbers(to []int64) error {
	switch d.encoding {
	case plain:
		return d.plainNumbers(to)
	case byteStreamSplit:
		if len(to) > d.stride-d.at {
			return errShort
		}
		for i := range to {
			var v uint64
			for k := range d.size {
				v |= uint64(d.data[k*d.stride+d.at+i]) << (8 * k)
			}
			to[i] = int64(v)
		}
		d.at += len(to)
		d.extend(to)
		return nil
	case deltaBinary:
		err := d.deltas.next(to)
		d.extend(to)
		return err
	}
	for len(to) > 0 {
		ids := d.scratch[:min(batch, len(to))]
		if err := d.ids.next(ids); err != nil {
			return err
		}
		if d.encoding == runLengths {
			for i, id := range ids {
				to[i] = int64(id)
			}
		} else if err := d.look(to[:len(ids)], ids); err != nil {
			return err
		}
		to = to[len(ids):]
	}
	return nil
}

// extend keeps the sign of integers of 32 bits.
func (d *decoder) extend(to []int64) {
	if d.physical != int32s {
		return
	}
	for i, v := range to {
		to[i] = int64(int32(v))
	}
}

func (d *decoder) plainNumbers(to []int64) error {
	if d.physical == boolean {
		if d.at+len(to) > 8*len(d.data) {
			return errShort
		}
		for i := range to {
			to[i] = int64(d.data[(d.at+i)>>3] >> ((d.at + i) & 7) & 1)
		}
		d.at += len(to)
		return nil
	}
	data := d.data[d.at:]
	if len(to) > len(data)/d.size {
		return errShort
	}
	d.at += len(to) * d.size
	get(to, data, d.size, d.physical == int32s)
	return nil
}

// get reads little-endian numbers of 4 or 8 bytes.
func get(to []int64, data []byte, size int, signed bool) {
	switch {
	case size == 8:
		for i := range to {
			to[i] = int64(binary.LittleEndian.Uint64(data[8*i:]))
		}
	case signed:
		for i := range to {
			to[i] = int64(int32(binary.LittleEndian.Uint32(data[4*i:])))
		}
	default:
		for i := range to {
			to[i] = int64(binary.LittleEndian.Uint32(data[4*i:]))
		}
	}
}

// look finds numbers in the dictionary.
func (d *decoder) look(to []int64, ids []uint32) error {
	n, data := uint32(d.dict.n), d.dict.data
	for i, id := range ids {
		switch {
		case id >= n:
			return errIndex
		case d.size == 8:
			to[i] = int64(binary.LittleEndian.Uint64(data[8*int(id):]))
		case d.physical == int32s:
			to[i] = int64(int32(binary.LittleEndian.Uint32(data[4*int(id):])))
		default:
			to[i] = int64(binary.LittleEndian.Uint32(data[4*int(id):]))
		}
	}
	return nil
}

// bytes visits n values of other types. keeps reports whether the bytes stay until the chunk ends.
func (d *decoder) bytes(n int, visit func(b []byte, keeps bool) error) error {
	for n > 0 {
		some := min(n, batch)
		n -= some
		if err := d.someBytes(some, visit); err != nil {
			return err
		}
	}
	return nil
}

func (d *decoder) someBytes(n int, visit func(b []byte, keeps bool) error) error {
	switch d.encoding {
	case plain:
		for range n {
			size := d.size
			if size == 0 {
				if len(d.data)-d.at < 4 {
					return errShort
				}
				size = int(int32(binary.LittleEndian.Uint32(d.data[d.at:])))
				d.at += 4
			}
			if size < 0 || size > len(d.data)-d.at {
				return errLength
			}
			d.at += size
			if err := visit(d.data[d.at-size:d.at], false); err != nil {
				return err
			}
		}
		return nil
	case byteStreamSplit:
		if n > d.stride-d.at {
			return errShort
		}
		d.wide = append(d.wide[:0], make([]byte, d.size)...)
		for range n {
			for k := range d.size {
				d.wide[k] = d.data[k*d.stride+d.at]
			}
			d.at++
			if err := visit(d.wide, false); err != nil {
				return err
			}
		}
		return nil
	case rleDictionary:
		ids := d.scratch[:n]
		if err := d.ids.next(ids); err != nil {
			return err
		}
		for _, id := range ids {
			if id >= uint32(d.dict.n) {
				return errIndex
			}
			if err := visit(d.dict.value(id), true); err != nil {
				return err
			}
		}
		return nil
	}
	return d.deltaBytes(n, visit)
}

// deltaBytes reads values whose lengths are deltas, and the beginnings of which may be those of
// the value before.
func (d *decoder) deltaBytes(n int, visit func(b []byte, keeps bool) error) error {
	lengths := d.lengths[:n]
	if err := d.deltas.next(lengths); err != nil {
		return err
	}
	var prefixes [batch]int64
	if d.encoding == deltaByteArray {
		if err := d.prefixes.next(prefixes[:n]); err != nil {
			return err
		}
	}
	for i, length := range lengths {
		if length < 0 || length > int64(len(d.data)-d.at) {
			return errLength
		}
		value := d.data[d.at : d.at+int(length)]
		d.at += int(length)
		if d.encoding == deltaByteArray {
			if prefixes[i] < 0 || prefixes[i] > int64(len(d.before)) {
				return errLength
			}
			d.before = append(d.before[:prefixes[i]], value...)
			value = d.before
		}
		if d.size > 0 && len(value) != d.size {
			return errLength
		}
		if err := visit(value, false); err != nil {
			return err
		}
	}
	return nil
}
