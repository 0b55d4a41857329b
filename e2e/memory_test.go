package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"ndls/internal/testkit"
)

// TestFeaturesFourTimesMemory runs the whole job on features of four times
// --memory inside a cgroup of --memory, which counts page cache too. Where no
// cgroup can be made, the peak resident size in the report must do.
func TestFeaturesFourTimesMemory(t *testing.T) {
	whole(t)
	const memory = 136 << 20
	dir := filepath.Join(onDisk(t), "run")
	args := []string{
		"run", "--dataset", "synthetic:nodes=150000,edges=450000,features=960,classes=8,seed=1", "--run", dir,
		"--memory", strconv.Itoa(memory>>20) + "MiB", "--threads", "2", "--epsilon", "0.3", "--probes", "16", "--runs", "1", "--epochs", "1", "--hidden", "16", "--quiet",
	}
	if 150000*960*4 < 4*memory {
		t.Fatal("the features are too small for this test")
	}
	runInside(t, dir, memory, args...)
}

// TestTenThousandClasses runs the whole job with so many classes that a row of probabilities
// has 40 kB, within a --memory that is little more than the least. Before tiles of all
// classes were written at a time, it took 1.1 GiB. Each stage takes what was planned.
func TestTenThousandClasses(t *testing.T) {
	whole(t)
	const memory = 480 << 20
	args := func(dir string) []string {
		return []string{
			"run", "--dataset", "synthetic:nodes=10500,edges=40000,features=16,classes=10000,seed=1", "--run", dir, "--threads", "2",
			"--epsilon", "0.2", "--probes", "16", "--runs", "1", "--epochs", "1", "--label-kmax", "1", "--quiet",
		}
	}
	little := append(args(filepath.Join(onDisk(t), "run")), "--memory", "300MiB")
	if out, err := exec.Command(binary, little...).CombinedOutput(); exitStatus(err) != 3 || !strings.Contains(string(out), "is enough") {
		t.Errorf("with 300 MiB: %v\n%s", err, out)
	}
	for _, options := range []string{"", "--probabilities best", "--label-rule cs --cs-correct-hops 1"} {
		t.Run(options, func(t *testing.T) {
			dir := filepath.Join(onDisk(t), "run")
			runInside(t, dir, memory, append(append(args(dir), "--memory", strconv.Itoa(memory>>20)+"MiB"), strings.Fields(options)...)...)
			checkPlanned(t, dir, "partition") // with many classes a synthetic graph has fewer edges
		})
	}
}

// onDisk makes a folder that is not in memory: a cgroup is charged for files that are.
func onDisk(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/var/tmp", "ndls-e2e")
	if err != nil {
		t.Logf("files may be in memory: %v", err)
		return t.TempDir()
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// runInside runs the program inside a cgroup of so many bytes, which is its --memory, and
// checks the peak resident size that its report has. Where no cgroup can be made, the peak
// resident size must do.
func runInside(t *testing.T, dir string, memory int64, args ...string) {
	t.Helper()
	group, err := testkit.NewGroup(memory)
	if err != nil {
		t.Logf("the peak resident size is measured instead: %v", err)
		run(t, args...)
	} else {
		defer group.Remove()
		command := group.Command(append([]string{binary}, args...)...)
		if out, err := exec.Command(command[0], command[1:]...).CombinedOutput(); err != nil {
			t.Fatalf("inside a cgroup of %d bytes: %v\n%s", memory, err, out)
		}
		peak, err := group.Peak()
		t.Logf("the kernel charged at most %d bytes of %d (%v)", peak, memory, err)
	}
	var report struct {
		Memory struct {
			Budget int64 `json:"budget_bytes"`
			Peak   int64 `json:"peak_rss_bytes"`
		} `json:"memory"`
	}
	decode(t, filepath.Join(dir, "report.json"), &report)
	t.Logf("peak resident size %d of %d bytes", report.Memory.Peak, report.Memory.Budget)
	if report.Memory.Peak == 0 || report.Memory.Peak > memory || report.Memory.Budget != memory {
		t.Errorf("peak resident size %d with a budget of %d", report.Memory.Peak, report.Memory.Budget)
	}
}
