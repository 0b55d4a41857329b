package control

import (
	"encoding/json"
	"errors"
	"math"
	"reflect"
	"strings"
	"testing"
)

func TestDefaultPlanIsValid(t *testing.T) {
	if err := DefaultPlan().Validate(); err != nil {
		t.Fatal(err)
	}
}

func TestValidate(t *testing.T) {
	for _, tc := range []struct {
		name   string
		change func(*Plan)
		want   string
	}{
		{"mode", func(p *Plan) { p.LSI.Mode = "exact" }, `--lsi "exact" is none of influence-sketch`},
		{"features", func(p *Plan) { p.Partition.Features = "all" }, `--features "all" is none of none`},
		{"r above", func(p *Plan) { p.LSI.R = 1.5 }, "--r 1.5 is outside [0, 1]"},
		{"r NaN", func(p *Plan) { p.LSI.R = math.NaN() }, "--r NaN is outside"},
		{"epsilon zero", func(p *Plan) { p.LSI.Epsilon = 0 }, "--epsilon 0 is not a finite number above 0"},
		{"epsilon infinite", func(p *Plan) { p.LSI.Epsilon = math.Inf(1) }, "--epsilon +Inf is not a finite number above 0"},
		{"dropout one", func(p *Plan) { p.Train.Dropout = 1 }, "--dropout 1 is outside [0, 1)"},
		{"runs", func(p *Plan) { p.Train.Runs = 0 }, "--runs 0 is outside"},
		{"split word", func(p *Plan) { p.Partition.Split = "public" }, "--split"},
		{"split without training nodes", func(p *Plan) { p.Partition.Split = "random:0,30" }, "--split"},
		{"split with a tail", func(p *Plan) { p.Partition.Split = "random:20,30x" }, "--split"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p := DefaultPlan()
			tc.change(&p)
			err := p.Validate()
			if !errors.Is(err, ErrOption) || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error = %v, want ErrOption with %q", err, tc.want)
			}
		})
	}
	p := DefaultPlan()
	p.Partition.Split = "random:20,30"
	if err := p.Validate(); err != nil {
		t.Errorf("random:20,30 refused: %v", err)
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
		}
		visit(name + tag)
	}
}

func TestEveryFieldDecidesHash(t *testing.T) {
	p := DefaultPlan()
	last, fields := DefaultPlan(), 0
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
	var back Plan
	if err := json.Unmarshal(text, &back); err != nil || back != p {
		t.Errorf("plan does not survive JSON: %v, %+v", err, back)
	}
}
