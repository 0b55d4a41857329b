package report

import (
	"fmt"
	"strings"

	"ndls/internal/control"
)

// cappedToWarn is the share of nodes that never settle from which on a report warns of them.
const cappedToWarn = 0.01

// joined lists stages in a sentence.
func joined(stages []control.Stage) string {
	var text strings.Builder
	for i, s := range stages {
		if i > 0 {
			text.WriteString(", ")
		}
		text.WriteString(string(s))
	}
	return text.String()
}

// Warn lists what a user should know of a report before trusting its results.
func (r Report) Warn() (list []string) {
	add := func(format string, a ...any) { list = append(list, fmt.Sprintf(format, a...)) }
	if u := r.Unfinished; u != nil {
		how, why := "is not complete", ""
		switch {
		case u.Stopped:
			how = "was stopped"
		case u.Reason != "":
			how = "has failed"
		}
		if u.Reason != "" {
			why = ": " + u.Reason
		}
		add("the run %s, and lacks %s%s", how, joined(u.Stages), why)
	}
	if l := r.LSI; l != nil && l.CappedShare >= cappedToWarn {
		add("%.1f %% of the nodes did not come within ε = %g of the stationary state in %d hops, and have K = %d: give a larger --kmax, or a larger --epsilon", 100*l.CappedShare, l.Epsilon, l.Kmax, l.Kmax)
	}
	if c := r.Dataset.Components; c > 1 {
		if l := r.LSI; l != nil && l.Stationary != "component" {
			add("the graph has %d components, and --stationary %s compares all nodes with the stationary state of the whole graph, which no component reaches: --stationary component takes that of each", c, l.Stationary)
		}
	}
	if d := r.LabelDepth; d != nil && d.ValidationNodes == 0 {
		add("no validation node has a label, so the depth of label smoothing is --label-kmax, not one that was chosen")
	}
	if m := r.Memory; m.BudgetBytes > 0 && m.PeakRSSBytes > m.BudgetBytes {
		add("a stage took %d bytes of memory, more than the budget of %d", m.PeakRSSBytes, m.BudgetBytes)
	}
	if a := r.Accuracy; a != nil {
		list = append(list, a.Warnings...)
	}
	return list
}
