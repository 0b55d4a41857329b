package watch

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"ndls/coordinator"
	"ndls/internal/control"
	"ndls/internal/page/pagetest"
	"ndls/internal/progress"
)

// fake is a run whose status is set.
type fake struct {
	status  atomic.Pointer[coordinator.Status]
	stopped atomic.Bool
	asked   atomic.Int64
	history []coordinator.Span
}

func (f *fake) History() []coordinator.Span { return f.history }

func (f *fake) Status() coordinator.Status {
	f.asked.Add(1)
	return *f.status.Load()
}

func (f *fake) Leading() bool { return !f.stopped.Load() }

// running is a run in the middle of the LSI stage, with names that are markup.
func running() *fake {
	f := &fake{}
	f.status.Store(&coordinator.Status{
		Run: "file:///runs/a", PlanHash: "sha256:00", State: "running", Stage: control.LSI, Phase: control.Columns, Tasks: coordinator.TaskCounts{Waiting: 2, Running: 1},
		Stages:        []coordinator.StageStatus{{Stage: control.Partition, State: coordinator.Complete, Seconds: 12}, {Stage: control.LSI, State: coordinator.Running}, {Stage: control.Smooth, State: coordinator.Waiting}},
		WantedWorkers: 1,
		Workers: []coordinator.WorkerStatus{
			{Name: "a", LastSeen: 70, Losses: 1, Memory: 1 << 30, Threads: 4},
			{
				Name: `b"<b>`, Here: true, Memory: 1 << 30, Threads: 4, Task: "lsi/columns/0-1", Rate: 2e6, Usage: control.Usage{Memory: 1 << 29, Disk: 1 << 28, Read: 77, Written: 5, Edges: 33, Rows: 2112},
				Speed: coordinator.Speed{Read: 1e9, Written: 5e8, Edges: 5e7, Rows: 3.2e9}, Lease: 7, LeaseLeft: 21, Draining: true,
				Progress: control.Progress{What: "lsi", Where: "hop 2 of at most 200", Done: 20, Total: 200, Unit: control.Edges, Saved: 10, Hop: 2, Settled: 0.25},
			},
		},
		Losses: []coordinator.Loss{{Task: "lsi/columns/0-1", Worker: "a", Reason: "no sign of life", SecondsLost: 10}}, SecondsLost: 10,
	})
	return f
}

func get(h http.Handler, path string) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, request(http.MethodGet, path))
	return w
}

// request names this host.
func request(method, path string) *http.Request {
	r := httptest.NewRequest(method, path, nil)
	r.Host = "localhost:8080"
	return r
}

// limited is a host whose limits were measured.
func limited() *control.Limits {
	return control.LimitsOf(control.Speeds{Edges: 31.25e6, Write: 1e9, Read: 2e9}, 2)
}

// watching has a stage under way, of which a quarter is done.
func watching(t *testing.T) *progress.Watch {
	t.Helper()
	ctx, w := progress.WithWatch(t.Context())
	ctx = progress.Shared(ctx)
	t.Cleanup(progress.Begin(ctx, progress.Stage{Name: "lsi", Planned: 60, After: 40}))
	t.Cleanup(progress.Enter(ctx, 0, 1))
	m := progress.StartPart(ctx, "lsi", 4, "edges")
	m.Add(1)
	t.Cleanup(m.Done)
	return w
}

// TestPage shows what is known of a run, and takes no name for markup.
func TestPage(t *testing.T) {
	log := &Log{}
	log.Add(Line{Time: time.Unix(0, 0), Level: "WARN", Text: "careful <b>"})
	h := New(running(), Options{Watch: watching(t), Log: log, Graph: func(context.Context) string { return "toy: 5 nodes" }, Limits: limited, Versions: map[string]string{"ndls": "1.2"}})
	answer := get(h, "/")
	page := answer.Body.String()
	for _, want := range []string{
		"<h1>lsi: stage 2 of 3</h1>", "so far, about <strong>", `<li class="done"><span>partition</span> <small>12 s</small></li>`, `<li class="now" aria-current="step" style="--share:0.2500"><span>lsi</span> <small>25 %</small></li>`, "<small>waiting</small>", "file:///runs/a", "ndls 1.2", "25.0 % done", "left in this stage", "About", "12 s so far, about", "% of the time",
		`<th scope="row">edges added</th><td>50.00</td><td>62.50</td><td class="bar" style="--share:0.8000">80.0</td>`, `<th scope="row">read</th><td>1.00</td><td>2.00</td>`,
		"2 threads that pass edges", `<li class="WARN"><time datetime="1970-01-01T00:00:00Z">`, "careful &lt;b&gt;", "(ends after its task)", "<td>7, 21 s</td>", "<td>256.0 MiB</td>", `<option value="b&#34;&lt;b&gt;">`,
		`<th scope="row">2</th><td class="bar" style="--share:0.2500">25.0</td>`, "<p>25.0 % after hop 2.</p>", "0 done, 1 running, 2 waiting", "lsi hop 2 of at most 200", "a (gone)", `<td data-name="memory">512.0 MiB of 1.0 GiB</td>`, "<dd>toy: 5 nodes</dd>", "no sign of life",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q:\n%s", want, page)
		}
	}
	if strings.Contains(page, "<b>") {
		t.Error("a worker's name is taken for markup")
	}
	if !strings.Contains(answer.Header().Get("Content-Security-Policy"), "default-src 'none'") {
		t.Error("the page may load what it likes")
	}
	if strings.Contains(page, "<form") {
		t.Error("the page lets those steer who have no token to show")
	}
	if page := get(New(running(), Options{Token: "x"}), "/").Body.String(); !strings.Contains(page, "<form") || strings.Contains(page, "action=") {
		t.Error("the page of a run with a token does not steer")
	}
	empty := &fake{}
	empty.status.Store(&coordinator.Status{State: "waiting", WantedWorkers: 3})
	if page := get(New(empty, Options{}), "/").Body.String(); !strings.Contains(page, "No worker has joined; 3 must be there") {
		t.Errorf("the page of a run without workers:\n%s", page)
	}
	if code := get(h, "/else").Code; code != http.StatusNotFound {
		t.Errorf("status %d of a page that is not there", code)
	}
}

// TestPageIsThatOfHTMLTemplate compares its bytes, and the methods that it may call with those that it is given.
func TestPageIsThatOfHTMLTemplate(t *testing.T) {
	source, err := files.ReadFile("page.html.tmpl")
	if err != nil {
		t.Fatal(err)
	}
	p := pagetest.Page{Source: string(source), Funcs: functions, Methods: methods, Fields: []string{"Rows"}}
	p.Complete(t, reflect.TypeFor[State]())
	empty := &fake{}
	empty.status.Store(&coordinator.Status{State: "running", WantedWorkers: 3})
	for _, run := range []*fake{running(), empty} {
		for _, steering := range []bool{false, true} {
			p.Same(t, "page", shown{newWatcher(run, Options{}).state(), steering})
		}
	}
}

// TestJSON answers with what its schema describes and nothing else, at every level, and the schema describes nothing
// that a status does not have.
func TestJSON(t *testing.T) {
	h := New(running(), Options{Watch: watching(t), Limits: limited, Versions: map[string]string{"ndls": "1"}})
	described := decoded(t, get(h, "/status.schema.json").Body.Bytes())
	open := compiled(t, described)
	if err := open.Validate(decoded(t, get(h, "/status").Body.Bytes())); err != nil {
		t.Error(err)
	}
	if open.Validate(decoded(t, []byte(`{"run": 1}`))) == nil {
		t.Error("the schema takes anything")
	}

	properties := map[string]bool{}
	closeObjects(described, "", properties)
	schema := compiled(t, described)
	if schema.Validate(decoded(t, get(h, "/status").Body.Bytes())) != nil {
		t.Error("the status of a run has fields that the schema does not describe")
	}
	all := everything(t)
	if err := schema.Validate(all); err != nil {
		t.Error(err)
	}
	met := map[string]bool{}
	fieldsOf(all, met)
	for name := range properties {
		if !met[name] {
			t.Errorf("the schema describes %q, which no status has", name)
		}
	}
	// A field that is not described is found wherever it is.
	places := 0
	eachObject(all, func(o map[string]any) {
		if _, free := o["any name"]; free { // of versions
			return
		}
		places++
		o["not described"] = 1
		if schema.Validate(all) == nil {
			t.Errorf("a field that is not described passes beside %v", slices.Sorted(maps.Keys(o)))
		}
		delete(o, "not described")
	})
	if places < 12 {
		t.Errorf("%d objects in a status that has all fields", places)
	}
}

// TestLimitsOfWorkers: where each worker is a process of its own, rates are shown beside the sum of what those that are
// here have measured.
func TestLimitsOfWorkers(t *testing.T) {
	f := running()
	status := *f.status.Load()
	status.Workers = slices.Clone(status.Workers)
	status.Workers[0].Rates = control.Rates{Edges: 1e9, Store: 1e9} // it has gone
	status.Workers[1].Rates = control.Rates{Edges: 4e7, Store: 3e9}
	other := status.Workers[1]
	other.Name, other.Speed, other.Rates = "c", coordinator.Speed{}, control.Rates{Edges: 6e7, Store: 1e9}
	status.Workers = append(status.Workers, other)
	f.status.Store(&status)
	h := New(f, Options{})
	page := get(h, "/").Body.String()
	for _, want := range []string{
		`<th scope="row">edges added</th><td>50.00</td><td>100.00</td><td class="bar" style="--share:0.5000">50.0</td>`, `<th scope="row">read</th><td>1.00</td><td>4.00</td>`,
		`<th scope="row">written</th><td>0.50</td><td>–</td><td>–</td>`, "the 2 workers that are here have measured",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q:\n%s", want, page)
		}
	}
	var s struct {
		Sum WorkerLimits `json:"limits_of_workers"`
	}
	if err := json.Unmarshal(get(h, "/status").Body.Bytes(), &s); err != nil || s.Sum != (WorkerLimits{Workers: 2, Threads: 8, Edges: 1e8, Read: 4e9}) {
		t.Errorf("%+v, %v", s.Sum, err)
	}
	metrics := get(h, "/metrics").Body.String()
	for _, want := range []string{`ndls_worker_limit_edges_per_second{worker="c"} 6e+07`, `ndls_worker_limit_read_bytes_per_second{worker="c"} 1e+09`} {
		if !strings.Contains(metrics, want) {
			t.Errorf("the metrics lack %q", want)
		}
	}
	if limits := (&watcher{run: f, o: Options{Limits: limited}}).state().LimitsOfWorkers; limits != nil {
		t.Errorf("limits of workers %+v beside those of the host", limits)
	}
	for name, c := range map[string]struct {
		of   control.Rates
		want *WorkerLimits
	}{
		"nothing":         {control.Rates{}, nil},
		"the store alone": {control.Rates{Store: 1e9}, &WorkerLimits{Workers: 2, Threads: 8, Read: 4e9}},
	} {
		list := slices.Clone(status.Workers)
		list[2].Rates = c.of
		if got := limitsOf(list); !reflect.DeepEqual(got, c.want) {
			t.Errorf("a worker that has measured %s: %+v, want %+v", name, got, c.want)
		}
	}
}

func decoded(t *testing.T, text []byte) any {
	t.Helper()
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func compiled(t *testing.T, described any) *jsonschema.Schema {
	t.Helper()
	c := jsonschema.NewCompiler()
	if err := c.AddResource("state", described); err != nil {
		t.Fatal(err)
	}
	schema, err := c.Compile("state")
	if err != nil {
		t.Fatal(err)
	}
	return schema
}

// closeObjects has every object of a schema refuse fields that it does not name, and notes those that it names. A schema
// of an object that names none refuses all, unless it says what others are.
func closeObjects(schema any, key string, properties map[string]bool) {
	switch x := schema.(type) {
	case map[string]any:
		for name, v := range x {
			closeObjects(v, name, properties)
		}
		if key == "properties" {
			for name := range x {
				properties[name] = true
			}
		} else if _, says := x["additionalProperties"]; x["type"] == "object" && !says {
			x["additionalProperties"] = false
		}
	case []any:
		for _, v := range x {
			closeObjects(v, "", properties)
		}
	}
}

// eachObject calls do for every object of a JSON value.
func eachObject(v any, do func(map[string]any)) {
	switch x := v.(type) {
	case map[string]any:
		for _, v := range x {
			eachObject(v, do)
		}
		do(x)
	case []any:
		for _, v := range x {
			eachObject(v, do)
		}
	}
}

func fieldsOf(v any, names map[string]bool) {
	eachObject(v, func(o map[string]any) {
		for name := range o {
			names[name] = true
		}
	})
}

// everything is the JSON of a state of which every field is set, so that none is left out.
func everything(t *testing.T) any {
	t.Helper()
	var s State
	fill(t, reflect.ValueOf(&s).Elem())
	s.Status.State = "running"
	s.Stages[0].State = coordinator.Complete
	s.History[0].How = "lost"
	text, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	return decoded(t, text)
}

// fill sets every exported field of a value.
func fill(t *testing.T, v reflect.Value) {
	t.Helper()
	switch {
	case v.Type() == reflect.TypeFor[time.Time]():
		v.Set(reflect.ValueOf(time.Unix(1, 0)))
		return
	case v.Kind() == reflect.Map && v.Type() == reflect.TypeFor[map[string]string]():
		v.Set(reflect.ValueOf(map[string]string{"any name": "x"}))
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			if f := v.Field(i); f.CanSet() {
				fill(t, f)
			}
		}
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(t, v.Elem())
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(t, v.Index(0))
	case reflect.String:
		v.SetString("x")
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64:
		v.SetInt(1)
	case reflect.Uint64:
		v.SetUint(1)
	case reflect.Float64:
		v.SetFloat(0.5)
	default:
		t.Fatalf("a field of type %v is not filled", v.Type())
	}
}

// TestMetrics are read by the parser of Prometheus, and follow its conventions.
func TestMetrics(t *testing.T) {
	o := Options{Watch: watching(t), Limits: limited, Versions: map[string]string{"ndls": "1.2", "commit": "abc", "go": "go1"}}
	text := get(New(running(), o), "/metrics").Body.Bytes()
	parser := expfmt.NewTextParser(model.UTF8Validation)
	parsed, err := parser.TextToMetricFamilies(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	value := func(name string, labels ...string) float64 {
		for _, m := range parsed[name].GetMetric() {
			var got []string
			for _, l := range m.GetLabel() {
				got = append(got, l.GetName()+"="+l.GetValue())
			}
			if slices.Equal(got, labels) {
				return m.GetGauge().GetValue() + m.GetCounter().GetValue()
			}
		}
		t.Errorf("there is no %s%v", name, labels)
		return -1
	}
	for _, c := range []struct {
		want   float64
		name   string
		labels []string
	}{
		{2, "ndls_tasks", []string{"phase=columns", "stage=lsi", "state=waiting"}},
		{1, "ndls_workers", nil},
		{1, "ndls_losses_total", nil},
		{10, "ndls_lost_seconds_total", nil},
		{20, "ndls_progress_done", []string{"task=lsi/columns/0-1", "unit=edges", `worker=b"<b>`}},
		{10, "ndls_progress_saved", []string{"task=lsi/columns/0-1", "unit=edges", `worker=b"<b>`}},
		{5e7, "ndls_edges_per_second", []string{`worker=b"<b>`}},
		{1 << 28, "ndls_worker_disk_bytes", []string{`worker=b"<b>`}},
		{33, "ndls_worker_edges_total", []string{`worker=b"<b>`}},
		{2112, "ndls_worker_row_bytes_total", []string{`worker=b"<b>`}},
		{62.5e6, "ndls_limit_edges_per_second", nil},
		{2e9, "ndls_limit_read_bytes_per_second", nil},
		{1 << 29, "ndls_worker_memory_bytes", []string{`worker=b"<b>`}},
		{77, "ndls_worker_read_bytes_total", []string{`worker=b"<b>`}},
		{0, "ndls_worker_up", []string{"worker=a"}},
		{12, "ndls_stage_seconds", []string{"stage=partition"}},
		{0.25, "ndls_settled_ratio", nil},
		{0.25, "ndls_stage_done_ratio", nil},
		{1, "ndls_build_info", []string{"commit=abc", "goversion=go1", "version=1.2"}},
	} {
		if got := value(c.name, c.labels...); got != c.want {
			t.Errorf("%s%v is %g, want %g", c.name, c.labels, got, c.want)
		}
	}
	if left := value("ndls_job_left_seconds"); left < 90 || left > 100 {
		t.Errorf("%g seconds left of 100 planned ones", left)
	}
	problems, err := promlint.New(bytes.NewReader(text)).Lint()
	for _, p := range problems {
		t.Errorf("%s: %s", p.Metric, p.Text)
	}
	if err != nil {
		t.Error(err)
	}
	file, err := Metrics(running(), o)
	if err != nil || !bytes.Contains(file, []byte("ndls_worker_read_bytes_total{worker=\"b\\\"<b>\"} 77\n")) {
		t.Errorf("the text for a file (%v):\n%s", err, file)
	}
}

// TestDashboard: each metric in a query of the dashboard is one that is served, and queries name all limits.
func TestDashboard(t *testing.T) {
	text, err := os.ReadFile("../deploy/grafana/ndls.json")
	if err != nil {
		t.Fatal(err)
	}
	var board struct {
		Panels []struct {
			Title   string `json:"title"`
			Targets []struct {
				Expr string `json:"expr"`
			} `json:"targets"`
		} `json:"panels"`
	}
	if err := json.Unmarshal(text, &board); err != nil {
		t.Fatal(err)
	}
	st := running()
	st.status.Load().Workers[0].Rates = control.Rates{Edges: 1, Store: 1}
	served, err := Metrics(st, Options{Watch: watching(t), Limits: limited})
	if err != nil {
		t.Fatal(err)
	}
	queries, named := 0, map[string]bool{}
	for _, p := range board.Panels {
		for _, x := range p.Targets {
			queries++
			names := strings.FieldsFunc(x.Expr, func(r rune) bool { return r != '_' && (r < 'a' || r > 'z') })
			found := false
			for _, name := range names {
				if strings.HasPrefix(name, "ndls_") {
					found, named[name] = true, true
					if !bytes.Contains(served, []byte("\n# TYPE "+name+" ")) {
						t.Errorf("%s: there is no metric %s", p.Title, name)
					}
				}
			}
			if !found {
				t.Errorf("%s: the query %q has no metric", p.Title, x.Expr)
			}
		}
	}
	if queries < 8 {
		t.Errorf("%d queries", queries)
	}
	limits := 0
	for _, m := range regexp.MustCompile(`(?m)^# TYPE (ndls_(?:worker_)?limit_\S+) `).FindAllSubmatch(served, -1) {
		if limits++; !named[string(m[1])] {
			t.Errorf("no query has the limit %s", m[1])
		}
	}
	if limits != 5 {
		t.Errorf("%d limits are served", limits)
	}
}

// TestEvents: who listens gets the page at once, and again when it has changed, also after the time that a request may take.
func TestEvents(t *testing.T) {
	f := running()
	server := httptest.NewUnstartedServer(New(f, Options{}))
	server.Config.ReadTimeout, server.Config.WriteTimeout = interval/10, interval/10
	server.Start()
	defer server.Close()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, server.URL+"/events", nil)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if kind := answer.Header.Get("Content-Type"); kind != "text/event-stream" {
		t.Errorf("events are %q", kind)
	}
	lines := bufio.NewScanner(answer.Body)
	lines.Buffer(nil, 1<<20)
	event := func() (text string) {
		for lines.Scan() && lines.Text() != "" {
			line, ok := strings.CutPrefix(lines.Text(), "data: ")
			if !ok {
				t.Errorf("the line %q", lines.Text())
			}
			text += line + "\n"
		}
		return text
	}
	if first := event(); !strings.Contains(first, "<h1>lsi: stage 2 of 3</h1>") {
		t.Errorf("the first event is %q", first)
	}
	next := *f.status.Load()
	next.Stage = control.Smooth
	next.Stages = []coordinator.StageStatus{{Stage: control.LSI, State: coordinator.Complete}, {Stage: control.Smooth, State: coordinator.Running}}
	f.status.Store(&next)
	if second := event(); !strings.Contains(second, "<h1>smooth: stage 2 of 2</h1>") {
		t.Errorf("the second event is %q", second)
	}
	cancel()
	for asked := int64(-1); f.asked.Load() != asked; { // until nobody listens
		asked = f.asked.Load()
		time.Sleep(3 * interval)
	}
}

// TestFinish sends how the run has ended, and lets nobody wait for more.
func TestFinish(t *testing.T) {
	f := running()
	s := New(f, Options{})
	server := httptest.NewServer(s)
	defer server.Close()
	answer, err := http.Get(server.URL + "/events")
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	lines := bufio.NewReader(answer.Body)
	if _, err := lines.ReadString('\n'); err != nil { // it listens
		t.Fatal(err)
	}
	end := *f.status.Load()
	end.State, end.Stages = "ended", []coordinator.StageStatus{{Stage: control.LSI, State: coordinator.Complete, Seconds: 3}}
	f.status.Store(&end)
	s.Finish()
	rest, err := io.ReadAll(lines)
	if err != nil || !strings.Contains(string(rest), "<h1>complete</h1>") {
		t.Errorf("the last event (%v) is %q", err, rest)
	}
	late := get(s, "/events").Body.String()
	if !strings.Contains(late, "<h1>complete</h1>") {
		t.Errorf("who comes late gets %q", late)
	}
}

// TestHeading says how a run goes, and how it ended.
func TestHeading(t *testing.T) {
	stages := func(states ...coordinator.State) (list []coordinator.StageStatus) {
		for i, x := range states {
			list = append(list, coordinator.StageStatus{Stage: []control.Stage{control.Partition, control.LSI}[i], State: x})
		}
		return list
	}
	for want, s := range map[string]coordinator.Status{
		"waiting":                                {State: "waiting"},
		"lsi: stage 2 of 2, waiting for workers": {State: "waiting", Stage: control.LSI, Stages: stages(coordinator.Complete, coordinator.Running)},
		"lsi: stage 2 of 2":                      {State: "waiting", Stage: control.LSI, Stages: stages(coordinator.Complete, coordinator.Running), Workers: []coordinator.WorkerStatus{{Here: true}}},
		"lsi: stage 2 of 2, draining":            {State: "draining", Stage: control.LSI, Stages: stages(coordinator.Complete, coordinator.Running)},
		"lsi failed":                             {State: "ended", Stage: control.LSI, Stages: stages(coordinator.Complete, coordinator.Failed)},
		"ended":                                  {State: "ended", Stage: control.LSI, Stages: stages(coordinator.Complete, coordinator.Running)},
		"complete":                               {State: "ended", Stage: control.LSI, Stages: stages(coordinator.Complete, coordinator.Complete)},
	} {
		if got := (State{Status: s}).Heading(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	ended := coordinator.Status{State: "ended", Stage: control.LSI, Stages: stages(coordinator.Complete, coordinator.Failed)}
	ended.Stages[1].Stopped, ended.Stages[1].Reason = true, "by the user"
	if got := (State{Status: ended}).Heading(); got != "lsi stopped" {
		t.Errorf("the heading of a run that was stopped is %q", got)
	}
	f := running()
	f.status.Store(&ended)
	server := New(f, Options{Watch: watching(t)})
	if page := get(server, "/").Body.String(); !strings.Contains(page, "lsi stopped: by the user") || strings.Contains(strings.ToLower(page), "failed</") {
		t.Errorf("the page of a run that was stopped:\n%s", page)
	}
	metrics := get(server, "/metrics").Body.String()
	for _, want := range []string{"ndls_stage_state{stage=\"lsi\",state=\"FAILED\"} 1\n", "ndls_stage_stopped{stage=\"lsi\"} 1\n"} {
		if !strings.Contains(metrics, want) {
			t.Errorf("the metrics of a run that was stopped lack %s", want)
		}
	}
}

// TestSettled keeps a share for each hop, and begins anew with another stage.
func TestSettled(t *testing.T) {
	f := running()
	w := &watcher{run: f}
	at := func(hop int, share float64) {
		s := *f.status.Load()
		s.Workers = slices.Clone(s.Workers)
		s.Workers[1].Progress.Hop, s.Workers[1].Progress.Settled = hop, share
		f.status.Store(&s)
		w.state()
	}
	at(1, 0.1)
	at(1, 0.2)
	at(3, 0.5)
	if got := fmt.Sprint(w.state().Settled); got != "[{1 0.2} {3 0.5}]" {
		t.Errorf("settled %s", got)
	}
	at(2, 0.3)
	if got := fmt.Sprint(w.state().Settled); got != "[{1 0.2} {2 0.3}]" {
		t.Errorf("a state that was resumed: %s", got)
	}
	s := *f.status.Load()
	s.Stage = control.Smooth
	f.status.Store(&s)
	if got := w.state().Settled; got != nil {
		t.Errorf("settled %v in smooth", got)
	}
}

// TestPageKnowsItsHost: the page answers requests alone that name this host, whatever a browser was made to believe.
func TestPageKnowsItsHost(t *testing.T) {
	server := httptest.NewServer(New(running(), Options{Profile: true, Hosts: []string{"ndls.jobs.svc"}}))
	defer server.Close()
	own, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	for host, want := range map[string]int{
		"localhost": 200, "localhost:8080": 200, "127.0.0.1:8080": 200, "[::1]:8080": 200, "::1": 200, own: 200, own + ":80": 200, "ndls.jobs.svc": 200, "NDLS.jobs.svc:8080": 200,
		"evil.example": 403, "x.ndls.jobs.svc": 403, "evil.example:8080": 403, "localhost.evil.example": 403, "127.0.0.1.evil.example:80": 403,
	} {
		for _, path := range []string{"/", "/status", "/status.schema.json", "/metrics", "/healthz", "/debug/pprof/"} {
			r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+path, nil)
			if err != nil {
				t.Fatal(err)
			}
			r.Host = host
			answer, err := http.DefaultClient.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			_ = answer.Body.Close()
			if answer.StatusCode != want {
				t.Errorf("%s for host %q: status %d, want %d", path, host, answer.StatusCode, want)
			}
		}
	}
}

// TestProfiles are given where they were asked for, to this host alone.
func TestProfiles(t *testing.T) {
	if code := get(New(running(), Options{Profile: true}), "/debug/pprof/").Code; code != http.StatusForbidden {
		t.Errorf("status %d where the address is not known to be a loopback one", code)
	}
	if code := get(New(running(), Options{}), "/debug/pprof/").Code; code != http.StatusNotFound {
		t.Errorf("status %d without --pprof", code)
	}
}

// TestSteering: who knows the token stops or drains the run.
func TestSteering(t *testing.T) {
	var done []string
	steering := Steering{
		Stop: func() { done = append(done, "stop") }, Drain: func() { done = append(done, "drain") },
		DrainWorker: func(name string) error {
			if done = append(done, name); name == "last" {
				return errors.New("it is the last worker")
			}
			return nil
		},
	}
	h := New(running(), Options{Token: "secret", Steering: steering})
	post := func(h http.Handler, path, given string) (int, string) {
		r := request(http.MethodPost, path)
		r.Header.Set("Authorization", given)
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		return w.Code, w.Body.String()
	}
	for _, path := range []string{"/stop", "/drain", "/drain?worker=a"} {
		for _, given := range []string{"", "secret", "Bearer ", "Bearer secreT", "Basic secret"} {
			if code, _ := post(h, path, given); code != http.StatusUnauthorized {
				t.Errorf("%s with %q: status %d", path, given, code)
			}
		}
		if code := get(h, path).Code; code != http.StatusMethodNotAllowed {
			t.Errorf("a link to %s: status %d", path, code)
		}
		if code, _ := post(New(running(), Options{Steering: steering}), path, "Bearer "); code != http.StatusNotFound {
			t.Errorf("%s without a token: status %d", path, code)
		}
		if code, text := post(h, path, "Bearer secret"); code != http.StatusAccepted || text == "" {
			t.Errorf("%s: status %d, %q", path, code, text)
		}
	}
	if code, text := post(h, "/drain?worker=last", "Bearer secret"); code != http.StatusConflict || !strings.Contains(text, "last worker") {
		t.Errorf("the last worker: status %d, %q", code, text)
	}
	if want := []string{"stop", "drain", "a", "last"}; !slices.Equal(done, want) {
		t.Errorf("done %q, want %q", done, want)
	}
}

// TestLog keeps the last lines, in order, and what other processes write line by line.
func TestLog(t *testing.T) {
	l := &Log{}
	for i := range MostLines + 2 {
		l.Add(Line{Text: fmt.Sprint(i)})
	}
	if _, err := l.Write([]byte("one\ntwo\n")); err != nil {
		t.Fatal(err)
	}
	l.Add(Line{Text: strings.Repeat("ä", longestLine)})
	lines := l.Lines()
	if n := len(lines); n != MostLines || lines[0].Text != "5" || lines[n-3].Text != "one" || lines[n-2].Text != "two" || len(lines[n-1].Text) > longestLine+2 {
		t.Errorf("%d lines, the first %q, the last %q", n, lines[0].Text, lines[n-3:])
	}
	var none *Log
	if none.Add(Line{}); none.Lines() != nil {
		t.Error("no log keeps lines")
	}
}

// TestFilling draws K as it fills.
func TestFilling(t *testing.T) {
	s := State{Settled: []Settled{{1, 0}, {5, 0.5}, {21, 1}}}
	c := s.Filling()
	if c == nil || c.Line != "42.0,152.0 103.6,82.0 350.0,12.0" || len(c.Y) != 5 || fmt.Sprint(c.X[0], c.X[len(c.X)-1]) != "{103.6 5} {334.6 20}" {
		t.Errorf("the chart is %+v", c)
	}
	if s.Settled = s.Settled[:1]; s.Filling() != nil {
		t.Error("one hop makes a chart")
	}
}

// TestHealth reports whether this process leads the run.
func TestHealth(t *testing.T) {
	f := running()
	h := New(f, Options{})
	if code := get(h, "/healthz").Code; code != http.StatusOK {
		t.Errorf("status %d of the process that leads", code)
	}
	f.stopped.Store(true)
	if code := get(h, "/healthz").Code; code != http.StatusServiceUnavailable {
		t.Errorf("status %d of one that stops", code)
	}
	if f.asked.Load() != 0 {
		t.Error("health waits for the status")
	}
}
