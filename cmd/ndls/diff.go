package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"ndls"
	"ndls/internal/mem"
)

func (a *app) diffCommand() *cobra.Command {
	var runs []string
	cmd := a.command("diff RUN RUN", "what two runs have not in common",
		`diff compares two run directories: options, versions of ndls, and input files by their digests; what
stages took; K and accuracies; and which files that the runs leave have the same bytes. It reads records
and catalogues, and no data: ndls verify compares the files with the catalogue.

The exit status is 0 where all results have the same bytes, and 1 where they do not, as for diff. Options,
versions, seconds and memory alone are no difference. Status 1 with a message on stderr is an
error; other errors have the statuses below.`,
		func(ctx context.Context, _ *cobra.Command) error {
			var open [2]*ndls.Directory
			for i, dir := range runs {
				d, err := a.open(ctx, dir)
				if err != nil {
					return err
				}
				open[i] = d
			}
			x, err := ndls.Diff(ctx, open[0], open[1])
			if err != nil {
				return err
			}
			err = a.jsonOr(x, func(w io.Writer) error { return printDiff(w, x) })
			if err == nil && !x.Same {
				err = ndls.ErrDiffer
			}
			return err
		})
	withArgs(cmd, wordCount(2, 2, "two run directories"), func(args []string) { runs = args })
	cmd.Example = `  ndls diff runs/a runs/b
  ndls diff runs/a runs/b --json | jq .options`
	return cmd
}

func printDiff(w io.Writer, x ndls.Difference) error {
	t := newTable(w, 2, 0)
	fmt.Fprintf(t, "\t%s\t%s\n", x.A, x.B)
	for _, part := range []struct {
		name string
		list []ndls.Change
	}{{"options", x.Options}, {"versions", x.Versions}, {"inputs", x.Inputs}} {
		if len(part.list) == 0 {
			fmt.Fprintf(t, "%s\tthe same\t\n", part.name)
			continue
		}
		fmt.Fprintf(t, "%s\t\t\n", part.name)
		for _, c := range part.list {
			fmt.Fprintf(t, "  %s\t%s\t%s\n", plain(c.Name), shown(c.A), shown(c.B))
		}
	}
	fmt.Fprintf(t, "stages\t\t\n")
	took := func(seconds float64, peak int64) string {
		if seconds == 0 && peak == 0 {
			return "–"
		}
		return fmt.Sprintf("%.1f s, %s", seconds, mem.Bytes(peak))
	}
	for _, s := range x.Stages {
		fmt.Fprintf(t, "  %s\t%s\t%s\n", s.Stage, took(s.SecondsA, s.PeakA), took(s.SecondsB, s.PeakB))
	}
	if k := x.K; k != nil {
		fmt.Fprintf(t, "K\t\t\n")
		fmt.Fprintf(t, "  mean\t%.2f\t%.2f\n  largest\t%d\t%d\n", k.MeanA, k.MeanB, k.MaxA, k.MaxB)
		fmt.Fprintf(t, "  never settled\t%.2f %%\t%.2f %%\n", 100*k.CappedA, 100*k.CappedB)
	}
	if acc := x.Accuracy; acc != nil {
		fmt.Fprintf(t, "accuracy in %%\t\t\n")
		for _, line := range []struct {
			name string
			a, b ndls.SplitAccuracy
		}{{"before label smoothing", acc.BeforeA, acc.BeforeB}, {"after label smoothing", acc.AfterA, acc.AfterB}} {
			fmt.Fprintf(t, "  valid, %s\t%s\t%s\n", line.name, mean(line.a.Valid), mean(line.b.Valid))
			fmt.Fprintf(t, "  test, %s\t%s\t%s\n", line.name, mean(line.a.Test), mean(line.b.Test))
		}
	}
	if err := t.Flush(); err != nil {
		return err
	}
	if k := x.K; k != nil {
		fmt.Fprintf(w, "K of %.2f %% of the nodes would have to change for the same distribution\n", 100*k.Moved)
	}
	return printFiles(w, x)
}

// shownDigest is the number of characters of a digest that are printed.
const shownDigest = 16

// shown is a value as it is printed.
func shown(value string) string {
	switch {
	case value == "":
		return "–"
	case len(value) == 64 && !strings.ContainsFunc(value, func(r rune) bool { return !strings.ContainsRune("0123456789abcdef", r) }):
		return value[:shownDigest] + "…"
	}
	return plain(value)
}

// printFiles says which files have the same bytes.
func printFiles(w io.Writer, x ndls.Difference) error {
	var same, other []string
	for _, f := range x.Files {
		if left := len(f.Other) + len(f.OnlyA) + len(f.OnlyB); left == 0 {
			same = append(same, f.Kind)
		} else {
			other = append(other, fmt.Sprintf("%s (%s)", f.Kind, strings.Join(slices.DeleteFunc([]string{
				some(f.Same, "the same"), some(len(f.Other), "other bytes"), some(len(f.OnlyA), "in the first only"),
				some(len(f.OnlyB), "in the second only"),
			}, func(s string) bool { return s == "" }), ", ")))
		}
	}
	fmt.Fprintf(w, "files with the same bytes: %s\n", cmp.Or(strings.Join(same, ", "), "none"))
	_, err := fmt.Fprintf(w, "other files: %s\n", cmp.Or(strings.Join(other, ", "), "none"))
	return err
}

// some is a number with what is counted, "" for 0.
func some(n int, what string) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf("%d %s", n, what)
}
