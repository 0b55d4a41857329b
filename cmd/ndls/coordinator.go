package main

import (
	"context"

	"ndls/plan"

	"github.com/spf13/cobra"

	"ndls"
)

// loopback is an address to which only this host can connect, at a free port.
const loopback = "127.0.0.1:0"

func (a *app) coordinatorCommand() *cobra.Command {
	v := &stageVerb{app: a}
	var s ndls.ServeConfig
	var parallel string
	var size int
	var watching ndls.Watching
	v.do = func(ctx context.Context) error {
		c := v.config()
		c.Parallel, c.GroupSize, c.Watching = parallel, size, watching
		d, err := ndls.Serve(ctx, c, s)
		if err != nil {
			return err
		}
		return v.print(ctx, d)
	}
	cmd := v.command("coordinator --dataset URI --run DIR", "the whole job, with workers on other machines",
		`coordinator does what ndls run does, but computes nothing: it gives the work to
ndls worker processes, and takes it from those that are lost. The run directory
must be one that all of them see, a shared folder or s3://bucket/prefix, and so
must the files that the dataset and other flags name. Started again with the same
flags it goes on where it stood; workers wait for it meanwhile.

Workers prove with --keys or a token that they belong to the job. It listens on
this host alone unless --listen and --gossip-listen say otherwise. With --http it
serves a page, /status as JSON and /metrics for Prometheus, to whoever asks:
docs/watching.md.`)
	v.datasetFlag(cmd)
	v.softLabelsFlag(cmd)
	v.trainOnFlag(cmd)
	v.plan.groups(plan.Partition, plan.LSI, plan.Smooth, plan.Train, plan.Labels)
	trustFlags(cmd, &s.Trust)
	flags := cmd.Flags()
	flags.StringVar(&s.Listen, "listen", loopback, "HOST:PORT for workers; port 0 picks a free one")
	flags.StringVar(&s.Gossip, "gossip-listen", loopback, "HOST:PORT for news of workers that died")
	watchFlags(cmd, &watching)
	flags.DurationVar(&s.Lease, "lease", ndls.DefaultLease, "time that a worker may be silent before another gets its task")
	flags.DurationVar(&s.Checkpoint, "checkpoint", ndls.DefaultCheckpoint, "interval at which workers save the state of long tasks")
	flags.IntVar(&s.Workers, "workers", 1, "workers to wait for before the first task")
	parallelFlag(cmd, &parallel, "auto")
	groupFlag(cmd, &size)
	cmd.Example = `  ndls cluster-keys --out KEYS
  ndls coordinator --dataset ogb:DIR --run /shared/RUN --keys KEYS --listen 0.0.0.0:7000 --workers 4`
	return cmd
}

// watchFlags say how others can see how a run goes.
func watchFlags(cmd *cobra.Command, w *ndls.Watching) {
	cmd.Flags().StringVar(&w.HTTP, "http", "", "HOST:PORT for a page with the state of the run, /status as JSON, and /metrics for Prometheus; everybody who can reach it can read them (default none)")
	cmd.Flags().StringSliceVar(&w.Hosts, "http-host", nil, "names by which requests to --http may call this host, beside localhost, its own name and IP addresses; such as that of a Kubernetes Service")
	cmd.Flags().BoolVar(&w.Profile, "pprof", false, "profiles of this process at /debug/pprof/ of --http, which must be on a loopback address")
	cmd.Flags().StringVar(&w.MetricsFile, "metrics-file", "", "file to which the metrics are written every 15 seconds, such as /var/lib/node_exporter/ndls.prom")
}

// trustFlags are the flags by which processes of a job trust each other.
func trustFlags(cmd *cobra.Command, t *ndls.Trust) {
	cmd.Flags().StringVar(&t.Keys, "keys", "", "folder of the job's certificates, made by ndls cluster-keys")
	cmd.Flags().StringVar(&t.TokenFile, "token-file", "", "file of the job's token (default the environment variable "+ndls.TokenVariable+")")
}

// coordinatorFlag adds --coordinator.
func coordinatorFlag(cmd *cobra.Command, to *string) {
	cmd.Flags().StringVar(to, "coordinator", "", "HOST:PORT of the coordinator (default the address that it has written to the run directory)")
}
