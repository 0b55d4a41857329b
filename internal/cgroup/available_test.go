package cgroup

import (
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
		{"version 2", "0::/user/job\n", []string{"/sys/fs/cgroup/user/job/memory.max", "/sys/fs/cgroup/user/memory.max", "/sys/fs/cgroup/memory.max"}},
		{"version 1", "5:cpu,cpuacct:/a\n4:memory:/slurm\n", []string{"/sys/fs/cgroup/memory/slurm/memory.limit_in_bytes", "/sys/fs/cgroup/memory/memory.limit_in_bytes"}},
		{"none", "", nil},
		{"damaged", "hello\n", nil},
	} {
		if got := limitFiles(tc.cgroup); !slices.Equal(got, tc.want) {
			t.Errorf("%s: %v, want %v", tc.name, got, tc.want)
		}
	}
}
