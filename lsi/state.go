package lsi

import (
	"context"
	"fmt"
	"io"
	"reflect"
	"slices"

	"ndls/hops"
	"ndls/internal/direct"
	"ndls/internal/mem"
	"ndls/internal/packed"
)

// question holds all that determines a table.
type question struct {
	hops.Origin
	Epsilon float64   `json:"epsilon"`
	Kmax    int       `json:"kmax"`
	Looser  []float64 `json:"looser,omitempty"`
	// Tolerance is 0 if no polynomials replace hops, whatever the options say.
	Tolerance float64 `json:"tolerance,omitempty"`
	Standing  float64 `json:"standing,omitempty"`
	Panels    int     `json:"granules"`
	Sample    []int64 `json:"sample,omitempty"`
}

// state is the header of a state: the window, the hop of each panel, and the distances so far.
type state struct {
	Question question `json:"question"`
	From     int      `json:"from"`
	To       int      `json:"to"`
	At       []int    `json:"at"`
	// Polynomials says that the hops of the window are made of polynomials.
	Polynomials bool `json:"polynomials,omitempty"`
	// Decided is the hop after which it was decided that polynomials replace others, 0 before that.
	Decided int `json:"decided,omitempty"`
	// Before is the number of nodes of all workers whose K was unknown one hop before.
	Before float64 `json:"before"`
	// Distances holds the distances of the sample's rows.
	Distances [][]float64 `json:"distances,omitempty"`
}

func (q question) equal(p question) bool {
	same := slices.Equal(q.Looser, p.Looser) && slices.Equal(q.Sample, p.Sample)
	q.Looser, p.Looser, q.Sample, p.Sample = nil, nil, nil, nil
	return same && reflect.DeepEqual(q, p)
}

func (t *tracker) question() question {
	tolerance := t.o.Tolerance
	if t.series.degree == 0 {
		tolerance = 0
	}
	return question{
		t.g.Origin("lsi", t.o.Checkpoints, t.o.Layout.Precision),
		t.o.Epsilon, t.o.Kmax, t.o.Looser, tolerance, t.o.Standing, t.panels, t.o.Sample,
	}
}

// reached returns the number of leading panels that were observed at that hop.
func (t *tracker) reached(hop int) int {
	return sortedEnd(t.at, func(at int) bool { return at >= hop })
}

// stored returns the panels whose rows are in a state: other panels have not begun, or are not
// needed again.
func (t *tracker) stored() (first, last int) {
	return sortedEnd(t.at, func(at int) bool { return at >= t.o.Kmax }), t.reached(0)
}

// sortedEnd returns the number of leading hops for which so is true.
func sortedEnd(at []int, so func(hop int) bool) int {
	if i := slices.IndexFunc(at, func(hop int) bool { return !so(hop) }); i >= 0 {
		return i
	}
	return len(at)
}

// partly reports whether some blocks, but not all, have added to the sums of a hop.
func (t *tracker) partly(hop int) bool {
	r := t.reached(hop)
	return 0 < r && r < t.panels
}

// save writes K, the rows of the stored panels, and the partial sums of the window.
func (t *tracker) save(w io.Writer) error {
	out, err := hops.NewStateWriter(w, state{
		t.question(), t.from, t.to, t.at, t.polynomials != nil, t.decided, t.before, t.table.distances,
	})
	if err != nil {
		return err
	}
	for _, k := range t.table.Columns() {
		if err := out.Put(mem.AsBytes(k)); err != nil {
			return err
		}
	}
	if t.polynomials != nil {
		if err = t.states.write(out, t); err == nil {
			err = t.polynomials.write(out)
		}
		if err != nil {
			return err
		}
		return out.Close()
	}
	if t.whole() {
		err = out.Block(t.rows, t.panels)
	} else if err = t.states.save(t); err == nil {
		err = t.states.write(out, t)
	}
	if err != nil {
		return err
	}
	for hop := range t.to + 1 {
		if !t.partly(hop) {
			continue
		}
		if err := t.partial.read(hop - t.from); err != nil {
			return err
		}
		if err := out.Put(mem.AsBytes(t.partial.now.S[:t.n])); err != nil {
			return err
		}
	}
	return out.Close()
}

// header reads the position of a state: its hop, the window, and the hops of all
// panels.
func (t *tracker) header(r *hops.StateReader) (position []int, err error) {
	var s state
	if err := r.Header(&s); err != nil {
		return nil, err
	}
	if err := t.check(s); err != nil {
		return nil, err
	}
	t.from, t.to, t.at, t.resumesPolynomials, t.decided = s.From, s.To, s.At, s.Polynomials, s.Decided
	t.before = s.Before
	copy(t.table.distances, s.Distances)
	hop := s.At[0]
	if s.Polynomials {
		hop = s.From
	}
	return append([]int{hop, s.From, s.To}, s.At...), nil
}

// resume loads a state, whatever the width of the blocks that wrote it.
func (t *tracker) resume(ctx context.Context, r *hops.StateReader) error {
	if err := t.readTable(r); err != nil {
		return err
	}
	if t.decided > 0 {
		if err := t.lastWindow().findMoving(ctx); err != nil {
			return err
		}
	}
	if t.resumesPolynomials {
		return t.lastWindow().resumePolynomials(ctx, r)
	}
	hop := t.at[0]
	even := hop == t.at[t.panels-1]
	if even && t.blocks == 1 {
		if err := r.Block(t.rows, t.panels, 0, t.panels); err != nil {
			return err
		}
		t.held, t.walk = [3]int{0, t.panels, hop}, t.streams.Walk(t.rows, hop)
	} else if err := t.share(); err != nil {
		return err
	} else if err := t.states.read(r, t); err != nil {
		return err
	}
	for hop := range t.to + 1 {
		if !t.partly(hop) {
			continue
		}
		if err := r.Fill(mem.AsBytes(t.partial.now.S[:t.n])); err != nil {
			return err
		}
		if err := t.partial.write(hop - t.from); err != nil {
			return err
		}
	}
	if even {
		t.from, t.to = hop, hop // a window may begin here
	}
	return r.End()
}

// resumePolynomials loads a state from within the window whose hops are made of polynomials.
func (t lastWindow) resumePolynomials(ctx context.Context, r *hops.StateReader) error {
	if err := t.share(); err != nil {
		return err
	}
	if err := t.states.read(r, t.tracker); err != nil {
		return err
	}
	if err := t.openPolynomials(ctx); err != nil {
		return err
	}
	if err := t.polynomials.read(r); err != nil {
		return err
	}
	return r.End()
}

// check returns an error unless a state belongs to this run.
func (t *tracker) check(s state) error {
	if want := t.question(); !s.Question.equal(want) {
		return fmt.Errorf("the state belongs to %+v, this run is %+v: %w", s.Question, want, hops.ErrState)
	}
	good := 0 <= s.From && s.From <= s.To && s.To <= t.o.Kmax && len(s.At) == t.panels
	most := s.To
	for _, hop := range s.At {
		good = good && hop <= most && (hop >= s.From || hop == -1 && s.From == 0)
		most = hop
	}
	good = good && (s.Decided == 0 || t.o.PlainHops() > 0 && plainHops <= s.Decided && s.Decided <= s.From)
	if s.Polynomials {
		good = good && s.Decided > 0 && s.To == t.o.Kmax && s.At[0] == s.To && most == s.From
	}
	good = good && len(s.Distances) == len(t.o.Sample)
	if !good || s.At[0] < 1 {
		return fmt.Errorf("the state has panels at hops %v of the window from %d to %d, which is impossible: %w", s.At, s.From, s.To, hops.ErrState)
	}
	return nil
}

// readTable reads the known part of K.
func (t *tracker) readTable(r *hops.StateReader) error {
	left := int64(0)
	for c, column := range t.table.Columns() {
		if err := r.Fill(mem.AsBytes(column)); err != nil {
			return err
		}
		for i, k := range column {
			if k != unsettled && int(k) > t.o.Kmax {
				return fmt.Errorf("K of node %d is %d: %w", i, k, hops.ErrState)
			}
			if c == 0 && k == unsettled {
				left++
			}
		}
	}
	t.unsettled.Store(left)
	return nil
}

// write writes the sums of all pieces to a state.
func (p *polynomials) write(out *hops.StateWriter) error {
	b := <-p.buffers
	defer func() { p.buffers <- b }()
	for number := range p.all().pieces {
		x := p.piece(number)
		if err := p.loadSums(x, b); err != nil {
			return err
		}
		if err := out.Put(mem.AsBytes(p.pieceProducts(x, b))); err != nil {
			return err
		}
	}
	return nil
}

// read reads them.
func (p *polynomials) read(r *hops.StateReader) error {
	b := <-p.buffers
	defer func() { p.buffers <- b }()
	for number := range p.all().pieces {
		x := p.piece(number)
		if err := r.Fill(mem.AsBytes(p.pieceProducts(x, b))); err != nil {
			return err
		}
		if err := p.storeSums(x, b); err != nil {
			return err
		}
	}
	return nil
}

// states keeps the rows of all panels in a scratch file, each panel on its own, so that
// blocks of any width can read them.
type states struct {
	f    *direct.Scratch
	rows int64 // bytes of a panel
}

func newStates(t *tracker) (*states, error) {
	f, err := direct.NewScratch(t.g.Scratch)
	if err != nil {
		return nil, fmt.Errorf("scratch file: %w", err)
	}
	return &states{f: f, rows: t.rows.PanelBytes()}, nil
}

func (s *states) close() {
	if s != nil {
		_ = s.f.Close()
	}
}

func (s *states) rowsAt(g int) int64 { return int64(g) * s.rows }

// save writes the block to the scratch file.
func (s *states) save(t *tracker) error {
	if err := t.rows.Save(s.f, s.rowsAt(t.first), t.last-t.first); err != nil {
		return fmt.Errorf("rows at hop %d: %w", t.hop, err)
	}
	return nil
}

// load reads the block from the scratch file.
func (s *states) load(t *tracker) error {
	if err := t.rows.Load(s.f, s.rowsAt(t.first), t.last-t.first); err != nil {
		return fmt.Errorf("rows at hop %d: %w", t.hop, err)
	}
	return nil
}

// write writes the stored panels as [hops.StateWriter.Block] does.
func (s *states) write(out *hops.StateWriter, t *tracker) error {
	return s.parts(t, func(page []byte, size, at int64) error {
		if err := s.f.ReadAt(page, at); err != nil {
			return err
		}
		return out.Put(page[:size])
	})
}

// read reads them.
func (s *states) read(r *hops.StateReader, t *tracker) error {
	return s.parts(t, func(page []byte, size, at int64) error {
		if err := r.Fill(page[:size]); err != nil {
			return err
		}
		return s.f.WriteAt(page, at)
	})
}

// parts calls move for the parts of the stored panels, in the order of the format, with the size of
// the part, its offset in the scratch file, and a page for it.
func (s *states) parts(t *tracker, move func(page []byte, size, at int64) error) error {
	element := packed.PanelColumns * t.o.Layout.Precision.Bytes()
	first, last := t.stored()
	buf := direct.AlignedBytes(int(min(packed.StripRows*element, s.rows)))
	for lo := int64(0); lo < t.n; lo += packed.StripRows {
		n := min(packed.StripRows, t.n-lo)
		for g := first; g < last; g++ {
			if err := move(buf[:direct.RoundUp(n*element)], n*element, s.rowsAt(g)+lo*element); err != nil {
				return err
			}
		}
	}
	return nil
}
