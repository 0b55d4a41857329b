package partition

import (
	"cmp"
	"container/heap"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"ndls/dataset"
	"ndls/internal/failure"
	"ndls/internal/mem"
	"ndls/internal/rng"
)

// ErrSplit reports a random split that takes all nodes for training.
var ErrSplit = failure.Of(failure.ErrOption, "the split takes all nodes for training")

// drawnSplit draws nodes for training and validation; the other labelled nodes test.
type drawnSplit interface {
	// draw sets the splits of all nodes. It prefers the smallest rng.Hash(seed, input id).
	draw(b *mem.Budget, seed uint64, classes int, ids []uint32, labels []int32, splits []uint8) error
	// check refuses a split of classes of these sizes that leaves no node to train, or none to validate or test. It warns of classes
	// without such nodes.
	check(names []string, size []int64) (warnings []string, err error)
	// counts returns the number of training and validation nodes among the labelled nodes, if every class is large enough.
	counts(classes int, labelled int64) (train, valid int64)
	fmt.Stringer
}

// randomSplit draws a number of nodes of each class.
type randomSplit struct{ train, valid int64 }

// maxDraw bounds the numbers of a random split.
const maxDraw = 1 << 32

// parseSplit parses Options.Split; nil stands for the published split.
func parseSplit(s string) (drawnSplit, error) {
	if s == "" {
		return nil, nil
	}
	if shares, ok := strings.CutPrefix(s, "share:"); ok {
		return parseShares(s, shares)
	}
	numbers, random := strings.CutPrefix(s, "random:")
	train, valid, two := strings.Cut(numbers, ",")
	t, err1 := strconv.ParseInt(train, 10, 64)
	v, err2 := strconv.ParseInt(valid, 10, 64)
	if !random || !two || err1 != nil || err2 != nil || t < 1 || v < 0 || t > maxDraw || v > maxDraw {
		return nil, fmt.Errorf("split %q: write random:T,V, for example random:20,30 for 20 training and 30 validation nodes of each class, or share:T,V, for example share:0.6,0.2 for 60 %% and 20 %% of the labelled nodes", s)
	}
	return &randomSplit{t, v}, nil
}

// Drawn returns the number of training and validation nodes of a drawn split, such as random:20,30, among the labelled nodes, if every
// class is large enough.
func Drawn(split string, classes int, labelled int64) (train, valid int64, err error) {
	d, err := parseSplit(split)
	if err != nil || d == nil {
		return 0, 0, err
	}
	train, valid = d.counts(classes, labelled)
	return train, valid, nil
}

func (r *randomSplit) counts(classes int, _ int64) (train, valid int64) {
	return r.train * int64(classes), r.valid * int64(classes)
}

// ticket is a node's place in the draw of its class.
type ticket struct {
	hash     uint64
	id, node uint32
}

func newTicket(seed uint64, id uint32, node int) ticket {
	return ticket{rng.Hash(seed, uint64(id)), id, uint32(node)}
}

func (t ticket) compare(o ticket) int {
	return cmp.Or(cmp.Compare(t.hash, o.hash), cmp.Compare(t.id, o.id))
}

// draw implements drawnSplit: the nodes of each class with the smallest hashes train, and the next ones validate.
func (r *randomSplit) draw(b *mem.Budget, seed uint64, classes int, ids []uint32, labels []int32, splits []uint8) error {
	for node, label := range labels {
		if label != noLabel {
			splits[node] = uint8(dataset.Test)
		}
	}
	return eachWinner(b, seed, classes, r.train+r.valid, ids, labels, func(node, place int64) {
		if place < r.train {
			splits[node] = uint8(dataset.Train)
		} else {
			splits[node] = uint8(dataset.Valid)
		}
	})
}

// eachWinner visits, class by class, the labelled nodes with the smallest hashes, at most `most` per class, each with its place among them.
func eachWinner(b *mem.Budget, seed uint64, classes int, most int64, ids []uint32, labels []int32, visit func(node, place int64)) error {
	size := classSizes(labels, classes)
	total := int64(0)
	for c := range size {
		size[c] = min(size[c], most)
		total += size[c]
	}
	all, err := mem.Alloc[ticket](b, total, "random split")
	if err != nil {
		return err
	}
	defer all.Free()
	winners := make([]tickets, classes)
	rest := all.S
	for c, n := range size {
		winners[c], rest = rest[:0:n], rest[n:]
	}
	for node, label := range labels {
		if label != noLabel && size[label] > 0 {
			winners[label].offer(newTicket(seed, ids[node], node))
		}
	}
	for _, w := range winners {
		slices.SortFunc(w, ticket.compare)
		for i, t := range w {
			visit(int64(t.node), int64(i))
		}
	}
	return nil
}

// drawTraining replaces the training nodes of a split: of each class it takes the nodes with the smallest hashes among those with a label
// that neither validate nor test. It warns of classes with too few nodes.
func drawTraining(b *mem.Budget, seed uint64, perClass int64, names []string, ids []uint32, labels []int32,
	splits []uint8,
) (warnings []string, err error) {
	free, err := mem.Alloc[int32](b, int64(len(labels)), "labels of nodes that may train")
	if err != nil {
		return nil, err
	}
	defer free.Free()
	for node, label := range labels {
		free.S[node] = label
		switch dataset.Split(splits[node]) {
		case dataset.Valid, dataset.Test:
			free.S[node] = noLabel
		case dataset.Train:
			splits[node] = uint8(dataset.NoSplit)
		}
	}
	drawn := int64(0)
	if err := eachWinner(b, seed, len(names), perClass, ids, free.S, func(node, _ int64) {
		splits[node] = uint8(dataset.Train)
		drawn++
	}); err != nil {
		return nil, err
	}
	if drawn == 0 {
		return nil, badData("--labels-per-class %d has no node to draw: every labelled node validates or tests", perClass)
	}
	var few []string
	for c, n := range classSizes(free.S, len(names)) {
		if n < perClass {
			few = append(few, names[c])
		}
	}
	if len(few) > 0 {
		verb := "have"
		if len(few) == 1 {
			verb = "has"
		}
		warnings = append(warnings, fmt.Sprintf("--labels-per-class %d: %s %s fewer labelled nodes beside validation and test nodes, all of which train", perClass, listed(few), verb))
	}
	return warnings, nil
}

// shareSplit draws shares of all labelled nodes, whatever their class.
type shareSplit struct {
	text         string
	train, valid float64
}

func parseShares(s, shares string) (drawnSplit, error) {
	first, second, two := strings.Cut(shares, ",")
	train, err1 := strconv.ParseFloat(first, 64)
	valid, err2 := strconv.ParseFloat(second, 64)
	if !two || err1 != nil || err2 != nil || !(train > 0 && valid >= 0 && train+valid <= 1) {
		return nil, fmt.Errorf("split %q: write share:T,V with shares of the labelled nodes that are above 0 and together not above 1, for example share:0.6,0.2", s)
	}
	return &shareSplit{s, train, valid}, nil
}

func (r *shareSplit) String() string { return r.text }

func (r *shareSplit) counts(_ int, labelled int64) (train, valid int64) {
	train = int64(math.Round(r.train * float64(labelled)))
	return train, min(int64(math.Round(r.valid*float64(labelled))), labelled-train)
}

// check implements drawnSplit.
func (r *shareSplit) check(_ []string, size []int64) (warnings []string, err error) {
	labelled := int64(0)
	for _, n := range size {
		labelled += n
	}
	train, _ := r.counts(len(size), labelled)
	switch {
	case labelled == 0:
		return nil, badData("--split %s has no node to draw: no node has a label", r)
	case train == 0:
		return nil, badData("--split %s takes none of %d labelled nodes for training: ask for a larger share", r, labelled)
	case train == labelled:
		return nil, failure.Of(ErrSplit, "--split %s leaves no node for validation or testing of %d labelled nodes; ask for less", r, labelled)
	}
	return nil, nil
}

// draw implements drawnSplit. To find the hashes at which training and validation end, it counts hashes by their first bits and sorts those
// that begin like the sought one.
func (r *shareSplit) draw(b *mem.Budget, seed uint64, _ int, ids []uint32, labels []int32, splits []uint8) error {
	labelled := int64(0)
	each := func(visit func(t ticket)) {
		for node, label := range labels {
			if label != noLabel {
				visit(newTicket(seed, ids[node], node))
			}
		}
	}
	sizes, err := mem.Alloc[uint32](b, 1<<firstBits, "hashes of a random split")
	if err != nil {
		return err
	}
	defer sizes.Free()
	each(func(t ticket) {
		sizes.S[t.hash>>(64-firstBits)]++
		labelled++
	})
	train, valid := r.counts(0, labelled)
	// border returns the first ticket after n.
	border := func(n int64) (ticket, error) {
		at := 0
		for ; at < len(sizes.S) && n >= int64(sizes.S[at]); at++ {
			n -= int64(sizes.S[at])
		}
		if at == len(sizes.S) {
			return ticket{hash: math.MaxUint64, id: math.MaxUint32, node: math.MaxUint32}, nil
		}
		same, err := mem.Alloc[ticket](b, int64(sizes.S[at]), "random split")
		if err != nil {
			return ticket{}, err
		}
		defer same.Free()
		i := 0
		each(func(t ticket) {
			if int(t.hash>>(64-firstBits)) == at {
				same.S[i] = t
				i++
			}
		})
		slices.SortFunc(same.S, ticket.compare)
		return same.S[n], nil
	}
	trained, err := border(train)
	if err != nil {
		return err
	}
	validated, err := border(train + valid)
	if err != nil {
		return err
	}
	each(func(t ticket) {
		switch {
		case t.compare(trained) < 0:
			splits[t.node] = uint8(dataset.Train)
		case t.compare(validated) < 0:
			splits[t.node] = uint8(dataset.Valid)
		default:
			splits[t.node] = uint8(dataset.Test)
		}
	})
	return nil
}

// firstBits is the number of first bits of a hash by which nodes are counted.
const firstBits = 16

// classSizes counts the labelled nodes of each class.
func classSizes(labels []int32, classes int) []int64 {
	size := make([]int64, classes)
	for _, label := range labels {
		if label != noLabel {
			size[label]++
		}
	}
	return size
}

// check implements drawnSplit.
func (r *randomSplit) check(names []string, size []int64) (warnings []string, err error) {
	var noValid, noTest []string
	labelled, left := int64(0), int64(0)
	for c, n := range size {
		labelled += n
		left += max(n-r.train, 0)
		if r.valid > 0 && n <= r.train {
			noValid = append(noValid, names[c])
		}
		if n <= r.train+r.valid {
			noTest = append(noTest, names[c])
		}
	}
	if labelled == 0 {
		return nil, badData("--split %s has no node to draw: no node has a label", r)
	}
	if left == 0 {
		return nil, failure.Of(ErrSplit, "--split %s leaves no node for validation or testing: no class has more than %d labelled nodes; ask for fewer",
			r, slices.Max(size))
	}
	for _, w := range []struct {
		what    string
		classes []string
	}{{"validation", noValid}, {"test", noTest}} {
		if len(w.classes) > 0 {
			warnings = append(warnings, fmt.Sprintf("--split %s leaves no %s node to %s: ask for fewer nodes of each class", r, w.what, listed(w.classes)))
		}
	}
	return warnings, nil
}

func (r *randomSplit) String() string { return fmt.Sprintf("random:%d,%d", r.train, r.valid) }

// maxListed is the largest number of classes that a warning names.
const maxListed = 5

// listed names up to maxListed classes.
func listed(classes []string) string {
	names := strings.Join(classes[:min(len(classes), maxListed)], ", ")
	switch more := len(classes) - maxListed; {
	case len(classes) == 1:
		return "class " + names
	case more > 0:
		return fmt.Sprintf("classes %s and %d others", names, more)
	}
	return "classes " + names
}

// tickets is a heap of limited capacity with the largest ticket on top.
type tickets []ticket

func (h tickets) Len() int           { return len(h) }
func (h tickets) Less(i, j int) bool { return h[i].compare(h[j]) > 0 }
func (h tickets) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }

func (h *tickets) Push(t any) { *h = append(*h, t.(ticket)) }

func (h *tickets) Pop() any {
	last := len(*h) - 1
	t := (*h)[last]
	*h = (*h)[:last]
	return t
}

// offer keeps the smallest tickets.
func (h *tickets) offer(t ticket) {
	if len(*h) < cap(*h) {
		heap.Push(h, t)
	} else if t.compare((*h)[0]) < 0 {
		(*h)[0] = t
		heap.Fix(h, 0)
	}
}
