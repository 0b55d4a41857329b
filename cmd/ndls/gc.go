package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"ndls/internal/mem"
)

func (a *app) gcCommand() *cobra.Command {
	var remove bool
	cmd := a.command("gc --run DIR", "list or remove files that the catalogue does not name",
		`gc lists what interrupted runs left behind: unfinished files, spills, and files
that are no longer in the catalogue. With --delete it removes them; it refuses
while another ndls works on the run directory.`,
		func(ctx context.Context, _ *cobra.Command) error {
			if remove {
				unlock, err := a.lockExisting(ctx)
				if err != nil {
					return err
				}
				defer unlock()
			}
			cat, _, err := a.openCatalog(ctx)
			if err != nil {
				return err
			}
			orphans, err := cat.Orphans(ctx)
			if err != nil {
				return err
			}
			for _, o := range orphans {
				if remove {
					if err := cat.Store().Remove(ctx, o.Name); err != nil {
						return fmt.Errorf("removing %s: %w", o.Name, err)
					}
				}
				if a.json {
					err = a.line(map[string]any{"file": o.Name, "bytes": o.Size, "deleted": remove})
				} else {
					_, err = fmt.Fprintf(a.stdout, "%s\t%s\n", o.Name, mem.Bytes(o.Size))
				}
				if err != nil {
					return err
				}
			}
			return nil
		})
	a.runFlag(cmd)
	cmd.Flags().BoolVar(&remove, "delete", false, "remove them")
	return cmd
}

// lockExisting locks a run directory that is known to be one.
func (a *app) lockExisting(ctx context.Context) (func(), error) {
	store, _, err := a.openStore(ctx, false)
	if err != nil {
		return nil, err
	}
	if _, err := readAddress(ctx, store); err == nil && a.remote() {
		return nil, fmt.Errorf("--run %s: a coordinator is working on it, or was killed: start it again and let it end, or remove %s", a.runDir, addressName)
	}
	return a.lock()
}
