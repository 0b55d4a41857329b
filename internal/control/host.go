package control

// Host is the host of a process, as far as its kernel tells: what is not known is empty or 0.
type Host struct {
	// CPU is the model, Processors how many are online.
	CPU        string `json:"cpu,omitempty"`
	Processors int    `json:"processors,omitempty"`
	Memory     int64  `json:"memory_bytes,omitempty"`
	// MemoryLimit is that of the control groups of the process, 0 where they may take all of Memory.
	MemoryLimit   int64  `json:"memory_limit_bytes,omitempty"`
	KernelRelease string `json:"kernel_release,omitempty"`
}
