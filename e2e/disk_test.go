package e2e

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// smoothed is the record of a run about smoothing.
type smoothed struct {
	Name    string `json:"name"`
	Edges   int64  `json:"edges_streamed"`
	Disk    int64  `json:"measured_peak_disk_bytes"`
	Planned struct {
		Disk    int64 `json:"peak_disk_bytes"`
		PerPass int64 `json:"bytes_per_pass"`
		Lean    bool  `json:"lean"`
		Spare   int64 `json:"spare"`
	} `json:"planned"`
}

// TestLittleDisk gives smoothing all the disk that it asks for, less than that, and none for
// copies of edges. The less there is the more edges are read. The disk holds no more than was
// given, and files have the same bytes.
func TestLittleDisk(t *testing.T) {
	whole(t)
	const options = " --memory 180MiB --threads 2 --quiet"
	prepared := filepath.Join(t.TempDir(), "run")
	run(t, strings.Fields("partition --dataset papers100m:scale=1/256,tails=0 --run "+prepared+options)...)
	run(t, strings.Fields("lsi --probes 16 --run "+prepared+options)...)
	smooth := func(disk int64) (smoothed, map[string]string) {
		t.Helper()
		dir := filepath.Join(t.TempDir(), "run")
		if err := os.CopyFS(dir, os.DirFS(prepared)); err != nil {
			t.Fatal(err)
		}
		run(t, strings.Fields(fmt.Sprintf("smooth --targets labelled --run %s --disk %d", dir, disk)+options)...)
		var record struct {
			Stages []smoothed `json:"stages"`
		}
		decode(t, filepath.Join(dir, "run.json"), &record)
		for _, s := range record.Stages {
			if s.Name == "smooth" {
				t.Logf("--disk %d: %d edges, %d bytes on disk of %d planned, lean %v, spare %d", disk, s.Edges, s.Disk, s.Planned.Disk, s.Planned.Lean, s.Planned.Spare)
				return s, hashes(t, dir)
			}
		}
		t.Fatal("the record has no smooth stage")
		return smoothed{}, nil
	}
	most, want := smooth(1 << 40)
	if most.Planned.Lean || most.Planned.PerPass == 0 {
		t.Fatalf("with all the disk there is: %+v", most)
	}
	some, got := smooth(most.Planned.Disk - most.Planned.PerPass/3)
	if !some.Planned.Lean || some.Planned.Spare == 0 || some.Planned.Spare >= most.Planned.PerPass*4/3 || !maps.Equal(got, want) {
		t.Errorf("with a part of the disk: %+v, the same bytes %v", some, maps.Equal(got, want))
	}
	without := most.Planned.Disk - most.Planned.PerPass/3 - some.Planned.Spare
	edges := most.Edges
	for _, spare := range []int64{most.Planned.PerPass / 16, 0} {
		s, got := smooth(without + spare)
		if !s.Planned.Lean || s.Planned.Spare != spare || s.Disk > without+spare {
			t.Errorf("%d bytes for copies: %+v", spare, s)
		}
		if s.Edges <= edges {
			t.Errorf("%d bytes for copies: %d edges, with more %d", spare, s.Edges, edges)
		}
		if edges = s.Edges; !maps.Equal(got, want) {
			t.Errorf("%d bytes for copies: other bytes", spare)
		}
	}
}
