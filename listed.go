package ndls

import (
	"context"
	"io"
	"log/slog"
	"net"

	"ndls/internal/failure"
	"ndls/watch"
)

// ListPage says which runs [ServeList] shows, and where.
type ListPage struct {
	// Folders have the runs, as [List] takes them.
	Folders []string
	// HTTP is HOST:PORT of the page; port 0 picks a free one. Hosts are described at [Watching].
	HTTP  string
	Hosts []string
	// Listening is called with the address of the page, such as http://127.0.0.1:8080/, once it answers.
	Listening func(address string)
	Log       *slog.Logger
}

// ServeList serves a page of all runs below folders until ctx ends: sorted, changing as the runs do, with the page of
// each, and of several side by side. It reads records and catalogues when somebody looks, and no data.
func ServeList(ctx context.Context, c ListPage) error {
	if _, _, err := net.SplitHostPort(c.HTTP); err != nil {
		return failure.Of(ErrOption, "--http %s is no HOST:PORT", c.HTTP)
	}
	f := watch.Folder{Hosts: c.Hosts, Runs: c.runs, Report: reportOf}
	if _, err := f.Runs(ctx); err != nil {
		return err // before anybody looks
	}
	at, stop, err := answering(c.HTTP, watch.NewList(f), c.Log)
	if err != nil {
		return err
	}
	defer stop()
	if c.Listening != nil {
		c.Listening("http://" + at + "/")
	}
	<-ctx.Done()
	return nil
}

// runs are the runs that are there now.
func (c ListPage) runs(ctx context.Context) (list []watch.Listed, err error) {
	err = List(ctx, c.Folders, func(s RunSummary) error {
		x := watch.Listed{
			Run: s.Run, Dataset: s.Dataset, State: s.Progress(), Working: s.Working, Problem: s.Problem, Valid: s.After.Valid, Test: s.After.Test,
			Bytes: s.Bytes, Changed: s.Changed,
		}
		if s.After == (SplitAccuracy{}) {
			x.Valid, x.Test = s.Before.Valid, s.Before.Test
		}
		if x.Problem == "" && s.State == Failed {
			x.Problem = s.Reason
		}
		list = append(list, x)
		return nil
	})
	return list, err
}

// reportOf writes the page of some runs.
func reportOf(ctx context.Context, w io.Writer, runs ...string) error {
	open := make([]*Directory, len(runs))
	for i, dir := range runs {
		d, err := Open(ctx, dir)
		if err != nil {
			return err
		}
		open[i] = d
	}
	return ReportPage(ctx, w, open...)
}

// Progress says how far the run is: "complete", "in lsi", "stopped in lsi", "failed in lsi" or "damaged".
func (s RunSummary) Progress() string {
	switch {
	case s.Problem != "" && s.State == "":
		return "damaged"
	case s.State == Complete:
		return "complete"
	case s.Working:
		return "in " + string(s.Stage)
	}
	word := "stopped"
	if s.State == Failed && !s.Stopped {
		word = "failed"
	}
	if s.Stage == "" {
		return word
	}
	return word + " in " + string(s.Stage)
}
