package main

import (
	"bytes"
	"encoding/json"
	"os"
	"strings"
	"testing"
)

// runBench gives the lines of a command of `ndls bench` with --json.
func runBench(t *testing.T, args ...string) ([]map[string]any, error) {
	t.Helper()
	var out bytes.Buffer
	a := &app{stdout: &out, stderr: &out}
	root := a.root()
	root.SilenceErrors, root.SilenceUsage = true, true
	dir := t.TempDir()
	root.SetArgs(append([]string{"bench", "--memory=256MiB", "--threads=2", "--json", "--quiet", "--scratch=" + dir}, args...))
	if err := root.ExecuteContext(t.Context()); err != nil {
		return nil, err
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
	var all []map[string]any
	for line := range strings.Lines(out.String()) {
		var r map[string]any
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		all = append(all, r)
	}
	return all, nil
}

func TestBenchOfThePass(t *testing.T) {
	for _, c := range []struct {
		name  string
		args  []string
		lines []string // what each line is of
		rate  string
	}{
		{"kernel", []string{"kernel", "--nodes=40000", "--edges=90000", "--rounds=2"}, []string{"gather", "csr", "pass"}, "edges_per_second"},
		{"kernel", []string{"kernel", "--nodes=500", "--edges=20000", "--columns=32", "--precision=float16", "--rounds=1"}, []string{"gather", "csr", "pass"}, "edges_per_second"},
		{"stream", []string{"stream", "--nodes=40000", "--edges=90000", "--rounds=2"}, []string{"read", "resident", "disk", "ratio"}, "edges_per_second"},
		{"stream", []string{"stream", "--nodes=40000", "--edges=90000", "--columns=48", "--precision=float16", "--rounds=1"}, []string{"read", "resident", "disk", "ratio"}, "bytes_per_second"},
	} {
		t.Run(strings.Join(c.args, " "), func(t *testing.T) {
			all, err := runBench(t, c.args...)
			if err != nil || len(all) != len(c.lines) {
				t.Fatalf("%d lines: %v", len(all), err)
			}
			for i, what := range c.lines {
				r, key := all[i], c.rate
				if what == "ratio" {
					key = "ratio"
				}
				rate, _ := r[key].(map[string]any)
				if r["bench"] != c.name || r["what"] != what || r["threads"] != 2.0 || rate == nil || rate["min"].(float64) <= 0 || rate["median"].(float64) > rate["max"].(float64) {
					t.Errorf("line %d: %v", i, r)
				}
			}
		})
	}
	for args, want := range map[string]string{
		"kernel --columns=24":                         "24 columns",
		"kernel --precision=bf16":                     `"bf16"`,
		"kernel --rounds=0":                           "--rounds 0 is less than 1",
		"stream --edges=0":                            "--edges 0 is less than 1",
		"stream --run=nowhere":                        "does not exist",
		"stream --nodes=9999999999":                   "--nodes 9999999999",
		"kernel --nodes=900000000 --edges=1000000000": "does not fit",
	} {
		if _, err := runBench(t, strings.Fields(args)...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", args, err)
		}
	}
}
