package rpc

import (
	"errors"
	"math"
	"reflect"
	"slices"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"pgregory.net/rapid"

	"ndls/catalog"
	"ndls/internal/control"
	"ndls/internal/control/rpc/controlpb"
	"ndls/plan"
)

// travel is a message on the other side.
func travel[M any, P interface {
	*M
	proto.Message
}](t interface{ Fatal(...any) }, m P,
) P {
	wire, err := proto.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	there := P(new(M))
	if err := proto.Unmarshal(wire, there); err != nil {
		t.Fatal(err)
	}
	return there
}

// merged returns what collect makes of the pieces.
func merged[M any, P interface {
	*M
	proto.Message
}](t interface{ Fatal(...any) }, pieces []P,
) P {
	all := P(new(M))
	for _, m := range pieces {
		if proto.Size(m) > 4<<20 {
			t.Fatal("a piece of", proto.Size(m), "bytes")
		}
		proto.Merge(all, travel[M](t, m))
	}
	return all
}

var (
	drawText     = rapid.String()
	drawDuration = rapid.Custom(func(t *rapid.T) time.Duration { return time.Duration(rapid.Int64().Draw(t, "ns")) })
	drawFloat    = rapid.Float64Range(-math.MaxFloat64, math.MaxFloat64)
	drawEntry    = rapid.Custom(func(t *rapid.T) catalog.Entry {
		return catalog.Entry{
			Kind: drawText.Draw(t, "kind"), Path: drawText.Draw(t, "path"), Rows: rapid.Int64().Draw(t, "rows"),
			Bytes: rapid.Int64().Draw(t, "bytes"), Checksum: drawText.Draw(t, "checksum"),
			Interval: rapid.Int32().Draw(t, "interval"), Block: rapid.Int32().Draw(t, "block"),
			Stage: drawText.Draw(t, "stage"), Plan: drawText.Draw(t, "plan"), Lo: rapid.Int64().Draw(t, "lo"), Hi: rapid.Int64().Draw(t, "hi"),
			First: rapid.Int32().Draw(t, "first"), Last: rapid.Int32().Draw(t, "last"), Hop: rapid.Int32().Draw(t, "hop"), Model: rapid.Int32().Draw(t, "model"),
			ValueType: drawText.Draw(t, "value type"),
			Unknown:   rapid.Int64().Draw(t, "unknown"), Until: rapid.Int32().Draw(t, "until"), Step: drawText.Draw(t, "step"),
			FirstPiece: rapid.Int32().Draw(t, "first piece"), LastPiece: rapid.Int32().Draw(t, "last piece"),
		}
	})
)

// drawSlice draws lists of which the empty one is nil, as it is after a journey.
func drawSlice[T any](t *rapid.T, name string, one *rapid.Generator[T]) []T {
	list := rapid.SliceOfN(one, 0, 5).Draw(t, name)
	if len(list) == 0 {
		return nil
	}
	return list
}

func drawPlan(t *rapid.T) plan.Options {
	p := plan.Default()
	p.Seed = rapid.Uint64().Draw(t, "seed")
	p.LSI.Epsilon = drawFloat.Draw(t, "epsilon")
	p.Partition.Dataset = drawText.Draw(t, "dataset")
	p.Labels.Kmax = rapid.Int().Draw(t, "kmax")
	return p
}

func drawReport(t *rapid.T) *control.StageReport {
	if rapid.Bool().Draw(t, "failed") {
		return nil
	}
	r := &control.StageReport{
		Stage: control.Stage(drawText.Draw(t, "stage")), Seconds: drawFloat.Draw(t, "seconds"),
		Rows: rapid.Int64().Draw(t, "rows"), Passes: rapid.Int().Draw(t, "passes"),
	}
	if rapid.Bool().Draw(t, "lsi") {
		r.LSI = &control.LSIReport{Mean: drawFloat.Draw(t, "mean"), Histogram: [][2]int64{{1, rapid.Int64().Draw(t, "nodes")}}}
	}
	if rapid.Bool().Draw(t, "accuracy") {
		r.Accuracy = &control.AccuracyReport{Base: control.SplitAccuracy{Test: &control.Spread{Mean: drawFloat.Draw(t, "test")}}, Runs: 3}
	}
	return r
}

func TestMessagesKeepEverything(t *testing.T) {
	same := func(t *rapid.T, what string, there, here any, err error) {
		if err != nil || !reflect.DeepEqual(there, here) {
			t.Fatalf("%s: %+v became %+v, %v", what, here, there, err)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		h := control.Hello{
			Worker: drawText.Draw(t, "worker"), Version: drawText.Draw(t, "version"), Memory: rapid.Int64().Draw(t, "memory"),
			Threads: rapid.Int().Draw(t, "threads"), Blocks: drawText.Draw(t, "blocks"), Holds: drawSlice(t, "holds", drawText),
		}
		same(t, "hello", toHello(merged(t, fromHello(h))), h, nil)

		w := control.Welcome{
			Plan: drawPlan(t), Store: drawText.Draw(t, "store"),
			Heartbeat: drawDuration.Draw(t, "heartbeat"), Checkpoint: drawDuration.Draw(t, "checkpoint"),
		}
		welcome, err := fromWelcome(w)
		if err != nil {
			t.Fatal(err)
		}
		toW, err := toWelcome(travel(t, welcome))
		same(t, "welcome", toW, w, err)

		l := control.Lease{
			Task: control.Task{
				Stage: control.Stage(drawText.Draw(t, "stage")), Part: control.Part(drawText.Draw(t, "part")),
				First: rapid.Int().Draw(t, "first"), Last: rapid.Int().Draw(t, "last"), Plan: drawPlan(t),
				Inputs: control.Inputs{
					Dataset: drawText.Draw(t, "dataset"), SoftLabels: drawText.Draw(t, "soft"), Targets: drawText.Draw(t, "targets"),
					TrainRows: drawText.Draw(t, "training rows"), ValidRows: drawText.Draw(t, "validation rows"),
				},
			},
			Fencing: rapid.Uint64().Draw(t, "fencing"), TTL: drawDuration.Draw(t, "ttl"),
		}
		lease, err := fromLease(l)
		if err != nil {
			t.Fatal(err)
		}
		toL, err := toLease(travel(t, lease))
		same(t, "lease", toL, l, err)

		p := control.Progress{
			What: drawText.Draw(t, "what"), Done: rapid.Int64().Draw(t, "done"), Total: rapid.Int64().Draw(t, "total"),
			Unit: drawText.Draw(t, "unit"), Saved: rapid.Int64().Draw(t, "saved"),
		}
		renew := travel(t, fromRenew(l.Fencing, p))
		same(t, "renewal", []any{renew.GetFencing(), toProgress(renew.GetProgress())}, []any{l.Fencing, p}, nil)

		c := control.Change{
			Added: drawSlice(t, "added", drawEntry), Removed: drawSlice(t, "removed", drawText), Delete: rapid.Bool().Draw(t, "delete"),
		}
		commit := merged(t, fromCommit(l.Fencing, 7, c))
		same(t, "commit", []any{commit.GetFencing(), commit.GetNumber(), toChange(commit)}, []any{l.Fencing, uint64(7), c}, nil)

		o := control.Outcome{
			Report: drawReport(t), Reason: drawText.Draw(t, "reason"),
			Kind: rapid.SampledFrom([]control.Kind{"", control.Retry, control.Fatal, control.Drained, control.Unable}).Draw(t, "kind"),
		}
		finish, err := fromOutcome(l.Fencing, o)
		if err != nil {
			t.Fatal(err)
		}
		toO, err := toOutcome(travel(t, finish))
		same(t, "outcome", toO, o, err)
	})
}

func TestCut(t *testing.T) {
	size := func(n int) int { return n }
	for _, tc := range []struct {
		name string
		list []int
		want [][]int
	}{
		{"nothing", nil, nil},
		{"small", []int{1, 2, 3}, [][]int{{1, 2, 3}}},
		{"just full", []int{pieceBytes - 1, 1, 5}, [][]int{{pieceBytes - 1, 1}, {5}}},
		{"ends with a full piece", []int{5, pieceBytes}, [][]int{{5, pieceBytes}}},
		{"all large", []int{pieceBytes, pieceBytes}, [][]int{{pieceBytes}, {pieceBytes}}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := cut(tc.list, size); !slices.EqualFunc(got, tc.want, slices.Equal) {
				t.Fatalf("%v", got)
			}
		})
	}
}

// FuzzMessages reads messages of strangers: whatever can be read travels back
// unchanged.
func FuzzMessages(f *testing.F) {
	seed := func(m proto.Message, err error) {
		wire, errWire := proto.Marshal(m)
		if err != nil || errWire != nil {
			f.Fatal(err, errWire)
		}
		f.Add(wire)
	}
	lease, err := fromLease(lease)
	seed(lease, err)
	welcome, err := fromWelcome(control.Welcome{Plan: plan.Default(), Store: "/run", Heartbeat: time.Second, Checkpoint: time.Minute})
	seed(welcome, err)
	outcome, err := fromOutcome(1, control.Outcome{Report: &control.StageReport{Planned: &control.Figures{}}, Kind: control.Fatal})
	seed(outcome, err)
	seed(&controlpb.CommitRequest{Added: fromEntries(change.Added), Removed: change.Removed}, nil)
	seed(&controlpb.Lease{Ttl: &durationpb.Duration{Seconds: math.MaxInt64 / 1_000_000_000, Nanos: 999_999_999}}, nil)
	f.Fuzz(func(t *testing.T, wire []byte) {
		check := func(what string, there, here any, errThere, errHere error) {
			if errThere != nil || errHere != nil || !reflect.DeepEqual(there, here) {
				t.Fatalf("%s: %+v became %+v, %v, %v", what, here, there, errHere, errThere)
			}
		}
		if m := new(controlpb.Lease); proto.Unmarshal(wire, m) == nil {
			if here, err := toLease(m); err == nil {
				back, errHere := fromLease(here)
				there, err := toLease(back)
				check("lease", there, here, err, errHere)
			}
		}
		if m := new(controlpb.Welcome); proto.Unmarshal(wire, m) == nil {
			if here, err := toWelcome(m); err == nil {
				back, errHere := fromWelcome(here)
				there, err := toWelcome(back)
				check("welcome", there, here, err, errHere)
			}
		}
		if m := new(controlpb.FinishRequest); proto.Unmarshal(wire, m) == nil {
			if here, err := toOutcome(m); err == nil {
				back, errHere := fromOutcome(m.GetFencing(), here)
				there, err := toOutcome(back)
				check("outcome", there, here, err, errHere)
			}
		}
		if m := new(controlpb.CommitRequest); proto.Unmarshal(wire, m) == nil {
			here := toChange(m)
			check("change", toChange(merged(t, fromCommit(m.GetFencing(), m.GetNumber(), here))), here, nil, nil)
		}
		if m := new(controlpb.Hello); proto.Unmarshal(wire, m) == nil {
			here := toHello(m)
			check("hello", toHello(merged(t, fromHello(here))), here, nil, nil)
		}
		if m := new(controlpb.RenewRequest); proto.Unmarshal(wire, m) == nil {
			here := toProgress(m.GetProgress())
			check("progress", toProgress(fromRenew(m.GetFencing(), here).GetProgress()), here, nil, nil)
		}
	})
}

// fill sets every field to something, so that one that a message lacks is missed.
func fill(v reflect.Value) {
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			fill(v.Field(i))
		}
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem())
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		fill(v.Index(1))
	case reflect.Array:
		fill(v.Index(0))
	case reflect.String:
		v.SetString("retry")
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Float64:
		v.SetFloat(0.5)
	case reflect.Uint64:
		v.SetUint(7)
	default:
		v.SetInt(7)
	}
}

func filled[T any]() T {
	var v T
	fill(reflect.ValueOf(&v).Elem())
	return v
}

func TestNoFieldIsForgotten(t *testing.T) {
	lease := filled[control.Lease]()
	lease.Task.Resources = control.Resources{} // those of the worker
	leaseMessage, errFromLease := fromLease(lease)
	leaseThere, errToLease := toLease(leaseMessage)
	welcome := filled[control.Welcome]()
	welcomeMessage, errFromWelcome := fromWelcome(welcome)
	welcomeThere, errToWelcome := toWelcome(welcomeMessage)
	outcome := filled[control.Outcome]()
	outcomeMessage, errFromOutcome := fromOutcome(1, outcome)
	outcomeThere, errToOutcome := toOutcome(outcomeMessage)
	if err := errors.Join(errFromLease, errToLease, errFromWelcome, errToWelcome, errFromOutcome, errToOutcome); err != nil {
		t.Fatal(err)
	}
	hello, change, progress := filled[control.Hello](), filled[control.Change](), filled[control.Progress]()
	for _, tc := range []struct {
		name        string
		here, there any
	}{
		{"lease", lease, leaseThere},
		{"welcome", welcome, welcomeThere},
		{"outcome", outcome, outcomeThere},
		{"hello", hello, toHello(merged(t, fromHello(hello)))},
		{"change", change, toChange(merged(t, fromCommit(1, 2, change)))},
		{"progress", progress, toProgress(fromRenew(1, progress).GetProgress())},
	} {
		if !reflect.DeepEqual(tc.here, tc.there) {
			t.Errorf("%s: %+v became %+v", tc.name, tc.here, tc.there)
		}
	}
}
