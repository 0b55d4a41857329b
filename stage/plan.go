package stage

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"ndls/catalog"
	"ndls/internal/control"
	"ndls/internal/failure"
	"ndls/smooth"
)

// Validate checks all options of a plan. Its error wraps [control.ErrOption] and names the
// option and the values that are allowed.
func Validate(p control.Plan) error {
	if err := control.OneOf("rule", p.Smooth.Rule, smooth.Names()...); err != nil {
		return err
	}
	dependent := smooth.DependentNames()
	if err := control.OneOf("label-rule", p.Labels.Rule, dependent...); err != nil {
		return err
	}
	if p.Settles() && !slices.Contains(dependent, p.Smooth.Rule) {
		return failure.Of(control.ErrOption, "--active settled with --rule %s: that rule counts the same hops for every node, so none settles earlier; use --active exact",
			p.Smooth.Rule)
	}
	if err := p.Validate(); err != nil {
		return err
	}
	if _, err := smooth.NewRule(p.Smooth.Rule, p.Smooth.Alpha, p.Smooth.Hops); err != nil {
		return failure.Of(control.ErrOption, "--rule %s with --hops %d: %w", p.Smooth.Rule, p.Smooth.Hops, err)
	}
	return nil
}

// later are options that came after run directories had been made without them. At these
// values they decide nothing, and a hash leaves them out.
var later = map[string]any{"probabilities": control.AllProbabilities, "deviation": 0.0}

// Hashes gives for each stage the hash of the part of the plan that decides the bytes of
// its output: its own options and those of all stages that it reads from, directly or
// not.
func Hashes(p control.Plan) map[string]string {
	hashes := map[string]string{}
	for _, s := range All {
		read := map[string]string{}
		for _, n := range s.Needs(p) {
			read[string(n)] = hashes[string(n)]
		}
		hashed := options(s, p)
		maps.DeleteFunc(hashed, func(name string, value any) bool { return later[name] == value })
		text, err := json.Marshal([]any{s.Name(), hashed, read})
		if err != nil {
			panic(fmt.Sprintf("stage: a plan holds only numbers and strings: %v", err))
		}
		sum := sha256.Sum256(text)
		hashes[string(s.Name())] = hex.EncodeToString(sum[:16])
	}
	return hashes
}

// Binding ties the files of a run directory to a plan.
func Binding(p control.Plan) catalog.Binding {
	b := catalog.Binding{Stages: map[string]string{}, Plans: Hashes(p)}
	for name, k := range kinds {
		b.Stages[name] = string(k.Stage)
	}
	return b
}

// options are those of a stage, and the version of all of them.
func options(s Stage, p control.Plan) map[string]any {
	o := s.Options(p)
	if o == nil {
		o = map[string]any{}
	}
	o["format"] = p.Format
	return o
}

// Diff names the fields in which here, a plan, differs from there, the run directory's,
// as far as they decide the output of stages; no stages mean all of them. A line reads
// "lsi.epsilon: 0.03 here, 0.05 in the run directory".
func Diff(here, there control.Plan, stages ...control.Stage) []string {
	if len(stages) == 0 {
		stages = Names()
	}
	var d []string
	for _, s := range Of(stages...) {
		ours, theirs := options(s, here), options(s, there)
		for _, name := range slices.Sorted(maps.Keys(ours)) {
			other, both := theirs[name]
			if !both {
				other = ours[name] // it decides nothing in one of the plans
			}
			for _, line := range diff(name, ours[name], other) {
				if !slices.Contains(d, line) {
					d = append(d, line)
				}
			}
		}
	}
	return d
}

func diff(name string, here, there any) []string {
	if here == there {
		return nil
	}
	a, b := reflect.ValueOf(here), reflect.ValueOf(there)
	if a.Kind() != reflect.Struct {
		return []string{fmt.Sprintf("%s: %s here, %s in the run directory", name, shown(here), shown(there))}
	}
	var d []string
	for i := range a.NumField() {
		field, _, _ := strings.Cut(a.Type().Field(i).Tag.Get("json"), ",")
		d = append(d, diff(name+"."+field, a.Field(i).Interface(), b.Field(i).Interface())...)
	}
	return d
}

func shown(v any) string {
	if v == "" {
		return `""`
	}
	return fmt.Sprint(v)
}
