package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestDiskIsNotExceeded runs the whole job, label smoothing of all rows included, with what saves
// disk, and a --disk that is little more than what ndls plan says. Run directory and scratch files,
// looked at from outside all the time, never take more than was planned. A run that is killed and
// continued takes no more, and ends in the same bytes.
func TestDiskIsNotExceeded(t *testing.T) {
	whole(t)
	for name, c := range map[string]struct {
		options string
		long    bool
	}{
		"float16": {options: "--dataset synthetic:nodes=120000,edges=700000,features=64,classes=40,seed=2 --memory 256MiB --precision float16"},
		"float32, two intervals": {
			options: "--dataset synthetic:nodes=1100000,edges=1200000,features=16,classes=20,seed=2 --memory 256MiB --interval-blocks 1 --keep-smoothed=false", long: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			if c.long && os.Getenv("NDLS_FAULTS") == "" {
				t.Skip("more than a million nodes take two minutes: make faults has them")
			}
			options := append(strings.Fields(c.options), strings.Fields("--threads 2 --epsilon 0.1 --probes 16 --runs 1 --epochs 1 --hidden 16 --label-kmax 2"+
				" --targets all --probabilities best --keep-features=false --shards none")...)
			planned := int64(0)
			for line := range strings.Lines(run(t, append([]string{"plan", "--json"}, options...)...)) {
				var f struct {
					Name string  `json:"name"`
					Disk float64 `json:"peak_disk_bytes"`
				}
				if err := json.Unmarshal([]byte(line), &f); err != nil {
					t.Fatal(err)
				}
				planned = max(planned, int64(f.Disk))
			}
			limit := planned + unplanned
			options = append(options, "--disk", fmt.Sprint(limit), "--quiet")
			dir := t.TempDir()
			base := filepath.Join(dir, "base")
			start := time.Now()
			most, err := watched(t, base, append([]string{"run", "--run", base}, options...)...)
			if err != nil {
				t.Fatal(err)
			}
			took := time.Since(start)
			t.Logf("%d bytes planned, %d measured", planned, most)
			if most > limit || most < planned/2 {
				t.Errorf("run directory and scratch took %d bytes, planned are %d", most, planned)
			}
			checkDisk(t, base)

			random := rand.New(rand.NewPCG(uint64(start.UnixNano()), 0))
			killed, want := filepath.Join(dir, "killed"), hashes(t, base)
			for attempt := 0; ; attempt++ {
				at := time.Hour
				if attempt == 0 {
					at = time.Duration(random.Int64N(int64(took)))
				}
				most, err := watchedUntil(t, at, killed, append([]string{"run", "--run", killed}, options...)...)
				t.Logf("attempt %d, ended after %v at most: %d bytes", attempt, at, most)
				if most > limit {
					t.Errorf("attempt %d took %d bytes, planned are %d", attempt, most, planned)
				}
				if err == nil {
					break
				}
				if exitStatus(err) != -1 {
					t.Fatalf("a killed run ended with %v", err)
				}
				if _, err := os.Stat(filepath.Join(killed, "run.json")); err == nil {
					run(t, "gc", "--run", killed, "--delete", "--quiet") // what the attempt has not committed
				}
			}
			run(t, "verify", "--run", killed, "--quiet")
			run(t, "gc", "--run", killed, "--delete", "--quiet")
			compare(t, "a run that was killed", hashes(t, killed), want)
		})
	}
}

// unplanned is the size of records, journal, catalogue and reports of a run, which no plan counts.
const unplanned = 2 << 20

// inexact is the allowed error of a plan: the sizes of packed edges and the node table are known to
// three percent.
const inexact = 1.03

// checkDisk compares what each stage took, as it measured itself, with what was planned for it.
func checkDisk(t *testing.T, dir string) {
	t.Helper()
	var record struct {
		Stages []struct {
			Name    string   `json:"name"`
			Planned *figures `json:"planned"`
			Disk    float64  `json:"measured_peak_disk_bytes"`
		} `json:"stages"`
	}
	decode(t, filepath.Join(dir, "run.json"), &record)
	for _, s := range record.Stages {
		if s.Planned == nil {
			t.Errorf("%s was not planned", s.Name)
			continue
		}
		t.Logf("%s: disk planned %.1f MiB, measured %.1f MiB", s.Name, s.Planned.Disk/(1<<20), s.Disk/(1<<20))
		if s.Disk > inexact*s.Planned.Disk+unplanned {
			t.Errorf("%s: disk planned %.0f, measured %.0f, which is more", s.Name, s.Planned.Disk, s.Disk)
		}
	}
}

// watched executes the program, and returns what a run directory and the nameless files that the
// program has open there took at most.
func watched(t *testing.T, dir string, args ...string) (most int64, err error) {
	t.Helper()
	return watchedUntil(t, time.Hour, dir, args...)
}

// watchedUntil is watched of a program that is killed after a while, unless it has ended.
func watchedUntil(t *testing.T, limit time.Duration, dir string, args ...string) (most int64, err error) {
	t.Helper()
	cmd := exec.Command(binary, args...)
	var said bytes.Buffer
	cmd.Stderr = &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	end, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for {
			most = max(most, bytesBelow(dir, cmd.Process.Pid))
			select {
			case <-end:
				return
			case <-time.After(3 * time.Millisecond):
			}
		}
	}()
	timer := time.AfterFunc(limit, func() { _ = cmd.Process.Kill() })
	err = cmd.Wait()
	timer.Stop()
	close(end)
	<-ended
	if err != nil && exitStatus(err) != -1 {
		t.Logf("%s", said.Bytes())
	}
	return most, err
}

// bytesBelow returns the disk usage of the files below a folder, each once, with those that a
// process has open there and that have no name any more.
func bytesBelow(dir string, pid int) (total int64) {
	type inode struct{ device, number uint64 }
	seen := map[inode]bool{}
	add := func(path string) {
		var st syscall.Stat_t
		if syscall.Stat(path, &st) == nil && !seen[inode{st.Dev, st.Ino}] {
			seen[inode{st.Dev, st.Ino}] = true
			total += st.Blocks * 512
		}
	}
	_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			add(path)
		}
		return nil
	})
	folder := fmt.Sprintf("/proc/%d/fd", pid)
	open, _ := os.ReadDir(folder)
	for _, fd := range open {
		path := filepath.Join(folder, fd.Name())
		if target, err := os.Readlink(path); err == nil && strings.HasPrefix(target, dir+"/") && strings.HasSuffix(target, " (deleted)") {
			add(path)
		}
	}
	return total
}
