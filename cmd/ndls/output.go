package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"ndls/catalog"
	"ndls/coordinator"
	"ndls/internal/control"
	"ndls/internal/mem"
	"ndls/shards"
)

// outcome is the last line of a verb with --json.
type outcome struct {
	Run      string                  `json:"run"`
	State    coordinator.State       `json:"state"`
	PlanHash string                  `json:"plan_hash"`
	LSI      *control.LSIReport      `json:"lsi,omitempty"`
	Accuracy *control.AccuracyReport `json:"accuracy,omitempty"`
}

// print shows the stages that the verb asked for, and what they found.
func (v *stageVerb) print(ctx context.Context, rec *coordinator.Record, cat *catalog.Catalog) error {
	sum, err := shards.ReadSummary(ctx, cat)
	if err != nil {
		return err
	}
	report := coordinator.NewReport(rec, sum)
	if v.json {
		for _, s := range v.stages {
			if x := rec.Stage(s); x != nil {
				if err := v.line(x); err != nil {
					return err
				}
			}
		}
		return v.line(outcome{v.runDir, rec.State, rec.PlanHash, report.LSI, report.Accuracy})
	}
	for _, s := range v.stages {
		if x := rec.Stage(s); x != nil && !v.whole {
			describe(v.stdout, *x, sum)
		}
	}
	if !v.quiet {
		printPlanned(v.stderr, rec, v.stages)
	}
	if !v.whole {
		return nil
	}
	fmt.Fprintf(v.stdout, "%s: %d nodes, %d edges, %d features, %d classes\n",
		report.Dataset.Name, report.Dataset.Nodes, report.Dataset.Edges, report.Dataset.Features, report.Dataset.Classes)
	if report.LSI != nil {
		describeLSI(v.stdout, report.LSI)
	}
	if report.Accuracy != nil {
		printAccuracy(v.stdout, report.Accuracy)
	}
	if budget := report.Memory.BudgetBytes; budget > 0 {
		fmt.Fprintf(v.stdout, "peak memory %s of %s\n", mem.Bytes(report.Memory.PeakRSSBytes), mem.Bytes(budget))
	} else {
		fmt.Fprintf(v.stdout, "peak memory of a worker %s\n", mem.Bytes(report.Memory.PeakRSSBytes))
	}
	printPlaces(v.stdout, v.runDir, cat)
	return nil
}

// describe says in a line or a table what a stage found.
func describe(w io.Writer, x coordinator.StageRecord, sum shards.Summary) {
	switch {
	case x.Stage == control.Partition:
		fmt.Fprintf(w, "%s: %d nodes, %d edges (of %d rows: %d self-loops, %d repeated), %d components, largest %d\n",
			sum.Name, sum.Nodes, sum.Edges, sum.InputRows, sum.SelfLoops, sum.Repeated, sum.Components, sum.LargestComponent)
	case x.LSI != nil:
		describeLSI(w, x.LSI)
	case x.Accuracy != nil:
		printAccuracy(w, x.Accuracy)
	default:
		fmt.Fprintf(w, "%s: %d rows in %.1f s\n", x.Stage, x.Rows, x.Seconds)
	}
}

// printPlanned compares what stages took with what was planned.
func printPlanned(w io.Writer, rec *coordinator.Record, stages []control.Stage) {
	planned := func(s control.Stage) bool { return rec.Stage(s) != nil && rec.Stage(s).Planned != nil }
	if !slices.ContainsFunc(stages, planned) {
		return
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "planned | measured\tmemory\tpeak disk\tread\twritten\tpasses\ttime\t")
	for _, s := range stages {
		if !planned(s) {
			continue
		}
		x := rec.Stage(s)
		p := x.Planned
		fmt.Fprintf(t, "%s", s)
		for _, pair := range [][2]int64{
			{p.PeakBytes, x.MeasuredPeak}, {p.PeakDiskBytes, x.MeasuredDisk}, {p.BytesRead, x.BytesRead}, {p.BytesWritten, x.BytesWritten},
		} {
			fmt.Fprintf(t, "\t%s | %s", mem.Bytes(pair[0]), mem.Bytes(pair[1]))
		}
		fmt.Fprintf(t, "\t%d | %d\t%s | %s\t\n", p.Passes, x.Passes, duration(p.Seconds), duration(x.Seconds))
	}
	_ = t.Flush()
}

func describeLSI(w io.Writer, l *control.LSIReport) {
	fmt.Fprintf(w, "lsi: mean K %.2f, largest %d, %.2f %% of the nodes never settled\n", l.Mean, l.Max, 100*l.CappedShare)
}

func printAccuracy(w io.Writer, a *control.AccuracyReport) {
	spread := func(s *control.Spread) string {
		if s == nil {
			return "–"
		}
		return fmt.Sprintf("%.2f ± %.2f", 100*s.Mean, 100*s.Std)
	}
	t := tabwriter.NewWriter(w, 0, 0, 3, ' ', 0)
	runs := "runs"
	if a.Runs == 1 {
		runs = "run"
	}
	fmt.Fprintf(t, "accuracy in %%, %d %s\ttrain\tvalid\ttest\n", a.Runs, runs)
	for _, line := range []struct {
		name string
		s    control.SplitAccuracy
	}{{"before label smoothing", a.Base}, {"after label smoothing", a.Smoothed}} {
		fmt.Fprintf(t, "  %s\t%s\t%s\t%s\n", line.name, spread(line.s.Train), spread(line.s.Valid), spread(line.s.Test))
	}
	_ = t.Flush()
}

// places says where the artifacts of a run are.
var places = []struct{ kind, where, what string }{
	{catalog.KindEdges, "graph/edges/", "edge shards, Parquet"},
	{catalog.KindNodes, "graph/nodes.parquet", "node table"},
	{catalog.KindLSI, "lsi/", "K of every node, Parquet"},
	{catalog.KindSmoothed, "smoothed/", "smoothed features, Arrow"},
	{catalog.KindModel, "model/", "weights"},
	{catalog.KindSoftLabels, "soft_labels/", "soft labels, Arrow"},
	{catalog.KindPredictions, "predictions/", "labels and probabilities, Arrow"},
}

func printPlaces(w io.Writer, dir string, cat *catalog.Catalog) {
	t := tabwriter.NewWriter(w, 0, 0, 3, ' ', 0)
	fmt.Fprintf(t, "in %s\n", strings.TrimSuffix(dir, "/"))
	for _, p := range places {
		if len(cat.Entries(p.kind)) > 0 {
			fmt.Fprintf(t, "  %s\t%s\n", p.where, p.what)
		}
	}
	fmt.Fprintf(t, "  report.html, report.json\tthis run in figures\n")
	_ = t.Flush()
}
