package smooth

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"sync"

	"ndls/group"
	"ndls/hops"
	"ndls/internal/direct"
	"ndls/internal/mem"
	"ndls/internal/packed"
	"ndls/internal/progress"
	"ndls/spmv"
)

// pilot makes all hops of a panel. For each row and hop it stores the size of the row's error if
// the row settled there, and the influence of that error on the result.
type pilot struct {
	all         *Targets
	g           hops.Graph
	o           Options
	share       float64
	panels      int
	checkpoints hops.Checkpoints

	s      *Smoother // nil after all hops are made
	last   int       // the last hop
	totals []float64 // sum of the weights of the hops before each hop
	needed *hops.Needed
	// edges is the number of edges of the graph. The influences start early passes before the other
	// columns; pass counts the passes made.
	edges       int64
	early, pass int
	rows        *replay
	// weight is, for each smoothed row, the weight in the output row of a hop of weight 1, divided
	// by d̃ and by the length of the output row, in multiples of unit. It is 0 for other rows.
	weight *mem.Array[float32]
	unit   float64
	flow   *direct.Scratch // influences, while the other columns are at hop 0
	codes  *codes
	stats  hops.Stats
	exact  []float32 // rows of the sample, after all hops are made
	trials []trial
	begun  pilotWork

	mu     sync.Mutex
	counts counts
}

// counts holds what hop 0 shows: the number of rows that are smoothed and not zero, the square of
// the largest length of a row, the largest weight, and the largest density.
type counts struct{ rows, largest, heaviest, densest float64 }

// largestFlow bounds the numbers in the column of influences. float16 can store it.
const largestFlow = 1 << 15

// chooseBytes returns the memory of choosing beside a smoother with settled rows, for 16 columns of
// n of all rows.
func chooseBytes(n, all int64, threads int) int64 {
	return 4*n + hops.NeededBytes(n, all) + int64(max(threads, 1))*2*sweepHops*codesOfStrip + codesInMemory + replayBytes + 4*direct.Align
}

// flowsOfStrip is the size of the influences of a strip.
const flowsOfStrip = 4 * packed.StripRows

// ChooseDisk returns the scratch space of choosing for n rows and that many hops.
func ChooseDisk(n int64, last int) int64 {
	return int64(packed.Strips(n)) * (2*int64(last)*codesOfStrip + packed.StripRows*packed.PanelColumns*4 + flowsOfStrip)
}

// start finds out which rows each hop needs.
func (p *pilot) start(ctx context.Context) (err error) {
	o := p.o
	o.Settled, o.deflated, o.Blocks = false, true, 1
	if p.s, err = New(ctx, p.g, o); err != nil {
		return err
	}
	longest := 0
	for i, c := range p.s.counts.S {
		if p.all.Has(int64(i)) {
			longest = max(longest, int(c))
		}
	}
	if longest, err = group.Max(ctx, p.g.Group, longest); err != nil {
		return fmt.Errorf("hops of all workers: %w", err)
	}
	p.last = max(longest-1, 0)
	p.totals = make([]float64, longest+1)
	p.s.weights = nil
	for hop := range longest {
		w := o.Rule.weight(hop)
		p.s.weights = append(p.s.weights, w)
		p.totals[hop+1] = p.totals[hop] + w
	}
	edges := []float64{float64(hops.NumEdges(p.g.Source))}
	if err := group.Totals(ctx, p.g.Group, edges); err != nil {
		return fmt.Errorf("edges of all workers: %w", err)
	}
	p.edges = int64(edges[0])
	if p.takes() > gain*float64(p.panels*p.last) && p.panels <= 1 {
		return nil
	}
	p.needed, err = p.g.FindNeeded(ctx, p.last, func(i int64) int {
		if p.all.Has(i) {
			return int(p.s.counts.S[i]) - 1
		}
		return -1
	})
	if err != nil || p.needed == nil {
		return err
	}
	p.stats.EdgesStreamed += p.needed.EdgesRead
	// If a hop needs fewer than half of the edges, two passes over its rows read less than one pass
	// over all rows.
	for p.early < p.last && 2*p.needed.Edges(p.last-p.early) < p.edges {
		p.early++
	}
	return nil
}

// takes estimates the number of passes over all edges of a run with settled rows, including the
// passes for the choice.
func (p *pilot) takes() float64 {
	passes := float64(p.last-p.early) + float64(settledPasses*(float64(p.panels)+trialCost))
	for hop := p.last - p.early + 1; hop <= p.last; hop++ {
		passes += 2 * float64(p.needed.Edges(hop)) / float64(p.edges)
	}
	return passes
}

// exactEdges returns the number of edges that the hops of a panel need.
func (p *pilot) exactEdges() (edges float64) {
	if p.needed == nil {
		return float64(p.last) * float64(p.edges)
	}
	for hop := 1; hop <= p.last; hop++ {
		edges += float64(p.needed.Edges(hop))
	}
	return edges
}

// worth reports whether settled rows are expected to save enough of an exact run.
func (p *pilot) worth() bool {
	return p.edges > 0 && p.takes() <= gain*float64(p.panels)*p.exactEdges()/float64(p.edges)
}

// prepare allocates the memory and the disk space for all hops.
func (p *pilot) prepare(ctx context.Context, x hops.Rows) (err error) {
	if p.weight, err = mem.Alloc[float32](p.g.Budget, p.s.n, "weights of rows"); err != nil {
		return err
	}
	if p.codes, err = newCodes(p.g, p.last); err != nil {
		return err
	}
	if p.rows, err = newReplay(p.g, x); err != nil || p.early == 0 {
		return err
	}
	if p.flow, err = direct.NewScratch(p.g.Scratch); err != nil {
		return fmt.Errorf("scratch file: %w", err)
	}
	p.s.streams.Close()
	p.s.streams = p.g.NewStreams(2, p.o.held(p.s.n), hops.AsLasts(p.needed.Until), false)
	edges, err := p.s.streams.Prepare(ctx, p.last-p.early+1, p.last)
	p.stats.EdgesStreamed += edges
	return err
}

// end releases what trials do not need.
func (p *pilot) end() {
	if p.s != nil {
		p.s.Free()
		p.s = nil
	}
	p.weight.Free()
	p.weight = nil
	if p.flow != nil {
		_ = p.flow.Close()
		p.flow = nil
	}
}

func (p *pilot) free() {
	p.end()
	p.needed.Free()
	p.codes.free()
	p.rows.free()
}

// passes returns the number of passes of the pilot. First the influences go from hop last to hop
// last−early+1, then all columns move, then the others continue to hop last.
func (p *pilot) passes() int { return p.last + p.early }

// back returns the hop of the influences at a pass, fore the hop of the other columns. They are
// below 1 while these columns do not move.
func (p *pilot) back() int { return p.last + 1 - p.pass }
func (p *pilot) fore() int { return p.pass - p.early }

// run makes all hops, starting at the end of a state.
func (p *pilot) run(ctx context.Context) error {
	if resumed, err := p.resume(ctx); err != nil {
		return err
	} else if !resumed {
		if err := p.begin(ctx); err != nil {
			return err
		}
	}
	if p.pass == p.passes() {
		p.end()
		return nil
	}
	walk := p.s.streams.Walk(p.s.rows, 0, nil)
	meter := progress.Start(ctx, "choosing", int64(p.passes()), "passes")
	defer meter.Done()
	meter.Add(int64(p.pass))
	for p.pass < p.passes() {
		if p.pass++; p.fore() == 1 && p.early > 0 {
			if err := p.turn(ctx); err != nil {
				return err
			}
		}
		if err := p.step(ctx, walk); err != nil {
			return err
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		meter.Add(1)
		if p.pass == p.passes() {
			break
		}
		if err := p.after(ctx); err != nil {
			return err
		}
	}
	p.stats.Add(walk.Stats)
	var err error
	if p.exact, err = p.s.Panel(p.rows.put); err != nil {
		return err
	}
	for at := Combinations; at < len(p.exact); at += packed.PanelColumns {
		p.exact[at] = 0 // influences
	}
	p.end()
	return p.after(ctx)
}

// step makes a pass.
func (p *pilot) step(ctx context.Context, walk *hops.Walk) error {
	var mu sync.Mutex
	var failed error
	var sink spmv.Sink
	if hop := p.fore(); hop > 0 {
		sink = func(first int64, rows []float32) {
			if err := p.s.add(hop, nil, first, rows); err != nil {
				mu.Lock()
				failed = errors.Join(failed, err)
				mu.Unlock()
			}
		}
	}
	hop := p.back() // rows that the earlier hop needs include those of the other
	if hop < 1 || p.fore() > 0 && p.fore() < hop {
		hop = p.fore()
	}
	walk.Watch = p.watch
	_, err := walk.Make(ctx, hop, 1, sink)
	return errors.Join(err, failed)
}

// begin sets the panel to hop 0, and the influences to what hop last counts.
func (p *pilot) begin(ctx context.Context) error {
	p.pass, p.counts = 0, counts{}
	p.weight.Clear()
	var mu sync.Mutex
	var failed error
	if err := p.s.clear(); err != nil {
		return err
	}
	if err := p.s.begin(ctx, p.rows.put, func(first int64, rows []float32) {
		if err := p.s.add(0, nil, first, rows); err != nil {
			mu.Lock()
			failed = errors.Join(failed, err)
			mu.Unlock()
		}
		p.weigh(first, rows)
	}); err != nil || failed != nil {
		return errors.Join(err, failed)
	}
	sums, most := []float64{p.counts.rows}, []float64{p.counts.largest, p.counts.heaviest, p.counts.densest}
	if err := errors.Join(group.Totals(ctx, p.g.Group, sums), group.Largest(ctx, p.g.Group, most)); err != nil {
		return fmt.Errorf("rows of all workers: %w", err)
	}
	p.counts = counts{sums[0], most[0], most[1], most[2]}
	up := p.scale()
	for i, w := range p.weight.S {
		p.weight.S[i] = float32(up * float64(w))
	}
	if p.early == 0 {
		return nil
	}
	return p.s.rows.Make(func(int64, []float32) {})
}

// turn sets all columns except the influences to hop 0.
func (p *pilot) turn(ctx context.Context) error {
	if err := p.s.rows.Strips(func(first int64, rows []float32) error {
		return p.codes.with(func(buf, _ []byte) error {
			for k := range len(rows) / packed.PanelColumns {
				binary.LittleEndian.PutUint32(buf[4*k:], math.Float32bits(rows[k*packed.PanelColumns+Combinations]))
			}
			return p.flow.WriteAt(buf[:flowsOfStrip], 4*first)
		})
	}); err != nil {
		return fmt.Errorf("influences of rows: %w", err)
	}
	if err := p.s.fill(ctx, p.rows.put); err != nil {
		return err
	}
	if err := p.s.rows.EditStrips(func(lo int64, edit func(func(int64, []float32))) error {
		return p.codes.with(func(buf, _ []byte) error {
			if err := p.flow.ReadAt(buf[:flowsOfStrip], 4*lo); err != nil {
				return err
			}
			edit(func(first int64, rows []float32) {
				for k := range len(rows) / packed.PanelColumns {
					rows[k*packed.PanelColumns+Combinations] = math.Float32frombits(binary.LittleEndian.Uint32(buf[4*(first-lo+int64(k)):]))
				}
			})
			return nil
		})
	}); err != nil {
		return fmt.Errorf("influences of rows: %w", err)
	}
	return nil
}

// weigh computes the weights of rows from their hop 0. It estimates the length of an output row as
// if the later hops were stationary.
func (p *pilot) weigh(first int64, rows []float32) {
	var found counts
	rule := p.o.Rule
	for k := range len(rows) / packed.PanelColumns {
		i := first + int64(k)
		row := rows[k*packed.PanelColumns:][:Combinations]
		square := 0.0
		for _, z := range row {
			square += float64(float64(z) * float64(z))
		}
		found.largest = max(found.largest, square)
		found.densest = max(found.densest, p.density(i))
		if !p.all.Has(i) {
			continue
		}
		count := int(p.s.counts.S[i])
		factor, residual := rule.factor(count), rule.residual(count)
		mean, own := float64(factor*p.totals[count])+residual, float64(factor*p.s.weights[0])+residual
		length := 0.0
		for c, m := range p.s.mean.Row(i)[:Combinations] {
			y := float64(mean*m) + float64(own*float64(row[c]))
			length += float64(y * y)
		}
		if length == 0 {
			continue
		}
		found.rows++
		weight := factor / math.Sqrt(length) / p.g.Degree1(i)
		found.heaviest = max(found.heaviest, weight)
		p.weight.S[i] = float32(weight)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	c := &p.counts
	*c = counts{c.rows + found.rows, max(c.largest, found.largest), max(c.heaviest, found.heaviest), max(c.densest, found.densest)}
}

// density returns d̃_i divided by the number of edges into row i, the self-loop included: the mean
// weight of these edges.
func (p *pilot) density(i int64) float64 {
	if p.g.Divisors == nil {
		return 1
	}
	return p.g.Degree1(i) / (float64(p.g.Degree[i]) + 1)
}

// scale returns the factor of the weights that keeps influences below largestFlow.
func (p *pilot) scale() (up float64) {
	heaviest := p.counts.heaviest
	if heaviest == 0 {
		heaviest = 1
	}
	up = largestFlow / float64(p.last+1) / heaviest
	p.unit = 1 / up
	flow := largestFlow * p.counts.densest
	p.codes.flows = newScale(flow * flow * flow * flow)
	p.codes.sizes = newScale(4 * p.counts.largest * p.counts.largest)
	return up
}

// watch adds the count of the present hop to the column of influences, and saves the codes of rows.
func (p *pilot) watch(first int64, roles []spmv.Role, rows []float32, before func(lo, hi int64) []float32) error {
	return p.codes.with(func(sizes, flows []byte) error {
		if p.fore() > 0 {
			p.measure(sizes, first, rows, before)
			if err := p.codes.write(sizes, first, p.fore(), sizePart); err != nil {
				return err
			}
		}
		if p.back() < 1 {
			return nil
		}
		p.influence(flows, first, roles, rows)
		return p.codes.write(flows, first, p.back(), flowPart)
	})
}

// measure writes the codes of errors.
func (p *pilot) measure(sizes []byte, first int64, rows []float32, before func(lo, hi int64) []float32) {
	var sums [3 * spmv.SettleRows]float64
	for at := 0; at < len(rows); at += spmv.SettleRows * packed.PanelColumns {
		now := rows[at:min(at+spmv.SettleRows*packed.PanelColumns, len(rows))]
		row, n := at/packed.PanelColumns, len(now)/packed.PanelColumns
		lo := first + int64(row)
		p.g.Kernel.Products(sums[:3*n], now, before(lo, lo+int64(n)))
		for k := range n {
			sizes[row+k] = p.codes.sizes.code(errorFourth(sums[3*k], sums[3*k+1], sums[3*k+2]))
		}
	}
}

// influence adds the count of the present hop to the influences and writes their codes. A code
// stands for the influence times the density of the row, which is the effect of an error for each
// edge that is read. Rows that are not computed have no influence.
func (p *pilot) influence(flows []byte, first int64, roles []spmv.Role, rows []float32) {
	back := p.back()
	w := float32(p.o.Rule.weight(back))
	counts, weights := p.s.counts.S[first:][:len(roles)], p.weight.S[first:][:len(roles)]
	for k, role := range roles {
		row := rows[k*packed.PanelColumns:][:packed.PanelColumns]
		if role != spmv.Computed {
			clear(row)
			flows[k] = 0
			continue
		}
		flow := &row[Combinations]
		if int(counts[k]) > back {
			*flow += float32(weights[k] * w)
		}
		v := float64(*flow) * p.density(first+int64(k))
		v *= v
		flows[k] = p.codes.flows.code(v * v)
	}
}

// errorFourth returns the fourth power of the geometric mean of ‖now‖ and ‖now − ρ·then‖, where ρ =
// min(1, ‖now‖ / ‖then‖), from the products now·now, then·then and now·then.
func errorFourth(now, then, both float64) float64 {
	if then == 0 {
		return float64(now * now)
	}
	rate := min(1, math.Sqrt(now/then))
	step := now + float64(float64(rate*rate)*then) - float64(2*rate*both)
	return float64(max(step, 0) * now)
}
