package ndls_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/apache/arrow/go/v14/arrow/array"

	"ndls"
	"ndls/dataset"
	"ndls/internal/mem"
	"ndls/internal/testprogram"
)

const toy = "synthetic:nodes=600,edges=2400,features=20,classes=3,seed=1"

// quick is a whole run that takes a moment.
func quick(dir string) ndls.Config {
	return ndls.Config{
		Run: dir, Dataset: toy, Resources: ndls.Resources{Memory: 512 << 20, Threads: 2},
		Options: func(o *ndls.Options) { o.Train.Epochs, o.Train.Runs = 10, 1 },
	}
}

// Smoothed features whose input features are gone are not discarded: they could not be made
// again. An import makes them again.
func TestDiscardWithoutFeatures(t *testing.T) {
	c := quick(filepath.Join(t.TempDir(), "run"))
	c.Options = func(o *ndls.Options) { o.DropFeatures = true }
	stages := []ndls.Stage{ndls.StagePartition, ndls.StageLSI, ndls.StageSmooth}
	if _, err := ndls.Run(t.Context(), c, stages...); err != nil {
		t.Fatal(err)
	}
	smoothed := filepath.Join(c.Run, "smoothed", "part-00000.arrow")
	before, err := os.ReadFile(smoothed)
	if err != nil {
		t.Fatal(err)
	}
	again := c
	again.Dataset, again.Discard = "", true
	for _, drop := range []bool{false, true} {
		for _, mode := range []string{"influence-sketch", "feature"} {
			again.Options = func(o *ndls.Options) { o.DropFeatures, o.LSI.Mode = drop, mode }
			_, err := ndls.Run(t.Context(), again, ndls.StageLSI)
			if err == nil || errors.Is(err, ndls.ErrCorrupt) || !strings.Contains(err.Error(), "reads the input features") || !strings.Contains(err.Error(), "ndls partition --dataset URI") {
				t.Errorf("drop %v, %s: %v", drop, mode, err)
			}
		}
	}
	if after, err := os.ReadFile(smoothed); err != nil || !bytes.Equal(after, before) {
		t.Errorf("smoothed features were changed: %v", err)
	}
	again.Dataset = c.Dataset
	again.Options = func(o *ndls.Options) { o.DropFeatures = false }
	if _, err := ndls.Run(t.Context(), again, stages...); err != nil {
		t.Fatal(err)
	}
	if after, err := os.ReadFile(smoothed); err != nil || !bytes.Equal(after, before) {
		t.Errorf("smoothed features are not those of before: %v", err)
	}
}

// Without edge shards, the edges are exported as with them, byte by byte, and verify finds no
// damage. The report says what is not there.
func TestEdgesWithoutShards(t *testing.T) {
	ctx := t.Context()
	for _, dataset := range []string{toy, toy + ",weights=5"} {
		exported := map[string][]byte{}
		for _, written := range []string{"", "none"} {
			c := quick(filepath.Join(t.TempDir(), "run"))
			c.Dataset = dataset
			c.Options = func(o *ndls.Options) { o.Partition.Shards, o.DropFeatures = written, true }
			d, err := ndls.Run(ctx, c, ndls.StagePartition, ndls.StageLSI, ndls.StageSmooth)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := d.Verify(ctx, ndls.Part{}); err != nil {
				t.Errorf("%s %q: %v", dataset, written, err)
			}
			report, err := d.Report(ctx)
			if err != nil {
				t.Fatal(err)
			}
			var absent []string
			for _, x := range report.Absent {
				absent = append(absent, x.Folder)
			}
			want := []string{"graph/edges/", "graph/features/"}
			if written == "" {
				want = want[1:]
			}
			if !slices.Equal(absent, want) {
				t.Errorf("%s %q: the report says that %v are absent, want %v", dataset, written, absent, want)
			}
			for _, x := range want {
				if left, err := filepath.Glob(filepath.Join(c.Run, x, "*")); err != nil || len(left) > 0 {
					t.Errorf("%s %q: %v, %v", dataset, written, left, err)
				}
			}
			graph, err := d.Graph(ctx)
			if err != nil {
				t.Fatal(err)
			}
			rows := int64(0)
			for batch, err := range d.Records(ctx, "edges") {
				if err != nil {
					t.Fatal(err)
				}
				rows += batch.NumRows()
			}
			if rows != 2*graph.Edges || rows == 0 {
				t.Errorf("%s %q: %d records of %d edges", dataset, written, rows, graph.Edges)
			}
			for _, format := range ndls.Formats() {
				var text bytes.Buffer
				if _, err := d.Export(ctx, ndls.ExportOptions{What: "edges", Format: format, To: &text}); err != nil {
					t.Fatalf("%s %q %s: %v", dataset, written, format, err)
				}
				if want, ok := exported[format]; ok && !bytes.Equal(text.Bytes(), want) {
					t.Errorf("%s %s: other bytes without shards", dataset, format)
				}
				if format == "csv" {
					partsAreTheWhole(t, d, "edges", text.Bytes())
				}
				exported[format] = text.Bytes()
			}
			if written == "" {
				continue
			}
			// A hop stream that is gone is damage here, and the import makes it again.
			if err := os.Remove(filepath.Join(c.Run, "graph", "hops", "part-00000.hops")); err != nil {
				t.Fatal(err)
			}
			if _, err := d.Verify(ctx, ndls.Part{}); !errors.Is(err, ndls.ErrCorrupt) || !strings.Contains(err.Error(), "ndls partition --dataset URI") {
				t.Errorf("%s: a hop stream is gone: %v", dataset, err)
			}
		}
	}
}

// partsAreTheWhole exports an artifact as CSV in parts, and compares them, without their headers, with the whole.
func partsAreTheWhole(t *testing.T, d *ndls.Directory, what string, whole []byte) {
	t.Helper()
	head, _, _ := bytes.Cut(whole, []byte("\n"))
	all := append(slices.Clone(head), '\n')
	for i := 1; i <= 5; i++ {
		var text bytes.Buffer
		if _, err := d.Export(t.Context(), ndls.ExportOptions{What: what, Format: "csv", To: &text, Part: ndls.Part{I: i, N: 5}}); err != nil {
			t.Fatal(err)
		}
		first, rows, _ := bytes.Cut(text.Bytes(), []byte("\n"))
		if !bytes.Equal(first, head) {
			t.Errorf("part %d of %s begins with %q", i, what, first)
		}
		all = append(all, rows...)
	}
	if !bytes.Equal(all, whole) {
		t.Errorf("the parts of %s are not the whole", what)
	}
}

// Parts of graphs with text ids, and of edges with directions, are the whole.
func TestPartsOfAllGraphs(t *testing.T) {
	rows := "src,dst\n"
	for i := range 500 {
		rows += fmt.Sprintf("%d,%d\n", i*i%97, i*7%89)
	}
	edges := filepath.Join(t.TempDir(), "edges.csv")
	if err := os.WriteFile(edges, []byte(rows), 0o644); err != nil {
		t.Fatal(err)
	}
	for name, dataset := range map[string]string{
		"text ids":   writeTables(t, func(i int) string { return fmt.Sprintf("user %04d", i) }),
		"directions": "edges:" + edges + "?directed=true",
	} {
		c := quick(filepath.Join(t.TempDir(), "run"))
		c.Dataset = dataset
		d, err := ndls.Run(t.Context(), c, ndls.StagePartition)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		for _, what := range []string{"nodes", "edges"} {
			var whole bytes.Buffer
			if _, err := d.Export(t.Context(), ndls.ExportOptions{What: what, Format: "csv", To: &whole}); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			partsAreTheWhole(t, d, what, whole.Bytes())
		}
	}
}

// Each file is checked in one of several parts, which names it where it is damaged; the others find nothing. What belongs
// to no file is checked in one of them too. More parts than files are empty.
func TestVerifyInParts(t *testing.T) {
	ctx := t.Context()
	c := quick(filepath.Join(t.TempDir(), "run"))
	d, err := ndls.Run(ctx, c)
	if err != nil {
		t.Fatal(err)
	}
	all := d.Catalog().All()
	verify := func(n int) (sum ndls.Verified, found []error) {
		t.Helper()
		for i := 1; i <= n; i++ {
			d, err := ndls.Open(ctx, c.Run)
			if err != nil {
				t.Fatal(err)
			}
			v, err := d.Verify(ctx, ndls.Part{I: i, N: n})
			if err != nil {
				found = append(found, err)
			}
			sum.Files, sum.Bytes, sum.OfFiles, sum.OfBytes = sum.Files+v.Files, sum.Bytes+v.Bytes, v.OfFiles, v.OfBytes
		}
		return sum, found
	}
	whole, err := d.Verify(ctx, ndls.Part{})
	if err != nil || whole.Files != len(all) || whole.Files != whole.OfFiles || whole.Bytes != whole.OfBytes {
		t.Errorf("the whole: %+v, %v", whole, err)
	}
	for _, n := range []int{1, 3, len(all) + 5} {
		if sum, found := verify(n); sum != whole || len(found) > 0 {
			t.Errorf("%d parts: %+v, want %+v; %v", n, sum, whole, found)
		}
	}
	if _, err := d.Verify(ctx, ndls.Part{I: 4, N: 3}); !errors.Is(err, ndls.ErrOption) {
		t.Errorf("part 4 of 3: %v", err)
	}
	once := func(name string, damage func(text []byte) []byte) {
		t.Helper()
		path := filepath.Join(c.Run, name)
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, damage(slices.Clone(text)), 0o644); err != nil {
			t.Fatal(err)
		}
		_, found := verify(4)
		if len(found) != 1 || !errors.Is(found[0], ndls.ErrCorrupt) || !strings.Contains(found[0].Error(), name) {
			t.Errorf("%s is damaged: %v", name, found)
		}
		if err := os.WriteFile(path, text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	flip := func(text []byte) []byte {
		text[len(text)/2] ^= 1
		return text
	}
	for _, e := range all {
		once(e.Path, flip)
	}
	// A copy of the catalogue that is damaged belongs to no file.
	once("catalog.parquet", flip)
}

// With --keep-smoothed=false smoothed rows are gone once labels are smoothed, and all other files
// equal those of a run that keeps them. The same command finds nothing to do. What reads smoothed
// rows is refused until they are made again.
func TestSmoothedRowsThatAreNotKept(t *testing.T) {
	ctx := t.Context()
	for _, rule := range []string{"ndls", "sign"} {
		files := map[bool]map[string]string{}
		folder := map[string]string{"ndls": "smoothed", "sign": "hops"}[rule]
		config := func(drop bool) ndls.Config {
			c := quick(filepath.Join(t.TempDir(), "run"))
			c.Options = func(o *ndls.Options) {
				o.Train.Epochs, o.Train.Runs, o.Labels.Kmax, o.Smooth.Rule, o.Smooth.Hops, o.DropSmoothed = 5, 1, 2, rule, 2, drop
			}
			return c
		}
		committed := func(c ndls.Config) map[string]string {
			t.Helper()
			d, err := ndls.Open(ctx, c.Run)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := d.Verify(ctx, ndls.Part{}); err != nil {
				t.Errorf("%s: %v", rule, err)
			}
			list := map[string]string{}
			for _, e := range d.Catalog().All() {
				list[e.Path] = e.Checksum
			}
			return list
		}
		var dropped ndls.Config
		for _, drop := range []bool{false, true} {
			c := config(drop)
			if _, err := ndls.Run(ctx, c); err != nil {
				t.Fatal(err)
			}
			files[drop] = committed(c)
			dropped = c
		}
		want := maps.Clone(files[false])
		maps.DeleteFunc(want, func(path, _ string) bool { return strings.HasPrefix(path, folder+"/") })
		if len(want) == len(files[false]) || !maps.Equal(files[true], want) {
			t.Errorf("%s: there are\n%v, want\n%v", rule, files[true], want)
		}
		d, err := ndls.Run(ctx, dropped)
		if err != nil || d.Record().State != ndls.Complete {
			t.Fatalf("%s: the same command again: %v", rule, err)
		}
		report, err := d.Report(ctx)
		if err != nil || len(report.Absent) != 1 || report.Absent[0].Folder != folder+"/" || report.Absent[0].Bytes == 0 {
			t.Errorf("%s: absent are %+v, %v", rule, report.Absent, err)
		}
		if _, err := d.Export(ctx, ndls.ExportOptions{What: folder, Format: "csv", To: io.Discard}); err == nil || !strings.Contains(err.Error(), "--keep-smoothed=false") {
			t.Errorf("%s: exported: %v", rule, err)
		}
		again := dropped
		again.Discard = true
		for _, s := range []ndls.Stage{ndls.StageTrain, ndls.StageSmoothLabels} {
			if _, err := ndls.Run(ctx, again, s); err == nil || !strings.Contains(err.Error(), "--keep-smoothed=false") || !strings.Contains(err.Error(), "nothing was changed") {
				t.Errorf("%s: %s again: %v", rule, s, err)
			}
		}
		if got := committed(dropped); !maps.Equal(got, files[true]) {
			t.Errorf("%s: a refusal has changed files", rule)
		}
		if _, err := ndls.Run(ctx, again, ndls.StageSmooth); err != nil {
			t.Fatal(err)
		}
		if _, err := ndls.Run(ctx, dropped); err != nil {
			t.Fatal(err)
		}
		if got := committed(dropped); !maps.Equal(got, files[true]) {
			t.Errorf("%s: smoothed again, there are\n%v, want\n%v", rule, got, files[true])
		}
	}
}

// A run that is cancelled says so, and the same call goes on to the same result.
func TestCancelledAndContinued(t *testing.T) {
	c := quick(filepath.Join(t.TempDir(), "run"))
	ctx, cancel := context.WithCancel(context.Background())
	c.Options = func(o *ndls.Options) { o.Train.Epochs, o.Train.Runs, o.Train.Patience = 100_000, 1, 0 }
	c.Progress = func(p ndls.Progress) {
		if p.What == "train" {
			cancel()
		}
	}
	guard := time.AfterFunc(time.Minute, cancel)
	defer guard.Stop()
	if _, err := ndls.Run(ctx, c); !errors.Is(err, ndls.ErrInterrupted) || !errors.Is(err, context.Canceled) {
		t.Fatalf("a cancelled run: %v", err)
	}
	d, err := ndls.Open(context.Background(), c.Run)
	if err != nil || d.Record().State != ndls.Failed || !d.Record().Done(ndls.StageSmooth) || d.Record().Done(ndls.StageTrain) {
		t.Fatalf("after the cancellation: %v, %+v", err, d.Record())
	}
	if _, err := ndls.Run(context.Background(), quick(c.Run)); !errors.Is(err, ndls.ErrPlanMismatch) {
		t.Errorf("other options: %v", err)
	}
	c = quick(c.Run)
	c.Discard = true
	if _, err = ndls.Run(context.Background(), c, ndls.StageTrain, ndls.StagePredict); err != nil {
		t.Fatal(err)
	}
	c.Discard = false
	if d, err = ndls.Run(context.Background(), c); err != nil || d.Record().State != ndls.Complete {
		t.Fatalf("continued: %v", err)
	}
}

// A command that goes on with a run removes what an interrupted one has not committed, and nothing
// else.
func TestAttemptsAreDropped(t *testing.T) {
	c := quick(filepath.Join(t.TempDir(), "run"))
	if _, err := ndls.Run(t.Context(), c, ndls.StagePartition); err != nil {
		t.Fatal(err)
	}
	const attempt = ".0123456789abcdef.tmp"
	dropped := []string{
		"graph/runs/rank/0000-0012-abcdefgh", "graph/runs/deal/0000-0012-abcdefgh" + attempt,
		"smoothed/tiles/tile-00000-00000.f32" + attempt, "lsi/part-00000.parquet", "run.json" + attempt,
	}
	kept := []string{"notes.txt", "smoothed/notes.txt", "scratch/cache/0123456789abcdef", "run.json.tmp"}
	for _, name := range append(slices.Clone(dropped), kept...) {
		path := filepath.Join(c.Run, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("left"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := ndls.Run(t.Context(), c, ndls.StageDegrees); err != nil {
		t.Fatal(err)
	}
	for _, name := range dropped {
		if _, err := os.Stat(filepath.Join(c.Run, filepath.FromSlash(name))); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s is left (%v)", name, err)
		}
	}
	for _, name := range append(kept, "graph/nodes.parquet") {
		if _, err := os.Stat(filepath.Join(c.Run, filepath.FromSlash(name))); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A program that uses the package has its own limit of the heap while no run is at work,
// and keeps what it has on its heap while one is.
func TestHeapOfTheCaller(t *testing.T) {
	mem.LimitHeap(true)
	defer mem.LimitHeap(false)
	const own = 3 << 30
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(own))
	load := make([]byte, 200<<20)
	for i := range load {
		load[i] = byte(i)
	}
	c := quick(filepath.Join(t.TempDir(), "run"))
	c.Progress = func(ndls.Progress) {
		if limit := debug.SetMemoryLimit(-1); limit < int64(len(load)) {
			t.Errorf("while the run works, the heap may have %d bytes, and %d are there", limit, len(load))
		}
	}
	d, err := ndls.Run(context.Background(), c)
	if err != nil {
		t.Fatal(err)
	}
	check := func(when string) {
		if limit := debug.SetMemoryLimit(-1); limit != own {
			t.Errorf("%s the limit of the heap is %d, not %d", when, limit, int64(own))
		}
	}
	check("after a run")
	for _, err := range d.Records(context.Background(), "predictions") {
		if err != nil {
			t.Fatal(err)
		}
		check("between batches")
	}
	if _, err := d.Export(context.Background(), ndls.ExportOptions{What: "lsi", Format: "csv", Out: filepath.Join(t.TempDir(), "k.csv")}); err != nil {
		t.Fatal(err)
	}
	check("after an export")
	runtime.KeepAlive(load)
}

// Stages read each file of rows once, also to verify it: what they have read is the size
// of the files, but for footers, which are read twice, and small files.
func TestRowsAreReadOnce(t *testing.T) {
	c := quick(filepath.Join(t.TempDir(), "run"))
	c.Dataset = "synthetic:nodes=5000,edges=9000,features=40,classes=20,seed=1"
	d, err := ndls.Run(context.Background(), c)
	if err != nil {
		t.Fatal(err)
	}
	size := map[string]int64{}
	for _, g := range d.Files() {
		size[g.Kind] = g.Bytes
	}
	tiles := size["features"]
	want := map[ndls.Stage]int64{
		// Smoothed tiles, as large as those of the features, become rows and are removed.
		ndls.StageSmooth: 2*tiles + size["hops"] + size["lsi"] + 2*size["nodes"],
		// The rows of these epochs are in memory.
		ndls.StageTrain:   size["smoothed"] + size["nodes"],
		ndls.StagePredict: size["smoothed"] + size["nodes"],
		// All labels were counted when they were computed.
		// The edges between training nodes, for a warning where neighbours differ.
		ndls.StageEvaluate: size["label-tally"] + size["nodes"] + size["hops"],
	}
	const most = 100 << 10
	if tiles < 4*most || size["predictions"] < 2*most {
		t.Fatalf("the graph is too small: %v", size)
	}
	for _, s := range d.Record().Stages {
		if w, ok := want[s.Stage]; ok && (s.BytesRead < w || s.BytesRead > w+most) {
			t.Errorf("%s has read %d bytes, want %d and at most %d more", s.Stage, s.BytesRead, w, most)
		}
		if b := s.Busy; b == nil || b.Threads != 2 || b.Mean <= 0 || b.Fewer < 0 || b.Fewer > 1 {
			t.Errorf("%s: of two threads computed %+v", s.Stage, b)
		}
	}
}

// Every artifact can be read as a stream of batches with as many rows as were written.
func TestRecords(t *testing.T) {
	ctx := context.Background()
	c := quick(filepath.Join(t.TempDir(), "run"))
	c.Options = func(o *ndls.Options) { o.Train.Epochs, o.Train.Runs, o.Smooth.KeepHops = 10, 1, "0,2" }
	d, err := ndls.Run(ctx, c)
	if err != nil {
		t.Fatal(err)
	}
	graph, err := d.Graph(ctx)
	if err != nil {
		t.Fatal(err)
	}
	for _, what := range ndls.Artifacts() {
		want, rows := graph.Nodes, int64(0)
		if what == "edges" {
			want = 2 * graph.Edges
		}
		ids := map[int64]bool{}
		for batch, err := range d.Records(ctx, what) {
			if err != nil {
				t.Fatalf("%s: %v", what, err)
			}
			rows += batch.NumRows()
			if id, ok := batch.Column(0).(*array.Int64); ok {
				for _, x := range id.Int64Values() {
					ids[x] = true
				}
			}
		}
		if rows != want || what != "edges" && int64(len(ids)) != want {
			t.Errorf("%s: %d rows of %d ids, want %d", what, rows, len(ids), want)
		}
	}
	for batch, err := range d.Records(ctx, "nodes") {
		if err != nil || batch.NumRows() == 0 {
			t.Error(err)
		}
		break // a reader may stop
	}
	for _, err := range d.Records(ctx, "weights") {
		if !errors.Is(err, ndls.ErrOption) {
			t.Errorf("no artifact: %v", err)
		}
	}
}

// The table of exit statuses: each kind of error, alone and wrapped, has one status.
func TestExitStatus(t *testing.T) {
	for _, tc := range []struct {
		kind error
		want int
	}{
		{nil, 0},
		{errors.New("any other"), 1},
		{fs.ErrNotExist, 1},
		{ndls.ErrForeign, 1},
		{ndls.ErrNoRun, 1},
		{ndls.ErrBusy, 1},
		{ndls.ErrExists, 1},
		{ndls.ErrVersion, 1},
		{ndls.ErrOption, 2},
		{dataset.ErrURI, 2},
		{ndls.ErrBudget, 3},
		{ndls.ErrDisk, 3},
		{ndls.ErrUnable, 3},
		{syscall.ENOSPC, 3},
		{syscall.EDQUOT, 3},
		{ndls.ErrCorrupt, 4},
		{ndls.ErrData, 4},
		{ndls.ErrPlanMismatch, 5},
		{ndls.ErrRefused, 5},
		{ndls.ErrTerminated, 75},
		{ndls.ErrInterrupted, 130},
	} {
		if got := ndls.ExitStatus(tc.kind); got != tc.want {
			t.Errorf("%v: status %d, want %d", tc.kind, got, tc.want)
		}
		if tc.kind == nil {
			continue
		}
		if got := ndls.ExitStatus(fmt.Errorf("stage: %w", errors.Join(errors.New("other"), tc.kind))); got != tc.want {
			t.Errorf("%v wrapped: status %d, want %d", tc.kind, got, tc.want)
		}
	}
	statuses := []int{}
	for _, x := range ndls.Exits {
		if x.Meaning == "" || slices.Contains(statuses, x.Status) {
			t.Errorf("row %+v", x)
		}
		statuses = append(statuses, x.Status)
	}
	if !slices.Equal(statuses, []int{0, 1, 2, 3, 4, 5, 75, 130}) {
		t.Errorf("statuses %v", statuses)
	}
}

// What is refused says why, has its kind, does not name the kind, and leaves nothing.
func TestRefusals(t *testing.T) {
	dir := t.TempDir()
	for name, tc := range map[string]struct {
		change func(*ndls.Config)
		stages []ndls.Stage
		kind   error
		want   string
	}{
		"run":       {func(c *ndls.Config) { c.Run = "" }, nil, nil, "--run is empty"},
		"dataset":   {func(c *ndls.Config) { c.Dataset = "" }, nil, ndls.ErrOption, "--dataset is needed"},
		"value":     {func(c *ndls.Config) { c.Options = func(o *ndls.Options) { o.LSI.R = 2 } }, nil, ndls.ErrOption, "--r 2 is outside [0, 1]"},
		"epochs":    {func(c *ndls.Config) { c.Options = func(o *ndls.Options) { o.Train.Epochs = 0 } }, nil, ndls.ErrOption, "--epochs 0 is outside [1, 16777216]"},
		"name":      {func(c *ndls.Config) { c.Options = func(o *ndls.Options) { o.Precision = "int8" } }, nil, ndls.ErrOption, `--precision "int8" is none of`},
		"kernel":    {func(c *ndls.Config) { c.Resources.Kernel = "sse" }, nil, ndls.ErrOption, "sse"},
		"columns":   {func(c *ndls.Config) { c.Resources.BlockColumns = 17 }, nil, ndls.ErrOption, "--block-columns 17"},
		"stage":     {func(*ndls.Config) {}, []ndls.Stage{"smoth"}, ndls.ErrOption, "smoth"},
		"parallel":  {func(c *ndls.Config) { c.Parallel = "rows"; c.Workers.Processes = 2 }, nil, ndls.ErrOption, `"rows"`},
		"no effect": {func(c *ndls.Config) { c.Parallel = "columns" }, nil, ndls.ErrOption, "--workers"},
		"workers":   {func(c *ndls.Config) { c.Workers.Processes = 40 }, nil, ndls.ErrBudget, "a worker needs at least"},
	} {
		t.Run(name, func(t *testing.T) {
			c := quick(filepath.Join(dir, "run"))
			tc.change(&c)
			_, err := ndls.Run(context.Background(), c, tc.stages...)
			if err == nil || tc.kind != nil && !errors.Is(err, tc.kind) || !strings.Contains(err.Error(), tc.want) {
				t.Fatalf("error %v, want %q", err, tc.want)
			}
			for _, tail := range []string{"invalid option", "control:", "coordinator:", "does not fit the memory"} {
				if strings.Contains(ndls.Message(err), tail) {
					t.Errorf("%q holds %q", ndls.Message(err), tail)
				}
			}
			if _, err := ndls.Open(context.Background(), c.Run); err == nil {
				t.Error("it left a run")
			}
		})
	}
}

// A plan for a grid has, for each stage, the size of groups that is fastest of those that fit. More
// workers than panels are of use only there.
func TestPlanOfAGrid(t *testing.T) {
	c := ndls.PlanConfig{
		Counts:    ndls.Counts{Nodes: 111059956, Edges: 1553000000, Features: 128, Classes: 172, Half: true, Training: 1207179},
		Resources: ndls.Resources{Memory: 16 << 30, Threads: 16},
		Options:   func(o *ndls.Options) { o.Smooth.Targets = "labelled" },
		Workers:   32,
	}
	planned := func(parallel string, size int) (lsi, smooth ndls.Figures) {
		t.Helper()
		c.Parallel, c.GroupSize = parallel, size
		f, err := ndls.Plan(t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}
		for _, x := range f.Stages {
			switch x.Stage {
			case ndls.StageLSI:
				lsi = x
			case ndls.StageSmooth:
				smooth = x
			}
		}
		return lsi, smooth
	}
	_, columns := planned("columns", 0)
	lsi, smooth := planned("grid", 0)
	_, all := planned("intervals", 0)
	if columns.GroupSize != 0 || lsi.GroupSize != 32 || smooth.GroupSize < 4 || smooth.GroupSize == 32 || all.GroupSize != 32 {
		t.Errorf("columns by %d, lsi by %d, a grid by %d, one group of %d", columns.GroupSize, lsi.GroupSize, smooth.GroupSize, all.GroupSize)
	}
	// 8 workers of 32 have a panel in columns; 8 groups of 4 share them in a grid.
	if smooth.Seconds > columns.Seconds/3 || smooth.Seconds > all.Seconds {
		t.Errorf("%.0f s in columns, %.0f in a grid, %.0f in one group", columns.Seconds, smooth.Seconds, all.Seconds)
	}
	if _, x := planned("grid", 8); x.GroupSize != 8 {
		t.Errorf("groups of %d workers in place of 8", x.GroupSize)
	}
	c.Workers, c.Resources.Memory = 100, 2<<30
	c.Counts.Nodes /= 2
	c.Options = func(o *ndls.Options) { o.Smooth.Targets = "labelled" }
	if lsi, smooth := planned("grid", 0); max(lsi.LeastBytes, smooth.LeastBytes) > c.Resources.Memory {
		t.Errorf("lsi by %d with %d bytes, smooth by %d with %d", lsi.GroupSize, lsi.LeastBytes, smooth.GroupSize, smooth.LeastBytes)
	}
	c.Parallel, c.GroupSize = "columns", 2
	if _, err := ndls.Plan(t.Context(), c); !errors.Is(err, ndls.ErrOption) {
		t.Errorf("groups in columns: %v", err)
	}
}

// Of float16 rows a block has twice as many columns, and so there are half as many passes of smoothing, which read as much each.
func TestPlanOfFloat16(t *testing.T) {
	if testprogram.Small {
		t.Skip("planned with the windows of users")
	}
	papers := ndls.PlanConfig{
		Counts:    ndls.Counts{Nodes: 111059956, Edges: 1553000000, Features: 128, Classes: 172, Half: true, Training: 1207179},
		Resources: ndls.Resources{Memory: 16 << 30, Threads: 2},
	}
	planned := func(precision string) (total ndls.Figures, passes int) {
		papers.Options = func(o *ndls.Options) { o.Smooth.Targets, o.Precision = "labelled", precision }
		f, err := ndls.Plan(t.Context(), papers)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range f.Stages {
			if s.Stage == ndls.StageSmooth {
				passes = s.Passes
			}
		}
		return f.Total, passes
	}
	full, passes := planned("float32")
	half, fewer := planned("float16")
	const finding = 10 // passes that find the rows that stand, of 16 columns in either case
	if 2*(fewer-finding) != passes-finding || half.Seconds >= full.Seconds {
		t.Errorf("float16 rows take %d passes and %.0f s in place of %d and %.0f", fewer, half.Seconds, passes, full.Seconds)
	}
	// 3.1 bytes for each of twice as many directed edges.
	if edge := float64(full.BytesPerPass) / float64(2*papers.Counts.Edges); edge < 3.05 || edge > 3.25 || half.BytesPerPass != full.BytesPerPass {
		t.Errorf("a pass reads %.2f bytes an edge; with float16 %d bytes in place of %d", edge, half.BytesPerPass, full.BytesPerPass)
	}
	small := ndls.PlanConfig{Counts: ndls.Counts{Nodes: 1000, Edges: 3000, Features: 16, Classes: 3}, Resources: ndls.Resources{Memory: 1 << 30, Threads: 2}}
	if f, err := ndls.Plan(t.Context(), small); err != nil || f.Total.BytesPerPass != 0 {
		t.Errorf("a graph in memory: %d bytes a pass, %v", f.Total.BytesPerPass, err)
	}
}
