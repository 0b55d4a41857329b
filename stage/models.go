package stage

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"ndls/catalog"
	"ndls/internal/control"
	"ndls/internal/mem"
	"ndls/internal/seal"
	"ndls/plan"
	"ndls/train"
)

// modelIndex is the path of the index: what was trained, and which run is used.
const modelIndex = "model/model.json"

// trainedRun describes a model. Run numbers the models of all splits, split by split.
type trainedRun struct {
	Run       int    `json:"run"`
	Path      string `json:"path"`
	Epochs    int    `json:"epochs"`
	BestEpoch int    `json:"best_epoch"` // counted from 1
	// Penalty is λ of a ridge regression, Scale the factor of its scores; neither has epochs.
	Penalty float64 `json:"penalty,omitempty"`
	Scale   float64 `json:"scale,omitempty"`
	Valid   float64 `json:"valid_accuracy"`
	// Measured decided on the epoch; Loss is the mean negative log-likelihood of that epoch. Both are of the validation nodes.
	Measured float64 `json:"valid_measure"`
	Loss     float64 `json:"valid_loss"`
	// Curve is set for the first models only.
	Curve []control.LearningPoint `json:"curve,omitempty"`
}

type trained struct {
	// Chosen is the run of the first split whose soft labels are best on the validation nodes before smoothing. Ties go to the lowest loss,
	// then to the first run.
	Chosen  int               `json:"chosen"`
	Classes []string          `json:"classes"`
	Options plan.TrainOptions `json:"options"`
	Runs    []trainedRun      `json:"runs"`
}

// modelPath returns the path of the weights of a run.
func modelPath(run int) string { return fmt.Sprintf("model/run-%03d.mlp", run) }

// trainedPath returns the path of a run's line of the index, until the index exists.
func trainedPath(run int) string { return fmt.Sprintf("model/run-%03d.json", run) }

func commitJSON(ctx context.Context, cat *catalog.Catalog, kind, path string, run int, v any) error {
	return cat.Write(ctx, catalog.Describe(kind, path).OfModel(run).Counting(1), writeJSON(v))
}

// writeJSON returns a function that writes v as indented JSON.
func writeJSON(v any) func(*catalog.File) error {
	return func(w *catalog.File) error {
		e := json.NewEncoder(w)
		e.SetIndent("", "  ")
		return e.Encode(v)
	}
}

// readIndex reads the index of the committed models.
func readIndex(ctx context.Context, cat *catalog.Catalog) (t trained, err error) {
	if err = readJSON(ctx, cat, modelIndex, &t); err == nil && (t.Chosen < 0 || t.Chosen >= len(t.Runs)) {
		err = fmt.Errorf("%s names run %d of %d: %w", modelIndex, t.Chosen, len(t.Runs), seal.ErrCorrupt)
	}
	return t, err
}

// readJSON reads a JSON file of the models or of the predictions.
func readJSON(ctx context.Context, cat *catalog.Catalog, path string, v any) error {
	return readFile(ctx, cat, path, func(r io.Reader) error {
		data, err := io.ReadAll(r)
		if err != nil {
			return fmt.Errorf("%w", err)
		}
		if err := json.Unmarshal(data, v); err != nil {
			return noSense(path, err)
		}
		return nil
	})
}

// noSense returns the error for a file that cannot be decoded.
func noSense(path string, err error) error {
	return fmt.Errorf("%s cannot be decoded (%v): %w", path, err, seal.ErrCorrupt)
}

// readFile calls read with a file of the models or of the predictions. If the store fails, it returns the store's error, not what read
// makes of the bytes before.
func readFile(ctx context.Context, cat *catalog.Catalog, path string, read func(io.Reader) error) (err error) {
	e, ok := cat.Lookup(path)
	if !ok {
		verb := control.Train
		switch {
		case strings.HasPrefix(path, "predictions/"):
			verb = control.SmoothLabels
		case strings.HasPrefix(path, "model/tally-"):
			verb = control.Predict
		}
		return fmt.Errorf("there is no %s: run `ndls %s` first", path, verb)
	}
	r, err := cat.Stream(ctx, e)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	in := &fault{Reader: r}
	if err := read(in); in.err == nil {
		return err
	}
	return in.err
}

// fault keeps the error of its reader, except the end of the file.
type fault struct {
	io.Reader
	err error
}

func (f *fault) Read(p []byte) (int, error) {
	n, err := f.Reader.Read(p)
	if err != nil && err != io.EOF {
		f.err = err
	}
	return n, err
}

// chosenRun returns the run whose soft labels are best before smoothing.
func chosenRun(ctx context.Context, p plan.Options, cat *catalog.Catalog) (int, error) {
	if !ownModel(p) {
		return 0, nil
	}
	t, err := readIndex(ctx, cat)
	return t.Chosen, err
}

// WrittenModels returns the models whose predictions, or whose mean, a run writes, with their numbers and the names of the classes. It
// returns none if the run has no model of its own. The caller frees the models.
func WrittenModels(ctx context.Context, cat *catalog.Catalog, p plan.Options, budget *mem.Budget) (models []*train.Model,
	numbers []int, classes []string, err error,
) {
	if _, ok := cat.Lookup(modelIndex); !ok || !ownModel(p) {
		return nil, nil, nil, nil
	}
	defer func() {
		if err != nil {
			for _, m := range models {
				m.Free()
			}
			models = nil
		}
	}()
	t, err := readIndex(ctx, cat)
	if err != nil {
		return nil, nil, nil, err
	}
	w, err := readWritten(ctx, p, cat)
	if err != nil {
		return nil, nil, nil, err
	}
	for _, number := range w.models(p) {
		if number >= len(t.Runs) {
			return models, nil, nil, seal.Corrupt(modelIndex, "it has no model %d", number)
		}
		m, err := loadModel(ctx, cat, budget, t.Runs[number].Path)
		if err != nil {
			return models, nil, nil, err
		}
		models, numbers = append(models, m), append(numbers, number)
	}
	return models, numbers, t.Classes, nil
}

func loadModel(ctx context.Context, cat *catalog.Catalog, budget *mem.Budget, path string) (m *train.Model, err error) {
	e, ok := cat.Lookup(path)
	if !ok {
		return nil, fmt.Errorf("%s is not in the catalogue: %w", path, seal.ErrCorrupt)
	}
	r, err := cat.Stream(ctx, e)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	return train.LoadModel(r, path, budget)
}
