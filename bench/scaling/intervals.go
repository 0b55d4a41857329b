package main

import (
	"math"
	"math/rand/v2"
	"slices"

	sharing "ndls/group"
	"ndls/internal/control"
	"ndls/internal/mem"
	"ndls/partition"
)

// group is workers that own the intervals of a column block of 16 columns together.
type group struct {
	job
	size int
	// row is the bytes of a row of the block.
	row int64
	// needed says that only the rows travel that a worker has edges from, in place
	// of all.
	needed bool
	// fewest is the share of all rows that the worker has which has fewest, where that is not an equal one: ranges are cut by
	// edges, and the first worker has the nodes of the highest degrees.
	fewest float64
	// barrier is the seconds from the last member's end of a hop to the first's begin
	// of the next, beside waiting for each other.
	barrier float64
}

// barrierSeconds is the time from the last member's end of a hop to the first member's begin of the
// next, in a group of a grid.
const barrierSeconds = 0.1

// groupOf is the group that does n panels of rows of some bytes soonest.
func (j job) groupOf(n int, row int64) group {
	return j.soonest(row, func(g group) float64 {
		turns := (n + j.workers/g.size - 1) / (j.workers / g.size)
		return float64(turns) * g.takesUnit(g.unit())
	})
}

// soonest is the group which takes the fewest seconds, of those whose rows fit the memory: the planner chooses so, by the
// rates of the workers.
func (j job) soonest(row int64, takes func(group) float64) (best group) {
	best = group{job: j, size: 1, row: row}
	if !j.grid {
		return best
	}
	least := math.Inf(1)
	for size := 1; size <= j.workers; size++ {
		g := group{job: j, size: size, row: row, barrier: barrierSeconds, fewest: j.first(size)}
		g.needed = g.lists()
		if size > 1 && 2*g.rows() > j.machine.Memory {
			continue
		}
		if size == 1 && 2*row*j.Nodes > j.machine.Memory {
			continue // rows would lie on the disk
		}
		if all := takes(g); all < least {
			best, least = g, all
		}
	}
	return best
}

// first is the share of all nodes that have the first of so many equal shares of the edges, in descending order of degree.
func (j job) first(size int) float64 {
	if j.intervals() != len(edgeShares) {
		return 1 / float64(size)
	}
	left, rows := 1/float64(size), 0.0
	for _, x := range edgeShares {
		interval := float64(j.plan.Partition.IntervalBlocks) * partition.BlockRows / float64(j.Nodes)
		if x >= left {
			return rows + interval*left/x
		}
		left, rows = left-x, rows+interval
	}
	return 1
}

// lists reports whether only the rows are sent that are needed: where that pays, and all of them fit the memory.
func (g group) lists() bool {
	return sharing.ListsPay(g.Nodes, int64(g.directed()), g.size) && g.rows()+g.row*g.Nodes <= g.machine.Memory
}

// cells are n panels of which rows are read and written, each in a task for each worker of the group.
func (g group) cells(s control.Stage, n, hops int, in, written int64) phase {
	size := int64(g.size)
	p := phase{stage: s, part: control.Columns}
	for _, panels := range evenly(n, min(g.workers/g.size, n)) {
		p.tasks = append(p.tasks, slices.Repeat([]int{panels}, g.size)...)
	}
	p.open, p.cold = g.graph()
	p.cold.read /= size
	p.piece = g.unit()
	p.piece.units, p.piece.read, p.piece.written = hops, 2*g.Nodes*in/size, written/size
	p.piece.state, p.piece.files = 2*g.Nodes*g.row/size, max(g.intervals()/g.size, 1)
	return p
}

// received returns the mean number of bytes that a member receives in a hop: the rows of the
// others. If only needed rows are sent, it assumes random sources; hubs and order make it less.
func (g group) received() float64 {
	size := float64(g.size)
	rows := float64(g.Nodes) * (1 - 1/size)
	if g.needed {
		rows *= 1 - math.Exp(-g.directed()/size/float64(g.Nodes))
	}
	return rows * float64(g.row)
}

// stream is the bytes of edges that a member reads from its disk in a hop: those of its rows, unless they stay in memory.
func (g group) stream() float64 {
	size := int64(g.size)
	stream := g.job.stream() / size
	if g.machine.resident(g.Nodes/size, stream, g.row) {
		return 0
	}
	return float64(stream)
}

// rows is the bytes of two hops of a member's rows, and of its degrees and components.
func (g group) rows() int64 { return (2*g.row + 8) * g.Nodes / int64(g.size) }

// unit is a hop of a member.
func (g group) unit() (w work) {
	w.unit = g.machine.hop(g.directed()/float64(g.size), g.stream())
	if g.size > 1 {
		w.members, w.way, w.moved, w.waits = g.size, sharing.Relayed, g.received(), g.barrier
		w.all = float64(g.row * g.Nodes)
		w.most = w.moved
		if g.fewest > 0 {
			w.most *= (1 - g.fewest) / (1 - 1/float64(g.size))
		}
	}
	if g.needed {
		w.way = sharing.Listed
	}
	if g.size == 2 { // half of what is left
		left := mem.Usable(g.machine.Memory) - g.rows()
		if g.stream() == 0 {
			left -= g.job.stream() / 2
		}
		w.ahead = float64(max(left, 0)) / 2
	}
	return w
}

// hop is the seconds of a hop where no one is slow, without waiting.
func (g group) hop() float64 { return g.takesUnit(g.unit()) - g.unit().waits }

// state is the bytes of a member's checkpoint: rows and sums.
func (g group) state() float64 { return 2 * float64(g.row*g.Nodes) / float64(g.size) }

// blockTally holds the cost of a block. Seconds are by the clock.
type blockTally struct {
	wall float64
	// waiting is for the slowest member and at barriers, died for hops done again and
	// for the lease of a dead member to run out.
	waiting, died, saving float64
	deaths                int
}

// simulate makes the hops of a block. Wall is +Inf if the group dies so often that it gets
// nowhere.
func (g group) simulate(f fate) (t blockTally) {
	draw := rand.New(rand.NewPCG(f.seed, uint64(g.size)))
	rate := min(g.rate(g.workers), saveRate)
	save := g.state() / rate
	every := max(f.checkpoint.Seconds(), rest*save)
	death := math.Inf(1)
	next := func() float64 { return t.wall + draw.ExpFloat64()*f.mtbf.Seconds()/float64(g.size) }
	if f.mtbf > 0 {
		death = next()
	}
	done, saved, since := 0, 0, 0.0
	for done < g.Hops {
		took := g.hop()
		slowest := 0.0
		for range g.size {
			slowest = max(slowest, math.Exp(f.slow*draw.NormFloat64()))
		}
		wait := took*(slowest-1) + g.barrier
		if t.wall+took+wait > death {
			// The hops since the checkpoint go, with this one as far as it got.
			lost := death - since + f.lease.Seconds() + f.replace.Seconds() + g.state()/rate
			t.wall = since + lost
			t.died += lost
			t.deaths++
			done, since, death = saved, t.wall, next()
			if t.deaths > mostDeaths {
				t.wall = math.Inf(1)
				return t
			}
			continue
		}
		t.wall += took + wait
		t.waiting += wait
		done++
		if done < g.Hops && t.wall-since >= every {
			t.wall += save
			t.saving += save
			saved, since = done, t.wall
		}
	}
	return t
}

// mostDeaths is the number of deaths after which a block is given up.
const mostDeaths = 10_000
