package models

import (
	"context"
	"errors"
	"fmt"

	"ndls/catalog"
	"ndls/internal/control"
	"ndls/internal/mem"
	"ndls/internal/seal"
	"ndls/plan"
	"ndls/stage"
	"ndls/train"
)

// IndexPath is the path of the index: what was trained, and which run is used.
const IndexPath = "model/model.json"

// Trained describes a model. Run numbers the models of all splits, split by split.
type Trained struct {
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

type Index struct {
	// Chosen is the run of the first split whose soft labels are best on the validation nodes before smoothing. Ties go to the lowest loss,
	// then to the first run.
	Chosen  int               `json:"chosen"`
	Classes []string          `json:"classes"`
	Options plan.TrainOptions `json:"options"`
	Runs    []Trained         `json:"runs"`
}

// modelPath returns the path of the weights of a run.
func modelPath(run int) string { return fmt.Sprintf("model/run-%03d.mlp", run) }

// trainedPath returns the path of a run's line of the index, until the index exists.
func trainedPath(run int) string { return fmt.Sprintf("model/run-%03d.json", run) }

// ReadIndex reads the index of the committed models.
func ReadIndex(ctx context.Context, cat *catalog.Catalog) (t Index, err error) {
	if err = stage.ReadJSON(ctx, cat, IndexPath, &t); err == nil && (t.Chosen < 0 || t.Chosen >= len(t.Runs)) {
		err = fmt.Errorf("%s names run %d of %d: %w", IndexPath, t.Chosen, len(t.Runs), seal.ErrCorrupt)
	}
	return t, err
}

// Chosen returns the run whose soft labels are best before smoothing.
func Chosen(ctx context.Context, p plan.Options, cat *catalog.Catalog) (int, error) {
	if !stage.OwnModel(p) {
		return 0, nil
	}
	t, err := ReadIndex(ctx, cat)
	return t.Chosen, err
}

func Load(ctx context.Context, cat *catalog.Catalog, budget *mem.Budget, path string) (m *train.Model, err error) {
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
