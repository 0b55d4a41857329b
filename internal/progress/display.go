package progress

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"ndls/internal/mem"
)

const (
	barInterval  = 100 * time.Millisecond
	lineInterval = 10 * time.Second
	// barWidth is the number of cells of the bar itself.
	barWidth = 20
	// minShown keeps work that ends at once out of a log of plain lines.
	minShown = 500 * time.Millisecond
)

// Display shows meters on a writer. It is also a writer itself, for log lines
// that must not run into the bar. Close must be called.
type Display struct {
	mu      sync.Mutex
	w       io.Writer
	width   func() int // of the terminal; nil shows plain lines
	drawn   bool
	live    []*Meter
	stop    chan struct{}
	stopped chan struct{}
}

// NewDisplay shows meters on w: as one line redrawn in place where width says how many
// columns the terminal has, and as plain lines every ten seconds and at the end where
// width is nil.
func NewDisplay(w io.Writer, width func() int) *Display {
	d := &Display{w: w, width: width, stop: make(chan struct{}), stopped: make(chan struct{})}
	interval := lineInterval
	if width != nil {
		interval = barInterval
	}
	go d.refresh(interval)
	return d
}

func (d *Display) refresh(interval time.Duration) {
	defer close(d.stopped)
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		select {
		case <-d.stop:
			return
		case now := <-tick.C:
			d.mu.Lock()
			d.show(now)
			d.mu.Unlock()
		}
	}
}

// Start implements Sink.
func (d *Display) Start(what string, total int64, unit string) *Meter {
	m := newMeter(what, total, unit, d.end)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.live = append(d.live, m)
	return m
}

func (d *Display) end(m *Meter) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if i := slices.Index(d.live, m); i >= 0 {
		d.live = slices.Delete(d.live, i, i+1)
	}
	now := time.Now()
	if d.width != nil {
		d.clear()
		d.show(now)
	} else if now.Sub(m.started) >= minShown {
		fmt.Fprintln(d.w, finished(m, now))
	}
}

// show draws the youngest meter as the bar, or a line for every meter.
func (d *Display) show(now time.Time) {
	if d.width == nil {
		for _, m := range d.live {
			fmt.Fprintln(d.w, status(m, now))
		}
		return
	}
	if len(d.live) == 0 {
		return
	}
	m := d.live[len(d.live)-1]
	fmt.Fprintf(d.w, "\r\x1b[K%s", fit(drawBar(m), status(m, now), d.width()))
	d.drawn = true
}

func (d *Display) clear() {
	if d.drawn {
		fmt.Fprint(d.w, "\r\x1b[K")
		d.drawn = false
	}
}

// Write writes whole lines above the bar.
func (d *Display) Write(p []byte) (int, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.clear()
	return d.w.Write(p)
}

// Close removes the bar and ends the display; Write still works.
func (d *Display) Close() {
	d.mu.Lock()
	select {
	case <-d.stop:
	default:
		close(d.stop)
	}
	d.live = nil
	d.clear()
	d.mu.Unlock()
	<-d.stopped
}

// fit makes a line that stays on one row of a terminal: the terminal breaks a line that
// reaches the last column, and a redraw would leave the broken line behind. Without
// room for all of it the bar goes first, then the end of the text.
func fit(bar, text string, width int) string {
	line := []rune(bar + text)
	if len(line) < width {
		return string(line)
	}
	line = []rune(text)
	return string(line[:min(len(line), max(width-1, 0))])
}

func drawBar(m *Meter) string {
	if m.total <= 0 || m.within.Load() != nil {
		return ""
	}
	full := int(barWidth * float64(min(m.Count(), m.total)) / float64(m.total))
	return "[" + strings.Repeat("=", full) + strings.Repeat(" ", barWidth-full) + "] "
}

// status is "what 45% 12.3M/27.0M edges, 4.5M/s, 3s left", or what is known of it.
func status(m *Meter, now time.Time) string {
	count, spent := m.Count(), now.Sub(m.started).Seconds()
	var b strings.Builder
	b.WriteString(m.what)
	total := m.total
	if within := m.within.Load(); within != nil {
		total = 0
		fmt.Fprintf(&b, " %s,", *within)
	}
	if total > 0 {
		fmt.Fprintf(&b, " %d%%", 100*min(count, total)/total)
	}
	if total > 0 {
		fmt.Fprintf(&b, " %s of %s", number(count, m.unit), amount(total, m.unit))
	} else {
		fmt.Fprintf(&b, " %s", amount(count, m.unit))
	}
	if count > 0 && spent > 0 {
		rate := float64(count) / spent
		fmt.Fprintf(&b, ", %s/s", amount(int64(rate), m.unit))
		if total > count {
			fmt.Fprintf(&b, ", %s left", seconds(float64(total-count)/rate))
		}
	}
	return b.String()
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
