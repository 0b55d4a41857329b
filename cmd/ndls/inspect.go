package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"ndls"
	"ndls/internal/mem"
	"ndls/plan"
)

// inspection is the output of inspect with --json.
type inspection struct {
	Run string `json:"run"`
	*ndls.Record
	// Working reports whether a process works on the run.
	Working bool `json:"working"`
	// Problem is described at ndls.Directory.
	Problem string           `json:"problem,omitempty"`
	Graph   *ndls.Graph      `json:"graph,omitempty"`
	Files   []ndls.FileGroup `json:"files"`
}

func (a *app) inspectCommand() *cobra.Command {
	var uri string
	var flags *planFlags
	cmd := a.command("inspect (RUN | --dataset URI)", "what a run directory holds, or what an import of a dataset would find",
		`inspect RUN shows the state of a run, its stages, graph and files, from run.json and
the catalogue. It reads no data; ndls verify does.

inspect --dataset reads a dataset as an import does, and writes no run directory. It
shows files, tables and columns with what each is read as, input ids, edges,
degrees, components, features, classes and splits. What an import would refuse it
refuses with the same message and status. Edges that do not fit --memory go to
--scratch (default a folder for temporary files of the system), 8 bytes each.
ndls help datasets lists what --dataset takes.`,
		func(ctx context.Context, _ *cobra.Command) error {
			if uri != "" {
				return a.inspectDataset(ctx, uri, flags)
			}
			return a.inspectRun(ctx)
		})
	a.orRunFlag(cmd, "run directory, or a word without --run")
	cmd.Flags().StringVar(&uri, "dataset", "", "dataset URI")
	flags = newPlanFlags(cmd).groups(plan.Run, plan.Partition)
	cmd.MarkFlagsOneRequired("run", "dataset")
	cmd.MarkFlagsMutuallyExclusive("run", "dataset")
	for _, name := range flags.names {
		cmd.MarkFlagsMutuallyExclusive("run", name)
	}
	cmd.Example = `  ndls inspect RUN
  ndls inspect --dataset 'table:cites.csv?src=citing&dst=cited&nodes=papers.csv&id=doi'`
	return cmd
}

func (a *app) inspectRun(ctx context.Context) error {
	d, err := a.open(ctx, a.runDir)
	if err != nil {
		return err
	}
	in := inspection{Run: a.runDir, Record: d.Record(), Working: d.Working(ctx), Problem: d.Problem(), Files: d.Files()}
	switch g, err := d.Graph(ctx); {
	case err == nil:
		in.Graph = &g
	case !errors.Is(err, ndls.ErrNoRun):
		return err
	}
	return a.jsonOr(in, in.print)
}

func (in inspection) print(w io.Writer) error {
	t := newTable(w, 2, 0)
	state := because(in.Word(), in.Reason)
	if in.State == ndls.Running && !in.Working {
		state = "RUNNING, but no process works on it; run the same command again to continue"
	}
	fmt.Fprintf(t, "%s\t%s\n", in.Run, state)
	if in.Problem != "" {
		fmt.Fprintf(t, "damaged\t%s\n", strings.ReplaceAll(in.Problem, "\n", "; "))
	}
	fmt.Fprintf(t, "dataset\t%s\n", in.Plan.Partition.Dataset)
	fmt.Fprintf(t, "plan\t%s\n", in.PlanHash)
	if g := in.Graph; g != nil {
		fmt.Fprintf(t, "graph\t%s, %s, %s, %s, %s\n", count(g.Nodes, "node"), count(g.Edges, "edge"),
			count(int64(g.Features), "feature"), count(int64(len(g.Classes)), "class"), count(g.Components, "component"))
	}
	fmt.Fprintf(t, "\nstage\tstate\tseconds\trows\tpasses\tread\twritten\tpeak memory\n")
	for _, x := range in.Stages {
		fmt.Fprintf(t, "%s\t%s\t%.1f\t%d\t%d\t%s\t%s\t%s\n", x.Stage, because(x.Word(), x.Reason), x.Seconds, x.Rows, x.Passes,
			mem.Bytes(x.BytesRead), mem.Bytes(x.BytesWritten), mem.Bytes(x.MeasuredPeak))
	}
	fmt.Fprintf(t, "\nkind\tfiles\trows\tbytes\n")
	for _, g := range in.Files {
		fmt.Fprintf(t, "%s\t%d\t%d\t%s\n", g.Kind, g.Files, g.Rows, mem.Bytes(g.Bytes))
	}
	return t.Flush()
}
