package main

import (
	"path/filepath"
	"strings"
	"testing"

	"ndls"
)

// TestListDiffExplain uses the verbs that look at runs.
func TestListDiffExplain(t *testing.T) {
	dir := t.TempDir()
	a, b := filepath.Join(dir, "a"), filepath.Join(dir, "b")
	expect(t, 0, "", append([]string{"run", "--dataset", toy, "--run", a}, quickly...)...)
	expect(t, 0, "", append([]string{"run", "--dataset", toy, "--run", b, "--epsilon", "0.2"}, quickly...)...)

	list := expect(t, 0, "complete", "list", dir).stdout
	if lines := strings.Split(strings.TrimSpace(list), "\n"); len(lines) != 3 || !strings.Contains(lines[0], "valid in %") || !strings.Contains(lines[1], a) || !strings.Contains(lines[2], toy) {
		t.Errorf("ndls list:\n%s", list)
	}
	var s ndls.RunSummary
	decode(t, expect(t, 0, "", "list", a, "--json").stdout, &s)
	if s.Run != a || s.State != ndls.Complete || s.After.Test == nil {
		t.Errorf("%+v", s)
	}
	if r := expect(t, 0, "", "list", t.TempDir()); r.stdout != "" {
		t.Errorf("a folder without runs: %q", r.stdout)
	}

	same := expect(t, 0, "other files: none", "diff", a, a)
	if same.stderr != "" {
		t.Errorf("%q", same.stderr)
	}
	other := expect(t, ndls.ExitError, "epsilon", "diff", a, b)
	for _, want := range []string{"0.03", "0.2", "versions", "the same", "lsi (1 other bytes)", "edges", "valid, after label smoothing"} {
		if !strings.Contains(other.stdout, want) {
			t.Errorf("ndls diff does not say %q:\n%s", want, other.stdout)
		}
	}
	if other.stderr != "" {
		t.Errorf("a difference is told as an error: %q", other.stderr)
	}
	var x ndls.Difference
	decode(t, expect(t, ndls.ExitError, "", "diff", a, b, "--json").stdout, &x)
	if x.Same || len(x.Options) != 1 {
		t.Errorf("%+v", x)
	}
	expect(t, ndls.ExitError, "does not exist", "diff", a, filepath.Join(dir, "missing"))
	expect(t, ndls.ExitUsage, "give two run directories", "diff", a)

	text := expect(t, 0, "distance of influence", "explain", "--run", a, "--node", "17").stdout
	for _, want := range []string{"node", "its neighbours' K", "neighbour  degree  K", "before label smoothing", "label smoothing: --label-rule ndls", "computed for this node", "  below 0.03"} {
		if !strings.Contains(text, want) {
			t.Errorf("ndls explain does not say %q:\n%s", want, text)
		}
	}
	var e ndls.Explanation
	decode(t, expect(t, 0, "", "explain", "--run", a, "--node", "17", "--json", "--hops", "3", "--neighbours", "0").stdout, &e)
	if e.ID != "17" || len(e.Distances.Hops) < 4 || len(e.Neighbours.First) != 0 || e.After == nil || e.K == nil {
		t.Errorf("%+v", e)
	}
	expect(t, ndls.ExitUsage, "no node of the run has this id; the ids are numbers from 0 to 599", "explain", "--run", a, "--node", "600")
	expect(t, ndls.ExitUsage, "--node is needed", "explain", "--run", a)
}
