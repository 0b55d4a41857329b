package cgroup

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Available is how much memory this process may still take: the smaller of what
// the kernel says is available and of the limits of the process's control groups.
func Available() (int64, error) {
	text, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return 0, fmt.Errorf("how much memory there is: %w", err)
	}
	available, err := memAvailable(string(text))
	if err != nil {
		return 0, err
	}
	return min(available, Limit()), nil
}

// Limit is the smallest memory limit of the process's control groups, [math.MaxInt64] where
// there is none.
func Limit() int64 {
	smallest := int64(math.MaxInt64)
	groups, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		// No control groups, no limit of theirs.
		return smallest
	}
	for _, path := range limitFiles(string(groups)) {
		text, err := os.ReadFile(path)
		if err != nil {
			continue
		}
		if limit, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64); err == nil {
			smallest = min(smallest, limit)
		}
	}
	return smallest
}

func memAvailable(meminfo string) (int64, error) {
	for line := range strings.Lines(meminfo) {
		if fields := strings.Fields(line); len(fields) == 3 && fields[0] == "MemAvailable:" {
			kib, err := strconv.ParseInt(fields[1], 10, 53)
			return kib << 10, err
		}
	}
	return 0, errors.New("/proc/meminfo does not say how much memory is available")
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
		for _, v := range versions {
			if parts[1] != v.controller && (v.controller == "" || !strings.Contains(","+parts[1]+",", ","+v.controller+",")) {
				continue
			}
			for dir := filepath.Clean(parts[2]); ; dir = filepath.Dir(dir) {
				files = append(files, filepath.Join(v.root, dir, v.limit))
				if dir == "/" || dir == "." {
					break
				}
			}
		}
	}
	return files
}
