package spmv

// Rows are consecutive rows of a column block in memory, Stride columns each.
// Exactly one of S and H is set: float32 rows, or float16 rows as their bits.
type Rows struct {
	Stride int // columns, a multiple of PanelColumns
	S      []float32
	H      []uint16
}

// Len is the number of rows.
func (r Rows) Len() int64 { return int64((len(r.S) + len(r.H)) / r.Stride) }

// Slice returns rows [lo, hi).
func (r Rows) Slice(lo, hi int64) Rows {
	s := int64(r.Stride)
	if r.H != nil {
		return Rows{Stride: r.Stride, H: r.H[lo*s : hi*s]}
	}
	return Rows{Stride: r.Stride, S: r.S[lo*s : hi*s]}
}

// load copies the rows, as float32, to dst.
func (k *Kernel) load(dst []float32, r Rows) {
	if r.H != nil {
		k.Widen(dst, r.H)
		return
	}
	copy(dst, r.S)
}

// store rounds src to the precision of the rows r.
func (k *Kernel) store(r Rows, src []float32) {
	if r.H != nil {
		k.Narrow(r.H, src)
		return
	}
	if &r.S[0] != &src[0] {
		copy(r.S, src)
	}
}
