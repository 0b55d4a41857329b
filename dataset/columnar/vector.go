package columnar

import "errors"

// The parts of a vector as Spark ML writes it, in this order.
const (
	VectorType = iota
	VectorSize
	VectorIndices
	VectorValues
)

// VectorParts are the names of the parts.
var VectorParts = [...]string{"type", "size", "indices", "values"}

var errVector = errors.New("has a vector whose indices and values do not fit each other")

// SetVectors puts vectors of Spark ML together from their parts: sparse ones are of type 0 and have
// a size, indices and values; dense ones are of type 1 and have values.
func (v *Values) SetVectors(n int, parts *[len(VectorParts)]Values) error {
	kind, size, indices, values := &parts[VectorType], &parts[VectorSize], &parts[VectorIndices], &parts[VectorValues]
	start, place := 0, 0
	for i := range n {
		end, to := values.Ends[i], indices.Ends[i]
		isNull := kind.IsNull(i)
		length := end - start
		switch {
		case isNull:
			v.SetNull(i, n)
			length = 0
		case kind.Ints[i] == 1:
			for k := start; k < end; k++ {
				v.addAt(uint32(k-start), values, k)
			}
		case kind.Ints[i] == 0:
			length = int(size.Ints[i])
			if size.IsNull(i) || length < 0 || to-place != end-start {
				return errVector
			}
			before := int64(-1)
			for k := range end - start {
				at := indices.Ints[place+k]
				if at <= before || at >= int64(length) || indices.Hole != nil && indices.Hole[place+k] {
					return errVector
				}
				before = at
				v.addAt(uint32(at), values, start+k)
			}
		default:
			return errVector
		}
		v.Ends, v.Size = append(v.Ends, len(v.List)), append(v.Size, length)
		start, place = end, to
	}
	return nil
}

func (v *Values) addAt(at uint32, values *Values, k int) {
	v.AddNumber(values.List[k], values.Hole != nil && values.Hole[k])
	v.At = append(v.At, at)
}
