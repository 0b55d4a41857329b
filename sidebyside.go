package ndls

import (
	"context"
	"errors"
	"io"

	"ndls/report"
)

// ReportPage writes the page of one run directory, as its report.html is, or of several side by side: one
// HTML file that needs no network. Runs are named by the URIs under which they were opened. The error wraps
// [ErrNoRun] where a run's partition is not complete.
func ReportPage(ctx context.Context, w io.Writer, runs ...*Directory) error {
	if len(runs) == 0 {
		return errors.New("ndls: a page of no run was asked for")
	}
	list := make([]report.Named, len(runs))
	for i, d := range runs {
		r, err := d.Report(ctx)
		if err != nil {
			return err
		}
		list[i] = report.Named{Name: d.uri, Report: r}
	}
	return report.Page(w, list...)
}
