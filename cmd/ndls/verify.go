package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"ndls"
	"ndls/internal/mem"
)

func (a *app) verifyCommand() *cobra.Command {
	cmd := a.command("verify --run DIR", "read everything again and check it",
		`verify compares every file that the catalogue lists with its checksum, its rows
with the count of the catalogue, and the counts with the graph. It names every
damaged file and ends with status 4 if there is one.`,
		func(ctx context.Context, _ *cobra.Command) error {
			d, err := ndls.Open(ctx, a.runDir)
			if err != nil {
				return err
			}
			files, bytes, err := d.Verify(ctx)
			if err != nil {
				return err
			}
			rec := d.Record()
			if done, err := a.asJSON(map[string]any{"run": a.runDir, "state": rec.State, "stopped": rec.Stopped, "files": files, "bytes": bytes}); done {
				return err
			}
			_, err = fmt.Fprintf(a.stdout, "%d files, %s: all as committed; the run is %s\n", files, mem.Bytes(bytes), rec.Word())
			return err
		})
	a.runFlag(cmd)
	cmd.Example = `  ndls verify --run RUN`
	return cmd
}
