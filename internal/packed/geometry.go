//go:build !small

package packed

// The geometry of every build that users have.
const (
	// BlockShift is the number of bits of a destination within its block.
	BlockShift = 20
	// StripShift is the number of bits of a destination within its strip. It is at most
	// RowBits. Measured with rows of 64 bytes: strips of 2^16 and 2^17 rows are a fifth
	// slower, of 2^20 a third.
	StripShift = 15
)
