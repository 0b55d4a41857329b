package main

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"ndls"
	"ndls/internal/failure"
	"ndls/plan"
)

// planFlags are the flags of a verb that are part of the plan. The ones given
// are laid over the plan that the run directory has, or the defaults.
type planFlags struct {
	set   *pflag.FlagSet
	given ndls.Options
	// names are the options that the verb has.
	names []string
	// warned are the flags of which the user was told that they are not used.
	warned map[string]bool
	// held are the options that an earlier command has given to the run directory, and this one has not.
	held map[string]string
}

func newPlanFlags(cmd *cobra.Command) *planFlags {
	return &planFlags{set: cmd.Flags(), given: ndls.DefaultOptions(), warned: map[string]bool{}}
}

// used looks for flags that were given, and decide nothing under options.
func (f *planFlags) used(log *slog.Logger, o ndls.Options) error {
	f.sayHeld(log)
	if o.Embeds() && f.set.Changed("r") && !f.warned["r"] {
		f.warned["r"] = true
		log.Warn("--r does not change the rows of --rule " + ndls.FastRP + ", whose hops divide by the degree of the receiving node, as --r 0 does: it holds for K and for label smoothing")
	}
	for _, x := range ndls.UnusedOptions(o) {
		switch {
		case !f.set.Changed(x.Option):
		case x.Refused:
			return failure.Of(ndls.ErrOption, "--%s decides nothing here: %s; leave --%s out", x.Option, x.Because, x.Option)
		case !f.warned[x.Option]:
			f.warned[x.Option] = true
			log.Warn(fmt.Sprintf("--%s decides nothing here: %s", x.Option, x.Because))
		}
	}
	return nil
}

// over lays the given flags over options.
func (f *planFlags) over(o *ndls.Options) {
	for _, name := range f.names {
		if f.set.Changed(name) {
			o.Copy(name, f.given)
		}
	}
	for _, x := range plan.Table {
		if x.Refuses(*o) && f.set.Changed(x.Of) && !f.set.Changed(x.Name) {
			o.Reset(x.Name) // an earlier command gave it, with another rule
		}
	}
	f.holds(*o)
}

// holds notes which options of this verb are not those of a new run directory, though this command does not give them: an earlier one
// has. Options that follow from others of this command are not among them.
func (f *planFlags) holds(o ndls.Options) {
	values, standard := o.Values(), ndls.DefaultOptions().Values()
	held := map[string]string{}
	for _, name := range f.names {
		if !f.set.Changed(name) && values[name] != standard[name] {
			held[name] = values[name]
		}
	}
	if len(held) > 0 { // otherwise these may be the options of no run directory
		f.held = held
	}
}

// sayHeld says once which options of earlier commands hold.
func (f *planFlags) sayHeld(log *slog.Logger) {
	const said = " held"
	if len(f.held) == 0 || f.warned[said] {
		return
	}
	f.warned[said] = true
	var list []string
	for _, name := range slices.Sorted(maps.Keys(f.held)) {
		list = append(list, f.shown(name))
	}
	log.Info("options of earlier commands hold: " + strings.Join(list, ", "))
}

// shown is an option of an earlier command, with its value.
func (f *planFlags) shown(name string) string {
	return fmt.Sprintf("--%s %s", name, f.held[name])
}

// whence adds to an error about options where those come from that this command has not given.
func (f *planFlags) whence(err error) error {
	if !errors.Is(err, ndls.ErrOption) {
		return err
	}
	var list []string
	for _, name := range slices.Sorted(maps.Keys(f.held)) {
		if regexp.MustCompile("--" + regexp.QuoteMeta(name) + "([^a-z-]|$)").MatchString(err.Error()) {
			list = append(list, f.shown(name))
		}
	}
	if len(list) == 0 {
		return err
	}
	standard := ndls.DefaultOptions().Values()
	var defaults []string
	for _, option := range list {
		name, _, _ := strings.Cut(option[2:], " ")
		defaults = append(defaults, fmt.Sprintf("--%s=%s", name, cmp.Or(standard[name], `""`)))
	}
	return fmt.Errorf("%w. This command does not give %s: an earlier one gave it to the run directory. %s takes it back", err, strings.Join(list, " and "), strings.Join(defaults, " "))
}

// helpGroups are the headings of the help for the groups of options.
var helpGroups = map[plan.Group]string{
	plan.Run: groupRun, plan.Partition: groupPartition, plan.LSI: groupLSI,
	plan.Smooth: groupSmooth, plan.Train: groupTrain, plan.Labels: groupLabels,
}

// groups adds the options of groups.
func (f *planFlags) groups(groups ...plan.Group) *planFlags {
	for _, x := range plan.Table {
		if slices.Contains(groups, x.Group) {
			f.add(x)
		}
	}
	return f
}

// all adds all options.
func (f *planFlags) all() *planFlags {
	return f.groups(plan.Run, plan.Partition, plan.LSI, plan.Smooth, plan.Train, plan.Labels)
}

// options adds single options.
func (f *planFlags) options(names ...string) *planFlags {
	for _, name := range names {
		x, _ := plan.Find(name)
		f.add(x)
	}
	return f
}

// add adds the flag of an option.
func (f *planFlags) add(x plan.Option) {
	help := x.Help
	if x.OpenAs != "" {
		help += " (default the value of --" + x.OpenAs + ")"
	}
	flag := f.set.VarPF(&optionValue{x, &f.given}, x.Name, "", help)
	flag.DefValue = cmp.Or(x.Open, flag.DefValue)
	if x.Switch() {
		flag.NoOptDefVal = "true"
	}
	inGroup(f.set, helpGroups[x.Group], x.Name)
	f.names = append(f.names, x.Name)
}

// optionValue is the value of the flag of an option.
type optionValue struct {
	plan.Option
	of *ndls.Options
}

// String implements pflag.Value.
func (v *optionValue) String() string {
	if v.of == nil { // pflag looks at the zero value
		return ""
	}
	return v.of.Get(v.Name)
}

// Type implements pflag.Value: the help shows it.
func (v *optionValue) Type() string {
	return map[string]string{"text": "string", "true or false": "bool", "number": "float", "whole number": "int"}[v.Option.Type()]
}

// Set implements pflag.Value.
func (v *optionValue) Set(text string) error {
	if v.Positive() {
		switch x, err := strconv.ParseFloat(text, 64); {
		case err != nil:
			return fmt.Errorf("%s is no number", text)
		case !(x > 0):
			return fmt.Errorf("%s is not above 0; leave the option out for its default", text)
		}
	}
	if err := v.of.Set(v.Name, text); err != nil {
		return fmt.Errorf("%q is no %s", text, v.Option.Type())
	}
	return nil
}
