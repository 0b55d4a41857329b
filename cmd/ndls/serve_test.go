package main

import (
	"bufio"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"ndls"
)

// TestServe shows the runs below a folder, the page of one, and of two side by side, until it is interrupted.
func TestServe(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"one", "two"} {
		expect(t, 0, "", append([]string{"run", "--dataset", toy, "--run", filepath.Join(dir, name)}, quickly...)...)
	}
	cmd := exec.Command(binary, "serve", dir, "--http", "127.0.0.1:0")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	said, err := bufio.NewReader(out).ReadString('\n')
	_, at, found := strings.Cut(strings.TrimSpace(said), "http://")
	if err != nil || !found {
		t.Fatalf("%q, %v", said, err)
	}
	read := func(path string) string {
		t.Helper()
		answer, err := http.Get("http://" + at + strings.TrimPrefix(path, "/"))
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = answer.Body.Close() }()
		text, err := io.ReadAll(answer.Body)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	list := read("/")
	for _, want := range []string{filepath.Join(dir, "one"), filepath.Join(dir, "two"), `<td class="bar" data-name="test, %"`, ">complete</td>"} {
		if !strings.Contains(list, want) {
			t.Errorf("the list lacks %q:\n%s", want, list)
		}
	}
	report, err := os.ReadFile(filepath.Join(dir, "one", "report.html"))
	if err != nil || read("/report?run="+filepath.Join(dir, "one")) != string(report) {
		t.Errorf("the page of a run is not its report: %v", err)
	}
	if both := read("/report?run=" + filepath.Join(dir, "one") + "&run=" + filepath.Join(dir, "two")); !strings.Contains(both, "<h1>2 runs</h1>") {
		t.Error("no page of two runs")
	}
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("an interrupt is an error: %v", err)
	}
	expect(t, ndls.ExitUsage, "is no HOST:PORT", "serve", dir, "--http", "here")
	expect(t, ndls.ExitError, "nothing", "serve", filepath.Join(dir, "nothing"))
}
