package progress

import (
	"fmt"
	"math"
	"strings"
	"time"
	"unicode/utf8"

	"ndls/internal/mem"
)

// barWidth is the number of cells of the bar itself.
const barWidth = 20

// pieces holds the parts of a line about a stage, a meter, or both.
type pieces struct {
	bar string
	// head says what is done and how far it is, short the same in fewer words.
	head, short string
	// amount and rate are of the meter, left is the time that the stage still takes, or the meter where
	// there is no stage, job the time of all stages.
	amount, rate, left, job string
}

// text is all of it but for the bar.
func (p pieces) text() string { return p.head + p.amount + p.rate + p.left + p.job }

// fit is as much of it as stays on one row of a terminal. A terminal breaks a line that reaches
// the last column, and a redraw would leave the broken line behind. The rate goes first, then the bar and
// the amount; how far the work is and the time that is left stay longest.
func (p pieces) fit(width int) string {
	for _, text := range []string{
		p.bar + p.text(),
		p.bar + p.head + p.amount + p.left + p.job,
		p.text(),
		p.head + p.amount + p.left + p.job,
		p.head + p.left + p.job,
		p.short + p.left + p.job,
		p.short + p.left,
	} {
		if utf8.RuneCountInString(text) < width {
			return text
		}
	}
	short := []rune(p.short)
	return string(short[:min(len(short), max(width-1, 0))])
}

// describe says how far a stage and the work of a meter are; either may be nil.
func describe(c *course, m *Meter, now time.Time) pieces {
	if c == nil {
		return ofMeter(m, now)
	}
	p := c.times(now)
	if m == nil {
		spent := now.Sub(c.started).Seconds()
		switch {
		case c.seen:
			p.head, p.bar = fmt.Sprintf("%s %d%%", c.Name, int(100*c.share)), drawBar(c.share)
		case spent >= 1:
			p.head = fmt.Sprintf("%s for %s", c.Name, rough(spent))
		default:
			p.head = c.Name
		}
		p.short = p.head
		return p
	}
	work := ofMeter(m, now)
	p.rate = work.rate
	if c.seen {
		p.head, p.bar = fmt.Sprintf("%s %d%%", c.Name, int(100*c.share)), drawBar(c.share)
		p.short = p.head
		what := m.what + " "
		if m.what == m.unit {
			what = ""
		}
		p.amount = fmt.Sprintf(" (%s%s)", what, strings.TrimLeft(work.amount, " ,"))
		return p
	}
	p.head, p.short, p.amount, p.bar = work.head, work.short, work.amount, work.bar
	switch within := m.within.Load(); {
	case within != nil:
		p.head, p.short = c.Name+" "+*within, *within
	case m.what != c.Name:
		p.head = c.Name + ": " + work.head
	}
	return p
}

// times says how long the stage and the job still take. What rests on the plan has a ~.
func (c *course) times(now time.Time) (p pieces) {
	left, planned, ok := c.left(now)
	about := ""
	if planned {
		about = "~"
	}
	switch {
	case ok && c.After > 0:
		p.left = ", " + about + rough(left) + " left"
		p.job = "; job ~" + rough(left+c.After)
	case ok:
		p.left = ", " + about + rough(left) + " left"
	case c.After > 0:
		p.job = "; job > " + rough(c.After)
	}
	return p
}

// ofMeter says how far the work of a meter is: "what 45% 12.3M of 27.0M edges, 4.5M edges/s, 3s
// left", or what is known of it.
func ofMeter(m *Meter, now time.Time) (p pieces) {
	count, total, spent := m.Count(), m.total, now.Sub(m.started).Seconds()
	within := m.within.Load()
	switch {
	case within != nil:
		total = 0
		p.head, p.short = m.what+" "+*within, *within
		p.amount = ", " + amount(count, m.unit)
	case total > 0:
		p.head = fmt.Sprintf("%s %d%%", m.what, 100*min(count, total)/total)
		p.short = p.head
		p.amount = fmt.Sprintf(" %s of %s", number(count, m.unit), amount(total, m.unit))
		p.bar = drawBar(float64(min(count, total)) / float64(total))
	default:
		p.head, p.short = m.what, m.what
		p.amount = " " + amount(count, m.unit)
	}
	if count > 0 && spent > 0 {
		rate := float64(count) / spent
		p.rate = ", " + speed(rate, m.unit)
		if total > count {
			p.left = fmt.Sprintf(", %s left", rough(float64(total-count)/rate))
		}
	}
	return p
}

func drawBar(share float64) string {
	full := int(barWidth * min(max(share, 0), 1))
	return "[" + strings.Repeat("=", full) + strings.Repeat(" ", barWidth-full) + "] "
}

func finished(m *Meter, now time.Time) string {
	spent := now.Sub(m.started).Seconds()
	return fmt.Sprintf("%s done: %s in %s", m.what, amount(m.Count(), m.unit), seconds(spent))
}

// seconds prints a time: tenths below ten seconds, whole seconds above.
func seconds(s float64) string {
	if s < 10 {
		return (time.Duration(s*10) * (time.Second / 10)).String()
	}
	return time.Duration(s * float64(time.Second)).Round(time.Second).String()
}

// rough prints a time as exactly as an estimate is worth: in seconds below a minute, then in tens of
// seconds, in minutes, in hours and minutes, in days and hours.
func rough(s float64) string {
	const minute, hour, day = 60, 60 * 60, 24 * 60 * 60
	if !(s < 1000*day) {
		return "1000d"
	}
	whole := func(unit float64) int { return int(math.Round(s / unit)) }
	switch n := max(whole(1), 1); {
	case n < minute:
		return fmt.Sprintf("%ds", n)
	case 10*whole(10) < 10*minute:
		return fmt.Sprintf("%dm%02ds", 10*whole(10)/minute, 10*whole(10)%minute)
	case whole(minute) < 60:
		return fmt.Sprintf("%dm", whole(minute))
	case whole(minute) < 48*60:
		return fmt.Sprintf("%dh%02dm", whole(minute)/60, whole(minute)%60)
	}
	return fmt.Sprintf("%dd%02dh", whole(hour)/24, whole(hour)%24)
}

// speed prints a number of units a second, or of a minute or an hour where there is less than one.
func speed(rate float64, unit string) string {
	for _, per := range []struct {
		name  string
		times float64
	}{{"s", 1}, {"min", 60}} {
		if rate*per.times >= 1 {
			return amount(int64(math.Round(rate*per.times)), unit) + "/" + per.name
		}
	}
	return amount(int64(math.Round(rate*60*60)), unit) + "/h"
}

// amount prints a count with its unit in a few characters.
func amount(n int64, unit string) string {
	switch {
	case unit == "bytes":
		return number(n, unit)
	case n == 1:
		unit = strings.TrimSuffix(unit, "s")
	}
	return number(n, unit) + " " + unit
}

// Number prints a count in a few characters: 9999, 12.3M.
func Number(n int64) string { return number(n, "") }

// number prints a count as amount does; only bytes have their unit.
func number(n int64, unit string) string {
	if unit == "bytes" {
		return mem.Bytes(n).String()
	}
	f, prefix := float64(n), ""
	for _, p := range []string{"k", "M", "G"} {
		// A number that would be printed with four digits before the point has the
		// next unit.
		if f < 10_000 && prefix == "" || f < 999.95 {
			break
		}
		f, prefix = f/1000, p
	}
	if prefix == "" {
		return fmt.Sprint(n)
	}
	return fmt.Sprintf("%.1f%s", f, prefix)
}
