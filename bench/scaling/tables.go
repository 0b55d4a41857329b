package main

import (
	"fmt"
	"io"
	"math"
	"strings"

	sharing "ndls/group"
	"ndls/internal/control"
	"ndls/internal/packed"
)

// average runs a job with several seeds. The phases' tallies are means, but for leases and
// records, which are sums.
func average(j job, f fate, seeds int) (all []tally, err error) {
	n := float64(seeds)
	for i := range seeds {
		f.seed = uint64(i + 1)
		tallies, err := simulate(j, f)
		if err != nil {
			return nil, fmt.Errorf("%d workers, seed %d: %w", j.workers, f.seed, err)
		}
		for k, t := range tallies {
			if len(all) == k {
				all = append(all, tally{stage: t.stage, part: t.part})
			}
			m := &all[k]
			m.wall += t.wall / n
			m.busy += t.busy / n
			m.died += t.died / n
			m.doubled += t.doubled / n
			m.read += t.read / int64(seeds)
			m.written += t.written / int64(seeds)
			m.leases += t.leases
			m.records += t.records
		}
	}
	return all, nil
}

// stages puts the phases of a stage together, which are not the same for one worker, but for the
// columns and rows of smoothing.
func stages(all []tally) (list []tally) {
	for _, t := range all {
		apart := t.stage == control.Smooth || t.stage == control.SmoothLabels
		if last := len(list) - 1; last >= 0 && list[last].stage == t.stage && !apart {
			list[last].add(t)
			continue
		}
		if !apart {
			t.part = control.Whole
		}
		list = append(list, t)
	}
	return list
}

// columnsTable prints a line for each number of workers, and one with the store's bytes.
func columnsTable(w io.Writer, j job, f fate, workers []int, seeds int) error {
	var first float64
	for i, n := range workers {
		j.workers = n
		all, err := average(j, f, seeds)
		if err != nil {
			return err
		}
		all = stages(all)
		if i == 0 {
			head := []string{"workers"}
			for _, m := range all {
				head = append(head, name(m))
			}
			head = append(head, "total, s", "× one", "bound, s", "× bound")
			if j.grid {
				head = append(head, "rows alone, s", "bound with rows, s", "× that", "and edges in memory, s", "× that")
			}
			header(w, append(head, "lost to deaths", "done twice", "idle", "leases", "journal records", "read, GB", "written, GB"))
		}
		var sum tally
		cells := []string{fmt.Sprint(n)}
		for _, m := range all {
			cells = append(cells, fmt.Sprintf("%.0f", m.wall))
			sum.add(m)
		}
		if i == 0 {
			first = sum.wall
		}
		there := sum.wall * float64(n)
		bound := j.bound(float64(sum.read + sum.written))
		cells = append(cells, fmt.Sprintf("%.0f", sum.wall), fmt.Sprintf("%.2f", first/sum.wall), fmt.Sprintf("%.0f", bound), fmt.Sprintf("%.2f", sum.wall/bound))
		if j.grid {
			rich := j
			rich.inMemory = true
			f, least := j.floor(float64(sum.read+sum.written)), rich.floor(float64(sum.read+sum.written))
			cells = append(cells, fmt.Sprintf("%.0f", f.rows), fmt.Sprintf("%.0f", f.total), fmt.Sprintf("%.2f", sum.wall/f.total),
				fmt.Sprintf("%.0f", least.total), fmt.Sprintf("%.2f", sum.wall/least.total))
		}
		line(w, append(cells, share(sum.died, there), share(sum.doubled, there),
			share(there-sum.busy, there), perRun(sum.leases, seeds), perRun(sum.records, seeds), gigabytes(float64(sum.read)), gigabytes(float64(sum.written))))
	}
	return nil
}

// bound returns the limit of the hardware: the longest of the time of one machine divided by the
// number of machines, of the bytes through all their networks, and of the bytes through the store.
func (j job) bound(moved float64) float64 {
	one := j
	one.workers = 1
	work := 0.0
	for _, p := range one.phases() {
		for i, pieces := range p.tasks {
			piece := p.of(i)
			work += float64(pieces*piece.units) * piece.unit
		}
	}
	bound := max(work, moved/j.machine.Net) / float64(j.workers)
	if j.store > 0 {
		bound = max(bound, moved/j.store)
	}
	return bound
}

// bytesTable prints what each phase takes from the store and gives it, and how long
// its tasks are.
func bytesTable(w io.Writer, j job, f fate) error {
	all, err := average(j, f, 1)
	if err != nil {
		return err
	}
	header(w, []string{"phase", "tasks", "seconds", "read from the store, GB", "written to it, GB", "checkpoint, GB"})
	for i, p := range j.phases() {
		line(w, []string{name(all[i]), fmt.Sprint(len(p.tasks)), fmt.Sprintf("%.0f", all[i].wall), gigabytes(float64(all[i].read)), gigabytes(float64(all[i].written)), gigabytes(float64(p.piece.state))})
	}
	return nil
}

// gangsTable prints a line for each number of workers that share the rows of a graph as
// they do in the product: all of them one block of 16 columns after the other.
func gangsTable(w io.Writer, j job, f fate, workers []int, barrier float64, seeds int) {
	header(w, []string{"workers", "memory for rows, GB", "received a hop, GB", "sent by all, TB", "computing, s", "reading, s", "receiving, s", "a hop, s", "smooth, h", "of that waiting", "of that deaths", "deaths", "a hop in waves, s", "smooth in waves, h"})
	for _, n := range workers {
		j.workers = n
		g := group{job: j, size: n, row: rowBytes, barrier: barrier}
		t := g.average(f, seeds)
		blocks := packed.Panels(j.Features)
		// All ask the same owner at a time, and nothing hides it.
		each := g.unit()
		each.way = sharing.Direct
		waves := g.takesUnit(each) - each.waits
		sent := float64(blocks*j.Hops) * float64(n-1) * float64(j.Nodes) * rowBytes
		line(w, []string{
			fmt.Sprint(n), gigabytes(float64(g.rows())), gigabytes(g.received()), fmt.Sprintf("%.1f", sent/1e12), fmt.Sprintf("%.1f", g.directed()/float64(n)/j.machine.Edges),
			fmt.Sprintf("%.1f", g.stream()/j.machine.Disk), fmt.Sprintf("%.1f", g.received()/j.machine.Net), fmt.Sprintf("%.1f", g.hop()),
			fmt.Sprintf("%.2f", float64(blocks)*t.wall/3600), share(t.waiting, t.wall), share(t.died, t.wall), fmt.Sprintf("%.1f", float64(t.deaths)/float64(seeds)*float64(blocks)),
			fmt.Sprintf("%.0f", waves), fmt.Sprintf("%.2f", float64(blocks*j.Hops)*waves/3600),
		})
	}
}

// intervalsTable prints a line for each size of a group that divides the workers.
func intervalsTable(w io.Writer, j job, f fate, sizes []int, barrier float64, seeds int) {
	header(w, []string{"workers a block", "blocks at once", "rows that travel", "memory for rows, GB", "received a hop, GB", "computing, s", "reading, s", "receiving, s", "a hop, s", "8 blocks, h", "of that waiting", "of that deaths", "deaths"})
	for _, size := range sizes {
		at := min(max(j.workers/size, 1), packed.Panels(j.Features))
		turns := (packed.Panels(j.Features) + at - 1) / at
		for _, needed := range []bool{false, true} {
			g := group{job: j, size: size, row: rowBytes, needed: needed, barrier: barrier}
			if size == 1 && needed {
				continue
			}
			t := g.average(f, seeds)
			what := map[bool]string{false: "all", true: "needed"}[needed]
			line(w, []string{
				fmt.Sprint(size), fmt.Sprint(at), what, gigabytes(float64(g.rows())), gigabytes(g.received()),
				fmt.Sprintf("%.1f", g.directed()/float64(size)/j.machine.Edges), fmt.Sprintf("%.1f", g.stream()/j.machine.Disk),
				fmt.Sprintf("%.1f", g.received()/j.machine.Net), fmt.Sprintf("%.1f", g.hop()), fmt.Sprintf("%.2f", float64(turns)*t.wall/3600),
				share(t.waiting, t.wall), share(t.died, t.wall), fmt.Sprintf("%.1f", float64(t.deaths)/float64(seeds)*float64(turns*at)),
			})
		}
	}
}

// average returns the mean of some runs; deaths are summed over all of them.
func (g group) average(f fate, seeds int) (sum blockTally) {
	n := float64(seeds)
	for i := range seeds {
		f.seed = uint64(i + 1)
		t := g.simulate(f)
		sum.wall += t.wall / n
		sum.waiting += t.waiting / n
		sum.died += t.died / n
		sum.saving += t.saving / n
		sum.deaths += t.deaths
	}
	return sum
}

func name(t tally) string {
	if t.part == control.Whole {
		return string(t.stage)
	}
	return fmt.Sprintf("%s %s", t.stage, t.part)
}

func header(w io.Writer, cells []string) {
	line(w, cells)
	fmt.Fprintln(w, strings.Repeat("|---", len(cells))+"|")
}

func line(w io.Writer, cells []string) { fmt.Fprintln(w, "| "+strings.Join(cells, " | ")+" |") }

func share(part, of float64) string {
	if math.IsNaN(part/of) || math.IsInf(of, 0) {
		return "–"
	}
	return fmt.Sprintf("%.1f %%", 100*part/of)
}

func perRun(n, seeds int) string { return fmt.Sprintf("%.1f", float64(n)/float64(seeds)) }

func gigabytes(b float64) string { return fmt.Sprintf("%.1f", b/1e9) }
