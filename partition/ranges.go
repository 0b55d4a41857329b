package partition

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"ndls/dataset"
	"ndls/internal/extsort"
	"ndls/internal/mem"
	"ndls/internal/packed"
	"ndls/steps"
)

// Several workers number the nodes by ranges of input ids, those of the step Gather. The step Order adds up the numbers of nodes per degree
// of the ranges, so that each range gets the first node of each of its degrees, and joins the components that ranges found. It reads the
// labels, and otherwise data whose size depends on the degrees and the roots. Rank gives the ids of a range their nodes, in order of node.
// Components numbers the components. Nodes writes parts of the node table, and a piece of Rows joins them.

// Kinds of files that the step Order leaves beside order.json.
const (
	// orderFirsts has, for each piece of Gather, the first node of each of its degrees in ascending order of degree: pairs of the first
	// slice of the piece and the complement of the node.
	orderFirsts = Order + "-firsts"
	// orderRoots maps each root that is not the first node of its component to that node.
	orderRoots = Order + "-roots"
	// orderLabels has the label of each labelled id, and orderSplits the split of each id in one: piece k is split number k.
	orderLabels = Order + "-labels"
	orderSplits = Order + "-splits"
)

// ordering holds the steps Order, Rank and Components of several workers: they number nodes and components.
type ordering struct{ *job }

// orderRanges executes the step Order for several workers.
func (j ordering) orderRanges(ctx context.Context) error {
	counts, err := j.countsOfInput(ctx)
	if err != nil {
		return err
	}
	ranges, err := j.gathered(ctx, allSlices)
	if err != nil {
		return err
	}
	files := j.cat.Batch()
	defer files.Abort()
	save := func(kind string, p steps.Piece, most int64, all visits[uint64]) error {
		return j.runFiles().add(ctx, files, kind, p, most, all, [2]int64{})
	}
	ends, classes, err := j.addClasses(ctx, ranges)
	if err != nil {
		return err
	}
	defer ends.Free()
	n := int64(0)
	for _, r := range ranges {
		n += r.nodes
	}
	if n == 0 {
		return j.noNodes()
	}
	if err := j.checkDirected(n); err != nil {
		return err
	}
	j.ordered = ordered{
		Rows: counts[0], Loops: counts[1], Dropped: j.dropped.Load(),
		Nodes: n, Stated: j.info.NumNodes >= 0, Intervals: j.intervalsOf(n), Directed: j.info.Directed, Weighted: j.info.Weighted,
		NoShards: j.o.NoShards,
		Groups:   int((n + j.named.GroupRows() - 1) / j.named.GroupRows()), Lonely: n,
	}
	if len(ends.S) > 1 {
		j.ordered.Lonely -= int64(ends.S[1])
	}
	j.ordered.cutEdges(j.intervalRows(), ends.S)
	if err := save(orderFirsts, steps.Unit(0), classes, j.firstNodes(ctx, ranges, ends.S)); err != nil {
		return err
	}
	if err := j.joinRanges(ctx, save); err != nil {
		return err
	}
	if err := j.readRest(ctx, save); err != nil {
		return err
	}
	j.nodeTable().warnOfLonelyNodes(n, j.ordered.Lonely)
	if err := j.addOrdered(ctx, files); err != nil {
		return err
	}
	return files.Commit(ctx)
}

// readRest reads what the dataset has beside edges.
func (j ordering) readRest(ctx context.Context, save saver) (err error) {
	if err := j.numbering().load(ctx); err != nil {
		return err
	}
	defer j.numbering().free()
	if j.wantFeatures() {
		j.ordered.Panels = packed.Panels(j.info.NumFeatures)
		j.ordered.CutsFeatures = j.info.CutsFeatures
		if err := j.tiling().chooseNorm(ctx); err != nil {
			return err
		}
	}
	return j.saveKnown(ctx, save)
}

// saver writes one file of step Order with the numbers that all yields, at most `most` of them.
type saver func(kind string, p steps.Piece, most int64, all visits[uint64]) error

// countsOfInput sets j.dropped and returns the number of rows of the edge list and of self-loops.
func (j ordering) countsOfInput(ctx context.Context) (counts [2]int64, err error) {
	gathered, err := firstNotes(ctx, j.runFiles(), Gather)
	if err != nil {
		return counts, err
	}
	j.dropped.Store(gathered[0])
	if j.info.Weighted {
		return firstNotes(ctx, catalogKeys[extsort.Record](j), Merge)
	}
	return firstNotes(ctx, j.runFiles(), Merge)
}

// firstNotes returns the notes of the first file that a step left.
func firstNotes[T extsort.Item](ctx context.Context, keys catalogKeys[T], step string) (notes [2]int64, err error) {
	first := keys.have(step)
	if len(first) == 0 {
		first = []steps.Piece{allSlices} // open reports what is missing
	}
	files, err := keys.open(ctx, step, first[0], false)
	if err != nil {
		return notes, err
	}
	defer files.Close()
	return files[0].Notes(), nil
}

// gatheredRange describes a range of the step Gather.
type gatheredRange struct {
	idRange
	classes int64 // different degrees of its nodes
	nodes   int64
}

// gathered lists the ranges of some pieces in order; it does not count nodes.
func (j ordering) gathered(ctx context.Context, p steps.Piece) (ranges []gatheredRange, err error) {
	files, err := j.runFiles().open(ctx, Gather+tallyClasses, p, false)
	if err != nil {
		return nil, err
	}
	defer files.Close()
	for _, e := range runs(j.cat, Gather+tallyClasses) {
		if q := pieceOf(e); p.First <= q.First && q.Last <= p.Last {
			f := files[len(ranges)]
			ranges = append(ranges, gatheredRange{idRange: idRange{q, f.Notes()[0], f.Notes()[1]}, classes: f.Keys()})
		}
	}
	return ranges, nil
}

// eachClass visits the degrees of a range in ascending order, each with its number of nodes.
func (j ordering) eachClass(ctx context.Context, r gatheredRange, visit func(degree, nodes uint32)) error {
	files, err := j.runFiles().open(ctx, Gather+tallyClasses, r.piece, false)
	if err != nil {
		return err
	}
	defer files.Close()
	return files.InOrder(ctx, j.o.Threads, func(batch []uint64) error {
		for _, key := range batch {
			visit(pairOfKey(key))
		}
		return nil
	})
}

// addClasses adds up the degrees of all ranges and counts the nodes of each range. Nodes of degree d end before ends[d]. classes is the sum
// over the ranges of their numbers of different degrees.
func (j ordering) addClasses(ctx context.Context, ranges []gatheredRange) (ends *mem.Array[uint32], classes int64, err error) {
	largest := uint32(0)
	for i := range ranges {
		r := &ranges[i]
		classes += r.classes
		if err := j.eachClass(ctx, *r, func(degree, nodes uint32) {
			largest = max(largest, degree)
			r.nodes += int64(nodes)
		}); err != nil {
			return nil, 0, err
		}
	}
	if ends, err = mem.Alloc[uint32](j.o.Budget, int64(largest)+1, "degree counts"); err != nil {
		return nil, 0, err
	}
	for _, r := range ranges {
		if err := j.eachClass(ctx, r, func(degree, nodes uint32) { ends.S[degree] += nodes }); err != nil {
			ends.Free()
			return nil, 0, err
		}
	}
	at := uint32(0)
	for degree := int(largest); degree >= 0; degree-- {
		at += ends.S[degree]
		ends.S[degree] = at
	}
	return ends, classes, nil
}

// firstNodes visits the numbers of orderFirsts. It destroys ends.
func (j ordering) firstNodes(ctx context.Context, ranges []gatheredRange, ends []uint32) visits[uint64] {
	// Nodes of a degree begin where those of the next higher degree end.
	next := ends
	copy(next, ends[1:])
	next[len(next)-1] = 0
	return batched(func(add func(key uint64) error) (err error) {
		for _, r := range ranges {
			if failed := j.eachClass(ctx, r, func(degree, nodes uint32) {
				if err == nil {
					err = add(pairKey(uint32(r.piece.First), ^next[degree]))
				}
				next[degree] += nodes
			}); failed != nil {
				return failed
			}
		}
		return err
	})
}

// joinRanges joins the components of ranges.
func (j ordering) joinRanges(ctx context.Context, save saver) error {
	all := idRange{hi: 1 << 32}
	links := int64(0)
	for _, e := range runs(j.cat, Gather+tallyLinks) {
		links += e.Rows
	}
	defer j.counting().forgetIDs()
	if err := j.counting().noteIDsOf(links); err != nil {
		return err
	}
	if !j.ids.all {
		if err := j.counting().eachTally(ctx, Gather+tallyLinks, all, func(id, root uint32) error {
			if err := j.ids.add(id); err != nil {
				return err
			}
			return j.ids.add(root)
		}); err != nil {
			return err
		}
	}
	return j.counting().commitTally(func(t tally) error {
		if err := j.counting().eachTally(ctx, Gather+tallyLinks, all, func(id, root uint32) error {
			u, _ := j.ids.rank(root)
			v, _ := j.ids.rank(id)
			t.components.join(u, v)
			return nil
		}); err != nil {
			return err
		}
		return save(orderRoots, steps.Unit(0), j.ids.n, j.counting().pairsOfIDs(func(rank, id uint32) (uint32, bool) {
			t.degrees.S[rank] = id // a root precedes the others
			root := t.components.root(rank)
			return t.degrees.S[root], root != rank
		}))
	})
}

// saveKnown saves the labels and the splits of the nodes that have any, and sets the warnings of the first split.
func (j ordering) saveKnown(ctx context.Context, save saver) error {
	k := knownNodes{ordering: j}
	defer k.free()
	if err := k.saveLabels(ctx, save); err != nil {
		return err
	}
	for number := range max(j.o.Splits, 1) {
		if err := k.saveSplit(ctx, number, save); err != nil {
			if number > 0 {
				err = fmt.Errorf("--splits %d: %w", j.o.Splits, err)
			}
			return err
		}
	}
	return nil
}

// draws reports whether splits are drawn among the labelled nodes.
func (j ordering) draws() bool { return j.members == nil && (j.split != nil || j.o.LabelsPerClass > 0) }

// saveLabels saves the labels, and keeps them in memory if splits are drawn.
func (k *knownNodes) saveLabels(ctx context.Context, save saver) error {
	p := steps.Unit(0)
	if !k.draws() {
		return k.saveSorted(ctx, orderLabels, p, k.labelRows(ctx), dataset.LabelRows, save)
	}
	labels, err := k.sortKnown(ctx, k.labelRows(ctx))
	if err != nil {
		return err
	}
	if err := k.alloc(labels.Keys()); err != nil {
		labels.Close()
		return err
	}
	once := k.eachOnce(ctx, dataset.LabelRows, labels.InOrder)
	return save(orderLabels, p, labels.Keys(), func(visit func([]uint64) error) error {
		return once(func(batch []uint64) error {
			for i, key := range batch {
				id, label := pairOfKey(key)
				k.ids.S[k.n+i], k.labels.S[k.n+i] = id, int32(label)
			}
			k.n += len(batch)
			return visit(batch)
		})
	})
}

// errUnsorted ends reading rows that are not in order of their ids.
var errUnsorted = errors.New("rows are not in the order of their ids")

// saveSorted saves rows, which are mostly in order of their ids; otherwise it sorts them.
func (j ordering) saveSorted(ctx context.Context, kind string, p steps.Piece, rows knownRows, of dataset.Part, save saver) error {
	err := save(kind, p, j.ordered.Nodes, j.eachOnce(ctx, of, func(visit func([]uint64) error) error {
		next := uint64(0) // smallest key that may follow
		return batched(func(add func(key uint64) error) error {
			return rows(func(id, n uint32) error {
				key := pairKey(id, n)
				if key < next {
					return errUnsorted
				}
				next = key + 1
				return add(key)
			})
		})(visit)
	}))
	if !errors.Is(err, errUnsorted) {
		return err
	}
	s, err := j.sortKnown(ctx, rows)
	if err != nil {
		return err
	}
	return save(kind, p, s.Keys(), j.eachOnce(ctx, of, s.InOrder))
}

// knownRows adds pairs of an id and a number, as the dataset yields them.
type knownRows func(add func(id, n uint32) error) error

// sortKnown sorts the pairs of ids and numbers that each adds.
func (j ordering) sortKnown(ctx context.Context, each knownRows) (*extsort.Sorter[uint64], error) {
	s, err := extsort.NewSorter[uint64](ctx, j.o.Budget, j.scratch,
		extsort.Options{Want: min(sortedKnown, j.ordered.Nodes), Threads: j.o.Threads, Leave: math.MaxInt64})
	if err != nil {
		return nil, err
	}
	err = batched(func(add func(key uint64) error) error {
		return each(func(id, n uint32) error { return add(pairKey(id, n)) })
	})(s.Add)
	if err == nil {
		err = s.Finish()
	}
	if err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// labelRows yields the labels.
func (j ordering) labelRows(ctx context.Context) knownRows {
	return func(add func(id, n uint32) error) error {
		if !j.info.HasLabels {
			return nil
		}
		return j.eachLabel(ctx, func(row int64, id uint32, label int32) error {
			if err := j.checkStated(id, "label", row); err != nil {
				return err
			}
			if label < 0 || int(label) >= len(j.info.Classes) {
				return j.noClass(row, id, label)
			}
			return add(id, uint32(label))
		})
	}
}

// checkStated refuses the id of a row that is not among the stated ids.
func (j ordering) checkStated(id uint32, what string, row int64) error {
	if n := j.info.NumNodes; n >= 0 && int64(id) >= n {
		return j.noNode(id, what, row, n)
	}
	return nil
}

// knownNodes holds the labelled nodes, in order of their ids, if splits are drawn among them; otherwise it is empty.
type knownNodes struct {
	ordering
	ids    *mem.Array[uint32]
	labels *mem.Array[int32]
	splits *mem.Array[uint8]
	n      int
}

func (k *knownNodes) alloc(n int64) (err error) {
	if k.ids, err = mem.Alloc[uint32](k.o.Budget, n, "input ids"); err != nil {
		return err
	}
	if k.labels, err = mem.Alloc[int32](k.o.Budget, n, "labels"); err != nil {
		return err
	}
	k.splits, err = mem.Alloc[uint8](k.o.Budget, n, "splits")
	return err
}

func (k *knownNodes) free() {
	k.ids.Free()
	k.labels.Free()
	k.splits.Free()
}

// saveSplit saves a split. It refuses a node that is in two parts of it.
func (k *knownNodes) saveSplit(ctx context.Context, number int, save saver) error {
	p := steps.Unit(number)
	var (
		ids    []uint32
		labels []int32
		splits []uint8
	)
	if k.draws() {
		ids, labels, splits = k.ids.S[:k.n], k.labels.S[:k.n], k.splits.S[:k.n]
	}
	drawn := func(add func(key uint64) error) error {
		for i, split := range splits {
			if dataset.Split(split) != dataset.NoSplit {
				if err := add(pairKey(ids[i], uint32(split))); err != nil {
					return err
				}
			}
		}
		return nil
	}
	clear(splits)
	if k.members != nil {
		return save(orderSplits, p, k.members.ids.n, batched(func(add func(key uint64) error) error {
			return k.members.ids.each(func(_, id uint32) error {
				if split := k.members.splitOf(id); split != dataset.NoSplit {
					return add(pairKey(id, uint32(split)))
				}
				return nil
			})
		}))
	}
	if k.split != nil {
		warnings, err := drawSplit(k.job, number, ids, labels, splits)
		if err != nil {
			return err
		}
		k.nodeTable().warnOfSplit(number, warnings)
		return save(orderSplits, p, int64(k.n), batched(drawn))
	}
	published := number
	if k.o.LabelsPerClass > 0 {
		published = 0
	}
	if k.o.LabelsPerClass == 0 {
		return k.saveSorted(ctx, orderSplits, p, k.splitRows(ctx, published), dataset.SplitRows, save)
	}
	s, err := k.sortKnown(ctx, k.splitRows(ctx, published))
	if err != nil {
		return err
	}
	once := k.eachOnce(ctx, dataset.SplitRows, s.InOrder)
	// The training nodes are drawn among the labelled nodes. Others that validate or test stay in their split.
	others, err := k.sortKnown(ctx, func(add func(id, n uint32) error) error {
		i := 0
		return once(func(batch []uint64) error {
			for _, key := range batch {
				id, split := pairOfKey(key)
				for i < len(ids) && ids[i] < id {
					i++
				}
				if i < len(ids) && ids[i] == id {
					splits[i] = uint8(split)
				} else if dataset.Split(split) != dataset.Train {
					if err := add(id, split); err != nil {
						return err
					}
				}
			}
			return nil
		})
	})
	if err != nil {
		return err
	}
	defer others.Close()
	warnings, err := drawTraining(k.o.Budget, k.o.Seed+uint64(number), int64(k.o.LabelsPerClass), k.info.Classes, ids, labels, splits)
	if err != nil {
		return err
	}
	k.nodeTable().warnOfSplit(number, warnings)
	// others has few nodes, usually none.
	s, err = k.sortKnown(ctx, func(add func(id, n uint32) error) error {
		if err := others.InOrder(func(batch []uint64) error {
			for _, key := range batch {
				if err := add(pairOfKey(key)); err != nil {
					return err
				}
			}
			return nil
		}); err != nil {
			return err
		}
		return drawn(func(key uint64) error { return add(pairOfKey(key)) })
	})
	if err != nil {
		return err
	}
	return save(orderSplits, p, s.Keys(), s.InOrder)
}

// splitRows yields the rows of a published split, if there is one.
func (j ordering) splitRows(ctx context.Context, number int) knownRows {
	return func(add func(id, n uint32) error) error {
		if !j.info.HasSplits {
			return nil
		}
		return j.eachSplit(ctx, number, func(row int64, id uint32, split dataset.Split) error {
			if err := j.checkStated(id, "split", row); err != nil || split == dataset.NoSplit {
				return err
			}
			return add(id, uint32(split))
		})
	}
}

// eachOnce visits labels or splits in order of ids, and refuses a node that has two.
func (j ordering) eachOnce(ctx context.Context, rows dataset.Part, all visits[uint64]) visits[uint64] {
	return func(visit func([]uint64) error) error {
		last := int64(-1)
		return all(func(batch []uint64) error {
			for _, key := range batch {
				id, _ := pairOfKey(key)
				if int64(id) == last {
					return dataset.Repeated(ctx, j.ds, rows, id)
				}
				last = int64(id)
			}
			return visit(batch)
		})
	}
}

// replaceBy replaces each of the numbers for which a file of pairs has another by that one. Each slice of space is at least as long as
// numbers.
func (j ordering) replaceBy(ctx context.Context, kind string, numbers []uint32, space [2][]uint32) error {
	distinct := distinctOf(numbers, space[0])
	to := space[1][:len(distinct)]
	copy(to, distinct)
	files, err := j.runFiles().open(ctx, kind, steps.Unit(0), false)
	if err != nil {
		return err
	}
	defer files.Close()
	at := 0
	if err := files.InOrder(ctx, j.o.Threads, func(batch []uint64) error {
		for _, key := range batch {
			from, by := pairOfKey(key)
			for at < len(distinct) && distinct[at] < from {
				at++
			}
			if at < len(distinct) && distinct[at] == from {
				to[at] = by
			}
		}
		return nil
	}); err != nil {
		return err
	}
	if len(distinct) == 0 {
		return nil
	}
	last, by := distinct[0], to[0]
	for i, x := range numbers {
		if x != last {
			at, _ := slices.BinarySearch(distinct, x)
			last, by = x, to[at]
		}
		numbers[i] = by
	}
	return nil
}

// distinctOf returns the different numbers in ascending order, in space, which is at least as long.
func distinctOf(numbers, space []uint32) []uint32 {
	n, last := 0, uint64(math.MaxUint64)
	for _, x := range numbers {
		if uint64(x) != last { // most nodes belong to the same component
			space[n], last = x, uint64(x)
			n++
		}
	}
	slices.Sort(space[:n])
	return slices.Compact(space[:n])
}

func (j *job) ordering() ordering { return ordering{j} }
