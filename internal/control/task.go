package control

import "ndls/plan"

// Resources bounds what a task may use. It never changes the bytes that are written.
type Resources struct {
	// Memory is the budget in bytes for everything the process causes:
	// heap, arrays, page cache.
	Memory  int64
	Threads int
	// Scratch is a local directory for spills; it may be created and emptied.
	Scratch string
	// Kernel is "auto", "avx512", "avx2" or "go".
	Kernel string
	// BlockColumns is the width of a column block, 0 to plan it from Memory.
	BlockColumns int
	// Disk is the number of bytes that the run directory and temporary files may use together, 0
	// for all there is. Lean leaves out temporary files that only save time, except for copies of
	// edges of at most Spare bytes.
	Disk  int64
	Lean  bool
	Spare int64
	// Speeds holds the speeds of the machine, if they were measured.
	Speeds Speeds
}

// Speeds holds the speeds of a machine for the work of stages. They affect only the planned
// seconds. The zero value stands for speeds that were not measured.
type Speeds struct {
	// Edges, Near, Flops and Values count the work of one thread while all compute: edges a second
	// with FarBytes of rows of 64 bytes, and with NearBytes of them, float32 operations of matrix
	// products, and values that are put in order.
	Edges  float64 `json:"edges_per_second"`
	Near   float64 `json:"near_edges_per_second"`
	Flops  float64 `json:"flops"`
	Values float64 `json:"values_per_second"`
	// Write and Read are the bytes a second of the disk, of all threads together.
	Write float64 `json:"bytes_written_per_second"`
	Read  float64 `json:"bytes_read_per_second"`
}

// FarBytes is more than the caches of most processors hold, NearBytes about what the cache of one core holds.
const FarBytes, NearBytes = 256 << 20, 2 << 20

// Task is a part of one stage of a plan.
type Task struct {
	Stage Stage `json:"stage"`
	Part  Part  `json:"part"`
	// First and Last bound the part, half-open.
	First int `json:"first"`
	Last  int `json:"last"`
	// FirstPanel and LastPanel bound the panels of a task of Strips, or its models, half-open; with both 0
	// it has all columns of the stage.
	FirstPanel int          `json:"first_panel,omitempty"`
	LastPanel  int          `json:"last_panel,omitempty"`
	Plan       plan.Options `json:"plan"`
	Inputs     Inputs       `json:"inputs"`
	// Needs is the memory in bytes that the worker of a task of Strips must have, because the
	// strips were shared out by memory.
	Needs int64 `json:"needs,omitempty"`
	// Lean says that the stage fits the disk only without temporary files that save time. Spare is
	// the number of bytes that copies of edges may use all the same.
	Lean  bool  `json:"lean,omitempty"`
	Spare int64 `json:"spare,omitempty"`
	// Resources bounds the worker that runs the task.
	Resources Resources `json:"-"`
}
