package progress

import (
	"bytes"
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestNoSink(t *testing.T) {
	m := Start(context.Background(), "work", 10, "rows")
	m.Add(3)
	m.Done()
	m.Done()
	if m.Count() != 3 {
		t.Errorf("count = %d, want 3", m.Count())
	}
	var none *Meter
	none.Add(1)
	none.Done()
	if none.Count() != 0 {
		t.Error("a nil meter counts")
	}
}

func TestConcurrentAdds(t *testing.T) {
	var out bytes.Buffer
	d := NewDisplay(&out, wide)
	m := Start(WithSink(context.Background(), d), "sort", 8000, "edges")
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 1000 {
				m.Add(1)
			}
		})
	}
	wg.Wait()
	m.Done()
	d.Close()
	if m.Count() != 8000 {
		t.Errorf("count = %d, want 8000", m.Count())
	}
}

func TestStatus(t *testing.T) {
	start := time.Unix(1000, 0)
	for _, tc := range []struct {
		name, what  string
		count       int64
		total       int64
		unit        string
		after       time.Duration
		want, final string
	}{
		{"half", "sort", 50, 100, "rows", 10 * time.Second, "sort 50% 50 of 100 rows, 5 rows/s, 10s left", "sort done: 50 rows in 10s"},
		{"unknown total", "read", 20_000, 0, "edges", 2 * time.Second, "read 20.0k edges, 10.0k edges/s", "read done: 20.0k edges in 2s"},
		{"nothing yet", "read", 0, 100, "rows", time.Second, "read 0% 0 of 100 rows", "read done: 0 rows in 1s"},
		{"more than total", "read", 120, 100, "rows", time.Second, "read 100% 120 of 100 rows, 120 rows/s", "read done: 120 rows in 1s"},
		{"bytes", "copy", 1 << 20, 1 << 21, "bytes", time.Second, "copy 50% 1.0 MiB of 2.0 MiB, 1.0 MiB/s, 1s left", "copy done: 1.0 MiB in 1s"},
		{"clock did not move", "copy", 5, 10, "rows", 0, "copy 50% 5 of 10 rows", "copy done: 5 rows in 0s"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			m := &Meter{what: tc.what, total: tc.total, unit: tc.unit, started: start}
			m.Add(tc.count)
			if got := ofMeter(m, start.Add(tc.after)).text(); got != tc.want {
				t.Errorf("status = %q, want %q", got, tc.want)
			}
			if got := finished(m, start.Add(tc.after)); got != tc.final {
				t.Errorf("finished = %q, want %q", got, tc.final)
			}
		})
	}
}

func TestBarIsClearedForLogLines(t *testing.T) {
	var out bytes.Buffer
	d := NewDisplay(&out, wide)
	m := d.Start("sort", 4, "rows")
	m.Add(1)
	d.mu.Lock()
	d.show(time.Now())
	d.mu.Unlock()
	if _, err := d.Write([]byte("a log line\n")); err != nil {
		t.Fatal(err)
	}
	m.Done()
	d.Close()
	got := out.String()
	if !strings.Contains(got, "[=====               ] sort 25% 1 of 4 rows") {
		t.Errorf("no bar in %q", got)
	}
	if !strings.Contains(got, "\r\x1b[Ka log line\n") {
		t.Errorf("log line runs into the bar: %q", got)
	}
}

func TestPlainLines(t *testing.T) {
	var out bytes.Buffer
	d := NewDisplay(&out, nil)
	quick := d.Start("quick", 1, "rows")
	quick.Add(1)
	quick.Done()
	slow := d.Start("slow", 2, "rows")
	slow.started = slow.started.Add(-time.Minute)
	slow.Add(2)
	slow.Done()
	d.Close()
	if got, want := out.String(), "slow done: 2 rows in 1m0s\n"; got != want {
		t.Errorf("lines = %q, want %q", got, want)
	}
}

// wide is a terminal on which every line fits.
func wide() int { return 1000 }

func TestBarStaysOnOneRow(t *testing.T) {
	for _, width := range []int{0, 1, 20, 40, 79, 80, 200} {
		var out bytes.Buffer
		d := NewDisplay(&out, func() int { return width })
		m := d.Start("writing sorted edges", 4_000_000_000, "edges")
		m.started = m.started.Add(-time.Hour)
		m.Add(1_234_567_890)
		d.mu.Lock()
		d.show(time.Now())
		d.mu.Unlock()
		m.Done()
		d.Close()
		for _, line := range strings.Split(out.String(), "\r\x1b[K") {
			if n := len([]rune(line)); n > max(width-1, 0) {
				t.Errorf("%d columns: a line of %d: %q", width, n, line)
			}
		}
		if width == 80 && !strings.Contains(out.String(), "left") {
			t.Errorf("80 columns do not show the time left: %q", out.String())
		}
	}
}

func TestWithin(t *testing.T) {
	start := time.Unix(1000, 0)
	m := &Meter{what: "lsi", total: 356_400_000, unit: "edges", started: start}
	m.Add(13_900_000)
	m.Within("hop 7 of at most 200")
	if got, want := ofMeter(m, start.Add(10*time.Second)).fit(1000), "lsi hop 7 of at most 200, 13.9M edges, 1.4M edges/s"; got != want {
		t.Errorf("status %q, want %q", got, want)
	}
}
