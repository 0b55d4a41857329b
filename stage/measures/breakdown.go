package measures

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"iter"
	"math/bits"
	"slices"

	"ndls/catalog"
	"ndls/estimate"
	"ndls/internal/control"
	"ndls/internal/mem"
	"ndls/plan"
	"ndls/shards"
	"ndls/stage"
	"ndls/train"
)

// confusedClasses is the number of classes with a row and a column of their own in the confusion matrix.
const confusedClasses = 30

// A number encodes the degree and K of a node. The lowest bits hold the range of K, counted from 1, or 0 if there is no K; the others hold
// the number of bits of the degree.
const (
	rangeOfK     = 8
	rangesOfK    = 1 << rangeOfK
	rangesOfBits = 33
)

// numberOfRanges encodes a degree and K. K is -1 if there is none; each range of K has span values.
func numberOfRanges(degree, k, span int64) uint16 {
	return uint16(bits.Len64(uint64(degree))<<rangeOfK) | uint16(min((k+span)/span, rangesOfK-1))
}

// spanOfK returns the number of values of K in a range.
func spanOfK(p plan.Options) int64 { return int64(p.LSI.Kmax)/control.MaxLines + 1 }

// RangesBytes returns the memory for the ranges of this number of rows and for counting this number of classes.
func RangesBytes(rows int64, classes int) int64 {
	return 2*rows + 4096 + breakdownBytes(classes)
}

// breakdownBytes returns the memory of a breakdown that depends on the number of classes.
func breakdownBytes(classes int) int64 { return ConfusedBytes * int64(classes) }

// ConfusedBytes is the memory per class while the classes of the confusion matrix are found.
const ConfusedBytes = 24

// readRanges reads the ranges of the nodes behind some rows. ids yields the input ids of the rows, in order of node; it is nil if each node
// has a row.
func readRanges(ctx context.Context, env *stage.Env, rows int64, ids iter.Seq2[[]int64, error]) (of *mem.Array[uint16], err error) {
	of, err = mem.Alloc[uint16](env.Budget, rows, "ranges of degree and K")
	if err != nil {
		return nil, err
	}
	all := of
	defer func() {
		if err != nil {
			all.Free()
		}
	}()
	degrees := followIDs(ids)
	defer degrees.stop()
	if err = env.Nodes().Read(ctx, shards.NodeID|shards.NodeDegree, func(_ int64, b shards.NodeBatch) {
		for i, id := range b.ID {
			if row, ok := degrees.next(id); ok && row < rows {
				of.S[row] = numberOfRanges(int64(b.Degree[i]), -1, 1)
			}
		}
	}); err != nil {
		return nil, err
	}
	span := spanOfK(env.Plan)
	hops := followIDs(ids)
	defer hops.stop()
	tables := env.Catalog.Entries(catalog.KindLSI)
	if err = shards.VisitLSI(ctx, env.Catalog, tables, env.Nodes().Readers(), func(_ int64, b shards.LSIBatch) {
		for i, id := range b.ID {
			if row, ok := hops.next(id); ok && row < rows {
				of.S[row] |= numberOfRanges(0, int64(b.K[i]), span)
			}
		}
	}); err != nil {
		return nil, err
	}
	return of, errors.Join(degrees.err, hops.err)
}

// Breakdown counts test nodes of the first split that have a label, and how many of them are predicted right: by number of bits of their
// degree, by range of K, and by class and predicted class. Its size does not depend on the graph.
type Breakdown struct {
	Degrees   [rangesOfBits]rightOf                           `json:"degrees"`
	K         [rangesOfK]rightOf                              `json:"k"`
	Confusion [confusedClasses + 1][confusedClasses + 1]int64 `json:"confusion"`
}

// rightOf holds a number of nodes and how many of them are classified right.
type rightOf [2]int64

func (r *rightOf) add(right bool) {
	r[0]++
	if right {
		r[1]++
	}
}

// largestClasses returns the classes with the most nodes; of equals, the first comes first. All other classes are counted together.
func largestClasses(nodes []int64) []int32 {
	order := make([]int32, len(nodes))
	for c := range order {
		order[c] = int32(c)
	}
	slices.SortStableFunc(order, func(a, b int32) int { return cmp.Compare(nodes[b], nodes[a]) })
	return order[:min(len(order), confusedClasses)]
}

// places returns the place of each class in the confusion matrix.
func places(truth *Labelled, classes int) []uint8 {
	nodes := make([]int64, classes)
	split := truth.Split(0)
	for i, label := range truth.Label.S {
		if split[i] == train.Test && label >= 0 {
			nodes[label]++
		}
	}
	place := make([]uint8, classes)
	for c := range place {
		place[c] = confusedClasses
	}
	for at, c := range largestClasses(nodes) {
		place[c] = uint8(at)
	}
	return place
}

// Counter counts predictions into a breakdown.
type Counter struct {
	of    *mem.Array[uint16] // numbers of ranges, by row
	truth *Labelled
	place []uint8 // of a class in the confusion matrix
	// budget has the memory that depends on the number of classes.
	budget *mem.Budget
	Breakdown
}

// NewCounter prepares for counting rows with these ids; ids is nil if each node has a row. The caller frees the counter.
func NewCounter(ctx context.Context, env *stage.Env, truth *Labelled, ids iter.Seq2[[]int64, error]) (*Counter, error) {
	classes := len(env.Summary.Classes)
	of, err := readRanges(ctx, env, int64(len(truth.Label.S)), ids)
	if err != nil {
		return nil, err
	}
	if err := env.Budget.Reserve(breakdownBytes(classes), "classes of the confusion matrix"); err != nil {
		of.Free()
		return nil, err
	}
	return &Counter{of: of, truth: truth, place: places(truth, classes), budget: env.Budget}, nil
}

// Free frees the memory. b may be nil.
func (b *Counter) Free() {
	if b != nil {
		b.of.Free()
		b.budget.Release(breakdownBytes(len(b.place)))
	}
}

// Counts returns the counts of a counter; nil for a nil counter.
func (b *Counter) Counts() *Breakdown {
	if b == nil {
		return nil
	}
	return &b.Breakdown
}

// Add counts rows from row on by their predicted classes.
func (b *Counter) Add(row int64, predicted []int32) {
	split := b.truth.Split(0)[row:]
	for i, label := range b.truth.Label.S[row : row+int64(len(predicted))] {
		if split[i] != train.Test || label < 0 {
			continue
		}
		right := predicted[i] == label
		of := b.of.S[row+int64(i)]
		b.Degrees[of>>rangeOfK].add(right)
		if k := of % rangesOfK; k > 0 {
			b.K[k-1].add(right)
		}
		b.Confusion[b.place[label]][b.place[predicted[i]]]++
	}
}

// AddSoft counts rows from row on by their soft labels.
func (b *Counter) AddSoft(row int64, soft []float32) {
	var one [1]int32
	for classes := len(b.place); len(soft) > 0; row, soft = row+1, soft[classes:] {
		one[0] = train.Argmax(soft[:classes])
		b.Add(row, one[:])
	}
}

// Merge adds the counts of other nodes.
func (b *Breakdown) Merge(o *Breakdown) {
	for i, x := range o.Degrees {
		b.Degrees[i][0] += x[0]
		b.Degrees[i][1] += x[1]
	}
	for i, x := range o.K {
		b.K[i][0] += x[0]
		b.K[i][1] += x[1]
	}
	for i, row := range o.Confusion {
		for j, x := range row {
			b.Confusion[i][j] += x
		}
	}
}

// Report returns the breakdown for the report, or nil if no node was counted. classes holds the test nodes of each class.
func (b *Breakdown) Report(p plan.Options, names []string, classes []train.ClassTally) *control.BreakdownReport {
	r := &control.BreakdownReport{Degrees: []control.RangeRight{}}
	for bits, x := range b.Degrees {
		if x[0] > 0 {
			from, to := stage.PowerRange(bits)
			r.Degrees = append(r.Degrees, control.RangeRight{From: from, To: to, Nodes: x[0], Right: x[1]})
		}
	}
	if len(r.Degrees) == 0 {
		return nil
	}
	span := spanOfK(p)
	for i, x := range b.K {
		if x[0] > 0 {
			r.K = append(r.K, control.RangeRight{From: int64(i) * span, To: int64(i+1)*span - 1, Nodes: x[0], Right: x[1]})
		}
	}
	nodes := make([]int64, len(names))
	for c, x := range classes {
		nodes[c] = x.Rows
	}
	largest := largestClasses(nodes)
	c := &r.Confusion
	c.Classes, c.Others = []string{}, len(names)-len(largest)
	places := len(largest)
	for _, class := range largest {
		c.Classes = append(c.Classes, names[class])
	}
	if c.Others > 0 {
		places = confusedClasses + 1
	}
	for i := range places {
		c.Counts = append(c.Counts, slices.Clone(b.Confusion[i][:places]))
	}
	return r
}

// readBreakdown decodes the breakdown of a tally and adds it to sum, unless sum is nil.
func readBreakdown(d *json.Decoder, sum *Breakdown) error {
	var b Breakdown
	if err := d.Decode(&b); err != nil || sum == nil {
		return err
	}
	sum.Merge(&b)
	return nil
}

// CostOfCounter returns the memory for breaking down the soft labels of this number of rows, and adds what is read. It is 0 if labels are
// smoothed, because then the predictions are broken down elsewhere.
func CostOfCounter(s *estimate.Sheet, rows int64) int64 {
	if stage.SmoothsLabels(s.Plan) {
		return 0
	}
	s.ReadNodes(1)
	s.ReadK()
	return RangesBytes(rows, s.Classes)
}
