package report_test

import (
	"strings"
	"testing"

	"ndls/internal/control"
	"ndls/report"
)

// TestCompared sets the measures of runs side by side, and marks the better one on nodes that models were not trained on.
func TestCompared(t *testing.T) {
	a, b, none := full(), full(), full()
	b.Accuracy.Base.Test = &control.Spread{Mean: 0.85, Std: 0.01}
	b.Accuracy.Base.Train = &control.Spread{Mean: 0.99}
	none.Accuracy = nil
	text := page(t, report.Named{Name: "a", Report: a}, report.Named{Name: "b", Report: b}, report.Named{Name: "c", Report: none})
	for _, want := range []string{
		`<th scope="col" class="text">measure</th><th scope="col">a</th><th scope="col">b</th><th scope="col">c</th>`,
		`<th scope="row">accuracy before label smoothing, test nodes</th><td>81.00 ± 2.00</td><td class="best">85.00 ± 1.00 <span>best</span></td><td>–</td>`,
		`<th scope="row">accuracy before label smoothing, training nodes</th><td>81.00 ± 2.00</td><td>99.00</td><td>–</td>`,
		`<th scope="row">accuracy after label smoothing, test nodes</th><td>81.00 ± 2.00</td><td>81.00 ± 2.00</td><td>–</td>`,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
}
