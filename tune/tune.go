package tune

import (
	"context"

	"ndls"
)

// Ways to search.
const (
	// Random draws each setting of a trial by itself, from the seed and the trial's number.
	Random = "random"
	// Grid takes all combinations of the values, the last dimension first.
	Grid = "grid"
)

// What trials are compared by.
const (
	// Base is the accuracy on the validation nodes before label smoothing.
	Base = "base"
	// Smoothed is that after label smoothing.
	Smoothed = "smoothed"
)

// DefaultTrials is how many trials a random search makes.
const DefaultTrials = 50

// Config says what is searched, where and how.
type Config struct {
	// Base is what all trials have in common: the dataset, fixed options, resources and the log.
	// Base.Run is the folder of the search. Options.Seed draws the trials, and is the seed of
	// each of them; Options.Partition.Splits and Options.Train.Runs are the splits and the models
	// of a trial. Soft labels of another model, rows of another run and worker processes are
	// refused.
	Base ndls.Config
	// Space is what differs between trials, nil for [Default] without the dimensions that
	// Base.Options sets.
	Space Space
	// Search is Random (also "") or Grid.
	Search string
	// Trials is how many trials a random search makes, 0 for DefaultTrials. A grid has as many as
	// it has combinations, and at most so many unless Trials is 0.
	Trials int
	// Score is what trials are compared by: Base or Smoothed. "" is Smoothed where the space has an
	// option of label smoothing, else Base.
	Score string
	// Done, unless nil, is called after each trial that this call has made, in the order in which they are made.
	Done func(Trial)
}

// Search tries settings and compares them on the validation nodes. It never looks at the
// labels of test nodes. After any error, and after ctx was cancelled, the same call continues
// where this one stopped, and gives the same trials. Errors are those of [ndls.Run].
func Search(ctx context.Context, c Config) (*Result, error) {
	return nil, nil
}

// Trial is one combination of settings, and what came of it.
type Trial struct {
	// Number counts the trials from 1 in the order in which they are drawn.
	Number int `json:"trial"`
	// Settings are those that count: an option that the drawn rule does not read is left out.
	Settings []Setting `json:"settings"`
	// Base is the accuracy on the validation nodes over all models before label smoothing,
	// Smoothed after it; nil where that was not measured.
	Base     *ndls.Spread `json:"base"`
	Smoothed *ndls.Spread `json:"smoothed,omitempty"`
	// Models are the figures of each model, split by split.
	Models []Model `json:"models"`
	// Failed says why there are no figures, "" if there are.
	Failed string `json:"failed,omitempty"`
	// Seconds is what training and label smoothing took. It is no part of the table of trials.
	Seconds float64 `json:"seconds"`
}

// Setting is an option, by the name of its flag without dashes, and its value.
type Setting struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// Model is a model of a trial.
type Model struct {
	Split int `json:"split"`
	Run   int `json:"run"`
	// Base and Smoothed are shares of the validation nodes.
	Base     float64  `json:"base"`
	Smoothed *float64 `json:"smoothed,omitempty"`
	// BestEpoch counts from 1.
	Epochs    int `json:"epochs"`
	BestEpoch int `json:"best_epoch"`
}

// Result is what a search found.
type Result struct {
	// Trials are all trials, in the order in which they are drawn.
	Trials []Trial
	// Chosen is the index of the trial with the highest mean on the validation nodes; of equals
	// the first that was drawn.
	Chosen int
}

// Best is the chosen trial.
func (r *Result) Best() Trial { return r.Trials[r.Chosen] }

// Apply sets the options of the chosen trial. It is meant for [ndls.Config.Options], after the fixed options.
func (r *Result) Apply(o *ndls.Options) {}
