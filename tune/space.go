package tune

import (
	"hash/fnv"
	"math"
	"slices"
	"strconv"
	"strings"

	"ndls"
	"ndls/internal/failure"
	"ndls/internal/rng"
	"ndls/plan"
)

// Space lists the options that differ between trials.
type Space []Dimension

// Dimension is an option and the values that it may have.
type Dimension struct {
	// Name is the name of the flag of ndls run, without dashes.
	Name string
	// Values are choices, as the flag takes them. Without them values are drawn from [Lo, Hi],
	// evenly, or, if Log, so that their logarithm is even. Options that are whole numbers get
	// whole numbers.
	Values []string
	Lo, Hi float64
	Log    bool
	// scales says that the range is divided by the length of rows ([Space.fit]).
	scales bool
}

// DefaultWord stands among the dimensions that [ParseSpace] reads for those of [Default].
const DefaultWord = "default"

// Default is the space of a search that is given none, without the options that are named. The
// published settings of each rule are in it. Where the features of training nodes are longer than
// 1, as a root mean square, a search divides its learning rates by that length: gradients of the
// first layer grow with it, and a rate that is right for rows of length 1 leaves such a model at
// chance.
func Default(without ...string) Space {
	s := Space{
		{Name: "epsilon", Values: []string{"0.01", "0.03", "0.05", "0.1", "0.2", "0.3"}},
		{Name: "alpha", Values: []string{"0.05", "0.1", "0.15", "0.2", "0.3"}},
		{Name: "residual", Values: []string{"0", "0.1"}},
		{Name: "hops", Values: []string{"2", "4", "6", "8", "10", "16"}},
		{Name: "hidden", Values: []string{"32", "64", "128"}},
		{Name: "dropout", Values: []string{"0", "0.2", "0.4", "0.5", "0.6", "0.8"}},
		{Name: "input-dropout", Values: []string{"0", "0.2", "0.4", "0.5", "0.6", "0.8"}},
		{Name: "lr", Lo: 0.003, Hi: 0.2, Log: true, scales: true},
		{Name: "weight-decay", Lo: 5e-6, Hi: 1e-2, Log: true},
	}
	return slices.DeleteFunc(s, func(d Dimension) bool { return slices.Contains(without, d.Name) })
}

// fit is the space for rows of a length.
func (s Space) fit(length float64) Space {
	fitted := slices.Clone(s)
	for i, d := range fitted {
		if d.scales && length > 1 {
			round := func(x float64) float64 {
				x, _ = strconv.ParseFloat(strconv.FormatFloat(x, 'g', 2, 64), 64)
				return x
			}
			fitted[i].Lo, fitted[i].Hi = round(d.Lo/length), round(d.Hi/length)
		}
	}
	return fitted
}

// ParseSpace reads dimensions: "epsilon=0.01,0.03,0.1", "dropout=0:0.8" or "lr=log:0.001:0.1". Values
// that have commas themselves stand between semicolons. Its error wraps [ndls.ErrOption], and lists the
// names if one is not known.
func ParseSpace(dimensions ...string) (Space, error) {
	var s Space
	for _, text := range dimensions {
		d, err := parse(text)
		if err != nil {
			return nil, err
		}
		s = append(s, d)
	}
	return s, s.check()
}

// parse reads a dimension.
func parse(text string) (d Dimension, err error) {
	name, values, ok := strings.Cut(text, "=")
	if !ok {
		return d, failure.Of(ndls.ErrOption, "--try %q: write NAME=VALUE,VALUE,… or NAME=LOW:HIGH or NAME=log:LOW:HIGH", text)
	}
	d.Name = name
	if _, err := find(name); err != nil {
		return d, err
	}
	if low, high, ok := strings.Cut(strings.TrimPrefix(values, "log:"), ":"); ok && ndls.OptionType(name) != "text" {
		d.Log = strings.HasPrefix(values, "log:")
		var e1, e2 error
		d.Lo, e1 = strconv.ParseFloat(low, 64)
		d.Hi, e2 = strconv.ParseFloat(high, 64)
		if e1 != nil || e2 != nil {
			return d, failure.Of(ndls.ErrOption, "--try %s: %q is no range: write LOW:HIGH or log:LOW:HIGH with two numbers", name, values)
		}
		return d, nil
	}
	separator := ","
	if strings.Contains(values, ";") {
		separator = ";"
	}
	d.Values = strings.Split(values, separator)
	return d, nil
}

// check refuses dimensions that make no sense.
func (s Space) check() error {
	for i, d := range s {
		if slices.ContainsFunc(s[:i], func(e Dimension) bool { return e.Name == d.Name }) {
			return failure.Of(ndls.ErrOption, "--try %s is given twice: name all its values once", d.Name)
		}
		if err := d.check(); err != nil {
			return err
		}
	}
	return nil
}

func (d Dimension) check() error {
	o := ndls.DefaultOptions()
	x, err := find(d.Name)
	if err != nil {
		return err
	}
	for i, v := range d.Values {
		if err := o.Set(d.Name, v); err != nil {
			return err
		}
		if slices.Contains(d.Values[:i], v) {
			return failure.Of(ndls.ErrOption, "--try %s: the value %q is given twice", d.Name, v)
		}
	}
	zero := slices.ContainsFunc(d.Values, func(v string) bool { n, err := strconv.ParseFloat(v, 64); return err == nil && n == 0 })
	if x.Positive() && (zero || d.Values == nil && !(d.Lo > 0)) {
		return failure.Of(ndls.ErrOption, "--try %s: give numbers above 0", d)
	}
	switch finite := !math.IsInf(d.Lo, 0) && !math.IsInf(d.Hi, 0); {
	case d.Values != nil:
		return nil
	case ndls.OptionType(d.Name) == "text":
		return failure.Of(ndls.ErrOption, "--try %s: values of %s are no numbers and have no range; give choices", d.Name, d.Name)
	case !(d.Lo < d.Hi) || !finite:
		return failure.Of(ndls.ErrOption, "--try %s: %s is no range: its first number must be the smaller one", d.Name, d)
	case d.Log && !(d.Lo > 0):
		return failure.Of(ndls.ErrOption, "--try %s: %s: the logarithm needs numbers above 0", d.Name, d)
	case ndls.OptionType(d.Name) == "whole number" && (d.Lo != math.Trunc(d.Lo) || d.Hi != math.Trunc(d.Hi) || math.Abs(d.Lo) > mostWhole || math.Abs(d.Hi) > mostWhole):
		return failure.Of(ndls.ErrOption, "--try %s: %s: %s is a whole number, and so are the ends of its range", d.Name, d, d.Name)
	}
	return nil
}

// mostWhole bounds ranges of whole numbers.
const mostWhole = 1 << 31

// String is the dimension as [ParseSpace] reads it.
func (d Dimension) String() string {
	if d.Values != nil {
		separator := ","
		if slices.ContainsFunc(d.Values, func(v string) bool { return strings.Contains(v, ",") }) {
			separator = ";"
		}
		return d.Name + "=" + strings.Join(d.Values, separator)
	}
	text := strconv.FormatFloat(d.Lo, 'g', -1, 64) + ":" + strconv.FormatFloat(d.Hi, 'g', -1, 64)
	if d.Log {
		text = "log:" + text
	}
	return d.Name + "=" + text
}

// strings are the dimensions as text.
func (s Space) strings() (list []string) {
	for _, d := range s {
		list = append(list, d.String())
	}
	return list
}

// smoothsLabels reports whether an option of label smoothing is among the dimensions.
func (s Space) smoothsLabels() bool {
	return slices.ContainsFunc(s, func(d Dimension) bool {
		x, err := find(d.Name)
		return err == nil && x.Group == plan.Labels
	})
}

// draw gives each dimension the value that it has in an attempt. A value depends on the seed, the attempt and the
// name of its option alone.
func (s Space) draw(seed, attempt uint64) (drawn []Setting) {
	for _, d := range s {
		name := fnv.New64a()
		_, _ = name.Write([]byte(d.Name))
		drawn = append(drawn, Setting{d.Name, d.draw(rng.Hash(seed, drawTrials, attempt, name.Sum64()))})
	}
	return drawn
}

// drawTrials sets the random numbers of a search apart from those of its trials.
const drawTrials = 0x74756e65

// significant is the number of digits of a value that is drawn from a range.
const significant = 4

// draw turns 64 random bits into a value.
func (d Dimension) draw(x uint64) string {
	if d.Values != nil {
		return d.Values[rng.Below(x, uint64(len(d.Values)))]
	}
	if ndls.OptionType(d.Name) == "whole number" {
		if d.Log {
			return strconv.FormatFloat(math.Round(d.geometric(x)), 'f', -1, 64)
		}
		return strconv.FormatInt(int64(d.Lo)+int64(rng.Below(x, uint64(d.Hi-d.Lo)+1)), 10)
	}
	value := d.Lo + float64(rng.Float64(x)*float64(d.Hi-d.Lo))
	if d.Log {
		value = d.geometric(x)
	}
	text := strconv.FormatFloat(value, 'g', significant, 64)
	if short, err := strconv.ParseFloat(text, 64); err != nil || short < d.Lo || short > d.Hi {
		return strconv.FormatFloat(value, 'g', -1, 64) // the short one is outside
	}
	return text
}

// geometric is a value in the range whose logarithm is even: each bit takes the lower or the upper half
// of what is left, which end at the geometric mean. Its product and its root are rounded alike on every
// processor, which logarithms are not.
func (d Dimension) geometric(bits uint64) float64 {
	lo, hi := d.Lo, d.Hi
	for range logHalves {
		if bits>>63 == 0 {
			hi = math.Sqrt(float64(lo * hi))
		} else {
			lo = math.Sqrt(float64(lo * hi))
		}
		bits <<= 1
	}
	return lo
}

// logHalves is the number of times that a range is halved: enough for the digits of a value.
const logHalves = 30

// combinations is the number of trials of a grid.
func (s Space) combinations() (int, error) {
	n := 1
	for _, d := range s {
		if d.Values == nil {
			return 0, failure.Of(ndls.ErrOption, "--search grid needs choices, and --try %s is a range: write %s=VALUE,VALUE,…", d, d.Name)
		}
		if n *= len(d.Values); n > mostTrials {
			return 0, failure.Of(ndls.ErrOption, "the grid has more than %d combinations; try fewer values, or --search random", mostTrials)
		}
	}
	return n, nil
}

// mostTrials bounds the trials of a search.
const mostTrials = 100_000

// combination is number i of the grid: the last dimension varies fastest.
func (s Space) combination(i int) []Setting {
	list := make([]Setting, len(s))
	for k, d := range slices.Backward(s) {
		list[k] = Setting{d.Name, d.Values[i%len(d.Values)]}
		i /= len(d.Values)
	}
	return list
}
