package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"ndls/coordinator"
	"ndls/internal/mem"
)

func (a *app) verifyCommand() *cobra.Command {
	cmd := a.command("verify --run DIR", "read everything again and check it",
		`verify compares every file that the catalogue lists with its checksum, its rows
with the count of the catalogue, and the counts with the graph. It names every
damaged file and ends with status 4 if there is one.`,
		func(ctx context.Context, _ *cobra.Command) error {
			cat, rec, err := a.openCatalog(ctx)
			if err != nil {
				return err
			}
			files, bytes, err := coordinator.Verify(ctx, cat, rec)
			if err != nil {
				return err
			}
			if a.json {
				return a.line(map[string]any{"run": a.runDir, "state": rec.State, "files": files, "bytes": bytes})
			}
			_, err = fmt.Fprintf(a.stdout, "%d files, %s: all as committed; the run is %s\n", files, mem.Bytes(bytes), rec.State)
			return err
		})
	a.runFlag(cmd)
	return cmd
}
