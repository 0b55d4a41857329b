package plan

import (
	"encoding/json"
	"errors"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	"ndls/internal/failure"
)

func TestDefaultPlanIsValid(t *testing.T) {
	if err := Default().Validate(); err != nil {
		t.Fatal(err)
	}
}

func TestValidate(t *testing.T) {
	for _, tc := range []struct {
		name   string
		change func(*Options)
		want   string
	}{
		{"mode", func(p *Options) { p.LSI.Mode = "exact" }, `--lsi "exact" is none of influence-sketch`},
		{"features", func(p *Options) { p.Partition.Features = "all" }, `--features "all" is none of none`},
		{"r above", func(p *Options) { p.LSI.R = 1.5 }, "--r 1.5 is outside [0, 1]"},
		{"r NaN", func(p *Options) { p.LSI.R = math.NaN() }, "--r NaN is outside"},
		{"epsilon zero", func(p *Options) { p.LSI.Epsilon = 0 }, "--epsilon 0 is not a finite number above 0"},
		{"epsilon infinite", func(p *Options) { p.LSI.Epsilon = math.Inf(1) }, "--epsilon +Inf is not a finite number above 0"},
		{"rate beyond float32", func(p *Options) { p.Train.LR = 1e300 }, "--lr 1e+300 is not a finite number above 0 in float32"},
		{"decay beyond float32", func(p *Options) { p.Train.WeightDecay = 1e39 }, "--weight-decay 1e+39 is not a finite number of at least 0 in float32"},
		{"dropout one", func(p *Options) { p.Train.Dropout = 1 }, "--dropout 1 is outside [0, 1)"},
		{"runs", func(p *Options) { p.Train.Runs = 0 }, "--runs 0 is outside"},
		{"split word", func(p *Options) { p.Partition.Split = "public" }, "--split"},
		{"split without training nodes", func(p *Options) { p.Partition.Split = "random:0,30" }, "--split"},
		{"splits", func(p *Options) { p.Partition.Splits = 1001 }, "--splits 1001 is outside [1, 1000]"},
		{"splits of a part", func(p *Options) { p.Partition.Splits, p.Partition.Only = 2, "train" }, "--only train"},
		{"labels of a part", func(p *Options) { p.Partition.LabelsPerClass, p.Partition.Only = 2, "train" }, "--only train"},
		{"splits with blank features", func(p *Options) { p.Partition.Splits, p.Partition.BlankFeatures = 2, 0.5 }, "--splits 2 with --blank-features"},
		{"splits with rows of other runs", func(p *Options) { p.Partition.Splits, p.Train.On = 2, "sha256:00" }, "--splits 2 with --train-on"},
		{"splits with soft labels", func(p *Options) { p.Partition.Splits, p.Labels.SoftLabels = 2, "x" }, "--splits 2 with --soft-labels"},
		{"labels per class", func(p *Options) { p.Partition.LabelsPerClass = -1 }, "--labels-per-class -1"},
		{"labels per class with a split", func(p *Options) { p.Partition.LabelsPerClass, p.Partition.Split = 3, "random:2,3" }, "leave one of the two out"},
		{"metrics", func(p *Options) { p.Metrics = "f1,kappa" }, `--metrics "kappa" is none of accuracy, f1, auc`},
		{"metrics of another task", func(p *Options) { p.Partition.Task, p.Metrics = Regression, "auc" }, `--metrics "auc" is none of r2`},
		{"task", func(p *Options) { p.Partition.Task = "ranking" }, `--task "ranking" is none of classification, labels, regression`},
		{"labels drawn by class", func(p *Options) { p.Partition.Task, p.Partition.Split = SeveralLabels, "random:20,30" }, "--task labels with --split random"},
		{"labels of a ridge regression", func(p *Options) { p.Partition.Task, p.Train.Model = Regression, Ridge }, "--task regression with --model ridge"},
		{"labels by Correct & Smooth", func(p *Options) { p.Partition.Task, p.Labels.Rule = SeveralLabels, CorrectSmooth }, "use --label-rule ndls"},
		{"area without probabilities", func(p *Options) { p.Metrics, p.Probabilities = "auc", BestProbability }, "use --probabilities all"},
		{"area of too many models", func(p *Options) { p.Metrics, p.Partition.Splits, p.Train.Runs = "auc", 1000, 33 }, "33000 models"},
		{"split with a tail", func(p *Options) { p.Partition.Split = "random:20,30x" }, "--split"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p := Default()
			tc.change(&p)
			err := p.Validate()
			if !errors.Is(err, failure.ErrOption) || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error = %v, want failure.ErrOption with %q", err, tc.want)
			}
		})
	}
	p := Default()
	p.Partition.Split = "random:20,30"
	if err := p.Validate(); err != nil {
		t.Errorf("random:20,30 refused: %v", err)
	}
}

// TestRanges sets each option that is a number to the ends of its range, and to values beyond them.
func TestRanges(t *testing.T) {
	ranges := map[string]struct{ good, bad string }{
		"splits":           {"0 1000", "-1 1001"},
		"labels-per-class": {"0 2147483647", "-1 2147483648"},
		"interval-blocks":  {"1 4096", "0 4097"},
		"drop-edges":       {"0 0.99", "-0.1 1"},
		"blank-features":   {"0 1", "-0.1 1.1"},
		"probes":           {"0 1048576", "-1 1048577"},
		"directions":       {"0 16 4096", "-16 8 4112"},
		"epsilon":          {"0.001 1e300", "0 -1 Inf"},
		"label-epsilon":    {"0 1e300", "-0.1 Inf"},
		"r":                {"0 1", "-0.1 1.1"},
		"kmax":             {"1 32767", "0 32768"},
		"label-kmax":       {"1 32767", "0 32768"},
		"alpha":            {"0 1", "-0.1 1.1"},
		"residual":         {"0 1", "-0.1 1.1"},
		"label-alpha":      {"0 1", "-0.1 1.1"},
		"cs-correct-alpha": {"0 1", "-0.1 1.1"},
		"cs-correct-hops":  {"0 32767", "-1 32768"},
		"cs-smooth-alpha":  {"0 1", "-0.1 1.1"},
		"hops":             {"0 32767", "-1 32768"},
		"dimensions":       {"0 1048576", "-1 1048577"},
		"degree-power":     {"-1 1", "-1.1 1.1"},
		"sparsity":         {"0 4294967296", "-1 4294967297"},
		"label-columns":    {"0 2 64", "-1 1 65"},
		"tolerance":        {"0 0.001 0.99", "-0.1 1"},
		"hidden":           {"1 1048576", "0 1048577"},
		"layers":           {"1 64", "0 65"},
		"dropout":          {"0 0.99", "-0.1 1"},
		"input-dropout":    {"0 0.99", "-0.1 1"},
		"lr":               {"1e-9 1e9", "0 -1 Inf"},
		"weight-decay":     {"0 1e9", "-1 Inf"},
		"epochs":           {"1 16777216", "0 16777217"},
		"patience":         {"0 16777216", "-1 16777217"},
		"batch-size":       {"0 16777216", "-1 16777217"},
		"runs":             {"1 10000", "0 10001"},
	}
	for _, name := range Names() {
		c, known := ranges[name]
		x, _ := Find(name)
		if !known && x.kind() != reflect.String && !x.Switch() && name != "seed" {
			t.Errorf("--%s has no range here", name)
		}
		bad := strings.Fields(c.bad)
		for _, value := range append(strings.Fields(c.good), bad...) {
			p := Default()
			if strings.HasPrefix(name, "cs-") {
				p.Labels.Rule = CorrectSmooth
			} else if x.Refuses(p) {
				p.Smooth.Rule = FastRP
			}
			if err := p.Set(name, value); err != nil {
				t.Fatal(err)
			}
			err := p.Validate()
			if refused := slices.Contains(bad, value); refused != errors.Is(err, failure.ErrOption) || refused && !strings.Contains(err.Error(), "--"+name+" ") {
				t.Errorf("--%s %s: %v", name, value, err)
			}
		}
	}
}

// leaves sets each leaf field of v in turn and calls visit with its name.
func leaves(v reflect.Value, name string, visit func(string)) {
	for i := range v.NumField() {
		f, tag := v.Field(i), v.Type().Field(i).Tag.Get("json")
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

func TestEveryFieldDecidesHash(t *testing.T) {
	p := Default()
	last, fields := Default(), 0
	leaves(reflect.ValueOf(&p).Elem(), "", func(field string) {
		fields++
		if p.Hash() == last.Hash() {
			t.Errorf("%s does not change the hash", field)
		}
		last = p
	})
	if fields < 25 {
		t.Errorf("only %d fields visited", fields)
	}
	text, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	var back Options
	if err := json.Unmarshal(text, &back); err != nil || back != p {
		t.Errorf("o does not survive JSON: %v, %+v", err, back)
	}
}

// Options that mean the same are the same o, and what is refused stays.
func TestCanonical(t *testing.T) {
	plain := func(change func(*Options)) Options {
		p := Default()
		change(&p)
		return p
	}
	cs := func(p *Options) { p.Labels.Rule = CorrectSmooth }
	fastrp := func(p *Options) { p.Smooth.Rule = FastRP }
	for name, c := range map[string]struct{ given, want Options }{
		"splits":     {plain(func(p *Options) { p.Partition.Splits = 1 }), Default()},
		"hops":       {plain(func(p *Options) { p.Smooth.KeepHops = "3,0,1,2" }), plain(func(p *Options) { p.Smooth.KeepHops = "0..3" })},
		"accuracy":   {plain(func(p *Options) { p.Metrics = "accuracy,f1" }), Default()},
		"f1":         {plain(func(p *Options) { p.Metrics = "f1,accuracy" }), plain(func(p *Options) { p.Metrics = MacroF1 })},
		"auc":        {plain(func(p *Options) { p.Metrics = "auc,accuracy,f1" }), plain(func(p *Options) { p.Metrics = AUC })},
		"auc last":   {plain(func(p *Options) { p.Metrics = "accuracy,f1,auc" }), plain(func(p *Options) { p.Metrics = "accuracy,auc" })},
		"f1 and auc": {plain(func(p *Options) { p.Metrics = "f1,auc" }), plain(func(p *Options) { p.Metrics = "f1,auc" })},
		"no measure": {plain(func(p *Options) { p.Metrics = "auc,kappa" }), plain(func(p *Options) { p.Metrics = "auc,kappa" })},
		"correct": {plain(func(p *Options) {
			cs(p)
			p.Labels.CorrectScale, p.Labels.CorrectAlpha, p.Labels.CorrectHops, p.Labels.SmoothAlpha = AutoScale, 0.8, 50, 0.8
		}), plain(cs)},
		"fastrp": {plain(func(p *Options) {
			fastrp(p)
			p.Smooth.Dimensions, p.Smooth.HopWeights, p.Smooth.Sparsity = 128, "0,0,1,1,1,1", 3
		}), plain(fastrp)},
		"another rule":  {plain(func(p *Options) { p.Smooth.Dimensions = 128 }), plain(func(p *Options) { p.Smooth.Dimensions = 128 })},
		"other options": {plain(func(p *Options) { cs(p); p.Labels.CorrectAlpha = 0.5 }), plain(func(p *Options) { cs(p); p.Labels.CorrectAlpha = 0.5 })},
	} {
		if got := c.given.Canonical(); got != c.want {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
}

// TestInForce states what options leave open: these are the same options.
func TestInForce(t *testing.T) {
	for names, rule := range map[string]func(*Options){
		"cs-scale cs-correct-alpha cs-correct-hops cs-smooth-alpha smoothed-precision hidden-norm choose model input-norm": func(p *Options) { p.Labels.Rule = CorrectSmooth },
		"dimensions hop-weights sparsity": func(p *Options) { p.Smooth.Rule = FastRP },
	} {
		o := Default()
		rule(&o)
		for _, name := range strings.Fields(names) {
			stated := o
			if err := stated.Set(name, o.InForce(name)); err != nil {
				t.Fatal(err)
			}
			if stated == o || stated.Canonical() != o {
				t.Errorf("--%s %s is not what the options leave open", name, o.InForce(name))
			}
		}
	}
	o := Default()
	o.LSI.Epsilon, o.Labels.CorrectAlpha, o.Precision = 0.2, 0.4, "float16"
	for name, want := range map[string]string{"label-epsilon": "0.2", "cs-correct-alpha": "0.4", "smoothed-precision": "float16", "residual": "0", "rule": "ndls"} {
		if got := o.InForce(name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
}

// TestOptionValues: the words that an option may be are those that Validate allows.
func TestOptionValues(t *testing.T) {
	lists := 0
	for _, name := range Names() {
		x, _ := Find(name)
		values := x.Words
		for _, value := range values {
			p := Default()
			if err := p.Set(name, value); err != nil {
				t.Fatal(err)
			}
			if err := p.Validate(); err != nil && strings.Contains(err.Error(), "--"+name+" \""+value+"\" is n") {
				t.Errorf("%v", err)
			}
		}
		p := Default()
		if err := p.Set(name, "?"); err != nil {
			continue // no words
		}
		if err := p.Validate(); err != nil && strings.Contains(err.Error(), "is none of") {
			lists++
			if want := "is none of " + strings.Join(values, ", "); !strings.HasSuffix(err.Error(), want) {
				t.Errorf("%v; its words are %v", err, values)
			}
		}
	}
	if lists < 13 {
		t.Errorf("%d options are one of some words", lists)
	}
}

// TestRidgeIsOneModel: a ridge regression has one model for each split, and options of training are told to be unused.
func TestRidgeIsOneModel(t *testing.T) {
	o := Default()
	o.Train.Model, o.Train.HiddenNorm, o.Partition.Splits = Ridge, LayerNorm, 3
	if err := o.Validate(); err != nil || o.NumRuns() != 1 {
		t.Errorf("%d models a split: %v", o.NumRuns(), err)
	}
	unused := map[string]bool{}
	for _, u := range o.Unused() {
		unused[u.Option] = !u.Refused
	}
	for name, want := range map[string]bool{
		"hidden": true, "layers": true, "hidden-norm": true, "lr": true, "epochs": true, "runs": true, "batch-size": true,
		"input-norm": false, "choose": false, "model": false,
	} {
		if unused[name] != want {
			t.Errorf("--%s is told to be unused: %v, want %v", name, unused[name], want)
		}
	}
}
