package partition

import (
	"cmp"
	"container/heap"
	"fmt"
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

// randomSplit draws nodes of each class for training and validation; the other
// labelled nodes test.
type randomSplit struct{ train, valid int64 }

// maxDraw bounds the numbers of a random split.
const maxDraw = 1 << 32

// parseSplit reads Options.Split; nil is the published split.
func parseSplit(s string) (*randomSplit, error) {
	if s == "" {
		return nil, nil
	}
	numbers, random := strings.CutPrefix(s, "random:")
	train, valid, two := strings.Cut(numbers, ",")
	t, err1 := strconv.ParseInt(train, 10, 64)
	v, err2 := strconv.ParseInt(valid, 10, 64)
	if !random || !two || err1 != nil || err2 != nil || t < 1 || v < 0 || t > maxDraw || v > maxDraw {
		return nil, fmt.Errorf("split %q: write random:T,V, for example random:20,30 for 20 training and 30 validation nodes of each class", s)
	}
	return &randomSplit{t, v}, nil
}

// ticket is a node's place in the draw of its class.
type ticket struct {
	hash     uint64
	id, node uint32
}

func (t ticket) compare(o ticket) int {
	return cmp.Or(cmp.Compare(t.hash, o.hash), cmp.Compare(t.id, o.id))
}

// draw puts the nodes of each class with the smallest rng.Hash(seed, input id)
// into training, the next into validation and the rest into test.
func (r *randomSplit) draw(b *mem.Budget, seed uint64, classes int, ids []uint32, labels []int32, splits []uint8) error {
	size := classSizes(labels, classes)
	total := int64(0)
	for c := range size {
		size[c] = min(size[c], r.train+r.valid)
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
		if label == noLabel {
			continue
		}
		splits[node] = uint8(dataset.Test)
		winners[label].offer(ticket{rng.Hash(seed, uint64(ids[node])), ids[node], uint32(node)})
	}
	for _, w := range winners {
		slices.SortFunc(w, ticket.compare)
		for i, t := range w {
			if int64(i) < r.train {
				splits[t.node] = uint8(dataset.Train)
			} else {
				splits[t.node] = uint8(dataset.Valid)
			}
		}
	}
	return nil
}

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

// check refuses a split of classes of these sizes that leaves nothing to train with, or
// nothing to validate or test with, and says which classes have none of their own.
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
		return nil, &refusal{ErrSplit, fmt.Sprintf("--split %s leaves no node for validation or testing: no class has more than %d labelled nodes; ask for fewer",
			r, slices.Max(size))}
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

// maxListed is how many classes a warning names.
const maxListed = 5

// listed names classes, not more than maxListed of them.
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

// tickets is a heap with the largest on top, of no more than its capacity.
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
