package report

import (
	"reflect"
	"testing"

	"ndls/internal/page/pagetest"
)

// SamePage fails the test unless the page of runs has the bytes that html/template gives it.
func SamePage(t testing.TB, runs ...Named) {
	t.Helper()
	source, err := text("page.html.tmpl")
	if err != nil {
		t.Fatal(err)
	}
	v := &view{Runs: runs, Several: len(runs) > 1}
	for i := range runs {
		runs[i].several = v.Several
	}
	p := pagetest.Page{Source: string(source), Funcs: functions, Methods: methods}
	p.Same(t, "page", v)
	p.Complete(t, reflect.TypeFor[*view]())
}
