package registry

import (
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"

	"ndls/internal/control"
	"ndls/internal/failure"
	"ndls/plan"
)

// leaves sets each leaf field of v in turn and calls visit with its name.
func leaves(v reflect.Value, name string, visit func(string)) {
	for i := range v.NumField() {
		f := v.Field(i)
		tag, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("json"), ",")
		switch f.Kind() {
		case reflect.Struct:
			leaves(f, name+tag+".", visit)
			continue
		case reflect.String:
			f.SetString(f.String() + "x")
		case reflect.Int:
			f.SetInt(f.Int() + 1)
		case reflect.Uint64:
			f.SetUint(f.Uint() + 1)
		case reflect.Float64:
			f.SetFloat(f.Float() + 1)
		case reflect.Bool:
			f.SetBool(!f.Bool())
		}
		visit(name + tag)
	}
}

// TestEveryFieldIsOfAStage: a field that no stage names would change results without a
// word, since what another plan made would be taken for this one's.
func TestEveryFieldIsOfAStage(t *testing.T) {
	p, last := plan.Default(), plan.Default()
	leaves(reflect.ValueOf(&p).Elem(), "", func(field string) {
		d := Diff(p, last)
		if field == "metrics" { // which train takes as the measure that decides
			d = slices.DeleteFunc(d, func(line string) bool { return strings.HasPrefix(line, "measure: ") })
		}
		if len(d) != 1 || !strings.HasPrefix(d[0], field+": ") {
			t.Errorf("diff after changing %s = %q", field, d)
		}
		if reflect.DeepEqual(Hashes(p), Hashes(last)) {
			t.Errorf("%s changes no stage's hash", field)
		}
		last = p
	})
}

func TestDiffOfStages(t *testing.T) {
	a, b := plan.Default(), plan.Default()
	a.LSI.Epsilon, a.Train.Hidden = 0.05, 128
	want := []string{"lsi.epsilon: 0.05 here, 0.03 in the run directory"}
	if got := Diff(a, b, control.Partition, control.LSI, control.Smooth); !slices.Equal(got, want) {
		t.Errorf("diff = %q, want %q", got, want)
	}
	if got := Diff(a, b, control.Partition); got != nil {
		t.Errorf("partition does not depend on epsilon: %q", got)
	}
	b.Partition.Split = "random:5,5"
	want = []string{`partition.split: "" here, random:5,5 in the run directory`}
	if got := Diff(a, b, control.Partition); !slices.Equal(got, want) {
		t.Errorf("diff = %q, want %q", got, want)
	}
}

func TestNeedsComeEarlier(t *testing.T) {
	for _, labels := range []string{"", "other.arrow"} {
		p := plan.Default()
		p.Labels.SoftLabels = labels
		for i, s := range All {
			for _, need := range s.Needs(p) {
				if j := Index(need); j >= i {
					t.Errorf("%s needs %s, which comes later", s.Name(), need)
				}
			}
		}
		if got := slices.Contains(Needs(p, control.SmoothLabels), control.Predict); got != (labels == "") {
			t.Errorf("with soft labels %q, smooth-labels needs predict: %v", labels, got)
		}
	}
}

func TestValidateRules(t *testing.T) {
	for _, tc := range []struct {
		change func(*plan.Options)
		want   string
	}{
		{func(p *plan.Options) { p.Smooth.Rule = "mean" }, `--rule "mean" is none of ndls, ndls-reference, sgc, s2gc, gbp, appnp, sign, nafs, fastrp`},
		{func(p *plan.Options) { p.Labels.Rule = "sgc" }, `--label-rule "sgc" is none of ndls, ndls-reference, cs, cs-nd`},
		{func(p *plan.Options) { p.Labels.CorrectHops = 5 }, "--cs-correct-hops with --label-rule ndls: only --label-rule cs and cs-nd have it"},
		{func(p *plan.Options) { p.Labels.Rule, p.Labels.CorrectScale = "cs", "0" }, `--cs-scale "0" is neither auto nor a number above 0`},
		{func(p *plan.Options) { p.Labels.Rule, p.Labels.SmoothAlpha = "cs-nd", 1.5 }, "--cs-smooth-alpha 1.5 is outside [0, 1]"},
		{func(p *plan.Options) { p.Smooth.Rule, p.Smooth.Hops = "s2gc", 0 }, "--rule s2gc with --hops 0: 0 hops are too few"},
		{func(p *plan.Options) { p.Smooth.Dimensions = 64 }, "--dimensions with --rule ndls: only --rule fastrp has it"},
		{func(p *plan.Options) { p.Smooth.Rule, p.Smooth.HopWeights = "fastrp", "0,0" }, "--hop-weights 0,0: all weights are 0"},
		{func(p *plan.Options) { p.Smooth.Rule, p.Smooth.Sparsity = "fastrp", 0.5 }, "--sparsity 0.5 is below 1"},
		{func(p *plan.Options) { p.Partition.Split = "share:0.9,0.2" }, `--split "share:0.9,0.2": write share:T,V with shares of the labelled nodes`},
		{func(p *plan.Options) { p.LSI.R = 2 }, "--r 2 is outside"},
		{func(p *plan.Options) { p.Smooth.Rule, p.Smooth.KeepHops = "sign", "0..3" }, "--keep-hops with --rule sign, which writes hops 0 to --hops"},
		{func(p *plan.Options) { p.Smooth.Depth = "K" }, `--depth "K" is none of node`},
		{func(p *plan.Options) { p.Smooth.Depth = plan.NodeDepth }, "--depth with --rule ndls: --rule ndls takes K hops of each node, and only"},
		{func(p *plan.Options) { p.Smooth.Depth, p.Smooth.Rule = plan.NodeDepth, "fastrp" }, "leave --depth out"},
		{func(p *plan.Options) { p.Smooth.Residual, p.Smooth.Rule = 0.1, "ndls-reference" }, "--residual with --rule ndls-reference: only --rule ndls has it"},
		{func(p *plan.Options) { p.Smooth.Residual = 1.5 }, "--residual 1.5 is outside [0, 1]"},
		{func(p *plan.Options) { p.Smooth.Rule, p.Smooth.KeepHops = "nafs", "0..3" }, "leave --keep-hops out"},
		{func(p *plan.Options) { p.Smooth.Rule, p.Smooth.LabelColumns = "nafs", 2 }, "leave --label-columns out"},
		{func(p *plan.Options) { p.Smooth.Rule, p.DropFeatures = "nafs", true }, "leave --keep-features=false out"},
		{func(p *plan.Options) { p.Partition.Fill, p.Partition.Normalize = "neighbours", "l1" }, "--fill neighbours with --normalize l1, which divides rows before"},
		{func(p *plan.Options) { p.Partition.Fill, p.Partition.Dataset = "neighbours", "edges:e?directed=true" }, "or give --fill mean"},
		{func(p *plan.Options) { p.Smooth.LabelColumns = 1 }, "--label-columns 1 is neither 0, for none, nor a number of parts from 2 to 64"},
	} {
		p := plan.Default()
		tc.change(&p)
		if err := Validate(p); !errors.Is(err, failure.ErrOption) || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%v, want %q", err, tc.want)
		}
	}
	if err := Validate(plan.Default()); err != nil {
		t.Error(err)
	}
}
