package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"text/tabwriter"

	"ndls/catalog"

	"github.com/spf13/cobra"

	"ndls/coordinator"
	"ndls/internal/mem"
	"ndls/shards"
)

// inspection is what inspect prints with --json.
type inspection struct {
	Run string `json:"run"`
	*coordinator.Record
	Graph *shards.Summary `json:"graph,omitempty"`
	Files []fileGroup     `json:"files"`
}

// fileGroup adds up the files of one kind.
type fileGroup struct {
	Kind  string `json:"kind"`
	Files int    `json:"files"`
	Rows  int64  `json:"rows"`
	Bytes int64  `json:"bytes"`
}

func (a *app) inspectCommand() *cobra.Command {
	cmd := a.command("inspect --run DIR", "what a run directory holds",
		`inspect shows the state of a run, its stages, graph and files, from run.json and
the catalogue. It reads no data; ndls verify does.`,
		func(ctx context.Context, _ *cobra.Command) error {
			cat, rec, err := a.openCatalog(ctx)
			if err != nil {
				return err
			}
			in := inspection{Run: a.runDir, Record: rec, Files: groups(cat)}
			if _, ok := cat.Lookup(shards.SummaryPath); ok {
				sum, err := shards.ReadSummary(ctx, cat)
				if err != nil {
					return err
				}
				in.Graph = &sum
			}
			if a.json {
				return a.line(in)
			}
			return in.print(a.stdout)
		})
	a.runFlag(cmd)
	return cmd
}

func groups(cat *catalog.Catalog) []fileGroup {
	list := []fileGroup{}
	for _, e := range cat.Entries("") {
		i := slices.IndexFunc(list, func(g fileGroup) bool { return g.Kind == e.Kind })
		if i < 0 {
			i = len(list)
			list = append(list, fileGroup{Kind: e.Kind})
		}
		g := &list[i]
		g.Files++
		g.Rows += e.Rows
		g.Bytes += e.Bytes
	}
	slices.SortFunc(list, func(a, b fileGroup) int {
		if a.Kind < b.Kind {
			return -1
		}
		return 1
	})
	return list
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
