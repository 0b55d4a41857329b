package reproduce

import (
	"context"
	"encoding/csv"
	"fmt"
	"io"
	"slices"
	"strings"

	"ndls"
	"ndls/bench/figure"
	"ndls/internal/failure"
	"ndls/internal/meant"
)

// Experiment is a table or a figure of the paper.
type Experiment struct {
	// Name is the argument of the command, About a line on what is shown.
	Name, About string
	// Needs says which data the experiment takes, "" for none, and Lines are the commands that
	// make it from these.
	Needs string
	Lines []string
	// Sets, Methods and Conditions are the data sets, the recipes and the conditions of a table.
	Sets, Methods, Conditions []string
	make                      func(ctx context.Context, e Experiment, j Job) (Result, error)
}

// Make makes the table or the figure.
func (e Experiment) Make(ctx context.Context, j Job) (Result, error) { return e.make(ctx, e, j) }

// Job holds the parameters of an experiment.
type Job struct {
	// Runs are run directories to read, or, where a figure makes its own, where to make them.
	Runs []string
	// Config has the resources and the log of runs that the experiment makes.
	Config ndls.Config
	// The rest is for tables. Data is the folder of the data sets, Out one for experiments that
	// are finished, and for run directories on the way.
	Data, Out string
	// Sets, Methods and Conditions are the data sets, the recipes and the conditions of the table to
	// run, none for all.
	Sets, Methods, Conditions []string
	// Trials is the number of settings of each method that are compared, Splits the number of
	// random splits, and Models the number of models of a split; 0 stands for the defaults of the
	// package.
	Trials, Splits, Models int
	// Options are further options of ndls run for all methods, as a command line spells them.
	Options string
	// Peers says that graph networks of other papers are measured, too.
	Peers bool
	// Python is the Python that runs the programs which train trees and peers, "" for python3.
	Python string
}

// Result is the result of an experiment.
type Result struct {
	Pictures []figure.Picture
	Tables   []Table
	// Notes are sentences about the result.
	Notes []string
	// Data is the result for programs, nil where pictures and tables say it all.
	Data any
}

// All are the experiments, by name in alphabetical order.
var All = registry()

// registry joins tables and figures.
func registry() []Experiment {
	all := slices.Clone(figures)
	for _, g := range grids {
		all = append(all, g.experiment())
	}
	slices.SortFunc(all, func(a, b Experiment) int { return strings.Compare(a.Name, b.Name) })
	return all
}

// figures are the experiments that read runs, or draw.
var figures = []Experiment{
	{
		Name: "k-cdf", About: "share of nodes with at most K hops",
		Needs: "run directories with the K of their nodes",
		Lines: []string{
			"ndls run --dataset planetoid:DIR/cora --run RUN",
			"ndls reproduce k-cdf --run RUN --out OUT",
		},
		make: hopsCDF,
	},
	{
		Name: "k-degree", About: "K by the degree of the node",
		Needs: "run directories with the K of their nodes",
		Lines: []string{
			"ndls run --dataset planetoid:DIR/cora --run RUN",
			"ndls reproduce k-degree --run RUN --out OUT",
		},
		make: hopsByDegree,
	},
	{
		Name: "karate", About: "Zachary's karate club with the K of each member",
		Lines: []string{"ndls reproduce karate --out OUT"},
		make:  karate,
	},
	{
		Name: "theorem-3.1", About: "second eigenvalue and the bound of theorem 3.1 beside K",
		Needs: "run directories with the second eigenvalue of their graphs",
		Lines: []string{
			"ndls partition --dataset planetoid:DIR/cora --run RUN",
			"ndls lsi --run RUN --r 0 --lsi influence-exact",
			"ndls spectrum --run RUN",
			"ndls reproduce theorem-3.1 --run RUN --out OUT",
		},
		make: bound,
	},
}

// Find is the experiment of a name.
func Find(name string) (Experiment, error) {
	i := slices.IndexFunc(All, func(e Experiment) bool { return e.Name == name })
	if i >= 0 {
		return All[i], nil
	}
	var names []string
	for _, e := range All {
		names = append(names, e.Name)
	}
	return Experiment{}, failure.Of(ndls.ErrOption, "%q is no experiment; choose one of %s%s", name, strings.Join(names, ", "), meant.Hint(name, names))
}

// Missing is the error for data that are not there.
func (e Experiment) Missing(what string) error {
	return failure.Of(ndls.ErrOption, "%s needs %s, and %s. These lines make it:\n  %s", e.Name, e.Needs, what, strings.Join(e.Lines, "\n  "))
}

// Table is a table of text.
type Table struct {
	// Name is the name of its file.
	Name, Title string
	// Long says that the table is for programs: it is written as CSV alone, and not printed.
	Long   bool
	Header []string
	Rows   [][]string
}

// WriteCSV writes the table as CSV, with a line for the names of columns.
func (t Table) WriteCSV(w io.Writer) error {
	out := csv.NewWriter(w)
	if err := out.WriteAll(append([][]string{t.Header}, t.Rows...)); err != nil {
		return err
	}
	return out.Error()
}

// Write writes the table as Markdown.
func (t Table) Write(w io.Writer) error {
	rule := make([]string, len(t.Header))
	for i := range rule {
		rule[i] = "---"
	}
	text := fmt.Sprintf("%s\n\n", t.Title)
	for _, row := range append([][]string{t.Header, rule}, t.Rows...) {
		text += "| " + cells.Replace(strings.Join(row, " \x00 ")) + " |\n"
	}
	_, err := io.WriteString(w, text)
	return err
}

// cells puts rows of Markdown together: what would end a cell or a line is kept from doing so.
var cells = strings.NewReplacer("|", `\|`, "\n", "<br>", "\x00", "|")

// WriteLaTeX writes the table as a tabular of LaTeX with the rules of package booktabs.
func (t Table) WriteLaTeX(w io.Writer) error {
	var text strings.Builder
	fmt.Fprintf(&text, "%% %s\n\\begin{tabular}{l%s}\n\\toprule\n", strings.ReplaceAll(t.Title, "\n", " "), strings.Repeat("r", len(t.Header)-1))
	for i, row := range append([][]string{t.Header}, t.Rows...) {
		text.WriteString(latex.Replace(strings.Join(row, " \x00 ")) + " \\\\\n")
		if i == 0 {
			text.WriteString("\\midrule\n")
		}
	}
	text.WriteString("\\bottomrule\n\\end{tabular}\n")
	_, err := io.WriteString(w, text.String())
	return err
}

// latex spells cells for LaTeX.
var latex = strings.NewReplacer(
	"\\", `\textbackslash{}`, "&", `\&`, "%", `\%`, "$", `\$`, "#", `\#`, "_", `\_`, "{", `\{`, "}", `\}`, "~", `\textasciitilde{}`, "^", `\textasciicircum{}`,
	"±", `$\pm$`, "ε", `$\varepsilon$`, "²", `\textsuperscript{2}`, "–", "--", "\n", " ", "\x00", "&",
)
