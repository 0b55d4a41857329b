package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"ndls"
)

// TestReport makes pages of runs, and repeats a run by the command on its page.
func TestReport(t *testing.T) {
	dir := t.TempDir()
	a, b := filepath.Join(dir, "a"), filepath.Join(dir, "b")
	edges := filepath.Join(dir, "it's a list.txt")
	if err := os.WriteFile(edges, []byte("0 1\n1 2\n2 3\n3 0\n3 4\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	expect(t, 0, "", "run", "--dataset", "edges:"+edges, "--run", a, "--epsilon", "0.2", "--kmax", "7")
	var first ndls.Report
	decode(t, expect(t, 0, "", "report", a, "--json").stdout, &first)
	words, err := exec.Command("sh", "-c", "set -- "+first.Run.Command+`; printf '%s\n' "$@"`).Output()
	if err != nil {
		t.Fatal(err)
	}
	again := strings.Split(strings.TrimSpace(string(words)), "\n")
	if again[0] != "ndls" || again[1] != "run" || again[3] != "DIR" {
		t.Fatalf("the command is %q", again)
	}
	again[3] = b
	expect(t, 0, "", again[1:]...)
	var second ndls.Report
	decode(t, expect(t, 0, "", "report", b, "--json").stdout, &second)
	if first.Run.PlanHash != second.Run.PlanHash || first.Run.Command != second.Run.Command {
		t.Errorf("repeated as %q with plan %s, the first was %q with %s", second.Run.Command, second.Run.PlanHash, first.Run.Command, first.Run.PlanHash)
	}

	page := expect(t, 0, "<!doctype html>", "report", a).stdout
	own, err := os.ReadFile(filepath.Join(a, "report.html"))
	if err != nil || page != string(own) {
		t.Errorf("the page of a run is another one than its report.html (%v)", err)
	}
	out := filepath.Join(dir, "both.html")
	if r := expect(t, 0, "", "report", a, b, "--out", out); r.stdout != out+": the page of "+a+", "+b+"\n" {
		t.Errorf("with --out, stdout has %q", r.stdout)
	}
	both, err := os.ReadFile(out)
	if err != nil || !strings.Contains(string(both), "<title>ndls: 2 runs</title>") {
		t.Errorf("the page of both runs: %v", err)
	}
	expect(t, ndls.ExitError, "does not exist", "report", a, filepath.Join(dir, "missing"))
	expect(t, ndls.ExitUsage, "give one run directory or more", "report")
	expect(t, ndls.ExitError, "--out: there is no folder ", "report", a, "--out", filepath.Join(dir, "none", "x.html"))
}
