package machine

import (
	"cmp"
	"os"
	"runtime"
	"strings"

	"golang.org/x/sys/unix"

	"ndls/internal/cgroup"
	"ndls/internal/control"
)

// Host describes the host of this process.
func Host() *control.Host {
	text, _ := os.ReadFile("/proc/cpuinfo")
	var h control.Host
	h.CPU, h.Processors = processors(string(text))
	h.Processors = cmp.Or(h.Processors, runtime.NumCPU()) // without /proc
	var memory unix.Sysinfo_t
	if unix.Sysinfo(&memory) == nil {
		h.Memory = int64(memory.Totalram) * int64(memory.Unit)
	}
	if limit := cgroup.Limit(); limit < h.Memory {
		h.MemoryLimit = limit
	}
	var name unix.Utsname
	if unix.Uname(&name) == nil {
		h.KernelRelease = unix.ByteSliceToString(name.Release[:])
	}
	return &h
}

// processors gives the model of the first processor in /proc/cpuinfo, and how many there are. For arm64 the
// file has numbers in place of a name.
func processors(cpuinfo string) (model string, online int) {
	fields := map[string]string{}
	for line := range strings.Lines(cpuinfo) {
		key, value, _ := strings.Cut(line, ":")
		key, value = strings.TrimSpace(key), strings.TrimSpace(value)
		if key == "processor" {
			online++
		}
		fields[key] = cmp.Or(fields[key], value)
	}
	if part := fields["CPU part"]; part != "" {
		model = "implementer " + fields["CPU implementer"] + ", part " + part
	}
	return cmp.Or(fields["model name"], model), online
}
