package main

import (
	"context"

	"github.com/spf13/cobra"

	"ndls"
)

func (a *app) workerCommand() *cobra.Command {
	var w ndls.WorkConfig
	cmd := a.command("worker --run DIR", "compute for a coordinator",
		`worker joins the coordinator of a run, and computes what that gives it, within
its own --memory, until the run has ended: with status 0 if the run is complete. It
may be started before the coordinator, and while the run goes on. When it is told to
stop it saves what it has, gives its work back and ends with status 75; if it is
lost, another worker goes on from what it has saved.

A worker waits --wait for a coordinator that does not answer. Where the
coordinator is it reads in the run directory, unless --coordinator says so.`,
		func(ctx context.Context, _ *cobra.Command) error {
			w.Run, w.Resources, w.Log = a.runDir, a.resources(), a.log
			return ndls.Work(ctx, w)
		})
	a.runFlag(cmd)
	a.cacheFlags(cmd)
	a.columnsFlag(cmd)
	trustFlags(cmd, &w.Trust)
	coordinatorFlag(cmd, &w.Coordinator)
	cmd.Flags().StringVar(&w.Listen, "listen", loopback, "HOST:PORT for gossip; port 0 picks a free one")
	cmd.Flags().StringVar(&w.Blocks, "blocks-listen", "", "HOST:PORT for rows that workers share (default the host of --listen, and a free port)")
	cmd.Flags().DurationVar(&w.Wait, "wait", ndls.DefaultWait, "time to wait for a coordinator that does not answer")
	cmd.Example = `  ndls worker --run /shared/RUN --keys KEYS --listen 0.0.0.0:0 --memory 48GiB`
	return cmd
}
