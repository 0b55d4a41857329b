package watch

import (
	"embed"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"ndls/coordinator"
	"ndls/internal/control"
	"ndls/internal/mem"
	"ndls/internal/page"
	"ndls/internal/progress"
)

//go:embed page.html.tmpl page.css page.js runs.html.tmpl runs.js
var files embed.FS

var functions = page.Funcs{
	"bytes":   func(n int64) string { return mem.Bytes(n).String() },
	"took":    took,
	"percent": func(x float64) string { return strconv.FormatFloat(100*x, 'f', 1, 64) },
	"share":   func(x float64) string { return strconv.FormatFloat(min(max(x, 0), 1), 'f', 4, 64) },
	"million": func(x float64) string { return strconv.FormatFloat(x/1e6, 'f', 1, 64) },
	"css":     func() (page.Raw, error) { b, err := files.ReadFile("page.css"); return page.Raw(b), err },
	"js":      func() (page.Raw, error) { b, err := files.ReadFile("page.js"); return page.Raw(b), err },
	"short":   func(n int64) string { return progress.Number(n) },
	"shorter": func(x float64) string {
		if x < 1000 {
			return strconv.FormatFloat(x, 'f', 1, 64)
		}
		return progress.Number(int64(x))
	},
	"utc":   func(t time.Time) string { return t.UTC().Format(time.RFC3339) },
	"clock": func(t time.Time) string { return t.Format(time.TimeOnly) },
}

// methods are those that the templates call.
var methods = map[string][]any{
	"Class": {State.Class}, "Done": {progress.Course.Done}, "Filling": {State.Filling}, "FirstLosses": {State.FirstLosses},
	"FirstWorkers": {State.FirstWorkers}, "Heading": {State.Heading, shown.Heading}, "JobRemaining": {progress.Course.JobRemaining},
	"JobShare": {State.JobShare}, "Learning": {State.Learning}, "MoreWorkers": {State.MoreWorkers}, "Most": {State.Most},
	"Of": {rate.Of}, "Part": {State.Part}, "Rates": {State.Rates}, "Remaining": {progress.Course.Remaining}, "Spent": {State.Spent},
	"StageShare": {State.StageShare}, "Step": {State.Step}, "Timeline": {State.Timeline}, "Troubles": {State.Troubles}, "Under": {State.Under},
}

var pages = page.Once("watch", files, "page.html.tmpl", functions, methods)

// took is a time in its two largest units: "1 h 2 min", "3 min 4 s", "5.6 s".
func took(seconds float64) string {
	d := time.Duration(seconds * float64(time.Second))
	switch {
	case d >= time.Hour:
		return fmt.Sprintf("%d h %d min", d/time.Hour, d%time.Hour/time.Minute)
	case d >= time.Minute:
		return fmt.Sprintf("%d min %d s", d/time.Minute, d%time.Minute/time.Second)
	case d >= 10*time.Second:
		return fmt.Sprintf("%.0f s", math.Round(seconds))
	}
	return fmt.Sprintf("%.1f s", seconds)
}

// Heading says in a few words how the run goes.
func (s State) Heading() string {
	left, at := 0, -1
	for i, x := range s.Stages {
		if x.Stopped {
			return fmt.Sprintf("%s stopped", x.Stage)
		}
		switch x.State {
		case coordinator.Failed:
			return fmt.Sprintf("%s failed", x.Stage)
		case coordinator.Running:
			at = i
		}
		if x.State != coordinator.Complete {
			left++
		}
	}
	switch {
	case s.Status.State == "ended" && left == 0:
		return "complete"
	case at >= 0 && s.Status.State != "ended":
		text := fmt.Sprintf("%s: stage %d of %d", s.Stages[at].Stage, at+1, len(s.Stages))
		switch here := slices.ContainsFunc(s.Workers, func(w coordinator.WorkerStatus) bool { return w.Here }); {
		case s.Status.State == "draining" || s.Status.State == "stopping":
			text += ", " + s.Status.State
		case !here:
			text += ", waiting for workers"
		}
		return text
	case s.Stage != "" && s.Status.State != "ended":
		return s.Status.State + ": " + string(s.Stage)
	}
	return s.Status.State
}

// Class returns the class of a stage in the list of stages.
func (s State) Class(x coordinator.StageStatus) string {
	switch x.State {
	case coordinator.Complete:
		return "done"
	case coordinator.Running:
		return "now"
	case coordinator.Failed:
		return "failed"
	}
	return "next"
}

// Step says how far a stage is.
func (s State) Step(x coordinator.StageStatus) string {
	switch {
	case x.State == coordinator.Complete:
		return took(x.Seconds)
	case x.State == coordinator.Running && s.Course != nil && s.Course.Share != nil:
		return strconv.FormatFloat(100*s.Course.Done(), 'f', 0, 64) + " %"
	}
	return strings.ToLower(x.Word())
}

// StageShare returns the share of the stage under way that is done, 0 if unknown.
func (s State) StageShare() float64 {
	if s.Course == nil {
		return 0
	}
	return s.Course.Done()
}

// Troubles says why stages have ended that are not complete.
func (s State) Troubles() (list []string) {
	for _, x := range s.Stages {
		if x.Reason != "" {
			list = append(list, fmt.Sprintf("%s %s: %s", x.Stage, strings.ToLower(x.Word()), x.Reason))
		}
	}
	return list
}

// part is the share of its task that a worker has done.
type part struct {
	Share float64
	Text  string
}

// Part returns the share of its task that a worker has done, nil if unknown.
func (s State) Part(w coordinator.WorkerStatus) *part {
	p := w.Progress
	switch {
	case w.Task == "" || p.Unit == "":
		return nil
	case p.Total > 0 && p.Where == "":
		share := float64(p.Done) / float64(p.Total)
		return &part{share, fmt.Sprintf("%.0f %% of %s", 100*min(share, 1), amount(p.Total, p.Unit))}
	}
	return &part{0, amount(p.Done, p.Unit)}
}

// amount is a number with its unit.
func amount(n int64, unit string) string {
	if unit == "bytes" {
		return mem.Bytes(n).String()
	}
	return progress.Number(n) + " " + unit
}

// Under reports whether a stage is under way.
func (s State) Under(x coordinator.StageStatus) bool { return x.State == coordinator.Running }

// Spent returns the seconds of the complete stages, and of the one under way so far.
func (s State) Spent() (seconds float64) {
	for _, x := range s.Stages {
		if x.State == coordinator.Complete {
			seconds += x.Seconds
		}
	}
	if s.Course != nil {
		seconds += s.Course.Seconds
	}
	return seconds
}

// JobShare is the share of the time of all stages that has passed, 0 where the rest is not known.
func (s State) JobShare() float64 {
	if s.Course == nil || s.Course.JobLeft == nil {
		return 0
	}
	spent := s.Spent()
	return spent / max(spent+max(*s.Course.JobLeft, 0), 1e-9)
}

// FirstLosses are those that the page shows.
func (s State) FirstLosses() []coordinator.Loss {
	return s.Losses[:min(len(s.Losses), control.MaxLines)]
}

// FirstWorkers are those that the page shows, MoreWorkers how many others there are.
func (s State) FirstWorkers() []coordinator.WorkerStatus {
	return s.Workers[:min(len(s.Workers), control.MaxLines)]
}

// MoreWorkers is described at FirstWorkers.
func (s State) MoreWorkers() int { return max(len(s.Workers)-control.MaxLines, 0) }
