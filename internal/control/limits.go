package control

// Limits holds the highest rates of a host for the work of passes, by its [Speeds], on all threads.
type Limits struct {
	Threads int `json:"threads"`
	// Edges counts edges a second with rows of 64 bytes, most of which come from memory.
	Edges float64 `json:"edges_per_second"`
	// Read and Written are the bytes a second of the disk.
	Read    float64 `json:"bytes_read_per_second"`
	Written float64 `json:"bytes_written_per_second"`
}

// LimitsOf returns the limits of a host with these speeds and so many threads, nil if speeds were
// not measured.
func LimitsOf(s Speeds, threads int) *Limits {
	if s == (Speeds{}) {
		return nil
	}
	return &Limits{Threads: threads, Edges: s.Edges * float64(threads), Read: s.Read, Written: s.Write}
}

// lineBytes is the number of bytes that memory delivers at a time.
const lineBytes = 64

// Rows returns the highest number of bytes of rows of this size that are read in a second, 0 if
// unknown. A larger row counts as several of 64 bytes; a smaller one takes as long as one of 64.
func (l *Limits) Rows(rowBytes float64) float64 {
	if l == nil {
		return 0
	}
	return l.Edges * min(rowBytes, lineBytes)
}
