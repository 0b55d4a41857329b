package placement

import (
	"fmt"

	"ndls/estimate"
	"ndls/internal/control"
	"ndls/internal/mem"
	"ndls/internal/packed"
)

// strips returns the tasks of a group of so many workers that has all columns. All groups have the same borders: a place serves as many
// workers as there are groups, and counts with the smallest memory of these workers.
func (p placing) strips(size int) (tasks []control.Task, err error) {
	groups := len(p.workers) / size
	var places []control.Hello
	for i := range size {
		places = append(places, p.workers[(i+1)*groups-1])
	}
	borders, needs, err := p.shareOut(places, groups)
	if err != nil {
		return nil, err
	}
	for i := range places {
		tasks = append(tasks, control.Task{Stage: p.Stage.Name(), Part: control.Strips, First: borders[i], Last: borders[i+1], Needs: needs[i]})
	}
	return tasks, nil
}

// evenness lists the shares of edges in the weight of a strip, in the order in which they are tried. Rows have the rest of the weight.
var evenness = []float64{1, 0.75, 0.5, 0.25, 0}

// shareOut finds the borders, in strips, between workers. Each worker gets a share of the weight in proportion to its memory. The weight of
// a strip is its share of the edges, which decide the time. If rows do not fit, the weight counts more and more the rows, which decide the
// memory, until each worker can keep its rows in memory or at least has room for them. needs holds the memory of each share in bytes, where
// there are so many groups of such workers.
func (p placing) shareOut(workers []control.Hello, groups int) (borders []int, needs []int64, err error) {
	nodes := p.Counts.Nodes
	for _, even := range evenness {
		borders = cutStrips(p.Edges, nodes, even, workers)
		resident := true
		needs, err = nil, nil
		for w, h := range workers {
			rows := rowsOf(nodes, borders[w], borders[w+1])
			least, fits := estimate.Share(p.Counts, p.Plan, p.resources(h), p.Stage, rows, len(workers), groups)
			needs = append(needs, least)
			resident = resident && fits
			if least > h.Memory {
				err = fmt.Errorf("placement: %s by %d workers: worker %s would have %d of %d rows, which need %s, its --memory is %s; give it --memory %dMiB, or more workers: %w",
					p.Stage.Name(), len(workers), h.Worker, rows, nodes, mem.Bytes(least), mem.Bytes(h.Memory), (least+1<<20-1)>>20, mem.ErrBudget)
			}
		}
		if resident {
			break
		}
	}
	return borders, needs, err
}

// rowsOf returns the number of rows in strips [first, last) of a graph of so many nodes.
func rowsOf(nodes int64, first, last int) int64 {
	return min(int64(last)*packed.StripRows, nodes) - int64(first)*packed.StripRows
}

// cutStrips gives each worker at least one strip and its share of the weight as nearly as whole strips allow.
func cutStrips(edges []float64, nodes int64, even float64, workers []control.Hello) []int {
	all, memory := 0.0, int64(0)
	for _, n := range edges {
		all += n
	}
	for _, h := range workers {
		memory += h.Memory
	}
	borders := []int{0}
	weight, want := 0.0, 0.0
	strip := 0
	for w, h := range workers {
		want += float64(h.Memory) / float64(memory)
		most := len(edges) - (len(workers) - 1 - w)
		for strip < most {
			next := (1 - even) * float64(rowsOf(nodes, strip, strip+1)) / float64(nodes)
			if all > 0 {
				next += even * edges[strip] / all
			}
			if strip > borders[w] && w < len(workers)-1 && weight+next/2 > want {
				break
			}
			weight += next
			strip++
		}
		borders = append(borders, strip)
	}
	return borders
}
