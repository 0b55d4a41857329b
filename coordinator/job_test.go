package coordinator

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"reflect"
	"slices"
	"strings"
	"testing"

	"ndls/catalog"
	"ndls/internal/byhop"
	"ndls/internal/control"
	"ndls/internal/seal"
	"ndls/internal/storage"
	"ndls/internal/storage/storagetest"
	"ndls/plan"
	"ndls/report"
	"ndls/shards"
	"ndls/stage/registry"
)

// fake commits one small file a stage.
type fake struct {
	cat      *catalog.Catalog
	sum      shards.Summary
	executed []control.Stage
	forgot   int
	losses   []Loss
	before   func(control.Stage) error
	// labelTable says that lsi commits K of label smoothing, too.
	labelTable bool
}

func (f *fake) Workers() int                      { return 1 }
func (f *fake) Here() []control.Hello             { return nil }
func (f *fake) Forget(context.Context, int) error { f.forgot++; return nil }
func (f *fake) Recorded() uint64                  { return 0 }
func (f *fake) Losses() []Loss                    { return f.losses }
func (f *fake) UnderWay() []control.Task          { return nil }
func (f *fake) Announce([]StageStatus)            {}

func (f *fake) Sharers(context.Context, bool) (Sharers, error) { return Sharers{}, nil }

func (f *fake) Run(ctx context.Context, tasks []control.Task) ([]control.StageReport, error) {
	r, err := f.execute(ctx, tasks[0])
	return []control.StageReport{r}, err
}

var outputs = map[control.Stage]struct{ kind, path string }{
	control.LSI:          {catalog.KindLSI, "lsi/part-00000.parquet"},
	control.Smooth:       {catalog.KindSmoothed, "smoothed/part-00000.arrow"},
	control.Train:        {catalog.KindModel, "model/model.json"},
	control.Predict:      {catalog.KindSoftLabels, "soft_labels/part-00000.arrow"},
	control.LabelDepth:   {catalog.KindLabelDepth, "predictions/depth.json"},
	control.SmoothLabels: {catalog.KindPredictions, "predictions/part-00000.arrow"},
}

func (f *fake) execute(ctx context.Context, t control.Task) (control.StageReport, error) {
	f.executed = append(f.executed, t.Stage)
	if f.before != nil {
		if err := f.before(t.Stage); err != nil {
			return control.StageReport{}, err
		}
	}
	report := control.StageReport{Stage: t.Stage, Seconds: 1, EdgesStreamed: 100, KernelSeconds: 2, MeasuredPeak: 7}
	switch t.Stage {
	case control.Partition:
		return report, shards.WriteSummary(ctx, f.cat, f.sum)
	case control.LSI:
		if f.labelTable {
			if err := f.commit(ctx, t, catalog.KindLabelLSI, "lsi/epsilon-0.5/part-00000.parquet"); err != nil {
				return report, err
			}
		}
		report.LSI = &control.LSIReport{Mode: t.Plan.LSI.Mode, Max: 300, Histogram: [][2]int64{{0, 1}, {7, 20}, {300, 4}}}
	case control.Evaluate:
		report.Accuracy = &control.AccuracyReport{
			Base: control.SplitAccuracy{Test: &control.Spread{Mean: 0.81, Std: 0.01}}, Runs: 3,
		}
		return report, nil
	}
	out := outputs[t.Stage]
	return report, f.commit(ctx, t, out.kind, out.path)
}

func (f *fake) commit(ctx context.Context, t control.Task, kind, name string) error {
	file, err := f.cat.Create(ctx, catalog.Describe(kind, name))
	if err != nil {
		return err
	}
	defer file.Abort()
	if _, err := file.Write([]byte(registry.Hashes(t.Plan)[string(t.Stage)])); err != nil {
		return err
	}
	return f.cat.Commit(ctx, file)
}

// labelled is a dataset with everything; setup a job on an empty store.
var labelled = shards.Summary{Name: "toy", Nodes: 10, Edges: 20, Features: 3, Classes: []string{"a", "b"}, Labelled: 10, HasSplits: true}

func setup(t *testing.T, store storage.Store, sum shards.Summary) (*Job, *fake) {
	t.Helper()
	cat, err := catalog.Open(context.Background(), store)
	if err != nil {
		t.Fatal(err)
	}
	f := &fake{cat: cat, sum: sum}
	opts := plan.Default()
	opts.Partition.Dataset = "toy"
	return &Job{
		Store: store, Catalog: cat, Tasks: f, Plan: opts, Resources: control.Resources{Memory: 1 << 30},
		Whole: true, Versions: map[string]string{"ndls": "test"}, Host: &control.Host{CPU: "A"}, Log: slog.New(slog.NewTextHandler(io.Discard, nil)),
	}, f
}

func run(t *testing.T, j *Job, stages ...control.Stage) *Record {
	t.Helper()
	if _, err := j.Run(context.Background(), stages...); err != nil {
		t.Fatal(err)
	}
	return read(t, j.Store)
}

func read(t *testing.T, s storage.Store) *Record {
	t.Helper()
	rec, err := ReadRecord(context.Background(), s)
	if err != nil {
		t.Fatal(err)
	}
	return rec
}

func TestWholeRun(t *testing.T) {
	j, f := setup(t, storagetest.NewMem(), labelled)
	rec := run(t, j, registry.Always()...)
	if rec.State != Complete || !slices.Equal(f.executed, registry.Always()) {
		t.Errorf("state %s after %v", rec.State, f.executed)
	}
	run(t, j, registry.Always()...)
	if len(f.executed) != len(registry.Always()) {
		t.Errorf("a complete run executed %v again", f.executed[len(registry.Always()):])
	}
	if rec.PlanHash != j.Plan.Hash() || rec.Versions["ndls"] != "test" || rec.MemoryBudget != 1<<30 {
		t.Errorf("record %+v", rec)
	}

	var got report.Report
	if err := json.Unmarshal(content(t, j.Store, "report.json"), &got); err != nil {
		t.Fatal(err)
	}
	if got.Run.Host == nil || got.Run.Host.CPU != "A" {
		t.Errorf("host %+v", got.Run.Host)
	}
	if got.Dataset != (report.Dataset{Name: "toy", Nodes: 10, Edges: 20, Features: 3, Classes: 2}) {
		t.Errorf("dataset %+v", got.Dataset)
	}
	if len(got.Stages) != len(registry.Always()) || got.Stages[1].EdgesPerSecond != 50 || got.Memory != (control.MemoryReport{BudgetBytes: 1 << 30, PeakRSSBytes: 7}) {
		t.Errorf("stages %+v, memory %+v", got.Stages, got.Memory)
	}
	if got.LSI == nil || got.LSI.Max != 300 || got.Accuracy == nil || got.Accuracy.Base.Test.Mean != 0.81 || got.Accuracy.Base.Train != nil {
		t.Errorf("lsi %+v, accuracy %+v", got.LSI, got.Accuracy)
	}
	page := string(content(t, j.Store, "report.html"))
	for _, want := range []string{"81.00 ± 1.00", `id="k-histogram"`, "<h1>toy</h1>", "7 B at the peak"} {
		if !strings.Contains(page, want) {
			t.Errorf("report.html lacks %q", want)
		}
	}
	if strings.Contains(page, `="http`) {
		t.Error("report.html refers to something outside itself")
	}
}

// TestLeavesWhatLasts has a K table for label smoothing, which only some ways to a run make: it
// is there for the stages that read it, and is removed when they are complete.
func TestLeavesWhatLasts(t *testing.T) {
	store := storagetest.NewMem()
	j, f := setup(t, store, labelled)
	f.labelTable = true
	f.before = func(s control.Stage) error {
		there := len(f.cat.Entries(catalog.KindLabelLSI))
		if reads := s == control.LabelDepth || s == control.SmoothLabels; reads && there != 1 {
			t.Errorf("%s finds %d K tables of label smoothing", s, there)
		}
		return nil
	}
	run(t, j, registry.Always()...)
	if n := len(f.cat.All()); n != len(outputs)+1 || len(f.cat.Entries(catalog.KindLabelLSI)) != 0 {
		t.Errorf("the run leaves %v", f.cat.All())
	}
}

func content(t *testing.T, s storage.Store, name string) []byte {
	t.Helper()
	r, err := s.Open(context.Background(), name)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	text, err := io.ReadAll(io.NewSectionReader(r, 0, r.Size()))
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func TestDatasetDecidesTheStages(t *testing.T) {
	without := func(change func(*shards.Summary)) shards.Summary {
		s := labelled
		change(&s)
		return s
	}
	for _, tc := range []struct {
		name    string
		sum     shards.Summary
		foreign string
		want    []control.Stage
		refused map[control.Stage]string
	}{
		{
			"no features", without(func(s *shards.Summary) { s.Features = 0 }), "",
			[]control.Stage{control.Partition, control.LSI},
			map[control.Stage]string{control.Smooth: "no features", control.Evaluate: "no features"},
		},
		{
			"no labels", without(func(s *shards.Summary) { s.Labelled = 0 }), "",
			[]control.Stage{control.Partition, control.LSI, control.Smooth},
			map[control.Stage]string{control.Train: "no labels"},
		},
		{
			"no splits", without(func(s *shards.Summary) { s.HasSplits = false }), "",
			[]control.Stage{control.Partition, control.LSI, control.Smooth},
			map[control.Stage]string{control.Train: "--split random:20,30"},
		},
		{
			"soft labels from elsewhere", without(func(s *shards.Summary) { s.Features = 0 }), "other.arrow",
			[]control.Stage{control.Partition, control.LSI, control.LabelDepth, control.SmoothLabels, control.Evaluate},
			map[control.Stage]string{control.Train: "stand in"},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			j, f := setup(t, storagetest.NewMem(), tc.sum)
			j.Plan.Labels.SoftLabels = tc.foreign
			rec := run(t, j, registry.Always()...)
			if !slices.Equal(f.executed, tc.want) || rec.State != Complete {
				t.Errorf("executed %v, state %s; want %v", f.executed, rec.State, tc.want)
			}
			j.Whole = false
			for s, want := range tc.refused {
				if _, err := j.Run(context.Background(), s); err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("%s: error %v, want one with %q", s, err, want)
				}
			}
		})
	}
}

// Soft labels of another model do not mix with those of the run's own, and take their place on
// request alone.
func TestSoftLabelsReplaceTheOwnModel(t *testing.T) {
	j, f := setup(t, storagetest.NewMem(), labelled)
	run(t, j, registry.Always()...)
	before := read(t, j.Store)
	f.executed, j.Whole, j.Plan.Labels.SoftLabels = nil, false, "other.arrow"
	smooth := []control.Stage{control.LabelDepth, control.SmoothLabels}
	if _, err := j.Run(context.Background(), smooth...); err == nil || len(f.executed) > 0 {
		t.Fatalf("without Restart: error %v, executed %v", err, f.executed)
	}
	if after := read(t, j.Store); !reflect.DeepEqual(after, before) {
		t.Errorf("the refused soft labels changed the record: %+v", after)
	}
	j.Restart = true
	run(t, j, smooth...)
	j.Restart = false
	rec := run(t, j, control.Evaluate)
	if want := append(smooth, control.Evaluate); !slices.Equal(f.executed, want) {
		t.Errorf("executed %v, want %v", f.executed, want)
	}
	if rec.Done(control.Train) || rec.Done(control.Predict) || !rec.Done(control.Smooth) || rec.State != Complete {
		t.Errorf("after it the record has %v, state %s", rec.begun(), rec.State)
	}
	for _, e := range j.Catalog.Entries("") {
		if e.Kind == catalog.KindModel || e.Kind == catalog.KindSoftLabels {
			t.Errorf("%s of the own model is still there", e.Path)
		}
	}
}

func TestStageNeedsTheOnesBefore(t *testing.T) {
	j, _ := setup(t, storagetest.NewMem(), labelled)
	for _, tc := range []struct {
		stage control.Stage
		want  string
	}{
		{control.LSI, "run this first: ndls partition --run "},
		{control.Train, "run this first: ndls partition --run "},
		{control.SmoothLabels, "run this first: ndls partition --run "},
	} {
		if _, err := j.Run(context.Background(), tc.stage); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: error %v, want one with %q", tc.stage, err, tc.want)
		}
	}
	j, _ = setup(t, storagetest.NewMem(), labelled)
	run(t, j, control.Partition, control.LSI)
	if _, err := j.Run(context.Background(), control.SmoothLabels); err == nil || !strings.Contains(err.Error(), "run this first: ndls train --run ") {
		t.Errorf("smooth-labels without a model: %v", err)
	}
}

// Whatever stage fails, the run does not look finished, and the same call ends it.
func TestFailureAndResume(t *testing.T) {
	boom := errors.New("boom")
	for _, failing := range registry.Always() {
		t.Run(string(failing), func(t *testing.T) {
			j, f := setup(t, storagetest.NewMem(), labelled)
			f.before = func(s control.Stage) error {
				if s == failing {
					return boom
				}
				return nil
			}
			_, err := j.Run(context.Background(), registry.Always()...)
			if !errors.Is(err, boom) {
				t.Fatalf("error %v", err)
			}
			rec := read(t, j.Store)
			if rec.State != Failed || !strings.Contains(rec.Reason, "boom") || rec.Stage(failing).State != Failed {
				t.Errorf("record after the failure: %s %q %+v", rec.State, rec.Reason, rec.Stage(failing))
			}
			f.before, f.executed = nil, nil
			rec = run(t, j, registry.Always()...)
			if rec.State != Complete || rec.Reason != "" || f.executed[0] != failing {
				t.Errorf("resumed with %v to %s", f.executed, rec.State)
			}
		})
	}
}

// A run that somebody has stopped does not look like one that has failed, and one whose own parts have ended its
// context does.
func TestInterruptionIsRecorded(t *testing.T) {
	j, f := setup(t, storagetest.NewMem(), labelled)
	cause := errors.New("interrupted by a test")
	ctx, cancel := context.WithCancelCause(context.Background())
	f.before = func(s control.Stage) error {
		if s == control.Smooth {
			cancel(cause)
			return ctx.Err()
		}
		return nil
	}
	if _, err := j.Run(ctx, registry.Always()...); !errors.Is(err, context.Canceled) {
		t.Fatalf("error %v", err)
	}
	if rec := read(t, j.Store); rec.State != Failed || rec.Reason != cause.Error() || rec.Stopped || rec.Stage(control.Smooth).Word() != "FAILED" {
		t.Errorf("record of a run that nobody can stop: %s %q %+v", rec.State, rec.Reason, rec.Stage(control.Smooth))
	}
	j.Stopped = func(why error) bool { return why == cause }
	ctx, cancel = context.WithCancelCause(context.Background())
	defer cancel(nil)
	if _, err := j.Run(ctx, registry.Always()...); err == nil {
		t.Fatal("a run whose context has ended goes on")
	}
	rec := read(t, j.Store)
	if rec.State != Failed || rec.Reason != cause.Error() || !rec.Stopped || rec.Word() != "STOPPED" {
		t.Errorf("record of a run that was stopped: %s %q, %v", rec.State, rec.Reason, rec.Stopped)
	}
	for _, x := range rec.Progress() {
		if want := x.Stage == control.Smooth; x.Stopped != want || want && x.Word() != "STOPPED" {
			t.Errorf("%s is %s", x.Stage, x.Word())
		}
	}
	// A stage that succeeds afterwards does not hide the ones still missing.
	f.before = nil
	if rec := run(t, j, control.Smooth); rec.State != Failed || !strings.Contains(rec.Reason, "train") || rec.Stopped {
		t.Errorf("record with missing stages: %s %q", rec.State, rec.Reason)
	}
}

// Every operation of the store is made to fail in turn.
func TestFailAtEveryStep(t *testing.T) {
	count := storagetest.NewFaulty(storagetest.NewMem(), 0)
	j, _ := setup(t, count, labelled)
	run(t, j, registry.Always()...)
	step := int64(1)
	if testing.Short() {
		step = 7
	}
	for at := int64(1); at <= count.Ops(); at += step {
		store := storagetest.NewMem()
		faulty := storagetest.NewFaulty(store, at)
		cat, err := catalog.Open(context.Background(), faulty)
		if err == nil {
			j, f := setup(t, store, labelled)
			j.Store, j.Catalog, f.cat = faulty, cat, cat
			_, err = j.Run(context.Background(), registry.Always()...)
		}
		if err == nil {
			continue
		}
		if rec := read(t, store); rec != nil && rec.State == Complete {
			t.Fatalf("operation %d failed and the run looks finished", at)
		} else if rec != nil && rec.State == Failed && slices.ContainsFunc(rec.Stages, func(x StageRecord) bool { return x.State == Running }) {
			t.Fatalf("operation %d failed and a stage looks as if it ran: %+v", at, rec.Stages)
		}
		j, _ := setup(t, store, labelled)
		if rec := run(t, j, registry.Always()...); rec.State != Complete {
			t.Fatalf("operation %d: resume ends %s", at, rec.State)
		}
	}
}

func TestPlanMismatch(t *testing.T) {
	j, f := setup(t, storagetest.NewMem(), labelled)
	run(t, j, control.Partition, control.LSI)
	before := read(t, j.Store)

	j.Plan.LSI.Epsilon = 0.5
	_, err := j.Run(context.Background(), control.LSI)
	if !errors.Is(err, control.ErrPlanMismatch) || !strings.Contains(err.Error(), "lsi.epsilon: 0.5 here, 0.03 in the run directory") {
		t.Fatalf("error %v", err)
	}
	if after := read(t, j.Store); !reflect.DeepEqual(after, before) {
		t.Errorf("the refused plan changed the record: %+v", after)
	}

	// What no stage has used yet may change.
	j.Plan.LSI.Epsilon = 0.03
	j.Plan.Train.Hidden = 128
	if rec := run(t, j, control.Smooth); rec.Plan.Train.Hidden != 128 {
		t.Errorf("plan %+v", rec.Plan.Train)
	}

	// Restart discards the stage and its readers, nothing before them.
	run(t, j, registry.Always()...)
	f.executed = nil
	j.Plan.Smooth.Rule, j.Restart = "sgc", true
	rec := run(t, j, control.Smooth)
	if !slices.Equal(f.executed, []control.Stage{control.Smooth}) || rec.Done(control.Train) || !rec.Done(control.LSI) || rec.State != Failed {
		t.Errorf("restart executed %v and left %v, %s", f.executed, rec.begun(), rec.State)
	}
	var kinds []string
	for _, e := range j.Catalog.Entries("") {
		kinds = append(kinds, e.Kind)
	}
	slices.Sort(kinds)
	if want := []string{catalog.KindLSI, catalog.KindSmoothed, catalog.KindSummary}; !slices.Equal(kinds, want) {
		t.Errorf("files after the restart: %v, want %v", kinds, want)
	}
	j.Plan.LSI.Epsilon = 0.5
	if _, err := j.Run(context.Background(), control.Smooth); !errors.Is(err, control.ErrPlanMismatch) {
		t.Errorf("restarting smooth with another epsilon: %v", err)
	}
}

// lateStore gets its record after it was found to have none.
type lateStore struct {
	storage.Store
	write func() error
}

func (s *lateStore) Open(ctx context.Context, name string) (storage.Reader, error) {
	r, err := s.Store.Open(ctx, name)
	if s.write != nil {
		write := s.write
		s.write = nil
		err = errors.Join(err, write())
	}
	return r, err
}

// TestRecordOfAnother is read while another process writes it.
func TestRecordOfAnother(t *testing.T) {
	store := storagetest.NewMem()
	j, _ := setup(t, store, labelled)
	rec := &Record{Format: RecordFormat, State: Running, Plan: j.Plan}
	late := &lateStore{store, func() error {
		return errors.Join(rec.write(t.Context(), store), storage.Put(t.Context(), store.CreateNew, journalName(1), []byte("x")))
	}}
	got, err := ReadRecord(t.Context(), late)
	if err != nil || got == nil || got.PlanHash != rec.PlanHash {
		t.Errorf("%+v, %v", got, err)
	}
}

// TestRecordOfAnotherPlan is sealed, but has the hash of another plan.
func TestRecordOfAnotherPlan(t *testing.T) {
	store := storagetest.NewMem()
	opts := plan.Default()
	text, err := seal.EncodeJSON(&Record{Seal: seal.Unsealed, Format: RecordFormat, Plan: opts, PlanHash: opts.Hash()})
	if err == nil {
		err = storage.Put(t.Context(), store.Create, RecordName, text)
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, err := ReadRecord(t.Context(), store); err != nil {
		t.Error(err)
	}
	opts.Seed++
	if text, err = seal.EncodeJSON(&Record{Seal: seal.Unsealed, Format: RecordFormat, Plan: opts, PlanHash: plan.Default().Hash()}); err == nil {
		err = storage.Put(t.Context(), store.Create, RecordName, text)
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, err := ReadRecord(t.Context(), store); !errors.Is(err, seal.ErrCorrupt) {
		t.Errorf("error %v, want ErrCorrupt", err)
	}
}

func TestForeignFolder(t *testing.T) {
	for _, tc := range []struct {
		name, file, text, want string
		target                 error
	}{
		{"thesis", "thesis.tex", "hello", "thesis.tex", ErrForeign},
		{"run.json of another program", RecordName, `{"name": "jogging"}`, "no record of ndls", ErrForeign},
		{"run.json that is no JSON", RecordName, "10 km", "no record of ndls", ErrForeign},
		{"catalogue alone", catalog.Name, "PAR1", "no run.json", ErrNoRecord},
		{"cut record", RecordName, `{"seal": "crc32c:00000000", "format": 2, "plan": {"format": 3}, "plan_hash": "x"}`, "is damaged", seal.ErrCorrupt},
		{"later format", RecordName, `{"format": 99, "plan": {"format": 1}, "plan_hash": "x"}`, "format 99", seal.ErrVersion},
		{"edited plan", RecordName, `{"format": 2, "plan": {"format": 3}, "plan_hash": "x"}`, "is damaged", seal.ErrCorrupt},
	} {
		t.Run(tc.name, func(t *testing.T) {
			store := storagetest.NewMem()
			if err := storage.Put(context.Background(), store.Create, tc.file, []byte(tc.text)); err != nil {
				t.Fatal(err)
			}
			_, err := ReadRecord(context.Background(), store)
			if !errors.Is(err, tc.target) || !strings.Contains(fmt.Sprint(err), tc.want) {
				t.Errorf("error %v, want %v with %q", err, tc.target, tc.want)
			}
			if got := content(t, store, tc.file); string(got) != tc.text {
				t.Error("the file was changed")
			}
		})
	}
}

func FuzzReadRecord(f *testing.F) {
	f.Add([]byte(`{"format": 1, "plan": {"format": 1}, "plan_hash": "x", "stages": [{"name": "lsi"}]}`))
	f.Add([]byte(`{}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		store := storagetest.NewMem()
		if err := storage.Put(context.Background(), store.Create, RecordName, text); err != nil {
			t.Fatal(err)
		}
		rec, err := ReadRecord(context.Background(), store)
		if (rec == nil) == (err == nil) {
			t.Fatalf("record %v, error %v", rec, err)
		}
	})
}

// A coordinator that was replaced leaves the record to its successor.
func TestSupersededJobLeavesTheRecord(t *testing.T) {
	j, f := setup(t, storagetest.NewMem(), labelled)
	var before []byte
	f.before = func(s control.Stage) error {
		if s == control.LSI {
			before = content(t, j.Store, RecordName)
			return ErrSuperseded
		}
		return nil
	}
	if _, err := j.Run(context.Background(), registry.Always()...); !errors.Is(err, ErrSuperseded) {
		t.Fatalf("error %v", err)
	}
	if after := content(t, j.Store, RecordName); string(after) != string(before) {
		t.Errorf("the record was changed to %s", after)
	}
}

// What is known of earlier attempts is dropped for stages that begin anew, not for
// those that go on.
func TestJobForgets(t *testing.T) {
	j, f := setup(t, storagetest.NewMem(), labelled)
	f.before = func(s control.Stage) error {
		if s == control.LSI {
			return errors.New("boom")
		}
		return nil
	}
	_, _ = j.Run(context.Background(), control.Partition, control.LSI)
	if f.forgot != 2 {
		t.Errorf("forgot %d times at the begin of 2 stages", f.forgot)
	}
	f.before = nil
	run(t, j, control.Partition, control.LSI)
	if f.forgot != 2 {
		t.Errorf("forgot %d times after a resume", f.forgot)
	}
	j.Restart = true
	run(t, j, control.LSI)
	if f.forgot != 4 { // before the output is discarded, and as the stage begins
		t.Errorf("forgot %d times after a restart", f.forgot)
	}
}

func TestLossesAreReported(t *testing.T) {
	j, f := setup(t, storagetest.NewMem(), labelled)
	f.losses = []Loss{{Task: "smooth/columns/0-2", Worker: "w1", Reason: "no sign of life for 30 s", SecondsLost: 12.5}}
	run(t, j, registry.Always()...)
	var got report.Report
	if err := json.Unmarshal(content(t, j.Store, "report.json"), &got); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(got.Losses, f.losses) {
		t.Errorf("losses %+v", got.Losses)
	}
	if page := string(content(t, j.Store, "report.html")); !strings.Contains(page, "<td>12.5</td>") {
		t.Error("report.html lacks the loss")
	}
}

func TestMerge(t *testing.T) {
	got := merge(control.Smooth, []control.StageReport{
		{
			Rows: 3, Passes: 2, ColumnsPerPass: 32, EdgesStreamed: 10, KernelSeconds: 1, Hops: byhop.List{{Hop: 1, Passes: 1, Edges: 4, Seconds: 0.5}, {Hop: 3, Passes: 1, Edges: 6, Seconds: 0.5}}, BytesRead: 5, BytesWritten: 6, MeasuredPeak: 9, MeasuredDisk: 1, Findings: control.Findings{LSI: &control.LSIReport{Max: 7}},
			Seconds: 30, Busy: &control.Busy{Threads: 2, Mean: 1.5, Fewer: 0.5},
		},
		{
			Polynomials: &control.Polynomials{Tolerance: 0.001, Passes: 39, Hops: 200},
			Rows:        4, Passes: 1, ColumnsPerPass: 16, EdgesStreamed: 5, KernelSeconds: 2, Hops: byhop.List{{Hop: 2, Passes: 1, Edges: 3, Seconds: 1}, {Hop: 3, Passes: 1, Edges: 2, Seconds: 1}}, BytesRead: 1, BytesWritten: 1, PlannedPeak: 8, MeasuredPeak: 2, MeasuredDisk: 3,
			Seconds: 10, Busy: &control.Busy{Threads: 4, Mean: 3.5, Fewer: 0.25},
		},
		{Seconds: 1000},
	})
	want := control.StageReport{
		Stage: control.Smooth, Rows: 7, Passes: 3, ColumnsPerPass: 32, EdgesStreamed: 15, KernelSeconds: 3, BytesRead: 6, BytesWritten: 7,
		PlannedPeak: 8, MeasuredPeak: 9, MeasuredDisk: 3, Findings: control.Findings{LSI: got.LSI},
		Busy: got.Busy, Polynomials: &control.Polynomials{Tolerance: 0.001, Passes: 39, Hops: 200},
		Hops: byhop.List{{Hop: 1, Passes: 1, Edges: 4, Seconds: 0.5}, {Hop: 2, Passes: 1, Edges: 3, Seconds: 1}, {Hop: 3, Passes: 2, Edges: 8, Seconds: 1.5}},
	}
	if b := (control.Busy{Threads: 4, Mean: 2, Fewer: 0.4375}); got.Busy == nil || *got.Busy != b {
		t.Errorf("merged %+v, want %+v", got.Busy, b)
	}
	if !reflect.DeepEqual(got, want) || got.LSI == nil || got.LSI.Max != 7 {
		t.Errorf("merged %+v, want %+v", got, want)
	}
}

// shifting is a store whose files are replaced, some times, while they are read.
type shifting struct {
	storage.Store
	times int
}

func (s *shifting) Open(ctx context.Context, name string) (storage.Reader, error) {
	r, err := s.Store.Open(ctx, name)
	if s.times--; err == nil && s.times >= 0 {
		return replaced{r}, nil
	}
	return r, err
}

type replaced struct{ storage.Reader }

func (replaced) ReadAt([]byte, int64) (int, error) { return 0, storage.ErrReplaced }

// TestRecordIsReadWhileWritten: who looks how the run is may come in the moment in
// which that changes.
func TestRecordIsReadWhileWritten(t *testing.T) {
	store := &shifting{storagetest.NewMem(), 3}
	written := &Record{Format: RecordFormat, Plan: plan.Default(), State: Running}
	if err := written.write(t.Context(), store); err != nil {
		t.Fatal(err)
	}
	if rec, err := ReadRecord(t.Context(), store); err != nil || rec.State != Running || store.times >= 0 {
		t.Errorf("%+v, error %v", rec, err)
	}
}

// TestDiskOfWorkers: with several workers the size of the run directory comes from the catalogue, in whole pages, and
// from what lies beside it; one worker alone measures it.
func TestDiskOfWorkers(t *testing.T) {
	for _, alone := range []bool{false, true} {
		j, _ := setup(t, storagetest.NewMem(), labelled)
		j.Alone = alone
		rec := run(t, j, registry.Always()...)
		listed := int64(besideBytes)
		for _, e := range j.Catalog.All() {
			listed += wholePages(e.Bytes)
		}
		if alone {
			listed = 0
		}
		if got := rec.Stage(control.Evaluate).MeasuredDisk; got != listed {
			t.Errorf("alone: %v: %d bytes on disk, %d listed", alone, got, listed)
		}
	}
}
