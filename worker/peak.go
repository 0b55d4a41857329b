package worker

import (
	"fmt"
	"strconv"
	"strings"
)

// peakSize reads the peak resident size from the text of /proc/self/status, residentSize the
// present one.
func peakSize(status string) (int64, error) { return memoryLine(status, "VmHWM:") }

// residentSize is described at peakSize.
func residentSize(status string) (int64, error) { return memoryLine(status, "VmRSS:") }

// memoryLine returns the size on a line of /proc/self/status in bytes.
func memoryLine(status, name string) (int64, error) {
	for line := range strings.Lines(status) {
		if rest, ok := strings.CutPrefix(line, name); ok {
			kb, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 10, 64)
			return kb << 10, err
		}
	}
	return 0, fmt.Errorf("no %s in /proc/self/status", strings.TrimSuffix(name, ":"))
}
