package report_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"ndls/internal/byhop"
	"ndls/internal/control"
	"ndls/plan"
	"ndls/report"
)

func value(x float64) *float64 { return &x }

// full is a report that has every part, of a run with two splits.
func full() report.Report {
	spread := &control.Spread{Mean: 0.81, Std: 0.02, BetweenModels: 0.0031, BetweenSplits: 0.0177}
	r := report.Report{Dataset: report.Dataset{Name: "g", Nodes: 1234567, Edges: 5, Components: 2, Normalization: "auto chose l1: few"}}
	p := plan.Default()
	p.Partition.Dataset = "planetoid:cora"
	p.LSI.Epsilon = 0.07
	r.Run = report.NewRun(p, "2GiB", map[string]string{"ndls": "1", "go": "2"}, &control.Host{CPU: "A&B", Processors: 2, Memory: 3 << 30, MemoryLimit: 1 << 30, KernelRelease: "6.1"}, []control.InputFile{{Path: "a&b", Size: 7, Digest: "xxh3-256k:00ff"}}, control.Inputs{Dataset: "planetoid:it's here/cora"})
	r.Accuracy = &control.AccuracyReport{
		Base: control.SplitAccuracy{Train: spread, Test: spread}, Smoothed: control.SplitAccuracy{Test: spread}, Runs: 1, Splits: 2,
		Metrics: control.Metrics[*control.Spread]{
			Base:     control.Measures[*control.Spread]{MacroF1: control.SplitAccuracy{Train: spread, Test: spread}, AUC: control.SplitAccuracy{Test: &control.Spread{Mean: 0.9377}}},
			Smoothed: control.Measures[*control.Spread]{AUC: control.SplitAccuracy{Test: &control.Spread{Mean: 0.9388}}},
		},
		Models: []control.ModelAccuracy{
			{Base: control.OfSplits[*float64]{Test: value(0.8123)}, Epochs: 70, BestEpoch: 20, Curve: []control.LearningPoint{{Epoch: 1, Loss: 1.5, Valid: 0.25}, {Epoch: 70, Loss: 0.5, Valid: 0.75}}},
			{Split: 1, Base: control.OfSplits[*float64]{Test: value(0.8077)}, Epochs: 90, BestEpoch: 40},
		},
		Classes: []control.ClassFigures{{Class: "<b>", Nodes: 77, Precision: 0.5, Recall: 0.25, F1: 1. / 3}},
		Breakdown: &control.BreakdownReport{
			Degrees: []control.RangeRight{{From: 2, To: 3, Nodes: 10, Right: 5}}, K: []control.RangeRight{{From: 4, To: 4, Nodes: 3, Right: 1}},
			Confusion: control.ConfusionReport{Classes: []string{"<b>"}, Others: 3, Counts: [][]int64{{50, 27}, {1, 2}}},
		},
		Warnings: []string{"give more --epochs"},
	}
	r.LSI = &control.LSIReport{
		Mode: "influence", Probes: 64, Epsilon: 0.07, Kmax: 9, Stationary: "global", Mean: 2.5, Max: 9, CappedShare: 0.02,
		Histogram: [][2]int64{{1, 30}, {9, 10}},
		ByDegree:  []control.DegreeK{{From: 1, To: 1, Nodes: 40, Mean: 3, Tenth: 1, Median: 1, Ninetieth: 9}},
		Sample:    []control.SampledNode{{Node: "</script>", Degree: 3, K: 1, Distance: []float64{0.5, 0.01}}},
	}
	r.LabelDepth = &control.LabelDepthReport{Chosen: 1, Kmax: 2, ValidationNodes: 9, Curve: []control.DepthAccuracy{{Depth: 0, Valid: 0.5, Mean: 0.5}, {Depth: 1, Valid: 0.75, Mean: 0.7}}}
	r.Stages = []report.Stage{{Name: control.LSI, Seconds: 3, PeakBytes: 1 << 20, Planned: &control.Figures{Seconds: 2}, BytesRead: 3e9, Hops: byhop.List{{Hop: 1, Passes: 4, Edges: 100e6, Seconds: 2, Rows: 6.4e9, Read: 2e9, Written: 5e8}, {Hop: 2, Passes: 4, Edges: 100e6, Seconds: 1, Rows: 6.4e9}}}}
	r.Limits = &control.Limits{Threads: 2, Edges: 125e6, Read: 2e9, Written: 1e9}
	r.Memory = control.MemoryReport{BudgetBytes: 2 << 30, PeakRSSBytes: 1 << 20}
	r.Losses = []control.Loss{{Task: "smooth", Worker: "w1", Reason: "lease", SecondsLost: 4}}
	r.Absent = []report.Absent{{Folder: "graph/features/", Option: "--keep-features=false", Why: "they were removed", Bytes: 3 << 20}}
	r.Warnings = r.Warn()
	return r
}

func page(t *testing.T, runs ...report.Named) string {
	t.Helper()
	var b bytes.Buffer
	if err := report.Page(&b, runs...); err != nil {
		t.Fatal(err)
	}
	report.SamePage(t, runs...)
	return b.String()
}

// TestPage has the figures of every part on the page, escapes names, and asks no other host.
func TestPage(t *testing.T) {
	text := page(t, report.Named{Report: full()})
	for _, want := range []string{
		"2 splits with 1 model each", "0.31 between models of the same split and 1.77 between splits", "auto chose l1: few", "1\u202f234\u202f567 nodes",
		"<td>1</td><td>0</td><td>40 of 90</td>", "<td>80.77</td>", "<td>93.77</td>", "<td>93.88</td>",
		`<th scope="row">&lt;b&gt;</th><td>77</td><td>50.00</td><td>25.00</td><td>33.33</td>`, "macro F1 before label smoothing", "<li>give more <span class=\"option\">--epochs</span>.</li>",
		"2.0 % of the nodes did not come within ε = 0.07", `<span class="option">--stationary</span> component`,
		`<td class="text">graph/features/</td><td class="text">--keep-features=false</td><td>3.0 MiB</td>`,
		"ndls run \\\n  --run DIR \\\n", "--dataset=&#39;planetoid:it&#39;\\&#39;&#39;s here/cora&#39; \\\n  --epsilon=0.07", "xxh3-256k:00ff", "a&amp;b",
		"Written on a host with A&amp;B, 2 processors, 3.0 GiB of memory, 1.0 GiB of it for its control group, Linux 6.1.",
		`id="k-histogram"`, `id="k-cdf"`, `id="k-degree"`, `id="distances"`, `id="depth"`, `id="loss"`, `id="valid"`, `id="right-degree"`, `id="right-k"`, `id="hops-lsi"`, `id="rows-lsi"`, `id="disk-lsi"`, `<th scope="col">read, GB</th><th scope="col">written, GB</th>`, "limit of the host",
		`<td class="text">rows read by passes</td><td>4.27</td><td>8</td><td>53.33</td>`, `<td class="text">read from the disk</td><td>1</td><td>2</td><td>50.00</td>`,
		`<tr><th scope="row">1</th><td>–</td><td>–</td><td>80.77</td><td>–</td><td>–</td><td>–</td></tr>`,
		`<td data-v="75">75</td>`, "node &lt;/script&gt;, degree 3, K = 1", `class="right"`, "3 others",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	if strings.Contains(text, "</script>,") || strings.Contains(text, "<b>") {
		t.Error("the page has names that are not escaped")
	}
	for _, other := range []string{"src=", `href="http`, "url(", "@import", "fetch("} {
		if strings.Contains(text, other) {
			t.Errorf("the page has %q: it must need no other file", other)
		}
	}
	if text != page(t, report.Named{Report: full()}) {
		t.Error("the same report makes pages of other bytes")
	}
}

// TestPageNext has the command for each thing that a run has, and no other.
func TestPageNext(t *testing.T) {
	valid := control.SplitAccuracy{Valid: &control.Spread{Mean: 0.5}}
	for _, c := range []struct {
		command string
		run     report.Named
	}{
		{"ndls run --run DIR", report.Named{Report: report.Report{Unfinished: &report.Unfinished{State: "RUNNING"}}}},
		{"ndls explain DIR --node ID", report.Named{Report: report.Report{Findings: control.Findings{LSI: &control.LSIReport{}}}}},
		{"ndls export DIR --what predictions", report.Named{Report: report.Report{Stages: []report.Stage{{Name: control.SmoothLabels}}}}},
		{"import ndls", report.Named{Report: report.Report{Stages: []report.Stage{{Name: control.Smooth}}}}},
		{"ndls tune --dataset URI", report.Named{Report: report.Report{Findings: control.Findings{Accuracy: &control.AccuracyReport{Base: valid}}}}},
	} {
		next := c.run.Next()
		if len(next) != 1 || !strings.Contains(next[0].Command, c.command) {
			t.Errorf("%q is not all that is next: %v", c.command, next)
		}
	}
	text := page(t, report.Named{Report: full()})
	for _, want := range []string{`<a href="#next">`, "<dt>See why a node has its K and its prediction.</dt><dd><code>ndls explain DIR --node ID</code></dd>"} {
		if !strings.Contains(text, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
}

// TestPageWithoutParts makes the page of a run that is no further than its graph.
func TestPageWithoutParts(t *testing.T) {
	r := report.Report{Dataset: report.Dataset{Name: "g", Nodes: 3}, Stages: []report.Stage{{Name: control.Partition}}}
	text := page(t, report.Named{Report: r})
	for _, part := range []string{`id="results"`, `id="next"`, `id="training"`, `id="k"`, "<figure"} {
		if strings.Contains(text, part) {
			t.Errorf("the page of a partition has %s", part)
		}
	}
}

// TestPageOfSeveral sets runs side by side: their options that differ, and a series of each in charts.
func TestPageOfSeveral(t *testing.T) {
	a, b := full(), full()
	b.Run.Options["epsilon"], b.Run.Options["kmax"] = "0.01", "77"
	b.LSI.Histogram = [][2]int64{{2, 40}}
	text := page(t, report.Named{Name: "runs/a", Report: a}, report.Named{Name: "runs/b", Report: b})
	for _, want := range []string{
		`<th scope="col">runs/a</th><th scope="col">runs/b</th>`, "Options that differ",
		`<th scope="row" class="option">--kmax</th><td class="text">`, `<td class="text">77</td>`,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the page of two runs lacks %q", want)
		}
	}
	if strings.Contains(text, `id="distances"`) {
		t.Error("the page of two runs has the distances of single nodes")
	}
}

// TestSizeIsBounded has many classes, models and hops, and a page that is not large.
func TestSizeIsBounded(t *testing.T) {
	r := full()
	r.Accuracy.Classes, r.Accuracy.Models, r.LSI.Histogram = nil, nil, nil
	for c := range 10000 {
		r.Accuracy.Classes = append(r.Accuracy.Classes, control.ClassFigures{Class: fmt.Sprint("class ", c), Nodes: int64(c)})
	}
	for k := range 30000 {
		r.LSI.Histogram = append(r.LSI.Histogram, [2]int64{int64(k), 1})
	}
	r.LSI.Max = 29999
	for m := range 100 {
		r.Accuracy.Models = append(r.Accuracy.Models, control.ModelAccuracy{Run: m})
	}
	text := page(t, report.Named{Report: r})
	if len(text) > 1<<20 {
		t.Errorf("the page has %d bytes", len(text))
	}
	if !strings.Contains(text, "9750 smaller classes are in report.json") || !strings.Contains(text, "class 9999") || strings.Contains(text, "class 9749<") {
		t.Error("the page does not have the 250 largest classes, or does not say that there are more")
	}
	if lines := strings.Count(text[strings.Index(text, `id="k-histogram"`):strings.Index(text, `id="k-cdf"`)], `<th scope="row"`); lines > report.MaxRows || !strings.Contains(text, ">0–119<") {
		t.Errorf("the histogram has %d lines, or does not put values of K together", lines)
	}
}

// TestReportOfEarlierVersions reads a report.json that lacks what is new.
func TestReportOfEarlierVersions(t *testing.T) {
	var r report.Report
	if err := json.Unmarshal([]byte(`{"dataset":{"name":"g"},"memory":{},"stages":[{"name":"lsi","seconds":1}],"lsi":{"mode":"feature","max":2,"histogram":[[2,5]]}}`), &r); err != nil {
		t.Fatal(err)
	}
	text := page(t, report.Named{Report: r})
	if !strings.Contains(text, `id="k-histogram"`) || strings.Contains(text, "The same again") || strings.Contains(text, "Linux") {
		t.Error("the page of an earlier report is not right")
	}
}

// TestWarn warns of what should not be trusted, and of nothing else.
func TestWarn(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*report.Report)
		want   string
	}{
		"capped":     {func(r *report.Report) { r.LSI.CappedShare = 0.5 }, "50.0 % of the nodes"},
		"few capped": {func(r *report.Report) { r.LSI.CappedShare = 0.001 }, ""},
		"components": {func(r *report.Report) { r.Dataset.Components, r.LSI.Stationary = 2, "global" }, "2 components"},
		"validation": {func(r *report.Report) { r.LabelDepth = &control.LabelDepthReport{} }, "no validation node"},
		"memory":     {func(r *report.Report) { r.Memory = control.MemoryReport{BudgetBytes: 1, PeakRSSBytes: 2} }, "more than the budget"},
		"stopped": {func(r *report.Report) {
			r.Unfinished = &report.Unfinished{Stages: []control.Stage{control.Train, control.Predict}, State: "FAILED", Stopped: true, Reason: "by the user"}
		}, "the run was stopped, and lacks train, predict: by the user"},
		"failed": {func(r *report.Report) {
			r.Unfinished = &report.Unfinished{Stages: []control.Stage{control.Train}, State: "FAILED", Reason: "disk"}
		}, "the run has failed, and lacks train: disk"},
		"running": {func(r *report.Report) {
			r.Unfinished = &report.Unfinished{Stages: []control.Stage{control.Train}, State: "RUNNING"}
		}, "the run is not complete, and lacks train"},
		"nothing": {func(*report.Report) {}, ""},
	} {
		r := report.Report{Dataset: report.Dataset{Components: 1}}
		r.LSI = &control.LSIReport{Stationary: "component", Epsilon: 0.1}
		c.change(&r)
		got := strings.Join(r.Warn(), "; ")
		if (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// TestNumbers are read on pages as they are in report.json.
func TestNumbers(t *testing.T) {
	r := full()
	r.Accuracy.Models[0].Curve[0].Loss = math.Pi
	if text := page(t, report.Named{Report: r}); !strings.Contains(text, `<td data-v="3.141592653589793">3.14</td>`) {
		t.Error("a chart does not have the whole number, or its table not a short one")
	}
}

// TestRanges: what holds for a range is a bar over all of it, with its name and its number of nodes, and ranges of several
// runs that only begin at the same place stay apart.
func TestRanges(t *testing.T) {
	r := full()
	r.Accuracy.Breakdown.K = []control.RangeRight{{From: 0, To: 5, Nodes: 300, Right: 150}, {From: 6, To: 12, Nodes: 1500, Right: 1200}}
	text := page(t, report.Named{Report: r})
	chart := text[strings.Index(text, `id="right-k"`):]
	chart = chart[:strings.Index(chart, "</figure>")]
	for _, want := range []string{
		`data-kind="ranges"`, "data-zero", `<th scope="col">right, %</th><th scope="col" data-count>nodes</th>`,
		`<th scope="row" data-v="0" data-to="5">0–5</th><td data-v="50">50</td><td data-v="300">300</td>`,
		`<th scope="row" data-v="6" data-to="12">6–12</th><td data-v="80">80</td><td data-v="1500">1500</td>`,
	} {
		if !strings.Contains(chart, want) {
			t.Errorf("the chart by K lacks %q:\n%s", want, chart)
		}
	}
	for _, id := range []string{"right-degree", "k-degree"} {
		if !strings.Contains(text, `id="`+id+`" data-kind="ranges"`) {
			t.Errorf("%s draws ranges as points", id)
		}
	}
	other := full()
	other.Accuracy.Breakdown.K = []control.RangeRight{{From: 0, To: 12, Nodes: 100, Right: 90}}
	text = page(t, report.Named{Name: "a", Report: r}, report.Named{Name: "b", Report: other})
	chart = text[strings.Index(text, `id="right-k"`):]
	for _, want := range []string{
		`<th scope="col">a</th><th scope="col">b</th><th scope="col" data-count>a, nodes</th><th scope="col" data-count>b, nodes</th>`,
		`data-to="5">0–5</th><td data-v="50">50</td><td data-v="">–</td><td data-v="300">300</td><td data-v="">–</td>`,
		`data-to="12">0–12</th><td data-v="">–</td><td data-v="90">90</td><td data-v="">–</td><td data-v="100">100</td>`,
	} {
		if !strings.Contains(chart, want) {
			t.Errorf("the chart of two runs lacks %q", want)
		}
	}
}

// TestWhen: the page says when a run was complete and how long it took, and folds what few read.
func TestWhen(t *testing.T) {
	r := full()
	r.Run.Finished = time.Date(2026, 3, 4, 15, 6, 7, 0, time.UTC)
	text := page(t, report.Named{Report: r})
	for _, want := range []string{"Finished 4 March 2026, 15:06 UTC; 3.0 s in all stages.", `<details class="hops"><summary>`, `<table class="results">`, `class="option">--epsilon`} {
		if !strings.Contains(text, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
}
