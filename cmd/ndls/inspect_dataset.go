package main

import (
	"context"
	"fmt"
	"io"

	"ndls"
	"ndls/internal/mem"
)

// inspectDataset prints what an import of a dataset would find. Of one that it would refuse it
// prints what is known all the same.
func (a *app) inspectDataset(ctx context.Context, uri string, flags *planFlags) error {
	in, err := ndls.Inspect(ctx, ndls.InspectConfig{Dataset: uri, Options: flags.over, Resources: a.resources()})
	if in.Files == nil { // it was not opened
		return err
	}
	done, printed := a.asJSON(in)
	if !done {
		printed = printDataset(a.stdout, in)
	}
	if err != nil {
		return err
	}
	return printed
}

func printDataset(w io.Writer, in ndls.Inspection) error {
	t := newTable(w, 2, 0)
	size := int64(0)
	for _, f := range in.Files {
		size += f.Bytes
	}
	fmt.Fprintf(t, "dataset\t%s\n", in.Dataset)
	fmt.Fprintf(t, "files\t%d, %s\n", len(in.Files), mem.Bytes(size))
	for _, table := range in.Tables {
		rows := ""
		if table.Rows >= 0 {
			rows = ", " + count(table.Rows, "row")
		}
		fmt.Fprintf(t, "\n%s\t%s: %s, %s%s\n", table.What, table.Place, count(int64(table.Files), "file"), mem.Bytes(table.Bytes), rows)
		fmt.Fprintf(t, "column\ttype\tread as\n")
		for _, c := range table.Columns {
			kind, use := c.Type, c.Use
			if c.Width > 0 {
				kind = fmt.Sprintf("%s, %d each", kind, c.Width)
			}
			if use == "" {
				use = "not read"
			}
			fmt.Fprintf(t, "%s\t%s\t%s\n", c.Name, kind, use)
		}
	}
	if len(in.Notes) > 0 {
		fmt.Fprintln(t)
	}
	for _, n := range in.Notes {
		if n.Warning {
			n.Text = "warning: " + n.Text
		}
		fmt.Fprintln(t, n.Text)
	}
	if in.Graph != nil {
		fmt.Fprintln(t)
		printSurvey(t, in.Graph)
	}
	return t.Flush()
}

func printSurvey(t io.Writer, g *ndls.Survey) {
	ids := "int64"
	if g.IDs != "" {
		ids = g.IDs
	}
	fmt.Fprintf(t, "nodes\t%d, ids of type %s from %s to %s\n", g.Nodes, ids, g.FirstID, g.LastID)
	kind := ""
	if g.Directed {
		kind = " with directions"
	}
	dropped := ""
	if g.Dropped > 0 {
		dropped = fmt.Sprintf(", %d dropped", g.Dropped)
	}
	fmt.Fprintf(t, "edges\t%d%s, of %s: %s, %s%s\n", g.Edges, kind, count(g.InputRows, "row"), count(g.SelfLoops, "self-loop"),
		count(g.Repeated, "repetition"), dropped)
	d := g.Degrees
	fmt.Fprintf(t, "degrees\tmean %.1f, median %d, 90 %% at most %d, 99 %% at most %d, largest %d; %s without edges\n",
		d.Mean, d.Median, d.P90, d.P99, d.Max, count(d.Isolated, "node"))
	if s := g.Strengths; s != nil {
		fmt.Fprintf(t, "strengths\tof nodes with edges: smallest %.4g, mean %.4g, largest %.4g\n", s.Min, s.Mean, s.Max)
	}
	fmt.Fprintf(t, "components\t%d, the largest has %s\n", g.Components, count(g.LargestComponent, "node"))
	if g.Features > 0 {
		fmt.Fprintf(t, "features\t%d, all finite, one row for each node, kept as %s\n", g.Features, g.FeatureType)
	} else {
		fmt.Fprintf(t, "features\tnone\n")
	}
	if len(g.Classes) > 0 {
		fmt.Fprintf(t, "labels\t%s of %s\n", count(g.Labelled, "node"), count(int64(len(g.Classes)), "class"))
	} else {
		fmt.Fprintf(t, "labels\tnone\n")
	}
	fmt.Fprintf(t, "splits\t%s\n", describeSplits(g.Splits))
	if len(g.Classes) > 0 {
		fmt.Fprintf(t, "\nclass\tnodes\n")
	}
	for i, name := range g.Classes {
		if i == shownClasses {
			fmt.Fprintf(t, "and %d more\t\n", len(g.Classes)-i)
			break
		}
		fmt.Fprintf(t, "%s\t%d\n", name, g.ClassSizes[i])
	}
	for _, warning := range g.Warnings {
		fmt.Fprintf(t, "warning: %s\n", warning)
	}
}

// shownClasses is the number of classes that are listed one by one; with --json all are.
const shownClasses = 40
