package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"ndls"
	"ndls/internal/mem"
)

func (a *app) listCommand() *cobra.Command {
	var folders []string
	cmd := a.command("list [DIR]...", "run directories below folders",
		`list finds the run directories that are DIR or lie below it, and shows of each the data set,
how far it is, what its files take, accuracies, and when it was last written to. DIR is a folder, the present
one by default, or s3://bucket/prefix. It reads records and catalogues, and no data. Accuracies are
those after label smoothing, or those before it where labels are not smoothed, as means over all models.`,
		func(ctx context.Context, _ *cobra.Command) error {
			if len(folders) == 0 {
				folders = []string{"."}
			}
			var runs []ndls.RunSummary
			err := ndls.List(ctx, folders, func(s ndls.RunSummary) error {
				runs = append(runs, s)
				_, err := a.asJSON(s)
				return err
			})
			if err == nil && len(runs) == 0 {
				a.log.Info("no run directory is there", "in", strings.Join(folders, ", "))
			}
			if a.json || len(runs) == 0 {
				return err
			}
			return cmp.Or(err, printRuns(a.stdout, runs, time.Now()))
		})
	withArgs(cmd, cobra.ArbitraryArgs, func(args []string) { folders = args })
	cmd.Example = `  ndls list runs
  ndls list runs --json | jq -r 'select(.state == "COMPLETE").run'`
	return cmd
}

// withArgs lets a verb take arguments, which take gets before the verb runs.
func withArgs(cmd *cobra.Command, check cobra.PositionalArgs, take func(args []string)) {
	cmd.Args = check
	run := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		take(args)
		return run(cmd, args)
	}
}

func printRuns(w io.Writer, runs []ndls.RunSummary, now time.Time) error {
	t := newTable(w, 2, 0)
	fmt.Fprintf(t, "run\tdata set\tstate\tsize\tvalid in %%\ttest in %%\tage\n")
	for _, s := range runs {
		accuracy := s.After
		if accuracy == (ndls.SplitAccuracy{}) {
			accuracy = s.Before
		}
		size := mem.Bytes(s.Bytes).String()
		if s.Problem != "" && s.State == "" {
			size = "–"
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", plain(s.Run), plain(s.Dataset), s.Progress(), size, mean(accuracy.Valid), mean(accuracy.Test), age(s.Changed, now))
	}
	if err := t.Flush(); err != nil {
		return err
	}
	for _, s := range runs {
		for _, text := range []string{s.Problem, map[bool]string{true: s.Reason}[s.State == ndls.Failed]} {
			if text == "" {
				continue
			}
			if _, err := fmt.Fprintf(w, "%s: %s\n", plain(s.Run), plain(text)); err != nil {
				return err
			}
		}
	}
	return nil
}

// mean is a mean accuracy in percent.
func mean(s *ndls.Spread) string {
	if s == nil {
		return "–"
	}
	return fmt.Sprintf("%.2f", 100*s.Mean)
}

// age returns the time since at, in the largest unit of which there is at least one.
func age(at, now time.Time) string {
	if at.IsZero() {
		return "–"
	}
	d := max(now.Sub(at), 0)
	for _, unit := range []struct {
		name string
		is   time.Duration
	}{{"d", 24 * time.Hour}, {"h", time.Hour}, {"min", time.Minute}} {
		if d >= unit.is {
			return fmt.Sprintf("%d %s", d/unit.is, unit.name)
		}
	}
	return fmt.Sprintf("%d s", d/time.Second)
}
