package remote_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"ndls/group"
	"ndls/group/remote"
	"ndls/hops"
	"ndls/internal/control"
	"ndls/internal/control/blocks"
	"ndls/internal/mem"
	"ndls/internal/packed"
	"ndls/internal/stationary"
	"ndls/internal/testgraph"
	"ndls/internal/testkit"
	"ndls/lsi"
	"ndls/smooth"
	"ndls/spmv"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const width = 32

// nodes make four strips, the last of them short.
const nodes = 3*packed.StripRows + 777

// pathNodes is the number of the last nodes, which are a path and need many hops.
const pathNodes = 600

// shape is a graph with a few components that reach over all strips, and a dense
// corner.
type shape struct {
	packed.Source
	degree, component []uint32
	components        int
}

var graph = sync.OnceValue(func() (s shape) {
	rng := rand.New(rand.NewPCG(3, 1))
	var e [][2]int
	const most = nodes - pathNodes
	for range nodes {
		e = append(e, [2]int{rng.IntN(most), rng.IntN(most)})
	}
	for range nodes / 3 {
		e = append(e, [2]int{rng.IntN(300), rng.IntN(most)})
	}
	for i := most; i < nodes; i++ {
		e = append(e, [2]int{i - 1, i})
	}
	g := testgraph.New("four strips", nodes, e)
	s.Source, s.degree = g.Source(), g.Degree()
	s.component, s.components = g.Components()
	return s
})

// budget of a worker: how it lays its rows out.
func layouts(p spmv.Precision) []spmv.Layout {
	strip := int64(packed.StripRows)
	return []spmv.Layout{
		{Columns: width, Precision: p, Window: strip, Accumulators: 1},
		{Columns: width, Precision: p, Window: 4 * strip, Accumulators: 8},
		{Columns: width, Precision: p, Window: strip, Accumulators: 1, Residency: spmv.External},
		{Columns: width, Precision: p, Window: 2 * strip, Accumulators: 2, Residency: spmv.External},
	}
}

// borders share the strips out among workers, the first ones having more.
func borders(workers int) (all []int64) {
	strips := int64(packed.Strips(nodes))
	for w := range int64(workers) {
		all = append(all, (strips*w+int64(workers)-1)/int64(workers)*packed.StripRows)
	}
	return append(all, nodes)
}

// worker is one of a gang, and what its engine works on.
type worker struct {
	hops.Graph
	self   int
	lo, hi int64
	ids    []uint32 // of its rows
	die    func()   // cuts its server off
}

// gang runs work in as many workers as there are ranges, over Flight on loopback. It
// returns the workers' errors and the bytes on the wire.
func gang(t *testing.T, borders []int64, work func(w worker) error) (failed []error, traffic int64) {
	t.Helper()
	return members(t, borders, func(r *remote.Member, self int, die func()) error { return member(t, r, self, die, work) })
}

// members is gang of workers that have no graph.
func members(t testing.TB, borders []int64, work func(r *remote.Member, self int, die func()) error) (failed []error, traffic int64) {
	t.Helper()
	count := len(borders) - 1
	wires, clients := make([]*blocks.Wire, count), make([]*blocks.Client, count)
	for w := range count {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		wires[w] = &blocks.Wire{Listener: l}
		if clients[w], err = blocks.Dial(l.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials())); err != nil {
			t.Fatal(err)
		}
		defer clients[w].Close()
	}
	failed = make([]error, count)
	var engines, servers sync.WaitGroup
	var stops []context.CancelFunc
	for w := range count {
		r, err := remote.New(remote.Options{Plan: "sha256:test", Name: "smooth-1", Self: w, Borders: borders, Peers: clients})
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(context.Background())
		stops = append(stops, stop)
		servers.Go(func() { _ = blocks.Serve(ctx, wires[w], r) })
		engines.Go(func() {
			failed[w] = work(r, w, stop)
			if failed[w] != nil && !errors.Is(failed[w], hops.ErrStopped) {
				r.Close(failed[w])
				return
			}
			failed[w] = errors.Join(failed[w], r.Leave(t.Context()))
		})
	}
	engines.Wait()
	for _, stop := range stops {
		stop()
	}
	servers.Wait()
	for _, w := range wires {
		traffic += w.Bytes()
	}
	return failed, traffic
}

// member sets a worker up as its process would.
func member(t *testing.T, r *remote.Member, self int, die func(), work func(worker) error) error {
	b, err := mem.NewBudget(512 << 20)
	if err != nil {
		return err
	}
	kernel, err := spmv.Select("auto")
	if err != nil {
		return err
	}
	lo, hi, _ := r.Range()
	g := graph()
	degree := g.degree[lo:hi]
	nodes := stationary.Nodes{Degree: degree, Component: g.component[lo:hi], Components: g.components}
	state, err := stationary.New(t.Context(), r, b, nodes, 0.5)
	if err != nil {
		return err
	}
	defer state.Free()
	return work(worker{
		hops.Graph{
			Source: hops.Slice(g.Source, lo, hi), Degree: degree, Kernel: kernel, State: state, Budget: b,
			Threads: 1 + self%2, Scratch: t.TempDir(), Group: r,
		}, self, lo, hi, ids()[lo:hi], die,
	})
}

// alone is the whole graph on one machine.
func alone(t *testing.T) worker {
	t.Helper()
	b, err := mem.NewBudget(1 << 30)
	if err != nil {
		t.Fatal(err)
	}
	kernel, err := spmv.Select("auto")
	if err != nil {
		t.Fatal(err)
	}
	g, solo := graph(), group.Solo(nodes)
	state, err := stationary.New(t.Context(), solo, b, stationary.Nodes{Degree: g.degree, Component: g.component, Components: g.components}, 0.5)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(state.Free)
	return worker{
		hops.Graph{Source: g.Source, Degree: g.degree, Kernel: kernel, State: state, Budget: b, Threads: 2, Scratch: t.TempDir(), Group: solo},
		0, 0, nodes, ids(), nil,
	}
}

var ids = sync.OnceValue(func() []uint32 {
	all := make([]uint32, nodes)
	for i := range all {
		all[i] = uint32(i * 7)
	}
	return all
})

func must(t testing.TB, failed []error) {
	t.Helper()
	for w, err := range failed {
		if err != nil {
			t.Fatalf("worker %d: %v", w, err)
		}
	}
}

// smoothing is one way to smooth.
type smoothing struct {
	precision spmv.Precision
	rule      string
	tolerance float64
	standing  float64 // the nodes of the path have more hops
}

const mostK = 5

// fewPolynomials is a tolerance that makes three passes of an average over mostK hops.
const fewPolynomials = 0.04

// k is the LSI of a node: the first rows have the largest ones, so that workers do
// not agree on how long they go on.
func k(i int64) int { return int((i*i+i/packed.StripRows)%mostK) / (1 + int(i/packed.StripRows)/2) }

// k returns the LSI of a worker's rows, which begin with row lo.
func (s smoothing) k(lo int64) func(i int64) int {
	return func(i int64) int {
		if s.standing > 0 && lo+i >= nodes-pathNodes {
			return 20 + int(lo+i)%100
		}
		return k(lo + i)
	}
}

// run smooths the worker's rows.
func (s smoothing) run(w worker, l spmv.Layout, c hops.Checkpoints) ([]float32, hops.Stats, error) {
	rule, err := smooth.NewRule(s.rule, 0.2, 3)
	if err != nil {
		return nil, hops.Stats{}, err
	}
	l.Precision = s.precision
	e, err := smooth.New(context.Background(), w.Graph, smooth.Options{
		Rule: rule, K: s.k(w.lo), Targets: smooth.AllTargets(w.hi - w.lo),
		Tolerance: s.tolerance, Standing: s.standing, Layout: l, SpilledSums: l.Residency == spmv.External,
	})
	if err != nil {
		return nil, hops.Stats{}, err
	}
	defer e.Free()
	x := func(put func([]float32) error) error {
		for i := w.lo; i < w.hi; i++ {
			row := make([]float32, width)
			for c := range row {
				row[c] = float32((i*31+int64(c)*17)%23)/7 - 1
			}
			if err := put(row); err != nil {
				return err
			}
		}
		return nil
	}
	stats, err := e.Continue(context.Background(), x, 0, packed.Panels(width), c)
	if err != nil {
		return nil, stats, err
	}
	out := make([]float32, 0, int(w.hi-w.lo)*width)
	return out, stats, e.Output(0, width, x, func(rows []float32) error {
		out = append(out, rows...)
		return nil
	})
}

// layout is one of those that differ from worker to worker.
func layout(self, turn int) spmv.Layout {
	all := layouts(spmv.Float32)
	return all[(self+turn)%len(all)]
}

func TestSmoothEqualsOneMachine(t *testing.T) {
	for _, s := range []struct {
		smoothing
		workers []int
	}{
		{smoothing{precision: spmv.Float32, rule: "ndls"}, []int{1, 4}},
		{smoothing{precision: spmv.Float16, rule: "ndls"}, []int{2}},
		{smoothing{precision: spmv.Float32, rule: "ndls-reference"}, []int{3}},
		{smoothing{precision: spmv.Float32, tolerance: fewPolynomials, rule: "ndls"}, []int{3, 4}},
		{smoothing{precision: spmv.Float16, tolerance: fewPolynomials, rule: "ndls"}, []int{2}},
		{smoothing{precision: spmv.Float32, tolerance: fewPolynomials, standing: 2, rule: "ndls"}, []int{2, 3}},
	} {
		want, _, err := s.run(alone(t), spmv.Layout{Columns: width}, hops.Checkpoints{})
		if err != nil {
			t.Fatal(err)
		}
		for _, workers := range s.workers {
			if testing.Short() && workers == 4 {
				continue
			}
			t.Run(fmt.Sprintf("%s/%s/%d", s.rule, s.precision, workers), func(t *testing.T) {
				got := make([]float32, len(want))
				failed, _ := gang(t, borders(workers), func(w worker) error {
					out, _, err := s.run(w, layout(w.self, workers), hops.Checkpoints{})
					copy(got[w.lo*width:], out)
					return err
				})
				must(t, failed)
				if !slices.Equal(got, want) {
					t.Error("other bits than one machine")
				}
			})
		}
	}
}

// TestPairsReadAhead has two workers fetch windows ahead while they add others, as far as each has memory: with the bits of one
// machine, and no more bytes on the wire.
func TestPairsReadAhead(t *testing.T) {
	how := smoothing{rule: "ndls"}
	want, _, err := how.run(alone(t), spmv.Layout{Columns: width}, hops.Checkpoints{})
	if err != nil {
		t.Fatal(err)
	}
	var least int64
	for _, ahead := range [][2]int{{0, 0}, {4, 0}, {0, 3}, {4, 4}} {
		got := make([]float32, len(want))
		failed, traffic := gang(t, borders(2), func(w worker) error {
			l := spmv.Layout{Columns: width, Window: packed.StripRows, Accumulators: 1, Windows: ahead[w.self]}
			out, _, err := how.run(w, l, hops.Checkpoints{})
			copy(got[w.lo*width:], out)
			return err
		})
		must(t, failed)
		if !slices.Equal(got, want) {
			t.Errorf("%v windows: other bits than one machine", ahead)
		}
		if least == 0 {
			least = traffic
		}
		if math.Abs(float64(traffic)/float64(least)-1) > 0.02 {
			t.Errorf("%v windows: %d bytes on the wire, %d with two", ahead, traffic, least)
		}
	}
}

// TestRowsOnOtherWays has workers pass rows on to each other, and send those alone that are read where all have memory for
// those of the others: with the bits of one machine, and, in the second way, fewer bytes. Where one lacks that memory they pass
// all rows on.
func TestRowsOnOtherWays(t *testing.T) {
	how := smoothing{precision: spmv.Float32, rule: "ndls"}
	want, _, err := how.run(alone(t), spmv.Layout{Columns: width}, hops.Checkpoints{})
	if err != nil {
		t.Fatal(err)
	}
	for _, workers := range []int{3, 4} {
		var traffic [3]int64
		for way, name := range []string{"relayed", "read alone", "one without memory"} {
			t.Run(fmt.Sprintf("%d workers/%s", workers, name), func(t *testing.T) {
				got := make([]float32, len(want))
				failed, bytes := gang(t, borders(workers), func(w worker) error {
					if way > 0 {
						own, strips := make([]uint32, (nodes+31)/32), (w.hi-w.lo+31)/32
						if err := hops.MarkSources(t.Context(), w.Source, nodes, 2, own); err != nil {
							return err
						}
						if err := w.Group.Reads(t.Context(), own, make([]uint32, int64(workers)*strips)); err != nil {
							return err
						}
					}
					window := int64(1+w.self%3) * packed.StripRows
					l := spmv.Layout{Columns: width, Window: window, Accumulators: 1}
					if way == 1 || w.self > 0 {
						l.Windows = int((nodes-(w.hi-w.lo))/window) + 2
					}
					out, _, err := how.run(w, l, hops.Checkpoints{})
					copy(got[w.lo*width:], out)
					return err
				})
				must(t, failed)
				if !slices.Equal(got, want) {
					t.Error("other bits than one machine")
				}
				traffic[way] = bytes
			})
		}
		if traffic[1] > traffic[0]*3/4 {
			t.Errorf("%d bytes of rows that are read, %d of all", traffic[1], traffic[0])
		}
		if traffic[2] < traffic[0] {
			t.Errorf("%d bytes where rows are passed on, %d where none are listed", traffic[2], traffic[0])
		}
	}
}

// TestBytesOnTheWire holds the wire against the formula of the package.
func TestBytesOnTheWire(t *testing.T) {
	testkit.Slow(t, "the same products as TestSmoothEqualsOneMachine")
	for _, p := range []spmv.Precision{spmv.Float32, spmv.Float16} {
		for turn, l := range layouts(p) {
			if p == spmv.Float16 && turn != 1 {
				continue
			}
			l.Shared = true
			b := borders(2 + turn%3)
			n := b[len(b)-1]
			var want atomic.Int64
			failed, got := gang(t, b, func(w worker) error {
				_, stats, err := smoothing{precision: p, rule: "ndls"}.run(w, l, hops.Checkpoints{})
				want.Add(int64(stats.Passes) * l.Fetched(w.hi-w.lo, n))
				return err
			})
			must(t, failed)
			ratio := float64(got) / float64(want.Load())
			t.Logf("%s, %s, %d workers: %d bytes, the formula says %d: %.4f", p, l.Residency, len(b)-1, got, want.Load(), ratio)
			if math.Abs(ratio-1) > 0.1 {
				t.Errorf("%d bytes on the wire, the formula says %d", got, want.Load())
			}
		}
	}
}

func TestLSIEqualsOneMachine(t *testing.T) {
	type result struct {
		k []int
		lsi.Stats
	}
	find := func(w worker, l spmv.Layout, columns int, o lsi.Options) (result, error) {
		l.Columns = columns
		o.Layout = l
		table, stats, err := lsi.Run(context.Background(), w.Graph, lsi.Signs(4, w.ids, width), o)
		if err != nil {
			return result{}, err
		}
		defer table.Free()
		var all []int
		for i := range w.hi - w.lo {
			k, capped := table.K(i)
			if capped {
				k += 1000
			}
			if table.Uncertain(i) {
				k += 2000
			}
			all = append(all, k)
		}
		return result{all, stats}, nil
	}
	for name, o := range map[string]lsi.Options{
		"hops":           {Epsilon: 0.02, Kmax: 9},
		"polynomials":    {Epsilon: 0.2, Kmax: 200, Tolerance: 0.05},
		"rows that move": {Epsilon: 0.2, Kmax: 200, Tolerance: 0.05, Standing: 2},
		"batches":        {Epsilon: 0.2, Kmax: 200, Tolerance: 0.05, KeptRoom: 1},
	} {
		want, err := find(alone(t), spmv.Layout{}, width, o)
		if err != nil {
			t.Fatal(err)
		}
		if slices.Min(want.k) == slices.Max(want.k) {
			t.Fatalf("%s: all nodes have the same K", name)
		}
		if (want.Polynomials > 0) != (o.Tolerance > 0) || (want.Moving > 0) != (o.Standing > 0) {
			t.Fatalf("%s: %d polynomials of %d rows that move", name, want.Polynomials, want.Moving)
		}
		for workers := 1; workers <= 4; workers++ {
			for _, columns := range []int{16, width} {
				if columns < width && workers != 3 || columns == width && workers == 3 || testing.Short() && workers > 2 {
					continue
				}
				t.Run(fmt.Sprintf("%s/%d/%d", name, workers, columns), func(t *testing.T) {
					got := make([]int, len(want.k))
					failed, _ := gang(t, borders(workers), func(w worker) error {
						r, err := find(w, layout(w.self, workers), columns, o)
						copy(got[w.lo:], r.k)
						if err == nil && (r.Plain != want.Plain || r.Polynomials != want.Polynomials) {
							err = fmt.Errorf("%d hops and %d polynomials, not %d and %d", r.Plain, r.Polynomials, want.Plain, want.Polynomials)
						}
						return err
					})
					must(t, failed)
					if !slices.Equal(got, want.k) {
						t.Error("another table than one machine's")
					}
				})
			}
		}
	}
}

// TestGangGoesOnFromItsStates stops all workers where one of them has to, and goes on
// from what they saved; with one damaged or missing state all begin anew.
func TestGangGoesOnFromItsStates(t *testing.T) {
	s := smoothing{precision: spmv.Float32, rule: "ndls"}
	want, _, err := s.run(alone(t), spmv.Layout{Columns: width}, hops.Checkpoints{})
	if err != nil {
		t.Fatal(err)
	}
	b := borders(3)
	states := make([]bytes.Buffer, 3)
	failed, _ := gang(t, b, func(w worker) error {
		at := 0
		_, _, err := s.run(w, layout(w.self, 0), hops.Checkpoints{
			Stop: func() bool { at++; return w.self == 1 && at == 2 },
			Save: func(_ context.Context, _ int, write func(io.Writer) error) error { return write(&states[w.self]) },
		})
		return err
	})
	for w, err := range failed {
		if !errors.Is(err, hops.ErrStopped) {
			t.Fatalf("worker %d: %v, want ErrStopped", w, err)
		}
	}
	for _, tc := range []struct {
		name   string
		from   func(self int) io.Reader
		passes int
	}{
		{"all", func(self int) io.Reader { return bytes.NewReader(states[self].Bytes()) }, mostK - 3},
		{"one damaged", func(self int) io.Reader {
			raw := slices.Clone(states[self].Bytes())
			raw[len(raw)/2] ^= byte(self & 1)
			return bytes.NewReader(raw)
		}, mostK - 1},
		{"one missing", func(self int) io.Reader {
			if self == 2 {
				return nil
			}
			return bytes.NewReader(states[self].Bytes())
		}, mostK - 1},
		{"another's", func(self int) io.Reader { return bytes.NewReader(states[(self+1)%3].Bytes()) }, mostK - 1},
	} {
		if testing.Short() && tc.name != "all" {
			continue
		}
		t.Run(tc.name, func(t *testing.T) {
			got := make([]float32, len(want))
			failed, _ := gang(t, b, func(w worker) error {
				out, stats, err := s.run(w, layout(w.self, 1), hops.Checkpoints{From: tc.from(w.self)})
				if err == nil && stats.Passes != tc.passes {
					err = fmt.Errorf("%d passes, not %d", stats.Passes, tc.passes)
				}
				copy(got[w.lo*width:], out)
				return err
			})
			must(t, failed)
			if !slices.Equal(got, want) {
				t.Error("other bits than one machine")
			}
		})
	}
}

// TestLossIsNoticed ends one worker between two hops: by its server, and by its engine
// alone.
func TestLossIsNoticed(t *testing.T) {
	gone := errors.New("gone")
	for name, server := range map[string]bool{"server": true, "engine": false} {
		t.Run(name, func(t *testing.T) {
			var at atomic.Int64
			failed, _ := gang(t, borders(4), func(w worker) error {
				hop := 0
				_, _, err := smoothing{precision: spmv.Float32, rule: "ndls"}.run(w, layout(w.self, 0), hops.Checkpoints{
					Due: func() bool { hop++; return w.self == 2 && hop == 2 },
					Save: func(context.Context, int, func(io.Writer) error) error {
						if w.self != 2 {
							return nil
						}
						at.Store(time.Now().UnixNano())
						if server {
							w.die()
						}
						return gone
					},
				})
				return err
			})
			took := time.Since(time.Unix(0, at.Load()))
			if took > 5*time.Second {
				t.Errorf("the others noticed after %v", took)
			}
			for w, err := range failed {
				if w == 2 && !errors.Is(err, gone) || w != 2 && !errors.Is(err, blocks.ErrRetry) {
					t.Errorf("worker %d: %v", w, err)
				}
			}
		})
	}
}

// TestExposedRowsEnd reads rows that are not there yet, there, withdrawn, and another's.
func TestExposedRowsEnd(t *testing.T) {
	r, err := remote.New(remote.Options{Plan: "p", Name: "g", Borders: []int64{0, packed.StripRows, 2 * packed.StripRows}, Peers: make([]*blocks.Client, 2)})
	if err != nil {
		t.Fatal(err)
	}
	ticket := blocks.Ticket{Plan: "p", Stage: "g", Columns: 16, Precision: "float32", Row: 77, Rows: packed.StripRows - 77}
	read := func(ticket blocks.Ticket) error {
		next := ticket.Row
		return r.Rows(t.Context(), ticket, func(first int64, rows []byte) error {
			for at := 0; at < len(rows); at += 64 {
				if first != next || rows[at] != byte(next) {
					return fmt.Errorf("row %d has %d", next, rows[at])
				}
				first, next = first+1, next+1
			}
			return nil
		})
	}
	early, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if err := r.Rows(early, ticket, nil); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("before they are exposed: %v", err)
	}
	r.Expose(group.Format{Columns: 16, Precision: "float32"}, false, func(page []byte, row, n int64) error {
		for i := range n {
			page[64*i] = byte(row + i)
		}
		return nil
	})
	if err := read(ticket); err != nil {
		t.Error(err)
	}
	for name, change := range map[string]func(*blocks.Ticket){
		"plan":    func(t *blocks.Ticket) { t.Plan = "q" },
		"gang":    func(t *blocks.Ticket) { t.Stage = "h" },
		"rows":    func(t *blocks.Ticket) { t.Rows++ },
		"columns": func(t *blocks.Ticket) { t.Columns = 32 },
		"half":    func(t *blocks.Ticket) { t.Precision = "float16" },
	} {
		other := ticket
		change(&other)
		if err := read(other); !errors.Is(err, blocks.ErrNotHeld) {
			t.Errorf("another %s: %v", name, err)
		}
	}
	r.Unexpose(nil)
	if err := read(ticket); !errors.Is(err, blocks.ErrPast) {
		t.Errorf("withdrawn: %v", err)
	}
	r.Close(errors.New("disk full"))
	ticket.Hop = 1
	if err := read(ticket); err == nil || !strings.Contains(err.Error(), "disk full") {
		t.Errorf("closed: %v", err)
	}
}

// TestListsEnd frees the lists of rows in the middle of an answer, as a worker does that is told to stop. The answer then ends with an error.
func TestListsEnd(t *testing.T) {
	var answer error
	answered := make(chan bool)
	failed, _ := members(t, []int64{0, packed.StripRows, 2 * packed.StripRows}, func(r *remote.Member, self int, _ func()) error {
		if self == 0 {
			defer close(answered)
		}
		b, err := mem.NewBudget(512 << 20)
		if err != nil {
			return err
		}
		mine, err := mem.Alloc[uint32](b, 2*packed.StripRows/32, "rows that are read")
		if err != nil {
			return err
		}
		theirs, err := mem.Alloc[uint32](b, 2*packed.StripRows/32, "rows that others read")
		if err != nil {
			return err
		}
		for i := range mine.S {
			mine.S[i] = math.MaxUint32
		}
		defer mine.Free()
		defer theirs.Free()
		if err := r.Reads(t.Context(), mine.S, theirs.S); err != nil {
			return err
		}
		if self == 0 {
			r.Expose(group.Format{Columns: 32, Precision: "float32"}, false, func([]byte, int64, int64) error { return nil })
			ticket := blocks.Ticket{Plan: "sha256:test", Stage: "smooth-1/read/1", Columns: 32, Precision: "float32", Rows: packed.StripRows}
			begun := false
			answer = r.Rows(t.Context(), ticket, func(int64, []byte) error {
				if !begun {
					begun = true
					r.Close(errors.New("it stops"))
					theirs.Free()
				}
				return nil
			})
		}
		if self == 1 {
			<-answered
		}
		return nil
	})
	if answer == nil || !strings.Contains(answer.Error(), "it stops") {
		t.Errorf("an answer whose lists are gone ended with %v; workers: %v", answer, failed)
	}
}

// TestRegistry asks a worker for rows of the gang that it is in, was in and is yet to be in.
func TestRegistry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var registry remote.Registry
		enter := func(gang control.Stage) *remote.Member {
			r, err := remote.New(remote.Options{Plan: "p", Name: gang, Borders: []int64{0, packed.StripRows, 2 * packed.StripRows}, Peers: make([]*blocks.Client, 2)})
			if err != nil {
				t.Fatal(err)
			}
			r.Expose(group.Format{Columns: 16, Precision: "float32"}, false, func([]byte, int64, int64) error { return nil })
			registry.Enter(r)
			return r
		}
		ask := func(gang control.Stage) <-chan error {
			answer := make(chan error, 1)
			ticket := blocks.Ticket{Plan: "p", Stage: gang, Columns: 16, Precision: "float32", Rows: 1}
			go func() {
				answer <- registry.Rows(t.Context(), ticket, func(int64, []byte) error { return nil })
			}()
			synctest.Wait()
			return answer
		}
		first, second := ask("one"), ask("two")
		enter("one")
		if err := <-first; err != nil {
			t.Errorf("asked before the worker came: %v", err)
		}
		synctest.Wait()
		if len(second) > 0 {
			t.Fatalf("asked for the next gang: %v", <-second)
		}
		enter("two")
		if err := <-second; err != nil {
			t.Errorf("asked a gang earlier: %v", err)
		}
		begun := time.Now()
		if err := <-ask("one"); err == nil || time.Since(begun) != time.Minute {
			t.Errorf("asked for the gang before after %v: %v", time.Since(begun), err)
		}
	})
}

func TestOptionsRefused(t *testing.T) {
	two := make([]*blocks.Client, 2)
	for name, o := range map[string]remote.Options{
		"nobody":      {Borders: []int64{0}},
		"no such one": {Borders: []int64{0, packed.StripRows, 40000}, Peers: two, Self: 2},
		"half strip":  {Borders: []int64{0, 1000, 40000}, Peers: two},
		"no rows":     {Borders: []int64{0, packed.StripRows, packed.StripRows}, Peers: two},
		"a hole":      {Borders: []int64{packed.StripRows, 2 * packed.StripRows, 80000}, Peers: two},
	} {
		if _, err := remote.New(o); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}
