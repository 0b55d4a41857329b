package plan

import (
	"reflect"
	"slices"
	"strconv"
	"strings"

	"ndls/internal/failure"
	"ndls/internal/meant"
)

// fields maps the names of options to the fields of Options.
var fields = func() map[string][]int {
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
			case field.Type.Kind() == reflect.Bool: // the field says what is dropped, and the option what is kept
				name = strings.Replace(name, "drop-", "keep-", 1)
			}
			fields[name] = at
		}
	}
	add(reflect.TypeFor[Options](), "", nil)
	return fields
}()

// inputs lists the fields that name what a run reads, and the name of the flag of each. No row of the table sets them.
var inputs = map[string]string{"dataset": "dataset", "label-soft-labels": "soft-labels", "on": "train-on"}

// Find returns the row of an option.
func Find(name string) (Option, bool) {
	i := slices.IndexFunc(Table, func(x Option) bool { return x.Name == name })
	if i < 0 {
		return Option{}, false
	}
	return Table[i], true
}

// Names lists the options in ascending order.
func Names() (names []string) {
	for _, x := range Table {
		names = append(names, x.Name)
	}
	slices.Sort(names)
	return names
}

// Default holds the default of every option that does not depend on the input.
func Default() Options {
	o := Options{Format: Format}
	for _, x := range Table {
		if x.Default != "" {
			if err := o.Set(x.Name, x.Default); err != nil {
				panic("plan: default of " + x.Name + ": " + err.Error())
			}
		}
	}
	return o
}

// kind returns the kind of the field of an option.
func (x Option) kind() reflect.Kind {
	return reflect.TypeFor[Options]().FieldByIndex(fields[x.Name]).Type.Kind()
}

// Type returns the type of the values of an option: "number", "whole number", "text" or "true or false".
func (x Option) Type() string {
	switch x.kind() {
	case reflect.String:
		return "text"
	case reflect.Bool:
		return "true or false"
	case reflect.Float64:
		return "number"
	default:
		return "whole number"
	}
}

// Switch reports whether the option is true or false.
func (x Option) Switch() bool { return x.kind() == reflect.Bool }

// Positive reports whether a user cannot give the number 0, because it stands for the default.
func (x Option) Positive() bool { return x.Open != "" && x.kind() != reflect.String }

// Set sets an option, by the name of its flag without dashes, to the value that text stands for. It reads text as the flag does, and does
// not check the range: [Options.Validate] does. Its error wraps [failure.ErrOption].
func (o *Options) Set(name, text string) error {
	x, ok := Find(name)
	if !ok {
		return failure.Of(failure.ErrOption, "there is no option %q%s; the options are %s", name, meant.Hint(name, Names()), strings.Join(Names(), ", "))
	}
	field := reflect.ValueOf(o).Elem().FieldByIndex(fields[name])
	var err error
	switch field.Kind() {
	case reflect.String:
		field.SetString(text)
	case reflect.Bool: // the field says what is dropped
		var keep bool
		if keep, err = strconv.ParseBool(text); err == nil {
			field.SetBool(!keep)
		}
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
		return failure.Of(failure.ErrOption, "--%s %q is no %s", name, text, x.Type())
	}
	return nil
}

// Get returns the value of an option, by the name of its flag, in the form that [Options.Set] reads; "" for an unknown name.
func (o Options) Get(name string) string {
	if _, ok := Find(name); !ok {
		return ""
	}
	return o.text(name)
}

// text returns the value of a field.
func (o Options) text(name string) string {
	switch field := reflect.ValueOf(o).FieldByIndex(fields[name]); field.Kind() {
	case reflect.String:
		return field.String()
	case reflect.Bool:
		return strconv.FormatBool(!field.Bool())
	case reflect.Int:
		return strconv.FormatInt(field.Int(), 10)
	case reflect.Uint64:
		return strconv.FormatUint(field.Uint(), 10)
	default:
		return strconv.FormatFloat(field.Float(), 'g', -1, 64)
	}
}

// open reports whether the options leave an option open whose zero value stands for something else.
func (o Options) open(x Option) bool {
	return (x.Open != "" || x.OpenAs != "") && reflect.ValueOf(o).FieldByIndex(fields[x.Name]).IsZero()
}

// InForce returns an option in the form of [Options.Get], or the value that is in force if the options leave it open.
func (o Options) InForce(name string) string {
	x, _ := Find(name)
	switch {
	case !o.open(x):
		return o.Get(name)
	case x.Open != "":
		return x.Open
	}
	return o.Get(x.OpenAs)
}

// Values returns all that decides the bytes of a run, by the names of the flags of `ndls run`.
func (o Options) Values() map[string]string {
	all := map[string]string{}
	for field, flag := range inputs {
		all[flag] = o.text(field)
	}
	for _, x := range Table {
		all[x.Name] = o.text(x.Name)
	}
	return all
}

// Copy sets an option of o, or what a run reads, by the name of its flag, to the value that from has.
func (o *Options) Copy(name string, from Options) {
	for field, flag := range inputs {
		if flag == name {
			name = field
		}
	}
	at := fields[name]
	reflect.ValueOf(o).Elem().FieldByIndex(at).Set(reflect.ValueOf(from).FieldByIndex(at))
}

// Reset gives an option its default.
func (o *Options) Reset(name string) { o.Copy(name, Default()) }

// Unused is an option that decides nothing beside other options.
type Unused struct {
	// Option is the name of its flag, without dashes.
	Option string
	// Because is the reason: "--rule sgc has no weight of that kind, …".
	Because string
	// Refused says that a command that gives it is refused.
	Refused bool
}

// Unused lists the options that decide nothing, of those that options may have all the same: their values do not change the bytes of any
// row.
func (o Options) Unused() (list []Unused) {
	for _, x := range Table {
		if because := x.idle(o); because != "" && x.Refuse != Refused {
			list = append(list, Unused{x.Name, because, x.Refuse == RefusedGiven})
		}
	}
	return list
}

// idle returns why an option decides nothing beside the others, "" if it decides something.
func (x Option) idle(o Options) string {
	if x.Idle == nil {
		return ""
	}
	return x.Idle(o)
}

// Decides reports whether an option decides anything in a run that smooths labels, or not.
func (x Option) Decides(o Options, smoothed bool) bool {
	return (smoothed || x.Group != Labels) && x.idle(o) == "" && (x.Read == nil || x.Read(o, smoothed))
}

// Refuses reports whether options are refused that have another value of this option than its default.
func (x Option) Refuses(o Options) bool { return x.Refuse == Refused && x.idle(o) != "" }
