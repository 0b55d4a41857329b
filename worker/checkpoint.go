package worker

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"ndls/catalog"
	"ndls/group"
	"ndls/hops"
)

// restShare is how many times as long as saving took it is not done again.
const restShare = 10

// saving says how the state of long tasks is saved; nil saves nothing, and goes on
// from what others have saved.
type saving struct {
	// every is the time between two saves.
	every time.Duration
	// stop says whether to save now and end.
	stop func() bool
	// saved is told after each save, and with false when what was saved is of no
	// more use.
	saved func(bool)
	// hopping is told when hops begin, after which stop is asked, and end.
	hopping func(bool)
}

// saves are those of one run of an engine: granules [first, last) of what a name
// stands for.
type saves struct {
	*job
	// stage, rows [lo, hi) and panels [first, last) are what the states are of.
	stage       string
	lo, hi      int64
	first, last int
	next        time.Time
	from        io.ReadCloser // nil: no state to go on from
	// joint is set where several workers save together. They number their states by
	// saves, and retain the one before the newest: some may not have saved the newest.
	joint    bool
	number   int
	previous string
}

// saveTo prepares for saving the state of panels [first, last) of the rows that the
// graph holds for the task. It depends on files of some kinds, and on the graph. close
// must be called.
func (j *job) saveTo(ctx context.Context, g *graph, first, last int, kinds ...string) (*saves, hops.Checkpoints, error) {
	s := &saves{job: j, stage: string(j.task.Stage), lo: g.lo, hi: g.hi, first: first, last: last, joint: j.group.Size() > 1}
	identity, err := j.identity(fmt.Sprintf("%s/%d-%d", s.stage, s.lo, s.hi), append(kinds, catalog.KindEdges, catalog.KindNodes))
	if err != nil {
		return nil, hops.Checkpoints{}, err
	}
	c := hops.Checkpoints{Identity: identity}
	e, ok, err := s.newest(ctx)
	if err != nil {
		return nil, c, err
	}
	if ok {
		if s.from, err = j.cat.Stream(ctx, e); err != nil {
			return nil, c, err
		}
		c.From = s.from
	}
	if j.saving == nil {
		return s, c, nil
	}
	s.next = time.Now().Add(j.saving.every)
	c.Stop, c.Save = j.saving.stop, s.save
	c.Due = func() bool { return !time.Now().Before(s.next) }
	j.saving.hopping(true)
	return s, c, nil
}

func (s *saves) close() {
	if s.saving != nil {
		s.saving.hopping(false)
	}
	if s.from != nil {
		_ = s.from.Close()
	}
}

// identity stands for what decides on the rows of a run beside its options.
func (j *job) identity(name string, kinds []string) (string, error) {
	sum := sha256.New()
	if err := json.NewEncoder(sum).Encode([]any{name, j.plan.Seed, j.plan.LSI}); err != nil {
		return "", err
	}
	for _, kind := range kinds {
		for _, e := range j.cat.Entries(kind) {
			fmt.Fprintln(sum, e.Path, e.Checksum)
		}
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

// newest finds the newest state of these panels, and maybe more, of which all workers of
// the group have theirs.
func (s *saves) newest(ctx context.Context) (best catalog.Entry, ok bool, err error) {
	var states []catalog.Entry
	for _, e := range s.cat.Entries(catalog.KindCheckpoint) {
		if s.same(e) && int(e.First) <= s.first && int(e.Last) >= s.last {
			states = append(states, e)
		}
	}
	slices.SortFunc(states, func(a, b catalog.Entry) int { return cmp.Compare(b.Hop, a.Hop) })
	mine := []float64{-1, -1} // no more are retained for long
	for i, e := range states[:min(len(states), len(mine))] {
		mine[i] = float64(e.Hop)
	}
	all, err := s.group.AllGather(ctx, mine)
	if err != nil {
		return best, false, err
	}
	for _, theirs := range all {
		s.number = max(s.number, int(slices.Max(theirs)))
	}
	for i, e := range states[:min(len(states), len(mine))] {
		if !slices.ContainsFunc(all, func(theirs []float64) bool { return !slices.Contains(theirs, mine[i]) }) {
			s.previous = e.Path
			return e, true, nil
		}
	}
	return best, false, nil
}

// same says whether an entry is a state of the stage and of these rows.
func (s *saves) same(e catalog.Entry) bool {
	return e.Kind == catalog.KindCheckpoint && e.Stage == s.stage && e.Lo == s.lo && e.Hi == s.hi
}

// save commits a state and removes older ones. The name of its file is its own:
// states of other attempts may differ in how the columns are cut.
func (s *saves) save(ctx context.Context, hop int, write func(io.Writer) error) error {
	begun := time.Now()
	if s.joint {
		s.number++
		hop = s.number
	}
	path := fmt.Sprintf("checkpoints/%s/rows-%d-%d/%05d-%05d/hop-%05d-%s", s.stage, s.lo, s.hi, s.first, s.last, hop, strings.ToLower(rand.Text()[:8]))
	f, err := s.cat.Create(ctx, catalog.Describe(catalog.KindCheckpoint, path).Of(s.stage).Holding(s.lo, s.hi).Panels(s.first, s.last).AtHop(hop))
	if err != nil {
		return err
	}
	defer f.Abort()
	if err := write(f); err != nil {
		return err
	}
	if err := s.cat.Commit(ctx, f); err != nil {
		return err
	}
	s.saving.saved(true)
	s.next = time.Now().Add(max(s.saving.every, restShare*time.Since(begun)))
	retained := ""
	if s.joint {
		retained, s.previous = s.previous, f.Path()
	}
	return s.drop(ctx, func(e catalog.Entry) bool { return e.Path != f.Path() && e.Path != retained && int(e.Hop) <= hop })
}

// drop removes states of these panels, or of some of them.
func (s *saves) drop(ctx context.Context, match func(catalog.Entry) bool) error {
	return s.cat.Remove(ctx, func(e catalog.Entry) bool {
		return s.same(e) && int(e.First) >= s.first && int(e.Last) <= s.last && match(e)
	})
}

// done removes all states once all workers of the group have committed what the states
// led to.
func (s *saves) done(ctx context.Context) error {
	if err := group.Barrier(ctx, s.group); err != nil {
		return err
	}
	if s.saving != nil {
		s.saving.saved(false)
	}
	return s.drop(ctx, func(catalog.Entry) bool { return true })
}

// dropCheckpoints removes all that was saved of the task's stage.
func (j *job) dropCheckpoints(ctx context.Context) error {
	return j.cat.Remove(ctx, func(e catalog.Entry) bool {
		return e.Kind == catalog.KindCheckpoint && e.Stage == string(j.task.Stage)
	})
}
