package tune

import (
	"slices"
	"strings"

	"ndls"
	"ndls/internal/failure"
	"ndls/internal/meant"
	"ndls/plan"
)

// Names lists the options that a search can try, in the order in which a run uses them.
func Names() (names []string) {
	for _, x := range plan.Table {
		if x.Tries {
			names = append(names, x.Name)
		}
	}
	return names
}

// find returns the row of an option that a search can try.
func find(name string) (plan.Option, error) {
	x, known := plan.Find(name)
	if x.Tries {
		return x, nil
	}
	why, hint := "is no option", meant.Hint(name, Names())
	if known {
		why, hint = "is the same for all trials: give it as a flag, with one value", ""
	}
	return x, failure.Of(ndls.ErrOption, "--try %s: %q %s. A search can try %s%s", name, name, why, strings.Join(Names(), ", "), hint)
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
	var counted []Setting
	final := o
	for _, x := range plan.Table {
		i := slices.IndexFunc(drawn, func(s Setting) bool { return s.Name == x.Name })
		switch decides := x.Decides(o, smoothed); {
		case decides && i >= 0:
			counted = append(counted, drawn[i])
		case decides:
		case x.Refuses(o):
			final.Reset(x.Name)
		case i >= 0:
			final.Copy(x.Name, base)
		}
	}
	return final, counted, nil
}
