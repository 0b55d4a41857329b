package control

// StageReport is what executing a stage took and found.
type StageReport struct {
	Stage   Stage   `json:"name"`
	Seconds float64 `json:"seconds"`
	// Rows is the number of rows of the stage's output.
	Rows int64 `json:"rows"`
	// Passes counts reads of all shards, each with ColumnsPerPass columns.
	Passes         int `json:"passes"`
	ColumnsPerPass int `json:"columns_per_pass"`
	// EdgesStreamed is the number of directed edges that all passes together
	// read, in KernelSeconds of passing.
	EdgesStreamed int64   `json:"edges_streamed"`
	KernelSeconds float64 `json:"kernel_seconds"`
	BytesRead     int64   `json:"bytes_read"`
	BytesWritten  int64   `json:"bytes_written"`
	// PlannedPeak and MeasuredPeak are bytes of memory.
	PlannedPeak  int64 `json:"planned_peak_bytes"`
	MeasuredPeak int64 `json:"measured_peak_bytes"`
	// LSI is set by the lsi stage, Accuracy by evaluate.
	LSI      *LSIReport      `json:"lsi,omitempty"`
	Accuracy *AccuracyReport `json:"accuracy,omitempty"`
}

// LSIReport describes a K table.
type LSIReport struct {
	Mode       string  `json:"mode"`
	Probes     int     `json:"probes"`
	R          float64 `json:"r"`
	Epsilon    float64 `json:"epsilon"`
	Kmax       int     `json:"kmax"`
	Stationary string  `json:"stationary"`
	Mean       float64 `json:"mean"`
	Max        int     `json:"max"`
	// CappedShare is the share of nodes that never settled.
	CappedShare float64 `json:"capped_share"`
	// Histogram lists [k, nodes] in ascending order of k, without empty entries.
	Histogram [][2]int64 `json:"histogram"`
}

// AccuracyReport is the share of nodes whose class is predicted right.
type AccuracyReport struct {
	// Base is before label smoothing, Smoothed after it.
	Base     SplitAccuracy `json:"base"`
	Smoothed SplitAccuracy `json:"smoothed"`
	// Runs is the number of models behind each mean.
	Runs int `json:"runs"`
}

// SplitAccuracy is the accuracy on each split; a split without nodes is nil.
type SplitAccuracy struct {
	Train *Spread `json:"train,omitempty"`
	Valid *Spread `json:"valid,omitempty"`
	Test  *Spread `json:"test,omitempty"`
}

// Spread is a mean and the sample standard deviation over runs, 0 for one run.
type Spread struct {
	Mean float64 `json:"mean"`
	Std  float64 `json:"std"`
}

// MemoryReport compares the promise with what the process took.
type MemoryReport struct {
	BudgetBytes  int64 `json:"budget_bytes"`
	PeakRSSBytes int64 `json:"peak_rss_bytes"`
}
