package watch

import (
	"bytes"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/common/expfmt"

	"ndls/coordinator"
)

// registry has the metrics of the run, of this process and of the Go runtime.
func (w *watcher) registry() *prometheus.Registry {
	r := prometheus.NewRegistry()
	r.MustRegister(&collector{w}, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return r
}

// Metrics are the metrics of a run in the text format of Prometheus, as /metrics has them.
func Metrics(run Run, o Options) ([]byte, error) {
	w := newWatcher(run, o)
	families, err := w.registry().Gather()
	if err != nil {
		return nil, fmt.Errorf("watch: %w", err)
	}
	var text bytes.Buffer
	out := expfmt.NewEncoder(&text, expfmt.NewFormat(expfmt.TypeTextPlain))
	for _, f := range families {
		if err := out.Encode(f); err != nil {
			return nil, fmt.Errorf("watch: %w", err)
		}
	}
	return text.Bytes(), nil
}

// metric is a family of metrics.
type metric struct {
	desc *prometheus.Desc
	kind prometheus.ValueType
}

// families are all metrics, in the order of docs/watching.md.
var families []*prometheus.Desc

func family(kind prometheus.ValueType, name, help string, labels ...string) metric {
	d := prometheus.NewDesc(name, help, labels, nil)
	families = append(families, d)
	return metric{d, kind}
}

const (
	gauge   = prometheus.GaugeValue
	counter = prometheus.CounterValue
)

var (
	buildInfo     = family(gauge, "ndls_build_info", "1, with the versions of the program.", "version", "commit", "goversion")
	stageState    = family(gauge, "ndls_stage_state", "1 for the state of each stage.", "stage", "state")
	stageStopped  = family(gauge, "ndls_stage_stopped", "1 for a stage in which somebody has stopped the run; its state is FAILED.", "stage")
	stageSeconds  = family(gauge, "ndls_stage_seconds", "What a complete stage took.", "stage")
	stageElapsed  = family(gauge, "ndls_stage_elapsed_seconds", "Seconds since the stage under way began.")
	stageShare    = family(gauge, "ndls_stage_done_ratio", "Share of the stage under way that is done; absent where it is not known.")
	stageLeft     = family(gauge, "ndls_stage_left_seconds", "Seconds that the stage under way still takes; absent where that is not known.")
	jobLeft       = family(gauge, "ndls_job_left_seconds", "Seconds that all stages still take; absent where that is not known.")
	tasks         = family(gauge, "ndls_tasks", "Tasks of the present phase.", "stage", "phase", "state")
	workers       = family(gauge, "ndls_workers", "Workers that have given a sign of life lately.")
	losses        = family(counter, "ndls_losses_total", "Attempts at tasks that were lost or failed.")
	lostSeconds   = family(counter, "ndls_lost_seconds_total", "Seconds of work that had to be done again.")
	progressDone  = family(gauge, "ndls_progress_done", "What a worker has done of its present work.", "worker", "task", "unit")
	progressAll   = family(gauge, "ndls_progress_all", "What a worker's present work is in all, 0 if that is not known.", "worker", "task", "unit")
	progressSaved = family(gauge, "ndls_progress_saved", "What a worker's loss would not take away.", "worker", "task", "unit")
	edgeRate      = family(gauge, "ndls_edges_per_second", "Directed edges that the passes of a worker add in a second.", "worker")
	settledRatio  = family(gauge, "ndls_settled_ratio", "Share of the nodes that have their K, in the LSI stage under way.")
	workerUp      = family(gauge, "ndls_worker_up", "1 while a worker gives signs of life, else 0.", "worker")
	workerMemory  = family(gauge, "ndls_worker_memory_bytes", "Resident memory of a worker.", "worker")
	workerBudget  = family(gauge, "ndls_worker_memory_budget_bytes", "Memory that a worker may take.", "worker")
	workerThreads = family(gauge, "ndls_worker_threads", "Threads of a worker that compute.", "worker")
	workerDisk    = family(gauge, "ndls_worker_disk_bytes", "Temporary files of a worker, with the run directory where it is the only one.", "worker")
	workerEdges   = family(counter, "ndls_worker_edges_total", "Directed edges that the passes of a worker have added.", "worker")
	workerRows    = family(counter, "ndls_worker_row_bytes_total", "Bytes of rows that the passes of a worker have read for that.", "worker")
	workerRead    = family(counter, "ndls_worker_read_bytes_total", "Bytes that a worker has read of the run directory and of scratch files.", "worker")
	workerWritten = family(counter, "ndls_worker_written_bytes_total", "Bytes that a worker has written to the run directory and to scratch files.", "worker")
	workerLosses  = family(counter, "ndls_worker_losses_total", "What of the run was lost with a worker.", "worker")
	workerLimit   = family(gauge, "ndls_worker_limit_edges_per_second", "Directed edges a second past rows of 64 bytes from memory that a worker passes on all threads, as it has measured when it joined.", "worker")
	workerStore   = family(gauge, "ndls_worker_limit_read_bytes_per_second", "Bytes of the run directory that a worker reads in a second, as it has measured when it joined.", "worker")
	limitEdges    = family(gauge, "ndls_limit_edges_per_second", "Directed edges a second past rows of 64 bytes from memory that this host passes on all threads, as measured for the plan.")
	limitRead     = family(gauge, "ndls_limit_read_bytes_per_second", "Bytes of a file that this host reads in a second, as measured for the plan.")
	limitWritten  = family(gauge, "ndls_limit_written_bytes_per_second", "Bytes of a file that this host writes in a second, and makes durable, as measured for the plan.")
)

// collector gives the metrics of a run, as it is when they are asked for.
type collector struct{ *watcher }

// Describe implements prometheus.Collector.
func (*collector) Describe(to chan<- *prometheus.Desc) {
	for _, d := range families {
		to <- d
	}
}

// Collect implements prometheus.Collector.
func (c *collector) Collect(to chan<- prometheus.Metric) {
	put := func(m metric, value float64, labels ...string) {
		to <- prometheus.MustNewConstMetric(m.desc, m.kind, value, labels...)
	}
	s := c.state()
	put(buildInfo, 1, s.Versions["ndls"], s.Versions["commit"], s.Versions["go"])
	for _, x := range s.Stages {
		put(stageState, 1, string(x.Stage), string(x.State))
		if x.Stopped {
			put(stageStopped, 1, string(x.Stage))
		}
		if x.State == coordinator.Complete {
			put(stageSeconds, x.Seconds, string(x.Stage))
		}
	}
	if x := s.Course; x != nil {
		put(stageElapsed, x.Seconds)
		for m, value := range map[metric]*float64{stageShare: x.Share, stageLeft: x.Left, jobLeft: x.JobLeft} {
			if value != nil {
				put(m, *value)
			}
		}
	}
	for state, n := range map[string]int{"waiting": s.Tasks.Waiting, "running": s.Tasks.Running, "done": s.Tasks.Done} {
		put(tasks, float64(n), string(s.Stage), string(s.Phase), state)
	}
	here := 0
	for _, x := range s.Workers {
		if x.Here {
			here++
		}
		put(workerUp, bit(x.Here), x.Name)
		put(workerBudget, float64(x.Memory), x.Name)
		put(workerThreads, float64(x.Threads), x.Name)
		put(workerLosses, float64(x.Losses), x.Name)
		put(workerMemory, float64(x.Usage.Memory), x.Name)
		put(workerRead, float64(x.Usage.Read), x.Name)
		put(workerWritten, float64(x.Usage.Written), x.Name)
		put(workerDisk, float64(x.Usage.Disk), x.Name)
		put(workerEdges, float64(x.Usage.Edges), x.Name)
		put(workerRows, float64(x.Usage.Rows), x.Name)
		put(edgeRate, x.Speed.Edges, x.Name)
		if x.Rates.Edges > 0 {
			put(workerLimit, x.Rates.Edges, x.Name)
		}
		if x.Rates.Store > 0 {
			put(workerStore, x.Rates.Store, x.Name)
		}
		if x.Task == "" {
			continue
		}
		p := x.Progress
		put(progressDone, float64(p.Done), x.Name, x.Task, p.Unit)
		put(progressAll, float64(p.Total), x.Name, x.Task, p.Unit)
		put(progressSaved, float64(p.Saved), x.Name, x.Task, p.Unit)
	}
	if l := s.Limits; l != nil {
		put(limitEdges, l.Edges)
		put(limitRead, l.Read)
		put(limitWritten, l.Written)
	}
	put(workers, float64(here))
	put(losses, float64(len(s.Losses)))
	put(lostSeconds, s.SecondsLost)
	if n := len(s.Settled); n > 0 {
		put(settledRatio, s.Settled[n-1].Share)
	}
}

func bit(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
