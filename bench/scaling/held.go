package main

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"time"

	"ndls/coordinator"
	"ndls/estimate"
	"ndls/internal/control"
	"ndls/internal/packed"
	"ndls/plan"
)

// measuredJSON holds the cost of real runs on the machine of RESULTS.md, with one thread a
// worker. TestMeasureScaling of e2e writes it: make scaling-measured.
//
//go:embed measured.json
var measuredJSON []byte

// measured is a real run, with the tasks of its phases in their order.
type measured struct {
	Nodes   int64           `json:"nodes"`
	Edges   int64           `json:"edges"`
	Kind    string          `json:"kind"` // of what workers share: columns, rows, or both
	Bits    float64         `json:"bits"` // a second, of each cable; 0: as many as it can, without delay
	Workers int             `json:"workers"`
	Seconds float64         `json:"seconds"` // of all stages
	Phases  []measuredPhase `json:"phases"`
}

type measuredPhase struct {
	Stage control.Stage  `json:"stage"`
	Part  control.Part   `json:"part"`
	Tasks []measuredTask `json:"tasks"`
}

type measuredTask struct {
	Part         control.Part `json:"part"` // where it is not that of the phase
	First        int          `json:"first"`
	Last         int          `json:"last"`
	FirstPanel   int          `json:"first_panel"`
	LastPanel    int          `json:"last_panel"`
	Seconds      float64      `json:"seconds"`
	NetworkBytes int64        `json:"network_bytes"`
}

func (t measuredTask) size() float64 { return float64(max(t.Last-t.First, 1)) }

func (p measuredPhase) name() string { return fmt.Sprintf("%s/%s", p.Stage, p.Part) }

// shares reports whether the tasks belong to workers that share rows.
func (p measuredPhase) shares() bool { return control.Task{Part: p.Part}.Shares() }

// seconds sums the seconds of all tasks.
func (p measuredPhase) seconds() (all float64) {
	for _, t := range p.Tasks {
		all += t.Seconds
	}
	return all
}

// wall returns the time of so many workers for the tasks one after the other, in their order.
func (p measuredPhase) wall(workers int) float64 {
	busy := make([]float64, workers)
	for _, t := range p.Tasks {
		first := 0
		for w, until := range busy {
			if until < busy[first] {
				first = w
			}
		}
		busy[first] += t.Seconds
	}
	return slices.Max(busy)
}

// moved is the bytes that all tasks sent.
func (p measuredPhase) moved() (all float64) {
	for _, t := range p.Tasks {
		all += float64(t.NetworkBytes)
	}
	return all
}

// members counts the tasks with the same columns.
func (p measuredPhase) members() (n int) {
	for _, t := range p.Tasks {
		if first := p.Tasks[0]; t.FirstPanel == first.FirstPanel && t.Part == first.Part {
			n++
		}
	}
	return n
}

const (
	// measuredCores is the number of cores of the measured machine: workers that are more share
	// them. So many workers are the last ones from whose runs rates are taken.
	measuredCores = 2
	// measuredDelay is the seconds that a frame was on its way where cables carried so many bits a second.
	measuredDelay = 2e-3
	// measuredHops is the largest number of hops.
	measuredHops = 8
	// payload is which share of what a cable carries are rows and messages: a frame of 1,514 bytes has 66 of headers.
	payload = 1448.0 / 1514
	// roundTrips is the number of times in a hop that a worker asks others for something and waits:
	// for the first rows, and for sums. Rows are relayed in pieces of pieceBytes, which arrive
	// whole before they go on.
	roundTrips = 2
	pieceBytes = 1 << 17
	// callsBeside is the number of calls to the coordinator that follow each other beside a task:
	// for the task, the catalogue, a commit, its end.
	callsBeside = 4
)

// rates holds the cost of real tasks of a graph.
type rates struct {
	// plain are the seconds of all tasks of a part of a stage that shares no rows, computing those that a stage of which rows
	// are shared takes where they are not. beside and asks are the seconds in which a worker asks for a task and reads
	// the catalogue: in beside, calls wait for cables; asks takes a core.
	plain, computing map[string]float64
	tasks            map[string]int // of each part that shares no rows
	// opening are the seconds that a stage of columns takes more for each worker beyond those cores: it opens the graph too.
	opening      map[string]float64
	beside, asks float64
	// least is the seconds of a task that does next to nothing, which is a part of each task's own time.
	least float64
	// sending is the seconds of a thread that a byte of rows takes, cable the bytes a second of one that nothing slows down.
	sending, cable float64
}

// ratesOf are those for a run: what tasks took in the run of the same graph, kind and cables that has as many workers, or as many
// as there are cores, and what was beside tasks in that of columns. A stage computes as much where rows are
// shared as where columns are. In the run of four workers that share rows over cables that nothing slows down, no core was idle:
// all that the cores did beside computing is taken for sending and receiving. Such a cable is taken to carry what one of two
// workers received in the time in which it did not compute.
func ratesOf(runs []measured, of measured) (rates, error) {
	r := rates{plain: map[string]float64{}, computing: map[string]float64{}, tasks: map[string]int{}, opening: map[string]float64{}}
	kind := of.Kind
	if kind == "both" {
		kind = "rows"
	}
	for _, m := range runs {
		turns, wall := 0, 0.0
		few := m.Workers == min(of.Workers, measuredCores)
		for _, p := range m.Phases {
			turns, wall = turns+(len(p.Tasks)+m.Workers-1)/m.Workers, wall+p.wall(m.Workers)
			if few && m.Kind == kind && m.Bits == of.Bits {
				r.plain[p.name()] += p.seconds()
				r.tasks[p.name()] += len(p.Tasks)
				if p.Stage == control.Partition && p.Part == control.Whole && m.Workers > 1 {
					r.least = p.seconds() // it commits what is there
				}
			}
			if m.Kind == "columns" && m.Bits == of.Bits && m.Workers <= measuredCores {
				sign := float64(2*m.Workers - 3) // what two workers took more than one
				r.opening[string(p.Stage)] += sign * p.seconds()
			}
			if few && m.Kind == "columns" && (p.Part == control.Columns || p.Stage == control.LSI || p.Stage == control.Train) {
				r.computing[string(p.Stage)] += p.seconds()
			}
		}
		if few && m.Kind == "columns" {
			calls := callsBeside * 2 * measuredDelay
			r.asks = max((m.Seconds-wall)/float64(turns)-calls, 0)
			if of.Bits > 0 {
				r.beside = calls
			}
		}
	}
	if kind == "columns" {
		return r, nil
	}
	sending, moved, receiving, most := 0.0, 0.0, 0.0, 0.0
	for _, m := range runs {
		if m.Kind != kind || m.Bits > 0 {
			continue
		}
		for _, p := range m.Phases {
			s, ok := m.job().shared(p.Stage)
			if !ok || !p.shares() {
				continue
			}
			wall, computing := p.seconds()/float64(len(p.Tasks)), r.computing[string(p.Stage)]
			hop, hops := m.group(s, p).unit(), float64(s.panels*s.hops)
			if m.Workers > measuredCores {
				sending += wall*measuredCores - computing
				moved += hops * float64(m.Workers) * hop.moved
			} else {
				receiving += wall - computing/float64(m.Workers)
				most += hops * hop.most
			}
		}
	}
	if moved == 0 || most == 0 || sending <= 0 || receiving <= 0 {
		return r, fmt.Errorf("%.1f s were spent on sending %.0f bytes, %.1f on receiving %.0f", sending, moved, receiving, most)
	}
	r.sending, r.cable = sending/moved, most/receiving
	return r, nil
}

// job is the run as the simulation has it.
func (m measured) job() job {
	j := job{plan: plan.Default(), workers: m.Workers, machine: reference, cores: measuredCores}
	j.machine.Threads, j.machine.Net = 1, payload*m.Bits/8
	j.plan.Labels.Kmax = measuredHops
	j.plan.LSI.Probes, j.plan.LSI.Kmax, j.plan.Train.Runs, j.plan.Partition.IntervalBlocks = 16, measuredHops, 1, 1
	j.Counts = estimate.Counts{Nodes: m.Nodes, Edges: m.Edges, Components: 1, Features: 64, Classes: 8, Hops: measuredHops}
	return j
}

// group is the workers of the run that share the rows of a phase.
func (m measured) group(s shared, p measuredPhase) group {
	size := p.members()
	g := group{job: m.job(), size: size, row: s.row, fewest: 1}
	for _, t := range p.Tasks {
		rows := min(int64(t.Last)*packed.StripRows, m.Nodes) - int64(t.First)*packed.StripRows
		g.fewest = min(g.fewest, float64(rows)/float64(m.Nodes))
	}
	if m.Bits > 0 {
		g.barrier = roundTrips*2*measuredDelay + float64(max(size-2, 0))*(pieceBytes/g.machine.Net+measuredDelay)
	}
	return g
}

// shared is how workers share a stage by rows and columns, if they do.
func (j job) shared(of control.Stage) (shared, bool) {
	for _, s := range j.sharedStages() {
		if s.stage == of {
			return s, true
		}
	}
	return shared{}, false
}

// replay gives the tasks of a run the times that rates say: those that share no rows in proportion to the pieces of each, and
// those of groups hop by hop.
func (r rates) replay(m measured) (phases []phase, err error) {
	j, trained := m.job(), false
	for _, p := range m.Phases {
		s, ok := j.shared(p.Stage)
		if ok && p.shares() {
			phases = append(phases, r.hops(m, p, s))
			continue
		}
		seconds, known := r.plain[p.name()]
		switch {
		case p.Stage == control.Train && p.shares():
			seconds, known, trained = r.computing[string(p.Stage)], true, true
		case p.Stage == control.Train && trained:
			seconds = 0 // what is left once a group has trained
		}
		if !known {
			return nil, fmt.Errorf("no task of %s was measured", p.name())
		}
		x := phase{stage: p.Stage, part: p.Part, piece: work{units: 1, unit: 1, files: 1}}
		if p.shares() {
			x.part = control.Models
		}
		size := 0.0
		for _, t := range p.Tasks {
			size += t.size()
		}
		if p.Part == control.Columns && m.Workers > measuredCores && len(p.Tasks) > measuredCores {
			seconds += float64(m.Workers-measuredCores) * max(r.opening[string(p.Stage)], 0)
		}
		least := min(r.least, seconds/float64(max(r.tasks[p.name()], 1)))
		for _, t := range p.Tasks {
			x.tasks = append(x.tasks, 1)
			x.weights = append(x.weights, (seconds-least*float64(r.tasks[p.name()]))*t.size()/size)
		}
		x.beside, x.asks = r.beside+least, r.asks
		phases = append(phases, x)
	}
	return phases, nil
}

// hops are the tasks of groups, whose pieces are panels.
func (r rates) hops(m measured, p measuredPhase, s shared) phase {
	g := m.group(s, p)
	x := phase{stage: p.Stage, part: control.Columns, piece: g.unit(), beside: r.beside, asks: r.asks}
	x.piece.units, x.piece.files = s.hops, 1
	x.piece.unit = r.computing[string(p.Stage)] / float64(s.panels*s.hops*g.size)
	for _, t := range p.Tasks {
		n := t.LastPanel - t.FirstPanel
		if n == 0 {
			n = s.panels
		}
		x.tasks = append(x.tasks, n)
	}
	return x
}

// held is a run beside what the simulation says of it.
type held struct {
	measured
	simulated float64
	moved     float64 // bytes of rows, simulated
}

// off is by which share the simulation is off.
func (h held) off() float64 { return h.simulated/h.Seconds - 1 }

// sent is the bytes of rows that all tasks sent.
func (m measured) sent() (all float64) {
	for _, p := range m.Phases {
		all += p.moved()
	}
	return all
}

// predictions simulates each run by what the tasks of its graph took one worker and two.
func predictions(text []byte) (list []held, err error) {
	var runs []measured
	if err := json.Unmarshal(text, &runs); err != nil {
		return nil, err
	}
	graphs := map[int64][]measured{}
	for _, m := range runs {
		graphs[m.Edges] = append(graphs[m.Edges], m)
	}
	for _, m := range runs {
		r, err := ratesOf(graphs[m.Edges], m)
		if err != nil {
			return nil, err
		}
		j := m.job()
		if j.replayed, err = r.replay(m); err != nil {
			return nil, err
		}
		if j.sending = r.sending; m.Bits == 0 {
			j.machine.Net = r.cable
		}
		tallies, err := simulate(j, fate{lease: coordinator.DefaultLease, checkpoint: coordinator.DefaultCheckpoint, replace: time.Minute})
		if err != nil {
			return nil, err
		}
		h := held{measured: m, simulated: total(tallies)}
		for _, p := range j.replayed {
			for _, pieces := range p.tasks {
				h.moved += float64(pieces*p.piece.units) * p.piece.moved
			}
		}
		list = append(list, h)
	}
	return list, nil
}

func total(tallies []tally) (wall float64) {
	for _, t := range tallies {
		wall += t.wall
	}
	return wall
}

// cables says how many Mb/s cables carry.
func cables(bits float64) string {
	if bits == 0 {
		return "unbound"
	}
	return fmt.Sprintf("%.0f", bits/1e6)
}

// heldTable prints what runs took beside what the simulation says.
func heldTable(w io.Writer) error {
	list, err := predictions(measuredJSON)
	if err != nil {
		return err
	}
	header(w, []string{"workers", "share", "cables, Mb/s", "rows sent, MB", "simulated, MB", "measured, s", "simulated, s", "off by"})
	for _, h := range list {
		line(w, []string{
			fmt.Sprint(h.Workers), h.Kind, cables(h.Bits), fmt.Sprintf("%.0f", h.sent()/1e6), fmt.Sprintf("%.0f", h.moved/1e6),
			fmt.Sprintf("%.1f", h.Seconds), fmt.Sprintf("%.1f", h.simulated), fmt.Sprintf("%+.1f %%", 100*h.off()),
		})
	}
	return nil
}
