package depth

import (
	"context"
	"fmt"
	"math/bits"
	"slices"
	"strings"

	"ndls/catalog"
	"ndls/internal/control"
	"ndls/internal/rng"
	"ndls/internal/seal"
	"ndls/lsi"
	"ndls/shards"
	"ndls/smooth"
	"ndls/stage"
)

// sampledNodes is the number of nodes whose distances the report shows. One is drawn from each of this many equal ranges of the nodes,
// which are in descending order of degree.
const sampledNodes = 8

// sampleKey separates the random numbers of the sample from others of the same seed.
const sampleKey = 0x5a3b1e

// sample draws the sampled nodes and returns those in [lo, hi), counted from lo, in ascending order.
func (env lsiRun) sample(lo, hi int64) (rows []int64) {
	n := env.Summary.Nodes
	for i := range int64(sampledNodes) {
		first, end := n*i/sampledNodes, n*(i+1)/sampledNodes
		if first == end {
			continue
		}
		node := first + int64(rng.Below(rng.Hash(uint64(env.Plan.Seed), sampleKey, uint64(i)), uint64(end-first)))
		if lo <= node && node < hi {
			rows = append(rows, node-lo)
		}
	}
	return rows
}

// sampledRow holds a node of the sample and its distances by hop.
type sampledRow struct {
	Node     int64     `json:"node"`
	Distance []float64 `json:"distance"`
}

// sampled holds the sampled nodes of some rows, and the number of nodes among these rows of which K is uncertain (lsi.Table.Uncertain).
type sampled struct {
	Nodes     []sampledRow `json:"nodes"`
	Uncertain int64        `json:"uncertain"`
}

// add adds those of other rows.
func (s *sampled) add(t sampled) {
	s.Nodes, s.Uncertain = append(s.Nodes, t.Nodes...), s.Uncertain+t.Uncertain
}

// sampledOf returns the sampled nodes in [lo, hi), of which the table has K.
func (env lsiRun) sampledOf(table *lsi.Table, lo, hi int64) sampled {
	list := sampled{Nodes: []sampledRow{}, Uncertain: table.CountUncertain()}
	for number, row := range env.sample(lo, hi) {
		list.Nodes = append(list.Nodes, sampledRow{lo + row, table.Distances()[number]})
	}
	return list
}

// fileOfSample describes the file with the distances of the sampled nodes.
func fileOfSample(list sampled) catalog.Entry {
	return catalog.Describe(catalog.KindLSISample, lsiFolder+"sample.json").Counting(int64(len(list.Nodes)))
}

// readSample reads the sample.
func (env lsiRun) readSample(ctx context.Context) (all sampled, err error) {
	for _, e := range env.Catalog.Entries(catalog.KindLSISample) {
		err = stage.ReadJSON(ctx, env.Catalog, e.Path, &all)
	}
	return all, err
}

// report returns the distribution of K, for all nodes and by degree.
func (env lsiRun) report(ctx context.Context) (*control.LSIReport, error) {
	s, o := env.Summary, LSIOptions(env.Plan, env.Summary)
	labelled, err := smooth.NewTargets(env.Budget, s.Nodes)
	if err != nil {
		return nil, err
	}
	defer labelled.Free()
	valid, err := smooth.NewTargets(env.Budget, s.Nodes)
	if err != nil {
		return nil, err
	}
	defer valid.Free()
	if s.Labelled > 0 {
		if err := env.Nodes().Labelled(ctx, labelled, valid); err != nil {
			return nil, err
		}
	}
	r := &control.LSIReport{
		Mode: o.Mode, Probes: o.Probes, Directions: o.Directions, R: o.R, Epsilon: o.Epsilon, Kmax: o.Kmax, Stationary: o.Stationary,
	}
	found, err := env.readSample(ctx)
	if err != nil {
		return nil, err
	}
	sample := found.Nodes
	r.Uncertain = found.Uncertain
	degrees, err := env.degreeRanges(ctx, sample, r)
	if err != nil {
		return nil, err
	}
	most := int64(o.Kmax)
	held := 8 * (most + 1) * int64(len(degrees))
	if err := env.Budget.Reserve(held, "K by degree"); err != nil {
		return nil, err
	}
	defer env.Budget.Release(held)
	counts := make([][]int64, len(degrees))
	for i := range counts {
		counts[i] = make([]int64, most+1)
	}
	var nodes, capped int64
	at, bad := 0, false
	err = Tables(env).readLSI(ctx, func(node int64, k int32, isCapped bool) {
		if k < 0 || int64(k) > most || node >= s.Nodes {
			bad = true
			return
		}
		for node >= degrees[at].end {
			at++
		}
		counts[at][k]++
		nodes++
		if labelled.Has(node) {
			r.LabelledMax = max(r.LabelledMax, int(k))
		}
		if valid.Has(node) {
			r.ValidationMax = max(r.ValidationMax, int(k))
		}
		if isCapped {
			capped++
		}
		if len(sample) > 0 && sample[0].Node == node {
			r.Sample[len(r.Sample)-len(sample)].K = int(k)
			sample = sample[1:]
		}
	})
	if err != nil {
		return nil, err
	}
	if bad {
		return nil, fmt.Errorf("the K table holds values above --kmax %d, or has more rows than the graph has nodes: %w", o.Kmax, seal.ErrCorrupt)
	}
	for i, d := range degrees {
		r.ByDegree = append(r.ByDegree, spreadOfK(d, counts[i]))
	}
	slices.Reverse(r.ByDegree)
	for _, c := range counts[1:] {
		for k, n := range c {
			counts[0][k] += n
		}
	}
	all := spreadOfK(degreeRange{}, counts[0])
	for k, c := range counts[0] {
		if c > 0 {
			r.Histogram = append(r.Histogram, [2]int64{int64(k), c})
			r.Max = k
		}
	}
	r.Mean = all.Mean
	r.CappedShare = float64(capped) / float64(nodes)
	return r, nil
}

// degreeRange is a range of degrees. Its nodes end before end and begin at the end of the preceding range.
type degreeRange struct{ from, to, end int64 }

// degreeRanges lists the ranges of degrees that occur, each from a power of two to below the next, in descending order like the nodes. It
// also adds the sampled nodes to r.
func (env lsiRun) degreeRanges(ctx context.Context, sample []sampledRow, r *control.LSIReport) (list []degreeRange, err error) {
	last := -1
	var numbers []int64
	err = env.Nodes().Read(ctx, shards.NodeID|shards.NodeDegree, func(first int64, b shards.NodeBatch) {
		for i, d := range b.Degree {
			if power := bits.Len32(uint32(d)); power != last {
				last = power
				from, to := stage.PowerRange(power)
				list = append(list, degreeRange{from: from, to: to})
			}
			list[len(list)-1].end = first + int64(i) + 1
		}
		for at := len(r.Sample); at < len(sample) && sample[at].Node < first+int64(len(b.ID)); at++ {
			row := sample[at].Node - first
			numbers = append(numbers, b.ID[row])
			r.Sample = append(r.Sample, control.SampledNode{Degree: int64(b.Degree[row]), Distance: sample[at].Distance})
		}
	})
	if err != nil {
		return nil, err
	}
	for i, number := range numbers {
		r.Sample[i].Node = strings.Trim(env.Nodes().Quote(ctx, sample[i].Node, number), `"`)
	}
	return list, nil
}

// spreadOfK returns the distribution of K in a range of degrees; count holds the number of nodes for each K.
func spreadOfK(d degreeRange, count []int64) control.DegreeK {
	x := control.DegreeK{From: d.from, To: d.to}
	for k, n := range count {
		x.Nodes += n
		x.Mean += float64(k) * float64(n)
	}
	x.Mean /= float64(max(x.Nodes, 1))
	upTo := func(tenths int64) int {
		so := int64(0)
		for k, n := range count {
			if so += n; 10*so >= tenths*x.Nodes {
				return k
			}
		}
		return 0
	}
	x.Tenth, x.Median, x.Ninetieth = upTo(1), upTo(5), upTo(9)
	return x
}
