package columnar

// File is an open file of columns. Its rows are read in units: row groups of Parquet, record
// batches of Arrow.
type File interface {
	Columns() []Column
	Rows() int64
	Units() int
	// Unit tells the first row of a unit, and how many it has.
	Unit(i int) (first, rows int64)
	// Check refuses a column that cannot be read as it is stored.
	Check(column int) error
	// Memory estimates the bytes that reading these columns takes.
	Memory(columns []int) int64
	// Read reads columns of a unit. No list may be longer than widest.
	Read(unit int, columns []int, widest int) (Reader, error)
}

// Reader gives the rows of a unit in order.
type Reader interface {
	// Next reads up to n rows of each column, at least one, or returns io.EOF.
	Next(n int, to []Values) (int, error)
	Close() error
}
