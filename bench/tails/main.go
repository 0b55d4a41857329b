// Command tails prints what the generator papers100m is calibrated to, of its variants and of real
// graphs: degrees, components, sizes of classes, and how K is spread.
//
//	go run -C bench ./tails -data DIR
//
// DIR holds the published data sets, one folder each. Other data sets are arguments.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"ndls"
	"ndls/internal/control"
)

// sets are the data sets of the table. Those with a path are in the folder of the flag.
var sets = []struct{ name, uri string }{
	{"cora", "planetoid:DIR/cora/cora"},
	{"citeseer", "planetoid:DIR/citeseer/citeseer"},
	{"pubmed", "planetoid:DIR/pubmed/pubmed"},
	{"coauthor_cs", "npz:DIR/coauthor_cs/coauthor_cs.npz"},
	{"facebook", "edges:DIR/facebook/facebook_edges.csv?features=DIR/facebook/facebook.json&labels=DIR/facebook/facebook_target.csv#page_type"},
	{"web_notredame", "edges:DIR/web_notredame/web-NotreDame.txt.gz"},
	{"papers100m:scale=1/256", "papers100m:scale=1/256"},
	{"…,mix=slow", "papers100m:scale=1/256,mix=slow"},
	{"…,tails=0", "papers100m:scale=1/256,tails=0"},
	{"…,tails=0.2", "papers100m:scale=1/256,tails=0.2"},
	{"…,tails=0.5", "papers100m:scale=1/256,tails=0.5"},
}

func main() {
	data := flag.String("data", os.Getenv("NDLS_DATA"), "folder of the published data sets")
	epsilon := flag.Float64("epsilon", 0.05, "ε of K")
	probes := flag.Int("probes", 64, "probes of K")
	kmax := flag.Int("kmax", 200, "largest K")
	memory := flag.Float64("memory", 2, "budget in GiB")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	list := sets
	if flag.NArg() > 0 {
		list = nil
		for _, uri := range flag.Args() {
			list = append(list, struct{ name, uri string }{uri, uri})
		}
	}
	fmt.Println("| data set | nodes | mean degree | degree 1 | outside the largest component | components of 1 node | of 2 to 15 | mean K | 10 % of the nodes: K ≤ | 50 % | 90 % | K > 16 | > 40 | > 64 | at Kmax | largest K |")
	fmt.Println("|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|")
	for _, s := range list {
		line, err := describe(ctx, s.name, strings.ReplaceAll(s.uri, "DIR", *data), func(o *ndls.Options) {
			o.Partition.Features = "none" // K does not depend on them
			o.LSI.Epsilon, o.LSI.Probes, o.LSI.Kmax = *epsilon, *probes, *kmax
		}, int64(*memory*(1<<30)))
		if err != nil {
			fmt.Fprintf(os.Stderr, "tails: %s: %v\n", s.name, err)
			os.Exit(1)
		}
		fmt.Println(line)
	}
}

// describe is the line of a data set.
func describe(ctx context.Context, name, uri string, options func(*ndls.Options), memory int64) (string, error) {
	dir, err := os.MkdirTemp("", "ndls-tails")
	if err != nil {
		return "", err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	d, err := ndls.Run(ctx, ndls.Config{
		Run: filepath.Join(dir, "run"), Dataset: uri, Options: options, Resources: ndls.Resources{Memory: memory, Scratch: dir},
	}, ndls.StagePartition, ndls.StageDegrees, ndls.StageLSI)
	if err != nil {
		return "", err
	}
	report, err := d.Report(ctx)
	if err != nil {
		return "", err
	}
	nodes := report.Dataset.Nodes
	share := func(n int64) string { return fmt.Sprintf("%.3f", float64(n)/float64(nodes)) }
	of := func(list []control.Range, from, to int64) (n int64) {
		for _, r := range list {
			if from <= r.From && r.To <= to {
				n += r.Count
			}
		}
		return n
	}
	graph, err := d.Graph(ctx)
	if err != nil {
		return "", err
	}
	degrees, lsi := report.Degrees, report.LSI
	cells := []string{
		name, fmt.Sprint(nodes), fmt.Sprintf("%.1f", degrees.Mean), share(of(degrees.Degrees, 1, 1)),
		fmt.Sprintf("%.5f", float64(nodes-graph.LargestComponent)/float64(nodes)),
		fmt.Sprint(of(degrees.Components, 1, 1)), fmt.Sprint(of(degrees.Components, 2, 15)), fmt.Sprintf("%.1f", lsi.Mean),
	}
	above := func(k int64) (n int64) {
		for _, h := range lsi.Histogram {
			if h[0] > k {
				n += h[1]
			}
		}
		return n
	}
	for _, part := range []float64{0.1, 0.5, 0.9} {
		k := int64(0)
		for float64(nodes-above(k)) < part*float64(nodes) {
			k++
		}
		cells = append(cells, fmt.Sprint(k))
	}
	for _, k := range []int64{16, 40, 64} {
		cells = append(cells, share(above(k)))
	}
	cells = append(cells, fmt.Sprintf("%.3f", lsi.CappedShare), fmt.Sprint(lsi.Max))
	return "| " + strings.Join(cells, " | ") + " |", nil
}
