package report

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"ndls/internal/byhop"
	"ndls/internal/control"
	"ndls/plan"
)

// MaxRows is the largest number of lines of a table of a report.
const MaxRows = control.MaxLines

// Report is report.json.
type Report struct {
	// Run describes what ran: absent in reports of earlier versions.
	Run     *Run    `json:"run,omitempty"`
	Dataset Dataset `json:"dataset"`
	control.Findings
	Memory control.MemoryReport `json:"memory"`
	// Limits holds the limits of the host, nil if they were not measured.
	Limits *control.Limits `json:"limits,omitempty"`
	Stages []Stage         `json:"stages"`
	// Warnings lists what a user should know before trusting the results.
	Warnings []string `json:"warnings,omitempty"`
	// Losses lists the work that had to be done again because a worker was lost or
	// failed.
	Losses []control.Loss `json:"losses,omitempty"`
	// Unfinished says how far the run is where stages that were asked for are not complete.
	Unfinished *Unfinished `json:"unfinished,omitempty"`
	// Absent lists the files that options have left out or removed.
	Absent []Absent `json:"absent,omitempty"`
}

// Unfinished is how a run stands that is not complete.
type Unfinished struct {
	// Stages are those that were asked for and are not complete.
	Stages []control.Stage `json:"stages"`
	// State is the state in run.json. Reason says why it is FAILED, Stopped that nothing has
	// failed: somebody has stopped the run, and the same command continues it.
	State   string `json:"state"`
	Reason  string `json:"reason,omitempty"`
	Stopped bool   `json:"stopped,omitempty"`
}

// Run describes what ran, and on what.
type Run struct {
	// Command does the same again, in another run directory.
	Command string `json:"command"`
	// Options are all options that decide the bytes of results, by name; Changed lists those
	// that are not the defaults.
	Options map[string]string `json:"options"`
	Changed []string          `json:"changed"`
	// PlanHash stands for all options: runs with the same one, of the same input files, have the
	// same bytes.
	PlanHash string `json:"plan_hash"`
	// Versions of what wrote the run directory last: ndls, go, commit.
	Versions map[string]string `json:"versions"`
	// Finished is the time when the last requested stage was complete; zero in reports of earlier
	// versions.
	Finished time.Time `json:"finished,omitzero"`
	// Host describes the host of the process that wrote the run directory last: in a cluster, the
	// coordinator's. It is absent in reports of earlier versions.
	Host *control.Host `json:"host,omitempty"`
	// Inputs are the files that were read; a graph that is generated has none.
	Inputs []control.InputFile `json:"inputs,omitempty"`
}

// NewRun describes a run: its plan, the memory that it had, such as "16GiB", the versions of what wrote it and its host, the files
// that it has read, and the names that commands gave to files and folders.
func NewRun(p plan.Options, memory string, versions map[string]string, host *control.Host, inputs []control.InputFile,
	named control.Inputs,
) *Run {
	r := &Run{Options: p.Values(), Changed: []string{}, PlanHash: p.Hash(), Versions: versions, Host: host, Inputs: inputs}
	standard := plan.Default().Values()
	for _, name := range slices.Sorted(maps.Keys(r.Options)) {
		if r.Options[name] != standard[name] {
			r.Changed = append(r.Changed, name)
		}
	}
	words, flags := []string{"ndls run --run DIR --memory " + memory}, named.Flags()
	for _, name := range r.Changed {
		words = append(words, "--"+name+"="+Quoted(cmp.Or(flags[name], r.Options[name])))
	}
	r.Command = strings.Join(words, " ")
	return r
}

// Quoted returns a word as a shell takes it.
func Quoted(word string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_./:,=@%+", r)
	}
	if word != "" && strings.IndexFunc(word, func(r rune) bool { return !plain(r) }) < 0 {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// Dataset describes the graph as imported; edges are undirected unless it is Directed.
type Dataset struct {
	Name       string `json:"name"`
	Nodes      int64  `json:"nodes"`
	Edges      int64  `json:"edges"`
	Directed   bool   `json:"directed,omitempty"`
	Features   int    `json:"features"`
	Classes    int    `json:"classes"`
	Components int64  `json:"components"`
	// Normalization reports whether feature rows were normalised, and why, where the option was
	// auto.
	Normalization string `json:"normalization,omitempty"`
	// DroppedEdges is the number of edges that the import has left out at random, BlankedNodes the
	// number of nodes with zeros in place of their features.
	DroppedEdges int64 `json:"dropped_edges,omitempty"`
	BlankedNodes int64 `json:"blanked_nodes,omitempty"`
}

// Stage holds the cost of a stage.
type Stage struct {
	Name           control.Stage `json:"name"`
	Seconds        float64       `json:"seconds"`
	Passes         int           `json:"passes"`
	ColumnsPerPass int           `json:"columns_per_pass"`
	// EdgesPerSecond is directed edges of the passes over the seconds in them.
	EdgesPerSecond float64 `json:"edges_per_second"`
	BytesRead      int64   `json:"bytes_read"`
	BytesWritten   int64   `json:"bytes_written"`
	// NetworkBytes counts the bytes that workers that share rows sent each other.
	NetworkBytes  int64 `json:"network_bytes,omitempty"`
	PeakBytes     int64 `json:"peak_bytes"`
	PeakDiskBytes int64 `json:"peak_disk_bytes"`
	// Hops says what the passes of each hop took.
	Hops byhop.List `json:"hops,omitempty"`
	// Polynomials says how few passes took the place of hops, if they did.
	Polynomials *control.Polynomials `json:"polynomials,omitempty"`
	// Busy says how many threads computed; with several workers, of each of them.
	Busy *control.Busy `json:"busy,omitempty"`
	// Planned is the plan before the stage began, if there was one.
	Planned *control.Figures `json:"planned,omitempty"`
}

// Absent is a folder whose files an option has left out or removed.
type Absent struct {
	Folder string `json:"folder"`
	// Option is the option as the command spells it, Why what it did.
	Option string `json:"option"`
	Why    string `json:"why"`
	// Bytes is the number of removed bytes, 0 if the files were not written.
	Bytes int64 `json:"bytes,omitempty"`
}
