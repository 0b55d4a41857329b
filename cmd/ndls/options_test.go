package main

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"ndls"
	"ndls/plan"
	"ndls/tune"
)

// TestFlagsAreOptions sets each flag of ndls run that is an option, and the option of the same name, and compares.
func TestFlagsAreOptions(t *testing.T) {
	all := func() *planFlags { return newPlanFlags(&cobra.Command{}).all() }
	names := ndls.OptionNames()
	all().set.VisitAll(func(f *pflag.Flag) {
		x, _ := plan.Find(f.Name)
		value := map[string]string{"whole number": "7", "number": "0.25", "true or false": "false", "text": "random:2,3"}[x.Type()]
		if len(x.Words) > 0 {
			value = x.Words[len(x.Words)-1]
		}
		if value == x.Default {
			value = "3" // hops
		}
		p := all()
		for _, none := range []string{"0", "-1", "NaN", "many"} {
			if err := p.set.Set(f.Name, none); x.Positive() && err == nil {
				t.Errorf("--%s %s is taken for a value", f.Name, none)
			}
		}
		p = all()
		if err := p.set.Set(f.Name, value); err != nil {
			t.Fatal(err)
		}
		byFlag, byName := ndls.DefaultOptions(), ndls.DefaultOptions()
		p.over(&byFlag)
		if err := byName.Set(f.Name, value); err != nil || byFlag != byName || byName == ndls.DefaultOptions() || byName.Get(f.Name) != value {
			t.Errorf("--%s %s: %+v by the flag, %+v by its name, %v", f.Name, value, byFlag, byName, err)
		}
		names = slices.DeleteFunc(names, func(name string) bool { return name == f.Name })
	})
	if len(names) > 0 {
		t.Errorf("options without a flag: %v", names)
	}
}

// TestAnOptionIsARow adds a row to the table of options, for a field that has none, and finds the option wherever users meet options.
func TestAnOptionIsARow(t *testing.T) {
	table := plan.Table
	defer func() { plan.Table = table }()
	_, reason := plan.Find("format")
	if reason {
		t.Fatal("the field has a row")
	}
	plan.Table = append(slices.Clone(table), plan.Option{
		Name: "format", Group: plan.Train, Default: "3", Range: &plan.Range{Lo: 2, Hi: 4}, Tries: true, Help: "an option of a test",
		Idle: func(o plan.Options) string {
			if o.Train.Runs > 1 {
				return ""
			}
			return "a single model has none"
		},
	})
	do := func(args ...string) string {
		var out, errs bytes.Buffer
		_ = run(context.Background(), args, &out, &errs)
		return out.String() + errs.String()
	}
	if help := do("train", "--help"); !strings.Contains(help, "--format int") || !strings.Contains(help, "an option of a test") || !strings.Contains(help, "(default 3)") {
		t.Errorf("the help of train has not the option:\n%s", help)
	}
	if refused := do("run", "--dataset", "karate:", "--run", t.TempDir(), "--format", "5"); !strings.Contains(refused, "--format 5 is outside [2, 4]") {
		t.Errorf("a value out of range: %s", refused)
	}
	t.Setenv("NDLS_FORMAT", "6")
	if refused := do("run", "--dataset", "karate:", "--run", t.TempDir()); !strings.Contains(refused, "--format 6 is outside [2, 4]") {
		t.Errorf("a value of the environment out of range: %s", refused)
	}
	if !slices.Contains(tune.Names(), "format") || !slices.Contains(ndls.OptionNames(), "format") {
		t.Error("a search cannot try it")
	}
	o := ndls.DefaultOptions()
	if o.Train.Runs = 1; !slices.ContainsFunc(ndls.UnusedOptions(o), func(x ndls.UnusedOption) bool { return x.Option == "format" }) {
		t.Errorf("nobody is told that it decides nothing: %v", ndls.UnusedOptions(o))
	}
	if err := o.Set("format", "x"); !errors.Is(err, ndls.ErrOption) {
		t.Errorf("a word for a number: %v", err)
	}
}
