package coordinator

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"ndls/internal/control"
)

func get(h http.Handler, path string) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
	return w
}

func TestStatus(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 3)
		s := c.start()
		rec := &Record{Format: RecordFormat, Plan: control.DefaultPlan(), Wanted: []control.Stage{control.Partition, control.LSI, control.Smooth}}
		rec.set(StageRecord{StageReport: control.StageReport{Stage: control.Partition, Seconds: 12}, State: Complete})
		rec.set(StageRecord{StageReport: control.StageReport{Stage: control.LSI}, State: Running})
		if err := rec.write(context.Background(), c.store); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(context.Background())
		var running sync.WaitGroup
		running.Go(func() { _, _ = s.Run(ctx, c.tasks) })
		for _, name := range []string{"a", `b"<b>`} {
			if _, err := s.Join(ctx, control.Hello{Worker: name, Version: "1", Memory: 1 << 30, Threads: 4}); err != nil {
				t.Fatal(err)
			}
		}
		lost, err := s.Next(ctx, "a")
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Second)
		if err := s.Renew(ctx, lost.Fencing, control.Progress{What: "hops", Done: 4, Total: 200, Unit: "hops"}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * testTTL)
		l, err := s.Next(ctx, `b"<b>`)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Renew(ctx, l.Fencing, control.Progress{What: "hops", Total: 200, Unit: "hops"}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Second)
		if err := s.Renew(ctx, l.Fencing, control.Progress{What: "hops", Done: 20, Total: 200, Unit: "hops", Saved: 10}); err != nil {
			t.Fatal(err)
		}

		var st Status
		if err := json.Unmarshal(get(s.Handler(), "/status").Body.Bytes(), &st); err != nil {
			t.Fatal(err)
		}
		if want := []StageStatus{{control.Partition, Complete, 12, ""}, {control.LSI, Running, 0, ""}, {control.Smooth, Waiting, 0, ""}}; !slices.Equal(st.Stages, want) {
			t.Errorf("stages %+v, want %+v", st.Stages, want)
		}
		if page := get(s.Handler(), "/").Body.String(); !strings.Contains(page, "<tr><td>smooth</td><td>WAITING</td>") {
			t.Errorf("the page lacks what is to come:\n%s", page)
		}
		if st.Run != "mem:" || st.PlanHash != control.DefaultPlan().Hash() || st.State != "running" || st.Stage != control.Smooth || st.Phase != control.Columns || st.Tasks != (TaskCounts{Waiting: 2, Running: 1}) {
			t.Errorf("status %+v", st)
		}
		if len(st.Losses) != 1 || st.Losses[0].Worker != "a" || st.SecondsLost != 10 || st.Losses[0].UnitsLost != 4 {
			t.Errorf("losses %+v", st.Losses)
		}
		a, b := st.Workers[0], st.Workers[1]
		if a.Here || a.Task != "" || a.Losses != 1 || a.LastSeen != 70 {
			t.Errorf("worker a: %+v", a)
		}
		if !b.Here || b.Task != lost.Task.ID() || b.Progress.Done != 20 || b.Progress.Saved != 10 || b.Rate != 2 || b.Memory != 1<<30 || b.Threads != 4 || b.LastSeen != 0 {
			t.Errorf("worker b: %+v", b)
		}

		metrics := get(s.Handler(), "/metrics").Body.String()
		for _, want := range []string{
			"# TYPE ndls_tasks gauge\n", `ndls_tasks{stage="smooth",phase="columns",state="waiting"} 2` + "\n", "ndls_workers 1\n", "ndls_losses_total 1\n",
			"ndls_lost_seconds_total 10\n", `ndls_progress_done{worker="b\"<b>",task="smooth/columns/0-1",unit="hops"} 20` + "\n", `} 10` + "\n",
		} {
			if !strings.Contains(metrics, want) {
				t.Errorf("metrics lack %q:\n%s", want, metrics)
			}
		}
		page := get(s.Handler(), "/").Body.String()
		for _, want := range []string{"<h1>running: smooth, columns</h1>", "0 done, 1 running, 2 waiting", "<td>smooth/columns/0-1</td>", "1.0 GiB", "no sign of life"} {
			if !strings.Contains(page, want) {
				t.Errorf("the page lacks %q:\n%s", want, page)
			}
		}
		if strings.Contains(page, "<b>") {
			t.Error("a worker's name is taken for markup")
		}
		if w := get(s.Handler(), "/healthz"); w.Code != http.StatusOK {
			t.Errorf("status %d of the coordinator that leads", w.Code)
		}
		if w := get(s.Handler(), "/else"); w.Code != http.StatusNotFound {
			t.Errorf("status %d of a page that is not there", w.Code)
		}
		cancel()
		running.Wait()
		if st := s.Status(); st.State != "stopping" {
			t.Errorf("state %s", st.State)
		}
		if w := get(s.Handler(), "/healthz"); w.Code != http.StatusServiceUnavailable {
			t.Errorf("status %d of a coordinator that stops", w.Code)
		}
	})
}

// TestPageKnowsItsHost: on loopback the page answers requests alone that name this host,
// whatever a browser was made to believe.
func TestPageKnowsItsHost(t *testing.T) {
	server := httptest.NewServer(newCluster(t, 1).start().Handler())
	defer server.Close()
	own := must(os.Hostname())
	for host, want := range map[string]int{
		"localhost": 200, "localhost:8080": 200, "127.0.0.1:8080": 200, "[::1]:8080": 200, "::1": 200, own: 200, own + ":80": 200,
		"evil.example": 403, "evil.example:8080": 403, "localhost.evil.example": 403, "127.0.0.1.evil.example:80": 403,
	} {
		for _, path := range []string{"/", "/status", "/metrics", "/healthz"} {
			r := must(http.NewRequest(http.MethodGet, server.URL+path, nil))
			r.Host = host
			answer := must(http.DefaultClient.Do(r))
			_ = answer.Body.Close()
			if answer.StatusCode != want {
				t.Errorf("%s for host %q: status %d, want %d", path, host, answer.StatusCode, want)
			}
		}
	}
}

// TestHealthDoesNotWait: the question whether this coordinator leads is answered while
// the scheduler is busy.
func TestHealthDoesNotWait(t *testing.T) {
	s := newCluster(t, 1).start()
	s.mu.Lock()
	defer s.mu.Unlock()
	answered := make(chan int)
	go func() { answered <- get(s.Handler(), "/healthz").Code }()
	select {
	case code := <-answered:
		if code != http.StatusOK {
			t.Errorf("status %d", code)
		}
	case <-time.After(10 * time.Second):
		t.Error("no answer")
	}
}
