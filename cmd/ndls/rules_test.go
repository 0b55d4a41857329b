package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ndls"
)

// TestOneRuleAfterAnother smooths a graph by one rule after the other. Options of a rule that the
// next one does not take go with it, unless they are given again.
func TestOneRuleAfterAnother(t *testing.T) {
	dir := t.TempDir()
	run := filepath.Join(dir, "run")
	expect(t, 0, "600 nodes", "partition", "--dataset", toy, "--run", run, "--quiet")
	expect(t, 0, "mean K", "lsi", "--run", run, "--epsilon", "0.2", "--quiet")
	smooth := func(status int, want, options string) {
		t.Helper()
		expect(t, status, want, append([]string{"smooth", "--run", run, "--resume=false", "--quiet"}, strings.Fields(options)...)...)
	}
	exported := func(what string) string {
		t.Helper()
		out := filepath.Join(dir, "out.csv")
		expect(t, 0, "600 rows", "export", "--run", run, "--what", what, "--format", "csv", "--out", out, "--force", "--quiet")
		text, err := os.ReadFile(out)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	const done = "smooth: 600 rows"
	smooth(0, done, "--rule ndls")
	plain := exported("smoothed")
	smooth(0, done, "--residual 0.3")
	if exported("smoothed") == plain {
		t.Error("the residual does not show")
	}
	smooth(0, done, "--rule gbp --depth node --hops 4")
	gbp := exported("smoothed")
	smooth(0, done, "--rule gbp --depth node --hops 4 --alpha 0.5")
	if exported("smoothed") == gbp {
		t.Error("alpha does not show")
	}
	smooth(0, done, "--rule nafs")
	byNode := exported("smoothed")
	smooth(0, done, "--depth=")
	if exported("smoothed") == byNode {
		t.Error("--depth node does not show, or was not left from the rule before")
	}
	smooth(0, done, "--rule sign --depth node --hops 3")
	if lines := strings.Split(exported("hops"), "\n"); len(lines) != 602 {
		t.Errorf("%d lines of hops", len(lines))
	}
	smooth(0, done, "--rule ndls")
	if exported("smoothed") != plain {
		t.Error("options of other rules are left")
	}
	smooth(ndls.ExitUsage, "leave --depth out", "--depth node")
	smooth(ndls.ExitUsage, "only ndls takes it", "--rule sgc --residual 0.2")
	expect(t, 0, "smooth", "plan", "--dataset", toy, "--rule", "nafs", "--hops", "5")
}
