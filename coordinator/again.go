package coordinator

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"ndls/internal/control"
	"ndls/plan"
	"ndls/report"
	"ndls/stage/registry"
)

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
