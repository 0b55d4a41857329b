package rpc

import (
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"ndls/catalog"
	"ndls/internal/control"
	"ndls/internal/control/rpc/controlpb"
	"ndls/plan"
)

// pieceBytes is the approximate size of the piece of a list in one message: far below the 4 MiB
// that gRPC accepts, and enough to make the cost of a message small.
const pieceBytes = 256 << 10

// cut divides a list into pieces of about pieceBytes.
func cut[T any](list []T, size func(T) int) [][]T {
	var pieces [][]T
	begin, bytes := 0, 0
	for i, v := range list {
		bytes += size(v)
		if bytes >= pieceBytes {
			pieces = append(pieces, list[begin:i+1])
			begin, bytes = i+1, 0
		}
	}
	if begin < len(list) {
		pieces = append(pieces, list[begin:])
	}
	return pieces
}

func textSize(s string) int { return len(s) + 4 }

// entrySize returns the least size of an entry in a message.
func entrySize(e catalog.Entry) int {
	return len(e.Kind) + len(e.Path) + len(e.Checksum) + len(e.Stage) + len(e.Plan) + len(e.ValueType) + 128
}

// readable returns text for people, with stray bytes replaced so that it can be sent.
func readable(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }

func fromHello(h control.Hello) []*controlpb.Hello {
	messages := []*controlpb.Hello{{
		Worker: h.Worker, Version: h.Version, Memory: h.Memory, Threads: int64(h.Threads), Blocks: h.Blocks,
		Rates: &controlpb.Rates{Edges: h.Rates.Edges, Network: h.Rates.Network, Store: h.Rates.Store, Delay: h.Rates.Delay},
	}}
	for _, piece := range cut(h.Holds, textSize) {
		messages = append(messages, &controlpb.Hello{Holds: piece})
	}
	return messages
}

// toHello converts the message that all pieces form together.
func toHello(m *controlpb.Hello) control.Hello {
	return control.Hello{
		Worker: m.GetWorker(), Version: m.GetVersion(), Memory: m.GetMemory(), Threads: int(m.GetThreads()), Blocks: m.GetBlocks(),
		Holds: m.GetHolds(),
		Rates: control.Rates{
			Edges: m.GetRates().GetEdges(), Network: m.GetRates().GetNetwork(), Store: m.GetRates().GetStore(),
			Delay: m.GetRates().GetDelay(),
		},
	}
}

func fromWelcome(w control.Welcome) (*controlpb.Welcome, error) {
	opts, err := json.Marshal(w.Plan)
	if err != nil {
		return nil, fmt.Errorf("the plan: %w", err)
	}
	return &controlpb.Welcome{
		PlanJson: opts, Store: w.Store, Peer: w.Peer,
		Heartbeat: durationpb.New(w.Heartbeat), Checkpoint: durationpb.New(w.Checkpoint),
	}, nil
}

func toWelcome(m *controlpb.Welcome) (control.Welcome, error) {
	opts, errPlan := toPlan(m.GetPlanJson())
	heartbeat, errHeartbeat := toDuration("heartbeat", m.GetHeartbeat())
	checkpoint, errCheckpoint := toDuration("checkpoint", m.GetCheckpoint())
	return control.Welcome{Plan: opts, Store: m.GetStore(), Peer: m.GetPeer(), Heartbeat: heartbeat, Checkpoint: checkpoint},
		errors.Join(errPlan, errHeartbeat, errCheckpoint)
}

func toPlan(text []byte) (plan.Options, error) {
	var p plan.Options
	if err := json.Unmarshal(text, &p); err != nil {
		return p, fmt.Errorf("the plan: %w", err)
	}
	return p, nil
}

func toDuration(what string, m *durationpb.Duration) (time.Duration, error) {
	if err := m.CheckValid(); err != nil {
		return 0, fmt.Errorf("the %s: %w", what, err)
	}
	d := m.AsDuration()
	if back := durationpb.New(d); back.Seconds != m.Seconds || back.Nanos != m.Nanos {
		return 0, fmt.Errorf("the %s of %d s is longer than 292 years", what, m.Seconds)
	}
	return d, nil
}

func fromLease(l control.Lease) (*controlpb.Lease, error) {
	opts, err := json.Marshal(l.Task.Plan)
	if err != nil {
		return nil, fmt.Errorf("the plan: %w", err)
	}
	return &controlpb.Lease{
		Task: &controlpb.Task{
			Stage: string(l.Task.Stage), Part: string(l.Task.Part), First: int64(l.Task.First), Last: int64(l.Task.Last),
			FirstPanel: int64(l.Task.FirstPanel), LastPanel: int64(l.Task.LastPanel),
			PlanJson: opts, Needs: l.Task.Needs, Lean: l.Task.Lean, Spare: l.Task.Spare,
			Inputs: &controlpb.Inputs{
				Dataset: l.Task.Inputs.Dataset, SoftLabels: l.Task.Inputs.SoftLabels, Targets: l.Task.Inputs.Targets,
				TrainRows: l.Task.Inputs.TrainRows, ValidRows: l.Task.Inputs.ValidRows, LabelEpsilons: l.Task.Inputs.LabelEpsilons,
			},
		},
		Fencing: l.Fencing,
		Ttl:     durationpb.New(l.TTL),
		Trace:   l.Trace,
	}, nil
}

func toLease(m *controlpb.Lease) (control.Lease, error) {
	t := m.GetTask()
	opts, errPlan := toPlan(t.GetPlanJson())
	ttl, errTTL := toDuration("TTL", m.GetTtl())
	return control.Lease{
		Task: control.Task{
			Stage: control.Stage(t.GetStage()), Part: control.Part(t.GetPart()), First: int(t.GetFirst()), Last: int(t.GetLast()),
			FirstPanel: int(t.GetFirstPanel()), LastPanel: int(t.GetLastPanel()),
			Plan: opts, Needs: t.GetNeeds(), Lean: t.GetLean(), Spare: t.GetSpare(),
			Inputs: control.Inputs{
				Dataset: t.GetInputs().GetDataset(), SoftLabels: t.GetInputs().GetSoftLabels(), Targets: t.GetInputs().GetTargets(),
				TrainRows: t.GetInputs().GetTrainRows(), ValidRows: t.GetInputs().GetValidRows(), LabelEpsilons: t.GetInputs().GetLabelEpsilons(),
			},
		},
		Fencing: m.GetFencing(),
		TTL:     ttl,
		Trace:   m.GetTrace(),
	}, errors.Join(errPlan, errTTL)
}

func fromGang(g control.Gang) *controlpb.GangReply {
	m := &controlpb.GangReply{Number: g.Number, Self: int64(g.Self), Peers: g.Peers}
	for _, b := range g.Borders {
		m.Borders = append(m.Borders, int64(b))
	}
	return m
}

func toGang(m *controlpb.GangReply) control.Gang {
	g := control.Gang{Number: m.GetNumber(), Self: int(m.GetSelf()), Peers: m.GetPeers()}
	for _, b := range m.GetBorders() {
		g.Borders = append(g.Borders, int(b))
	}
	return g
}

func fromRenew(fencing uint64, p control.Progress) *controlpb.RenewRequest {
	u := p.Usage
	return &controlpb.RenewRequest{Fencing: fencing, Progress: &controlpb.Progress{
		What: readable(p.What), Done: p.Done, Total: p.Total, Unit: readable(p.Unit), Saved: p.Saved, Hop: int32(p.Hop),
		Settled: p.Settled, Where: readable(p.Where), Left: p.Left,
		Usage: &controlpb.Usage{Memory: u.Memory, Disk: u.Disk, Read: u.Read, Written: u.Written, Edges: u.Edges, Rows: u.Rows},
	}}
}

func toProgress(m *controlpb.Progress) control.Progress {
	u := m.GetUsage()
	return control.Progress{
		What: m.GetWhat(), Done: m.GetDone(), Total: m.GetTotal(), Unit: m.GetUnit(), Saved: m.GetSaved(), Hop: int(m.GetHop()),
		Settled: m.GetSettled(), Where: m.GetWhere(), Left: m.GetLeft(),
		Usage: control.Usage{
			Memory: u.GetMemory(), Disk: u.GetDisk(), Read: u.GetRead(), Written: u.GetWritten(), Edges: u.GetEdges(),
			Rows: u.GetRows(),
		},
	}
}

func fromEntries(entries []catalog.Entry) []*controlpb.Entry {
	messages := make([]*controlpb.Entry, len(entries))
	for i, e := range entries {
		messages[i] = &controlpb.Entry{
			Kind: e.Kind, Path: e.Path, Rows: e.Rows, Bytes: e.Bytes, Checksum: e.Checksum, Interval: e.Interval, Block: e.Block,
			Stage: e.Stage, Plan: e.Plan, Lo: e.Lo, Hi: e.Hi, First: e.First, Last: e.Last, Hop: e.Hop, Model: e.Model,
			ValueType: e.ValueType, Unknown: e.Unknown, Until: e.Until,
			Step: e.Step, FirstPiece: e.FirstPiece, LastPiece: e.LastPiece,
		}
	}
	return messages
}

func appendEntries(entries []catalog.Entry, messages []*controlpb.Entry) []catalog.Entry {
	for _, m := range messages {
		entries = append(entries, catalog.Entry{
			Kind: m.GetKind(), Path: m.GetPath(), Rows: m.GetRows(), Bytes: m.GetBytes(), Checksum: m.GetChecksum(),
			Interval: m.GetInterval(), Block: m.GetBlock(),
			Stage: m.GetStage(), Plan: m.GetPlan(), Lo: m.GetLo(), Hi: m.GetHi(), First: m.GetFirst(), Last: m.GetLast(), Hop: m.GetHop(),
			Model: m.GetModel(), ValueType: m.GetValueType(), Unknown: m.GetUnknown(), Until: m.GetUntil(),
			Step: m.GetStep(), FirstPiece: m.GetFirstPiece(), LastPiece: m.GetLastPiece(),
		})
	}
	return entries
}

func fromVersion(v catalog.Version) *controlpb.CatalogVersion {
	return &controlpb.CatalogVersion{Owner: v.Owner, Number: v.Number}
}

func toVersion(m *controlpb.CatalogVersion) catalog.Version {
	return catalog.Version{Owner: m.GetOwner(), Number: m.GetNumber()}
}

// fromListing yields a listing in pieces; the first one has its version. It makes each piece after
// the one before is sent.
func fromListing(l catalog.Listing) iter.Seq[*controlpb.CatalogReply] {
	return func(yield func(*controlpb.CatalogReply) bool) {
		if !yield(&controlpb.CatalogReply{Version: fromVersion(l.Version), Whole: l.Whole}) {
			return
		}
		for _, piece := range cut(l.Added, entrySize) {
			if !yield(&controlpb.CatalogReply{Entries: fromEntries(piece)}) {
				return
			}
		}
		for _, piece := range cut(l.Removed, textSize) {
			if !yield(&controlpb.CatalogReply{Removed: piece}) {
				return
			}
		}
	}
}

// addListing adds a piece to a listing.
func addListing(l *catalog.Listing, m *controlpb.CatalogReply) {
	if m.Version != nil {
		l.Version, l.Whole = toVersion(m.Version), m.GetWhole()
	}
	l.Added, l.Removed = appendEntries(l.Added, m.GetEntries()), append(l.Removed, m.GetRemoved()...)
}

func fromCommit(fencing, number uint64, c control.Change) []*controlpb.CommitRequest {
	messages := []*controlpb.CommitRequest{{Fencing: fencing, Number: number, Delete: c.Delete}}
	for _, piece := range cut(c.Added, entrySize) {
		messages = append(messages, &controlpb.CommitRequest{Added: fromEntries(piece)})
	}
	for _, piece := range cut(c.Removed, textSize) {
		messages = append(messages, &controlpb.CommitRequest{Removed: piece})
	}
	return messages
}

// toChange converts the message that all pieces form together.
func toChange(m *controlpb.CommitRequest) control.Change {
	return control.Change{Added: appendEntries(nil, m.GetAdded()), Removed: m.GetRemoved(), Delete: m.GetDelete()}
}

// kinds lists the kinds of failures; "" is a finished task.
var kinds = map[control.Kind]controlpb.Kind{
	"":              controlpb.Kind_KIND_UNSPECIFIED,
	control.Retry:   controlpb.Kind_KIND_RETRY,
	control.Fatal:   controlpb.Kind_KIND_FATAL,
	control.Drained: controlpb.Kind_KIND_DRAINED,
	control.Unable:  controlpb.Kind_KIND_UNABLE,
	control.Broken:  controlpb.Kind_KIND_BROKEN,
}

func fromOutcome(fencing uint64, o control.Outcome) (*controlpb.FinishRequest, error) {
	kind, ok := kinds[o.Kind]
	if !ok {
		return nil, fmt.Errorf("an outcome of no known kind, %q", o.Kind)
	}
	m := &controlpb.FinishRequest{Fencing: fencing, Kind: kind, Reason: readable(o.Reason), Kinds: o.Kinds}
	if o.Report != nil {
		text, err := json.Marshal(o.Report)
		if err != nil {
			return nil, fmt.Errorf("the report: %w", err)
		}
		m.ReportJson = text
	}
	return m, nil
}

func toOutcome(m *controlpb.FinishRequest) (control.Outcome, error) {
	o := control.Outcome{Reason: m.GetReason(), Kinds: m.GetKinds()}
	if text := m.GetReportJson(); len(text) > 0 {
		o.Report = new(control.StageReport)
		if err := json.Unmarshal(text, o.Report); err != nil {
			return o, fmt.Errorf("the report: %w", err)
		}
	}
	for kind, number := range kinds {
		if number == m.GetKind() {
			o.Kind = kind
			return o, nil
		}
	}
	return o, fmt.Errorf("an outcome of no known kind, number %d", m.GetKind())
}
