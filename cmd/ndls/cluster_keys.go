package main

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"ndls"
)

func (a *app) clusterKeysCommand() *cobra.Command {
	var (
		out   string
		hosts []string
		days  int
	)
	cmd := a.command("cluster-keys --out DIR", "certificates for one job",
		`cluster-keys makes an authority for one job, certificates of it for the coordinator
and the workers, and the key of their gossip. Give the folder to each of them as
--keys. Whoever can read it can join the job.`,
		func(context.Context, *cobra.Command) error {
			if err := ndls.MakeKeys(out, hosts, time.Duration(days)*24*time.Hour); err != nil {
				return err
			}
			return a.lineOr(map[string]any{"keys": out, "days": days}, "%s\n", out)
		})
	cmd.Flags().StringVar(&out, "out", "", "folder to make (required)")
	cmd.Flags().StringSliceVar(&hosts, "host", nil, "further names and addresses in the certificates, for programs that check them")
	cmd.Flags().IntVar(&days, "days", 30, "days for which the certificates are valid")
	_ = cmd.MarkFlagRequired("out")
	cmd.Example = `  ndls cluster-keys --out KEYS`
	return cmd
}
