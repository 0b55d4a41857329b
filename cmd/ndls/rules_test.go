package main

import (
	"fmt"
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
	smooth(0, done, "--rule sgc --hops 2 --r 0.4")
	other := exported("smoothed")
	smooth(0, done, "--rule sgc --hops 2 --r 0.3")
	before := exported("smoothed")
	if before == other {
		t.Error("--r does not show")
	}
	for _, rule := range []string{"ndls", "ndls-reference", "nafs", "sgc --depth node"} {
		smooth(ndls.ExitError, "run this first: ndls lsi --run ", "--rule "+rule)
	}
	expect(t, 0, "mean K", "lsi", "--run", run, "--epsilon", "0.2", "--r", "0.3", "--quiet")
	smooth(0, done, "--rule sgc --hops 2")
	if exported("smoothed") != before {
		t.Error("rows of sgc are others after lsi")
	}
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
	smooth(ndls.ExitUsage, "only --rule ndls has it", "--rule sgc --residual 0.2")
	expect(t, 0, "smooth", "plan", "--dataset", toy, "--rule", "nafs", "--hops", "5")
}

// TestEdgesAlone trains on rows of a graph that has no features.
func TestEdgesAlone(t *testing.T) {
	for _, batch := range []string{"0", "32"} {
		run := filepath.Join(t.TempDir(), "run")
		args := append([]string{"run", "--dataset", toy, "--run", run, "--features", "none", "--rule", "fastrp", "--batch-size", batch}, quickly...)
		expect(t, 0, "before label smoothing", args...)
		expect(t, 0, "600 rows", "export", "--run", run, "--what", "predictions", "--format", "csv", "--out", filepath.Join(t.TempDir(), "predictions.csv"))
	}
}

// TestZeroIsNoValue refuses zero for options whose default a plan writes as zero: a user who writes
// 0 does not mean 0.8.
func TestZeroIsNoValue(t *testing.T) {
	for _, option := range []string{
		"--label-rule cs --cs-correct-alpha 0", "--label-rule cs --cs-correct-hops 0", "--label-rule cs --cs-smooth-alpha 0",
		"--rule fastrp --dimensions 0", "--rule fastrp --sparsity 0", "--rule fastrp --dimensions -3", "--label-rule cs --cs-smooth-alpha NaN",
	} {
		expect(t, ndls.ExitUsage, "is not above 0", append([]string{"plan", "--dataset", toy}, strings.Fields(option)...)...)
	}
	expect(t, ndls.ExitUsage, "is no whole number", "plan", "--dataset", toy, "--rule", "fastrp", "--dimensions", "1.5")
	expect(t, 0, "smooth-labels", "plan", "--dataset", toy, "--label-rule", "cs", "--cs-correct-alpha", "0.5", "--cs-correct-hops", "7")
	expect(t, ndls.ExitUsage, "the same number of hops of all nodes", "plan", "--dataset", toy, "--label-rule", "cs", "--label-epsilon", "0.1")
}

// TestUnusedOptions refuses options that a user gives where they decide nothing, and says so of those
// that scripts give for all modes alike.
func TestUnusedOptions(t *testing.T) {
	plan := func(options string) []string {
		return append([]string{"plan", "--measure=false", "--dataset", toy}, strings.Fields(options)...)
	}
	for options, want := range map[string]string{
		"--alpha 0.2":                             "features is --residual",
		"--rule sgc --alpha 0.2":                  "only ndls-reference, s2gc, gbp and appnp have one",
		"--rule sign --alpha 0.15":                "leave --alpha out", // the default, but given
		"--hops 3":                                "--rule ndls takes K hops of each node",
		"--rule ndls-reference --hops 3":          "leave --hops out",
		"--rule fastrp --hops 3":                  "those of --hop-weights",
		"--label-alpha 0.2":                       "only ndls-reference has one",
		"--label-rule cs --label-alpha 0.2":       "leave --label-alpha out",
		"--rule gbp --alpha 0.2 --label-alpha .5": "leave --label-alpha out",
	} {
		expect(t, ndls.ExitUsage, want, plan(options)...)
	}
	for options, want := range map[string]string{
		"--lsi influence-exact --probes 64":                       "--probes decides nothing here",
		"--lsi feature --probes 64":                               "--probes decides nothing here",
		"--label-kmax 40 --label-depth 3":                         "--label-kmax decides nothing here",
		"--layers 1 --hidden 32":                                  "--hidden decides nothing here",
		"--rule gbp --hops 3 --alpha 0.2":                         "",
		"--rule ndls-reference --alpha 0.2":                       "",
		"--label-rule ndls-reference --label-alpha 0.2":           "",
		"--lsi feature-sketch --probes 64":                        "",
		"--label-kmax 30 --label-depth auto --rule nafs --hops 3": "",
	} {
		r := expect(t, 0, want, plan(options)...)
		if want == "" && strings.Contains(r.stderr, "decides nothing") {
			t.Errorf("%s: %s", options, r.stderr)
		}
	}
	// What counts is the rule of the run directory, where none is given.
	run := filepath.Join(t.TempDir(), "run")
	expect(t, 0, "600 nodes", "partition", "--dataset", toy, "--run", run, "--quiet")
	expect(t, 0, "mean K", "lsi", "--run", run, "--epsilon", "0.2", "--quiet")
	expect(t, 0, "600 rows", "smooth", "--run", run, "--rule", "gbp", "--hops", "2", "--quiet")
	expect(t, 0, "600 rows", "smooth", "--run", run, "--alpha", "0.3", "--depth", "node", "--resume=false", "--quiet")
	expect(t, ndls.ExitUsage, "leave --alpha out", "smooth", "--run", run, "--rule", "sgc", "--alpha", "0.3", "--resume=false", "--quiet")
	config := write(t, filepath.Join(t.TempDir(), "ndls.yaml"), "rule: sgc\nalpha: 0.3\n")
	expect(t, ndls.ExitUsage, "leave --alpha out", "smooth", "--run", run, "--config", config, "--resume=false", "--quiet")
}

// TestInspectAPart inspects the part of a graph that an import with the same options would take.
func TestInspectAPart(t *testing.T) {
	run := filepath.Join(t.TempDir(), "run")
	options := []string{"--only", "train", "--drop-edges", "0.3"}
	expect(t, 0, "nodes", append([]string{"partition", "--dataset", toy, "--run", run, "--quiet"}, options...)...)
	d, err := ndls.Open(t.Context(), run)
	if err != nil {
		t.Fatal(err)
	}
	g, err := d.Graph(t.Context())
	if err != nil || g.Dropped == 0 {
		t.Fatalf("%+v, %v", g, err)
	}
	expect(t, 0, fmt.Sprintf("%d, of %d rows", g.Edges, g.InputRows), append([]string{"inspect", "--dataset", toy, "--quiet"}, options...)...)
}
