package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"ndls"
	"ndls/bench/figure"
	"ndls/bench/reproduce"
	"ndls/internal/vfs"
)

func (a *app) reproduceCommand() *cobra.Command {
	var j reproduce.Job
	var long strings.Builder
	long.WriteString(`reproduce makes a table or a figure of the paper, and writes it to --out: figures as PNG and SVG,
tables as Markdown, CSV and LaTeX, and those of accuracies and seconds as JSON too. Where data are missing,
it names them, and the lines that run the experiment.

A method is ahead of another, or behind it, where the difference is significant at 0.05: random splits
are compared one by one, with a correction for their overlap (Nadeau and Bengio), and p-values are
adjusted for the number of comparisons of the table (Holm). All else is level. TABLE-splits.csv has the
accuracy of each model.

Tables make their own runs, in --out, which go when they are done. What came of each experiment
stays in OUT/experiments, so that the same command, after an interruption or with more --sets, does
not repeat it. Settings are chosen by the accuracy on validation nodes, for each method from as many
--trials, on up to 3 of the splits. Test nodes are compared with their labels for the chosen settings
alone. --data is a folder with a folder for each data set: cora, citeseer and pubmed with the files
ind.NAME.*; cora_ml and coauthor_cs with NAME.npz; facebook with the three files of MUSAE; flickr and
reddit with the four files of GraphSAINT.

NAMES
`)
	for _, e := range reproduce.All {
		needs := ""
		if e.Needs != "" {
			needs = "; needs " + e.Needs
		}
		fmt.Fprintf(&long, "  %-18s %s%s\n", e.Name, e.About, needs)
	}
	long.WriteString("\nDATA SETS, METHODS AND CONDITIONS OF TABLES, for --sets, --methods and --conditions\n")
	for _, e := range reproduce.All {
		if len(e.Sets) > 0 {
			fmt.Fprintf(&long, "  %s\n    %s\n    %s\n", e.Name, strings.Join(e.Sets, ", "), strings.Join(e.Methods, ", "))
			if len(e.Conditions) > 0 {
				fmt.Fprintf(&long, "    %s\n", strings.Join(e.Conditions, ", "))
			}
		}
	}
	cmd := a.command("reproduce NAME --out DIR", "a table or a figure of the paper", long.String(), func(ctx context.Context, args []string) error {
		name := args[0]
		e, err := reproduce.Find(name)
		if err != nil {
			return err
		}
		for _, n := range []struct {
			flag  string
			value int
		}{{"trials", j.Trials}, {"splits", j.Splits}, {"runs", j.Models}} {
			if n.value < 0 {
				return asUsage(fmt.Errorf("--%s %d is negative", n.flag, n.value))
			}
		}
		if err := os.MkdirAll(j.Out, 0o777); err != nil {
			return fmt.Errorf("--out: %w", err)
		}
		if len(j.Runs) == 0 && e.Needs == "" {
			j.Runs = []string{filepath.Join(j.Out, name+"-run")}
		}
		j.Config = ndls.Config{Resources: a.resources(), Log: a.log}
		result, err := e.Make(ctx, j)
		if err != nil {
			return err
		}
		return a.reproduced(j.Out, name, result)
	})
	cmd.Args = cobra.ExactArgs(1)
	f := cmd.Flags()
	f.StringVar(&j.Out, "out", "", "folder to write to (required)")
	_ = cmd.MarkFlagRequired("out")
	f.StringSliceVar(&j.Runs, "run", nil, "figures: run directories to read, with commas between them; where the figure makes a run of its own, its directory (default NAME-run in --out)")
	f.StringVar(&j.Data, "data", "data", "tables: folder of the data sets")
	f.StringSliceVar(&j.Sets, "sets", nil, "tables: data sets, with commas between them (default all of the table)")
	f.StringSliceVar(&j.Methods, "methods", nil, "tables: methods, with commas between them (default all of the table)")
	f.StringSliceVar(&j.Conditions, "conditions", nil, "tables: conditions, with commas between them (default all of the table)")
	f.IntVar(&j.Trials, "trials", reproduce.DefaultTrials, "tables: settings of each method that are compared by validation")
	f.IntVar(&j.Splits, "splits", reproduce.DefaultSplits, "tables: random splits, of data sets without a published one")
	f.IntVar(&j.Models, "runs", 0, fmt.Sprintf("tables: models of each split (default %d, of a published split %d)", reproduce.DefaultModels, reproduce.DefaultPublishedModels))
	f.StringVar(&j.Options, "options", "", `tables: further options of ndls run for all methods, such as "--epochs 200 --patience 50"`)
	f.BoolVar(&j.Peers, "peers", false, "tables transductive, inductive and efficiency: graph networks of other papers, too, each alone and with NDLS-L on its soft labels")
	f.StringVar(&j.Python, "python", "python3", "tables: the Python that trains trees, with numpy, pyarrow, scikit-learn and xgboost, and peers, with numpy, pyarrow, scipy, torch, torch_geometric and pymetis")
	cmd.Example = `  ndls reproduce karate --out FIGURES
  ndls reproduce k-cdf --run CORA,CITESEER --out FIGURES
  ndls reproduce transductive --data DATA --sets cora,citeseer --out TABLES
  ndls reproduce sparsity --data DATA --sets cora --conditions "all,5 labels a class" --out TABLES
  ndls reproduce inductive --data DATA --sets cora --peers --python VENV/bin/python --out TABLES
  ndls reproduce base-models --data DATA --python VENV/bin/python --out TABLES`
	return cmd
}

// reproduced writes and prints what the experiment of a name gave.
func (a *app) reproduced(out, name string, r reproduce.Result) error {
	for _, t := range r.Tables {
		if err := a.written(filepath.Join(out, t.Name+".csv"), t.WriteCSV); err != nil {
			return err
		}
		if t.Long {
			continue
		}
		if err := a.written(filepath.Join(out, t.Name+".md"), t.Write); err != nil {
			return err
		}
		if err := a.written(filepath.Join(out, t.Name+".tex"), t.WriteLaTeX); err != nil {
			return err
		}
		if err := t.Write(a.stdout); err != nil {
			return err
		}
	}
	if r.Data != nil {
		if err := a.written(filepath.Join(out, name+".json"), func(w io.Writer) error {
			e := json.NewEncoder(w)
			e.SetIndent("", "  ")
			e.SetEscapeHTML(false)
			return e.Encode(r.Data)
		}); err != nil {
			return err
		}
	}
	for _, p := range r.Pictures {
		for _, format := range figure.Formats {
			if err := a.written(filepath.Join(out, p.Name+"."+format), func(w io.Writer) error { return p.Write(w, format) }); err != nil {
				return err
			}
		}
	}
	for _, note := range r.Notes {
		if _, err := fmt.Fprintln(a.stdout, note); err != nil {
			return err
		}
	}
	return nil
}

// written makes a file, and prints its name.
func (a *app) written(path string, write func(io.Writer) error) error {
	var text bytes.Buffer
	if err := write(&text); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	if err := vfs.ReplaceFile(path, text.Bytes(), 0o666); err != nil {
		return fmt.Errorf("--out: %w", err)
	}
	_, err := fmt.Fprintln(a.stdout, path)
	return err
}
