package labels

import (
	"context"
	"fmt"

	"ndls/catalog"
	"ndls/estimate"
	"ndls/internal/mem"
	"ndls/internal/packed"
	"ndls/internal/seal"
	"ndls/plan"
	"ndls/stage"
	"ndls/stage/measures"
	"ndls/stage/models"
	"ndls/train"
)

// labelDepthPath is the path of the file with the chosen depths.
const labelDepthPath = "predictions/depth.json"

// labelDepth is the content of predictions/depth.json.
type labelDepth struct {
	Kmax int `json:"kmax"`
	// ValidationNodes counts the nodes that were used; ValidationNodesOf counts all that validate in some split.
	ValidationNodes   int64      `json:"validation_nodes"`
	ValidationNodesOf int64      `json:"validation_nodes_of"`
	Runs              []runDepth `json:"runs"`
}

// runDepth holds the choice for one run.
type runDepth struct {
	Run   int `json:"run"`
	Depth int `json:"depth"`
	// Nodes counts those of the nodes that validate in the split of the run, if there are several splits.
	Nodes int64 `json:"validation_nodes,omitempty"`
	// Right holds, for each depth from 0, the number of nodes whose class is right.
	Right []int64 `json:"right"`
	// Errors holds, for each depth from 0, the sum of squared errors of labels or numbers, which these have in place of Right.
	Errors []float64 `json:"errors,omitempty"`
}

// readDepth reads the committed choice.
func readDepth(ctx context.Context, p plan.Options, cat *catalog.Catalog) (d labelDepth, err error) {
	if err := stage.ReadJSON(ctx, cat, labelDepthPath, &d); err != nil {
		return d, err
	}
	if len(d.Runs) != stage.LabelRuns(p) {
		return d, fmt.Errorf("%s has %d runs of %d: %w", labelDepthPath, len(d.Runs), stage.LabelRuns(p), seal.ErrCorrupt)
	}
	return d, nil
}

// Depths returns the depth of label smoothing of each run.
func Depths(ctx context.Context, p plan.Options, cat *catalog.Catalog) ([]int, error) {
	list := make([]int, stage.LabelRuns(p))
	if p.Labels.Depth != plan.AutoDepth {
		for i := range list {
			list[i] = p.Labels.Hops()
		}
		return list, nil
	}
	d, err := readDepth(ctx, p, cat)
	if err != nil {
		return nil, err
	}
	for i, r := range d.Runs {
		list[i] = r.Depth
	}
	return list, nil
}

// WrittenModels returns the models whose predictions, or whose mean, a run writes, with their numbers and the names of the classes. It
// returns none if the run has no model of its own. The caller frees the models.
func WrittenModels(ctx context.Context, cat *catalog.Catalog, p plan.Options, budget *mem.Budget) (list []*train.Model,
	numbers []int, classes []string, err error,
) {
	if _, ok := cat.Lookup(models.IndexPath); !ok || !stage.OwnModel(p) {
		return nil, nil, nil, nil
	}
	defer func() {
		if err != nil {
			for _, m := range list {
				m.Free()
			}
			list = nil
		}
	}()
	t, err := models.ReadIndex(ctx, cat)
	if err != nil {
		return nil, nil, nil, err
	}
	w, err := ReadWritten(ctx, p, cat)
	if err != nil {
		return nil, nil, nil, err
	}
	for _, number := range w.models(p) {
		if number >= len(t.Runs) {
			return list, nil, nil, seal.Corrupt(models.IndexPath, "it has no model %d", number)
		}
		m, err := models.Load(ctx, cat, budget, t.Runs[number].Path)
		if err != nil {
			return list, nil, nil, err
		}
		list, numbers = append(list, m), append(numbers, number)
	}
	return list, numbers, t.Classes, nil
}

// SmoothedScores returns ScoreCount after label smoothing, which may also count the mean of the models.
func SmoothedScores(s *estimate.Sheet) int64 {
	return measures.ScoreCount(s) / int64(stage.LabelRuns(s.Plan)) * int64(Counted(s.Plan, s.Classes))
}

// Predictions are the smoothed soft labels of one model, or the mean of those of all models of the first split. To pick, the smoothed soft
// labels of each model and their mean are counted in all intervals. The set that is best on the validation nodes of the first split is
// picked, and the predictions of each interval are written. Ties go to the lowest mean negative log-likelihood on these nodes, if all
// probabilities exist, then to the lowest number of a model; the mean comes last. Losses are added by interval in order of node, the mean
// in order of model, so the bytes do not depend on who counts.

// writtenPath is the path of the file that says which predictions are written.
const writtenPath = "predictions/written.json"

// Written is the content of predictions/written.json.
type Written struct {
	// Predictions is plan.OfModel or plan.MeanOfModels; Model is the number of the model.
	Predictions string `json:"predictions"`
	Model       int    `json:"model,omitempty"`
	// Measure decided the choice. Candidates holds its values on the validation nodes, by number of the model; the mean comes last.
	Measure    string               `json:"measure"`
	Candidates []measures.Candidate `json:"candidates,omitempty"`
}

// groupPanels bounds the number of panels that are read side by side, and so the models of a mean: each panel is a file per interval.
const groupPanels = 1024

// countsMean reports whether the mean of all models of the first split is counted.
func countsMean(p plan.Options, classes int) bool {
	return p.Predictions != plan.OfModel && p.Probabilities != plan.BestProbability && fitsMean(p, classes) && stage.ModelsOfSplit(p) > 1
}

// fitsMean reports whether the models of a split are few enough for a mean.
func fitsMean(p plan.Options, classes int) bool {
	return stage.ModelsOfSplit(p)*packed.Panels(classes) <= groupPanels
}

// Counted returns the number of sets of smoothed soft labels that are counted: one per model, and the mean.
func Counted(p plan.Options, classes int) int {
	if countsMean(p, classes) {
		return stage.LabelRuns(p) + 1
	}
	return stage.LabelRuns(p)
}

// splitCounted returns the split whose nodes count for a set of smoothed soft labels. The mean belongs to the first split.
func splitCounted(p plan.Options, set int) int {
	if set == stage.LabelRuns(p) {
		return 0
	}
	return stage.SplitOf(p, set)
}

// Set returns the picked set among those that are counted.
func (w Written) Set(p plan.Options) int {
	if w.Predictions == plan.MeanOfModels {
		return stage.LabelRuns(p)
	}
	return w.Model
}

// models returns the models whose soft labels, or whose mean, are written.
func (w Written) models(p plan.Options) (list []int) {
	if w.Predictions != plan.MeanOfModels {
		return []int{w.Model}
	}
	for m := range stage.ModelsOfSplit(p) {
		list = append(list, m)
	}
	return list
}

// ReadWritten reads the choice. Without one the predictions come from the model that was best before label smoothing.
func ReadWritten(ctx context.Context, p plan.Options, cat *catalog.Catalog) (w Written, err error) {
	if _, ok := cat.Lookup(writtenPath); !ok {
		w.Predictions, w.Measure = plan.OfModel, plan.Accuracy
		w.Model, err = models.Chosen(ctx, p, cat)
		return w, err
	}
	if err = stage.ReadJSON(ctx, cat, writtenPath, &w); err != nil {
		return w, err
	}
	known := w.Predictions == plan.OfModel && 0 <= w.Model && w.Model < stage.ModelsOfSplit(p) || w.Predictions == plan.MeanOfModels
	if !known {
		return w, seal.Corrupt(writtenPath, "it names %q of model %d", w.Predictions, w.Model)
	}
	return w, nil
}
