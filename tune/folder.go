package tune

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"ndls"
	"ndls/internal/failure"
	"ndls/internal/rundir"
	"ndls/internal/seal"
	"ndls/internal/storage"
)

// Files of a search.
const (
	// recordName says what is searched.
	recordName = "search.json"
	// ResultName has the trials and the choice, TableName the trials as a table.
	ResultName = "tune.json"
	TableName  = "trials.csv"
	// workName is the run directory with the smoothed rows of the trials under way, BestName the one for the
	// chosen settings.
	workName = "work"
	BestName = "best"
	// trialPrefix begins the names of trials.
	trialPrefix = "trials/"
)

// record is search.json.
type record struct {
	Seal    string       `json:"seal"`
	Format  int          `json:"format"`
	Dataset string       `json:"dataset"`
	Options ndls.Options `json:"options"`
	Space   []string     `json:"space"`
	Search  string       `json:"search"`
	Score   string       `json:"score"`
	Halving bool         `json:"halving,omitempty"`
}

// recordFormat is the version of the files of a search.
const recordFormat = 3

// committed is a trial in its file.
type committed struct {
	Seal string `json:"seal"`
	Trial
}

// folder is the folder of a search.
type folder struct {
	dir   string
	store storage.Store
}

// work is the run directory in which trials are made. K is found for all ε of label smoothing at the same
// time, as it is for all ε of a search.
func (s *search) work() ndls.Config {
	c := s.Base
	c.Run = s.folder.path(workName)
	for _, t := range s.trials {
		if epsilon := t.options.Labels.Epsilon; epsilon > 0 && s.smoothed && !slices.Contains(c.LabelEpsilons, epsilon) {
			c.LabelEpsilons = append(c.LabelEpsilons, epsilon)
		}
	}
	return c
}

// trialName is the name of a trial's file.
func trialName(number int) string { return fmt.Sprintf("%s%06d.json", trialPrefix, number) }

// open opens the folder of the search, and makes it that of this search if it is new.
func (s *search) open(ctx context.Context) (closeFolder func(), err error) {
	s.folder.dir = strings.TrimRight(s.Base.Run, "/")
	if s.folder.store, err = rundir.Open(ctx, s.folder.dir, true); err != nil {
		return nil, err
	}
	unlock, err := rundir.Lock(s.folder.dir)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			unlock()
		}
	}()
	mine := record{
		Seal: seal.Unsealed, Format: recordFormat, Dataset: s.Base.Dataset, Options: s.base,
		Space: s.Space.strings(), Search: s.Search, Score: s.Score, Halving: s.Halving,
	}
	var there record
	found, err := s.folder.read(ctx, recordName, &there)
	if err != nil {
		return nil, err
	}
	if !found {
		if err := s.folder.refuseForeign(ctx); err != nil {
			return nil, err
		}
		if err := s.folder.write(ctx, recordName, mine); err != nil {
			return nil, err
		}
	} else if err := mine.compare(there); err != nil {
		return nil, fmt.Errorf("--run %s: %w", s.folder.dir, err)
	}
	return unlock, nil
}

// readTrials reads the trials that are done.
func (s *search) readTrials(ctx context.Context) error {
	for i := range s.trials {
		t := &s.trials[i]
		var x committed
		made, err := s.folder.read(ctx, trialName(t.Number), &x)
		if err != nil {
			return err
		}
		if made && !slices.Equal(x.Settings, t.Settings) {
			return seal.Corrupt(s.folder.path(trialName(t.Number)), "it is about the settings%s, and the trial has%s", words(x.Settings),
				words(t.Settings))
		}
		if made {
			t.Trial = x.Trial
		}
	}
	return nil
}

// compare refuses another search in the same folder.
func (r record) compare(there record) error {
	var d []string
	differ := func(what string, here, there any) {
		if here != there {
			d = append(d, fmt.Sprintf("%s: %v here, %v there", what, here, there))
		}
	}
	differ("format", r.Format, there.Format)
	differ("--dataset", r.Dataset, there.Dataset)
	for _, name := range ndls.OptionNames() {
		differ("--"+name, r.Options.Get(name), there.Options.Get(name))
	}
	differ("--try", strings.Join(r.Space, " "), strings.Join(there.Space, " "))
	differ("--search", r.Search, there.Search)
	differ("--score", r.Score, there.Score)
	differ("--halving", r.Halving, there.Halving)
	if len(d) == 0 {
		return nil
	}
	return failure.Of(ndls.ErrPlanMismatch, "it holds another search:\n  %s\nuse the same options, or another --run", strings.Join(d, "\n  "))
}

// refuseForeign refuses a folder that holds something else.
func (f folder) refuseForeign(ctx context.Context) error {
	files, err := f.store.List(ctx, "")
	if err != nil {
		return err
	}
	for _, x := range files {
		if !(x.Attempt && strings.HasPrefix(x.Name, recordName)) {
			return failure.Of(ndls.ErrForeign, "--run %s holds %s, and no search: nothing was changed; choose an empty or new folder", f.dir, x.Name)
		}
	}
	return nil
}

func (f folder) path(name string) string { return f.dir + "/" + name }

// commit commits a trial.
func (f folder) commit(ctx context.Context, t Trial) error {
	return f.write(ctx, trialName(t.Number), committed{seal.Unsealed, t})
}

// write commits v, whose first field is a seal, under a name.
func (f folder) write(ctx context.Context, name string, v any) error {
	text, err := seal.EncodeJSON(v)
	if err != nil {
		return err
	}
	return storage.Put(ctx, f.store.Create, name, text)
}

// mostRead bounds the size of a file that is read.
const mostRead = 256 << 20

// read reads a file that write wrote into v. It is false if there is none.
func (f folder) read(ctx context.Context, name string, v any) (bool, error) {
	text, err := storage.Get(ctx, f.store, name, mostRead)
	if errors.Is(err, storage.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("read %s: %w", f.path(name), err)
	}
	if err := seal.DecodeJSON(text, v); err != nil {
		return false, fmt.Errorf("%s is damaged, %w: remove it, and what it holds is found again: %w", f.path(name), err, seal.ErrCorrupt)
	}
	return true, nil
}
