// Command accuracy runs the lines of docs/results.md and prints its table:
//
//	go run ./bench/accuracy -ndls build/ndls -data DIR [-only cora]   (make results)
//
// DIR holds the published data sets, one folder each. The settings of NDLS were
// chosen by validation accuracy; those of other methods are usual ones.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// line is one row of the table.
type line struct {
	set, method string
	args        string
	// paper is what the NDLS paper or the method's own reports, test accuracy in %.
	paper string
}

const (
	cora     = "planetoid:cora/cora"
	citeseer = "planetoid:citeseer/citeseer"
	// full takes all training rows in one step.
	full = " --batch-size 0"
	// reference is the recipe of the authors' released code, except that the
	// depth of label smoothing is chosen by validation, not by test.
	reference = " --lsi feature --r 0 --stationary global --kmax 199 --epsilon 0.03 --rule ndls-reference" +
		" --dropout 0.5 --input-dropout 0.5 --lr 0.1 --epochs 200 --label-rule ndls-reference --label-epsilon 0.05"
	random = " --split random:20,30"
)

var lines = []line{
	{"cora", "MLP on raw features", cora + full + " --rule sgc --hops 0", "61.1"},
	{"cora", "SGC", cora + full + " --rule sgc --hops 4", "81.0"},
	{"cora", "S²GC", cora + full + " --rule s2gc --hops 16 --alpha 0.05", "82.7"},
	{"cora", "GBP", cora + full + " --rule gbp --hops 16 --alpha 0.1", "83.9"},
	{"cora", "NDLS", cora + full + " --label-kmax 1", "84.1 (F), 84.6 (F and L)"},
	{"cora", "NDLS, authors' recipe", cora + full + reference + " --label-kmax 1", "84.6"},
	{"citeseer", "MLP on raw features", citeseer + full + " --rule sgc --hops 0 --dropout 0.6 --input-dropout 0.6 --epochs 200", "61.8"},
	{"citeseer", "SGC", citeseer + full + " --rule sgc --hops 4 --dropout 0.6 --input-dropout 0.6 --epochs 200", "71.3"},
	{"citeseer", "S²GC", citeseer + full + " --rule s2gc --hops 16 --alpha 0.05 --dropout 0.6 --input-dropout 0.6 --epochs 200", "73.0"},
	{"citeseer", "GBP", citeseer + full + " --rule gbp --hops 16 --alpha 0.1 --dropout 0.6 --input-dropout 0.6 --epochs 200", "72.9"},
	{"citeseer", "NDLS", citeseer + full + " --epsilon 0.05 --dropout 0.6 --input-dropout 0.6 --epochs 200 --label-kmax 1", "73.5 (F), 73.7 (F and L)"},
	{"citeseer", "NDLS, authors' recipe", citeseer + full + reference + " --label-kmax 1", "73.7"},
	{"coauthor_cs", "NDLS", "npz:coauthor_cs/coauthor_cs.npz" + random + full + " --epochs 200 --epsilon 0.1 --label-kmax 1", "–"},
	{"cora_ml", "NDLS", "npz:cora_ml/cora_ml.npz" + random + full + " --epochs 200 --label-kmax 1", "–"},
	{"facebook", "NDLS", "edges:facebook/facebook_edges.csv?features=facebook/facebook.json&labels=facebook/facebook_target.csv#page_type" +
		random + full + " --epochs 200 --label-kmax 3", "–"},
}

func main() {
	ndls := flag.String("ndls", "build/ndls", "the program")
	data := flag.String("data", filepath.Join(os.Getenv("NDLS_DATA"), "data"), "folder of the data sets")
	only := flag.String("only", "", "only lines whose data set or method holds this text")
	flag.Parse()
	if err := run(*ndls, *data, *only); err != nil {
		fmt.Fprintln(os.Stderr, "accuracy:", err)
		os.Exit(1)
	}
}

func run(ndls, data, only string) error {
	ndls, err := filepath.Abs(ndls)
	if err != nil {
		return err
	}
	fmt.Println("| data set | method | paper, test | validation | test, before label smoothing | test, after | options of `ndls run` |")
	fmt.Println("|---|---|---|---|---|---|---|")
	for _, l := range lines {
		if !strings.Contains(l.set+" "+l.method, only) {
			continue
		}
		a, err := measure(ndls, data, l)
		if err != nil {
			return fmt.Errorf("%s, %s: %w", l.set, l.method, err)
		}
		fmt.Printf("| %s | %s | %s | %s | %s | %s | `--dataset %s` |\n", l.set, l.method, l.paper,
			a.Base.Valid, a.Base.Test, a.Smoothed.Test, strings.ReplaceAll(l.args, "|", `\|`))
	}
	return nil
}

type spread struct{ Mean, Std float64 }

func (s spread) String() string { return fmt.Sprintf("%.2f ± %.2f", 100*s.Mean, 100*s.Std) }

type accuracy struct {
	Base, Smoothed struct{ Valid, Test spread }
}

func measure(ndls, data string, l line) (a accuracy, err error) {
	dir, err := os.MkdirTemp("", "ndls-accuracy")
	if err != nil {
		return a, err
	}
	defer os.RemoveAll(dir)
	cmd := exec.Command(ndls, append([]string{"run", "--quiet", "--run", filepath.Join(dir, "run"), "--dataset"}, strings.Fields(l.args)...)...)
	cmd.Dir = data
	if out, err := cmd.CombinedOutput(); err != nil {
		return a, fmt.Errorf("%w\n%s", err, out)
	}
	b, err := os.ReadFile(filepath.Join(dir, "run", "report.json"))
	if err != nil {
		return a, err
	}
	var report struct{ Accuracy accuracy }
	err = json.Unmarshal(b, &report)
	return report.Accuracy, err
}
