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
	"ndls/plan"
	"ndls/stage"
)

// restShare is the pause after a save, as a multiple of the time that the save took.
const restShare = 10

// saver says how the state of long tasks is saved. If it is nil, nothing is saved, and work
// continues from what others have saved.
type saver struct {
	// every is the time between two saves.
	every time.Duration
	// stop reports whether to save now and end.
	stop func() bool
	// saved is called after each save with true, and with false when the saved state is of no more
	// use.
	saved func(bool)
	// hopping is called with true when hops begin, after which stop is asked, and with false when
	// they end.
	hopping func(bool)
}

// checkpoints saves the state of a task's work, and finds saved states.
type checkpoints struct {
	*stage.Env
	saver *saver
}

// checkpoint holds the state of one run of an engine: panels [first, last) of the object that a
// name stands for.
type checkpoint struct {
	*checkpoints
	// stage, rows [lo, hi) and panels [first, last) say what the states are about.
	stage       string
	lo, hi      int64
	first, last int
	next        time.Time
	from        io.ReadCloser // nil: no state from which to continue
	// joint is set if several workers save together. They number their states by saves, and keep
	// the state before the newest, because some workers may lack the newest.
	joint    bool
	number   int
	previous string
}

// Open implements stage.States.
func (c *checkpoints) Open(ctx context.Context, lo, hi int64, first, last int, kinds ...string) (stage.State, hops.Checkpoints, error) {
	s := &checkpoint{
		checkpoints: c, stage: string(c.Task.Stage), lo: lo, hi: hi, first: first, last: last,
		joint: c.Group.Size() > 1,
	}
	identity, err := c.identity(fmt.Sprintf("%s/%d-%d", s.stage, s.lo, s.hi), append(kinds, stage.EdgesOf(c.Catalog, plan.In), catalog.KindNodes))
	if err != nil {
		return nil, hops.Checkpoints{}, err
	}
	o := hops.Checkpoints{Identity: identity}
	e, ok, err := s.newest(ctx)
	if err != nil {
		return nil, o, err
	}
	if ok {
		if s.from, err = c.Catalog.Stream(ctx, e); err != nil {
			return nil, o, err
		}
		o.From = s.from
	}
	if c.saver == nil {
		return s, o, nil
	}
	s.next = time.Now().Add(c.saver.every)
	o.Stop, o.Save = c.saver.stop, s.save
	o.Due = func() bool { return !time.Now().Before(s.next) }
	c.saver.hopping(true)
	return s, o, nil
}

// Close implements stage.State.
func (s *checkpoint) Close() {
	if s.saver != nil {
		s.saver.hopping(false)
	}
	if s.from != nil {
		_ = s.from.Close()
	}
}

// identity returns a text for what decides the rows of a run apart from its options.
func (c *checkpoints) identity(name string, kinds []string) (string, error) {
	sum := sha256.New()
	if err := json.NewEncoder(sum).Encode([]any{name, c.Plan.Seed, c.Plan.LSI}); err != nil {
		return "", err
	}
	for _, kind := range kinds {
		for _, e := range c.Catalog.Entries(kind) {
			fmt.Fprintln(sum, e.Path, e.Checksum)
		}
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

// newest finds the newest state of these panels, perhaps together with others, that all workers of
// the group have.
func (s *checkpoint) newest(ctx context.Context) (best catalog.Entry, ok bool, err error) {
	var states []catalog.Entry
	for _, e := range s.Catalog.Entries(catalog.KindCheckpoint) {
		if s.same(e) && int(e.First) <= s.first && int(e.Last) >= s.last {
			states = append(states, e)
		}
	}
	slices.SortFunc(states, func(a, b catalog.Entry) int { return cmp.Compare(b.Hop, a.Hop) })
	mine := []float64{-1, -1} // no more are kept for long
	for i, e := range states[:min(len(states), len(mine))] {
		mine[i] = float64(e.Hop)
	}
	all, err := s.Group.AllGather(ctx, mine)
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

// same reports whether an entry is a state of the stage, and of these rows.
func (s *checkpoint) same(e catalog.Entry) bool {
	return e.Kind == catalog.KindCheckpoint && e.Stage == s.stage && e.Lo == s.lo && e.Hi == s.hi
}

// save commits a state and removes older ones. Its file name is unique, because states of other
// attempts may cut the columns otherwise.
func (s *checkpoint) save(ctx context.Context, hop int, write func(io.Writer) error) error {
	begun := time.Now()
	if s.joint {
		s.number++
		hop = s.number
	}
	path := fmt.Sprintf("checkpoints/%s/rows-%d-%d/%05d-%05d/hop-%05d-%s", s.stage, s.lo, s.hi, s.first, s.last, hop, strings.ToLower(rand.Text()[:8]))
	e := catalog.Describe(catalog.KindCheckpoint, path).Of(s.stage).Holding(s.lo, s.hi).Panels(s.first, s.last).AtHop(hop)
	if err := s.Catalog.Write(ctx, e, func(f *catalog.File) error { return write(f) }); err != nil {
		return err
	}
	s.saver.saved(true)
	s.next = time.Now().Add(max(s.saver.every, restShare*time.Since(begun)))
	retained := ""
	if s.joint {
		retained, s.previous = s.previous, path
	}
	return s.drop(ctx, func(e catalog.Entry) bool { return e.Path != path && e.Path != retained && int(e.Hop) <= hop })
}

// drop removes states of these panels, or of some of them.
func (s *checkpoint) drop(ctx context.Context, match func(catalog.Entry) bool) error {
	return s.Catalog.Remove(ctx, func(e catalog.Entry) bool {
		return s.same(e) && int(e.First) >= s.first && int(e.Last) <= s.last && match(e)
	})
}

// Done implements stage.State.
func (s *checkpoint) Done(ctx context.Context) error {
	if err := group.Barrier(ctx, s.Group); err != nil {
		return err
	}
	if s.saver != nil {
		s.saver.saved(false)
	}
	return s.drop(ctx, func(catalog.Entry) bool { return true })
}

// Drop implements stage.States.
func (c *checkpoints) Drop(ctx context.Context) error {
	return c.Catalog.Remove(ctx, func(e catalog.Entry) bool {
		return e.Kind == catalog.KindCheckpoint && e.Stage == string(c.Task.Stage)
	})
}
