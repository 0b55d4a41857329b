package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"ndls"
	"ndls/bench/reproduce"
)

// program is ndls, with ndls-lab beside it, as a user runs them.
var program string

func TestMain(m *testing.M) {
	os.Exit(func() int {
		dir, err := os.MkdirTemp("", "ndls-lab")
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer os.RemoveAll(dir)
		program = filepath.Join(dir, "ndls")
		for name, folder := range map[string]string{"ndls": "../../cmd/ndls", "ndls-lab": "."} {
			if out, err := exec.Command("go", "build", "-C", folder, "-o", filepath.Join(dir, name), ".").CombinedOutput(); err != nil {
				fmt.Fprintf(os.Stderr, "%v\n%s", err, out)
				return 1
			}
		}
		return m.Run()
	}())
}

// ndlsWith runs ndls, and returns its status and all that it prints.
func ndlsWith(args ...string) (status int, text string) {
	cmd := exec.Command(program, args...)
	out, err := cmd.CombinedOutput()
	if cmd.ProcessState == nil {
		return -1, err.Error()
	}
	return cmd.ProcessState.ExitCode(), string(out)
}

// TestThroughNdls makes a figure and measures, by the verbs of ndls.
func TestThroughNdls(t *testing.T) {
	dir := t.TempDir()
	if status, text := ndlsWith("reproduce", "karate", "--out", dir, "--memory", "256MiB", "--quiet"); status != 0 || !strings.Contains(text, "karate.svg") {
		t.Errorf("status %d: %s", status, text)
	}
	for _, name := range []string{"karate.png", "karate.svg"} {
		if info, err := os.Stat(filepath.Join(dir, name)); err != nil || info.Size() < 1000 {
			t.Errorf("%s: %v", name, err)
		}
	}
	t.Setenv("NDLS_THREADS", "1")
	status, text := ndlsWith("--json", "bench", "kernel", "--nodes", "40000", "--edges", "90000", "--rounds", "1", "--memory", "256MiB")
	if status != 0 || strings.Count(text, "\n") != 3 || !strings.Contains(text, `"threads":1,`) {
		t.Errorf("status %d: %s", status, text)
	}
}

func TestUsage(t *testing.T) {
	dir := t.TempDir()
	tables := []string{"reproduce", "transductive", "--out", filepath.Join(dir, "tables")}
	for _, tc := range []struct {
		name, want string
		args       []string
		status     int
	}{
		{"data set of another table", "--sets karate", append(tables, "--sets", "karate"), ndls.ExitUsage},
		{"data that are missing", "cora/ind.cora.x", append(tables, "--sets", "cora", "--data", dir), ndls.ExitUsage},
		{"negative trials", "--trials -1", append(tables, "--trials", "-1"), ndls.ExitUsage},
		{"no experiment", "choose one of", []string{"reproduce", "karat", "--out", dir}, ndls.ExitUsage},
		{"no name", "usage: ndls-lab reproduce NAME", []string{"reproduce", "--out", dir}, ndls.ExitUsage},
		{"no folder", `"out" not set`, []string{"reproduce", "karate"}, ndls.ExitUsage},
		{"unknown option", "unknown flag: --nods", []string{"bench", "kernel", "--nods", "3"}, ndls.ExitUsage},
		{"memory", "no amount of memory", []string{"bench", "kernel", "--memory", "much"}, ndls.ExitUsage},
		{"little memory", "--memory", []string{"bench", "kernel", "--memory", "1MiB"}, ndls.ExitBudget},
		{"kernel", "--kernel", []string{"bench", "kernel", "--kernel", "sse"}, ndls.ExitUsage},
		{"log level", "--log-level", []string{"bench", "kernel", "--log-level", "loud"}, ndls.ExitUsage},
		{"threads", "--threads 0", []string{"bench", "kernel", "--threads", "0"}, ndls.ExitUsage},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var out, errs bytes.Buffer
			if status := run(t.Context(), tc.args, &out, &errs); status != tc.status || !strings.Contains(errs.String(), tc.want) {
				t.Errorf("status %d: %s", status, errs.String())
			}
		})
	}
}

// TestPrintedLines has ndls read the lines that help and errors tell the user to type. With --help behind a line it
// refuses what it does not know, and does nothing.
func TestPrintedLines(t *testing.T) {
	var lines []string
	for _, e := range reproduce.All {
		lines = append(lines, e.Lines...)
	}
	var visit func(cmd *cobra.Command)
	visit = func(cmd *cobra.Command) {
		lines = append(lines, strings.Split(cmd.Example, "\n")...)
		for _, c := range cmd.Commands() {
			visit(c)
		}
	}
	visit((&app{}).root())
	read := 0
	for _, line := range lines {
		line, ok := strings.CutPrefix(strings.TrimSpace(line), "ndls ")
		if !ok {
			continue // of the shell, or of another program
		}
		words := strings.Fields(strings.NewReplacer("'", "", `"`, "").Replace(line))
		if status, text := ndlsWith(append(words, "--help")...); status != 0 {
			t.Errorf("ndls %s: status %d\n%s", line, status, text)
		}
		read++
	}
	if read < len(reproduce.All) {
		t.Errorf("only %d lines were read", read)
	}
}
