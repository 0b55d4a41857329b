package check

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
)

// patience is for what takes seconds on a machine that is not busy.
const patience = 2 * time.Minute

// TestPodsCompleteARun starts the pods of an overlay, evicts the worker that trains
// and then the coordinator, replaces them as the Job controller does, and compares
// the run with one on a single machine.
func TestPodsCompleteARun(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("mounting the pods' volumes needs root")
	}
	keys := filepath.Join(t.TempDir(), "keys")
	run(t, "cluster-keys", "--out", keys)
	single := filepath.Join(t.TempDir(), "run")
	run(t, "run", "--config", "../base/job.yaml", "--run", single, "--memory", "1GiB", "--quiet")
	want := hashes(t, single)
	for _, overlay := range []string{"jobs", "jobset"} {
		t.Run(overlay, func(t *testing.T) {
			c := load(t, overlay)
			h := &host{dir: t.TempDir(), c: c, pods: c.pods(), secrets: map[string]string{"ndls-keys": keys}}
			must(t, os.Chmod(h.dir, 0o755))
			running := map[string]*container{}
			for _, p := range h.pods {
				running[p.name] = h.start(t, p)
			}
			coordinator := h.pods[0]
			trains := h.trainer(t, running[coordinator.name])
			for _, p := range []pod{trains, coordinator} {
				running[p.name] = h.evict(t, p, running[p.name])
			}
			for _, p := range h.pods {
				ended(t, p, running[p.name])
				if status := running[p.name].status(); status != 0 {
					t.Errorf("%s ended with status %d", p.name, status)
				}
			}
			got := hashes(t, filepath.Join(h.dir, "ndls-data", "run"))
			if len(want) == 0 || len(got) != len(want) {
				t.Errorf("%d files, want %d", len(got), len(want))
			}
			for name, sum := range want {
				if got[name] != sum {
					t.Errorf("%s has SHA-256 %.12s, want %.12s", name, got[name], sum)
				}
			}
		})
	}
}

// trainer waits for the coordinator's pod to pass its probe, and then for the
// stage that takes longest. It returns the pod of the worker that has it.
func (h *host) trainer(t *testing.T, c *container) pod {
	t.Helper()
	client := http.Client{Timeout: 10 * time.Second}
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		select {
		case <-c.done:
			t.Fatalf("the coordinator ended with status %d before the run had trained", c.status())
		default:
		}
		// It answers 503 from when it listens until the job begins.
		answer, err := client.Get(h.url(h.pods[0], h.pods[0].container().ReadinessProbe.HTTPGet.Path))
		if err != nil {
			continue
		}
		_ = answer.Body.Close()
		if answer.StatusCode != http.StatusOK {
			continue
		}
		var status struct{ Workers []struct{ Name, Task string } }
		if answer, err = client.Get(h.url(h.pods[0], "/status")); err != nil {
			continue
		}
		err = json.NewDecoder(answer.Body).Decode(&status)
		_ = answer.Body.Close()
		must(t, err)
		for _, w := range status.Workers {
			for _, p := range h.pods {
				// A worker's name begins with that of its host.
				if w.Task == "train" && strings.HasPrefix(w.Name, p.name+"-") {
					return p
				}
			}
		}
	}
	t.Fatal("no worker trains")
	return pod{}
}

// evict terminates a pod and starts its replacement, if the Job has one without
// counting a failure.
func (h *host) evict(t *testing.T, p pod, c *container) *container {
	t.Helper()
	must(t, c.cmd.Process.Signal(syscall.SIGTERM))
	ended(t, p, c)
	if got := action(p.job, c.status()); got != batchv1.PodFailurePolicyActionIgnore {
		t.Fatalf("%s ended with status %d after SIGTERM: the Job's action is %s", p.name, c.status(), got)
	}
	return h.start(t, p)
}

func ended(t *testing.T, p pod, c *container) {
	t.Helper()
	select {
	case <-c.done:
	case <-time.After(patience):
		t.Fatalf("%s does not end", p.name)
	}
}

// outputs are the folders of a run that other programs read.
var outputs = []string{"graph", "lsi", "smoothed", "soft_labels", "model", "predictions"}

// hashes gives the SHA-256 of every output.
func hashes(t *testing.T, dir string) map[string]string {
	t.Helper()
	sums := map[string]string{}
	for _, output := range outputs {
		err := filepath.WalkDir(filepath.Join(dir, output), func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			text, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			sum := sha256.Sum256(text)
			name, err := filepath.Rel(dir, path)
			sums[name] = hex.EncodeToString(sum[:])
			return err
		})
		must(t, err)
	}
	return sums
}

// TestImageIsStatic wants a program that needs no other file.
func TestImageIsStatic(t *testing.T) {
	if out, err := exec.Command("ldd", binary).CombinedOutput(); err == nil {
		t.Errorf("ndls is linked with\n%s", out)
	}
}
