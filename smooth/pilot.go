package smooth

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"sync/atomic"

	"ndls/hops"
	"ndls/internal/direct"
	"ndls/internal/mem"
	"ndls/internal/packed"
	"ndls/internal/progress"
	"ndls/spmv"
)

// pilot makes all hops of a panel. It saves for each row and hop how large an error of the row
// would be, and how much that error would count.
type pilot struct {
	all  *Targets
	g    hops.Graph
	o    Options
	s    *Smoother // until all hops are made
	last int
	// weight is, for each row that is smoothed, what a hop of weight 1 counts in the output
	// row over d̃ and over the length of the output row, in multiples of unit. It is 0 for
	// other rows.
	weight *mem.Array[float32]
	unit   float64
	totals []float64 // sum of the weights of the hops before each hop
	codes  *direct.Scratch
	// buffers are one for each thread, for sweepHops hops of a strip of both codes.
	buffers      chan *mem.Array[byte]
	made         []*mem.Array[byte]
	sizes, flows scale
	stats        hops.Stats
	needed       *mem.Array[uint16] // last hops at which rows are needed, where rows do not settle

	mu       sync.Mutex
	rows     int64   // rows that are smoothed and not zero
	largest  float64 // square of the largest length of a row of hop 0
	heaviest float64 // largest weight
}

// scale turns numbers into codes of a byte: one code for each power of two of the fourth power
// of a number, 255 for those of the largest numbers, 0 for all that are too small.
type scale struct{ base int }

func newScale(largestFourth float64) scale { return scale{exponent(largestFourth) - math.MaxUint8} }

func (s scale) code(fourth float64) uint8 {
	return uint8(max(min(exponent(fourth)-s.base, math.MaxUint8), 0))
}

// exponent is that of a number that is not negative, as it is stored.
func exponent(x float64) int { return int(math.Float64bits(x) >> 52) }

// exponentOfOne is the exponent of 1.
const exponentOfOne = 1023

const (
	// sweepHops is how many hops of a strip are read at a time.
	sweepHops = 32
	// codesOfStrip is the size of the codes of a strip at a hop.
	codesOfStrip = packed.StripRows
	// largestFlow is the largest number in the column of influences. float16 holds it.
	largestFlow = 1 << 15
)

// chooseBytes is what choosing takes beside a smoother with settled rows, for 16 columns.
func chooseBytes(n int64, threads int) int64 {
	return 6*n + hops.NeededBytes(n) + int64(max(threads, 1))*2*sweepHops*codesOfStrip + 4*direct.Align
}

// CodesBytes is the scratch space that choosing takes for n rows and that many hops.
func CodesBytes(n int64, last int) int64 {
	return int64(packed.Strips(n)) * 2 * int64(last) * codesOfStrip
}

// start prepares for all hops, and says whether to make them.
func (p *pilot) start(ctx context.Context, panels int) (worth bool, err error) {
	o := p.o
	o.Settled, o.deflated, o.Blocks = false, true, 1
	if p.s, err = New(ctx, p.g, o); err != nil {
		return false, err
	}
	longest := 0
	for i, c := range p.s.counts.S {
		if p.all.Has(int64(i)) {
			longest = max(longest, int(c))
		}
	}
	p.last = max(longest-1, 0)
	p.totals = make([]float64, longest+1)
	p.s.weights = nil
	for hop := range longest {
		w := o.Rule.weight(hop)
		p.s.weights = append(p.s.weights, w)
		p.totals[hop+1] = p.totals[hop] + w
	}
	worth, err = p.worth(ctx, panels)
	if err != nil || !worth {
		return false, err
	}
	if p.weight, err = mem.Alloc[float32](p.g.Budget, p.s.n, "weights of rows"); err != nil {
		return false, err
	}
	threads := max(p.g.Threads, 1)
	p.buffers = make(chan *mem.Array[byte], threads)
	for range threads {
		a, err := mem.Alloc[byte](p.g.Budget, 2*sweepHops*codesOfStrip, "codes of rows")
		if err != nil {
			return false, err
		}
		p.made = append(p.made, a)
		p.buffers <- a
	}
	if p.codes, err = direct.NewScratch(p.g.Scratch); err != nil {
		return false, fmt.Errorf("scratch file: %w", err)
	}
	return true, nil
}

// worth says whether settled rows would save enough of an exact run of that many panels.
func (p *pilot) worth(ctx context.Context, panels int) (bool, error) {
	takes := float64(p.last+trialPasses) + settledPasses*float64(panels)
	if takes > gain*float64(panels*p.last) && panels <= 1 {
		return false, nil
	}
	needed, err := p.g.FindNeeded(ctx, p.last, func(i int64) int {
		if p.all.Has(i) {
			return int(p.s.counts.S[i]) - 1
		}
		return -1
	})
	if err != nil || needed == nil {
		return true, err
	}
	defer needed.Free()
	p.stats.EdgesStreamed += needed.EdgesRead
	passes := float64(p.g.EdgesUntil(needed.Until)) / float64(max(hops.NumEdges(p.g.Source), 1))
	if takes <= gain*float64(panels)*passes {
		return true, nil
	}
	if p.needed, err = mem.Alloc[uint16](p.g.Budget, p.s.n, "last hops of rows"); err != nil {
		return false, err
	}
	hops.AsLasts(needed.Until)(0, p.needed.S)
	return false, nil
}

// end releases what trials do not need.
func (p *pilot) end() {
	if p.s != nil {
		p.s.Free()
		p.s = nil
	}
	p.weight.Free()
	p.weight = nil
}

func (p *pilot) free() {
	p.end()
	for _, a := range p.made {
		a.Free()
	}
	if p.codes != nil {
		_ = p.codes.Close()
	}
}

// run makes all hops.
func (p *pilot) run(ctx context.Context, x hops.Rows) error {
	s := p.s
	var mu sync.Mutex
	var failed error
	hop := 0
	add := func(first int64, rows []float32) {
		if err := s.add(hop, first, rows); err != nil {
			mu.Lock()
			failed = errors.Join(failed, err)
			mu.Unlock()
		}
	}
	if err := s.begin(ctx, x, func(first int64, rows []float32) {
		add(first, rows)
		p.weigh(first, rows)
	}); err != nil || failed != nil {
		return errors.Join(err, failed)
	}
	p.finishWeights()
	walk := s.streams.Walk(s.rows, 0, nil)
	walk.Watch = p.watch
	meter := progress.Start(ctx, "choosing", int64(p.last), "hops")
	defer meter.Done()
	for hop < p.last {
		hop++
		if _, err := walk.Next(ctx, p.last-hop+1, add); err != nil || failed != nil {
			return errors.Join(err, failed)
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		meter.Add(1)
	}
	p.stats.Add(walk.Stats)
	return nil
}

// weigh finds the weights of rows from their hop 0. The length of an output row is estimated
// as if the later hops were stationary.
func (p *pilot) weigh(first int64, rows []float32) {
	var counted int64
	var largest, heaviest float64
	rule := p.o.Rule
	for k := range len(rows) / packed.PanelColumns {
		i := first + int64(k)
		row := rows[k*packed.PanelColumns:][:Combinations]
		square := 0.0
		for _, z := range row {
			square += float64(float64(z) * float64(z))
		}
		largest = max(largest, square)
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
		counted++
		weight := factor / math.Sqrt(length) / (float64(p.g.Degree[i]) + 1)
		heaviest = max(heaviest, weight)
		p.weight.S[i] = float32(weight)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.rows += counted
	p.largest, p.heaviest = max(p.largest, largest), max(p.heaviest, heaviest)
}

// finishWeights scales the weights so that influences stay below largestFlow.
func (p *pilot) finishWeights() {
	if p.heaviest == 0 {
		p.heaviest = 1
	}
	up := largestFlow / float64(p.last+1) / p.heaviest
	p.unit = 1 / up
	for i, w := range p.weight.S {
		p.weight.S[i] = float32(up * float64(w))
	}
	p.flows = newScale(largestFlow * largestFlow * float64(largestFlow) * largestFlow)
	p.sizes = newScale(4 * p.largest * p.largest)
}

// watch adds to the column of influences what is counted at a hop, and saves the codes of
// rows.
func (p *pilot) watch(hop int) spmv.Settle {
	back := p.last + 1 - hop // the hop of the influences
	w := float32(p.o.Rule.weight(back))
	return func(first int64, _ []spmv.Role, rows []float32, cur func(i int64) []float32) error {
		a := <-p.buffers
		defer func() { p.buffers <- a }()
		n := len(rows) / packed.PanelColumns
		sizes, flows := a.S[:codesOfStrip], a.S[codesOfStrip:2*codesOfStrip]
		counts := p.s.counts.S[first : first+int64(n)]
		weights := p.weight.S[first : first+int64(n)]
		for k := range n {
			row := (*[packed.PanelColumns]float32)(rows[k*packed.PanelColumns:])
			flow := &row[Combinations]
			if int(counts[k]) > back {
				*flow += float32(weights[k] * w)
			}
			v := float64(*flow)
			v *= v
			flows[k] = p.flows.code(v * v)
			sizes[k] = p.sizes.code(errorFourth(row, (*[packed.PanelColumns]float32)(cur(first+int64(k)))))
		}
		size := direct.RoundUp(int64(n))
		if err := p.codes.WriteAt(sizes[:size], p.offset(first, hop, 0)); err != nil {
			return fmt.Errorf("codes of rows: %w", err)
		}
		if err := p.codes.WriteAt(flows[:size], p.offset(first, back, 1)); err != nil {
			return fmt.Errorf("codes of rows: %w", err)
		}
		return nil
	}
}

// errorFourth is the fourth power of the geometric mean of ‖now‖ and ‖now − ρ·then‖, where
// ρ = min(1, ‖now‖ / ‖then‖).
func errorFourth(now, then *[packed.PanelColumns]float32) float64 {
	var aa, bb, ab float64
	for c, x := range now[:Combinations] {
		a, b := float64(x), float64(then[c])
		aa += float64(a * a)
		bb += float64(b * b)
		ab += float64(a * b)
	}
	if bb == 0 {
		return float64(aa * aa)
	}
	rate := min(1, math.Sqrt(aa/bb))
	step := aa + float64(float64(rate*rate)*bb) - float64(2*rate*ab)
	return float64(max(step, 0) * aa)
}

// offset is where the codes of a strip at a hop are: of sizes if part is 0, of flows if it is 1.
func (p *pilot) offset(first int64, hop, part int) int64 {
	return ((first>>packed.StripShift*2+int64(part))*int64(p.last) + int64(hop) - 1) * codesOfStrip
}

// sweep shows the codes of all rows at all hops. For the rows of a strip, hops are in ascending
// order. Calls at the same time are for different strips and threads.
func (p *pilot) sweep(visit func(thread int, first int64, hop int, sizes, flows []byte)) error {
	n := p.g.Source.NumNodes()
	var next atomic.Int64
	errs := make([]error, max(p.g.Threads, 1))
	var wg sync.WaitGroup
	for t := range errs {
		wg.Go(func() {
			a := <-p.buffers
			defer func() { p.buffers <- a }()
			for errs[t] == nil {
				first := (next.Add(1) - 1) << packed.StripShift
				if first >= n {
					return
				}
				rows := min(n-first, packed.StripRows)
				for hop := 1; hop <= p.last; hop += sweepHops {
					count := min(p.last+1-hop, sweepHops)
					size := count * codesOfStrip
					sizes, flows := a.S[:size], a.S[size:2*size]
					if err := errors.Join(p.codes.ReadAt(sizes, p.offset(first, hop, 0)), p.codes.ReadAt(flows, p.offset(first, hop, 1))); err != nil {
						errs[t] = fmt.Errorf("codes of rows: %w", err)
						return
					}
					for k := range count {
						visit(t, first, hop+k, sizes[k*codesOfStrip:][:rows], flows[k*codesOfStrip:][:rows])
					}
				}
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

// mostLimit is the largest sum of two codes.
const mostLimit = 2 * math.MaxUint8

// bounds gives for each limit the sum of d̃ v e of all that is not above it, as a mean over the
// rows that are smoothed. All rows are computed at hop 1.
func (p *pilot) bounds() (bounds []float64, err error) {
	counts := make([][mostLimit + 1]int64, max(p.g.Threads, 1))
	if err := p.sweep(func(t int, first int64, hop int, sizes, flows []byte) {
		if hop == 1 {
			return
		}
		degree := p.g.Degree[first:]
		count := &counts[t]
		for k, size := range sizes {
			if flow := flows[k]; size > 0 && flow > 0 {
				count[int(size)+int(flow)] += int64(degree[k]) + 1
			}
		}
	}); err != nil {
		return nil, err
	}
	bounds = make([]float64, mostLimit+1)
	sum := 0.0
	for i := range bounds {
		var n int64
		for t := range counts {
			n += counts[t][i]
		}
		// In the middle of both codes.
		size := math.Exp2(float64(i+p.sizes.base+p.flows.base-2*exponentOfOne+1) / 4)
		sum += float64(float64(n)*size) * p.unit / float64(max(p.rows, 1))
		bounds[i] = sum
	}
	return bounds, nil
}

// choose puts the last hops of rows for a limit.
func (p *pilot) choose(limit int, last []uint16) error {
	return p.sweep(func(_ int, first int64, hop int, sizes, flows []byte) {
		to := last[first:][:len(sizes)]
		if hop == 1 {
			for k := range to {
				to[k] = 1
			}
			return
		}
		for k, size := range sizes {
			if flow := flows[k]; size > 0 && flow > 0 && int(size)+int(flow) > limit {
				to[k] = uint16(hop)
			}
		}
	})
}
