package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"ndls"
	"ndls/internal/vfs"
)

func (a *app) reportCommand() *cobra.Command {
	var (
		runs []string
		out  string
	)
	cmd := a.command("report RUN...", "the page of one run, or of several side by side",
		`report makes one HTML page of what runs found and took: options, accuracies by model, class, degree and K,
learning curves, how K is spread, and the time, bytes and memory of each stage. The page needs no network.
Of one run it is what report.html in the run directory is; of several it sets their figures side by side.
It reads records and catalogues, and no data. With --json it prints report.json of each run in place of the page.`,
		func(ctx context.Context, _ *cobra.Command) error {
			open := make([]*ndls.Directory, len(runs))
			for i, dir := range runs {
				d, err := a.open(ctx, dir)
				if err != nil {
					return err
				}
				open[i] = d
			}
			if a.json {
				for _, d := range open {
					r, err := d.Report(ctx)
					if err != nil {
						return err
					}
					if _, err := a.asJSON(r); err != nil {
						return err
					}
				}
				return nil
			}
			var page bytes.Buffer
			if err := ndls.ReportPage(ctx, &page, open...); err != nil {
				return err
			}
			if out == "" {
				if terminal(a.stdout) != nil {
					return asUsage(errors.New("a page is not for a terminal: give --out report.html, or redirect stdout to a file"))
				}
				_, err := a.stdout.Write(page.Bytes())
				return err
			}
			if err := vfs.ReplaceFile(out, page.Bytes(), 0o666); err != nil {
				return fmt.Errorf("--out: %w", err)
			}
			_, err := fmt.Fprintf(a.stdout, "%s: the page of %s\n", out, strings.Join(runs, ", "))
			return err
		})
	withArgs(cmd, wordCount(1, 0, "one run directory or more"), func(args []string) { runs = args })
	cmd.Flags().StringVar(&out, "out", "", "the HTML `file` to write; it appears complete or not at all. Stdout by default")
	cmd.Example = `  ndls report runs/a --out a.html
  ndls report runs/a runs/b runs/c --out three.html`
	return cmd
}
