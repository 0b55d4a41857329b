package tune

import (
	"slices"
	"strings"

	"ndls"
	"ndls/internal/failure"
	"ndls/internal/meant"
)

// option is an option that trials may differ in.
type option struct {
	name string
	// counts reports whether the option decides anything under o, where labels are smoothed or not; nil
	// stands for always.
	counts func(o *ndls.Options, smoothed bool) bool
	// strict says that a run refuses the option where it decides nothing.
	strict bool
	// labels says that it is an option of label smoothing.
	labels bool
	// aboveZero says that zero stands for the default, so that nobody can mean it.
	aboveZero bool
}

// options are all of them, in the order in which a run uses them.
var options = []option{
	{name: "lsi", counts: takesK},
	{name: "probes", counts: func(o *ndls.Options, smoothed bool) bool { return takesK(o, smoothed) && used("probes")(o, smoothed) }},
	{name: "directions", counts: func(o *ndls.Options, smoothed bool) bool {
		return takesK(o, smoothed) && used("directions")(o, smoothed)
	}},
	{name: "epsilon", counts: takesK},
	{name: "r"},
	{name: "kmax", counts: takesK},
	{name: "stationary", counts: func(o *ndls.Options, smoothed bool) bool { return takesK(o, smoothed) || o.Smooth.Rule == "nafs" }},

	{name: "rule"},
	{name: "alpha", counts: used("alpha")},
	{name: "residual", counts: rules("ndls"), strict: true},
	{name: "hops", counts: used("hops")},
	{name: "depth", counts: used("hops"), strict: true},
	{name: "direction"},
	{name: "label-columns"},
	{name: "dimensions", counts: rules(ndls.FastRP), strict: true, aboveZero: true},
	{name: "hop-weights", counts: rules(ndls.FastRP), strict: true},
	{name: "degree-power", counts: rules(ndls.FastRP), strict: true},
	{name: "sparsity", counts: rules(ndls.FastRP), strict: true, aboveZero: true},

	{name: "hidden", counts: used("hidden")},
	{name: "layers"},
	{name: "dropout", counts: used("dropout")},
	{name: "input-dropout"},
	{name: "lr"},
	{name: "weight-decay"},
	{name: "schedule"},
	{name: "epochs"},
	{name: "patience"},
	{name: "batch-size"},

	{name: "label-rule", labels: true},
	{name: "label-alpha", labels: true, counts: used("label-alpha")},
	{name: "label-epsilon", labels: true, counts: func(o *ndls.Options, _ bool) bool { return labelsTakeK(o) }, strict: true},
	{name: "label-depth", labels: true},
	{name: "label-kmax", labels: true, counts: used("label-kmax")},
	{name: "cs-scale", labels: true, counts: corrects, strict: true},
	{name: "cs-correct-alpha", labels: true, counts: corrects, strict: true, aboveZero: true},
	{name: "cs-correct-hops", labels: true, counts: corrects, strict: true, aboveZero: true},
	{name: "cs-smooth-alpha", labels: true, counts: corrects, strict: true, aboveZero: true},
}

func rules(names ...string) func(*ndls.Options, bool) bool {
	return func(o *ndls.Options, _ bool) bool { return slices.Contains(names, o.Smooth.Rule) }
}

// used says that an option is not among those that decide nothing.
func used(name string) func(*ndls.Options, bool) bool {
	return func(o *ndls.Options, _ bool) bool {
		return !slices.ContainsFunc(ndls.UnusedOptions(*o), func(x ndls.UnusedOption) bool { return x.Option == name })
	}
}

func takesK(o *ndls.Options, smoothed bool) bool {
	return o.Smooth.Rule == "ndls" || o.Smooth.Rule == "ndls-reference" || o.Smooth.Depth == "node" || smoothed && labelsTakeK(o)
}

func labelsTakeK(o *ndls.Options) bool { return o.Labels.Rule != "cs" }

func corrects(o *ndls.Options, _ bool) bool { return o.Labels.Corrects() }

// decides reports whether the option decides anything under o.
func (x option) decides(o *ndls.Options, smoothed bool) bool {
	return (smoothed || !x.labels) && (x.counts == nil || x.counts(o, smoothed))
}

// find is the option of a name.
func find(name string) (option, error) {
	if i := slices.IndexFunc(options, func(x option) bool { return x.name == name }); i >= 0 {
		return options[i], nil
	}
	why, hint := "is no option", meant.Hint(name, Names())
	if ndls.OptionType(name) != "" {
		why, hint = "is the same for all trials: give it as a flag, with one value", ""
	}
	return option{}, failure.Of(ndls.ErrOption, "--try %s: %q %s. A search can try %s%s", name, name, why, strings.Join(Names(), ", "), hint)
}

// Names lists the options that a search can try, in the order in which a run uses them.
func Names() (names []string) {
	for _, x := range options {
		names = append(names, x.name)
	}
	return names
}

// settle gives the options of a trial, and those of the drawn settings that decide anything. Options that decide
// nothing beside the others have the value of base, or, where a run would refuse that, their default.
func settle(base ndls.Options, drawn []Setting, smoothed bool) (ndls.Options, []Setting, error) {
	o := base
	for _, s := range drawn {
		if err := o.Set(s.Name, s.Value); err != nil {
			return o, nil, err
		}
	}
	standard := ndls.DefaultOptions()
	var counted []Setting
	final := o
	for _, x := range options {
		decides := x.decides(&o, smoothed)
		i := slices.IndexFunc(drawn, func(s Setting) bool { return s.Name == x.name })
		var err error
		switch {
		case decides && i >= 0:
			counted = append(counted, drawn[i])
		case decides:
		case x.strict && !x.counts(&o, smoothed):
			err = final.Set(x.name, standard.Get(x.name))
		case i >= 0:
			err = final.Set(x.name, base.Get(x.name))
		}
		if err != nil {
			return o, nil, err
		}
	}
	return final, counted, nil
}
