package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"ndls"
	"ndls/catalog"
	"ndls/internal/control"
	"ndls/internal/mem"
)

// outcome is the last line of a verb with --json.
type outcome struct {
	Run      string     `json:"run"`
	State    ndls.State `json:"state"`
	PlanHash string     `json:"plan_hash"`
	control.Findings
}

// print shows the stages that the verb asked for, and what they found.
func (v *stageVerb) print(ctx context.Context, d *ndls.Directory) error {
	graph, err := d.Graph(ctx)
	if err != nil {
		return err
	}
	report, err := d.Report(ctx)
	if err != nil {
		return err
	}
	rec, stages, whole := d.Record(), v.stages, len(v.stages) == 0
	if whole {
		stages = ndls.Stages()
	}
	if v.json {
		for _, s := range stages {
			if x := rec.Stage(s); x != nil {
				if err := v.line(x); err != nil {
					return err
				}
			}
		}
		return v.line(outcome{v.runDir, rec.State, rec.PlanHash, report.Findings})
	}
	for _, s := range stages {
		if x := rec.Stage(s); x != nil && !whole {
			describe(v.stdout, *x, graph)
		}
	}
	if !v.quiet {
		printPlanned(v.stderr, rec, stages)
	}
	if !whole {
		return nil
	}
	fmt.Fprintf(v.stdout, "%s: %s, %s, %s, %s\n", report.Dataset.Name, count(report.Dataset.Nodes, "node"),
		count(report.Dataset.Edges, "edge"), count(int64(report.Dataset.Features), "feature"), count(int64(report.Dataset.Classes), "class"))
	if report.LSI != nil {
		describeLSI(v.stdout, report.LSI)
	}
	if report.LabelDepth != nil {
		describeDepth(v.stdout, report.LabelDepth)
	}
	if report.Accuracy != nil {
		printAccuracy(v.stdout, report.Accuracy)
	}
	if budget := report.Memory.BudgetBytes; budget > 0 {
		fmt.Fprintf(v.stdout, "peak memory %s of %s\n", mem.Bytes(report.Memory.PeakRSSBytes), mem.Bytes(budget))
	} else {
		fmt.Fprintf(v.stdout, "peak memory of a worker %s\n", mem.Bytes(report.Memory.PeakRSSBytes))
	}
	printPlaces(v.stdout, v.runDir, d.Files())
	return nil
}

// describe says in a line or a table what a stage found.
func describe(w io.Writer, x ndls.StageRecord, sum ndls.Graph) {
	switch {
	case x.Stage == ndls.StagePartition:
		fmt.Fprintf(w, "%s: %s, %s (of %s: %s, %d repeated), %s, the largest of %s\n",
			sum.Name, count(sum.Nodes, "node"), count(sum.Edges, "edge"), count(sum.InputRows, "row"),
			count(sum.SelfLoops, "self-loop"), sum.Repeated, count(sum.Components, "component"), count(sum.LargestComponent, "node"))
		fmt.Fprintf(w, "%s; %s in %s; splits: %s\n", count(int64(sum.Features), "feature"),
			count(sum.Labelled, "labelled node"), count(int64(len(sum.Classes)), "class"), describeSplits(sum.Splits))
	case x.Degrees != nil:
		printDegrees(w, x.Degrees)
	case x.LSI != nil:
		describeLSI(w, x.LSI)
	case x.LabelDepth != nil:
		describeDepth(w, x.LabelDepth)
	case x.Accuracy != nil:
		printAccuracy(w, x.Accuracy)
	default:
		fmt.Fprintf(w, "%s: %d rows in %.1f s\n", x.Stage, x.Rows, x.Seconds)
	}
}

// count is a number with what is counted, in the singular or the plural.
func count(n int64, what string) string {
	if n == 1 {
		return "1 " + what
	}
	if strings.HasSuffix(what, "s") {
		what += "e"
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// describeSplits says how many nodes each split has.
func describeSplits(splits map[string]int64) string {
	var parts []string
	for _, name := range []string{"train", "valid", "test"} {
		if n, ok := splits[name]; ok {
			parts = append(parts, fmt.Sprintf("%d %s", n, name))
		}
	}
	if len(parts) == 0 {
		return "none"
	}
	return strings.Join(parts, ", ")
}

// printPlanned compares what stages took with what was planned.
func printPlanned(w io.Writer, rec *ndls.Record, stages []ndls.Stage) {
	planned := func(s ndls.Stage) bool { return rec.Stage(s) != nil && rec.Stage(s).Planned != nil }
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
		fmt.Fprintf(t, "\t%d | %d\t%s | %s\t\n", p.Passes, x.Passes, plannedTime(*p), duration(x.Seconds))
	}
	_ = t.Flush()
}

// printDegrees shows both histograms.
func printDegrees(w io.Writer, d *control.DegreesReport) {
	t := tabwriter.NewWriter(w, 0, 0, 3, ' ', tabwriter.AlignRight)
	for _, h := range []struct {
		title, what string
		ranges      []control.Range
	}{
		{fmt.Sprintf("degree, mean %.2f", d.Mean), "nodes", d.Degrees},
		{"nodes of a component", "components", d.Components},
	} {
		fmt.Fprintf(t, "%s\t%s\t\n", h.title, h.what)
		for _, r := range h.ranges {
			if r.From == r.To {
				fmt.Fprintf(t, "%d\t%d\t\n", r.From, r.Count)
			} else {
				fmt.Fprintf(t, "%d to %d\t%d\t\n", r.From, r.To, r.Count)
			}
		}
	}
	_ = t.Flush()
}

func describeLSI(w io.Writer, l *control.LSIReport) {
	fmt.Fprintf(w, "lsi: mean K %.2f, largest %d, %.2f %% of the nodes never settled\n", l.Mean, l.Max, 100*l.CappedShare)
}

func describeDepth(w io.Writer, d *control.LabelDepthReport) {
	if len(d.Curve) == 0 {
		fmt.Fprintf(w, "label smoothing: %s; no validation node has a label, so nothing was chosen\n", count(int64(d.Chosen), "hop"))
		return
	}
	fmt.Fprintf(w, "label smoothing: %s at most, of 0 to %d the best on %s: %.2f %% there, %.2f %% without\n", count(int64(d.Chosen), "hop"), d.Kmax,
		count(d.ValidationNodes, "validation node"), 100*d.Curve[d.Chosen].Valid, 100*d.Curve[0].Valid)
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

func printPlaces(w io.Writer, dir string, files []ndls.FileGroup) {
	t := tabwriter.NewWriter(w, 0, 0, 3, ' ', 0)
	fmt.Fprintf(t, "in %s\n", strings.TrimSuffix(dir, "/"))
	for _, p := range places {
		if slices.ContainsFunc(files, func(g ndls.FileGroup) bool { return g.Kind == p.kind }) {
			fmt.Fprintf(t, "  %s\t%s\n", p.where, p.what)
		}
	}
	fmt.Fprintf(t, "  report.html, report.json\tthis run in figures\n")
	_ = t.Flush()
}
