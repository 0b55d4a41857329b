package control

// Host describes the host of a process, as far as its kernel tells: unknown fields are empty or 0.
type Host struct {
	// CPU is the model, Processors the number of online processors.
	CPU        string `json:"cpu,omitempty"`
	Processors int    `json:"processors,omitempty"`
	Memory     int64  `json:"memory_bytes,omitempty"`
	// MemoryLimit is the limit of the process's control groups, 0 if they allow all of Memory.
	MemoryLimit   int64  `json:"memory_limit_bytes,omitempty"`
	KernelRelease string `json:"kernel_release,omitempty"`
}
