package coordinator

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"

	"ndls/catalog"
	"ndls/estimate"
	"ndls/internal/control"
	"ndls/internal/failure"
	"ndls/internal/progress"
	"ndls/internal/tracing"
	"ndls/plan"
	"ndls/report"
	"ndls/shards"
	"ndls/stage"
	"ndls/stage/registry"
)

// Run runs the stages that are not complete, in order, and returns the record at the end. If a stage does not fit, the error wraps
// [mem.ErrBudget] or [estimate.ErrDisk]. Other errors wrap [control.ErrPlanMismatch] or [ErrForeign], or come from Tasks. After any error
// the same call continues the run.
func (j *Job) Run(ctx context.Context, stages ...control.Stage) (*Record, error) {
	if err := registry.Validate(j.Plan); err != nil {
		return nil, err
	}
	rec, err := j.open(ctx, stages)
	if err != nil {
		return rec, registry.Explain(err, j.Catalog)
	}
	for i, s := range stages {
		if rec.Done(s) {
			j.Log.Info("already complete", "stage", s)
			continue
		}
		skip, err := j.check(ctx, rec, s)
		if err == nil && !skip {
			err = j.step(ctx, rec, s, stages[i+1:])
		}
		if err != nil {
			return rec, j.fail(ctx, rec, err)
		}
	}
	if err := j.finish(ctx, rec); err != nil {
		return rec, j.fail(ctx, rec, err)
	}
	return rec, nil
}

// open reads or starts the record and binds it to the job. If it refuses, the run directory stays as it was.
func (j *Job) open(ctx context.Context, stages []control.Stage) (*Record, error) {
	rec, err := ReadRecord(ctx, j.Store)
	if errors.Is(err, ErrNoRecord) {
		err = nil
	}
	if err != nil {
		return nil, err
	}
	j.Catalog.Bind(registry.Binding(j.Plan))
	if rec == nil {
		rec = &Record{Format: RecordFormat, Plan: j.Plan}
	}
	discard := j.discards(rec, stages)
	next := *rec
	next.Stages = slices.Clone(rec.Stages)
	next.drop(discard)
	if d := registry.Diff(j.Plan, rec.Plan, next.begun()...); len(next.Stages) > 0 && len(d) > 0 {
		return rec, j.otherOptions(rec.Plan, d, next.begun())
	}
	if err := j.compareInputs(ctx, &next); err != nil {
		return rec, err
	}
	if err := next.Check(j.Catalog); err != nil {
		return rec, err
	}
	j.sweep(ctx)
	if err := j.checkDiscard(ctx, rec, &next, discard); err != nil {
		return rec, err
	}
	if err := j.admit(ctx, &next, stages); err != nil {
		return rec, err
	}
	if err := j.mend(ctx); err != nil {
		return rec, err
	}
	if err := j.discard(ctx, rec, discard); err != nil {
		return rec, err
	}
	if rec.Plan.DropFeatures != j.Plan.DropFeatures || rec.Plan.DropSmoothed != j.Plan.DropSmoothed {
		for i := range rec.Stages {
			if x := &rec.Stages[i]; x.Outputs != nil {
				outputs := outputsOf(j.Catalog, j.Plan, x.Stage) // Check has compared them with the record
				x.Outputs = &outputs
			}
		}
	}
	rec.Plan, rec.Versions, rec.Host, rec.MemoryBudget = j.Plan, j.Versions, j.Host, j.Resources.Memory
	j.forecast().noteLimits(rec)
	rec.Inputs, rec.Named = next.Inputs, j.Inputs.Over(rec.Named)
	rec.State, rec.Reason, rec.Stopped = Running, "", false
	if j.Restart {
		own := j.ownModel(stages)
		rec.Wanted = slices.DeleteFunc(rec.Wanted, func(s control.Stage) bool { return slices.Contains(own, s) })
	}
	for _, s := range stages {
		if registry.Of(s)[0].Always() && !slices.Contains(rec.Wanted, s) {
			rec.Wanted = append(rec.Wanted, s)
		}
	}
	return rec, j.write(ctx, rec)
}

// Refuse returns an error if the stages cannot run on a run directory in this state, nil if they can. It changes nothing, and is called
// before the journal is opened.
func (j *Job) Refuse(s *Standing, stages []control.Stage) error {
	discard := j.discards(s.Record, stages)
	if err := s.Refuse(discard); err != nil || s.Recorded() {
		return err
	}
	if err := onlyOf(s.Catalog, j.Plan, discard); err != nil { // the record will have the plan of the job
		return failure.As(control.ErrPlanMismatch, err)
	}
	return nil
}

// discards lists the stages whose output is discarded before the stages run.
func (j *Job) discards(rec *Record, stages []control.Stage) []control.Stage {
	discard := slices.Clone(rec.Discarding)
	if j.Restart {
		discard = append(discard, registry.Readers(j.Plan, append(j.ownModel(stages), stages...)...)...)
	}
	return discard
}

// mend makes again what the run directory lacks.
func (j *Job) mend(ctx context.Context) error {
	if j.Standing == nil {
		return nil
	}
	for _, lack := range j.Standing.Lacks {
		j.Log.Warn("it is made again", "run", j.Store.URI(), "because", lack)
	}
	return j.Catalog.Mend(ctx, j.Standing.Least())
}

// sweep removes files that an interrupted command has not committed. It does so only if record, journal and catalogue belong together: a
// file outside the catalogue was never committed then. Temporary files of stages stay, because a reader such as export may use them.
func (j *Job) sweep(ctx context.Context) {
	if s := j.Standing; !j.Local || s == nil || !s.Sound() || !s.Known() {
		return
	}
	files, bytes := 0, int64(0)
	orphans, _, err := j.Catalog.Orphans(ctx)
	for _, o := range orphans {
		record := catalog.IsRecord(catalog.AttemptAt(o.Name))
		if err != nil || !record && !(j.Lonely && catalog.IsOutput(o.Name)) {
			continue
		}
		if err = j.Store.Remove(ctx, o.Name); err == nil {
			files, bytes = files+1, bytes+o.Size
		}
	}
	if files > 0 {
		j.Log.Info("removed what an interrupted command has not committed", "files", files, "bytes", bytes)
	}
	if err != nil {
		j.Log.Warn("what an interrupted command has not committed takes space: ndls gc --delete removes it", "run", j.Store.URI(), "because", err)
	}
}

// write stores the record, and announces the state of its stages.
func (j *Job) write(ctx context.Context, rec *Record) error {
	rec.Catalog = &CatalogMark{Number: j.Catalog.Number(), Published: j.Catalog.Published()}
	rec.Journal = j.Tasks.Recorded()
	if err := rec.write(ctx, j.Store); err != nil {
		return err
	}
	j.Tasks.Announce(rec.Progress())
	return nil
}

// ownModel lists the stages of the run's own model if the job smooths soft labels of another model. A restart discards their output,
// because soft labels belong to one model.
func (j *Job) ownModel(stages []control.Stage) (list []control.Stage) {
	for _, s := range stages {
		list = append(list, registry.Replaces(j.Plan, s)...)
	}
	return list
}

// admit refuses stages that lack their input or do not fit, before anything changes.
func (j *Job) admit(ctx context.Context, rec *Record, stages []control.Stage) error {
	if err := j.forecast().refuse(ctx, rec, stages); err != nil {
		return err
	}
	then := *rec
	then.Stages = slices.Clone(rec.Stages)
	then.Wanted = slices.Clone(rec.Wanted)
	for _, s := range stages {
		if then.Done(s) {
			continue
		}
		skip, err := j.check(ctx, &then, s)
		if err != nil {
			return err
		}
		if !skip {
			then.set(StageRecord{State: Complete, StageReport: control.StageReport{Stage: s}})
		}
		if s == control.Partition {
			break // what the dataset has is known after it
		}
	}
	return nil
}

// discard removes the output of stages. The record says so until that is done, under the plan that made the output; after an interruption
// the next process continues the removal. It also removes files of any plan other than the job's, because no record leads to them.
func (j *Job) discard(ctx context.Context, rec *Record, stages []control.Stage) error {
	if len(stages) > 0 {
		rec.Discarding = stages
		rec.Discards++
		rec.drop(stages)
		if err := j.write(ctx, rec); err != nil {
			return err
		}
		if err := j.Tasks.Forget(ctx, rec.Discards); err != nil {
			return err
		}
	}
	plans := registry.Hashes(j.Plan)
	err := j.Catalog.Remove(ctx, func(e catalog.Entry) bool {
		return slices.Contains(stages, control.Stage(e.Stage)) || e.Plan != plans[e.Stage]
	})
	if err != nil {
		return fmt.Errorf("discarding the output of %v: %w", stages, err)
	}
	rec.Discarding = nil
	return nil
}

// step runs one stage; later lists the stages after it.
func (j *Job) step(ctx context.Context, rec *Record, s control.Stage, later []control.Stage) error {
	x := StageRecord{State: Running, StageReport: control.StageReport{Stage: s}}
	fresh := rec.Stage(s) == nil
	if fresh && s == control.Partition {
		rec.Inputs = slices.Clone(j.Files)
		if err := j.digestFirst(ctx, rec.Inputs); err != nil {
			return err
		}
	}
	rec.set(x)
	rec.Finished = time.Time{}
	if err := j.write(ctx, rec); err != nil {
		return err
	}
	if fresh {
		if err := j.Tasks.Forget(ctx, rec.Discards); err != nil {
			return err
		}
	}
	if j.Begin != nil {
		if err := j.Begin(ctx); err != nil {
			return err
		}
	}
	planned, err := j.forecast().figures(ctx, rec, s)
	if err != nil {
		return err
	}
	j.forecast().noteLimits(rec)
	if j.lean, j.spare = false, 0; planned != nil {
		j.lean, j.spare = planned.Lean, planned.Spare
	}
	if j.lean {
		j.Log.Info("leaves out temporary files that save time: the disk has no space for them", "stage", s, "bytes_for_copies", j.spare)
	}
	j.Log.Info("begin", "stage", s)
	end := progress.Begin(ctx, j.forecast().expected(ctx, rec, s, planned, later))
	traced, span := tracing.Span(ctx, "stage", attribute.String("ndls.stage", string(s)), attribute.String("ndls.plan", j.Plan.Hash()))
	digested := func(err error) error { return err }
	if s == control.Partition {
		traced, digested = j.digestBeside(traced, rec)
	}
	report, err := j.execute(traced, rec, registry.Of(s)[0])
	err = digested(err)
	span(err, attribute.Int("ndls.passes", report.Passes), attribute.Int64("ndls.edges", report.EdgesStreamed),
		attribute.Int64("ndls.peak_memory", report.MeasuredPeak))
	end()
	rec.Losses = j.Tasks.Losses()
	if err != nil {
		x.State, x.Reason, x.Stopped = Failed, reason(ctx, err), j.wasStopped(ctx)
		rec.set(x)
		return failure.InStage(string(s), err)
	}
	// If this was interrupted, the stage finds everything done, and the rest is removed.
	if err := j.Catalog.Remove(ctx, func(e catalog.Entry) bool { return registry.RemovedAfter(j.Plan, e.Kind, s) }); err != nil {
		return fmt.Errorf("removing what no stage reads after %s: %w", s, err)
	}
	x.StageReport, x.State = report, Complete
	if planned != nil {
		x.Planned, x.PlannedPeak = planned, planned.PeakBytes
	}
	if err := j.Catalog.Publish(ctx); err != nil {
		return err
	}
	outputs := outputsOf(j.Catalog, j.Plan, s)
	x.Outputs = &outputs
	rec.set(x)
	said := []any{"stage", s, "seconds", report.Seconds, "rows", report.Rows}
	if found := summary(report); found != "" {
		said = append(said, "found", found)
	}
	j.Log.Info("complete", said...)
	return j.write(ctx, rec)
}

// execute runs a stage phase by phase.
func (j *Job) execute(ctx context.Context, rec *Record, s stage.Stage) (report control.StageReport, err error) {
	var sum shards.Summary
	if len(s.Needs(j.Plan)) > 0 {
		if sum, err = shards.ReadSummary(ctx, j.Catalog); err != nil {
			return report, err
		}
	}
	ctx = progress.Shared(ctx) // its phases tell how far it is, where workers are other processes
	begun := time.Now()
	j.listed = 0
	reports, err := j.runPhases(ctx, rec, s, sum)
	for errors.Is(err, errShort) { // too few workers remain to hold what a phase shares out
		j.Log.Warn("workers are missing: their rows are shared out among those that are left", "stage", s.Name())
		reports, err = j.runPhases(ctx, rec, s, sum)
	}
	if err != nil {
		return report, err
	}
	report = merge(s.Name(), reports)
	report.Seconds = time.Since(begun).Seconds()
	if !j.Alone {
		report.MeasuredDisk += j.listed
	}
	if report.Accuracy != nil {
		for _, text := range report.Accuracy.Warnings {
			j.Log.Warn(text)
		}
	}
	if m, ok := s.Shape(j.Plan, sum).(stage.Matrix); ok {
		report.Rows = 0
		for _, e := range j.Catalog.Entries(m.Rows) {
			report.Rows += e.Rows
		}
	}
	return report, nil
}

// runPhases runs what is left of a stage with the workers that are present.
func (j *Job) runPhases(ctx context.Context, rec *Record, s stage.Stage, sum shards.Summary) (reports []control.StageReport, err error) {
	steps, _ := s.Shape(j.Plan, sum).(stage.Steps)
	if under := j.underWay(s.Name()); steps.Panels > 0 && len(under) > 0 && under[0].LastPanel > 0 {
		if reports, err = j.phase(ctx, under); err != nil { // groups end their step as it was divided
			return reports, err
		}
	}
	phases, g, err := j.phases(ctx, rec, s, sum)
	if err != nil {
		return nil, err
	}
	if phases == nil {
		return j.runSteps(ctx, s.Name(), steps, g)
	}
	return j.inPhases(ctx, phases)
}

// inPhases runs phases one after another.
func (j *Job) inPhases(ctx context.Context, phases [][]control.Task) (reports []control.StageReport, err error) {
	all, before := 0.0, 0.0
	for _, tasks := range phases {
		all += phaseWeight(tasks)
	}
	for _, tasks := range phases {
		weight := phaseWeight(tasks)
		leave := progress.EnterRange(ctx, before/all, (before+weight)/all)
		reports, err = j.phase(ctx, tasks)
		before += weight
		if leave(); err != nil {
			return nil, err
		}
	}
	return reports, nil
}

// phaseWeight returns the weight of a phase in the progress of its stage, in proportion to its expected time.
func phaseWeight(tasks []control.Task) float64 {
	if t := tasks[0]; t.Part == control.Columns || t.Shares() {
		return stage.ColumnShare
	}
	return 1 - stage.ColumnShare
}

// merge makes one report of the reports of a stage's tasks. It adds work, takes the maximum of what was held, and copies findings from the
// task that has them.
func merge(s control.Stage, reports []control.StageReport) control.StageReport {
	all := control.StageReport{Stage: s}
	for _, r := range reports {
		all.Rows += r.Rows
		all.Passes += r.Passes
		all.ColumnsPerPass = max(all.ColumnsPerPass, r.ColumnsPerPass)
		all.EdgesStreamed += r.EdgesStreamed
		all.KernelSeconds += r.KernelSeconds
		all.Hops.Add(r.Hops...)
		all.Polynomials = cmp.Or(r.Polynomials, all.Polynomials)
		all.BytesRead += r.BytesRead
		all.BytesWritten += r.BytesWritten
		all.NetworkBytes += r.NetworkBytes
		all.PlannedPeak = max(all.PlannedPeak, r.PlannedPeak)
		all.MeasuredPeak = max(all.MeasuredPeak, r.MeasuredPeak)
		all.MeasuredDisk = max(all.MeasuredDisk, r.MeasuredDisk)
		all.Findings = r.Or(all.Findings)
	}
	all.Busy = mergeBusy(reports)
	return all
}

// mergeBusy returns the mean, weighted by time, of all tasks that measured how busy threads were; nil if none did.
func mergeBusy(reports []control.StageReport) *control.Busy {
	var all control.Busy
	seconds := 0.0
	for _, r := range reports {
		if r.Busy != nil {
			all.Threads = max(all.Threads, r.Busy.Threads)
			all.Mean += r.Busy.Mean * r.Seconds
			all.Fewer += r.Busy.Fewer * r.Seconds
			seconds += r.Seconds
		}
	}
	if seconds == 0 {
		return nil
	}
	all.Mean /= seconds
	all.Fewer /= seconds
	return &all
}

// check refuses a stage whose input is missing. In a whole run it skips a stage for which the dataset lacks the input.
func (j *Job) check(ctx context.Context, rec *Record, s control.Stage) (skip bool, err error) {
	if s == control.Partition {
		return false, nil
	}
	if rec.Done(control.Partition) {
		sum, err := shards.ReadSummary(ctx, j.Catalog)
		if err != nil {
			return false, err
		}
		if lack := registry.Of(s)[0].Lacks(j.Plan, stage.FactsOf(sum)); lack != "" {
			if j.Whole || lack == stage.DepthGiven {
				rec.Wanted = slices.DeleteFunc(rec.Wanted, func(w control.Stage) bool { return w == s })
				j.leaveOut(s, lack, stage.FactsOf(sum))
				return true, nil
			}
			return false, fmt.Errorf("coordinator: %s cannot run: %s", s, lack)
		}
	}
	if own := registry.Replaces(j.Plan, s); len(own) > 0 && rec.Stage(own[len(own)-1]) != nil {
		return false, fmt.Errorf("coordinator: %s holds soft labels of its own model already; give --soft-labels with another --run, or with --resume=false to discard that model", j.Store.URI())
	}
	if err := j.checkRemoved(ctx, rec, s); err != nil {
		return false, err
	}
	for _, need := range registry.Needs(j.Plan, s) {
		if !rec.Done(need) {
			return false, fmt.Errorf("coordinator: %s reads the output of %s, which is not complete in %[3]s; run this first: ndls %[4]s --run %[3]s",
				s, need, j.Store.URI(), registry.Verb(need))
		}
	}
	return false, nil
}

// checkDiscard refuses to discard output that could not be made again because its input was removed. next is the record after the discard.
func (j *Job) checkDiscard(ctx context.Context, rec, next *Record, discard []control.Stage) error {
	for _, s := range discard {
		if rec.Stage(s) == nil {
			continue
		}
		if err := j.checkRemoved(ctx, next, s); err != nil {
			return fmt.Errorf("--resume=false would discard the output of %s, which could not be made again, so nothing was changed: %w", s, err)
		}
	}
	return nil
}

// checkRemoved refuses to begin a stage that reads removed features or removed smoothed rows. [Record.Check] finds those that a damaged run
// lacks earlier.
func (j *Job) checkRemoved(ctx context.Context, rec *Record, s control.Stage) error {
	reads := registry.ReadsFeatures(j.Plan, s)
	x := rec.Stage(registry.KindOf(stage.RowsKind(j.Plan)).Stage) // without outputs where it is about to be complete
	rows := x != nil && x.Outputs != nil && (rec.Plan.DropSmoothed || j.Plan.DropSmoothed) && registry.ReadsRows(j.Plan, s)
	if !rec.Done(control.Partition) || rec.Stage(s) != nil || !reads && !rows {
		return nil
	}
	if rows && len(j.Catalog.Entries(stage.RowsKind(j.Plan))) == 0 {
		return fmt.Errorf("%s reads the smoothed rows, which were removed from %s once labels were smoothed (--keep-smoothed=false); ndls smooth --run %s --resume=false makes them again, and discards what was made of them",
			s, j.Store.URI(), j.Store.URI())
	}
	sum, err := shards.ReadSummary(ctx, j.Catalog)
	if err != nil || !reads || registry.HaveFeatures(j.Catalog, sum) {
		return err
	}
	return fmt.Errorf("%s reads the input features, which an earlier smooth removed from %s (--keep-features=false); ndls partition --dataset URI --run %s --resume=false imports them again, and discards what was made of the graph",
		s, j.Store.URI(), j.Store.URI())
}

// leaveOut logs once why a stage is left out, together with all stages of a whole run that are left out for the same reason.
func (j *Job) leaveOut(s control.Stage, lack string, f estimate.Facts) {
	if slices.Contains(j.leftOut, lack) {
		return // it was said
	}
	j.leftOut = append(j.leftOut, lack)
	level := slog.LevelWarn
	if lack == stage.DepthGiven {
		level = slog.LevelInfo
	}
	all := []control.Stage{s}
	if j.Whole {
		all = slices.DeleteFunc(registry.Always(), func(s control.Stage) bool { return registry.Of(s)[0].Lacks(j.Plan, f) != lack })
	}
	j.Log.Log(context.Background(), level, "left out", "stages", enumerated(all), "because", lack)
}

// summary returns in a few words what a stage found, or "" if that does not fit into a line.
func summary(r control.StageReport) string {
	switch {
	case r.LSI != nil:
		return fmt.Sprintf("mean K %.2f, largest %d", r.LSI.Mean, r.LSI.Max)
	case r.Accuracy != nil:
		best := cmp.Or(r.Accuracy.Smoothed.Test, r.Accuracy.Base.Test)
		if best == nil {
			return ""
		}
		return fmt.Sprintf("test accuracy %.2f %%", 100*best.Mean)
	case r.Stage == control.Partition:
		return fmt.Sprintf("%d nodes", r.Rows)
	}
	return ""
}

// fail records why the run stopped, also if the context was cancelled. It leaves the record alone if another coordinator has taken over the
// run.
func (j *Job) fail(ctx context.Context, rec *Record, err error) error {
	if errors.Is(err, ErrSuperseded) {
		return err
	}
	err = registry.Explain(err, j.Catalog)
	rec.State, rec.Reason, rec.Stopped = Failed, reason(ctx, err), j.wasStopped(ctx)
	for i := range rec.Stages {
		if x := &rec.Stages[i]; x.State == Running { // it ended before its work began
			x.State, x.Reason, x.Stopped = rec.State, rec.Reason, rec.Stopped
		}
	}
	return errors.Join(err, j.write(context.WithoutCancel(ctx), rec))
}

// wasStopped reports whether the user has stopped the run.
func (j *Job) wasStopped(ctx context.Context) bool {
	return j.Stopped != nil && ctx.Err() != nil && j.Stopped(context.Cause(ctx))
}

// reason returns the cause of a cancelled context, or else the error.
func reason(ctx context.Context, err error) string {
	if cause := context.Cause(ctx); cause != nil {
		return failure.Text(cause)
	}
	return failure.Text(err)
}

// finish writes the report and the record. The run is complete in it if no requested stage is missing.
func (j *Job) finish(ctx context.Context, rec *Record) error {
	if missing := rec.missing(); len(missing) > 0 {
		rec.State, rec.Reason = Failed, fmt.Sprintf("stages asked for earlier are not complete: %v", missing)
	} else {
		rec.State, rec.Reason = Complete, ""
		if rec.Finished.IsZero() { // else nothing was left to do
			rec.Finished = time.Now().UTC().Truncate(time.Second)
		}
	}
	if rec.Done(control.Partition) {
		sum, err := shards.ReadSummary(ctx, j.Catalog)
		if err != nil {
			return err
		}
		if err := writeReport(ctx, j.Store, NewReport(rec, sum)); err != nil {
			return err
		}
	}
	return j.write(ctx, rec)
}

// otherOptions returns the error for a plan that differs from the plan of the run directory. begun lists the stages whose output the run
// directory holds. The error names the options that differ and the command that makes the first of these stages again with the options of
// the job. That command discards no more than necessary.
func (j *Job) otherOptions(there plan.Options, differ []string, begun []control.Stage) error {
	first := begun[slices.IndexFunc(begun, func(s control.Stage) bool { return len(registry.Diff(j.Plan, there, s)) > 0 })]
	lost := slices.DeleteFunc(registry.Readers(j.Plan, first), func(s control.Stage) bool { return !slices.Contains(begun, s) })
	return fmt.Errorf("%s was made with other options:\n  %s\nuse the same options, or another --run, or discard the output of %s and make it again, then repeat this command:\n  %s: %w",
		j.Store.URI(), strings.Join(differ, "\n  "), enumerated(lost), Again(j.Plan, there, j.Store.URI(), j.Inputs, first), control.ErrPlanMismatch)
}

// enumerated joins the names of stages for a sentence.
func enumerated(list []control.Stage) string {
	words := make([]string, len(list))
	for i, s := range list {
		words[i] = string(s)
	}
	if last := len(words) - 1; last > 0 {
		return strings.Join(words[:last], ", ") + " and " + words[last]
	}
	return strings.Join(words, "")
}

// Again returns the command that makes a stage of a run directory again with the options of here in place of the options of there. The
// command lists the options that differ and that belong to this stage or to a stage before it. in holds the names that the user gave to
// files.
func Again(here, there plan.Options, run string, in control.Inputs, s control.Stage) string {
	ours, theirs, files := here.Values(), there.Values(), in.Flags()
	words := []string{"ndls", registry.Verb(s), "--run", report.Quoted(run)}
	if s == control.Partition {
		words = append(words, "--dataset", report.Quoted(cmp.Or(files["dataset"], "URI")))
	}
	for _, name := range slices.Sorted(maps.Keys(ours)) {
		if ours[name] == theirs[name] || name == "dataset" || !belongs(here, there, name, s) {
			continue
		}
		value, ok := spelt(here, name)
		if !ok {
			continue
		}
		if file := files[name]; file != "" {
			value = file
		}
		words = append(words, "--"+name+"="+report.Quoted(value))
	}
	return strings.Join(append(words, "--resume=false"), " ")
}

// belongs reports whether an option decides the bytes of stage s or of one before it, under either plan.
func belongs(here, there plan.Options, name string, s control.Stage) bool {
	all := registry.Names()
	all = all[:slices.Index(all, s)+1]
	with, without := there, here
	with.Copy(name, here)
	without.Copy(name, there)
	return len(registry.Diff(with, there, all...)) > 0 || len(registry.Diff(here, without, all...)) > 0
}

// spelt returns the value of an option in the form that its flag reads. ok is false if the options leave it open because their rule has no
// such option; the flag of the rule leaves it open, too.
func spelt(p plan.Options, name string) (value string, ok bool) {
	value = p.Values()[name]
	if x, known := plan.Find(name); known && x.Positive() && value == "0" {
		return p.InForce(name), !x.Refuses(p)
	}
	return value, true
}

// Finished reports whether all stages of the job are complete in rec, or would be left out, under the same plan and inputs. It writes
// nothing. The catalogue must be bound to the plan of the job.
func (j *Job) Finished(ctx context.Context, rec *Record, stages []control.Stage) (bool, error) {
	if len(rec.Discarding) > 0 || len(registry.Diff(j.Plan, rec.Plan, rec.begun()...)) > 0 {
		return false, nil
	}
	left := *rec
	left.Wanted = slices.Clone(rec.Wanted)
	if err := j.compareInputs(ctx, &left); err != nil {
		return false, err
	}
	if err := rec.Check(j.Catalog); err != nil {
		return false, err
	}
	for _, s := range stages {
		if rec.Done(s) {
			continue
		}
		if skip, err := j.check(ctx, &left, s); err != nil || !skip {
			return false, err
		}
	}
	return true, nil
}
