package main

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"go.yaml.in/yaml/v3"

	"ndls/internal/meant"
)

// noKeys are the flags that a configuration file cannot set.
var noKeys = []string{"config", "help"}

// readConfig sets every flag of cmd that --config names and the command line
// does not. Keys of other verbs are allowed, so that one file serves them all.
func (a *app) readConfig(cmd *cobra.Command) error {
	if a.config == "" {
		return nil
	}
	text, err := os.ReadFile(a.config)
	if err != nil {
		return fmt.Errorf("--config: %w", err)
	}
	var doc yaml.Node
	if err := yaml.Unmarshal(text, &doc); err != nil {
		return fmt.Errorf("--config %s, %s; put quotes around a value that holds a colon, such as dataset: \"karate:\"", a.config, syntax(err))
	}
	if doc.Kind == 0 {
		return nil
	}
	bad := func(n *yaml.Node, format string, args ...any) error {
		return fmt.Errorf("--config %s, line %d: %s", a.config, n.Line, fmt.Sprintf(format, args...))
	}
	top := doc.Content[0]
	if top.Kind != yaml.MappingNode {
		return bad(top, "expected lines of KEY: VALUE")
	}
	known := knownKeys(cmd.Root())
	seen := map[string]bool{}
	for i := 0; i < len(top.Content); i += 2 {
		key, value := top.Content[i], top.Content[i+1]
		if !slices.Contains(known, key.Value) {
			return bad(key, "there is no option %q%s", key.Value, meant.Hint(key.Value, known))
		}
		if seen[key.Value] {
			return bad(key, "%q is given twice", key.Value)
		}
		seen[key.Value] = true
		if value.Kind != yaml.ScalarNode {
			return bad(value, "%q takes one value", key.Value)
		}
		flag := cmd.Flags().Lookup(key.Value)
		if flag == nil || flag.Changed || excluded(cmd, flag) {
			continue
		}
		if err := cmd.Flags().Set(key.Value, value.Value); err != nil {
			return bad(value, "%v", inWords(err))
		}
	}
	return nil
}

// syntax returns the YAML library's error for a file, with the line: the library names none if it
// means the first.
func syntax(err error) string {
	text := strings.TrimPrefix(err.Error(), "yaml: ")
	if !strings.HasPrefix(text, "line ") {
		text = "line 1: " + text
	}
	return text
}

// knownKeys lists the flags of all verbs.
func knownKeys(root *cobra.Command) []string {
	var keys []string
	add := func(f *pflag.Flag) {
		if !slices.Contains(noKeys, f.Name) {
			keys = append(keys, f.Name)
		}
	}
	root.PersistentFlags().VisitAll(add)
	for _, c := range root.Commands() {
		c.LocalFlags().VisitAll(add)
	}
	slices.Sort(keys)
	return slices.Compact(keys)
}
