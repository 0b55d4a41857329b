package main

import (
	"strings"
	"testing"

	"ndls/internal/testkit"
)

// TestDemo has the report last, and commands to go on with before it; the same command again has nothing left to do.
func TestDemo(t *testing.T) {
	t.Chdir(t.TempDir())
	testkit.Slow(t, "half a minute of a run; make demo does the same")
	r := expect(t, 0, "ndls explain ndls-demo --node 17", "demo", "--quiet")
	lines := strings.Split(strings.TrimSpace(r.stdout), "\n")
	if last := lines[len(lines)-1]; !strings.HasSuffix(last, "report: ndls-demo/report.html") {
		t.Errorf("the last line is %q", last)
	}
	expect(t, 0, "prediction", "explain", "ndls-demo", "--node", "17", "--memory", "512MiB")
	expect(t, 0, "ndls-demo/report.html", "demo", "--quiet")
}
