package lsi

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"ndls/hops"
	"ndls/internal/failure"
	"ndls/internal/packed"
	"ndls/internal/testgraph"
	"ndls/spmv"
)

// ways are layouts that share nothing but the result.
var ways = []setup{
	{threads: 1, kernel: "go", columns: 64},
	{threads: 3, columns: 16, place: spmv.Spilled},
	{threads: 2, columns: 48, place: spmv.External},
	{threads: 3, columns: 32},
	{threads: 1, columns: 64, place: spmv.External},
}

// task is a question and the graph it is about.
type task struct {
	g         testgraph.Graph
	probe     Probe
	o         Options
	precision spmv.Precision
}

// answer is all that a run finds out.
type answer struct {
	k         []uint16
	distances [][]float64
}

func (a answer) equal(b answer) bool {
	return slices.Equal(a.k, b.k) && reflect.DeepEqual(a.distances, b.distances)
}

// session runs a task in one layout.
func (q task) session(t testing.TB, s setup, c hops.Checkpoints) (answer, Stats, error) {
	t.Helper()
	b := budget(t)
	s.r, s.component = 0.5, true
	hg := prepare(t, q.g, s, b)
	o := q.o
	o.Layout, o.Checkpoints = layout(s.columns, s.place), c
	o.Layout.Precision = q.precision
	table, stats, err := Run(context.Background(), hg, q.probe, o)
	if err != nil {
		return answer{}, stats, err
	}
	defer table.Free()
	return answer{slices.Clone(table.k.S), table.distances}, stats, nil
}

// saver keeps the states that are saved.
type saver struct{ raw [][]byte }

func (s *saver) save(_ context.Context, _ int, write func(io.Writer) error) error {
	var raw bytes.Buffer
	err := write(&raw)
	s.raw = append(s.raw, raw.Bytes())
	return err
}

func always() bool { return true }

func tasks() map[string]task {
	g := testgraph.Random(150, 210, 11)
	all := map[string]task{}
	for _, precision := range []spmv.Precision{spmv.Float32, spmv.Float16} {
		for _, epsilon := range []float64{0.2, 1e-9} {
			all[fmt.Sprintf("%s/epsilon %g", precision, epsilon)] = task{
				g, Signs(5, ids(150), 50), Options{Epsilon: epsilon, Kmax: 11, Sample: []int64{0, 77, 149}}, precision,
			}
		}
	}
	all["polynomials"] = task{
		g, Signs(5, ids(150), 50), Options{Epsilon: 0.01, Kmax: 40, Tolerance: 0.01, Looser: []float64{0.02}, Sample: []int64{0, 77, 149}}, spmv.Float16,
	}
	all["rows that move"] = task{
		withPath(150, 30), Signs(5, ids(180), 50), Options{Epsilon: 0.3, Kmax: 100, Tolerance: 0.01, Standing: 0.015}, spmv.Float16,
	}
	return all
}

// TestResume goes on from every state of every layout in another.
func TestResume(t *testing.T) {
	fewAlways(t)
	for name, q := range tasks() {
		t.Run(name, func(t *testing.T) {
			want, all, err := q.session(t, ways[0], hops.Checkpoints{})
			if err != nil {
				t.Fatal(err)
			}
			if (all.Polynomials > 0) != (q.o.Tolerance > 0) || (all.Moving > 0) != (q.o.Standing > 0) {
				t.Errorf("%d polynomials of %d rows", all.Polynomials, all.Moving)
			}
			for i, from := range ways {
				var states saver
				got, _, err := q.session(t, from, hops.Checkpoints{Identity: "test", Due: always, Save: states.save})
				if err != nil {
					t.Fatal(err)
				}
				if !got.equal(want) {
					t.Fatalf("%+v: saving shows", from)
				}
				for at, raw := range states.raw {
					if from.columns < 64 && at%4 != i%4 {
						continue // there are many
					}
					to := ways[(i+1+at%(len(ways)-1))%len(ways)]
					at := 0
					got, stats, err := q.session(t, to, hops.Checkpoints{Identity: "test", From: bytes.NewReader(raw), Resumed: func(hop int, why error) {
						if at = hop; why != nil {
							t.Errorf("%+v refuses a state of %+v: %v", to, from, why)
						}
					}})
					if err != nil {
						t.Fatal(err)
					}
					if at < 1 || !got.equal(want) {
						t.Errorf("%+v from hop %d of %+v: another table", to, at, from)
					}
					if q.o.Tolerance == 0 && to.columns >= 64 && from.columns >= 64 && stats.Passes != all.Passes-at {
						t.Errorf("%d passes from hop %d of %d", stats.Passes, at, all.Passes)
					}
				}
			}
		})
	}
}

// TestRelay stops each engine after some hops; the next one has another layout.
func TestRelay(t *testing.T) {
	fewAlways(t)
	rapid.Check(t, func(rt *rapid.T) {
		n := rapid.IntRange(2, 50).Draw(rt, "n")
		q := task{
			testgraph.Random(n, rapid.IntRange(1, 3*n).Draw(rt, "m"), rapid.Uint64().Draw(rt, "seed")), Signs(3, ids(n), 64),
			Options{
				Epsilon: rapid.SampledFrom([]float64{0.3, 0.1, 1e-9}).Draw(rt, "epsilon"), Kmax: rapid.IntRange(0, 18).Draw(rt, "kmax"),
				Tolerance: rapid.SampledFrom([]float64{0, 0.05}).Draw(rt, "tolerance"),
			},
			rapid.SampledFrom([]spmv.Precision{spmv.Float32, spmv.Float16}).Draw(rt, "precision"),
		}
		want, _, err := q.session(t, ways[0], hops.Checkpoints{})
		if err != nil {
			rt.Fatal(err)
		}
		var states saver
		for runs := 0; ; runs++ {
			if runs > 90 {
				rt.Fatal("no end")
			}
			left := rapid.IntRange(0, 25).Draw(rt, "hops")
			c := hops.Checkpoints{Identity: "test", Stop: func() bool { left--; return left < 0 }, Save: states.save}
			if last := len(states.raw) - 1; last >= 0 {
				c.From = bytes.NewReader(states.raw[last])
				c.Resumed = func(_ int, why error) {
					if why != nil {
						rt.Fatal(why)
					}
				}
			}
			got, _, err := q.session(t, rapid.SampledFrom(ways).Draw(rt, "way"), c)
			if err == nil {
				if !got.equal(want) {
					rt.Error("another table")
				}
				return
			}
			if !errors.Is(err, hops.ErrStopped) {
				rt.Fatal(err)
			}
		}
	})
}

// TestResumeStrips has several strips, whose rows are not in the order of memory
// in a state.
func TestResumeStrips(t *testing.T) {
	n := 2*packed.StripRows + 50
	q := task{testgraph.Random(n, 60000, 5), Signs(3, ids(n), 32), Options{Epsilon: 0.2, Kmax: 10}, spmv.Float32}
	want, _, err := q.session(t, setup{threads: 2, columns: 32}, hops.Checkpoints{})
	if err != nil {
		t.Fatal(err)
	}
	for _, columns := range []int{16, 32} {
		var states saver
		hop := 0
		c := hops.Checkpoints{Identity: "test", Due: func() bool { hop++; return hop%7 == 0 }, Save: states.save}
		if _, _, err := q.session(t, setup{threads: 2, columns: columns}, c); err != nil {
			t.Fatal(err)
		}
		for _, raw := range states.raw {
			to := setup{threads: 2, columns: 48 - columns, place: spmv.External}
			why := errors.New("not told")
			got, _, err := q.session(t, to, hops.Checkpoints{Identity: "test", From: bytes.NewReader(raw), Resumed: func(_ int, err error) { why = err }})
			if err != nil || why != nil || !got.equal(want) {
				t.Errorf("%+v: another table, error %v, refused %v", to, err, why)
			}
		}
	}
}

// TestRefusedStates: what is damaged or of something else is told, and the run
// begins at the beginning.
func TestRefusedStates(t *testing.T) {
	q := tasks()["float32/epsilon 0.2"]
	want, _, err := q.session(t, ways[0], hops.Checkpoints{})
	if err != nil {
		t.Fatal(err)
	}
	var states saver
	if _, _, err := q.session(t, ways[1], hops.Checkpoints{Identity: "test", Due: always, Save: states.save}); err != nil {
		t.Fatal(err)
	}
	good := states.raw[12] // in the second block
	refuse := func(name string, raw []byte, identity string, change func(*task)) {
		t.Run(name, func(t *testing.T) {
			q, want := q, want
			if change != nil {
				change(&q)
				if want, _, err = q.session(t, ways[0], hops.Checkpoints{}); err != nil {
					t.Fatal(err)
				}
			}
			for _, to := range []setup{ways[0], ways[1]} {
				why := error(nil)
				got, _, err := q.session(t, to, hops.Checkpoints{Identity: identity, From: bytes.NewReader(raw), Resumed: func(_ int, err error) { why = err }})
				if err != nil {
					t.Fatal(err)
				}
				if !errors.Is(why, hops.ErrState) || !got.equal(want) {
					t.Errorf("the reason is %v, the table the same: %v", why, got.equal(want))
				}
			}
		})
	}
	refuse("another identity", good, "other", nil)
	refuse("another epsilon", good, "test", func(q *task) { q.o.Epsilon = 0.3 })
	refuse("another kmax", good, "test", func(q *task) { q.o.Kmax = 20 })
	refuse("another precision", good, "test", func(q *task) { q.precision = spmv.Float16 })
	refuse("another width", good, "test", func(q *task) { q.probe = Signs(5, ids(150), 20) })
	refuse("another graph", good, "test", func(q *task) { q.g = testgraph.Random(150, 214, 11) })
	refuse("longer", append(slices.Clone(good), 1), "test", nil)
	for at := 0; at < len(good); at += 1 + 2*at {
		refuse(fmt.Sprintf("cut off at %d", at), good[:at], "test", nil)
		raw := slices.Clone(good)
		raw[at] ^= 16
		refuse(fmt.Sprintf("flipped at %d", at), raw, "test", nil)
	}
	refuse("cut off at the end", good[:len(good)-1], "test", nil)
}

// TestFailingSave ends the run with the error of who saves.
func TestFailingSave(t *testing.T) {
	q := tasks()["float32/epsilon 1e-09"]
	lost := errors.New("lease lost")
	for _, s := range ways[:2] {
		_, stats, err := q.session(t, s, hops.Checkpoints{Due: always, Save: func(context.Context, int, func(io.Writer) error) error { return lost }})
		if !errors.Is(err, lost) || stats.Passes != 1 {
			t.Errorf("%d passes, error %v", stats.Passes, err)
		}
	}
}

// FuzzResume gives a run headers and bodies with right checksums.
func FuzzResume(f *testing.F) {
	q := task{testgraph.Path(20), Signs(5, ids(20), 32), Options{Epsilon: 0.2, Kmax: 12}, spmv.Float32}
	for _, s := range []setup{{threads: 1, columns: 16}, {threads: 1, columns: 32}} {
		var states saver
		if _, _, err := q.session(f, s, hops.Checkpoints{Identity: "test", Due: always, Save: states.save}); err != nil {
			f.Fatal(err)
		}
		r, err := hops.NewStateReader(bytes.NewReader(states.raw[9]))
		if err != nil {
			f.Fatal(err)
		}
		var header json.RawMessage
		if err := r.Header(&header); err != nil {
			f.Fatal(err)
		}
		f.Add([]byte(header), make([]byte, 20*2+2*20*64+8*8*20))
	}
	f.Add([]byte("{}"), []byte{})
	f.Fuzz(func(t *testing.T, header, body []byte) {
		var raw bytes.Buffer
		w, err := hops.NewStateWriter(&raw, json.RawMessage(header))
		if err != nil {
			return // no JSON
		}
		if err := errors.Join(w.Put(body), w.Close()); err != nil {
			t.Fatal(err)
		}
		for _, columns := range []int{16, 32} {
			if _, _, err := q.session(t, setup{threads: 1, columns: columns}, hops.Checkpoints{Identity: "test", From: bytes.NewReader(raw.Bytes()), Resumed: func(_ int, why error) {
				if why != nil && !errors.Is(why, hops.ErrState) {
					t.Errorf("the reason is %v", why)
				}
			}}); err != nil && !errors.Is(err, spmv.ErrConservation) && !errors.Is(err, failure.ErrData) {
				t.Error(err)
			}
		}
	})
}
