package reproduce

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"ndls"
	"ndls/internal/failure"
	"ndls/internal/meant"
	"ndls/internal/vfs"
)

// What tables take where a job does not say.
const (
	// DefaultTrials is the number of settings of each method that validation compares.
	DefaultTrials = 6
	// DefaultSplits is the number of random splits, DefaultModels that of models of each, and
	// DefaultPublishedModels that of models of a published split.
	DefaultSplits          = 10
	DefaultModels          = 3
	DefaultPublishedModels = 10
)

// A line is a row of a table with what came of it.
type line struct {
	Name    string  `json:"method"`
	Ours    bool    `json:"by_node"`
	Aside   bool    `json:"aside,omitempty"`
	After   bool    `json:"after_label_smoothing"`
	Paper   string  `json:"paper,omitempty"`
	Outcome Outcome `json:"outcome"`
}

// figures are those that the line is about.
func (l line) figures() Figures {
	if l.After {
		return l.Outcome.After
	}
	return l.Outcome.Before
}

// lack is a data set, or a program, that is not there.
type lack struct {
	Set string `json:"set"`
	Why string `json:"why"`
	// Lines are commands that make what is missing.
	Lines []string `json:"lines"`
}

// tableData is a table for programs.
type tableData struct {
	Table   string `json:"table"`
	Lines   []line `json:"lines"`
	Missing []lack `json:"missing"`
}

// experiment is the registry's entry of a table.
func (g grid) experiment() Experiment {
	return Experiment{
		Name: g.name, About: g.about, Needs: "data sets in --data",
		Lines: []string{"ndls reproduce " + g.name + " --data DATA --out OUT"},
		Sets:  g.sets, Methods: g.recipes(), Conditions: g.conditionNames(),
		make: func(ctx context.Context, _ Experiment, j Job) (Result, error) { return g.make(ctx, j) },
	}
}

// make runs the experiments of a table that have not been run, and prints all.
func (g grid) make(ctx context.Context, j Job) (result Result, err error) {
	chosen, err := g.chosen(j)
	if err != nil {
		return result, err
	}
	unlock, err := lock(j.Out)
	if err != nil {
		return result, err
	}
	defer unlock()
	var lines []line
	var lacks []lack
	for _, s := range chosen {
		files, err := s.lacks(j.Data)
		if err != nil {
			return result, err
		}
		if len(files) > 0 {
			lacks = append(lacks, g.lacks(j, s, files))
			continue
		}
		for _, c := range g.conditionList() {
			if len(j.Conditions) > 0 && !slices.Contains(j.Conditions, c.name) {
				continue
			}
			more, missing, err := g.under(ctx, j, s, c)
			if err != nil {
				return result, err
			}
			lines = append(lines, more...)
			if missing != nil && !slices.ContainsFunc(lacks, func(l lack) bool { return l.Why == missing.Why }) {
				lacks = append(lacks, *missing)
			}
		}
	}
	if len(lines) == 0 {
		var texts []string
		for _, l := range lacks {
			texts = append(texts, l.text())
		}
		return result, failure.Of(ndls.ErrOption, "%s has nothing to measure. These lines make what is missing:\n%s", g.name, strings.Join(texts, "\n"))
	}
	result.Tables = g.tables(lines)
	if !g.seconds {
		all := comparisons(lines)
		result.Tables = append(result.Tables, g.comparisonTable(all), g.splitTable(lines))
		result.Notes = verdicts(all)
	}
	result.Notes = append(result.Notes, g.notes...)
	for _, l := range lacks {
		result.Notes = append(result.Notes, l.text())
	}
	result.Data = tableData{g.name, lines, append([]lack{}, lacks...)}
	return result, nil
}

// lock keeps other processes from making tables in a folder until unlock is called.
func lock(out string) (unlock func(), err error) {
	if _, err := vfs.MkdirAll(out, 0o777); err != nil {
		return nil, fmt.Errorf("--out: %w", err)
	}
	folder, err := vfs.OpenFile(out, syscall.O_RDONLY, 0)
	if err != nil {
		return nil, fmt.Errorf("--out: %w", err)
	}
	if err := folder.Lock(); errors.Is(err, syscall.EWOULDBLOCK) { // where there are no locks it goes without
		_ = folder.Close()
		return nil, failure.Of(ndls.ErrBusy, "--out %s: another ndls makes tables there; wait for it, or choose another folder", out)
	}
	return func() { _ = folder.Close() }, nil
}

// chosen are the data sets of the table that the job wants. It refuses what the table does not have.
func (g grid) chosen(j Job) (list []set, err error) {
	for _, name := range j.Sets {
		if !slices.Contains(g.sets, name) {
			return nil, failure.Of(ndls.ErrOption, "--sets %s: the table %s has the data sets %s%s", name, g.name, strings.Join(g.sets, ", "), meant.Hint(name, g.sets))
		}
	}
	for _, name := range j.Methods {
		if !slices.ContainsFunc(g.rows, func(r row) bool { return r.recipe == name }) {
			return nil, failure.Of(ndls.ErrOption, "--methods %s: the table %s has the methods %s%s", name, g.name, strings.Join(g.recipes(), ", "), meant.Hint(name, g.recipes()))
		}
	}
	for _, name := range j.Conditions {
		if names := g.conditionNames(); !slices.Contains(names, name) {
			if len(names) == 0 {
				return nil, failure.Of(ndls.ErrOption, "--conditions %s: the table %s has no conditions", name, g.name)
			}
			return nil, failure.Of(ndls.ErrOption, "--conditions %s: the table %s has the conditions %s%s", name, g.name, strings.Join(names, ", "), meant.Hint(name, names))
		}
	}
	for _, name := range g.sets {
		if len(j.Sets) > 0 && !slices.Contains(j.Sets, name) {
			continue
		}
		s, err := findSet(name)
		if err != nil {
			return nil, err
		}
		list = append(list, s)
	}
	return list, nil
}

// recipes lists the methods of the table.
func (g grid) recipes() (list []string) {
	for _, r := range g.rows {
		if !slices.Contains(list, r.recipe) {
			list = append(list, r.recipe)
		}
	}
	return list
}

// conditionNames lists the conditions of the table, none where it has each data set as it is.
func (g grid) conditionNames() (list []string) {
	for _, c := range g.conditions {
		list = append(list, c.name)
	}
	return list
}

// conditionList has at least one condition.
func (g grid) conditionList() []condition {
	if len(g.conditions) == 0 {
		return []condition{{}}
	}
	return g.conditions
}

// under makes the lines of a data set under a condition. What it has made on the way is removed.
func (g grid) under(ctx context.Context, j Job, s set, c condition) (lines []line, missing *lack, err error) {
	for _, r := range g.rows {
		if named := slices.Contains(j.Methods, r.recipe); len(j.Methods) > 0 && !named || r.peer && !j.Peers && !named {
			continue
		}
		x, err := j.cell(g, s, c, r.recipe)
		if err != nil {
			return nil, nil, err
		}
		if log := j.Config.Log; log != nil {
			log.Info("experiment", "table", g.name, "set", s.name, "condition", c.name, "method", r.recipe)
		}
		o, err := j.outcome(ctx, x)
		if errors.Is(err, errNoPython) {
			missing = &lack{Set: s.name, Why: err.Error() + ": its models are left out", Lines: []string{
				"python3 -m venv VENV && VENV/bin/pip install " + programOf(x.program).packages,
				fmt.Sprintf("ndls reproduce %s --data DATA --python VENV/bin/python --out OUT", g.name),
			}}
			continue
		}
		if err != nil {
			return nil, nil, err
		}
		lines = append(lines, line{Name: r.name, Ours: r.ours, Aside: r.aside, After: r.smoothed, Paper: g.paper(r, s, c), Outcome: o})
	}
	return lines, missing, vfs.RemoveAll(filepath.Join(j.Out, "work"))
}

// paper returns the paper's figure of a row under a condition, "" for none.
func (g grid) paper(r row, s set, c condition) string {
	at := slices.IndexFunc(g.conditionList(), func(o condition) bool { return o.name == c.name })
	for _, p := range strings.Fields(r.paper) {
		if name, values, _ := strings.Cut(p, "="); name == s.name || name == "*" {
			if by := strings.Split(values, ","); at < len(by) {
				return by[at]
			}
		}
	}
	return ""
}

// lacks says what is missing of a data set, and which line would then run its part of the table.
func (g grid) lacks(j Job, s set, files []string) lack {
	some := files[0] + " is"
	if len(files) > 1 {
		some = fmt.Sprintf("%s and %d more are", files[0], len(files)-1)
	}
	l := lack{Set: s.name, Why: fmt.Sprintf("%s is missing: %s not in %s (published: %s)", s.name, some, j.Data, s.from)}
	l.Lines = append(l.Lines, fmt.Sprintf("ndls reproduce %s --sets %s --data DATA --out OUT", g.name, s.name))
	if x, err := j.cell(g, s, g.conditionList()[0], "ndls"); err == nil {
		l.Lines = append(l.Lines, x.command(""))
	}
	return l
}

func (l lack) text() string { return l.Why + "\n  " + strings.Join(l.Lines, "\n  ") }

// percent spells a spread of shares in percent.
func percent(s *ndls.Spread) string {
	if s == nil {
		return "–"
	}
	return fmt.Sprintf("%.2f ± %.2f", 100*s.Mean, 100*s.Std)
}

// share spells a share in percent.
func share(x float64) string { return fmt.Sprintf("%.2f", 100*x) }

// tables prints lines: by data set and condition first, and then each with its settings.
func (g grid) tables(lines []line) []Table {
	if g.seconds {
		return []Table{g.times(lines)}
	}
	tables := []Table{
		g.matrix(lines, g.name, "test accuracy in %, mean ± standard deviation over all models (in brackets: the paper)", func(l line) string {
			text := percent(l.figures().Test)
			if l.Paper != "" {
				text += " (" + l.Paper + ")"
			}
			return text
		}),
		g.matrix(lines, g.name+"-validation", "validation accuracy in %, by which settings were chosen", func(l line) string { return percent(l.figures().Valid) }),
	}
	all := Table{
		Name: g.name + "-lines", Title: g.name + ": deviation between splits and between models in points of test accuracy, and what was chosen",
		Header: []string{"data set", "condition", "method", "paper", "validation", "test", "splits", "models", "between splits", "between models", "mean K", "trials", "chosen by validation", "MiB of its program", "command"},
	}
	for _, l := range lines {
		o, f := l.Outcome, l.figures()
		between := []string{"–", percentStd(f.Test)}
		if f.Test != nil && o.Splits > 1 {
			between = []string{share(f.Test.BetweenSplits), share(f.Test.BetweenModels)}
		}
		k := "–"
		if o.MeanK != nil && l.Ours {
			k = strconv.FormatFloat(*o.MeanK, 'f', 1, 64)
		}
		trials := strconv.Itoa(o.Trials)
		if o.LabelTrials > 0 {
			trials += " + " + strconv.Itoa(o.LabelTrials)
		}
		all.Rows = append(all.Rows, []string{
			o.Set, o.Condition, l.Name, cmp.Or(l.Paper, "–"), percent(f.Valid), percent(f.Test),
			strconv.Itoa(o.Splits), strconv.Itoa(len(o.Models) / o.Splits), between[0], between[1],
			k, trials, cmp.Or(o.Chosen, "–"), orDash(float64(o.Memory)/(1<<20), "%.0f"), o.Command,
		})
	}
	return append(tables, all)
}

// percentStd is the standard deviation of a spread in points.
func percentStd(s *ndls.Spread) string {
	if s == nil {
		return "–"
	}
	return share(s.Std)
}

// matrix is a table of methods by data sets, and conditions if there are some.
func (g grid) matrix(lines []line, name, title string, show func(line) string) Table {
	t := Table{Name: name, Title: g.name + ": " + title, Header: []string{"method"}}
	at := map[string]int{}
	row := map[string]int{}
	for _, l := range lines {
		column := strings.TrimSpace(l.Outcome.Set + " " + l.Outcome.Condition)
		if _, ok := at[column]; !ok {
			at[column] = len(t.Header)
			t.Header = append(t.Header, column)
		}
		if _, ok := row[l.Name]; !ok {
			row[l.Name] = len(t.Rows)
			t.Rows = append(t.Rows, []string{l.Name})
		}
	}
	for i := range t.Rows {
		for len(t.Rows[i]) < len(t.Header) {
			t.Rows[i] = append(t.Rows[i], "–")
		}
	}
	for _, l := range lines {
		t.Rows[row[l.Name]][at[strings.TrimSpace(l.Outcome.Set+" "+l.Outcome.Condition)]] = show(l)
	}
	return t
}

// times is a table of seconds.
func (g grid) times(lines []line) Table {
	columns := []struct {
		name   string
		stages []ndls.Stage
	}{
		{"K", []ndls.Stage{ndls.StageLSI}},
		{"propagation", []ndls.Stage{ndls.StageSmooth}},
		{"training", []ndls.Stage{ndls.StageTrain}},
		{"prediction", []ndls.Stage{ndls.StagePredict}},
		{"all but the import", []ndls.Stage{ndls.StageLSI, ndls.StageSmooth, ndls.StageTrain, ndls.StagePredict}},
	}
	t := Table{Name: g.name, Title: g.name + ": seconds of wall time", Header: []string{"data set", "method"}}
	for _, c := range columns {
		t.Header = append(t.Header, c.name)
	}
	t.Header = append(t.Header, "of SGC's", "of SGC's, paper")
	whole := columns[len(columns)-1].stages
	for _, l := range lines {
		cells := []string{l.Outcome.Set, l.Name}
		for _, c := range columns {
			cells = append(cells, orDash(l.seconds(c.stages), "%.2f"))
		}
		relative := 0.0
		for _, sgc := range lines {
			if sgc.Outcome.Set == l.Outcome.Set && sgc.Outcome.Recipe == "sgc" {
				relative = l.seconds(whole) / sgc.seconds(whole)
			}
		}
		t.Rows = append(t.Rows, append(cells, orDash(relative, "%.1f"), cmp.Or(l.Paper, "–")))
	}
	return t
}

// seconds returns the time of stages, 0 if none was made. The time for K counts for methods that take it.
func (l line) seconds(stages []ndls.Stage) (sum float64) {
	for _, s := range l.Outcome.Stages {
		if slices.Contains(stages, s.Stage) && (l.Ours || s.Stage != ndls.StageLSI) {
			sum += s.Seconds
		}
	}
	return sum
}

// orDash spells a number, 0 as a dash.
func orDash(x float64, format string) string {
	if x == 0 {
		return "–"
	}
	return fmt.Sprintf(format, x)
}
