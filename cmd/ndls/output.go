package main

import (
	"cmp"
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
	}
	if done, err := v.asJSON(outcome{v.runDir, rec.State, rec.PlanHash, report.Findings}); done {
		return err
	}
	for _, s := range stages {
		if x := rec.Stage(s); x != nil && !whole {
			describe(v.stdout, *x, graph)
		}
	}
	if !v.quiet {
		if v.brief {
			printTook(v.stderr, rec, stages)
		} else {
			printPlanned(v.stderr, rec, stages)
		}
	}
	if !whole {
		return nil
	}
	fmt.Fprintf(v.stdout, "%s: %s, %s, %s, %s\n", report.Dataset.Name, count(report.Dataset.Nodes, "node"),
		count(report.Dataset.Edges, "edge"), count(int64(report.Dataset.Features), "feature"), count(int64(report.Dataset.Classes), "class"))
	if report.LSI != nil {
		describeLSI(v.stdout, report.LSI)
	}
	if report.Spectrum != nil {
		describeSpectrum(v.stdout, report.Spectrum)
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
	for _, x := range report.Absent {
		fmt.Fprintf(v.stdout, "not in %s: %s (%s)\n", x.Folder, x.Why, x.Option)
	}
	for i, line := range v.next {
		if i == 0 {
			fmt.Fprintln(v.stdout, "next:")
		}
		fmt.Fprintf(v.stdout, "  %s\n", line)
	}
	seconds := 0.0
	for _, x := range rec.Stages {
		seconds += x.Seconds
	}
	_, err = fmt.Fprintf(v.stdout, "%s in all; report: %s/report.html\n", took(seconds), strings.TrimRight(v.runDir, "/"))
	return err
}

// describe says in a line or a table what a stage found.
func describe(w io.Writer, x ndls.StageRecord, sum ndls.Graph) {
	switch {
	case x.Stage == ndls.StagePartition:
		edges, left := count(sum.Edges, "edge"), ""
		if sum.Weighted {
			edges += " with weights"
		}
		if sum.Directed {
			edges += " with directions"
		}
		if sum.Dropped > 0 {
			left = fmt.Sprintf(", %d dropped", sum.Dropped)
		}
		fmt.Fprintf(w, "%s: %s, %s (of %s: %s, %d repeated%s), %s, the largest of %s\n",
			sum.Name, count(sum.Nodes, "node"), edges, count(sum.InputRows, "row"),
			count(sum.SelfLoops, "self-loop"), sum.Repeated, left, count(sum.Components, "component"), count(sum.LargestComponent, "node"))
		features := count(int64(sum.Features), "feature")
		if sum.Blanked > 0 {
			features += ", blanked for " + count(sum.Blanked, "node")
		}
		fmt.Fprintf(w, "%s; %s in %s; splits: %s\n", features,
			count(sum.Labelled, "labelled node"), count(int64(len(sum.Classes)), "class"), describeSplits(sum.Splits))
	case x.Degrees != nil:
		printDegrees(w, x.Degrees)
	case x.LSI != nil:
		describeLSI(w, x.LSI)
	case x.Spectrum != nil:
		describeSpectrum(w, x.Spectrum)
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

// printTook shows what stages took; the report has the rest.
func printTook(w io.Writer, rec *ndls.Record, stages []ndls.Stage) {
	t := newTable(w, 2, tabwriter.AlignRight)
	fmt.Fprintln(t, "stage\ttime\tpeak memory\t")
	for _, s := range stages {
		if x := rec.Stage(s); x != nil && x.State == ndls.Complete {
			fmt.Fprintf(t, "%s\t%s\t%s\t\n", s, took(x.Seconds), mem.Bytes(x.MeasuredPeak))
		}
	}
	_ = t.Flush()
}

// printPlanned compares what stages took with what was planned.
func printPlanned(w io.Writer, rec *ndls.Record, stages []ndls.Stage) {
	planned := func(s ndls.Stage) bool { return rec.Stage(s) != nil && rec.Stage(s).Planned != nil }
	if !slices.ContainsFunc(stages, planned) {
		return
	}
	t := newTable(w, 2, tabwriter.AlignRight)
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

// printDegrees shows both histograms.
func printDegrees(w io.Writer, d *control.DegreesReport) {
	t := newTable(w, 3, tabwriter.AlignRight)
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
	if l.Uncertain > 0 {
		fmt.Fprintf(w, "K of %s may be off by a hop, because few passes took the place of many (--tolerance 0 makes every hop)\n", count(l.Uncertain, "node"))
	}
}

func describeSpectrum(w io.Writer, s *control.SpectrumReport) {
	fmt.Fprintf(w, "spectrum: |λ₂| = %.6f, to within %.1g, of the largest component (%s)\n", s.Lambda2, s.Error, count(s.Component, "node"))
	if s.Bound == nil {
		fmt.Fprintf(w, "no bound on K: %s\n", s.WithoutBound)
		return
	}
	fmt.Fprintf(w, "bound on K (theorem 3.1): it holds for %.2f %% of %s that settled; it is above K by %d in the median, by %d to %d in all\n",
		100*s.Bound.Within, count(s.Bound.Nodes, "node"), s.Bound.Slack.Median, s.Bound.Slack.Least, s.Bound.Slack.Most)
}

func describeDepth(w io.Writer, d *control.LabelDepthReport) {
	if !d.Chose() {
		fmt.Fprintf(w, "label smoothing: %s; no validation node has a label, so nothing was chosen\n", d)
		return
	}
	fmt.Fprintf(w, "label smoothing: %s\n", d)
}

// printAccuracy shows accuracy and the other measures, and what the deviations are.
func printAccuracy(w io.Writer, a *control.AccuracyReport) {
	t := newTable(w, 3, 0)
	models := count(int64(a.Runs), "model")
	if a.Splits > 1 {
		models = fmt.Sprintf("%d splits with %s each", a.Splits, models)
	}
	several := a.Runs*max(a.Splits, 1) > 1
	for i, f := range a.Figures() {
		name, head := f.Name, "\t\t\t"
		if f.Unit == 100 {
			name += " in %"
		}
		if i == 0 {
			head = fmt.Sprintf(", %s\ttrain\tvalid\ttest", models)
		}
		fmt.Fprintf(t, "%s%s\n", name, head)
		printMeasure(t, several, f)
	}
	_ = t.Flush()
	if text := whatDeviates(a); text != "" {
		fmt.Fprintln(w, text)
	}
	if a.Predictions != nil {
		fmt.Fprintln(w, a.Predictions)
	}
	for _, text := range a.Warnings {
		fmt.Fprintf(w, "warning: %s\n", text)
	}
}

// printMeasure shows a measure before and after label smoothing, with the deviation of several models.
func printMeasure(w io.Writer, several bool, f control.Figure) {
	digits := 2
	if f.Unit == 1 {
		digits = 4
	}
	spread := func(s *control.Spread) string {
		if s == nil {
			return "–"
		}
		if !several {
			return fmt.Sprintf("%.*f", digits, f.Unit*s.Mean)
		}
		return fmt.Sprintf("%.*f ± %.*f", digits, f.Unit*s.Mean, digits, f.Unit*s.Std)
	}
	for _, line := range []struct {
		name string
		s    control.SplitAccuracy
	}{{"before label smoothing", f.Base}, {"after label smoothing", f.Smoothed}} {
		fmt.Fprintf(w, "  %s\t%s\t%s\t%s\n", line.name, spread(line.s.Train), spread(line.s.Valid), spread(line.s.Test))
	}
}

// whatDeviates says what the deviations are; nothing of one model.
func whatDeviates(a *control.AccuracyReport) string {
	final := cmp.Or(a.Smoothed.Test, a.Base.Test)
	switch {
	case a.Splits > 1 && final != nil:
		return fmt.Sprintf("± is the standard deviation over all %d models; of the last test accuracy it is %.2f between models of the same split and %.2f between splits",
			a.Runs*a.Splits, 100*final.BetweenModels, 100*final.BetweenSplits)
	case a.Splits > 1:
		return fmt.Sprintf("± is the standard deviation over all %d models", a.Runs*a.Splits)
	case a.Runs > 1:
		return fmt.Sprintf("± is the standard deviation between %d models of the same split; that between splits may be larger, and --splits shows it", a.Runs)
	}
	return ""
}

// places says where the artifacts of a run are.
var places = []struct{ kind, where, what string }{
	{catalog.KindEdges, "graph/edges/", "edge shards, Parquet"},
	{catalog.KindReversed, "graph/reversed/", "the same edges turned round, for --direction out"},
	{catalog.KindNodes, "graph/nodes.parquet", "node table"},
	{catalog.KindLSI, "lsi/", "K of every node, Parquet"},
	{catalog.KindSmoothed, "smoothed/", "smoothed features, Arrow"},
	{catalog.KindKeptHops, "hops/", "hops of the features, Arrow"},
	{catalog.KindModel, "model/", "weights"},
	{catalog.KindSoftLabels, "soft_labels/", "soft labels, Arrow"},
	{catalog.KindPredictions, "predictions/", "labels and probabilities, Arrow"},
}

func printPlaces(w io.Writer, dir string, files []ndls.FileGroup) {
	t := newTable(w, 3, 0)
	fmt.Fprintf(t, "in %s\n", strings.TrimSuffix(dir, "/"))
	for _, p := range places {
		if slices.ContainsFunc(files, func(g ndls.FileGroup) bool { return g.Kind == p.kind }) {
			fmt.Fprintf(t, "  %s\t%s\n", p.where, p.what)
		}
	}
	fmt.Fprintf(t, "  report.html, report.json\tsummary\n")
	_ = t.Flush()
}
