package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"ndls"
)

const token = "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"

// watched starts a run with a page, and returns the address of that. The run is killed when the test ends.
func watched(t *testing.T, cmd *exec.Cmd) (at string) {
	t.Helper()
	cmd.Env = append(os.Environ(), ndls.TokenVariable+"="+token)
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	lines := bufio.NewScanner(stderr)
	for at == "" && lines.Scan() {
		if m := regexp.MustCompile(`at=(http://127\.0\.0\.1:\d+/)`).FindStringSubmatch(lines.Text()); m != nil {
			at = m[1]
		}
	}
	go func() { _, _ = io.Copy(io.Discard, stderr) }()
	if at == "" {
		t.Fatal("the run does not say where its page is")
	}
	return at
}

// steer asks for something with the token.
func steer(t *testing.T, address string) {
	t.Helper()
	request, err := http.NewRequest(http.MethodPost, address, nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+token)
	answer, err := http.DefaultClient.Do(request)
	if err != nil || answer.StatusCode != http.StatusAccepted {
		t.Fatalf("%s is not done: %v, %v", address, answer, err)
	}
	_ = answer.Body.Close()
}

// TestDrainedRun stops a run after the task that is under way, and continues it.
func TestDrainedRun(t *testing.T) {
	run := filepath.Join(t.TempDir(), "run")
	args := []string{"run", "--dataset", "synthetic:nodes=20000,edges=200000,features=32,classes=4,seed=1", "--run", run, "--memory", "512MiB", "--runs", "1", "--epochs", "2"}
	started := exec.Command(binary, append(args, "--http", "127.0.0.1:0")...)
	steer(t, watched(t, started)+"drain")
	_ = started.Wait()
	if code := started.ProcessState.ExitCode(); code != ndls.ExitInterrupted {
		t.Errorf("status %d of a run that was drained", code)
	}
	if r := expect(t, 0, "", "inspect", "--run", run); !strings.Contains(r.stdout, "STOPPED: a request to /drain has stopped the run") {
		t.Errorf("the run directory does not say why the run has stopped:\n%s", r.stdout)
	}
	expect(t, 0, "", args...)
}

// TestStrangersDoNotEndARun has 600 strangers hold connections to the page of a run that may open 256 files. Its owner still
// sees it, and it ends well.
func TestStrangersDoNotEndARun(t *testing.T) {
	run := filepath.Join(t.TempDir(), "run")
	args := []string{
		"-c", `ulimit -n 256 && exec "$0" "$@"`, binary, "run", "--dataset", "synthetic:nodes=20000,edges=200000,features=32,classes=4,seed=1",
		"--run", run, "--memory", "512MiB", "--runs", "1", "--epochs", "1000000", "--patience", "0", "--http", "127.0.0.1:0",
	}
	started := exec.Command("sh", args...)
	at := watched(t, started)
	trains := func() bool {
		answer, err := http.Get(at + "status")
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		text, err := io.ReadAll(answer.Body)
		return err == nil && strings.Contains(string(text), `"stage":"train"`)
	}
	for end := time.Now().Add(time.Minute); !trains(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the run does not train")
		}
	}
	http.DefaultClient.CloseIdleConnections()
	address := strings.TrimSuffix(strings.TrimPrefix(at, "http://"), "/")
	for i := range 600 {
		conn, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatalf("connection %d: %v", i, err)
		}
		defer conn.Close()
		if i%3 == 0 { // others say nothing
			if _, err := io.WriteString(conn, "GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n"); err != nil {
				t.Fatal(err)
			}
		}
	}
	if list, err := os.ReadDir("/proc/" + strconv.Itoa(started.Process.Pid) + "/fd"); err != nil || len(list) > 128 {
		t.Errorf("%d files are open, %v", len(list), err)
	}
	if !trains() {
		t.Error("the owner does not see the run")
	}
	steer(t, at+"stop")
	_ = started.Wait()
	if code := started.ProcessState.ExitCode(); code != ndls.ExitInterrupted {
		t.Errorf("status %d of a run that was stopped", code)
	}
	if r := expect(t, 0, "", "inspect", "--run", run); !strings.Contains(r.stdout, "STOPPED: a request to /stop has stopped the run") {
		t.Errorf("the run has not stopped because it was told to:\n%s", r.stdout)
	}
}

// TestWatchedRun looks at a run over HTTP while it trains, and at its metrics in a file.
func TestWatchedRun(t *testing.T) {
	dir := t.TempDir()
	metrics := filepath.Join(dir, "ndls.prom")
	started := exec.Command(binary, "run", "--dataset", toy, "--run", filepath.Join(dir, "run"), "--memory", "512MiB", "--runs", "1", "--epochs", "1000000", "--patience", "0",
		"--http", "127.0.0.1:0", "--pprof", "--metrics-file", metrics)
	at := watched(t, started)
	read := func(path string) string {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	ask := func(path string) string {
		answer, err := http.Get(at + path)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		text, err := io.ReadAll(answer.Body)
		if err != nil || answer.StatusCode != http.StatusOK {
			t.Fatalf("%s: status %d, %v", path, answer.StatusCode, err)
		}
		return string(text)
	}
	var s struct {
		ndls.Status
		Course *struct {
			Stage   string  `json:"stage"`
			Seconds float64 `json:"seconds"`
		} `json:"course"`
		Log []struct {
			Text string `json:"text"`
		} `json:"log"`
	}
	deadline := time.Now().Add(time.Minute)
	for {
		if err := json.Unmarshal([]byte(ask("status")), &s); err != nil {
			t.Fatal(err)
		}
		if s.Stage == ndls.StageTrain && s.Course != nil && len(s.Workers) == 1 && s.Workers[0].Usage.Memory > 0 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("no training in a minute: %+v", s)
		}
		time.Sleep(50 * time.Millisecond)
	}
	if s.State != "running" || s.Course.Stage != "train" || s.Workers[0].Usage.Read == 0 || s.Stages[0].State != ndls.Complete {
		t.Errorf("status %+v, course %+v", s.Status, s.Course)
	}
	if n := len(s.Log); n < 3 || !strings.Contains(s.Log[n-1].Text, "begin stage=train") {
		t.Errorf("the log is %v", s.Log)
	}
	if page := ask(""); !strings.Contains(page, "<h1>train: stage 4 of 8</h1>") {
		t.Errorf("the page:\n%s", page)
	}
	for begun := time.Now(); ; time.Sleep(50 * time.Millisecond) { // until the training has been seen twice
		page := ask("")
		if strings.Contains(page, `id="learning"`) && strings.Contains(page, "<polyline") {
			for _, want := range []string{": 600 nodes, 2248 edges, 20 features, 3 classes</dd>", "Who did what when", `<i class="c2"></i>smooth`} {
				if !strings.Contains(page, want) {
					t.Errorf("the page lacks %q", want)
				}
			}
			break
		}
		if time.Since(begun) > time.Minute {
			t.Fatalf("the page shows no curve of the training:\n%s", page)
		}
	}
	ask("debug/pprof/")
	for name, text := range map[string]string{"/metrics": ask("metrics"), "the file": read(metrics)} {
		if !strings.Contains(text, "\nndls_workers ") || !strings.Contains(text, `ndls_build_info{commit=`) {
			t.Errorf("%s lacks metrics:\n%s", name, text)
		}
	}
	steer(t, at+"stop")
	_ = started.Wait()
	if text := read(metrics); !strings.Contains(text, `ndls_stage_seconds{stage="smooth"}`) {
		t.Errorf("the metrics at the end:\n%s", text)
	}
	if started.ProcessState.ExitCode() != ndls.ExitInterrupted {
		t.Errorf("status %d", started.ProcessState.ExitCode())
	}

	run := filepath.Join(dir, "other")
	expect(t, ndls.ExitUsage, "give --http 127.0.0.1:PORT", "run", "--dataset", toy, "--run", run, "--pprof")
	expect(t, ndls.ExitUsage, "to this host alone", "run", "--dataset", toy, "--run", run, "--pprof", "--http", "0.0.0.0:0")
	expect(t, ndls.ExitUsage, "no HOST:PORT", "run", "--dataset", toy, "--run", run, "--http", "8080")
	expect(t, ndls.ExitError, "--metrics-file: ", "run", "--dataset", toy, "--run", run, "--metrics-file", filepath.Join(dir, "none", "x.prom"))
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	expect(t, ndls.ExitError, "address already in use", "run", "--dataset", toy, "--run", run, "--http", taken.Addr().String())
	if _, err := os.Stat(run); err == nil {
		t.Error("a run that cannot be watched has made its run directory")
	}
	// What can be written no more in the middle of a run does not end it.
	folder := filepath.Join(dir, "metrics")
	if err := os.Mkdir(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(folder, "x.prom"), 0o755); err != nil {
		t.Fatal(err)
	}
	if r := expect(t, 0, "", append([]string{"run", "--dataset", toy, "--run", run, "--metrics-file", filepath.Join(folder, "x.prom")}, quickly...)...); !strings.Contains(r.stderr, "the run goes on") {
		t.Errorf("the log does not say that metrics are lost:\n%s", r.stderr)
	}
}

// TestMetricsOfACoordinator: what a coordinator with one worker serves is read by the parser of Prometheus, follows its
// conventions, and has what the worker says of itself.
func TestMetricsOfACoordinator(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	at := watched(t, exec.Command(binary, "coordinator", "--dataset", toy, "--run", dir, "--runs", "1", "--epochs", "1000000", "--patience", "0", "--lease", "2s", "--http", "127.0.0.1:0"))
	worker := exec.Command(binary, "worker", "--run", dir, "--memory", "512MiB", "--quiet")
	worker.Env = append(os.Environ(), ndls.TokenVariable+"="+token)
	if err := worker.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = worker.Process.Kill()
		_ = worker.Wait()
	}()
	parser := expfmt.NewTextParser(model.UTF8Validation)
	var text []byte
	families, err := parser.TextToMetricFamilies(bytes.NewReader(nil))
	if err != nil {
		t.Fatal(err)
	}
	// value returns the first metric of a family that has the label, or any metric if the label is
	// empty.
	value := func(name, label string) float64 {
		for _, m := range families[name].GetMetric() {
			found := label == ""
			for _, l := range m.GetLabel() {
				found = found || l.GetName()+"="+l.GetValue() == label
			}
			if found {
				return m.GetGauge().GetValue() + m.GetCounter().GetValue()
			}
		}
		return -1
	}
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(100 * time.Millisecond) {
		answer, err := http.Get(at + "metrics")
		if err != nil {
			t.Fatal(err)
		}
		text, err = io.ReadAll(answer.Body)
		_ = answer.Body.Close()
		if err != nil {
			t.Fatal(err)
		}
		if families, err = parser.TextToMetricFamilies(bytes.NewReader(text)); err != nil {
			t.Fatalf("%v in\n%s", err, text)
		}
		if value("ndls_tasks", "stage=train") >= 0 && value("ndls_progress_all", "") > 0 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("no training in a minute:\n%s", text)
		}
	}
	problems, err := promlint.New(bytes.NewReader(text)).Lint()
	if err != nil || len(problems) > 0 {
		t.Errorf("%v, %v", problems, err)
	}
	for _, want := range []struct {
		name, label string
		least       float64
	}{
		{"ndls_workers", "", 1},
		{"ndls_worker_up", "", 1},
		{"ndls_worker_threads", "", 1},
		{"ndls_worker_memory_budget_bytes", "", 512 << 20},
		{"ndls_worker_memory_bytes", "", 1},
		{"ndls_worker_edges_total", "", 1},
		{"ndls_worker_read_bytes_total", "", 1},
		{"ndls_worker_limit_edges_per_second", "", 1},
		{"ndls_worker_limit_read_bytes_per_second", "", 1},
		{"ndls_stage_state", "stage=smooth", 1},
		{"ndls_stage_seconds", "stage=partition", 0},
		{"ndls_stage_elapsed_seconds", "", 0},
		{"ndls_losses_total", "", 0},
		{"go_goroutines", "", 1},
		{"process_cpu_seconds_total", "", 0},
	} {
		if got := value(want.name, want.label); got < want.least {
			t.Errorf("%s %s is %g, want %g at least", want.name, want.label, got, want.least)
		}
	}
	steer(t, at+"stop")
}

// TestTasksUnderWayCount: long before the first of its tasks is done, a training on several workers says how far it is and
// how long it still takes.
func TestTasksUnderWayCount(t *testing.T) {
	started := exec.Command(binary, "run", "--dataset", toy, "--run", filepath.Join(t.TempDir(), "run"), "--memory", "1GiB", "--workers", "2", "--runs", "4",
		"--epochs", "20000", "--patience", "0", "--http", "127.0.0.1:0")
	at := watched(t, started)
	var s struct {
		ndls.Status
		Course *struct {
			Share *float64 `json:"share"`
			Left  *float64 `json:"left_seconds"`
		} `json:"course"`
	}
	for begun := time.Now(); ; time.Sleep(100 * time.Millisecond) {
		answer, err := http.Get(at + "status")
		if err != nil {
			t.Fatal(err)
		}
		err = json.NewDecoder(answer.Body).Decode(&s)
		_ = answer.Body.Close()
		if err != nil {
			t.Fatal(err)
		}
		if s.Stage == ndls.StageTrain && s.Course != nil && s.Course.Share != nil && *s.Course.Share > 0 && s.Course.Left != nil {
			if s.Tasks.Done > 0 && *s.Course.Share >= 1 {
				t.Fatal("a task was done before anything was said")
			}
			break
		}
		if s.Tasks.Done == 2 && s.Stage == ndls.StageTrain || time.Since(begun) > 2*time.Minute {
			t.Fatalf("nothing is said of the tasks under way: %+v", s.Status)
		}
		s.Course = nil
	}
	steer(t, at+"stop")
	_ = started.Wait()
}
