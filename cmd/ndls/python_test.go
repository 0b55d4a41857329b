package main

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"ndls/plan"
)

var rewrite = flag.Bool("rewrite", false, "write the types of the Python package's options in place of comparing them")

// pythonOptions is the file with the types of the options of some verbs, for callers of the Python package.
const pythonOptions = "../../python/src/ndls/_options.py"

// pythonVerbs are the verbs whose options have types, and the names of these.
var pythonVerbs = []struct{ verb, name string }{{"run", "RunOptions"}, {"plan", "PlanOptions"}, {"inspect", "InspectOptions"}}

// TestPythonOptions compares the file with the flags of these verbs.
func TestPythonOptions(t *testing.T) {
	var b strings.Builder
	b.WriteString(`"""Types of the options of verbs. go test ./cmd/ndls -run TestPythonOptions -rewrite makes this file."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Literal, TypedDict
`)
	for _, of := range pythonVerbs {
		cmd, _, err := newApp(&strings.Builder{}, &strings.Builder{}).root().Find([]string{of.verb})
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&b, "\n\nclass %s(TypedDict, total=False):\n    \"\"\"The flags of ndls %s with underscores, without dataset and run.\"\"\"\n\n", of.name, of.verb)
		all := pflag.NewFlagSet(of.verb, pflag.ContinueOnError)
		all.AddFlagSet(cmd.Flags())
		all.AddFlagSet(cmd.InheritedFlags())
		own := []string{"dataset", "run", "help", "json"} // the function has these, or they make no sense
		all.VisitAll(func(f *pflag.Flag) {
			if !f.Hidden && !slices.Contains(own, f.Name) {
				fmt.Fprintf(&b, "    %s: %s\n", strings.ReplaceAll(f.Name, "-", "_"), pythonType(of.verb, f))
			}
		})
	}
	if *rewrite {
		if err := os.WriteFile(pythonOptions, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(pythonOptions)
	if err != nil || string(got) != b.String() {
		t.Errorf("%s is not what the flags say (%v): go test ./cmd/ndls -run TestPythonOptions -rewrite makes it", pythonOptions, err)
	}
}

// pythonType returns the type of the values of a flag. None leaves a flag out.
func pythonType(verb string, f *pflag.Flag) string {
	of := map[string]string{
		"bool": "bool", "int": "int", "int64": "int", "uint": "int", "uint64": "int", "float": "float", "float64": "float",
		"stringSlice": "str | Sequence[str]", "stringArray": "str | Sequence[str]",
	}[f.Value.Type()]
	x, isOption := plan.Find(f.Name)
	switch {
	case of != "":
	case verb == "plan" && f.Name == "features":
		of = "int | Literal[\"none\"]" // the width of rows
	case isOption && len(x.Words) > 0 && !x.Free:
		words := make([]string, len(x.Words))
		for i, word := range x.Words {
			words[i] = fmt.Sprintf("%q", word)
		}
		of = "Literal[" + strings.Join(words, ", ") + "]"
	case isOption && f.Name != "targets":
		of = "str | int | float | Sequence[str] | Sequence[float]"
	default:
		of = "str | int | os.PathLike[str]" // sizes, durations and names of files
	}
	return of + " | None"
}
