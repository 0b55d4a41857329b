package partition

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"ndls/dataset"
	"ndls/internal/mem"
	"ndls/internal/rng"
)

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
	size := make([]int64, classes)
	for _, label := range labels {
		if label != noLabel {
			size[label]++
		}
	}
	total := int64(0)
	for c := range size {
		size[c] = min(size[c], r.train+r.valid)
		total += size[c]
	}
	tickets, err := mem.Alloc[ticket](b, total, "random split")
	if err != nil {
		return err
	}
	defer tickets.Free()
	winners := make([][]ticket, classes) // a heap for each class, largest on top
	rest := tickets.S
	for c, n := range size {
		winners[c], rest = rest[:0:n], rest[n:]
	}
	for node, label := range labels {
		if label == noLabel {
			continue
		}
		splits[node] = uint8(dataset.Test)
		t := ticket{rng.Hash(seed, uint64(ids[node])), ids[node], uint32(node)}
		winners[label] = offer(winners[label], t)
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

// offer keeps the cap(heap) smallest tickets in a heap with the largest on top.
func offer(heap []ticket, t ticket) []ticket {
	if len(heap) < cap(heap) {
		heap = append(heap, t)
		for i := len(heap) - 1; i > 0 && heap[(i-1)/2].compare(heap[i]) < 0; i = (i - 1) / 2 {
			heap[i], heap[(i-1)/2] = heap[(i-1)/2], heap[i]
		}
		return heap
	}
	if t.compare(heap[0]) > 0 {
		return heap
	}
	heap[0] = t
	for i := 0; ; {
		largest := i
		for child := 2*i + 1; child <= 2*i+2 && child < len(heap); child++ {
			if heap[child].compare(heap[largest]) > 0 {
				largest = child
			}
		}
		if largest == i {
			return heap
		}
		heap[i], heap[largest] = heap[largest], heap[i]
		i = largest
	}
}
