package cgroup

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// version names the files of one version of control groups. Above the bytes in high, where there is such a file, the
// kernel takes memory back and slows the processes of the group down, until they stand still: it is a limit, too.
type version struct{ root, controller, limit, high string }

// The versions, as the kernel's admin-guide/cgroup-v1/memory.rst and cgroup-v2.rst
// have them.
var versions = []version{
	{"/sys/fs/cgroup/memory", "memory", "memory.limit_in_bytes", ""},
	{"/sys/fs/cgroup", "", "memory.max", "memory.high"},
}

// Available returns the memory that this process may still use: the smallest of the kernel's
// available memory, of the limits of the process's control groups, and of the limit of its address
// space.
func Available() (int64, error) {
	n, err := available()
	if left, _, limited := AddressSpace(); limited {
		n = max(min(n, left), 0)
	}
	return n, err
}

func available() (int64, error) {
	text, err := os.ReadFile("/proc/meminfo")
	if errors.Is(err, fs.ErrNotExist) { // without /proc: what is free, page cache left out
		var s unix.Sysinfo_t
		if err := unix.Sysinfo(&s); err != nil {
			return 0, fmt.Errorf("how much memory there is, without /proc: %w", err)
		}
		return min((int64(s.Freeram)+int64(s.Bufferram))*int64(s.Unit), Limit()), nil
	}
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
	groups, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		// No control groups, no limit of theirs.
		return math.MaxInt64
	}
	return limitIn("/", string(groups))
}

// limitIn is the smallest limit of groups in the files below a root.
func limitIn(root, groups string) int64 {
	smallest := int64(math.MaxInt64)
	for _, path := range limitFiles(groups) {
		text, err := os.ReadFile(filepath.Join(root, path))
		if err != nil {
			continue
		}
		if limit, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64); err == nil {
			smallest = min(smallest, limit)
		}
	}
	return smallest
}

// addressSlack is the address space that the Go runtime reserves and maps after a program has
// begun: parts of its heap, stacks of threads. Measured with runs whose limit was lowered until
// they failed.
const addressSlack = 192 << 20

// AddressSpace returns the address space that the limit of the process (ulimit -v) leaves for
// memory that it maps. limited is false if there is no such limit, or the kernel does not report
// the space in use.
func AddressSpace() (left, limit int64, limited bool) {
	var l unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_AS, &l); err != nil || l.Cur >= math.MaxInt64 {
		return 0, 0, false
	}
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0, 0, false
	}
	first, _, _ := strings.Cut(string(text), " ")
	pages, err := strconv.ParseInt(first, 10, 50)
	if err != nil {
		return 0, 0, false
	}
	return int64(l.Cur) - pages*int64(os.Getpagesize()) - addressSlack, int64(l.Cur), true
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
				if v.high != "" {
					files = append(files, filepath.Join(v.root, dir, v.high))
				}
				if dir == "/" || dir == "." {
					break
				}
			}
		}
	}
	return files
}
