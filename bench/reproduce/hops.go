package reproduce

import (
	"bytes"
	"context"
	"encoding/csv"
	"fmt"
	"slices"
	"strconv"

	"ndls"
	"ndls/bench/figure"
)

// opened is a run with a K table.
type opened struct {
	*ndls.Directory
	name   string
	report ndls.Report
}

// open opens the runs of an experiment that reads K.
func open(ctx context.Context, e Experiment, j Job) (runs []opened, err error) {
	if len(j.Runs) == 0 {
		return nil, e.Missing("no --run is given")
	}
	for _, dir := range j.Runs {
		d, err := ndls.Open(ctx, dir)
		if err != nil {
			return nil, err
		}
		report, err := d.Report(ctx)
		if err != nil {
			return nil, err
		}
		if report.LSI == nil {
			return nil, e.Missing(dir + " has none")
		}
		runs = append(runs, opened{d, report.Dataset.Name, report})
	}
	return runs, nil
}

// setting says in a line how K was found.
func (r opened) setting() string {
	l := r.report.LSI
	return fmt.Sprintf("%s, ε = %g, r = %g", l.Mode, l.Epsilon, l.R)
}

func hopsCDF(ctx context.Context, e Experiment, j Job) (result Result, err error) {
	runs, err := open(ctx, e, j)
	if err != nil {
		return result, err
	}
	title := "How many hops nodes take"
	alike := !slices.ContainsFunc(runs, func(r opened) bool { return r.setting() != runs[0].setting() })
	if alike {
		title += "\n" + runs[0].setting()
	}
	var graphs []figure.Hops
	for _, r := range runs {
		name := r.name
		if !alike {
			name += " (" + r.setting() + ")"
		}
		graphs = append(graphs, figure.Hops{Name: name, Histogram: r.report.LSI.Histogram, Capped: r.report.LSI.CappedShare})
		result.Notes = append(result.Notes, fmt.Sprintf("%s (%s): mean K %.2f, largest %d", r.name, r.setting(), r.report.LSI.Mean, r.report.LSI.Max))
	}
	picture, err := figure.CDF(title, graphs)
	result.Pictures = []figure.Picture{picture}
	return result, err
}

func hopsByDegree(ctx context.Context, e Experiment, j Job) (result Result, err error) {
	runs, err := open(ctx, e, j)
	if err != nil {
		return result, err
	}
	used := map[string]int{}
	for _, r := range runs {
		// Two runs of one graph have files of their own.
		name := "k-degree-" + r.name
		if used[name]++; used[name] > 1 {
			name = fmt.Sprintf("%s-%d", name, used[name])
		}
		if len(r.report.LSI.ByDegree) == 0 {
			return result, e.Missing(r.URI() + " has one of an earlier version, without K by degree: make it again with ndls lsi --resume=false")
		}
		var buckets []figure.Bucket
		table := Table{
			Name: name, Title: fmt.Sprintf("K by degree in %s (%s)", r.name, r.setting()),
			Header: []string{"degree", "nodes", "mean K", "10 %", "median", "90 %"},
		}
		for _, d := range r.report.LSI.ByDegree {
			b := figure.Bucket{Lo: d.From, Hi: d.To, Nodes: d.Nodes, Mean: d.Mean, Tenth: d.Tenth, Median: d.Median, Ninetieth: d.Ninetieth}
			buckets = append(buckets, b)
			degree := strconv.FormatInt(b.Lo, 10)
			if b.Hi > b.Lo {
				degree += " to " + strconv.FormatInt(b.Hi, 10)
			}
			table.Rows = append(table.Rows, []string{
				degree, strconv.FormatInt(b.Nodes, 10), strconv.FormatFloat(b.Mean, 'f', 2, 64),
				fmt.Sprint(b.Tenth), fmt.Sprint(b.Median), fmt.Sprint(b.Ninetieth),
			})
		}
		picture, err := figure.KByDegree("K by degree: "+r.name+"\n"+r.setting(), buckets)
		if err != nil {
			return result, err
		}
		picture.Name = name
		result.Pictures, result.Tables = append(result.Pictures, picture), append(result.Tables, table)
	}
	return result, nil
}

// bound sets K beside the bound of theorem 3.1, ⌈log_λ₂(ε √(d̃/vol))⌉.
func bound(ctx context.Context, e Experiment, j Job) (result Result, err error) {
	runs, err := open(ctx, e, j)
	if err != nil {
		return result, err
	}
	table := Table{
		Name: e.Name, Title: "K beside the bound of theorem 3.1, in the largest component",
		Header: []string{"graph", "setting", "nodes", "|λ₂|", "to within", "nodes that settled", "of them K within the bound, %", "bound − K, least", "median", "most"},
	}
	for _, r := range runs {
		s := r.report.Spectrum
		if s == nil {
			return result, e.Missing(r.URI() + " has no eigenvalue")
		}
		row := []string{r.name, r.setting(), strconv.FormatInt(s.Component, 10), strconv.FormatFloat(s.Lambda2, 'f', 6, 64), strconv.FormatFloat(s.Error, 'g', 1, 64)}
		if b := s.Bound; b != nil {
			row = append(row, strconv.FormatInt(b.Nodes, 10), strconv.FormatFloat(100*b.Within, 'f', 2, 64), fmt.Sprint(b.Slack.Least), fmt.Sprint(b.Slack.Median), fmt.Sprint(b.Slack.Most))
		} else {
			row = append(row, "–", "–", "–", "–", "–")
			result.Notes = append(result.Notes, fmt.Sprintf("%s has no bound: %s", r.name, s.WithoutBound))
		}
		table.Rows = append(table.Rows, row)
	}
	result.Tables = []Table{table}
	return result, nil
}

// karate finds the exact K of the members of the club and draws them.
func karate(ctx context.Context, e Experiment, j Job) (result Result, err error) {
	c := j.Config
	if len(j.Runs) != 1 {
		return result, e.Missing("it takes one --run")
	}
	c.Run, c.Dataset = j.Runs[0], "karate:"
	given := c.Options
	c.Options = func(o *ndls.Options) {
		o.LSI.Mode = "influence-exact"
		if given != nil {
			given(o)
		}
	}
	d, err := ndls.Run(ctx, c, ndls.StagePartition, ndls.StageLSI)
	if err != nil {
		return result, err
	}
	g, err := network(ctx, d)
	if err != nil {
		return result, err
	}
	report, err := d.Report(ctx)
	if err != nil {
		return result, err
	}
	r := opened{d, report.Dataset.Name, report}
	picture, err := figure.Network("K of each member of the karate club\n"+r.setting(), g)
	picture.Name = "karate"
	result.Pictures = []figure.Picture{picture}
	result.Notes = []string{fmt.Sprintf("%s (%s): mean K %.2f, largest %d", r.name, r.setting(), report.LSI.Mean, report.LSI.Max)}
	return result, err
}

// network reads a small graph.
func network(ctx context.Context, d *ndls.Directory) (g figure.Graph, err error) {
	summary, err := d.Graph(ctx)
	if err != nil {
		return g, err
	}
	g.Classes = summary.Classes
	place := map[string]int{}
	if err := records(ctx, d, "nodes", func(value func(column string) string) error {
		place[value("id")] = len(g.Labels)
		class, err := strconv.Atoi(value("label"))
		g.Labels, g.Class = append(g.Labels, value("id")), append(g.Class, max(class, 0))
		return err
	}); err != nil {
		return g, err
	}
	g.K = make([]int64, len(g.Labels))
	if err := records(ctx, d, "lsi", func(value func(column string) string) (err error) {
		g.K[place[value("id")]], err = strconv.ParseInt(value("k"), 10, 64)
		return err
	}); err != nil {
		return g, err
	}
	return g, records(ctx, d, "edges", func(value func(column string) string) error {
		g.Edges = append(g.Edges, [2]int{place[value("u")], place[value("v")]})
		return nil
	})
}

// records visits the rows of an artifact of a small graph.
func records(ctx context.Context, d *ndls.Directory, what string, visit func(value func(column string) string) error) error {
	var text bytes.Buffer
	if _, err := d.Export(ctx, ndls.ExportOptions{What: what, Format: "csv", To: &text}); err != nil {
		return err
	}
	rows, err := csv.NewReader(&text).ReadAll()
	if err != nil {
		return fmt.Errorf("%s of %s: %w", what, d.URI(), err)
	}
	at := map[string]int{}
	for i, name := range rows[0] {
		at[name] = i
	}
	for _, row := range rows[1:] {
		if err := visit(func(column string) string { return row[at[column]] }); err != nil {
			return fmt.Errorf("%s of %s: %w", what, d.URI(), err)
		}
	}
	return nil
}
