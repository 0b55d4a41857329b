package main

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"io"
	"time"

	"ndls/coordinator"
	"ndls/internal/control"
)

// measuredJSON is what real runs took on the machine of docs/scaling.md, with one thread a
// worker. TestMeasureScaling of e2e writes it: make scaling-measured.
//
//go:embed measured.json
var measuredJSON []byte

// measured is a real run, with the tasks of its phases in their order.
type measured struct {
	Nodes   int64           `json:"nodes"`
	Edges   int64           `json:"edges"`
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
	First   int     `json:"first"`
	Last    int     `json:"last"`
	Seconds float64 `json:"seconds"`
}

func (t measuredTask) size() float64 { return float64(max(t.Last-t.First, 1)) }

// measuredCores is how many cores the machine of the measurement had: workers that are more
// share them.
const measuredCores = 2

// rates are what real tasks of a graph took.
type rates struct {
	// seconds are those of all tasks of a part of a stage; beside is the time of a task that
	// is not its own: asking for it, and reading the catalogue.
	seconds map[string]float64
	beside  float64
}

// ratesOf are those for a run of so many workers: what tasks took in the run of the same graph
// that has as many, or as many as there are cores. What is beside tasks was measured with one.
func ratesOf(runs []measured, workers int) rates {
	r := rates{seconds: map[string]float64{}}
	for _, m := range runs {
		tasks, all := 0, 0.0
		for _, p := range m.Phases {
			for _, t := range p.Tasks {
				tasks, all = tasks+1, all+t.Seconds
				if m.Workers == min(workers, measuredCores) {
					r.seconds[partName(p)] += t.Seconds
				}
			}
		}
		if m.Workers == 1 {
			r.beside = max(m.Seconds-all, 0) / float64(tasks)
		}
	}
	return r
}

func partName(p measuredPhase) string { return fmt.Sprintf("%s/%s", p.Stage, p.Part) }

// replay gives the tasks of a run the times that rates say, in proportion to the pieces of each
// task.
func (r rates) replay(m measured) (phases []phase, err error) {
	for _, p := range m.Phases {
		seconds, known := r.seconds[partName(p)]
		if !known {
			return nil, fmt.Errorf("no task of %s was measured", partName(p))
		}
		x := phase{stage: p.Stage, part: p.Part, piece: work{units: 1, unit: 1, files: 1}}
		size := 0.0
		for _, t := range p.Tasks {
			size += t.size()
		}
		for _, t := range p.Tasks {
			x.tasks = append(x.tasks, 1)
			x.weights = append(x.weights, seconds*t.size()/size)
		}
		x.beside = r.beside
		phases = append(phases, x)
	}
	return phases, nil
}

// held is a run beside what the simulation says of it.
type held struct {
	measured
	simulated float64
}

// off is by which share the simulation is off.
func (h held) off() float64 { return h.simulated/h.Seconds - 1 }

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
		j := job{plan: control.DefaultPlan(), workers: m.Workers, machine: reference, cores: measuredCores}
		if j.replayed, err = ratesOf(graphs[m.Edges], m.Workers).replay(m); err != nil {
			return nil, err
		}
		tallies, err := simulate(j, fate{lease: coordinator.DefaultLease, checkpoint: coordinator.DefaultCheckpoint, replace: time.Minute})
		if err != nil {
			return nil, err
		}
		list = append(list, held{measured: m, simulated: total(tallies)})
	}
	return list, nil
}

func total(tallies []tally) (wall float64) {
	for _, t := range tallies {
		wall += t.wall
	}
	return wall
}

// heldTable prints what runs took beside what the simulation says.
func heldTable(w io.Writer) error {
	list, err := predictions(measuredJSON)
	if err != nil {
		return err
	}
	header(w, []string{"workers", "nodes", "edges", "measured, s", "simulated, s", "off by"})
	for _, h := range list {
		line(w, []string{fmt.Sprint(h.Workers), fmt.Sprint(h.Nodes), fmt.Sprint(h.Edges), fmt.Sprintf("%.1f", h.Seconds), fmt.Sprintf("%.1f", h.simulated), fmt.Sprintf("%+.1f %%", 100*h.off())})
	}
	return nil
}
