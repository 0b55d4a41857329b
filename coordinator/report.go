package coordinator

import (
	"bytes"
	"context"
	_ "embed"
	"fmt"
	"html/template"
	"strings"

	"ndls/catalog"
	"ndls/estimate"
	"ndls/internal/control"
	"ndls/internal/mem"
	"ndls/internal/storage"
	"ndls/shards"
	"ndls/stage"
)

// Report is report.json.
type Report struct {
	Dataset DatasetReport `json:"dataset"`
	control.Findings
	Memory control.MemoryReport `json:"memory"`
	Stages []StageLine          `json:"stages"`
	// Losses lists the work that had to be done again because a worker was lost or
	// failed.
	Losses []Loss `json:"losses,omitempty"`
	// Absent lists the files that options have left out or removed.
	Absent []Absent `json:"absent,omitempty"`
}

// Absent is a folder whose files an option has left out or removed.
type Absent struct {
	Folder string `json:"folder"`
	// Option is the option as the command spells it, Why what it did.
	Option string `json:"option"`
	Why    string `json:"why"`
	// Bytes is what was removed, 0 where the files were not written.
	Bytes int64 `json:"bytes,omitempty"`
}

// absent lists what complete stages have left out or removed.
func absent(rec *Record, sum shards.Summary) (list []Absent) {
	if rec.Done(control.Partition) && rec.Plan.Partition.NoShards() {
		list = append(list, Absent{Folder: "graph/edges/", Option: "--shards none", Why: "edge shards were not written; ndls export --what edges reads the packed edges"})
	}
	if bytes := estimate.TileBytes(sum.Nodes, sum.Features, sum.HalfFeatures()); rec.Done(control.Smooth) && rec.Plan.DropFeatures && bytes > 0 {
		list = append(list, Absent{
			Folder: "graph/features/", Option: "--keep-features=false", Bytes: bytes,
			Why: "the input features were removed once they were smoothed; ndls partition --resume=false imports them again",
		})
	}
	if rec.Done(control.SmoothLabels) && rec.Done(control.Smooth) && rec.Plan.DropSmoothed {
		x := Absent{Folder: "smoothed/", Option: "--keep-smoothed=false", Why: "the smoothed rows were removed once labels were smoothed; ndls smooth --resume=false makes them again"}
		if stage.RowsKind(rec.Plan) == catalog.KindKeptHops {
			x.Folder = "hops/"
		}
		if rec.Plan.Smooth.Targets == control.AllTargets {
			x.Bytes = estimate.SmoothedBytes(rec.Plan, sum.Nodes, estimate.OutputOf(rec.Plan, sum.Features, len(sum.Classes)).Trained())
		}
		list = append(list, x)
	}
	return list
}

// DatasetReport describes the graph as imported; edges are undirected unless it is Directed.
type DatasetReport struct {
	Name       string `json:"name"`
	Nodes      int64  `json:"nodes"`
	Edges      int64  `json:"edges"`
	Directed   bool   `json:"directed,omitempty"`
	Features   int    `json:"features"`
	Classes    int    `json:"classes"`
	Components int64  `json:"components"`
	// Normalization says whether feature rows were normalised, and why, where the option was
	// auto.
	Normalization string `json:"normalization,omitempty"`
	// DroppedEdges is how many edges the import has left out at random, BlankedNodes how many
	// nodes have zeros in place of their features.
	DroppedEdges int64 `json:"dropped_edges,omitempty"`
	BlankedNodes int64 `json:"blanked_nodes,omitempty"`
}

// StageLine is what a stage took.
type StageLine struct {
	Name           control.Stage `json:"name"`
	Seconds        float64       `json:"seconds"`
	Passes         int           `json:"passes"`
	ColumnsPerPass int           `json:"columns_per_pass"`
	// EdgesPerSecond is directed edges of the passes over the seconds in them.
	EdgesPerSecond float64 `json:"edges_per_second"`
	BytesRead      int64   `json:"bytes_read"`
	BytesWritten   int64   `json:"bytes_written"`
	// NetworkBytes is what workers that share rows sent each other.
	NetworkBytes  int64 `json:"network_bytes,omitempty"`
	PeakBytes     int64 `json:"peak_bytes"`
	PeakDiskBytes int64 `json:"peak_disk_bytes"`
	// Busy says how many threads computed; with several workers, of each of them.
	Busy *control.Busy `json:"busy,omitempty"`
	// Planned is what was planned before the stage began, if it was.
	Planned *control.Figures `json:"planned,omitempty"`
}

// NewReport gathers the report of a run from its record and graph summary.
func NewReport(rec *Record, sum shards.Summary) Report {
	r := Report{
		Dataset: DatasetReport{
			Name: sum.Name, Nodes: sum.Nodes, Edges: sum.Edges, Directed: sum.Directed,
			Features: sum.Features, Classes: len(sum.Classes), Components: sum.Components,
			Normalization: sum.Normalization,
			DroppedEdges:  sum.Dropped, BlankedNodes: sum.Blanked,
		},
		Memory: control.MemoryReport{BudgetBytes: rec.MemoryBudget},
		Stages: []StageLine{}, Losses: rec.Losses, Absent: absent(rec, sum),
	}
	for _, x := range rec.Stages {
		if x.State != Complete {
			continue
		}
		line := StageLine{
			Name: x.Stage, Seconds: x.Seconds, Passes: x.Passes, ColumnsPerPass: x.ColumnsPerPass,
			BytesRead: x.BytesRead, BytesWritten: x.BytesWritten, NetworkBytes: x.NetworkBytes,
			PeakBytes: x.MeasuredPeak, PeakDiskBytes: x.MeasuredDisk, Busy: x.Busy, Planned: x.Planned,
		}
		if x.KernelSeconds > 0 {
			line.EdgesPerSecond = float64(x.EdgesStreamed) / x.KernelSeconds
		}
		r.Stages = append(r.Stages, line)
		r.Memory.PeakRSSBytes = max(r.Memory.PeakRSSBytes, x.MeasuredPeak)
		r.Findings = x.Or(r.Findings)
	}
	return r
}

// Write replaces report.json and report.html in s.
func (r Report) Write(ctx context.Context, s storage.Store) error {
	if err := replaceJSON(ctx, s, "report.json", r); err != nil {
		return fmt.Errorf("coordinator: writing report.json: %w", err)
	}
	var page bytes.Buffer
	if err := reportPage.Execute(&page, r); err != nil {
		return fmt.Errorf("coordinator: making report.html: %w", err)
	}
	if err := replace(ctx, s, "report.html", page.Bytes()); err != nil {
		return fmt.Errorf("coordinator: writing report.html: %w", err)
	}
	return nil
}

//go:embed report.html.tmpl
var reportText string

var reportPage = template.Must(template.New("report").Funcs(template.FuncMap{
	"bytes":   func(n int64) string { return mem.Bytes(n).String() },
	"percent": func(x float64) string { return fmt.Sprintf("%.2f", 100*x) },
	"share":   func(x *float64) string { return fmt.Sprintf("%.2f", 100**x) },
	"million": func(x float64) string { return fmt.Sprintf("%.1f", x/1e6) },
	"bars":    bars,
	"points":  points,
	"curve":   curve,
}).Parse(reportText))

// Size of the histogram in SVG units, and its largest number of bars.
const (
	plotWidth, plotHeight = 720, 200
	maxBars               = 120
)

// bar is one column of the histogram: nodes with From ≤ K ≤ To.
type bar struct {
	From, To, Nodes     int64
	X, Y, Width, Height float64
}

// bars bins the K histogram, which ascends, into at most maxBars columns.
func bars(l control.LSIReport) []bar {
	if len(l.Histogram) == 0 {
		return nil
	}
	largest := l.Histogram[len(l.Histogram)-1][0]
	span := largest/maxBars + 1
	out := make([]bar, largest/span+1)
	var tallest int64 = 1
	for _, h := range l.Histogram {
		b := &out[h[0]/span]
		b.Nodes += h[1]
		tallest = max(tallest, b.Nodes)
	}
	width := plotWidth / float64(len(out))
	for i := range out {
		b := &out[i]
		b.From, b.To = int64(i)*span, min(int64(i+1)*span-1, largest)
		b.Height = plotHeight * float64(b.Nodes) / float64(tallest)
		b.X, b.Y, b.Width = float64(i)*width, plotHeight-b.Height, 0.9*width
	}
	return out
}

// point is the validation accuracy of a depth in the plot.
type point struct {
	control.DepthAccuracy
	X, Y   float64
	Chosen bool
}

// points places the curve of label smoothing's depth: the lowest accuracy lies at the bottom
// of the plot, the highest at its top.
func points(d control.LabelDepthReport) (list []point) {
	if len(d.Curve) == 0 {
		return nil
	}
	low, high := d.Curve[0].Valid, d.Curve[0].Valid
	for _, x := range d.Curve {
		low, high = min(low, x.Valid), max(high, x.Valid)
	}
	for _, x := range d.Curve {
		p := point{DepthAccuracy: x, Y: plotHeight / 2, Chosen: x.Depth == d.Chosen}
		p.X = plotWidth * float64(x.Depth) / float64(max(d.Kmax, 1))
		if high > low {
			p.Y = plotHeight * (high - x.Valid) / (high - low)
		}
		list = append(list, p)
	}
	return list
}

// curve is the line through the points.
func curve(d control.LabelDepthReport) string {
	var line strings.Builder
	for _, p := range points(d) {
		fmt.Fprintf(&line, "%.2f,%.2f ", p.X, p.Y)
	}
	return line.String()
}
