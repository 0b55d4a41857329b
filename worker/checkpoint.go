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
	name        string
	first, last int
	next        time.Time
	from        io.ReadCloser // nil: no state to go on from
	// joint is set where several workers save together. They number their states by
	// saves, and retain the one before the newest: some may not have saved the newest.
	joint    bool
	number   int
	previous string
}

// saveTo prepares for saving the state of granules [first, last). Its rows depend
// on files of some kinds, and on the graph. close must be called.
func (j *job) saveTo(ctx context.Context, name string, first, last int, kinds ...string) (*saves, hops.Checkpoints, error) {
	s := &saves{job: j, name: name, first: first, last: last, joint: j.group.Size() > 1}
	if s.joint {
		s.name = fmt.Sprintf("%s/rows-%d-%d", name, j.task.First, j.task.Last)
	}
	identity, err := j.identity(name, append(kinds, catalog.KindEdges, catalog.KindNodes))
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

func checkpointFolder(name string) string { return "checkpoints/" + name + "/" }

// checkpoint is what the path of a state says.
type checkpoint struct{ first, last, hop int }

func parseCheckpoint(name, path string) (c checkpoint, ok bool) {
	rest, ok := strings.CutPrefix(path, checkpointFolder(name))
	if !ok {
		return c, false
	}
	n, _ := fmt.Sscanf(rest, "%d-%d/hop-%d-", &c.first, &c.last, &c.hop)
	return c, n == 3
}

// newest finds the newest state of these granules, and maybe more, of which all workers
// of the group have theirs.
func (s *saves) newest(ctx context.Context) (best catalog.Entry, ok bool, err error) {
	var states []catalog.Entry
	hop := func(e catalog.Entry) int {
		c, _ := parseCheckpoint(s.name, e.Path)
		return c.hop
	}
	for _, e := range s.cat.Entries(catalog.KindCheckpoint) {
		if c, ok := parseCheckpoint(s.name, e.Path); ok && c.first <= s.first && c.last >= s.last {
			states = append(states, e)
		}
	}
	slices.SortFunc(states, func(a, b catalog.Entry) int { return cmp.Compare(hop(b), hop(a)) })
	mine := []float64{-1, -1} // no more are retained for long
	for i, e := range states[:min(len(states), len(mine))] {
		mine[i] = float64(hop(e))
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

// save commits a state and removes older ones. The name of its file is its own:
// states of other attempts may differ in how the columns are cut.
func (s *saves) save(ctx context.Context, hop int, write func(io.Writer) error) error {
	begun := time.Now()
	if s.joint {
		s.number++
		hop = s.number
	}
	path := fmt.Sprintf("%s%05d-%05d/hop-%05d-%s", checkpointFolder(s.name), s.first, s.last, hop, strings.ToLower(rand.Text()[:8]))
	f, err := s.cat.Create(ctx, catalog.KindCheckpoint, path, catalog.NotApplicable, int32(s.first))
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
	previous := s.previous
	if s.joint {
		s.previous = f.Path()
	}
	return s.drop(ctx, func(path string, c checkpoint) bool { return path != f.Path() && path != previous && c.hop <= hop })
}

// drop removes states of these granules, or of some of them.
func (s *saves) drop(ctx context.Context, match func(path string, c checkpoint) bool) error {
	return s.cat.Remove(ctx, func(e catalog.Entry) bool {
		c, ok := parseCheckpoint(s.name, e.Path)
		return ok && e.Kind == catalog.KindCheckpoint && c.first >= s.first && c.last <= s.last && match(e.Path, c)
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
	return s.drop(ctx, func(string, checkpoint) bool { return true })
}

// dropCheckpoints removes all that was saved under a name.
func (j *job) dropCheckpoints(ctx context.Context, name string) error {
	return j.cat.Remove(ctx, func(e catalog.Entry) bool {
		return e.Kind == catalog.KindCheckpoint && strings.HasPrefix(e.Path, checkpointFolder(name))
	})
}
