package main

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"ndls"
)

func (a *app) inferCommand() *cobra.Command {
	var o ndls.InferOptions
	cmd := a.command("infer RUN --dataset URI --out DIR", "K, smoothed features and predictions of new nodes",
		`infer computes nodes that the run does not have, from the hops that the run has kept of
its own nodes with --keep-hops 0..H --targets all. Those nodes, and their degrees, are held
fixed. The dataset is a table of edges and a table of the new nodes with their features;
the other ids in the edges are those of nodes of the run. Where edges of the run have
weights, weight=COLUMN names the weights of these edges. DIR gets lsi/, smoothed/ and, if
the run has a model, predictions/, as a run directory has them.`,
		func(ctx context.Context, _ *cobra.Command) error {
			d, err := a.open(ctx, a.runDir)
			if err != nil {
				return err
			}
			o.Resources = a.resources()
			r, err := d.Infer(ctx, o)
			if err != nil {
				return err
			}
			return a.jsonOr(r, func(w io.Writer) error { return printInferred(w, o.Out, r) })
		})
	a.runFlag(cmd)
	f := cmd.Flags()
	f.StringVar(&o.Dataset, "dataset", "", "table: with src=, dst=, nodes=, id= and features=, as in the example; the table of nodes has the new nodes alone (required)")
	f.StringVar(&o.Out, "out", "", "empty or new folder to write (required)")
	f.Float64Var(&o.Epsilon, "epsilon", 0, "distance from the stationary state below which a new node has settled, measured on features (default the distance that gives nodes of the run the K that they have)")
	_ = cmd.MarkFlagRequired("dataset")
	_ = cmd.MarkFlagRequired("out")
	cmd.Example = `  ndls run --dataset URI --run RUN --keep-hops 0..16
  ndls infer RUN --dataset 'table:e.csv?src=a&dst=b&nodes=new.csv&id=id&features=x' --out NEW`
	return cmd
}

// printInferred says how many nodes and edges were new, and their K.
func printInferred(w io.Writer, out string, r *ndls.InferReport) error {
	if _, err := fmt.Fprintf(w, "%s: %s with %s to %s of the run\n", out,
		count(r.Nodes, "new node"), count(r.Edges, "edge"), count(r.OldNodes, "node")); err != nil {
		return err
	}
	if left := r.SelfLoops + r.Repeated + r.OldEdges; left > 0 {
		if _, err := fmt.Fprintf(w, "left out: %s, %s, %s between nodes of the run\n",
			count(r.SelfLoops, "self-loop"), count(r.Repeated, "repeated edge"), count(r.OldEdges, "edge")); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintf(w, "K: mean %.2f, threshold %.4g in feature space, %s not settled at hop %d\n", r.MeanK, r.Epsilon, count(r.Capped, "node"), r.Hops)
	return err
}
