package e2e

import (
	"cmp"
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
	Kind    string          `json:"kind"` // of what workers share: columns, rows, or both
	Bits    float64         `json:"bits"` // a second, of each cable; 0: as many as it can, without delay
	Workers int             `json:"workers"`
	Seconds float64         `json:"seconds"` // of all stages
	Phases  []measuredPhase `json:"phases"`
}

type measuredPhase struct {
	Stage string         `json:"stage"`
	Part  string         `json:"part"`
	Tasks []measuredTask `json:"tasks"`
}

// measuredTask is one task: what it has of its stage, as in control.Task, the seconds that it took, and the bytes of rows that
// its worker sent to others.
type measuredTask struct {
	Part         string  `json:"part,omitempty"` // where it is not that of the phase
	First        int     `json:"first"`
	Last         int     `json:"last"`
	FirstPanel   int     `json:"first_panel,omitempty"`
	LastPanel    int     `json:"last_panel,omitempty"`
	Seconds      float64 `json:"seconds"`
	NetworkBytes int64   `json:"network_bytes,omitempty"`
}

// is reports whether the task has an id.
func (x measuredTask) is(p measuredPhase, id string) bool {
	panels, part := "", cmp.Or(x.Part, p.Part)
	if x.LastPanel > 0 {
		panels = fmt.Sprintf("/panels/%d-%d", x.FirstPanel, x.LastPanel)
	}
	return id == p.Stage || id == fmt.Sprintf("%s/%s/%d-%d%s", p.Stage, part, x.First, x.Last, panels)
}

// scaledJob is the job that is measured. No node comes as near to the stationary state as its ε asks, so that all nodes take
// the largest number of hops.
func scaledJob(nodes, edges int64, features int) []string {
	return []string{
		"--dataset", fmt.Sprintf("synthetic:nodes=%d,edges=%d,features=%d,classes=8,seed=1", nodes, edges, features), "--interval-blocks", "1",
		"--runs", "1", "--epochs", "4", "--probes", "16", "--epsilon", "0.000001", "--kmax", "8", "--label-kmax", "8",
	}
}

// TestMeasureScaling runs the whole job on hosts of their own with cables of 200 Mb/s and 2 ms, where the network decides, and
// with cables that nothing slows down, where sending takes the processor. One worker, two, and four share columns, or rows, or
// both in groups of two. The test makes each run three times in turn. It writes how long each task took in the median one to the file that
// NDLS_SCALING names, and fails where the bytes are not those of one process.
// It takes a quarter of an hour, on a machine that does nothing else.
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
	want := wantOf(t, append(scaledJob(nodes, edges, measuredFeatures), "--quiet")...)
	kinds := []struct {
		workers int
		kind    string
		bits    float64
	}{
		{1, "columns", 2e8},
		{2, "columns", 2e8},
		{4, "columns", 2e8},
		{2, "rows", 2e8},
		{4, "rows", 2e8},
		{4, "both", 2e8},
		{2, "rows", 0},
		{4, "rows", 0},
		{4, "both", 0},
	}
	runs := make([][]measured, len(kinds))
	for round := range measuredRounds {
		for i, x := range kinds {
			m := measured{Nodes: nodes, Edges: edges, Kind: x.kind, Bits: x.bits, Workers: x.workers}
			t.Run(fmt.Sprintf("round %d %d nodes %d workers %s %.0f Mb a second", round, nodes, x.workers, x.kind, x.bits/1e6), func(t *testing.T) {
				m.run(t, scaledJob(nodes, edges, measuredFeatures), ways[x.kind], want)
				t.Logf("%.1f s", m.Seconds)
			})
			runs[i] = append(runs[i], m)
		}
	}
	var all []measured
	for _, list := range runs {
		slices.SortFunc(list, func(a, b measured) int { return cmp.Compare(a.Seconds, b.Seconds) })
		all = append(all, list[len(list)/2])
	}
	text, err := json.MarshalIndent(all, "", " ")
	if err == nil {
		err = os.WriteFile(file, append(text, '\n'), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// measuredRounds is the number of times that each run is made: the one with the median time counts.
const measuredRounds = 3

// measuredFeatures is the number of features of the measured graph.
const measuredFeatures = 64

// ways lists the options of the coordinator for each kind.
var ways = map[string][]string{
	"columns": {"--parallel", "columns"},
	"rows":    {"--parallel", "intervals"},
	"both":    {"--parallel", "grid", "--group-size", "2"},
}

// run executes the job, compares its files with want, and fills in what it took.
func (m *measured) run(t *testing.T, job, share []string, want map[string]string) {
	n := newNetwork(t, columns, m.Workers)
	if m.Bits > 0 {
		n.slow(2*time.Millisecond, m.Bits)
	}
	boss := n.hosts[0]
	args := append([]string{"coordinator", "--run", n.dir, "--quiet", "--workers", strconv.Itoa(m.Workers)}, job...)
	args = append(append(args, share...), n.keys...)
	n.keepAt(boss.command, nil, append(args, "--listen", boss.free(), "--gossip-listen", boss.free())...)
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
	n.end(m.Kind, want)
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
						FirstPanel  int `json:"first_panel"`
						LastPanel   int `json:"last_panel"`
					}
					Outcome struct {
						Report *struct {
							Seconds      float64
							NetworkBytes int64 `json:"network_bytes"`
						}
					}
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
					of := measuredTask{First: x.First, Last: x.Last, FirstPanel: x.FirstPanel, LastPanel: x.LastPanel}
					if x.Part != p.Part {
						of.Part = x.Part
					}
					p.Tasks = append(p.Tasks, of)
				}
				phases = append(phases, p)
			case e.Fact == "ended" && e.Outcome.Report != nil:
				p := &phases[len(phases)-1]
				for i, x := range p.Tasks {
					if x.is(*p, e.Task) {
						p.Tasks[i].Seconds, p.Tasks[i].NetworkBytes = e.Outcome.Report.Seconds, e.Outcome.Report.NetworkBytes
					}
				}
			}
		}
	}
	return phases
}
