package main

import (
	"context"

	"github.com/spf13/cobra"

	"ndls"
	"ndls/internal/mem"
)

func (a *app) gcCommand() *cobra.Command {
	var remove bool
	cmd := a.command("gc RUN", "list or remove files that the catalogue does not name",
		`gc lists what interrupted runs left behind: unfinished files, spills, and files
that are no longer in the catalogue. With --delete it removes them; it refuses
while another ndls works on the run directory, and where something of the run is missing
or older than the rest, since files may then be missing from the catalogue alone. Files that ndls did not write are
listed, too, and never removed.`,
		func(ctx context.Context, _ *cobra.Command) error {
			if !remove {
				if _, err := a.open(ctx, a.runDir); err != nil {
					return err
				}
			}
			left, err := ndls.GC(ctx, a.runDir, remove)
			if err == nil && len(left) == 0 {
				a.log.Info("nothing is left behind: the catalogue names all files")
			}
			for _, l := range left {
				kept := ""
				if l.Foreign {
					kept = "\tnot of ndls, kept"
				}
				if err := a.lineOr(l, "%s\t%s%s\n", l.Name, mem.Bytes(l.Bytes), kept); err != nil {
					return err
				}
			}
			return err
		})
	a.runFlag(cmd)
	cmd.Flags().BoolVar(&remove, "delete", false, "remove them")
	cmd.Example = `  ndls gc RUN
  ndls gc RUN --delete`
	return cmd
}
