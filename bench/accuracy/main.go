// Command accuracy runs the lines of docs/results.md and prints its table:
//
//	go run ./bench/accuracy -data DIR [-only cora]   (make results)
//
// DIR holds the published data sets, one folder each. The settings of NDLS were
// chosen by validation accuracy; those of other methods are usual ones.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"ndls"
)

// line is one row of the table.
type line struct {
	set, method, dataset string
	options              []option
	// paper is what the NDLS paper or the method's own reports, test accuracy in %.
	paper string
}

// option is an option of a run, and how the command ndls spells it.
type option struct {
	spelling string
	set      func(*ndls.Options)
}

// opt gives a field of the options a value.
func opt[T any](flag string, value T, field func(*ndls.Options) *T) option {
	return option{fmt.Sprintf("--%s %v", flag, value), func(o *ndls.Options) { *field(o) = value }}
}

func batch(n int) option {
	return opt("batch-size", n, func(o *ndls.Options) *int { return &o.Train.BatchSize })
}

func hops(n int) option { return opt("hops", n, func(o *ndls.Options) *int { return &o.Smooth.Hops }) }

func epochs(n int) option {
	return opt("epochs", n, func(o *ndls.Options) *int { return &o.Train.Epochs })
}

func kmax(n int) option { return opt("kmax", n, func(o *ndls.Options) *int { return &o.LSI.Kmax }) }

func r(x float64) option { return opt("r", x, func(o *ndls.Options) *float64 { return &o.LSI.R }) }

func lr(x float64) option { return opt("lr", x, func(o *ndls.Options) *float64 { return &o.Train.LR }) }

func lsi(s string) option { return opt("lsi", s, func(o *ndls.Options) *string { return &o.LSI.Mode }) }

func rule(s string) option {
	return opt("rule", s, func(o *ndls.Options) *string { return &o.Smooth.Rule })
}

func split(s string) option {
	return opt("split", s, func(o *ndls.Options) *string { return &o.Partition.Split })
}

func alpha(x float64) option {
	return opt("alpha", x, func(o *ndls.Options) *float64 { return &o.Smooth.Alpha })
}

func epsilon(x float64) option {
	return opt("epsilon", x, func(o *ndls.Options) *float64 { return &o.LSI.Epsilon })
}

func dropout(x float64) option {
	return opt("dropout", x, func(o *ndls.Options) *float64 { return &o.Train.Dropout })
}

func inputDropout(x float64) option {
	return opt("input-dropout", x, func(o *ndls.Options) *float64 { return &o.Train.InputDropout })
}

func stationary(s string) option {
	return opt("stationary", s, func(o *ndls.Options) *string { return &o.LSI.Stationary })
}

func labelDepth(n int) option {
	return opt("label-depth", strconv.Itoa(n), func(o *ndls.Options) *string { return &o.Labels.Depth })
}

func labelRule(s string) option {
	return opt("label-rule", s, func(o *ndls.Options) *string { return &o.Labels.Rule })
}

func labelEpsilon(x float64) option {
	return opt("label-epsilon", x, func(o *ndls.Options) *float64 { return &o.Labels.Epsilon })
}

const (
	cora     = "planetoid:cora/cora"
	citeseer = "planetoid:citeseer/citeseer"
	facebook = "edges:facebook/facebook_edges.csv?features=facebook/facebook.json&labels=facebook/facebook_target.csv#page_type"
)

// full takes all training rows in one step.
var full = batch(0)

// reference is the recipe of the authors' released code, except that the depth of label
// smoothing is chosen by validation, not by test.
var reference = []option{
	full, lsi("feature"), r(0), stationary("global"), kmax(199), epsilon(0.03), rule("ndls-reference"),
	dropout(0.5), inputDropout(0.5), lr(0.1), epochs(200), labelRule("ndls-reference"), labelEpsilon(0.05), labelDepth(1),
}

// random is for data sets without a published split.
var random = split("random:20,30")

// citeseerWith are the options of a method on citeseer.
func citeseerWith(o ...option) []option {
	return append(append([]option{full}, o...), dropout(0.6), inputDropout(0.6), epochs(200))
}

var lines = []line{
	{"cora", "MLP on raw features", cora, []option{full, rule("sgc"), hops(0), labelDepth(40)}, "61.1"},
	{"cora", "SGC", cora, []option{full, rule("sgc"), hops(4), labelDepth(40)}, "81.0"},
	{"cora", "S²GC", cora, []option{full, rule("s2gc"), hops(16), alpha(0.05), labelDepth(40)}, "82.7"},
	{"cora", "GBP", cora, []option{full, rule("gbp"), hops(16), alpha(0.1), labelDepth(40)}, "83.9"},
	{"cora", "NDLS", cora, []option{full, labelDepth(1)}, "84.1 (F), 84.6 (F and L)"},
	{"cora", "NDLS, authors' recipe", cora, reference, "84.6"},
	{"citeseer", "MLP on raw features", citeseer, append(citeseerWith(rule("sgc"), hops(0)), labelDepth(40)), "61.8"},
	{"citeseer", "SGC", citeseer, append(citeseerWith(rule("sgc"), hops(4)), labelDepth(40)), "71.3"},
	{"citeseer", "S²GC", citeseer, append(citeseerWith(rule("s2gc"), hops(16), alpha(0.05)), labelDepth(40)), "73.0"},
	{"citeseer", "GBP", citeseer, append(citeseerWith(rule("gbp"), hops(16), alpha(0.1)), labelDepth(40)), "72.9"},
	{"citeseer", "NDLS", citeseer, append(citeseerWith(epsilon(0.05)), labelDepth(1)), "73.5 (F), 73.7 (F and L)"},
	{"citeseer", "NDLS, authors' recipe", citeseer, reference, "73.7"},
	{"coauthor_cs", "NDLS", "npz:coauthor_cs/coauthor_cs.npz", []option{random, full, epochs(200), epsilon(0.1), labelDepth(1)}, "–"},
	{"cora_ml", "NDLS", "npz:cora_ml/cora_ml.npz", []option{random, full, epochs(200), labelDepth(1)}, "–"},
	{"facebook", "NDLS", facebook, []option{random, full, epochs(200), labelDepth(3)}, "–"},
}

func main() {
	data := flag.String("data", filepath.Join(os.Getenv("NDLS_DATA"), "data"), "folder of the data sets")
	only := flag.String("only", "", "only lines whose data set or method holds this text")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *data, *only); err != nil {
		fmt.Fprintln(os.Stderr, "accuracy:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, data, only string) error {
	// The table names the data sets as the command does that is given in this folder.
	if err := os.Chdir(data); err != nil {
		return err
	}
	fmt.Println("| data set | method | paper, test | validation | test, before label smoothing | test, after | options of `ndls run` |")
	fmt.Println("|---|---|---|---|---|---|---|")
	for _, l := range lines {
		if !strings.Contains(l.set+" "+l.method, only) {
			continue
		}
		a, err := l.accuracy(ctx)
		if err != nil {
			return fmt.Errorf("%s, %s: %w", l.set, l.method, err)
		}
		fmt.Printf("| %s | %s | %s | %s | %s | %s | `%s` |\n", l.set, l.method, l.paper,
			percent(a.Base.Valid), percent(a.Base.Test), percent(a.Smoothed.Test), strings.ReplaceAll(l.spelling(), "|", `\|`))
	}
	return nil
}

// spelling is what the command ndls run is given for a line.
func (l line) spelling() string {
	text := "--dataset " + l.dataset
	for _, o := range l.options {
		text += " " + o.spelling
	}
	return text
}

// accuracy runs a line.
func (l line) accuracy(ctx context.Context) (*ndls.Accuracy, error) {
	dir, err := os.MkdirTemp("", "ndls-accuracy")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	d, err := ndls.Run(ctx, ndls.Config{
		Run: filepath.Join(dir, "run"), Dataset: l.dataset,
		Options: func(o *ndls.Options) {
			for _, x := range l.options {
				x.set(o)
			}
		},
	})
	if err != nil {
		return nil, err
	}
	report, err := d.Report(ctx)
	if err != nil {
		return nil, err
	}
	if report.Accuracy == nil {
		return nil, fmt.Errorf("the run has no accuracy: does the data set have labels and splits?")
	}
	return report.Accuracy, nil
}

// percent spells a mean and its deviation in percent.
func percent(s *ndls.Spread) string {
	if s == nil {
		return "–"
	}
	return fmt.Sprintf("%.2f ± %.2f", 100*s.Mean, 100*s.Std)
}
