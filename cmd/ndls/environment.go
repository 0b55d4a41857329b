package main

import (
	"cmp"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"ndls"
	"ndls/internal/meant"
)

// aboutVariables is the help on environment variables.
const aboutVariables = `  An environment variable stands for each option: NDLS_MEMORY for --memory, NDLS_BATCH_SIZE for
  --batch-size. The command line comes first, then the variable, then --config, then the default. A
  variable for an option that a verb does not have, or that cannot stand beside another one which is
  given, is left alone. An empty one counts as not set. One that is nearly the name of an option gives a
  warning.
`

// readEnvironment sets every flag of cmd that the command line does not set and whose variable has a
// value.
func readEnvironment(cmd *cobra.Command) error {
	var flags []*pflag.Flag
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if !slices.Contains(noVariables, f.Name) && ndls.Variable(f.Name) != "" {
			flags = append(flags, f)
		}
	})
	// Of flags that cannot stand beside each other, the one that was named first has priority.
	slices.SortStableFunc(flags, func(a, b *pflag.Flag) int { return cmp.Compare(rank(a), rank(b)) })
	for _, f := range flags {
		name := ndls.Variable(f.Name)
		value := os.Getenv(name)
		if value == "" || f.Changed || excluded(cmd, f) {
			continue
		}
		if err := cmd.Flags().Set(f.Name, value); err != nil {
			return fmt.Errorf("the environment variable %s: %w", name, inWords(err))
		}
	}
	return nil
}

// misspelt lists what may be wrong with the names of an environment: a line for each variable that
// begins with our prefix, stands for no option of any verb, and is nearly the name of one that
// does.
func misspelt(root *cobra.Command, environment []string) (lines []string) {
	var known []string
	for _, name := range ndls.ReservedVariables {
		known = append(known, strings.TrimPrefix(name, ndls.VariablePrefix))
	}
	visitCommands(root, func(cmd *cobra.Command) {
		cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
			if name := ndls.Variable(f.Name); name != "" {
				known = append(known, strings.TrimPrefix(name, ndls.VariablePrefix))
			}
		})
	})
	for _, v := range environment {
		name, value, _ := strings.Cut(v, "=")
		name, ours := strings.CutPrefix(name, ndls.VariablePrefix)
		if !ours || value == "" || slices.Contains(known, name) {
			continue
		}
		if word := meant.Word(name, known); word != "" {
			lines = append(lines, fmt.Sprintf("the environment variable %[1]s%[2]s stands for no option; did you mean %[1]s%[3]s?", ndls.VariablePrefix, name, word))
		}
	}
	return lines
}

// noVariables are the flags that no variable stands for.
var noVariables = []string{"help", "version"}

// exclusiveKey is the annotation under which cobra lists, with spaces between them, flags that
// cannot stand beside each other.
const exclusiveKey = "cobra_annotation_mutually_exclusive"

// excluded reports whether another flag is set that f cannot stand beside.
func excluded(cmd *cobra.Command, f *pflag.Flag) bool {
	return slices.ContainsFunc(f.Annotations[exclusiveKey], func(group string) bool {
		return slices.ContainsFunc(strings.Fields(group), func(name string) bool {
			return name != f.Name && cmd.Flags().Changed(name)
		})
	})
}

// rank is the place of a flag among those that it cannot stand beside.
func rank(f *pflag.Flag) (last int) {
	for _, group := range f.Annotations[exclusiveKey] {
		last = max(last, slices.Index(strings.Fields(group), f.Name))
	}
	return last
}
