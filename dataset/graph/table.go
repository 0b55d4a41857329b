package graph

// Table is a table of a dataset, as an inspection shows it.
type Table struct {
	// What is in its rows: edges, nodes, labels or splits.
	What string `json:"what"`
	// Place is the file, folder, pattern or list in which it is.
	Place string `json:"place"`
	Files int    `json:"files"`
	Bytes int64  `json:"bytes"`
	// Rows is the number of rows that its files state, -1 if some file does not state it.
	Rows    int64    `json:"rows"`
	Columns []Column `json:"columns"`
}

// Column is a column of a [Table].
type Column struct {
	Name string `json:"name"`
	Type string `json:"type"`
	// Width is the length of the lists that are read as features, 0 for other columns.
	Width int `json:"width,omitempty"`
	// Use names what the column is read as, "" if it is not read.
	Use string `json:"use"`
}
