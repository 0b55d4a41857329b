package report

import (
	"bytes"
	"cmp"
	"embed"
	"fmt"
	"io"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"ndls/internal/control"
	"ndls/internal/mem"
	"ndls/internal/page"
)

// Named is a report with the name of its run. A page of one run does not show the name.
type Named struct {
	Name string
	Report
	several bool // there are others
}

// Page writes the page of one run, or of several side by side.
func Page(w io.Writer, runs ...Named) error {
	v := &view{Runs: runs, Several: len(runs) > 1}
	for i := range runs {
		runs[i].several = v.Several
	}
	var text bytes.Buffer
	if err := pages().Execute(&text, "page", v); err != nil {
		return fmt.Errorf("report: making the page: %w", err)
	}
	_, err := w.Write(text.Bytes())
	return err
}

// view holds what the page shows.
type view struct {
	Runs    []Named
	Several bool
}

// series is the name of a series of a run's chart.
func (r Named) series(name string) string {
	if r.several {
		return r.Name
	}
	return name
}

//go:embed page.html.tmpl page.css page.js uplot
var files embed.FS

// text is the text of an embedded file.
func text(name string) (page.Raw, error) {
	b, err := files.ReadFile(name)
	return page.Raw(b), err
}

var functions = page.Funcs{
	"bytes":   func(n int64) string { return mem.Bytes(n).String() },
	"percent": func(x float64) string { return strconv.FormatFloat(100*x, 'f', 2, 64) },
	"share":   func(x *float64) string { return strconv.FormatFloat(100**x, 'f', 2, 64) },
	"million": func(x float64) string { return strconv.FormatFloat(x/1e6, 'f', 1, 64) },
	"seconds": func(x float64) string { return strconv.FormatFloat(x, 'f', 1, 64) },
	"count":   count,
	"number":  number,
	"raw":     raw,
	"digest":  digest,
	"prose":   prose,
	"folded":  folded,
	"css":     text,
	"js":      text,
}

// methods are those that the template calls.
var methods = map[string][]any{
	"Against": {Named.Against}, "ByDegree": {(*view).ByDegree}, "ByK": {(*view).ByK}, "Compared": {(*view).Compared},
	"Confusion": {Named.Confusion}, "Counted": {(*chart).Counted}, "Degrees": {(*view).Degrees}, "Depth": {(*view).Depth},
	"Distances": {(*view).Distances}, "Finished": {Named.Finished}, "FirstInputs": {Named.FirstInputs}, "FirstLosses": {Named.FirstLosses},
	"Has": {(*view).Has}, "Hops": {(*view).Hops}, "KByDegree": {(*view).KByDegree}, "KCDF": {(*view).KCDF},
	"KHistogram": {(*view).KHistogram}, "Largest": {Named.Largest}, "Loss": {(*view).Loss},
	"Measures":   {Named.Measures},
	"MoreInputs": {Named.MoreInputs}, "Next": {Named.Next}, "Of": {against.Of}, "Options": {(*view).Options},
	"Pairs": {(*view).Pairs}, "Seconds": {Named.Seconds},
	"ShareOf": {Named.ShareOf}, "Shown": {(*view).Shown}, "SmallClasses": {Named.SmallClasses}, "Splits": {Named.Splits},
	"Title": {(*view).Title}, "Took": {Named.Took}, "Valid": {(*view).Valid},
}

var pages = page.Once("page", files, "page.html.tmpl", functions, methods)

// count is a whole number with narrow spaces between thousands.
func count(n int64) string {
	digits := strconv.FormatInt(n, 10)
	var b strings.Builder
	for i, d := range digits {
		if i > 0 && (len(digits)-i)%3 == 0 && digits[i-1] != '-' {
			b.WriteRune('\u202f')
		}
		b.WriteRune(d)
	}
	return b.String()
}

// raw is a number for the script, "" where there is none.
func raw(x float64) string {
	if math.IsNaN(x) {
		return ""
	}
	return strconv.FormatFloat(x, 'g', -1, 64)
}

// part is a piece of a text: the name of an option, or what stands between two of them.
type part struct {
	Text   string
	Option bool
}

var optionNames = regexp.MustCompile(`--[a-z][a-z-]*`)

// prose cuts a text at the names of options, since a browser breaks lines behind their dashes unless it is told not to.
func prose(text string) (parts []part) {
	at := 0
	for _, found := range optionNames.FindAllStringIndex(text, -1) {
		parts = append(parts, part{Text: text[at:found[0]]}, part{text[found[0]:found[1]], true})
		at = found[1]
	}
	return append(parts, part{Text: text[at:]})
}

// folded returns a command with an option a line, as a shell takes it.
func folded(command string) string {
	words := strings.Split(command, " --")
	for i := range words[1:] {
		before := strings.Join(words[:i+1], "")
		if strings.Count(strings.ReplaceAll(before, `\'`, ""), "'")%2 == 0 { // not inside of quotes
			words[i] += " \\\n "
		}
	}
	return strings.Join(words, " --")
}

// digest shows what stands for the bytes of a file.
func digest(f control.InputFile) string { return cmp.Or(f.Digest, f.Version, "not known") }

func sortLines(lines []line) {
	slices.SortStableFunc(lines, func(a, b line) int { return cmp.Or(cmp.Compare(a.X, b.X), cmp.Compare(a.To, b.To)) })
}

// option is an option and its value in each run, "–" where a run's report does not have it.
type option struct {
	Name    string
	Values  []string
	Changed bool // from the default, in some run
	Differ  bool // between runs
}

// Options returns the options of all runs, in order of name.
func (v *view) Options() (list []option) {
	names := map[string]bool{}
	for _, r := range v.Runs {
		if r.Run != nil {
			for name := range r.Run.Options {
				names[name] = true
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		o := option{Name: name}
		for _, r := range v.Runs {
			value := "–"
			if r.Run != nil {
				if x, ok := r.Run.Options[name]; ok {
					value = cmp.Or(x, "not given")
				}
				o.Changed = o.Changed || slices.Contains(r.Run.Changed, name)
			}
			o.Values = append(o.Values, value)
			o.Differ = o.Differ || value != o.Values[0]
		}
		list = append(list, o)
	}
	return list
}

// Shown are the options that the page shows at once: of one run those that are not the defaults, of
// several those that differ.
func (v *view) Shown() []option {
	return slices.DeleteFunc(v.Options(), func(o option) bool { return v.Several && !o.Differ || !v.Several && !o.Changed })
}

// Title names the page.
func (v *view) Title() string {
	if v.Several {
		return fmt.Sprintf("%d runs", len(v.Runs))
	}
	return v.Runs[0].Dataset.Name
}

// Seconds returns the seconds of all stages of a run.
func (r Named) Seconds() (sum float64) {
	for _, s := range r.Stages {
		sum += s.Seconds
	}
	return sum
}

// Has reports whether any run has what part names: "accuracy", "curves", "k", "losses", "absent", "limits", "planned".
func (v *view) Has(part string) bool {
	return slices.ContainsFunc(v.Runs, func(r Named) bool {
		switch part {
		case "accuracy":
			return r.Accuracy != nil
		case "curves":
			return r.Accuracy != nil && slices.ContainsFunc(r.Accuracy.Models, func(m control.ModelAccuracy) bool { return len(m.Curve) > 0 })
		case "k":
			return r.LSI != nil
		case "losses":
			return len(r.Losses) > 0
		case "absent":
			return len(r.Absent) > 0
		case "limits":
			return r.Limits != nil
		case "planned":
			return slices.ContainsFunc(r.Stages, func(s Stage) bool { return s.Planned != nil })
		default:
			return len(r.Warnings) > 0
		}
	})
}

// Pairs are the pairs of columns of what was planned and measured.
func (*view) Pairs() []int { return make([]int, 6) }

// Finished returns the time when a run was complete, in words; "" if its report does not say so.
func (r Named) Finished() string {
	if r.Run == nil || r.Run.Finished.IsZero() {
		return ""
	}
	return r.Run.Finished.UTC().Format("2 January 2006, 15:04 UTC")
}

// Took returns the time of all stages of a run, in words.
func (r Named) Took() string {
	if seconds := r.Seconds(); seconds < 100 {
		return strconv.FormatFloat(seconds, 'f', 1, 64) + " s"
	}
	return time.Duration(r.Seconds() * float64(time.Second)).Round(time.Second).String()
}

// ShareOf is the share of a stage in the time of all.
func (r Named) ShareOf(s Stage) string {
	return strconv.FormatFloat(s.Seconds/max(r.Seconds(), 1e-9), 'f', 4, 64)
}

// Largest are the classes with the most test nodes, SmallClasses how many others there are.
func (r Named) Largest() []control.ClassFigures {
	list := slices.Clone(r.Accuracy.Classes)
	if len(list) > MaxRows {
		slices.SortStableFunc(list, func(a, b control.ClassFigures) int { return cmp.Compare(b.Nodes, a.Nodes) })
		list = list[:MaxRows]
	}
	return list
}

// SmallClasses is described at Largest.
func (r Named) SmallClasses() int { return max(len(r.Accuracy.Classes)-MaxRows, 0) }

// FirstLosses are those that the page shows.
func (r Named) FirstLosses() []control.Loss { return r.Losses[:min(len(r.Losses), MaxRows)] }

// FirstInputs are the files that the page shows, MoreInputs how many others there are.
func (r Named) FirstInputs() []control.InputFile {
	return r.Run.Inputs[:min(len(r.Run.Inputs), MaxRows)]
}

// MoreInputs is described at FirstInputs.
func (r Named) MoreInputs() int { return max(len(r.Run.Inputs)-MaxRows, 0) }

// confusionRow is a row of the confusion matrix.
type confusionRow struct {
	Class string
	Cells []confusionCell
}

// confusionCell is a cell of it: Share is a share of the nodes of the row.
type confusionCell struct {
	Nodes int64
	Share string
	Right bool
}

// Confusion are the rows of the confusion matrix.
func (r Named) Confusion() (rows []confusionRow) {
	c := r.Accuracy.Breakdown.Confusion
	for i, counts := range c.Counts {
		row, total := confusionRow{Class: fmt.Sprintf("%d others", c.Others)}, int64(0)
		if i < len(c.Classes) {
			row.Class = c.Classes[i]
		}
		for _, n := range counts {
			total += n
		}
		for j, n := range counts {
			row.Cells = append(row.Cells, confusionCell{n, strconv.FormatFloat(float64(n)/float64(max(total, 1)), 'f', 3, 64), i == j &&
				i < len(c.Classes)})
		}
		rows = append(rows, row)
	}
	return rows
}
