package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"ndls"
	"ndls/figure"
	"ndls/reproduce"
)

func (a *app) reproduceCommand() *cobra.Command {
	var runs []string
	var out string
	var long strings.Builder
	long.WriteString(`reproduce makes a table or a figure of the paper, and writes it to --out: figures as PNG and SVG,
tables as Markdown. Where data are missing, it names them, and the lines that run the experiment.

NAMES
`)
	for _, e := range reproduce.All {
		needs := ""
		if e.Needs != "" {
			needs = "; needs " + e.Needs
		}
		fmt.Fprintf(&long, "  %-14s %s%s\n", e.Name, e.About, needs)
	}
	var name string
	cmd := a.command("reproduce NAME --out DIR", "a table or a figure of the paper", long.String(), func(ctx context.Context, _ *cobra.Command) error {
		e, err := reproduce.Find(name)
		if err != nil {
			return err
		}
		if err := os.MkdirAll(out, 0o755); err != nil {
			return fmt.Errorf("--out: %w", err)
		}
		if len(runs) == 0 && e.Needs == "" {
			runs = []string{filepath.Join(out, name+"-run")}
		}
		result, err := e.Make(ctx, reproduce.Job{Runs: runs, Config: ndls.Config{Resources: a.resources(), Log: a.log}})
		if err != nil {
			return err
		}
		return a.reproduced(out, result)
	})
	cmd.Args = cobra.ExactArgs(1)
	run := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		name = args[0]
		return run(cmd, args)
	}
	f := cmd.Flags()
	f.StringSliceVar(&runs, "run", nil, "run directories to read, with commas between them; where the experiment makes a run of its own, its directory (default NAME-run in --out)")
	f.StringVar(&out, "out", "", "folder to write to (required)")
	_ = cmd.MarkFlagRequired("out")
	cmd.Example = `  ndls reproduce karate --out FIGURES
  ndls reproduce k-cdf --run CORA,CITESEER --out FIGURES`
	return cmd
}

// reproduced writes and prints what an experiment gave.
func (a *app) reproduced(out string, r reproduce.Result) error {
	for _, t := range r.Tables {
		if err := a.written(filepath.Join(out, t.Name+".md"), t.Write); err != nil {
			return err
		}
		if err := t.Write(a.stdout); err != nil {
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
	f, err := os.Create(path)
	if err != nil {
		return fmt.Errorf("--out: %w", err)
	}
	err = write(f)
	if closed := f.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	_, err = fmt.Fprintln(a.stdout, path)
	return err
}
