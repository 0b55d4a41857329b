//go:build small

package packed

// The geometry of tests: a graph of ten thousand nodes has several strips, blocks and
// intervals. Words, frames and the assembly that reads them are the same. A strip of fewer
// rows would not fill one block of direct I/O with a byte a row.
const (
	BlockShift = 13
	StripShift = 12
)
