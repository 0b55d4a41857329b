package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"ndls"
)

// listedNeighbours is the number of neighbours that are listed unless --neighbours says otherwise.
const listedNeighbours = 10

func (a *app) explainCommand() *cobra.Command {
	var o ndls.ExplainOptions
	cmd := a.command("explain RUN --node ID", "why a node has its K and its prediction",
		`explain shows of one node its degree and component, K, how K of its neighbours is spread, its distance from the
stationary state at each hop, and what the classifier says of it before and after label smoothing. ID
is the id that the node has in the dataset.

Degrees, K and predictions are read from the run directory. Distances are not stored: they are computed
anew for the node, exactly, so that they may give another K than the estimate of a run whose distances are by
influence-sketch. They go as far as that K and the hop at which the distance falls below --epsilon of the run, or to
--hops. That takes 21 bytes of --memory for each node of the graph, and one reading of the edges for
each hop where 8 bytes for each edge, in either direction, do not fit beside it.`,
		func(ctx context.Context, _ *cobra.Command) error {
			d, err := a.open(ctx, a.runDir)
			if err != nil {
				return err
			}
			o.Resources = a.resources()
			x, err := d.Explain(ctx, o)
			if err != nil {
				return err
			}
			return a.jsonOr(x, func(w io.Writer) error { return printExplanation(w, x) })
		})
	a.runFlag(cmd)
	f := cmd.Flags()
	f.StringVar(&o.Node, "node", "", "input id of the node (required)")
	f.IntVar(&o.Hops, "hops", 0, "hop up to which distances are computed, at most --kmax of the run (default as far as K)")
	f.IntVar(&o.Neighbours, "neighbours", listedNeighbours, "neighbours to list, those with the largest degrees")
	_ = cmd.MarkFlagRequired("node")
	cmd.Example = `  ndls explain RUN --node 1234
  ndls explain RUN --node 10.1000/182 --json | jq .distances.hops`
	return cmd
}

func printExplanation(w io.Writer, x *ndls.Explanation) error {
	t := newTable(w, 2, 0)
	fmt.Fprintf(t, "node\t%s\n", plain(x.ID))
	degree := count(int64(x.Degree), "neighbour")
	if x.OutDegree != nil {
		degree = fmt.Sprintf("%s, of which %d begin here", count(int64(x.Degree), "edge"), *x.OutDegree)
	}
	if x.Strength > 0 {
		degree += fmt.Sprintf(", weights add up to %.4g", x.Strength)
	}
	fmt.Fprintf(t, "degree\t%s\n", degree)
	fmt.Fprintf(t, "component\t%d, with %s\n", x.Component, count(x.ComponentNodes, "node"))
	label := "none"
	if x.Label != nil {
		label = plain(x.Label.Name)
	}
	fmt.Fprintf(t, "label\t%s; split: %s\n", label, cmp.Or(x.Split, "none"))
	fmt.Fprintf(t, "K\t%s\n", describeK(x))
	fmt.Fprintf(t, "its neighbours' K\t%s\n", spreadOfK(x.Neighbours.K))
	if err := t.Flush(); err != nil {
		return err
	}
	printNeighbours(w, x)
	printDistances(w, x)
	return printLabels(w, x)
}

// describeK says what K is, and whether the exact distances agree.
func describeK(x *ndls.Explanation) string {
	if x.K == nil {
		return "not found by this run"
	}
	text := fmt.Sprintf("%d, with --epsilon %g; distances by %s", x.K.K, x.Epsilon, x.Mode)
	if x.K.Capped {
		text = fmt.Sprintf("%d, the largest there is: the node has not settled with --epsilon %g", x.K.K, x.Epsilon)
	}
	if d := x.Distances; d != nil && d.K != nil && *d.K != x.K.K {
		text += fmt.Sprintf("; by the exact distances %d", *d.K)
	}
	return text
}

// spreadOfK is a histogram in words: least, median and largest, and each K where there are few.
func spreadOfK(histogram [][2]int) string {
	total := 0
	for _, h := range histogram {
		total += h[1]
	}
	if total == 0 {
		return "–"
	}
	median, seen := 0, 0
	for _, h := range histogram {
		if seen += h[1]; 2*seen >= total {
			median = h[0]
			break
		}
	}
	text := fmt.Sprintf("%d to %d, median %d", histogram[0][0], histogram[len(histogram)-1][0], median)
	if len(histogram) > shownValues {
		return text
	}
	var parts []string
	for _, h := range histogram {
		parts = append(parts, fmt.Sprintf("%d: %d", h[0], h[1]))
	}
	return text + " (" + strings.Join(parts, ", ") + ")"
}

// shownValues is the number of values of K that are listed one by one, and of classes of a
// prediction.
const shownValues = 8

func printNeighbours(w io.Writer, x *ndls.Explanation) {
	list := x.Neighbours.First
	if len(list) == 0 {
		return
	}
	t := newTable(w, 2, 0)
	fmt.Fprintf(t, "\nneighbour\tdegree\tK\tlabel")
	weighted := list[0].Weight != nil
	if weighted {
		fmt.Fprintf(t, "\tweight")
	}
	fmt.Fprintln(t)
	for _, n := range list {
		k, label := "–", "–"
		if n.K != nil {
			k = fmt.Sprint(*n.K)
		}
		if n.Label != nil {
			label = plain(n.Label.Name)
		}
		fmt.Fprintf(t, "%s\t%d\t%s\t%s", plain(n.ID), n.Degree, k, label)
		if weighted {
			fmt.Fprintf(t, "\t%.4g", *n.Weight)
		}
		fmt.Fprintln(t)
	}
	_ = t.Flush()
	if left := x.Neighbours.Count - len(list); left > 0 {
		fmt.Fprintf(w, "and %s with smaller degrees\n", count(int64(left), "neighbour"))
	}
}

func printDistances(w io.Writer, x *ndls.Explanation) {
	d := x.Distances
	switch {
	case d == nil && x.OutDegree != nil:
		fmt.Fprintf(w, "\nno distances: edges with directions have no stationary state\n")
		return
	case d == nil:
		fmt.Fprintf(w, "\nno distances: the run has found K from features, and has let them go (--keep-features=false)\n")
		return
	}
	t := newTable(w, 2, tabwriter.AlignRight)
	fmt.Fprintf(t, "\nhop\tdistance of %s\t\n", d.Of)
	for hop, distance := range d.Hops {
		mark := ""
		if d.K != nil && hop == *d.K {
			mark = fmt.Sprintf("  below %g", x.Epsilon)
		}
		fmt.Fprintf(t, "%d\t%.4g\t%s\n", hop, distance, mark)
	}
	_ = t.Flush()
	fmt.Fprintf(w, "distances are computed for this node in float64, not read from the run\n")
}

// printLabels says what the classifier says, and what label smoothing made of it.
func printLabels(w io.Writer, x *ndls.Explanation) error {
	if x.Before == nil && x.After == nil {
		_, err := fmt.Fprintf(w, "\nno predictions of this node\n")
		return err
	}
	t := newTable(w, 2, 0)
	fmt.Fprintf(t, "\nprediction\tbefore label smoothing\tafter label smoothing\n")
	if answersOf(x.Before) != nil || answersOf(x.After) != nil {
		for i, name := range x.ClassNames {
			fmt.Fprintf(t, "%s\t%s\t%s\n", plain(name), answerOf(x.Before, i), answerOf(x.After, i))
		}
		return t.Flush()
	}
	fmt.Fprintf(t, "class\t%s\t%s\n", predicted(x.Before), predicted(x.After))
	for _, c := range likely(x) {
		fmt.Fprintf(t, "  %s\t%s\t%s\n", plain(c.Name), probability(x.Before, c), probability(x.After, c))
	}
	if err := t.Flush(); err != nil {
		return err
	}
	if l := x.LabelSmoothing; l != nil {
		how := "--label-depth"
		if l.Chosen {
			how = "chosen by the validation nodes"
		}
		hops := "its hops follow from a K table that is not kept"
		if l.Hops != nil {
			hops = "this node takes " + count(int64(*l.Hops), "hop")
		}
		fmt.Fprintf(w, "label smoothing: --label-rule %s, %s at most (%s); %s\n", l.Rule, count(int64(l.Depth), "hop"), how, hops)
	}
	if x.Before == nil || x.After == nil {
		return nil
	}
	_, err := fmt.Fprintln(w, whatSmoothingDid(x))
	return err
}

// answersOf returns the probabilities of labels, or the numbers, of a prediction, nil for one of a class.
func answersOf(p *ndls.NodePrediction) []float32 {
	if p == nil {
		return nil
	}
	return p.Values
}

// answerOf returns one of them in words.
func answerOf(p *ndls.NodePrediction, i int) string {
	if values := answersOf(p); i < len(values) {
		return fmt.Sprintf("%.4g", values[i])
	}
	return "–"
}

// predicted is a prediction in words.
func predicted(p *ndls.NodePrediction) string {
	if p == nil {
		return "–"
	}
	text := fmt.Sprintf("%s, %.4f", plain(p.Class.Name), p.Probability)
	if p.Right != nil {
		text += map[bool]string{true: ", right", false: ", wrong"}[*p.Right]
	}
	return text
}

// likely are the most probable classes of either prediction, where all probabilities are known.
func likely(x *ndls.Explanation) (list []ndls.NodeClass) {
	for _, p := range []*ndls.NodePrediction{x.After, x.Before} {
		if p == nil || p.Probabilities == nil {
			continue
		}
		order := make([]int, len(p.Probabilities))
		for c := range order {
			order[c] = c
		}
		slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(p.Probabilities[b], p.Probabilities[a]) })
		for _, c := range order[:min(len(order), shownValues)] {
			class := ndls.NodeClass{Number: int32(c), Name: x.ClassNames[c]}
			if !slices.Contains(list, class) {
				list = append(list, class)
			}
		}
	}
	return list
}

// probability returns the probability of a class in words.
func probability(p *ndls.NodePrediction, c ndls.NodeClass) string {
	switch {
	case p != nil && p.Probabilities != nil:
		return fmt.Sprintf("%.4f", p.Probabilities[c.Number])
	case p != nil && p.Class == c:
		return fmt.Sprintf("%.4f", p.Probability)
	}
	return "–"
}

// whatSmoothingDid reports whether label smoothing has changed the class.
func whatSmoothingDid(x *ndls.Explanation) string {
	before, after := x.Before.Class, x.After.Class
	switch {
	case before == after:
		return "label smoothing has not changed the class"
	case x.Label == nil:
		return fmt.Sprintf("label smoothing has changed the class from %s to %s", plain(before.Name), plain(after.Name))
	case *x.After.Right:
		return "label smoothing has made the class right"
	case *x.Before.Right:
		return "label smoothing has made the class wrong"
	}
	return "label smoothing has changed one wrong class into another"
}
