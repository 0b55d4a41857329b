package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"ndls"
	"ndls/internal/mem"
)

func (a *app) verifyCommand() *cobra.Command {
	var part ndls.Part
	cmd := a.command("verify RUN", "read everything again and check it",
		`verify compares every file that the catalogue lists with its checksum, its rows
with the count of the catalogue, and the counts with the graph. It names every
damaged file and ends with status 4 if there is one. With --part several machines
check a share of the files each, by themselves; all parts together check what the
command checks without it.`,
		func(ctx context.Context, _ *cobra.Command) error {
			d, err := ndls.Open(ctx, a.runDir)
			if err != nil {
				return err
			}
			v, err := d.VerifyWithin(ctx, part, a.memoryBytes)
			if err != nil {
				return err
			}
			rec := d.Record()
			found := map[string]any{"run": a.runDir, "state": rec.State, "stopped": rec.Stopped, "files": v.Files, "bytes": v.Bytes}
			what := fmt.Sprintf("%d files, %s", v.Files, mem.Bytes(v.Bytes))
			if part != (ndls.Part{}) {
				found["part"], found["of_files"], found["of_bytes"] = part.String(), v.OfFiles, v.OfBytes
				what = fmt.Sprintf("part %s, %d of %d files, %s of %s", &part, v.Files, v.OfFiles, mem.Bytes(v.Bytes), mem.Bytes(v.OfBytes))
			}
			return a.lineOr(found, "%s: all as committed; the run is %s\n", what, rec.Word())
		})
	a.runFlag(cmd)
	partFlag(cmd, &part, "check a share of the files, such as 3/8 for the third of eight of about as many bytes; a file is in one of them")
	cmd.Example = `  ndls verify RUN
  ndls verify RUN --part 3/8`
	return cmd
}

// partFlag is for verbs that do one of several parts of their work.
func partFlag(cmd *cobra.Command, part *ndls.Part, usage string) {
	cmd.Flags().Var(part, "part", usage)
}
