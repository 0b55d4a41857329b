package main

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"ndls/internal/mem"
)

// maxDefaultMemory bounds --memory where it is not given.
const maxDefaultMemory = 8 << 30

// memoryBytes is --memory, or its default.
func (a *app) memoryBytes() (int64, error) {
	if a.memory != "" {
		n, err := parseBytes(a.memory)
		if err != nil {
			return 0, asUsage(fmt.Errorf("--memory %w", err))
		}
		return n, nil
	}
	available, err := availableMemory()
	if err != nil {
		return 0, asUsage(fmt.Errorf("%w; give --memory", err))
	}
	return min(available/4*3, maxDefaultMemory), nil
}

var byteUnits = []struct {
	name  string
	bytes float64
}{
	{"KiB", 1 << 10},
	{"MiB", 1 << 20},
	{"GiB", 1 << 30},
	{"TiB", 1 << 40},
	{"kB", 1e3},
	{"KB", 1e3},
	{"MB", 1e6},
	{"GB", 1e9},
	{"TB", 1e12},
	{"K", 1 << 10},
	{"M", 1 << 20},
	{"G", 1 << 30},
	{"T", 1 << 40},
	{"B", 1},
	{"", 1},
}

// parseBytes reads "8GiB", "1.5G", "500MB" or a plain number of bytes.
func parseBytes(s string) (int64, error) {
	for _, u := range byteUnits {
		number, ok := strings.CutSuffix(s, u.name)
		if !ok {
			continue
		}
		x, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
		if bytes := x * u.bytes; err == nil && bytes >= 0 && bytes < math.MaxInt64 {
			return int64(bytes), nil
		}
		break
	}
	return 0, fmt.Errorf("%q is no amount of memory; write it like 8GiB or 500MB", s)
}

// availableMemory is the smaller of what the kernel says is available and what
// the control group leaves.
func availableMemory() (int64, error) {
	text, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return 0, fmt.Errorf("how much memory there is: %w", err)
	}
	available, err := memAvailable(string(text))
	if err != nil {
		return 0, err
	}
	groups, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		// No control groups, no limit of theirs.
		return available, nil
	}
	for _, path := range limitFiles(string(groups)) {
		text, err := os.ReadFile(path)
		if err != nil {
			continue
		}
		if limit, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64); err == nil {
			available = min(available, limit)
		}
	}
	return available, nil
}

func memAvailable(meminfo string) (int64, error) {
	for line := range strings.Lines(meminfo) {
		if fields := strings.Fields(line); len(fields) == 3 && fields[0] == "MemAvailable:" {
			kib, err := strconv.ParseInt(fields[1], 10, 53)
			return kib << 10, err
		}
	}
	return 0, fmt.Errorf("/proc/meminfo does not say how much memory is available")
}

// limitFiles lists where the limits of a process's memory control groups may
// be, from /proc/self/cgroup: version 2 and 1, the group itself and those above.
func limitFiles(cgroup string) []string {
	var files []string
	for line := range strings.Lines(cgroup) {
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(parts) != 3 {
			continue
		}
		root, name := "", ""
		switch {
		case parts[1] == "":
			root, name = "/sys/fs/cgroup", "memory.max"
		case strings.Contains(","+parts[1]+",", ",memory,"):
			root, name = "/sys/fs/cgroup/memory", "memory.limit_in_bytes"
		default:
			continue
		}
		for dir := filepath.Clean(parts[2]); ; dir = filepath.Dir(dir) {
			files = append(files, filepath.Join(root, dir, name))
			if dir == "/" || dir == "." {
				break
			}
		}
	}
	return files
}

// budget is a budget of --memory.
func (a *app) budget() (*mem.Budget, error) {
	n, err := a.memoryBytes()
	if err != nil {
		return nil, err
	}
	return mem.NewBudget(n)
}
