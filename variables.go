package ndls

import (
	"slices"
	"strings"
)

// VariablePrefix begins the names of the environment variables that stand for options of the command
// ndls.
const VariablePrefix = "NDLS_"

// ReservedVariables begin with [VariablePrefix] and stand for no option: the token of a job, and what tests
// read.
var ReservedVariables = []string{
	TokenVariable, "NDLS_DATA", "NDLS_CORPORA", "NDLS_PYTHON", "NDLS_JS", "NDLS_S3_SERVER",
	"NDLS_GOLDEN", "NDLS_FAULTS", "NDLS_DRAWS", "NDLS_DRAW_SEED", "NDLS_CHAOS", "NDLS_CHAOS_PARALLEL",
}

// Variable is the environment variable that stands for an option of the command ndls, such as
// NDLS_MEMORY for "memory"; "" for an option whose variable is reserved.
func Variable(option string) string {
	name := VariablePrefix + strings.ToUpper(strings.ReplaceAll(option, "-", "_"))
	if slices.Contains(ReservedVariables, name) {
		return ""
	}
	return name
}

// withoutOptions leaves out of an environment the variables that stand for options. A worker process gets
// the options that concern it on its command line.
func withoutOptions(environment []string) []string {
	return slices.DeleteFunc(slices.Clone(environment), func(v string) bool {
		name, _, _ := strings.Cut(v, "=")
		return strings.HasPrefix(name, VariablePrefix) && !slices.Contains(ReservedVariables, name)
	})
}
