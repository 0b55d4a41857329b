package e2e

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// TestFeaturesFourTimesMemory runs the whole job on features of four times
// --memory inside a cgroup of --memory, which counts page cache too. Where no
// cgroup can be made, the peak resident size in the report must do.
func TestFeaturesFourTimesMemory(t *testing.T) {
	const memory = 136 << 20
	dir := filepath.Join(t.TempDir(), "run")
	args := []string{
		"run", "--dataset", "synthetic:nodes=150000,edges=1000000,features=960,classes=8,seed=1", "--run", dir,
		"--memory", strconv.Itoa(memory>>20) + "MiB", "--threads", "2", "--epsilon", "0.1", "--runs", "1", "--epochs", "2", "--quiet",
	}
	if 150000*960*4 < 4*memory {
		t.Fatal("the features are too small for this test")
	}
	group := cgroup(t, memory)
	if group == "" {
		run(t, args...)
	} else {
		cmd := exec.Command("sh", append([]string{"-c", `echo $$ > "$0" && exec "$@"`, filepath.Join(group, "cgroup.procs"), binary}, args...)...)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("inside a cgroup of %d bytes: %v\n%s", memory, err, out)
		}
		for _, name := range []string{"memory.max_usage_in_bytes", "memory.peak"} {
			if b, err := os.ReadFile(filepath.Join(group, name)); err == nil {
				t.Logf("the kernel charged at most %s bytes of %d", strings.TrimSpace(string(b)), memory)
			}
		}
	}
	var report struct {
		Memory struct {
			Budget int64 `json:"budget_bytes"`
			Peak   int64 `json:"peak_rss_bytes"`
		} `json:"memory"`
	}
	b, err := os.ReadFile(filepath.Join(dir, "report.json"))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b, &report); err != nil {
		t.Fatal(err)
	}
	t.Logf("peak resident size %d of %d bytes", report.Memory.Peak, report.Memory.Budget)
	if report.Memory.Peak == 0 || report.Memory.Peak > memory || report.Memory.Budget != memory {
		t.Errorf("peak resident size %d with a budget of %d", report.Memory.Peak, report.Memory.Budget)
	}
}

// cgroup makes a memory cgroup below this process's own, version 1 or 2, or
// returns "".
func cgroup(t *testing.T, limit int) string {
	lines, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(lines)) {
		part := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(part) != 3 {
			continue
		}
		root, file := "/sys/fs/cgroup", "memory.max"
		if part[1] == "memory" {
			root, file = "/sys/fs/cgroup/memory", "memory.limit_in_bytes"
		} else if part[1] != "" {
			continue
		}
		dir := filepath.Join(root, part[2], "ndls-test-"+strconv.Itoa(os.Getpid()))
		if os.Mkdir(dir, 0o755) != nil {
			continue
		}
		t.Cleanup(func() { _ = os.Remove(dir) })
		if os.WriteFile(filepath.Join(dir, file), []byte(strconv.Itoa(limit)), 0o644) == nil {
			return dir
		}
	}
	t.Log("no memory cgroup can be made here: the peak resident size is measured instead")
	return ""
}
