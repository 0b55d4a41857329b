package main

import (
	"slices"
	"testing"
)

func TestParseBytes(t *testing.T) {
	for _, tc := range []struct {
		text string
		want int64
		ok   bool
	}{
		{"8GiB", 8 << 30, true},
		{"1.5G", 3 << 29, true},
		{"500MB", 500_000_000, true},
		{"12 kB", 12_000, true},
		{"4096", 4096, true},
		{"4096B", 4096, true},
		{"", 0, false},
		{"-1GiB", 0, false},
		{"GiB", 0, false},
		{"NaN", 0, false},
		{"1e30TiB", 0, false},
		{"8 gigs", 0, false},
	} {
		got, err := parseBytes(tc.text)
		if got != tc.want || (err == nil) != tc.ok {
			t.Errorf("parseBytes(%q) = %d, %v; want %d", tc.text, got, err, tc.want)
		}
	}
}

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

func TestNearest(t *testing.T) {
	words := []string{"epochs", "epsilon", "kmax", "label-epsilon"}
	for key, want := range map[string]string{"epsilom": "epsilon", "epoch": "epochs", "k-max": "kmax", "labelepsilon": "label-epsilon"} {
		if got := nearest(key, words); got != want {
			t.Errorf("nearest(%q) = %q, want %q", key, got, want)
		}
	}
	if d := distance("kitten", "sitting"); d != 3 {
		t.Errorf("distance = %d, want 3", d)
	}
}
