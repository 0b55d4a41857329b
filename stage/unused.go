package stage

import (
	"slices"
	"strings"

	"ndls/internal/control"
	"ndls/smooth"
)

// UnusedOption is an option that decides nothing beside other options.
type UnusedOption struct {
	// Option is the name of its flag, without dashes.
	Option string
	// Because is the reason: "--rule sgc has no weight of that kind, …".
	Because string
}

// Unused lists the options that decide nothing under a plan, of those that every plan gives a value: their values do not change the bytes
// of any row.
func Unused(p control.Plan) (list []UnusedOption) {
	unused := func(is bool, option, because string) {
		if is {
			list = append(list, UnusedOption{option, because})
		}
	}
	rule := p.Smooth.Rule
	without := func(take func(smooth.Takes) bool) (names string, is bool) {
		all := smooth.NamesThat(take)
		return enumerated(all), slices.Contains(smooth.Names(), rule) && !slices.Contains(all, rule)
	}
	names, is := without(func(t smooth.Takes) bool { return t.Alpha })
	because := "--rule " + rule + " has no weight of that kind, only " + names + " have one"
	if rule == "ndls" {
		because += "; with --rule ndls the weight of the node's own features is --residual"
	}
	unused(is, "alpha", because)

	names, is = without(func(t smooth.Takes) bool { return t.Depth })
	because = "--rule " + rule + " takes K hops of each node, and only " + names + " take a given number"
	if p.Embeds() {
		because = "the hops of --rule " + rule + " are those of --hop-weights"
	}
	unused(is, "hops", because)

	exact := slices.Contains([]string{"influence-exact", "feature"}, p.LSI.Mode)
	unused(exact, "probes", "--lsi "+p.LSI.Mode+" measures distances without random columns")
	unused(p.LSI.Mode != "influence-sketch", "directions", "only --lsi influence-sketch has directions beside random columns")
	unused(p.Train.Layers == 1, "hidden", "a model with --layers 1 has no hidden values")
	unused(p.Train.Layers == 1, "dropout", "a model with --layers 1 has no hidden values")
	unused(p.Labels.Rule != "ndls-reference", "label-alpha", "--label-rule "+p.Labels.Rule+" has no weight of that kind, only ndls-reference has one")
	unused(p.Labels.Depth != control.AutoDepth && p.Labels.Depth != "", "label-kmax", "--label-depth "+p.Labels.Depth+" is the number of hops")
	return list
}

// enumerated joins words to a list for a sentence.
func enumerated(words []string) string {
	last := len(words) - 1
	if last < 1 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:last], ", ") + " and " + words[last]
}
