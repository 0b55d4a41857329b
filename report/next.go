package report

import (
	"slices"

	"ndls/internal/control"
)

// step is something that a reader of the page can do next.
type step struct{ What, Command string }

// Next are commands that go on from a run, as far as it has what they need. DIR stands for its run directory, URI for its dataset.
func (r Named) Next() (list []step) {
	add := func(what, command string) { list = append(list, step{what, command}) }
	if r.Unfinished != nil {
		add("Continue the run.", "ndls run --run DIR")
	}
	if r.LSI != nil {
		add("See why a node has its K and its prediction.", "ndls explain DIR --node ID")
	}
	done := func(stage control.Stage) bool {
		return slices.ContainsFunc(r.Stages, func(s Stage) bool { return s.Name == stage })
	}
	if done(control.SmoothLabels) {
		add("Write the predictions as one table, in order of id.", "ndls export DIR --what predictions --format csv --out predictions.csv")
	}
	if done(control.Smooth) {
		add("Train a model of your own on the smoothed rows.", `python -c 'import ndls; print(ndls.open("DIR").features[:5])'`)
	}
	if a := r.Accuracy; a != nil && a.Base.Valid != nil {
		add("Look for better settings by the validation nodes.", "ndls tune --dataset URI --run OTHER")
	}
	return list
}
