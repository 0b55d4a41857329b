package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode"

	"github.com/spf13/cobra"

	"ndls"
	"ndls/internal/control"
	"ndls/internal/mem"
)

func (a *app) statusCommand() *cobra.Command {
	v := &statusVerb{app: a}
	cmd := a.command("status (RUN | --coordinator HOST:PORT)", "how a run goes",
		`status asks the coordinator of a run on several machines: which stage it is in, which tasks wait, what
each worker does, and what was lost. It proves with --keys or a token that it belongs to the job. Where no
coordinator answers, and for ndls run on this host, it says how far the run directory is and whether a process
works on it.

With --watch it shows this again and again until the run has ended, and ends with status 0 if the run is
complete, else with 1. On a terminal it stays in place; elsewhere it prints what has changed, and with --json a
line each time.`,
		func(ctx context.Context, _ *cobra.Command) error {
			v.Run, v.Log = a.runDir, a.log
			if v.watch {
				if v.interval <= 0 {
					return asUsage(fmt.Errorf("--interval %v is not above 0", v.interval))
				}
				return v.follow(ctx)
			}
			state, err := v.look(ctx)
			if err != nil {
				return err
			}
			return a.jsonOr(state.json, state.print)
		})
	f := cmd.Flags()
	a.orRunFlag(cmd, "run directory, or a word without --run")
	f.BoolVar(&v.watch, "watch", false, "repeat it until the run has ended")
	f.DurationVar(&v.interval, "interval", 2*time.Second, "with --watch: time between two repetitions")
	trustFlags(cmd, &v.Trust)
	coordinatorFlag(cmd, &v.Coordinator)
	cmd.Example = `  ndls status RUN --watch
  ndls status /shared/RUN --keys KEYS`
	return cmd
}

// statusVerb holds the flags of the verb.
type statusVerb struct {
	*app
	ndls.StatusConfig
	watch    bool
	interval time.Duration
}

// view is how a run goes at a moment.
type view struct {
	json  any
	print func(w io.Writer) error
	// ended says that no process works on the run, failed why it is not complete then.
	ended  bool
	failed error
}

// look asks how the run goes.
func (v *statusVerb) look(ctx context.Context) (view, error) {
	st, last, err := ndls.GetStatus(ctx, v.StatusConfig)
	switch {
	case err != nil:
		return view{}, err
	case st != nil:
		return view{json: st, print: func(w io.Writer) error { return printStatus(w, *st) }}, nil
	}
	rec := last.Record()
	working := rec.State == ndls.Running && last.Working(ctx)
	if rec.State == ndls.Running && !working {
		// A process that ended after the record was read has written its last one.
		if last, err = ndls.Open(ctx, v.Run); err != nil {
			return view{}, err
		}
		rec = last.Record()
	}
	return view{
		json: map[string]any{
			"problem": last.Problem(),
			"run":     v.runDir, "state": rec.State, "reason": rec.Reason, "stopped": rec.Stopped, "coordinator": false, "working": working,
			"stages": rec.Progress(),
		},
		print: func(w io.Writer) error {
			fmt.Fprintf(w, "%s: the run is %s\n", v.runDir, because(rec.Word(), rec.Reason))
			if problem := last.Problem(); problem != "" {
				fmt.Fprintf(w, "damaged: %s\n", problem)
			}
			if rec.State == ndls.Running {
				fmt.Fprintln(w, map[bool]string{true: "a process works on it", false: notWorking}[working])
			}
			return printStages(w, rec.Progress(), last.Changed())
		},
		ended: !working, failed: notComplete(rec, v.runDir),
	}, nil
}

// because is a state with its reason, if it has one.
func because(state, reason string) string {
	if reason == "" {
		return state
	}
	return state + ": " + reason
}

// notWorking says of a run that it stopped without a word.
const notWorking = "no process works on it; run the same command again to continue"

// notComplete is the error of a run that has ended and is not complete.
func notComplete(rec *ndls.Record, run string) error {
	switch rec.State {
	case ndls.Complete:
		return nil
	case ndls.Failed:
		return fmt.Errorf("%s is %s: %s", run, rec.Word(), rec.Reason)
	}
	return fmt.Errorf("%s is not complete: %s", run, notWorking)
}

// follow looks again and again until the run has ended.
func (v *statusVerb) follow(ctx context.Context) error {
	s := &screen{w: v.stdout, size: terminal(v.stdout)}
	if f, ok := v.stdout.(*folding); ok {
		s.w = f.w // it cuts lines itself
	}
	for {
		state, err := v.look(ctx)
		if err != nil {
			return err
		}
		done, err := v.asJSON(state.json)
		if !done {
			var text strings.Builder
			var fitted io.Writer = &text
			if s.size != nil {
				fitted = &folding{w: &text, columns: func() int { columns, _ := s.size(); return max(columns-1, 1) }, plain: true}
			}
			if err = state.print(fitted); err == nil {
				err = s.show(text.String())
			}
		}
		if err != nil {
			return err
		}
		if state.ended {
			return state.failed
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(v.interval):
		}
	}
}

// screen shows a text that changes: in place on a terminal, else each time that it is another one.
type screen struct {
	w     io.Writer
	size  func() (columns, rows int) // nil where w is no terminal
	text  string
	lines int // on the terminal
}

// show replaces the text.
func (s *screen) show(text string) error {
	if s.size == nil {
		if text == s.text {
			return nil
		}
		s.text = text
		_, err := io.WriteString(s.w, text)
		return err
	}
	columns, rows := s.size()
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	if most := max(rows-1, 1); len(lines) > most {
		lines = lines[:most]
	}
	var out strings.Builder
	if s.lines > 0 {
		fmt.Fprintf(&out, "\x1b[%dA\r\x1b[J", min(s.lines, max(rows-1, 1)))
	}
	for _, line := range lines {
		cells := []rune(line)
		out.WriteString(string(cells[:min(len(cells), max(columns-1, 0))]) + "\n")
	}
	s.lines = len(lines)
	_, err := io.WriteString(s.w, out.String())
	return err
}

// printStages prints one line a stage: what is done, what is under way and what is to come. began is when the
// stage under way began, the zero time where that is not known.
func printStages(w io.Writer, stages []ndls.StageStatus, began time.Time) error {
	t := newTable(w, 2, 0)
	for _, s := range stages {
		took := ""
		switch {
		case s.State == ndls.Complete:
			took = duration(s.Seconds)
		case s.State == ndls.Running && !began.IsZero():
			took = "began " + age(began, time.Now()) + " ago"
		}
		fmt.Fprintf(t, "  %s\t%s\t%s\n", s.Stage, s.Word(), took)
	}
	return t.Flush()
}

func printStatus(w io.Writer, st ndls.Status) error {
	fmt.Fprintf(w, "%s: %s", st.Run, st.State)
	if st.Stage != "" {
		fmt.Fprintf(w, ", %s", st.Stage)
		if st.Phase != control.Whole {
			fmt.Fprintf(w, " by %s", st.Phase)
		}
	}
	fmt.Fprintf(w, "; tasks: %d done, %d running, %d waiting\n", st.Tasks.Done, st.Tasks.Running, st.Tasks.Waiting)
	if err := printStages(w, st.Stages, time.Time{}); err != nil {
		return err
	}
	t := newTable(w, 2, 0)
	if len(st.Workers) > 0 {
		fmt.Fprintf(t, "\nworker\tseen\tmemory\tthreads\tedges/s\tread/s\twritten/s\ttask\tprogress\tlosses\n")
	}
	for _, x := range st.Workers {
		seen := "lost"
		if x.Here {
			seen = (time.Duration(x.LastSeen) * time.Second).String() + " ago"
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%d\t%s\t%s\t%s\t%s\t%s\t%d\n", plain(x.Name), seen, memoryOf(x.Usage.Memory, x.Memory), x.Threads,
			edgesASecond(x.Speed.Edges), bytesASecond(x.Speed.Read), bytesASecond(x.Speed.Written), plain(x.Task),
			describeProgress(x.Progress, x.Rate), x.Losses)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	if len(st.Losses) > 0 {
		fmt.Fprintf(w, "\n%s lost, %s of work\n", count(int64(len(st.Losses)), "attempt"), duration(st.SecondsLost))
	}
	return nil
}

// memoryOf says how many bytes the process of a worker takes, 0 where that is not known, and its limit.
func memoryOf(taken, limit int64) string {
	if taken == 0 {
		return mem.Bytes(limit).String()
	}
	return fmt.Sprintf("%s of %s", mem.Bytes(taken), mem.Bytes(limit))
}

// edgesASecond and bytesASecond write a rate, and nothing where there is none.
func edgesASecond(rate float64) string {
	if rate == 0 {
		return ""
	}
	return fmt.Sprintf("%.1f M", rate/1e6)
}

func bytesASecond(rate float64) string {
	if rate == 0 {
		return ""
	}
	return mem.Bytes(rate).String()
}

// plain is a text of another process without what a terminal would obey.
func plain(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return unicode.ReplacementChar
	}, text)
}

// describeProgress says how far a worker is, which does so many units a second.
func describeProgress(p control.Progress, rate float64) string {
	if p.What == "" {
		return ""
	}
	text := fmt.Sprintf("%s %d of %d", plain(p.What), p.Done, p.Total)
	switch {
	case p.Total == 0:
		text = fmt.Sprintf("%s, %d %s", strings.TrimSpace(plain(p.What)+" "+plain(p.Where)), p.Done, plain(p.Unit))
	case rate > 0 && p.Done < p.Total:
		text += fmt.Sprintf(", %s left", duration(float64(p.Total-p.Done)/rate))
	}
	if p.Saved > 0 {
		text += fmt.Sprintf(", %d saved", p.Saved)
	}
	return text
}
