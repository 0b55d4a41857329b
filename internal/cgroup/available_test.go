package cgroup

import (
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func TestMemAvailable(t *testing.T) {
	got, err := memAvailable("MemTotal:       24000000 kB\nMemAvailable:   12000000 kB\n")
	if err != nil || got != 12_000_000<<10 {
		t.Errorf("memAvailable = %d, %v", got, err)
	}
	if _, err := memAvailable("MemTotal: 1 kB\n"); err == nil {
		t.Error("no error without MemAvailable")
	}
}

func TestLimitFiles(t *testing.T) {
	for _, tc := range []struct {
		name, cgroup string
		want         []string
	}{
		{"version 2", "0::/user/job\n", []string{
			"/sys/fs/cgroup/user/job/memory.max", "/sys/fs/cgroup/user/job/memory.high", "/sys/fs/cgroup/user/memory.max", "/sys/fs/cgroup/user/memory.high",
			"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.high",
		}},
		{"version 1", "5:cpu,cpuacct:/a\n4:memory:/slurm\n", []string{"/sys/fs/cgroup/memory/slurm/memory.limit_in_bytes", "/sys/fs/cgroup/memory/memory.limit_in_bytes"}},
		{"none", "", nil},
		{"damaged", "hello\n", nil},
	} {
		if got := limitFiles(tc.cgroup); !slices.Equal(got, tc.want) {
			t.Errorf("%s: %v, want %v", tc.name, got, tc.want)
		}
	}
}

// TestLimitIn: the smallest of all limits of a group and of those above it counts, memory.high among them.
func TestLimitIn(t *testing.T) {
	for name, tc := range map[string]struct {
		files map[string]string
		want  int64
	}{
		"none":            {nil, math.MaxInt64},
		"unlimited":       {map[string]string{"user/job/memory.max": "max\n", "user/job/memory.high": "max\n"}, math.MaxInt64},
		"max":             {map[string]string{"user/job/memory.max": "2000\n", "user/job/memory.high": "max\n"}, 2000},
		"high":            {map[string]string{"user/job/memory.max": "2000\n", "user/job/memory.high": "1000\n"}, 1000},
		"high alone":      {map[string]string{"user/job/memory.max": "max\n", "user/job/memory.high": "1000\n"}, 1000},
		"high above":      {map[string]string{"user/job/memory.max": "2000\n", "user/memory.high": "500\n"}, 500},
		"high, above max": {map[string]string{"user/job/memory.max": "2000\n", "user/job/memory.high": "3000\n"}, 2000},
	} {
		root := t.TempDir()
		for file, text := range tc.files {
			path := filepath.Join(root, "sys/fs/cgroup", file)
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if got := limitIn(root, "0::/user/job\n"); got != tc.want {
			t.Errorf("%s: %d, want %d", name, got, tc.want)
		}
	}
}
