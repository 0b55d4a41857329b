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
	bar     bool
	drawn   bool
	live    []*Meter
	stop    chan struct{}
	stopped chan struct{}
}

// NewDisplay shows meters on w: as one line redrawn in place if bar is true,
// else as plain lines every ten seconds and at the end.
func NewDisplay(w io.Writer, bar bool) *Display {
	d := &Display{w: w, bar: bar, stop: make(chan struct{}), stopped: make(chan struct{})}
	interval := lineInterval
	if bar {
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
	if d.bar {
		d.clear()
		d.show(now)
	} else if now.Sub(m.started) >= minShown {
		fmt.Fprintln(d.w, finished(m, now))
	}
}

// show draws the youngest meter as the bar, or a line for every meter.
func (d *Display) show(now time.Time) {
	if !d.bar {
		for _, m := range d.live {
			fmt.Fprintln(d.w, status(m, now))
		}
		return
	}
	if len(d.live) == 0 {
		return
	}
	m := d.live[len(d.live)-1]
	fmt.Fprintf(d.w, "\r\x1b[K%s%s", drawBar(m), status(m, now))
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

func drawBar(m *Meter) string {
	if m.total <= 0 {
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
	if m.total > 0 {
		fmt.Fprintf(&b, " %d%%", 100*min(count, m.total)/m.total)
	}
	fmt.Fprintf(&b, " %s", amount(count, m.unit))
	if m.total > 0 {
		fmt.Fprintf(&b, " of %s", amount(m.total, m.unit))
	}
	if count > 0 && spent > 0 {
		rate := float64(count) / spent
		fmt.Fprintf(&b, ", %s/s", amount(int64(rate), m.unit))
		if m.total > count {
			fmt.Fprintf(&b, ", %s left", seconds(float64(m.total-count)/rate))
		}
	}
	return b.String()
}

func finished(m *Meter, now time.Time) string {
	spent := now.Sub(m.started).Seconds()
	return fmt.Sprintf("%s done: %s in %s", m.what, amount(m.Count(), m.unit), seconds(spent))
}

func seconds(s float64) string {
	return (time.Duration(s*10) * (time.Second / 10)).String()
}

// amount prints a count with its unit in a few characters.
func amount(n int64, unit string) string {
	if unit == "bytes" {
		return mem.Bytes(n).String()
	}
	f, prefix := float64(n), ""
	for _, p := range []string{"k", "M", "G"} {
		if f < 10_000 {
			break
		}
		f, prefix = f/1000, p
	}
	if prefix == "" {
		return fmt.Sprintf("%d %s", n, unit)
	}
	return fmt.Sprintf("%.1f%s %s", f, prefix, unit)
}
