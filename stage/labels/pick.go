package labels

import (
	"context"
	"fmt"

	"ndls/catalog"
	"ndls/internal/packed"
	"ndls/plan"
	"ndls/stage"
	"ndls/stage/measures"
	"ndls/stage/models"
	"ndls/train"
)

// pick commits the choice of predictions, once all intervals are counted.
func (env labelsRun) pick(ctx context.Context) error {
	if _, done := env.Catalog.Lookup(writtenPath); done {
		return nil
	}
	w := Written{Predictions: plan.OfModel, Measure: env.Plan.Measure()}
	var err error
	if w.Model, err = models.Chosen(ctx, env.Plan, env.Catalog); err != nil {
		return err
	}
	classes := len(env.Summary.Classes)
	switch {
	case env.Plan.Predictions == plan.MeanOfModels && !fitsMean(env.Plan, classes):
		return fmt.Errorf("--predictions mean of %d models with %d classes: there are at most %d panels of 16 classes, and these have %d; use fewer --runs, or --predictions model",
			stage.ModelsOfSplit(env.Plan), classes, groupPanels, stage.ModelsOfSplit(env.Plan)*packed.Panels(classes))
	default:
		if err := env.compare(ctx, &w); err != nil {
			return err
		}
	}
	return env.Catalog.Write(ctx, catalog.Describe(catalog.KindWritten, writtenPath).Counting(1), stage.WriteJSON(w))
}

// compare measures the candidates and picks the best.
func (env labelsRun) compare(ctx context.Context, w *Written) error {
	sums, err := measures.SumTallies(ctx, env.Env, catalog.KindLabelTally, Counted(env.Plan, len(env.Summary.Classes)))
	if err != nil {
		return err
	}
	defer sums.Free()
	var a measures.Areas
	if w.Measure == plan.AUC || w.Measure == plan.Precision {
		if a, err = measures.ScoresOf(env.Env).StoredAreas(ctx, catalog.KindSmoothedScores); err != nil {
			return err
		}
	}
	sets := make([]int, stage.ModelsOfSplit(env.Plan), stage.ModelsOfSplit(env.Plan)+1) // of the first split
	for m := range sets {
		sets[m] = m
	}
	if countsMean(env.Plan, len(env.Summary.Classes)) {
		sets = append(sets, stage.LabelRuns(env.Plan))
	}
	best := 0
	for i, set := range sets {
		t := &sums.Of[set]
		accuracy, rows := t.Accuracy(train.Valid)
		if rows == 0 {
			w.Candidates = nil // nothing decides
			break
		}
		c := measures.Candidate{Valid: accuracy, Loss: sums.Losses[set] / float64(rows)}
		switch w.Measure {
		case plan.MacroF1:
			c.Valid = t.MacroF1(train.Valid)
		case plan.AUC:
			c.Valid, _ = a.Of(set, train.Valid)
		case plan.Precision:
			c.Valid, _ = a.Precision(set, train.Valid)
		case plan.Determination:
			c.Valid, _ = t.Determination(train.Valid)
		}
		if w.Candidates = append(w.Candidates, c); c.Better(w.Candidates[best]) {
			best = i
		}
	}
	if len(w.Candidates) > 0 {
		w.Model = best
	}
	if env.Plan.Predictions == plan.MeanOfModels && len(sets) > stage.ModelsOfSplit(env.Plan) || best == stage.ModelsOfSplit(env.Plan) {
		w.Predictions, w.Model = plan.MeanOfModels, 0
	}
	return nil
}
