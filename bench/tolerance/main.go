// Command tolerance measures what --tolerance saves, and what it changes: K and smoothed rows of data
// sets, against those of --tolerance 0, which makes every hop.
//
//	go run -C bench ./tolerance -data DIR
//
// DIR holds the published data sets, one folder each. Other data sets are arguments. With -runs it also trains that many models on
// each of -splits random splits, for test accuracy.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"iter"
	"math"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/apache/arrow/go/v14/arrow"
	"github.com/apache/arrow/go/v14/arrow/array"
	"github.com/apache/arrow/go/v14/arrow/float16"

	"ndls"
)

// sets are the data sets of the table. DIR is the folder of the flag.
var sets = []string{
	"planetoid:DIR/cora/cora", "planetoid:DIR/citeseer/citeseer", "npz:DIR/coauthor_cs/coauthor_cs.npz",
	"edges:DIR/facebook/facebook_edges.csv?features=DIR/facebook/facebook.json&labels=DIR/facebook/facebook_target.csv#page_type",
	"papers100m:scale=1/256", "papers100m:scale=1/256,tails=0.2", "papers100m:scale=1/256,mix=slow",
}

// settings are the flags.
type settings struct {
	epsilon      float64
	memory       int64
	runs, splits int
}

func main() {
	var s settings
	data := flag.String("data", os.Getenv("NDLS_DATA"), "folder of the published data sets")
	tolerances := flag.String("tolerances", "0.01,0.001", "values of --tolerance beside 0, separated by commas")
	memory := flag.Float64("memory", 4, "GiB of --memory")
	flag.Float64Var(&s.epsilon, "epsilon", 0.03, "--epsilon")
	flag.IntVar(&s.runs, "runs", 0, "models of a split; 0 trains none, and smooths all rows")
	flag.IntVar(&s.splits, "splits", 10, "random splits, if models are trained")
	flag.Parse()
	s.memory = int64(*memory * (1 << 30))
	all := sets
	if flag.NArg() > 0 {
		all = flag.Args()
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	fmt.Println("| data set | tolerance | lsi, s | smooth, s | passes of a panel, lsi | smooth | other K | by more than one | rows off by, mean | 99 % | most | test accuracy |")
	fmt.Println("|---|---|---|---|---|---|---|---|---|---|---|---|")
	for _, uri := range all {
		if err := s.compare(ctx, uri, *data, strings.Split(*tolerances, ",")); err != nil {
			fmt.Fprintf(os.Stderr, "tolerance: %s: %v\n", uri, err)
			os.Exit(1)
		}
	}
}

// compare prints the lines of a data set.
func (s settings) compare(ctx context.Context, uri, data string, tolerances []string) error {
	dir, err := os.MkdirTemp("", "ndls-tolerance")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	var all *ndls.Directory
	for _, text := range append([]string{"0"}, tolerances...) {
		tolerance, err := strconv.ParseFloat(text, 64)
		if err != nil {
			return err
		}
		d, err := s.run(ctx, filepath.Join(dir, text), strings.ReplaceAll(uri, "DIR", data), tolerance)
		if err != nil {
			return err
		}
		line, err := figures(ctx, d)
		if err != nil {
			return err
		}
		apart := "– | – | – | – | –"
		if all == nil {
			all = d
		} else if apart, err = difference(ctx, all, d); err != nil {
			return err
		}
		name, _, _ := strings.Cut(strings.ReplaceAll(uri, "DIR/", ""), "?")
		fmt.Printf("| %s | %s | %s | %s | %s |\n", name, text, line[0], apart, line[1])
	}
	return nil
}

// run makes a run directory of a data set.
func (s settings) run(ctx context.Context, dir, uri string, tolerance float64) (*ndls.Directory, error) {
	c := ndls.Config{
		Run: dir, Dataset: uri, Resources: ndls.Resources{Memory: s.memory, Scratch: filepath.Dir(dir)},
		Options: func(o *ndls.Options) {
			o.Tolerance, o.LSI.Epsilon = tolerance, s.epsilon
			if s.runs > 0 {
				o.Train.Runs, o.Partition.Splits, o.Partition.Split = s.runs, s.splits, "random:20,30"
			}
		},
	}
	if s.runs > 0 {
		return ndls.Run(ctx, c)
	}
	return ndls.Run(ctx, c, ndls.StagePartition, ndls.StageLSI, ndls.StageSmooth)
}

// figures returns seconds and passes of a run, and its accuracy.
func figures(ctx context.Context, d *ndls.Directory) (line [2]string, err error) {
	report, err := d.Report(ctx)
	if err != nil {
		return line, err
	}
	seconds, passes := map[string]float64{}, map[string]string{}
	for _, x := range report.Stages {
		seconds[string(x.Name)], passes[string(x.Name)] = x.Seconds, "every hop"
		if p := x.Polynomials; p != nil {
			passes[string(x.Name)] = strconv.Itoa(p.Passes)
			if p.Share < 1 {
				passes[string(x.Name)] = fmt.Sprintf("%d and %d on %.1f %% of the edges", p.Plain, p.Passes-p.Plain, 100*p.Share)
			}
		}
	}
	line = [2]string{fmt.Sprintf("%.2f | %.2f | %s | %s", seconds["lsi"], seconds["smooth"], passes["lsi"], passes["smooth"]), "–"}
	if a := report.Accuracy; a != nil {
		test := a.Base.Test
		if a.Smoothed.Test.Mean > 0 {
			test = a.Smoothed.Test
		}
		line[1] = fmt.Sprintf("%.2f ± %.2f", 100*test.Mean, 100*test.Std/math.Sqrt(float64(max(a.Splits, 1))))
	}
	return line, nil
}

// difference compares K of all nodes, and the rows of nodes with the same K, relative to the length of the row.
func difference(ctx context.Context, a, b *ndls.Directory) (string, error) {
	var k [2][]int64
	for i, d := range []*ndls.Directory{a, b} {
		for batch, err := range d.Records(ctx, "lsi") {
			if err != nil {
				return "", err
			}
			column := batch.Column(1)
			for row := range column.Len() {
				x, err := strconv.ParseInt(column.ValueStr(row), 10, 64)
				if err != nil {
					return "", err
				}
				k[i] = append(k[i], x)
			}
		}
	}
	other, far := 0, 0
	for i, x := range k[0] {
		if y := k[1][i]; x != y {
			other++
			if x-y > 1 || y-x > 1 {
				far++
			}
		}
	}
	off, err := rowsOff(ctx, a, b, k)
	if err != nil {
		return "", err
	}
	sum := 0.0
	for _, x := range off {
		sum += x
	}
	slices.Sort(off)
	n := float64(len(k[0]))
	return fmt.Sprintf("%.2f %% | %.2f %% | %.2g | %.2g | %.2g", 100*float64(other)/n, 100*float64(far)/n,
		sum/float64(max(len(off), 1)), off[len(off)*99/100], off[len(off)-1]), nil
}

// rowsOff returns by how much smoothed rows differ, of nodes that have the same K in both runs. Rows belong to all nodes.
func rowsOff(ctx context.Context, a, b *ndls.Directory, k [2][]int64) (off []float64, err error) {
	next, stop := iter.Pull2(rows(ctx, b))
	defer stop()
	i := 0
	for x, err := range rows(ctx, a) {
		if err != nil {
			return nil, err
		}
		y, err, ok := next()
		if err != nil || !ok || len(x) != len(y) || i >= len(k[0]) {
			return nil, errors.Join(err, fmt.Errorf("smoothed row %d: the runs have other rows", i))
		}
		apart, length := 0.0, 0.0
		for c, v := range x {
			apart += (v - y[c]) * (v - y[c])
			length += v * v
		}
		if k[0][i] == k[1][i] && length > 0 {
			off = append(off, math.Sqrt(apart/length))
		}
		i++
	}
	if len(off) == 0 || i != len(k[0]) {
		return nil, fmt.Errorf("%d smoothed rows of %d nodes", i, len(k[0]))
	}
	return off, nil
}

// rows yields the smoothed rows of a run. A row is valid until the next one is asked for.
func rows(ctx context.Context, d *ndls.Directory) iter.Seq2[[]float64, error] {
	return func(yield func([]float64, error) bool) {
		var row []float64
		for batch, err := range d.Records(ctx, "smoothed") {
			if err != nil {
				yield(nil, err)
				return
			}
			list, ok := batch.Column(1).(*array.FixedSizeList)
			if !ok {
				yield(nil, fmt.Errorf("the column %s is no list of fixed size", batch.ColumnName(1)))
				return
			}
			for i := range list.Len() {
				from, to := list.ValueOffsets(i)
				if row, err = values(row[:0], list.ListValues(), from, to); !yield(row, err) || err != nil {
					return
				}
			}
		}
	}
}

// values appends values [from, to) of a column to row.
func values(row []float64, column arrow.Array, from, to int64) ([]float64, error) {
	for i := int(from); i < int(to); i++ {
		switch x := column.(type) {
		case *array.Float32:
			row = append(row, float64(x.Value(i)))
		case *array.Float16:
			row = append(row, float64(float16.Num(x.Value(i)).Float32()))
		default:
			return nil, fmt.Errorf("values of type %s", column.DataType())
		}
	}
	return row, nil
}
