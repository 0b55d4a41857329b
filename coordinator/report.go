package coordinator

import (
	"bytes"
	"context"
	"fmt"

	"ndls/catalog"
	"ndls/estimate"
	"ndls/internal/control"
	"ndls/internal/mem"
	"ndls/internal/storage"
	"ndls/plan"
	"ndls/report"
	"ndls/shards"
	"ndls/stage"
	"ndls/stage/registry"
)

// absent lists the files that complete stages have left out or removed.
func absent(rec *Record, sum shards.Summary) (list []report.Absent) {
	rows := stage.RowsKind(rec.Plan)
	made := func(kind string) bool { return rec.Done(registry.KindOf(kind).Stage) }
	if rec.Done(control.Partition) && rec.Plan.Partition.NoShards() {
		list = append(list, report.Absent{Folder: "graph/edges/", Option: "--shards none", Why: "edge shards were not written; ndls export --what edges reads the packed edges"})
	}
	if bytes := estimate.TileBytes(sum.Nodes, sum.Features, sum.HalfFeatures()); made(rows) && rec.Plan.DropFeatures &&
		bytes > 0 {
		list = append(list, report.Absent{
			Folder: "graph/features/", Option: "--keep-features=false", Bytes: bytes,
			Why: "the input features were removed once they were smoothed; ndls partition --resume=false imports them again",
		})
	}
	if made(catalog.KindPredictions) && made(rows) && rec.Plan.DropSmoothed {
		x := report.Absent{Folder: "smoothed/", Option: "--keep-smoothed=false", Why: "the smoothed rows were removed once labels were smoothed; ndls smooth --resume=false makes them again"}
		if rows == catalog.KindKeptHops {
			x.Folder = "hops/"
		}
		if rec.Plan.Smooth.Targets == plan.AllTargets {
			x.Bytes = estimate.SmoothedBytes(rec.Plan, sum.Nodes, estimate.OutputOf(rec.Plan, sum.Features, len(sum.Classes)).Trained())
		}
		list = append(list, x)
	}
	return list
}

// unfinished describes how far a run is that lacks stages. It returns nil for a complete run.
func unfinished(rec *Record) *report.Unfinished {
	missing := rec.missing()
	if len(missing) == 0 {
		return nil
	}
	return &report.Unfinished{Stages: missing, State: string(rec.State), Stopped: rec.Stopped, Reason: rec.Reason}
}

// NewReport makes the report of a run from its record and graph summary.
func NewReport(rec *Record, sum shards.Summary) report.Report {
	r := report.Report{
		Run: report.NewRun(rec.Plan, mem.Bytes(rec.MemoryBudget).Exact(), rec.Versions, rec.Host, rec.Inputs, rec.Named),
		Dataset: report.Dataset{
			Name: sum.Name, Nodes: sum.Nodes, Edges: sum.Edges, Directed: sum.Directed,
			Features: sum.Features, Classes: len(sum.Classes), Components: sum.Components,
			Normalization: sum.Normalization,
			DroppedEdges:  sum.Dropped, BlankedNodes: sum.Blanked,
		},
		Memory: control.MemoryReport{BudgetBytes: rec.MemoryBudget}, Limits: rec.Limits,
		Stages: []report.Stage{}, Losses: rec.Losses, Absent: absent(rec, sum),
	}
	r.Run.Finished = rec.Finished
	for _, x := range rec.Stages {
		if x.State != Complete {
			continue
		}
		line := report.Stage{
			Name: x.Stage, Seconds: x.Seconds, Passes: x.Passes, ColumnsPerPass: x.ColumnsPerPass,
			BytesRead: x.BytesRead, BytesWritten: x.BytesWritten, NetworkBytes: x.NetworkBytes,
			PeakBytes: x.MeasuredPeak, PeakDiskBytes: x.MeasuredDisk, Hops: x.Hops, Polynomials: x.Polynomials, Busy: x.Busy, Planned: x.Planned,
		}
		if x.KernelSeconds > 0 {
			line.EdgesPerSecond = float64(x.EdgesStreamed) / x.KernelSeconds
		}
		r.Stages = append(r.Stages, line)
		r.Memory.PeakRSSBytes = max(r.Memory.PeakRSSBytes, x.MeasuredPeak)
		r.Findings = x.Or(r.Findings)
	}
	r.Unfinished = unfinished(rec)
	r.Warnings = r.Warn()
	return r
}

// writeReport replaces report.json and report.html in s.
func writeReport(ctx context.Context, s storage.Store, r report.Report) error {
	if err := replaceJSON(ctx, s, "report.json", r); err != nil {
		return fmt.Errorf("coordinator: writing report.json: %w", err)
	}
	var page bytes.Buffer
	if err := report.Page(&page, report.Named{Report: r}); err != nil {
		return fmt.Errorf("coordinator: making report.html: %w", err)
	}
	if err := storage.Put(ctx, s.Create, "report.html", page.Bytes()); err != nil {
		return fmt.Errorf("coordinator: writing report.html: %w", err)
	}
	return nil
}
