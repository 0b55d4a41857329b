package progress

import (
	"fmt"
	"io"
	"slices"
	"sync"
	"time"
)

const (
	barInterval = 100 * time.Millisecond
	// lookInterval is the interval at which it is checked whether a plain line is due.
	lookInterval = time.Second
	// leastGap and mostGap bound the time between two plain lines, which is a tenth of the time
	// since the first one could come.
	leastGap = 10 * time.Second
	mostGap  = 5 * time.Minute
)

// Display shows stages and meters on a writer. It is also a writer itself, for log lines
// that must not run into the bar. Close must be called.
type Display struct {
	mu      sync.Mutex
	w       io.Writer
	width   func() int // of the terminal; nil shows plain lines
	drawn   bool
	live    []*Meter
	stages  []*course
	begun   time.Time
	shown   time.Time // when the last plain line came
	stop    chan struct{}
	stopped chan struct{}
}

// NewDisplay shows stages and meters on w. Where width says how many columns the terminal has, they are
// one line that is redrawn in place, fits, and goes when the work is done. Where width is nil, they are
// plain lines: the first after ten seconds, then ever rarer, at least one in five minutes.
func NewDisplay(w io.Writer, width func() int) *Display {
	now := time.Now()
	d := &Display{w: w, width: width, begun: now, shown: now, stop: make(chan struct{}), stopped: make(chan struct{})}
	interval := lookInterval
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
	if c := d.course(); c != nil {
		c.look(m)
	}
	if i := slices.Index(d.live, m); i >= 0 {
		d.live = slices.Delete(d.live, i, i+1)
	}
	now := time.Now()
	if d.width != nil {
		d.clear()
		d.show(now)
	} else if now.Sub(m.started) >= d.gap(now) {
		fmt.Fprintln(d.w, finished(m, now))
		d.shown = now
	}
}

// stage implements stager.
func (d *Display) stage(s Stage) (end func()) {
	c := &course{Stage: s, started: time.Now()}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.stages = append(d.stages, c)
	return func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		if i := slices.Index(d.stages, c); i >= 0 {
			d.stages = slices.Delete(d.stages, i, i+1)
		}
		d.clear()
	}
}

// course is the stage that began last, nil if there is none.
func (d *Display) course() *course {
	if len(d.stages) == 0 {
		return nil
	}
	return d.stages[len(d.stages)-1]
}

// gap is the time between two plain lines now.
func (d *Display) gap(now time.Time) time.Duration {
	return min(max(now.Sub(d.begun)/10, leastGap), mostGap)
}

// show draws the stage and a meter as the bar, or as a plain line if one is due: the youngest one that counts a part of
// the stage, or the youngest of all.
func (d *Display) show(now time.Time) {
	c := d.course()
	if c == nil && len(d.live) == 0 {
		return
	}
	var m *Meter
	for _, x := range d.live {
		if c != nil {
			c.look(x)
		}
		if m == nil || m.of.Load() == nil || x.of.Load() != nil {
			m = x
		}
	}
	if d.width != nil {
		fmt.Fprintf(d.w, "\r\x1b[K%s", describe(c, m, now).fit(d.width()))
		d.drawn = true
	} else if now.Sub(d.shown) >= d.gap(now) {
		fmt.Fprintln(d.w, describe(c, m, now).text())
		d.shown = now
	}
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
	d.live, d.stages = nil, nil
	d.clear()
	d.mu.Unlock()
	<-d.stopped
}
