package main

import (
	"bytes"
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// bench runs one of the commands of `ndls bench` with --json.
func bench(t *testing.T, command func(*app) *cobra.Command, args ...string) ([]fileRate, error) {
	t.Helper()
	var out bytes.Buffer
	a := &app{stdout: &out, stderr: &out, memory: "256MiB", threads: 2, kernel: "auto", logLevel: "warn", scratch: t.TempDir(), json: true, quiet: true}
	cmd := command(a)
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	cmd.SetArgs(args)
	if err := cmd.ExecuteContext(t.Context()); err != nil {
		return nil, err
	}
	if left, err := os.ReadDir(a.scratch); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
	var all []fileRate
	for line := range strings.Lines(out.String()) {
		var r fileRate
		dec := json.NewDecoder(strings.NewReader(line))
		dec.DisallowUnknownFields()
		if err := dec.Decode(&r); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		all = append(all, r)
	}
	return all, nil
}

func TestBenchOfFiles(t *testing.T) {
	for _, c := range []struct {
		name    string
		command func(*app) *cobra.Command
		args    []string
		rows    []int64 // of each line
	}{
		{"shards", (*app).benchShardsCommand, []string{"--edges=5000", "--rows=700", "--columns=9", "--rounds=3"}, []int64{5000, 5000, 5000, 700, 700, 700}},
		{"train", (*app).benchTrainCommand, []string{"--rows=700", "--columns=9", "--classes=3", "--hidden=4", "--precision=float16", "--rounds=2"}, []int64{700, 700, 700, 700, 700}},
	} {
		t.Run(c.name, func(t *testing.T) {
			all, err := bench(t, c.command, c.args...)
			if err != nil || len(all) != len(c.rows) {
				t.Fatalf("%d lines: %v", len(all), err)
			}
			for i, r := range all {
				ordered := r.RowRate.Min > 0 && r.RowRate.Min <= r.RowRate.Median && r.RowRate.Median <= r.RowRate.Max
				if r.Bench != c.name || r.What == "" || r.Rows != c.rows[i] || r.Columns != 9 || r.Bytes <= 0 || !ordered {
					t.Errorf("%+v", r)
				}
			}
		})
	}
	for args, want := range map[string]string{
		"--rows=0":              "--rows 0 is less than 1",
		"--precision=bf16":      `--precision "bf16"`,
		"--edges=9999999999999": "node ids are too small",
	} {
		if _, err := bench(t, (*app).benchShardsCommand, args); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", args, err)
		}
	}
}
