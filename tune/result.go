package tune

import (
	"bytes"
	"cmp"
	"context"
	"encoding/csv"
	"encoding/json"
	"math"
	"slices"
	"strconv"

	"ndls"
	"ndls/internal/failure"
	"ndls/internal/storage"
	"ndls/plan"
)

// Result holds the result of a search. It is stored as tune.json.
type Result struct {
	Dataset string `json:"dataset"`
	// Search, Score and Space have the values of the Config, without gaps.
	Search string `json:"search"`
	Score  string `json:"score"`
	// Measure is the measure of Base and Smoothed, by which trials are compared unless Score is Loss:
	// accuracy, or the first of Options.Metrics.
	Measure string   `json:"measure"`
	Space   []string `json:"space"`
	Seed    uint64   `json:"seed"`
	// Splits and Runs are the splits, and the models of each, of a trial. With Halving only the best
	// trials have all models, and all of the patience.
	Splits  int  `json:"splits"`
	Runs    int  `json:"runs"`
	Halving bool `json:"halving,omitempty"`
	// Chosen is the number of the trial with the best mean on the validation nodes, among those of
	// the last step; of equals the one that was drawn first.
	Chosen int `json:"chosen"`
	// Command is the ndls run that repeats the chosen trial.
	Command []string `json:"command"`
	// Trials are all trials, in the order in which they are drawn.
	Trials []Trial `json:"trials"`

	options ndls.Options // of the chosen trial
}

// Best is the chosen trial.
func (r *Result) Best() Trial { return r.Trials[r.Chosen-1] }

// Ranked are the trials, the best first: those with more models, or more patience, before those with fewer, and of equals the one that was
// drawn first. Those that failed come last.
func (r *Result) Ranked() []Trial {
	list := slices.Clone(r.Trials)
	slices.SortStableFunc(list, func(a, b Trial) int {
		return cmp.Or(cmp.Compare(len(b.Models), len(a.Models)), cmp.Compare(b.Patience, a.Patience),
			cmp.Compare(b.ranking(r.Score), a.ranking(r.Score)))
	})
	return list
}

// ranking is the number by which trials are ranked, the larger the better: the mean of a measure, or the mean of losses with the other
// sign. For a trial that failed it is below all others.
func (t Trial) ranking(by string) float64 {
	switch s := t.score(by); {
	case s == nil:
		return math.Inf(-1)
	case by == Loss:
		return -s.Mean
	default:
		return s.Mean
	}
}

// Apply sets the options that a search can try to those of the chosen trial. It is meant for [ndls.Config.Options], after the
// fixed options.
func (r *Result) Apply(o *ndls.Options) {
	for _, name := range Names() {
		_ = o.Set(name, r.options.Get(name)) // what Get gives, Set takes
	}
}

// finish chooses, and commits the result.
func (s *search) finish(ctx context.Context) (*Result, error) {
	r := &Result{
		Dataset: s.Base.Dataset, Search: s.Search, Score: s.Score, Measure: s.base.Measure(), Space: s.Space.strings(), Seed: s.base.Seed,
		Splits: s.base.NumSplits(), Runs: s.base.NumRuns(), Halving: s.Halving,
	}
	for _, t := range s.trials {
		r.Trials = append(r.Trials, t.shown())
	}
	best := r.Ranked()[0]
	if best.score(s.Score) == nil {
		return nil, failure.Of(ndls.ErrDiverged, "all %d trials failed: %s; try smaller --try lr", len(r.Trials), best.Failed)
	}
	r.Chosen, r.options = best.Number, s.trials[best.Number-1].options
	r.Command = command(s.Base.Dataset, s.folder.path(BestName), r.options)
	if err := storage.Put(ctx, s.folder.store.Create, TableName, s.table(r.Trials)); err != nil {
		return nil, err
	}
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return nil, err
	}
	return r, storage.Put(ctx, s.folder.store.Create, ResultName, append(text, '\n'))
}

// command is the ndls run with some options.
func command(dataset, dir string, o ndls.Options) []string {
	list := []string{"ndls", "run", "--dataset", dataset, "--run", dir}
	standard := ndls.DefaultOptions()
	for _, x := range plan.Table {
		switch v := o.Get(x.Name); {
		case v == standard.Get(x.Name) || !x.Decides(o, true):
		case x.Switch():
			list = append(list, "--"+x.Name+"="+v)
		default:
			list = append(list, "--"+x.Name, v)
		}
	}
	return list
}

// table has a line for each trial: its number, the settings, how many models it has, with Halving
// how patient they were, and what is known of the validation nodes. Its bytes do not depend on how
// long trials took.
func (s *search) table(trials []Trial) []byte {
	var text bytes.Buffer
	w := csv.NewWriter(&text)
	head := []string{"trial"}
	for _, d := range s.Space {
		head = append(head, d.Name)
	}
	head = append(head, "models")
	if s.Halving {
		head = append(head, "patience")
	}
	figures := []string{"mean", "std", "std_between_models", "std_between_splits"}
	stages := []string{Base}
	if s.Score != Base {
		stages = append(stages, s.Score)
	}
	for _, name := range stages {
		for _, f := range figures {
			head = append(head, name+"_"+f)
		}
	}
	_ = w.Write(append(head, "failed")) // a buffer takes all
	for _, t := range trials {
		line := []string{strconv.Itoa(t.Number)}
		for _, d := range s.Space {
			value := ""
			if i := slices.IndexFunc(t.Settings, func(x Setting) bool { return x.Name == d.Name }); i >= 0 {
				value = t.Settings[i].Value
			}
			line = append(line, value)
		}
		line = append(line, strconv.Itoa(len(t.Models)))
		if s.Halving {
			line = append(line, strconv.Itoa(t.Patience))
		}
		for _, name := range stages {
			x := t.score(name)
			if x == nil {
				line = append(line, make([]string, len(figures))...)
				continue
			}
			for _, f := range []float64{x.Mean, x.Std, x.BetweenModels, x.BetweenSplits} {
				line = append(line, strconv.FormatFloat(f, 'g', -1, 64))
			}
		}
		_ = w.Write(append(line, t.Failed))
	}
	w.Flush()
	return text.Bytes()
}
