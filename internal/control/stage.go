package control

import "ndls/internal/failure"

// ErrPlanMismatch reports a run directory that was made with other options.
var ErrPlanMismatch = failure.Kind("the run directory has another plan")

// Stage names one step of a run.
type Stage string

// These are the names of stages; package stage lists all of them, in order.
const (
	Partition    Stage = "partition"
	LSI          Stage = "lsi"
	Smooth       Stage = "smooth"
	Train        Stage = "train"
	Predict      Stage = "predict"
	LabelDepth   Stage = "label-depth"
	SmoothLabels Stage = "smooth-labels"
	Evaluate     Stage = "evaluate"
)
