package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// TestPrintedLines reads the lines that help and errors tell the user to type, as the command line does.
func TestPrintedLines(t *testing.T) {
	a := newApp(&strings.Builder{}, &strings.Builder{})
	var lines []string
	visitCommands(a.root(), func(cmd *cobra.Command) {
		for line := range strings.Lines(strings.ReplaceAll(cmd.Example, "\\\n", " ")) {
			lines = append(lines, strings.TrimSpace(line))
		}
	})
	read := 0
	for _, line := range lines {
		line, ok := strings.CutPrefix(line, "ndls ")
		if !ok {
			continue // of the shell, or of another program
		}
		line, _, _ = strings.Cut(line, " #")
		words := strings.Fields(strings.NewReplacer("'", "", `"`, "").Replace(line))
		if i := slices.IndexFunc(words, func(w string) bool {
			return w == "|" || strings.HasPrefix(w, ">") || w == "&&" || w == "&" || w == "--"
		}); i >= 0 {
			words = words[:i]
		}
		cmd, rest, err := a.root().Find(words)
		if err == nil {
			err = cmd.ParseFlags(rest)
		}
		if err != nil {
			t.Errorf("ndls %s: %v", line, err)
		}
		read++
	}
	if read < 20 {
		t.Errorf("only %d lines were read", read)
	}
}
