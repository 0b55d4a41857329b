package registry

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
	"ndls/partition"
	"ndls/plan"
	"ndls/stage"
	"ndls/stage/features"
)

// Validate checks all options. Its error wraps [failure.ErrOption] and names the option and the allowed values.
func Validate(p plan.Options) error {
	if err := p.Validate(); err != nil {
		return err
	}
	if _, _, err := partition.Drawn(p.Partition.Split, 1, 1); err != nil {
		return failure.Of(failure.ErrOption, "--%w", err)
	}
	if fill := p.Partition.Fill; fill == partition.FillNeighbours && (stage.Directed(p) || p.Partition.Normalize == partition.NormalizeL1) {
		why := "of a dataset with directed=true, where it is open which end of an edge fills the other: leave out directed=true to use every edge in both directions"
		if !stage.Directed(p) {
			why = fmt.Sprintf("with --normalize %s, which divides rows before their missing numbers are known: leave out --normalize %[1]s", partition.NormalizeL1)
		}
		return failure.Of(failure.ErrOption, "--fill %s %s, or give --fill %s", fill, why, partition.FillMean)
	}
	if p.DropFeatures && p.Embeds() {
		return failure.Of(failure.ErrOption, "--keep-features=false with --rule %s, which reads no features: give --features none, which does not import them", p.Smooth.Rule)
	}
	if p.DropFeatures && ReadsFeatures(p, control.SmoothLabels) {
		return failure.Of(failure.ErrOption, "--keep-features=false with --lsi %s: label smoothing measures distances on the features again, for its own epsilon or kmax; leave out --keep-features=false, or --label-epsilon and a --label-kmax above --kmax",
			p.LSI.Mode)
	}
	if p.DropSmoothed && (p.SomeTargets() || stage.Directed(p)) {
		return failure.Of(failure.ErrOption, "--keep-smoothed=false removes smoothed rows once labels are smoothed, and label smoothing is left out with --targets other than all, and of a dataset with directed=true: leave --keep-smoothed=false out")
	}
	if p.Predictions == plan.MeanOfModels && stage.Directed(p) {
		return failure.Of(failure.ErrOption, "--predictions mean with directed=true: predictions are made of smoothed soft labels, and label smoothing is left out of a dataset with directions; leave --predictions out")
	}
	if err := features.ValidateEmbedding(p); err != nil {
		return err
	}
	rule, err := features.RuleOf(p)
	switch {
	case err != nil:
		return err
	case rule.Weighs():
		return features.ValidateBlend(p)
	case !rule.Sums() && p.Smooth.KeepHops != "":
		return failure.Of(failure.ErrOption, "--keep-hops with --rule %s, which writes hops 0 to --hops: leave --keep-hops out", p.Smooth.Rule)
	}
	return nil
}

// Hashes returns, for each stage, the hash of the part of the plan that decides its output: its own options and those of all stages that it
// reads, directly or indirectly.
func Hashes(p plan.Options) map[string]string {
	hashes := map[string]string{}
	for _, s := range All {
		read := map[string]string{}
		for _, n := range s.Needs(p) {
			read[string(n)] = hashes[string(n)]
		}
		text, err := json.Marshal([]any{s.Name(), options(s, p), read})
		if err != nil {
			panic(fmt.Sprintf("stage: a plan holds only numbers and strings: %v", err))
		}
		sum := sha256.Sum256(text)
		hashes[string(s.Name())] = hex.EncodeToString(sum[:16])
	}
	return hashes
}

// Binding binds the files of a run directory to a plan.
func Binding(p plan.Options) catalog.Binding {
	b := catalog.Binding{Stages: map[string]string{}, Plans: Hashes(p)}
	for name, k := range kinds {
		b.Stages[name] = string(k.Stage)
	}
	return b
}

// options returns the options of a stage and the version of the format.
func options(s stage.Stage, p plan.Options) map[string]any {
	o := s.Options(p)
	if o == nil {
		o = map[string]any{}
	}
	o["format"] = p.Format
	return o
}

// Diff names the fields in which plan here differs from plan there, which belongs to the run directory, if they decide the output of these
// stages; no stages mean all. A line reads "lsi.epsilon: 0.03 here, 0.05 in the run directory".
func Diff(here, there plan.Options, stages ...control.Stage) []string {
	if len(stages) == 0 {
		stages = Names()
	}
	var d []string
	for _, s := range Of(stages...) {
		ours, theirs := options(s, here), options(s, there)
		for _, name := range slices.Sorted(maps.Keys(ours)) {
			other, both := theirs[name]
			if !both {
				other = ours[name] // the option decides nothing in one of the plans
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
