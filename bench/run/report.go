package main

import (
	"context"
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// report is the text of RESULTS.md.
type report struct {
	head  string
	parts []fmt.Stringer
}

func newReport(ctx context.Context, b *bench) (report, error) {
	commit, err := output(ctx, "git", "describe", "--always", "--dirty=, with uncommitted changes")
	if err != nil {
		return report{}, err
	}
	var name unix.Utsname
	if err := unix.Uname(&name); err != nil {
		return report{}, err
	}
	return report{head: fmt.Sprintf(`# ndls beside what is used today

%s, %d cores, %s of memory, Linux %s; load average %s when it began. Commit %s, %s. Written by

    go run -C bench ./run %s

Contenders run in turn, %d rounds, each in a fresh process; what takes longer than %s is not repeated, and stopped after %s. A process
has at most %s of memory (%s); peaks are of resident memory.
Figures are medians, with the least and the largest in brackets. %d threads where a program can use them, but for the first table.
Peers run with `+"`%s`"+`: ndls and NumPy ask for huge pages by themselves.
`, field("/proc/cpuinfo", "model name"), b.threads, totalMemory(), unix.ByteSliceToString(name.Release[:]), load(),
		commit, time.Now().UTC().Format(time.DateOnly), strings.Join(os.Args[1:], " "), b.rounds, b.long, b.jail.time, b.limit, b.jail.how(), b.threads, hugePages)}, nil
}

// field is the first value of a name in a file of /proc.
func field(path, name string) string {
	text, _ := os.ReadFile(path)
	for line := range strings.Lines(string(text)) {
		if key, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(key) == name {
			return strings.TrimSpace(value)
		}
	}
	return "?"
}

func totalMemory() string {
	kib, _ := strconv.ParseInt(strings.TrimSuffix(field("/proc/meminfo", "MemTotal"), " kB"), 10, 64)
	return size(kib << 10)
}

func load() string {
	text, _ := os.ReadFile("/proc/loadavg")
	first, _, _ := strings.Cut(string(text), " ")
	return first
}

type text string

func (t text) String() string { return string(t) }

func (r *report) section(title, about string) {
	r.parts = append(r.parts, text("\n## "+title+"\n\n"+about+"\n\n"))
}

func (r *report) table(columns ...string) *table {
	t := &table{}
	t.row(columns...)
	t.b.WriteString(strings.Repeat("|---", len(columns)) + "|\n")
	r.parts = append(r.parts, t)
	return t
}

func (r *report) write(path string) error {
	var b strings.Builder
	b.WriteString(r.head)
	for _, p := range r.parts {
		b.WriteString(p.String())
	}
	return os.WriteFile(path, []byte(b.String()), 0o644)
}

// table is in Markdown.
type table struct{ b strings.Builder }

func (t *table) row(cells ...string) {
	for _, c := range cells {
		t.b.WriteString("| " + strings.ReplaceAll(c, "|", "/") + " ")
	}
	t.b.WriteString("|\n")
}

func (t *table) String() string { return t.b.String() }

// remark is how the runs died, or what the program calls its version.
func (r runs) remark() string {
	if died := r.died(); died != "" {
		return died
	}
	return r.all[0].Version
}

// text is the median and, of several values, the extremes.
func (s spread) text(unit float64, decimals int) string {
	if math.IsNaN(s.median) {
		return "–"
	}
	number := func(x float64) string { return strconv.FormatFloat(x*unit, 'f', decimals, 64) }
	if s.least == s.most {
		return number(s.median)
	}
	return fmt.Sprintf("%s (%s–%s)", number(s.median), number(s.least), number(s.most))
}

func ratio(x float64) string {
	if math.IsNaN(x) || math.IsInf(x, 0) {
		return "–"
	}
	return strconv.FormatFloat(x, 'f', 2, 64)
}

func size(bytes int64) string {
	if bytes == 0 {
		return "–"
	}
	return fmt.Sprintf("%.2f GiB", float64(bytes)/(1<<30))
}

// parseGiB reads an amount of memory, such as 20GiB or 1.5GiB.
func parseGiB(s string) (int64, error) {
	number, ok := strings.CutSuffix(s, "GiB")
	x, err := strconv.ParseFloat(number, 64)
	if !ok || err != nil || !(x > 0 && x < 1<<20) {
		return 0, fmt.Errorf("%q: write it like 20GiB", s)
	}
	return int64(x * (1 << 30)), nil
}
