package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"

	"github.com/spf13/cobra"

	"ndls"
	"ndls/internal/control"
	"ndls/internal/mem"
)

func (a *app) statusCommand() *cobra.Command {
	var s ndls.StatusConfig
	cmd := a.command("status (--run DIR | --coordinator HOST:PORT)", "how a run on several machines goes",
		`status asks the coordinator of a run: which stage it is in, which tasks wait, what
each worker does, and what was lost. Where no coordinator answers it says how the
run stood last. It proves with --keys or a token that it belongs to the job.`,
		func(ctx context.Context, _ *cobra.Command) error {
			s.Run, s.Log = a.runDir, a.log
			st, last, err := ndls.GetStatus(ctx, s)
			switch {
			case err != nil:
				return err
			case st == nil:
				return a.lastStatus(last.Record())
			case a.json:
				return a.line(st)
			}
			return printStatus(a.stdout, *st)
		})
	cmd.Flags().StringVar(&a.runDir, "run", "", "run directory")
	trustFlags(cmd, &s.Trust)
	coordinatorFlag(cmd, &s.Coordinator)
	cmd.Example = `  ndls status --run /shared/RUN --keys KEYS`
	return cmd
}

// lastStatus is that of a run without a coordinator.
func (a *app) lastStatus(rec *ndls.Record) error {
	if done, err := a.asJSON(map[string]any{"run": a.runDir, "state": rec.State, "reason": rec.Reason, "coordinator": false, "stages": rec.Progress()}); done {
		return err
	}
	fmt.Fprintf(a.stdout, "%s: no coordinator; the run is %s %s\n", a.runDir, rec.State, rec.Reason)
	return printStages(a.stdout, rec.Progress())
}

// printStages prints one line a stage: what is done, what is under way and what is to come.
func printStages(w io.Writer, stages []ndls.StageStatus) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, s := range stages {
		took := ""
		if s.State == ndls.Complete {
			took = duration(s.Seconds)
		}
		fmt.Fprintf(t, "  %s\t%s\t%s\n", s.Stage, s.State, took)
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
	if err := printStages(w, st.Stages); err != nil {
		return err
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	if len(st.Workers) > 0 {
		fmt.Fprintf(t, "\nworker\tseen\tmemory\tthreads\ttask\tprogress\tlosses\n")
	}
	for _, x := range st.Workers {
		seen := "lost"
		if x.Here {
			seen = (time.Duration(x.LastSeen) * time.Second).String() + " ago"
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%d\t%s\t%s\t%d\n", plain(x.Name), seen, mem.Bytes(x.Memory), x.Threads, plain(x.Task), describeProgress(x.Progress), x.Losses)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	if len(st.Losses) > 0 {
		fmt.Fprintf(w, "\n%s lost, %s of work\n", count(int64(len(st.Losses)), "attempt"), duration(st.SecondsLost))
	}
	return nil
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

func describeProgress(p control.Progress) string {
	if p.What == "" {
		return ""
	}
	text := fmt.Sprintf("%s %d of %d", plain(p.What), p.Done, p.Total)
	if p.Saved > 0 {
		text += fmt.Sprintf(", %d saved", p.Saved)
	}
	return text
}
