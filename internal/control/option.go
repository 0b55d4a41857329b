package control

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"ndls/internal/failure"
	"ndls/internal/meant"
)

// optionFields maps the names of flags to the fields of a plan. A name is the JSON name with
// dashes; in the section labels, except for Correct & Smooth, "label-" comes before it.
var optionFields = func() map[string][]int {
	fields := map[string][]int{}
	var add func(t reflect.Type, section string, index []int)
	add = func(t reflect.Type, section string, index []int) {
		for i := range t.NumField() {
			field, at := t.Field(i), append(slices.Clone(index), i)
			name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
			name = strings.ReplaceAll(name, "_", "-")
			switch {
			case field.Type.Kind() == reflect.Struct:
				add(field.Type, name, at)
				continue
			case section == "lsi" && name == "mode":
				name = "lsi"
			case section == "labels" && !strings.HasPrefix(name, "cs-"):
				name = "label-" + name
			}
			fields[name] = at
		}
	}
	add(reflect.TypeFor[Plan](), "", nil)
	for _, name := range notOptions {
		delete(fields, name)
	}
	return fields
}()

// notOptions lists the fields that no flag sets directly.
var notOptions = []string{"format", "dataset", "on", "label-soft-labels", "drop-features", "drop-smoothed"}

// OptionNames lists the options that [Plan.Set] sets, by the names of their flags.
func OptionNames() []string { return slices.Sorted(maps.Keys(optionFields)) }

// Set sets an option, by the name of its flag without dashes, to the value that text stands for. It
// reads text as the flag does, and does not check the range: [Plan.Validate] does. Its error wraps
// [ErrOption].
func (p *Plan) Set(name, text string) error {
	index, ok := optionFields[name]
	if !ok {
		return failure.Of(ErrOption, "there is no option %q%s; the options are %s", name, meant.Hint(name, OptionNames()), strings.Join(OptionNames(), ", "))
	}
	field := reflect.ValueOf(p).Elem().FieldByIndex(index)
	var err error
	switch field.Kind() {
	case reflect.String:
		field.SetString(text)
	case reflect.Int:
		var n int64
		if n, err = strconv.ParseInt(text, 0, strconv.IntSize); err == nil {
			field.SetInt(n)
		}
	case reflect.Uint64:
		var n uint64
		if n, err = strconv.ParseUint(text, 0, 64); err == nil {
			field.SetUint(n)
		}
	default:
		var x float64
		if x, err = strconv.ParseFloat(text, 64); err == nil {
			field.SetFloat(x)
		}
	}
	if err != nil {
		return failure.Of(ErrOption, "--%s %q is no %s", name, text, OptionType(name))
	}
	return nil
}

// Get returns the value of an option, by the name of its flag, in the form that [Plan.Set] reads;
// "" for an unknown name.
func (p Plan) Get(name string) string {
	index, ok := optionFields[name]
	if !ok {
		return ""
	}
	switch field := reflect.ValueOf(p).FieldByIndex(index); field.Kind() {
	case reflect.String:
		return field.String()
	case reflect.Int:
		return strconv.FormatInt(field.Int(), 10)
	case reflect.Uint64:
		return strconv.FormatUint(field.Uint(), 10)
	default:
		return strconv.FormatFloat(field.Float(), 'g', -1, 64)
	}
}

// InForce returns an option in the form of [Plan.Get], or the default in force if the plan leaves
// it open.
func (p Plan) InForce(name string) string {
	value := p.Get(name)
	if value != "" && value != "0" {
		return value
	}
	switch name {
	case "smoothed-precision":
		return p.Get("precision")
	case "label-epsilon":
		return p.Get("epsilon")
	case "dimensions":
		return fmt.Sprint(DefaultDimensions)
	case "hop-weights":
		return DefaultHopWeights
	case "sparsity":
		return fmt.Sprint(DefaultSparsity)
	case "cs-scale":
		return AutoScale
	case "cs-correct-alpha":
		return fmt.Sprint(DefaultCorrectAlpha)
	case "cs-correct-hops":
		return fmt.Sprint(DefaultCorrectHops)
	case "cs-smooth-alpha":
		return fmt.Sprint(DefaultSmoothAlpha)
	}
	return value
}

// OptionType returns the type of the values of an option: "number", "whole number" or "text"; ""
// for an unknown name.
func OptionType(name string) string {
	index, ok := optionFields[name]
	if !ok {
		return ""
	}
	switch reflect.TypeFor[Plan]().FieldByIndex(index).Type.Kind() {
	case reflect.String:
		return "text"
	case reflect.Float64:
		return "number"
	default:
		return "whole number"
	}
}

// Values returns all that decides the bytes of a run, by the names of the flags of `ndls run`.
func (p Plan) Values() map[string]string {
	all := map[string]string{
		"dataset": p.Partition.Dataset, "soft-labels": p.Labels.SoftLabels, "train-on": p.Train.On,
		"keep-features": strconv.FormatBool(!p.DropFeatures), "keep-smoothed": strconv.FormatBool(!p.DropSmoothed),
	}
	for _, name := range OptionNames() {
		all[name] = p.Get(name)
	}
	return all
}
