package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"ndls"
	"ndls/internal/mem"
)

// inspection is what inspect prints with --json.
type inspection struct {
	Run string `json:"run"`
	*ndls.Record
	Graph *ndls.Graph      `json:"graph,omitempty"`
	Files []ndls.FileGroup `json:"files"`
}

func (a *app) inspectCommand() *cobra.Command {
	cmd := a.command("inspect --run DIR", "what a run directory holds",
		`inspect shows the state of a run, its stages, graph and files, from run.json and
the catalogue. It reads no data; ndls verify does.`,
		func(ctx context.Context, _ *cobra.Command) error {
			d, err := ndls.Open(ctx, a.runDir)
			if err != nil {
				return err
			}
			in := inspection{Run: a.runDir, Record: d.Record(), Files: d.Files()}
			switch g, err := d.Graph(ctx); {
			case err == nil:
				in.Graph = &g
			case !errors.Is(err, ndls.ErrNoRun):
				return err
			}
			if a.json {
				return a.line(in)
			}
			return in.print(a.stdout)
		})
	a.runFlag(cmd)
	return cmd
}

func (in inspection) print(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(t, "%s\t%s %s\n", in.Run, in.State, in.Reason)
	fmt.Fprintf(t, "dataset\t%s\n", in.Plan.Partition.Dataset)
	fmt.Fprintf(t, "plan\t%s\n", in.PlanHash)
	if g := in.Graph; g != nil {
		fmt.Fprintf(t, "graph\t%d nodes, %d edges, %d features, %d classes, %d components\n", g.Nodes, g.Edges, g.Features, len(g.Classes), g.Components)
	}
	fmt.Fprintf(t, "\nstage\tstate\tseconds\trows\tpasses\tread\twritten\tpeak memory\n")
	for _, x := range in.Stages {
		fmt.Fprintf(t, "%s\t%s %s\t%.1f\t%d\t%d\t%s\t%s\t%s\n", x.Stage, x.State, x.Reason, x.Seconds, x.Rows, x.Passes,
			mem.Bytes(x.BytesRead), mem.Bytes(x.BytesWritten), mem.Bytes(x.MeasuredPeak))
	}
	fmt.Fprintf(t, "\nkind\tfiles\trows\tbytes\n")
	for _, g := range in.Files {
		fmt.Fprintf(t, "%s\t%d\t%d\t%s\n", g.Kind, g.Files, g.Rows, mem.Bytes(g.Bytes))
	}
	return t.Flush()
}
