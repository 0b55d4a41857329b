package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"ndls"
)

func (a *app) exportCommand() *cobra.Command {
	var o ndls.ExportOptions
	cmd := a.command("export RUN --what ARTIFACT --format FORMAT --out FILE", "an artifact as one file, in order of input id",
		`export writes lsi, features, smoothed, hops, soft-labels, predictions, edges or nodes
as csv, npy, parquet or arrow; and ogb-submission as npz: the file that the evaluator
of OGB-LSC's MAG240M saves, with the predicted classes of the test nodes. Hops as npy are one array of rows × hops × values, which
NumPy and PyTorch map into memory. Rows are in ascending order of input id; edges are
listed once, by their smaller end. The file appears when it is complete. A name that
ends in .gz or .zst gets compressed bytes; --out - and pipes take the rows as they come.
FILE must not lie in a run directory. With --part several machines write a range of
the ids each, by themselves: the files of all parts, one after the other, have the
rows of the whole. A header line, or what else a format has beside rows, is in each.`,
		func(ctx context.Context, _ *cobra.Command) error {
			d, err := a.open(ctx, a.runDir)
			if err != nil {
				return err
			}
			o.Memory = a.memoryBytes
			result := a.stdout
			if o.Out == "-" || o.Out == "/dev/stdout" {
				// Standard output is the export; what was done goes to the log.
				o.To, result = a.stdout, a.stderr
			}
			rows, err := d.Export(ctx, o)
			if err != nil {
				return err
			}
			done, of := map[string]any{"what": o.What, "format": o.Format, "out": o.Out, "rows": rows}, ""
			if o.Part != (ndls.Part{}) {
				done["part"], of = o.Part.String(), ", part "+o.Part.String()
			}
			a.last = done
			if a.json && o.To == nil {
				return a.line(a.last)
			}
			if !a.quiet || o.To == nil {
				_, err = fmt.Fprintf(result, "%s: %d rows%s\n", o.Out, rows, of)
			}
			return err
		})
	a.runFlag(cmd)
	f := cmd.Flags()
	f.StringVar(&o.What, "what", "", strings.Join(ndls.Artifacts(), ", ")+", ogb-submission (required)")
	f.StringVar(&o.Format, "format", "", strings.Join(ndls.Formats(), ", ")+", npz for ogb-submission (required)")
	f.StringVar(&o.Out, "out", "", "file to write, or - for standard output (required)")
	partFlag(cmd, &o.Part, "write a range of the ids, such as 3/8 for the third of eight of about as many rows; edges are in the part of the id that comes first")
	f.BoolVar(&o.TrueLabels, "true-labels", false, "with predictions: the name of the predicted class, the true label and its name, and the split as further columns")
	f.BoolVar(&o.Force, "force", false, "replace --out if it exists")
	for _, name := range []string{"what", "format", "out"} {
		_ = cmd.MarkFlagRequired(name)
	}
	cmd.Example = `  ndls export RUN --what predictions --format parquet --out predictions.parquet
  ndls export RUN --what edges --format csv --out - | head
  ndls export RUN --what smoothed --format npy --part 3/8 --out smoothed-3.npy`
	return cmd
}
