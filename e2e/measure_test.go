package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"
)

// measured is a run of some workers with one thread each, in the order of its phases. It is a
// row of bench/scaling/measured.json.
type measured struct {
	Nodes   int64           `json:"nodes"`
	Edges   int64           `json:"edges"`
	Workers int             `json:"workers"`
	Seconds float64         `json:"seconds"` // of all stages
	Phases  []measuredPhase `json:"phases"`
}

type measuredPhase struct {
	Stage string         `json:"stage"`
	Part  string         `json:"part"`
	Tasks []measuredTask `json:"tasks"`
}

type measuredTask struct {
	First   int     `json:"first"`
	Last    int     `json:"last"`
	Seconds float64 `json:"seconds"`
}

// TestMeasureScaling runs the whole job on hosts of their own with cables of 1 Gb/s and 2 ms, and
// writes how long each task took to the file that NDLS_SCALING names: with one worker, with two
// and with four. It takes some minutes, on a machine that does nothing else.
func TestMeasureScaling(t *testing.T) {
	file := os.Getenv("NDLS_SCALING")
	if file == "" {
		t.Skip("needs NDLS_SCALING, the file to write")
	}
	nodes, edges := int64(400_000), int64(4_000_000)
	if v := os.Getenv("NDLS_SCALING_NODES"); v != "" {
		n, err := strconv.ParseInt(v, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		nodes, edges = n, 10*n
	}
	var all []measured
	for _, workers := range []int{1, 2, 4} {
		m := measured{Nodes: nodes, Edges: edges, Workers: workers}
		t.Run(fmt.Sprintf("%d nodes %d workers", m.Nodes, m.Workers), func(t *testing.T) {
			m.run(t)
			t.Logf("%.1f s", m.Seconds)
		})
		all = append(all, m)
	}
	text, err := json.MarshalIndent(all, "", " ")
	if err == nil {
		err = os.WriteFile(file, append(text, '\n'), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// run executes the job, and fills in what it took.
func (m *measured) run(t *testing.T) {
	n := newNetwork(t, columns, m.Workers)
	n.slow(2*time.Millisecond, 1e9)
	boss := n.hosts[0]
	args := []string{
		"coordinator", "--run", n.dir, "--quiet", "--workers", strconv.Itoa(m.Workers), "--parallel", "columns",
		"--dataset", fmt.Sprintf("synthetic:nodes=%d,edges=%d,features=128,classes=8,seed=1", m.Nodes, m.Edges), "--interval-blocks", "1",
		"--runs", "1", "--epochs", "4", "--probes", "16", "--epsilon", "0.000001", "--kmax", "12",
	}
	n.keepAt(boss.command, nil, append(args, append(n.keys, "--listen", boss.free(), "--gossip-listen", boss.free())...)...)
	for i := range m.Workers {
		args := append([]string{"worker", "--run", n.dir, "--quiet", "--memory", "1500MiB", "--threads", "1", "--listen", n.hosts[i+1].free()}, n.keys...)
		n.keepAt(n.hosts[i+1].command, nil, args...)
	}
	n.wg.Wait()
	if n.fails.Load() {
		t.FailNow()
	}
	var record struct {
		Stages []struct {
			Seconds float64 `json:"seconds"`
		} `json:"stages"`
	}
	decode(t, filepath.Join(n.folder, "run.json"), &record)
	for _, s := range record.Stages {
		m.Seconds += s.Seconds
	}
	m.Phases = phasesOf(t, filepath.Join(n.folder, "journal"))
}

// phasesOf reads a journal that was never compacted.
func phasesOf(t *testing.T, folder string) (phases []measuredPhase) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(folder, "*.json"))
	if err != nil || len(files) == 0 {
		t.Fatalf("a journal of %d records: %v", len(files), err)
	}
	slices.Sort(files)
	for _, file := range files {
		var record struct {
			Record struct {
				Events []struct {
					Fact, Stage, Task string
					Tasks             []struct {
						Part        string
						First, Last int
					}
					Outcome struct{ Report *struct{ Seconds float64 } }
				}
			}
		}
		decode(t, file, &record)
		for _, e := range record.Record.Events {
			switch {
			case e.Fact == "snapshot":
				t.Fatal("the journal was compacted: tasks are missing")
			case e.Fact == "phase":
				p := measuredPhase{Stage: e.Stage, Part: e.Tasks[0].Part}
				for _, x := range e.Tasks {
					p.Tasks = append(p.Tasks, measuredTask{First: x.First, Last: x.Last})
				}
				phases = append(phases, p)
			case e.Fact == "ended" && e.Outcome.Report != nil:
				p := &phases[len(phases)-1]
				for i, x := range p.Tasks {
					id := fmt.Sprintf("%s/%s/%d-%d", p.Stage, p.Part, x.First, x.Last)
					if id == e.Task || e.Task == p.Stage {
						p.Tasks[i].Seconds = e.Outcome.Report.Seconds
					}
				}
			}
		}
	}
	return phases
}
