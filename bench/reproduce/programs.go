package reproduce

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"ndls"
	"ndls/bench/reproduce/peers"
	"ndls/examples/trees"
	"ndls/internal/failure"
	"ndls/internal/vfs"
)

// errNoPython says that no Python with the packages of a program is there.
var errNoPython = errors.New("no Python with the packages of a program")

// A program in Python trains models of another kind on what a run has exported, and writes their soft labels.
type program struct {
	file, script string
	// packages lists its imports by the names that pip has for them, and imports is a line that makes them.
	packages, imports string
	// rows names the options of the files that do not depend on the split, with what is exported to them.
	rows []exported
	// models are the names of its models.
	models []string
}

// exported is an artifact that a program reads: its option, what it is, and the stage that makes it.
type exported struct {
	option, what string
	stage        ndls.Stage
}

var smoothedRowsOf = exported{"--rows", "smoothed", ndls.StageSmooth}

var programs = []program{
	{
		file: "trees.py", script: trees.Script, packages: "numpy pyarrow scikit-learn xgboost",
		imports: "import numpy, pyarrow.parquet, sklearn.ensemble, xgboost",
		rows:    []exported{smoothedRowsOf}, models: []string{"forest", "xgboost"},
	},
	{
		file: "peers.py", script: peers.Script, packages: "numpy pyarrow scipy torch torch_geometric pymetis",
		imports: "import numpy, pyarrow.parquet, scipy.sparse, torch, torch_geometric.nn, pymetis",
		rows:    []exported{smoothedRowsOf, {"--edges", "edges", ndls.StagePartition}, {"--hops", "lsi", ndls.StageLSI}},
		models:  []string{"gcn", "gat", "sage", "jknet", "appnp", "apgcn", "pprgo", "dagnn", "dagnn-ndls", "fastgcn", "clustergcn", "graphsaint"},
	},
}

// programOf returns the program that trains a model.
func programOf(model string) program {
	return programs[slices.IndexFunc(programs, func(p program) bool { return slices.Contains(p.models, model) })]
}

// checkPython looks for the packages of a program. Its error wraps errNoPython.
func (j Job) checkPython(ctx context.Context, p program) error {
	out, err := exec.CommandContext(ctx, j.python(), "-c", p.imports).CombinedOutput()
	if err == nil || ctx.Err() != nil {
		return ctx.Err()
	}
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	return fmt.Errorf("%w (%s): %s: %w %s", errNoPython, p.packages, j.python(), err, lines[len(lines)-1])
}

func (j Job) python() string {
	if j.Python == "" {
		return "python3"
	}
	return j.Python
}

// chosenModel is chosen.json of a program.
type chosenModel struct {
	Option map[string]any `json:"option"`
	Trials []struct {
		Valid float64 `json:"valid"`
	} `json:"trials"`
	// Seconds is the time of all trainings with the chosen options, and Memory the peak of the program in bytes; 0 where it does not
	// say so.
	Seconds float64 `json:"seconds"`
	Memory  int64   `json:"memory"`
}

// measureProgram has a program train models on what a run has exported, and smooths what they predict. Rows do not depend on the split, so
// that they are made once, with the seed of the first one. Each split is a run of its own, in which the soft labels of one model take the
// place of those of the model before.
func (j Job) measureProgram(ctx context.Context, all splits, o *Outcome) error {
	x, p := all.cell, programOf(all.program)
	if err := j.checkPython(ctx, p); err != nil {
		return err
	}
	folder := filepath.Join(j.Out, "work", x.place("program", "files"))
	if _, err := vfs.MkdirAll(folder, 0o777); err != nil {
		return err
	}
	if err := vfs.WriteFile(filepath.Join(folder, p.file), []byte(p.script), 0o666); err != nil {
		return err
	}
	o.Command = p.command(x)
	exported := false
	err := all.each(o, func(split int, x cell, of *Outcome) error {
		c, err := j.config(x, x.place("program"), x.labels)
		if err != nil {
			return err
		}
		if !exported {
			first, err := j.config(all.cell, x.place("program"), x.labels)
			for i := 0; i < len(p.rows) && err == nil; i++ {
				err = exportTo(ctx, first, p.rows[i].stage, p.rows[i].what, folder)
			}
			if err != nil {
				return err
			}
			exported = true
		}
		if err := exportTo(ctx, c, ndls.StagePartition, "nodes", folder); err != nil {
			return err
		}
		soft := filepath.Join(folder, "soft")
		if err = j.train(ctx, p, x, folder, soft, of); err != nil || x.last != ndls.StageEvaluate {
			return err
		}
		for run := range x.models {
			c.SoftLabels = filepath.Join(soft, fmt.Sprintf("model-%d.parquet", run+1))
			d, err := again(ctx, c, ndls.StageEvaluate)
			if err == nil {
				err = of.add(ctx, d, needed(c, ndls.StageEvaluate), split, run)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	return vfs.RemoveAll(folder)
}

// command returns the lines that repeat the experiment of a cell.
func (p program) command(x cell) string {
	inductive := x.inductive
	x.inductive = false // the runs before and after the program have the whole graph
	lines := []string{x.command("--seed SEED")}
	line := "python " + p.file
	for _, e := range append(p.rows, exported{"--nodes", "nodes", ndls.StagePartition}) {
		lines = append(lines, fmt.Sprintf("ndls export --run RUN --what %s --format npy --out %s.npy", e.what, e.what))
		line += fmt.Sprintf(" %s %s.npy", e.option, e.what)
	}
	line += fmt.Sprintf(" --model %s --trials %d --runs %d --seed SEED --out SOFT", x.program, x.trials, x.models)
	if inductive {
		line += " --inductive"
	}
	return strings.Join(append(lines, line, x.command(x.labels+" --seed SEED --soft-labels SOFT/model-1.parquet")), "\n")
}

// exportTo runs the stages up to one, and writes an artifact to FOLDER/WHAT.npy.
func exportTo(ctx context.Context, c ndls.Config, last ndls.Stage, what, folder string) error {
	d, err := again(ctx, c, last)
	if err != nil {
		return err
	}
	_, err = d.Export(ctx, ndls.ExportOptions{What: what, Format: "npy", Out: filepath.Join(folder, what+".npy"), Force: true, Memory: c.Resources.Memory})
	return err
}

// train has a program train on the exports in a folder, which writes soft labels to another.
func (j Job) train(ctx context.Context, p program, x cell, folder, soft string, o *Outcome) error {
	args := []string{
		filepath.Join(folder, p.file), "--nodes", filepath.Join(folder, "nodes.npy"), "--model", x.program,
		"--trials", strconv.Itoa(x.trials), "--runs", strconv.Itoa(x.models), "--seed", strconv.FormatUint(x.seed, 10), "--out", soft,
	}
	for _, e := range p.rows {
		args = append(args, e.option, filepath.Join(folder, e.what+".npy"))
	}
	if x.inductive {
		args = append(args, "--inductive")
	}
	if j.Config.Resources.Threads > 0 {
		args = append(args, "--threads", strconv.Itoa(j.Config.Resources.Threads))
	}
	if out, err := exec.CommandContext(ctx, j.python(), args...).CombinedOutput(); err != nil {
		return fmt.Errorf("%s with %s failed: %w\n%s", p.file, x.program, err, out)
	}
	path := filepath.Join(soft, "chosen.json")
	text, err := vfs.ReadFile(path)
	if err != nil {
		return err
	}
	var chosen chosenModel
	if err := json.Unmarshal(text, &chosen); err != nil {
		return failure.Of(ndls.ErrData, "%s: %w", path, err)
	}
	o.Trials, o.Memory = len(chosen.Trials), chosen.Memory
	if chosen.Seconds > 0 {
		o.took(Seconds{ndls.StageTrain, chosen.Seconds})
	}
	for _, t := range chosen.Trials {
		o.Valid = max(o.Valid, t.Valid)
	}
	var words []string
	for name, value := range chosen.Option {
		if value == nil {
			value = "none"
		}
		words = append(words, fmt.Sprintf("%s=%v", name, value))
	}
	slices.Sort(words)
	o.Chosen = strings.Join(words, " ")
	return nil
}
