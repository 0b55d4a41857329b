package main

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"ndls/dataset"
	"ndls/internal/meant"
	"ndls/report"
)

// wrongUsage is the error of a command line that cannot be executed: what is wrong, what may have been meant, and how
// the command is used.
func wrongUsage(cmd *cobra.Command, err error) error {
	return asUsage(fmt.Errorf("%w%s\nusage: %s\nsee %s --help", inWords(err), suggestion(cmd, err), cmd.UseLine(), cmd.CommandPath()))
}

// inWords says of a value that an option cannot have what it is not, in place of which function of Go has refused it.
func inWords(err error) error {
	var invalid *pflag.InvalidValueError
	if !errors.As(err, &invalid) {
		return err
	}
	flag, text := invalid.GetFlag(), invalid.GetValue()
	why := errors.Unwrap(invalid).Error()
	var number *strconv.NumError
	switch {
	case flag.Value.Type() == "duration":
		why = strconv.Quote(text) + " is no time, such as 30s or 5m"
	case !errors.As(err, &number):
	case errors.Is(number.Err, strconv.ErrRange):
		why = text + " is too large"
	default:
		why = strconv.Quote(text) + map[string]string{
			"ParseInt": " is no whole number", "ParseUint": " is no whole number from 0 on",
			"ParseFloat": " is no number", "ParseBool": " is neither true nor false",
		}[number.Func]
	}
	return fmt.Errorf("--%s: %s", flag.Name, why)
}

// needed refuses a command without the options that it cannot do without.
func needed(cmd *cobra.Command) error {
	var missing []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if needs := f.Annotations[cobra.BashCompOneRequiredFlag]; len(needs) > 0 && !f.Changed {
			missing = append(missing, "--"+f.Name)
		}
	})
	switch len(missing) {
	case 0:
		return nil
	case 1:
		return fmt.Errorf("%s is needed", missing[0])
	}
	last := len(missing) - 1
	return fmt.Errorf("%s and %s are needed", strings.Join(missing[:last], ", "), missing[last])
}

// noWords refuses words beside the options.
func noWords(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	return fmt.Errorf("%s takes options only, and %q is none", cmd.CommandPath(), args[0])
}

// runWord takes a word beside the options for the run directory, as if it stood behind --run.
func runWord(cmd *cobra.Command, args []string) error {
	switch {
	case len(args) == 0:
		return nil
	case cmd.Flags().Changed("run"):
		return fmt.Errorf("%s has a run directory, --run %s, and %q is no option", cmd.CommandPath(), cmd.Flags().Lookup("run").Value, args[0])
	case len(args) > 1:
		return fmt.Errorf("%s takes one run directory and options, and %q is one word more", cmd.CommandPath(), args[1])
	}
	_, kinds := dataset.Formats()
	if i := strings.IndexByte(args[0], ':'); i > 0 &&
		slices.ContainsFunc(kinds, func(k dataset.Format) bool { return k.Name == args[0][:i+1] || k.Name == args[0][:i] }) {
		return fmt.Errorf("%q is a dataset, and %s takes a run directory for a word; give --dataset %s", args[0], cmd.CommandPath(), report.Quoted(args[0]))
	}
	return cmd.Flags().Set("run", args[0])
}

// wordCount wants so many words beside the options: from least to most, or any number from least on where most is 0.
func wordCount(least, most int, what string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) < least || most > 0 && len(args) > most {
			return fmt.Errorf("give %s, and not %d", what, len(args))
		}
		return nil
	}
}

// unknownVerb is cobra's message for an unknown verb.
const unknownVerb = "unknown command %q for"

// suggestion is the verb or flag that a command line with an unknown one may have meant, as the end of its error.
func suggestion(cmd *cobra.Command, err error) string {
	var names []string
	var flag *pflag.NotExistError
	if errors.As(err, &flag) {
		cmd.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
		if name := meant.Word(flag.GetSpecifiedName(), names); name != "" {
			return "; did you mean --" + name + "?"
		}
		return ""
	}
	var verb string
	if _, failed := fmt.Sscanf(err.Error(), unknownVerb, &verb); failed != nil {
		return ""
	}
	for _, c := range cmd.Commands() {
		names = append(names, c.Name())
	}
	return meant.Hint(verb, names)
}
