package tune

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"ndls"
	"ndls/internal/failure"
	"ndls/internal/rundir"
)

// Ways to search.
const (
	// Random begins with settings that are known of each rule. After them it draws each setting of a trial by itself, from the
	// seed and the trial's number.
	Random = "random"
	// Grid takes all combinations of the values; the last dimension varies fastest.
	Grid = "grid"
)

// What trials are compared by.
const (
	// Base is the accuracy on the validation nodes before label smoothing, or what the first of Options.Metrics is in its place.
	Base = "base"
	// Smoothed is that after label smoothing.
	Smoothed = "smoothed"
	// Loss is the mean negative log-likelihood of the validation nodes before label smoothing; the least is best.
	Loss = "loss"
)

// DefaultTrials is the number of trials of a random search.
const DefaultTrials = 50

// Config says what is searched, where and how.
type Config struct {
	// Base holds what all trials share: the dataset, fixed options, resources and the log. Base.Run
	// is the folder of the search. Options.Seed draws the trials, and is the seed of each of them;
	// Options.Partition.Splits and Options.Train.Runs are the splits and the models of a trial.
	// Soft labels of another model, rows of another run and worker processes are refused.
	Base ndls.Config
	// Space lists the options that differ between trials, nil for [Default] without the dimensions
	// of which Base.Options changes the default.
	Space Space
	// Search is Random (also "") or Grid.
	Search string
	// Trials is the number of trials of a random search, 0 for DefaultTrials. With fewer
	// combinations there are fewer. A grid takes all of its combinations, and is refused if these
	// are more than Trials, unless that is 0.
	Trials int
	// Halving trains less where a trial is not among the best. All trials have one model of each split, whose training ends
	// after an eighth of Options.Train.Patience; the best quarter of them has half of Options.Train.Runs, trained whole, and the
	// best eighth all. With one model the quarter is the last step. It needs a patience, or two models. Halves says where ndls tune
	// does so unless it is told.
	Halving bool
	// Score says by what trials are compared: Base, Smoothed or Loss. "" is Smoothed if the space has
	// an option of label smoothing, else Base. The first of Options.Metrics is the measure of Base and
	// Smoothed.
	Score string
	// Done, unless nil, is called by one goroutine at a time after each trial that this call
	// has made, in the order in which they end.
	Done func(Trial)
}

// Trial is one combination of settings, and what came of it.
type Trial struct {
	// Number counts the trials from 1 in the order in which they are drawn.
	Number int `json:"trial"`
	// Settings are those that count: an option that the drawn rule does not read is left out.
	Settings []Setting `json:"settings"`
	// Base is the accuracy (or the measure that is compared) on the validation nodes over all models before label smoothing,
	// Smoothed after it; nil where that was not measured.
	Base     *ndls.Spread `json:"base,omitempty"`
	Smoothed *ndls.Spread `json:"smoothed,omitempty"`
	// Loss is the mean negative log-likelihood of the validation nodes over all models, if trials are compared by it.
	Loss *ndls.Spread `json:"loss,omitempty"`
	// Models are the figures of each model, split by split. A trial has as many of each split as Options.Train.Runs,
	// or, with Halving, as its figures were good for.
	Models []Model `json:"models,omitempty"`
	// Patience is the patience of the models with Halving, 0 elsewhere. Short holds the models with
	// the shorter patience of the first step, in the file of a trial; they are no part of a result.
	Patience int     `json:"patience,omitempty"`
	Short    []Model `json:"short,omitempty"`
	// Failed says why there are no figures, "" if there are.
	Failed string `json:"failed,omitempty"`
	// Seconds is the time of training and label smoothing; training counts with the first of the
	// trials that share models. It is no part of the table of trials.
	Seconds float64 `json:"seconds"`
}

// Setting is an option, by the name of its flag without dashes, and its value.
type Setting struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// Model is a model of a trial.
type Model struct {
	// Split and Run count from 0.
	Split int `json:"split"`
	Run   int `json:"run"`
	// Base and Smoothed are shares of the validation nodes.
	Base     float64  `json:"base"`
	Smoothed *float64 `json:"smoothed,omitempty"`
	// Loss is the mean negative log-likelihood of the validation nodes, if trials are compared by it.
	Loss *float64 `json:"loss,omitempty"`
	// Epochs is the number of epochs of training. BestEpoch, whose weights the model has, counts
	// from 1.
	Epochs    int `json:"epochs"`
	BestEpoch int `json:"best_epoch"`
}

// score returns the figure by which the trial is compared, nil if it failed.
func (t Trial) score(by string) *ndls.Spread {
	switch by {
	case Smoothed:
		return t.Smoothed
	case Loss:
		return t.Loss
	}
	return t.Base
}

// Search tries settings and compares them on the validation nodes. It does not look at the labels
// of test nodes. After any error, and after ctx was cancelled, the same call continues where this
// one stopped, and gives the same trials; with more Trials it goes on after the last one. Errors
// come from [ndls.Run].
func Search(ctx context.Context, c Config) (_ *Result, err error) {
	defer func() {
		if err != nil && ctx.Err() != nil {
			err = failure.As(ndls.ErrInterrupted, context.Cause(ctx))
		}
	}()
	s, err := newSearch(c)
	if err != nil {
		return nil, err
	}
	if err := s.possible(ctx); err != nil {
		return nil, err
	}
	closeFolder, err := s.open(ctx)
	if err != nil {
		return nil, err
	}
	defer closeFolder()
	if err := s.fit(ctx); err != nil {
		return nil, err
	}
	if err := s.readTrials(ctx); err != nil {
		return nil, err
	}
	if err := s.climb(ctx); err != nil {
		return nil, err
	}
	return s.finish(ctx)
}

// possible refuses a dataset with which no trial can be made, before the folder of the search is. A search that has
// imported its dataset does not read it again.
func (s *search) possible(ctx context.Context) error {
	dir := folder{dir: strings.TrimRight(s.Base.Run, "/")}
	if !rundir.Missing(dir.path(workName)) {
		return nil
	}
	all := make([]ndls.Options, len(s.trials))
	for i := range s.trials {
		all[i] = s.trials[i].options
	}
	return ndls.OpenTrials(s.Base, s.smoothed, all...).Check(ctx)
}

// search is a search under way.
type search struct {
	Config
	smoothed bool
	base     ndls.Options // of all trials
	trials   []trial      // as they are drawn
	folder   folder
}

// fit imports the dataset where the space depends on the length of its rows, and draws the trials anew for it.
func (s *search) fit(ctx context.Context) error {
	if !slices.ContainsFunc(s.Space, func(d Dimension) bool { return d.scales }) {
		return nil
	}
	over := ndls.OpenTrials(s.work(), s.smoothed, s.base)
	defer over.Close()
	length, err := over.RowLength(ctx, s.base)
	if err != nil || !(length > 1) {
		return err
	}
	s.Space, s.trials = s.Space.fit(length), nil
	if s.Base.Log != nil {
		s.Base.Log.Info("the features of training nodes are longer than 1, so learning rates are smaller", "length", fmt.Sprintf("%.2g", length), "tried", s.Space.strings())
	}
	return s.draw()
}

// Halves reports whether ndls tune halves the search by default: it does where trials are drawn at random, are compared before label
// smoothing, and are told apart by their short trainings. A grid is made for the table of all of its trials, and trials of label
// smoothing share their trainings.
func (c Config) Halves() bool {
	o := ndls.DefaultOptions()
	if c.Base.Options != nil {
		c.Base.Options(&o)
	}
	return c.Search != Grid && c.Score != Smoothed && !c.Space.smoothsLabels() && !o.Ridge() && o.Train.Patience/shorter >= leastShort
}

// leastShort is the least patience of short trainings in a search that halves by default. With less, many end before their model
// is better than the most frequent class.
const leastShort = 20

// halvable reports whether the trainings of a trial can end sooner, or be fewer.
func halvable(o ndls.Options) bool { return o.Train.Runs >= 2 || o.Train.Patience >= 2 }

// trial is one that is drawn.
type trial struct {
	Trial
	options ndls.Options
	rung
}

// tried are the options with as many models, and the patience, that the trial is to have.
func (t *trial) tried() ndls.Options {
	o := t.options
	o.Train.Runs, o.Train.Patience = t.runs, t.patience
	return o
}

// short says that the trial is to have models of the first step, whose training ends sooner.
func (t *trial) short() bool { return t.patience < t.options.Train.Patience }

// models are those that the trial has of the kind that it is to have.
func (t *trial) models() *[]Model {
	if t.short() {
		return &t.Short
	}
	return &t.Models
}

// done reports whether the trial has its figures, or failed.
func (t *trial) done() bool {
	return t.Failed != "" || len(*t.models()) >= t.runs*t.options.NumSplits()
}

// newSearch checks what is asked for, and draws the trials.
func newSearch(c Config) (*search, error) {
	s := &search{Config: c, base: ndls.DefaultOptions()}
	s.base = c.Base.Over(s.base)
	switch {
	case c.Base.Dataset == "":
		return nil, failure.Of(ndls.ErrOption, "--dataset is needed")
	case c.Base.SoftLabels != "" || len(c.Base.TrainOn) > 0:
		return nil, failure.Of(ndls.ErrOption, "a search trains models of its own, on rows of its own: leave out --soft-labels and --train-on")
	case c.Base.Workers.Processes > 0 || c.Base.Parallel != "":
		return nil, failure.Of(ndls.ErrOption, "a search works in one process: leave out --workers and --parallel")
	case s.base.DropFeatures:
		return nil, failure.Of(ndls.ErrOption, "--keep-features=false removes the features once they are smoothed, and a search smooths them again: leave it out")
	case s.base.DropSmoothed:
		return nil, failure.Of(ndls.ErrOption, "--keep-smoothed=false removes smoothed rows, which all trials of a search share: leave it out")
	case c.Base.Discard:
		return nil, failure.Of(ndls.ErrOption, "a search is not discarded: choose another --run")
	case c.Halving && s.base.Ridge():
		return nil, failure.Of(ndls.ErrOption, "--halving with --model ridge: a ridge regression is solved at once and cannot end sooner; leave --halving out")
	case c.Halving && !halvable(s.base):
		return nil, failure.Of(ndls.ErrOption, "--halving needs trainings that it can end sooner, or several models to begin with fewer: give --patience 2 or --runs 2, or more")
	case c.Trials < 0 || c.Trials > mostTrials:
		return nil, failure.Of(ndls.ErrOption, "--trials %d is outside [1, %d]", c.Trials, mostTrials)
	}
	if s.Space == nil {
		s.Space = Default(s.changed()...)
	}
	if err := s.Space.check(); err != nil {
		return nil, err
	}
	if len(s.Space) == 0 {
		return nil, failure.Of(ndls.ErrOption, "there is nothing to try: --try names an option and its values")
	}
	switch s.Score {
	case "":
		s.Score = Base
		if s.Space.smoothsLabels() {
			s.Score = Smoothed
		}
	case Base, Smoothed, Loss:
	default:
		return nil, failure.Of(ndls.ErrOption, "--score %q is neither %s, %s nor %s", s.Score, Base, Smoothed, Loss)
	}
	if s.smoothed = s.Score == Smoothed; !s.smoothed && s.Space.smoothsLabels() {
		return nil, failure.Of(ndls.ErrOption, "--score %s compares trials before label smoothing, and --try names options of label smoothing: leave out one of the two", s.Score)
	}
	given := func(name string) bool {
		return slices.ContainsFunc(s.Space, func(d Dimension) bool { return d.Name == name })
	}
	if !given("rule") && !given("label-rule") { // with which other options may go that do not go with the default
		if err := ndls.CheckOptions(s.base); err != nil {
			return nil, err
		}
	}
	return s, s.draw()
}

// changed lists the options of which the caller has changed the default.
func (s *search) changed() (names []string) {
	standard := ndls.DefaultOptions()
	for _, name := range Names() {
		if s.base.Get(name) != standard.Get(name) {
			names = append(names, name)
		}
	}
	return names
}

// drawsPerTrial bounds the attempts to draw a trial that was not drawn before.
const drawsPerTrial = 1000

// draw draws the trials.
func (s *search) draw() error {
	seen := map[string]bool{}
	switch s.Search {
	case Grid:
		n, err := s.Space.combinations()
		if err != nil {
			return err
		}
		if s.Trials > 0 && n > s.Trials {
			return failure.Of(ndls.ErrOption, "the grid has %d combinations, and --trials allows %d: give fewer values, more trials, or --search random", n, s.Trials)
		}
		for i := range n {
			if _, err := s.add(s.Space.combination(i), seen); err != nil {
				return err
			}
		}
	case Random, "":
		s.Search = Random
		misses, most := 0, cmp.Or(s.Trials, DefaultTrials)
		for _, start := range s.Space.starts(s.base) {
			if len(s.trials) == most {
				break
			}
			if _, err := s.add(start, seen); err != nil {
				return err
			}
		}
		for attempt := uint64(0); len(s.trials) < most && misses < drawsPerTrial; attempt++ {
			added, err := s.add(s.Space.draw(s.base.Seed, attempt), seen)
			if err != nil {
				return err
			}
			if misses++; added {
				misses = 0
			}
		}
	default:
		return failure.Of(ndls.ErrOption, "--search %q is neither %s nor %s", s.Search, Random, Grid)
	}
	return nil
}

// add adds a trial unless one with the same settings was drawn before. It refuses settings that a run
// refuses.
func (s *search) add(drawn []Setting, seen map[string]bool) (bool, error) {
	o, counted, err := settle(s.base, drawn, s.smoothed)
	if err != nil {
		return false, err
	}
	key := words(counted)
	if seen[key] {
		return false, nil
	}
	seen[key] = true
	if err := ndls.CheckOptions(o); err != nil {
		return false, failure.Of(ndls.ErrOption, "the trial with%s: %w", words(drawn), err)
	}
	if s.smoothed && o.Smooth.Targets != "all" {
		return false, failure.Of(ndls.ErrOption, "--targets %s leaves nodes without soft labels, which are smoothed over the whole graph; use --targets all, or --score %s", o.Smooth.Targets, Base)
	}
	s.trials = append(s.trials, trial{Trial: Trial{Number: len(s.trials) + 1, Settings: counted}, options: o})
	return true, nil
}

// words are settings as flags.
func words(settings []Setting) (text string) {
	for _, x := range settings {
		text += " --" + x.Name + " " + x.Value
	}
	return text
}

// todo are the trials that are not done: those with the same smoothed rows follow each other, and so do those
// with the same K table, and those with the same distances from hop to hop.
func (s *search) todo(trials []*trial) (list []*trial) {
	rows := func(o ndls.Options) ndls.Options {
		o.Train, o.Labels = ndls.Options{}.Train, ndls.Options{}.Labels
		return o
	}
	table := func(o ndls.Options) ndls.Options {
		o = rows(o)
		o.Smooth = ndls.Options{}.Smooth
		return o
	}
	distances := func(o ndls.Options) ndls.Options {
		o = table(o)
		o.LSI.Epsilon = 0
		return o
	}
	number := map[ndls.Options]int{} // in the order in which they are drawn
	of := func(o ndls.Options) int {
		if _, ok := number[o]; !ok {
			number[o] = len(number)
		}
		return number[o]
	}
	order := map[*trial][3]int{}
	for _, t := range trials {
		order[t] = [3]int{of(distances(t.options)), of(table(t.options)), of(rows(t.options))}
		if !t.done() {
			list = append(list, t)
		}
	}
	slices.SortStableFunc(list, func(a, b *trial) int { x, y := order[a], order[b]; return slices.Compare(x[:], y[:]) })
	return list
}

// optionsOf returns the options of trials.
func optionsOf(trials []*trial) (list []ndls.Options) {
	for _, t := range trials {
		list = append(list, t.tried())
	}
	return list
}

// climb makes the trials: all of them, and, with Halving, the better ones again with more models.
func (s *search) climb(ctx context.Context) error {
	var all []*trial
	var options []ndls.Options
	for i := range s.trials {
		all, options = append(all, &s.trials[i]), append(options, s.trials[i].options)
	}
	over := ndls.OpenTrials(s.work(), s.smoothed, options...)
	defer over.Close()
	trials := all
	for _, step := range s.rungs() {
		if step.among > 1 {
			trials = s.best(trials, (len(all)+step.among-1)/step.among)
		}
		for _, t := range trials {
			t.rung = step.of(t.options)
		}
		for todo := s.todo(trials); len(todo) > 0; {
			n, err := over.Prepare(ctx, optionsOf(todo)...)
			if err == nil {
				err = s.try(ctx, over, todo[:n])
			}
			if err != nil {
				return err
			}
			todo = todo[n:]
		}
	}
	return nil
}

// rung is a step of a search: so many models of each split, with so much patience, for one trial among so many.
type rung struct {
	runs, patience, among int
	// first is the step of all trials where others follow.
	first bool
}

// shorter is the part of the patience that models of the first step have.
const shorter = 8

// of is the step for a trial with some options, which may differ in patience.
func (r rung) of(o ndls.Options) rung {
	r.patience = o.Train.Patience
	if r.first && r.patience > 0 {
		r.patience = max(r.patience/shorter, 1)
	}
	return r
}

func (s *search) rungs() []rung {
	runs := s.base.NumRuns()
	if !s.Halving {
		return []rung{{runs: runs, among: 1}}
	}
	list := []rung{{runs: 1, among: 1, first: true}, {runs: (runs + 1) / 2, among: 4}}
	if runs > 1 {
		list = append(list, rung{runs: runs, among: 8})
	}
	return list
}

// best are so many trials with the best figures of the models that they are to have, of equals those that were drawn first.
func (s *search) best(trials []*trial, n int) []*trial {
	list := slices.DeleteFunc(slices.Clone(trials), func(t *trial) bool { return t.shown().Failed != "" })
	slices.SortStableFunc(list, func(a, b *trial) int { return cmp.Compare(b.shown().ranking(s.Score), a.shown().ranking(s.Score)) })
	return list[:min(n, len(list))]
}

// shown is the trial with the figures of the models that it is to have: a search with fewer trials may
// have trained more.
func (t *trial) shown() Trial {
	x, splits := t.Trial, t.options.NumSplits()
	models := *t.models()
	if x.Short != nil {
		x.Patience, x.Short = t.patience, nil
	}
	if t.short() && len(models) > 0 {
		x.Failed = "" // a longer training did
	}
	if x.Failed != "" {
		return x
	}
	x.Models = slices.DeleteFunc(slices.Clone(models), func(m Model) bool { return m.Run >= t.runs })
	spread := func(of func(Model) *float64) *ndls.Spread {
		var figures []float64
		for _, m := range x.Models {
			if v := of(m); v != nil {
				figures = append(figures, *v)
			}
		}
		if len(figures) == 0 {
			return nil
		}
		return ndls.SpreadOf(figures, splits)
	}
	x.Base = spread(func(m Model) *float64 { return &m.Base })
	x.Smoothed = spread(func(m Model) *float64 { return m.Smoothed })
	x.Loss = spread(func(m Model) *float64 { return m.Loss })
	return x
}

// try makes trials that are prepared, several at a time, and commits each when it is made.
func (s *search) try(ctx context.Context, over *ndls.Trials, group []*trial) error {
	var ending sync.Mutex
	end := func(ctx context.Context, t *trial) error {
		ending.Lock()
		defer ending.Unlock()
		if err := s.folder.commit(ctx, t.Trial); err != nil {
			return err
		}
		if s.Done != nil {
			s.Done(t.Trial)
		}
		return nil
	}
	all, ctx := errgroup.WithContext(ctx)
	all.SetLimit(over.SideBySide())
	for _, trials := range sharing(group) {
		all.Go(func() error {
			if err := ctx.Err(); err != nil {
				return err
			}
			start := time.Now()
			err := over.Measure(ctx, optionsOf(trials), func(i int, a *ndls.Accuracy) error {
				trials[i].Seconds, start = time.Since(start).Seconds(), time.Now()
				trials[i].found(a, s.Score == Loss)
				return end(ctx, trials[i])
			})
			if !errors.Is(err, ndls.ErrDiverged) {
				return err
			}
			for _, t := range trials {
				failed := Trial{Number: t.Number, Settings: t.Settings, Failed: ndls.ErrDiverged.Error()}
				if !t.short() {
					failed.Short = t.Short
				}
				t.Trial = failed
				if err := end(ctx, t); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return all.Wait()
}

// sharing divides trials into those that share their models: they differ in options of label smoothing alone.
func sharing(group []*trial) (parts [][]*trial) {
	of := map[ndls.Options]int{}
	for _, t := range group {
		o := t.options
		o.Labels = ndls.Options{}.Labels
		i, ok := of[o]
		if !ok {
			i = len(parts)
			of[o], parts = i, append(parts, nil)
		}
		parts[i] = append(parts[i], t)
	}
	return parts
}

// found takes the figures of the models over, with their losses if these count.
func (t *trial) found(a *ndls.Accuracy, losses bool) {
	models := t.models()
	*models = nil
	for _, m := range a.Models {
		x := Model{Split: m.Split, Run: m.Run, Base: *m.Base.Valid, Smoothed: m.Smoothed.Valid, Epochs: m.Epochs, BestEpoch: m.BestEpoch}
		if losses {
			x.Loss = m.ValidLoss
		}
		*models = append(*models, x)
	}
	t.Base, t.Smoothed = a.Base.Valid, a.Smoothed.Valid
}
