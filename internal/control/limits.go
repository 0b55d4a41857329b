package control

// Limits are what a host does at most of the work of passes, by its [Speeds], on all threads.
type Limits struct {
	Threads int `json:"threads"`
	// Edges are edges a second past rows of 64 bytes, most of which come from memory.
	Edges float64 `json:"edges_per_second"`
	// Read and Written are bytes a second of the disk.
	Read    float64 `json:"bytes_read_per_second"`
	Written float64 `json:"bytes_written_per_second"`
}

// LimitsOf are the limits of a host with these speeds and so many threads, nil where speeds were not measured.
func LimitsOf(s Speeds, threads int) *Limits {
	if s == (Speeds{}) {
		return nil
	}
	return &Limits{Threads: threads, Edges: s.Edges * float64(threads), Read: s.Read, Written: s.Write}
}

// lineBytes is what memory gives at a time.
const lineBytes = 64

// Rows is how many bytes of rows of this size are read in a second at most, 0 where that is not known: a larger row
// is as many of 64 bytes, and a smaller one takes as long.
func (l *Limits) Rows(rowBytes float64) float64 {
	if l == nil {
		return 0
	}
	return l.Edges * min(rowBytes, lineBytes)
}
