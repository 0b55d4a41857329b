package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"ndls"
)

// TestVariables: command line, variable, configuration file, default, in this order.
func TestVariables(t *testing.T) {
	dir := t.TempDir()
	run := filepath.Join(dir, "run")
	t.Setenv("NDLS_RUN", run)
	t.Setenv("NDLS_DATASET", "karate:")
	t.Setenv("NDLS_MEMORY", "256MiB")
	t.Setenv("NDLS_QUIET", "true")
	t.Setenv("NDLS_PROBES", "32")
	t.Setenv("NDLS_EPSILON", "0.2")
	t.Setenv("NDLS_KMAX", "")
	t.Setenv("NDLS_NOTHING", "of ours")
	t.Setenv("NDLS_CONFIG", write(t, filepath.Join(dir, "c.yaml"), "epsilon: 0.3\nkmax: 50\nprobes: 48\n"))
	expect(t, 0, "", "run", "--probes", "16")
	var in struct {
		Plan   struct{ LSI map[string]any }
		Memory int64 `json:"memory_budget_bytes"`
	}
	decode(t, expect(t, 0, "", "inspect", "--json").stdout, &in)
	for key, want := range map[string]any{"probes": 16.0, "epsilon": 0.2, "kmax": 50.0} {
		if in.Plan.LSI[key] != want {
			t.Errorf("lsi.%s = %v, want %v", key, in.Plan.LSI[key], want)
		}
	}
	if in.Memory != 256<<20 {
		t.Errorf("memory %d", in.Memory)
	}
	// --dataset excludes --run, also that of the variable.
	expect(t, 0, "34, ids of type int64", "inspect", "--dataset", "karate:")
	t.Setenv("NDLS_THREADS", "many")
	expect(t, ndls.ExitUsage, "the environment variable NDLS_THREADS", "version")
}

// TestMisspelt: a variable that is nearly one of ours is named, and others are not: those of no option at all, of
// tests, of the Python package, and empty ones.
func TestMisspelt(t *testing.T) {
	for name, meant := range map[string]string{"NDLS_MEMROY": "NDLS_MEMORY", "NDLS_THREAD": "NDLS_THREADS", "NDLS_EPOCH": "NDLS_EPOCHS"} {
		t.Run(name, func(t *testing.T) {
			t.Setenv(name, "2")
			if text := expect(t, 0, "", "version").stderr; !strings.Contains(text, name+" stands for no option; did you mean "+meant+"?") {
				t.Errorf("%s: %q", name, text)
			}
		})
	}
	for _, name := range []string{"NDLS_MEMORY", "NDLS_EPOCHS", "NDLS_CONFIG", "NDLS_DATA", "NDLS_BINARY", "NDLS_CHAOS", "NDLS_NOTHING", "NDLS"} {
		a := newApp(&strings.Builder{}, &strings.Builder{})
		if lines := misspelt(a.root(), []string{name + "=1", "NDLS_MEMROY="}); len(lines) > 0 {
			t.Errorf("%s: %q", name, lines)
		}
	}
}

// TestEachFlagHasAVariable finds options that no variable stands for.
func TestEachFlagHasAVariable(t *testing.T) {
	a := newApp(&strings.Builder{}, &strings.Builder{})
	var without []string
	visitCommands(a.root(), func(cmd *cobra.Command) {
		cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
			if ndls.Variable(f.Name) == "" {
				without = append(without, cmd.Name()+" --"+f.Name)
			}
		})
	})
	if len(without) > 0 {
		t.Errorf("no variable stands for %v", without)
	}
}

// resultOf reads the line of --result.
func resultOf(t *testing.T, path string) (v struct {
	Command string
	Status  int `json:"exit_status"`
	Error   string
	Seconds float64
	Result  map[string]any
},
) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Count(string(text), "\n") != 1 {
		t.Errorf("--result has %q", text)
	}
	if err := json.Unmarshal(text, &v); err != nil {
		t.Fatal(err)
	}
	return v
}

// TestResult: success, errors of all kinds, and what an earlier command left.
func TestResult(t *testing.T) {
	dir := t.TempDir()
	run, file := filepath.Join(dir, "run"), filepath.Join(dir, "result.json")
	args := append([]string{"run", "--dataset", toy, "--run", run, "--result", file}, quickly...)
	expect(t, 0, "accuracy in %", args...)
	v := resultOf(t, file)
	accuracy, _ := v.Result["accuracy"].(map[string]any)
	if v.Command != "ndls run" || v.Status != 0 || v.Error != "" || v.Seconds <= 0 || v.Result["state"] != "COMPLETE" || accuracy == nil {
		t.Errorf("%+v", v)
	}
	// The same as the last line of --json.
	lines := strings.Split(strings.TrimSpace(expect(t, 0, "", append(args, "--json")...).stdout), "\n")
	var last map[string]any
	decode(t, lines[len(lines)-1], &last)
	again, err := json.Marshal(resultOf(t, file).Result)
	if err != nil {
		t.Fatal(err)
	}
	want, err := json.Marshal(last)
	if err != nil || string(again) != string(want) {
		t.Errorf("--result has\n%s\nand --json\n%s\n%v", again, want, err)
	}
	for _, c := range []struct {
		name, want string
		status     int
		args       []string
	}{
		{"plan mismatch", "epsilon", ndls.ExitMismatch, append(slices.Clone(args), "--epsilon", "0.3")},
		{"value that cannot be", "--threads", ndls.ExitUsage, []string{"version", "--result", file, "--threads", "0"}},
		{"unknown flag", "--nothing", ndls.ExitUsage, []string{"version", "--nothing", "--result", file}},
		{"missing flag", "--run is needed", ndls.ExitUsage, []string{"lsi", "--result=" + file}},
		{"unknown verb", "unknown command", ndls.ExitUsage, []string{"smoth", "--result", file}},
		{"budget", "--memory", ndls.ExitBudget, []string{"lsi", "--run", run, "--memory", "1MiB", "--result", file}},
	} {
		t.Run(c.name, func(t *testing.T) {
			write(t, file, "what an earlier command left")
			expect(t, c.status, "", c.args...)
			if v := resultOf(t, file); v.Status != c.status || !strings.Contains(v.Error, c.want) || v.Result != nil {
				t.Errorf("%+v", v)
			}
		})
	}
	t.Setenv("NDLS_RESULT", file)
	expect(t, 0, "", "version")
	if v := resultOf(t, file); v.Result["ndls"] != ndls.Version {
		t.Errorf("%+v", v)
	}
	expect(t, ndls.ExitUsage, "--result", "version", "--result", filepath.Join(dir, "missing", "result.json"))
	expect(t, ndls.ExitUsage, "is a folder", "version", "--result", dir)
	// A device takes the line.
	if r := expect(t, 0, `"exit_status":0`, "version", "--quiet", "--result", "/dev/stderr"); strings.Contains(r.stdout, "exit_status") {
		t.Errorf("%q", r.stdout)
	}
	// Worker processes do not write it.
	expect(t, 0, "", "run", "--dataset", "karate:", "--run", filepath.Join(dir, "shared"), "--workers", "1", "--memory", "512MiB", "--quiet")
	if v := resultOf(t, file); v.Command != "ndls run" {
		t.Errorf("%+v", v)
	}
}
