package watch

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"ndls/coordinator"
	"ndls/internal/control"
)

// Bounds of the time line: rows, and the least width of a piece, as a share of the line. Pieces of the same stage that
// are nearer to each other are one.
const (
	mostRows   = 24
	leastPiece = 1.0 / 300
)

// timeline shows which worker did what when.
type timeline struct {
	Begin, End time.Time
	Rows       []timelineRow
	// More is the number of workers that are not shown.
	More int
	// Stages lists the stages of the pieces, for the legend; Lost says that a piece is marked.
	Stages []stageMark
	Lost   bool
}

// stageMark is a stage and the number of its colour.
type stageMark struct {
	Stage  control.Stage
	Colour int
}

// timelineRow shows the work of a worker.
type timelineRow struct {
	Worker string
	Says   string
	Pieces []timelinePiece
}

// timelinePiece is a time in which a worker had tasks of a stage.
type timelinePiece struct {
	From, Width float64 // shares of the line
	Colour      int
	Lost        bool
	Says        string
}

// Timeline is which worker did what when, nil as long as no worker had a task.
func (s State) Timeline() *timeline {
	if len(s.History) == 0 {
		return nil
	}
	line := &timeline{Begin: s.History[0].Begin, End: s.History[0].End}
	workers := map[string][]coordinator.Span{}
	for _, x := range s.History {
		if x.End.After(line.End) {
			line.End = x.End
		}
		workers[x.Worker] = append(workers[x.Worker], x)
	}
	all := max(line.End.Sub(line.Begin).Seconds(), 1e-3)
	names := make([]string, 0, len(workers))
	for name := range workers {
		names = append(names, name)
	}
	// The workers that had a task last come first: those that are here.
	slices.SortFunc(names, func(a, b string) int {
		last := func(name string) time.Time { return workers[name][len(workers[name])-1].End }
		return cmp.Or(last(b).Compare(last(a)), cmp.Compare(a, b))
	})
	if len(names) > mostRows {
		line.More, names = len(names)-mostRows, names[:mostRows]
	}
	slices.Sort(names)
	for _, name := range names {
		row, lost := timelineRow{Worker: name}, 0
		busy := 0.0
		for _, x := range workers[name] {
			seconds := x.End.Sub(x.Begin).Seconds()
			busy += seconds
			p := timelinePiece{
				From: x.Begin.Sub(line.Begin).Seconds() / all, Width: max(seconds/all, leastPiece), Colour: s.colour(x.Stage),
				Lost: x.How == "lost" || x.How == "failed", Says: fmt.Sprintf("%s: %s, %s", x.Task, took(seconds), x.How),
			}
			if p.Lost {
				lost, line.Lost = lost+1, true
			}
			line.mark(x.Stage, p.Colour)
			if n := len(row.Pieces); n > 0 {
				last := &row.Pieces[n-1]
				if last.Colour == p.Colour && !last.Lost && !p.Lost && p.From-(last.From+last.Width) < leastPiece {
					last.Width = max(last.Width, p.From+p.Width-last.From)
					last.Says = string(x.Stage) + ": several tasks"
					continue
				}
			}
			row.Pieces = append(row.Pieces, p)
		}
		row.Says = fmt.Sprintf("%s had %d tasks in %s", name, len(workers[name]), took(busy))
		if len(workers[name]) == 1 {
			row.Says = fmt.Sprintf("%s had 1 task for %s", name, took(busy))
		}
		if lost > 0 {
			row.Says += fmt.Sprintf(", of which %d were lost or failed", lost)
		}
		line.Rows = append(line.Rows, row)
	}
	slices.SortFunc(line.Stages, func(a, b stageMark) int { return cmp.Compare(a.Colour, b.Colour) })
	return line
}

// mark adds a stage to the legend.
func (t *timeline) mark(stage control.Stage, colour int) {
	if !slices.ContainsFunc(t.Stages, func(m stageMark) bool { return m.Stage == stage }) {
		t.Stages = append(t.Stages, stageMark{stage, colour})
	}
}

// colours is the number of colours of stages.
const colours = 8

// colour is the number of a stage's colour: its place among the stages of the run.
func (s State) colour(stage control.Stage) int {
	return max(slices.IndexFunc(s.Stages, func(x coordinator.StageStatus) bool { return x.Stage == stage }), 0) % colours
}
