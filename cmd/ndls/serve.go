package main

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"ndls"
)

func (a *app) serveCommand() *cobra.Command {
	var c ndls.ListPage
	cmd := a.command("serve [DIR]...", "a page of all runs below folders",
		`serve shows in a browser the run directories that are DIR or lie below it: sorted by test accuracy or another
column, changing as the runs do, with the page of each, and of several side by side. DIR is a folder, the present one by
default, or s3://bucket/prefix. It reads records and catalogues when somebody looks, and no data, and changes nothing.
Everybody who can reach the address can read them. It ends with Ctrl-C.`,
		func(ctx context.Context, _ *cobra.Command) error {
			if len(c.Folders) == 0 {
				c.Folders = []string{"."}
			}
			c.Log = a.log
			c.Listening = func(at string) {
				_ = a.lineOr(map[string]any{"at": at, "folders": c.Folders}, "runs below %s: %s\n", strings.Join(c.Folders, ", "), at)
			}
			return ndls.ServeList(ctx, c)
		})
	withArgs(cmd, cobra.ArbitraryArgs, func(args []string) { c.Folders = args })
	cmd.Flags().StringVar(&c.HTTP, "http", "127.0.0.1:8080", "HOST:PORT of the page; port 0 picks a free one")
	cmd.Flags().StringSliceVar(&c.Hosts, "http-host", nil, "names by which requests may call this host, beside localhost, its own name and IP addresses")
	cmd.Example = `  ndls serve runs
  ndls serve /shared/runs --http 0.0.0.0:8080`
	return cmd
}
