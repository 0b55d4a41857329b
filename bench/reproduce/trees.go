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
	"ndls/examples/trees"
	"ndls/internal/failure"
	"ndls/internal/vfs"
)

// errNoPython says that no Python with the packages of examples/trees is there.
var errNoPython = errors.New("no Python with scikit-learn, XGBoost and PyArrow")

// checkPython looks for the packages. Its error wraps errNoPython.
func (j Job) checkPython(ctx context.Context) error {
	out, err := exec.CommandContext(ctx, j.python(), "-c", "import numpy, pyarrow.parquet, sklearn.ensemble, xgboost").CombinedOutput()
	if err == nil || ctx.Err() != nil {
		return ctx.Err()
	}
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	return fmt.Errorf("%w: %s: %w %s", errNoPython, j.python(), err, lines[len(lines)-1])
}

func (j Job) python() string {
	if j.Python == "" {
		return "python3"
	}
	return j.Python
}

// chosenTrees is chosen.json of examples/trees.
type chosenTrees struct {
	Option map[string]any `json:"option"`
	Trials []struct {
		Valid float64 `json:"valid"`
	} `json:"trials"`
}

// measureTrees trains trees on rows that a run has smoothed, and smooths what they predict. Rows do
// not depend on the split, so that they are smoothed once, with the seed of the first one. Each split is
// a run of its own, in which the soft labels of one model take the place of those of the model before.
func (j Job) measureTrees(ctx context.Context, all splits, o *Outcome) error {
	x := all.cell
	if err := j.checkPython(ctx); err != nil {
		return err
	}
	folder := filepath.Join(j.Out, "work", x.place("trees", "files"))
	script := filepath.Join(folder, "trees.py")
	if _, err := vfs.MkdirAll(folder, 0o777); err != nil {
		return err
	}
	if err := vfs.WriteFile(script, []byte(trees.Script), 0o666); err != nil {
		return err
	}
	o.Command = strings.Join([]string{
		x.command("--seed SEED"),
		"ndls export --run RUN --what smoothed --format npy --out rows.npy",
		"ndls export --run RUN --what nodes --format npy --out nodes.npy",
		fmt.Sprintf("python trees.py --rows rows.npy --nodes nodes.npy --model %s --trials %d --runs %d --seed SEED --out SOFT", x.trees, x.trials, x.models),
		x.command(x.labels + " --seed SEED --soft-labels SOFT/model-1.parquet"),
	}, "\n")
	exported := false
	err := all.each(o, func(split int, x cell, of *Outcome) error {
		c, err := j.config(x, x.place("trees"), x.labels)
		if err != nil {
			return err
		}
		soft := filepath.Join(folder, "soft")
		if !exported {
			first, err := j.config(all.cell, x.place("trees"), x.labels)
			if err == nil {
				err = exportTo(ctx, first, ndls.StageSmooth, "smoothed", folder)
			}
			if err != nil {
				return err
			}
			exported = true
		}
		if err := exportTo(ctx, c, ndls.StagePartition, "nodes", folder); err != nil {
			return err
		}
		if of.Choice, err = j.trainTrees(ctx, x, folder, soft); err != nil {
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

// exportTo runs the stages up to one, and writes an artifact to FOLDER/WHAT.npy.
func exportTo(ctx context.Context, c ndls.Config, last ndls.Stage, what, folder string) error {
	d, err := again(ctx, c, last)
	if err != nil {
		return err
	}
	_, err = d.Export(ctx, ndls.ExportOptions{What: what, Format: "npy", Out: filepath.Join(folder, what+".npy"), Force: true, Memory: c.Resources.Memory})
	return err
}

// trainTrees has the program train on the exports in a folder, which writes soft labels to another.
func (j Job) trainTrees(ctx context.Context, x cell, folder, soft string) (choice Choice, err error) {
	args := []string{
		filepath.Join(folder, "trees.py"), "--rows", filepath.Join(folder, "smoothed.npy"), "--nodes", filepath.Join(folder, "nodes.npy"),
		"--model", x.trees, "--trials", strconv.Itoa(x.trials), "--runs", strconv.Itoa(x.models), "--seed", strconv.FormatUint(x.seed, 10), "--out", soft,
	}
	if j.Config.Resources.Threads > 0 {
		args = append(args, "--threads", strconv.Itoa(j.Config.Resources.Threads))
	}
	if out, err := exec.CommandContext(ctx, j.python(), args...).CombinedOutput(); err != nil {
		return choice, fmt.Errorf("examples/trees/trees.py with %s failed: %w\n%s", x.trees, err, out)
	}
	path := filepath.Join(soft, "chosen.json")
	text, err := vfs.ReadFile(path)
	if err != nil {
		return choice, err
	}
	var chosen chosenTrees
	if err := json.Unmarshal(text, &chosen); err != nil {
		return choice, failure.Of(ndls.ErrData, "%s: %w", path, err)
	}
	choice.Trials = len(chosen.Trials)
	for _, t := range chosen.Trials {
		choice.Valid = max(choice.Valid, t.Valid)
	}
	for name, value := range chosen.Option {
		if value == nil {
			value = "none"
		}
		choice.Chosen += fmt.Sprintf(" %s=%v", name, value)
	}
	words := strings.Fields(choice.Chosen)
	slices.Sort(words)
	choice.Chosen = strings.Join(words, " ")
	return choice, nil
}
