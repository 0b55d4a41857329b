package features

import (
	"context"

	"ndls/catalog"
	"ndls/estimate"
	"ndls/group"
	"ndls/hops"
	"ndls/internal/mem"
	"ndls/internal/packed"
	"ndls/internal/share"
	"ndls/internal/stationary"
	"ndls/shards"
	"ndls/smooth"
	"ndls/stage"
	"ndls/stage/graph"
	"ndls/tiles"
)

// limits holds the stationary rows of features, X_i^∞ = d̃_i^r z̄, of all nodes of the graph.
type limits struct {
	nodes *graph.Graph // without edges
	state *stationary.State
	mean  *stationary.Mean
	// node maps each target to its node; nil if all nodes are targets.
	node *mem.Array[uint32]
}

// Free frees the rows.
func (l *limits) Free() {
	if l.nodes != nil {
		l.nodes.Free()
	}
	if l.state != nil {
		l.state.Free()
	}
	if l.mean != nil {
		l.mean.Free()
	}
	l.node.Free()
}

// of returns the node of a target.
func (l *limits) of(target int64) int64 {
	if l.node == nil {
		return target
	}
	return int64(l.node.S[target])
}

// findLimits computes the stationary rows in one pass over the features.
func (env smoothRun) findLimits(ctx context.Context, targets *smooth.Targets) (_ *limits, err error) {
	n := env.Summary.Nodes
	l := &limits{}
	defer func() {
		if err != nil {
			l.Free()
		}
	}()
	if l.nodes, err = graph.NodesAlone(ctx, env.Env); err != nil {
		return nil, err
	}
	if l.state, err = graph.Stationary(ctx, env.Env, l.nodes, group.Solo(n), env.Plan.LSI.R); err != nil {
		return nil, err
	}
	if !targets.All() {
		if l.node, err = mem.Alloc[uint32](env.Budget, targets.Len(), "nodes of target rows"); err != nil {
			return nil, err
		}
		at := 0
		for i := range n {
			if targets.Has(i) {
				l.node.S[at] = uint32(i)
				at++
			}
		}
	}
	columns := packed.Panels(env.Summary.Features) * packed.PanelColumns
	if l.mean, err = l.state.NewMean(columns); err != nil {
		return nil, err
	}
	threads := env.Resources.Threads
	parts, first := min(max(threads, 1), columns/packed.PanelColumns), int64(0)
	err = env.FeatureTiles().Rows(ctx, 0, columns, func(rows []float32) error {
		_ = share.Ranges(threads, len(rows)/columns, scaledRows, func(lo, hi int) error {
			l.state.Scale(first+int64(lo), rows[lo*columns:hi*columns], columns)
			return nil
		})
		// Each sum runs in ascending order of row, so threads divide the columns.
		_ = share.Each(parts, parts, func(part int) error {
			l.mean.Add(first, rows, columns*part/parts, columns*(part+1)/parts)
			return nil
		})
		first += int64(len(rows) / columns)
		return ctx.Err()
	})
	l.mean.Finish()
	return l, err
}

// scaledRows is the number of rows that a thread scales at a time.
const scaledRows = 1 << 10

// readsLimits adds the cost of computing the stationary rows for this number of stored rows and columns, beside held bytes. It returns the
// bytes that are held from then on.
func readsLimits(s *estimate.Sheet, rule smooth.Rule, held, stored int64, columns int) int64 {
	held += s.OnGraph().NodeBytes()
	if stored < s.Nodes {
		held += 4*stored + 4096 + smooth.TargetsBytes(s.Nodes)
	}
	count := s.Components
	if s.Plan.LSI.Stationary == "global" {
		count = 1
	}
	held += 8*count*int64(columns) + 4096
	batch := int(min(int64(max(hops.BatchValues/columns, 1)), s.Nodes))
	reading := held + tiles.ReadBytes(columns, batch, int64(shards.TileRowBytes(s.Half)))
	s.Takes(reading, reading)
	s.ReadNodes(1)
	s.BytesRead += estimate.TileBytes(s.Nodes, s.Features, s.Half)
	if rule.NodeDependent {
		held += 2*s.Nodes + 4096
		s.ReadK()
	}
	return held
}

// blending returns how hops become rows of features under the rule nafs.
func (env smoothRun) blending(ctx context.Context, m *smoothedTiles, a assembly, half bool) (assembly, error) {
	targets, err := env.targets(ctx)
	if err != nil {
		return a, err
	}
	rule, err := RuleOf(env.Plan)
	if err != nil {
		return a, err
	}
	l, err := stage.Keep(env.Session, "stationary rows", nil, func() (*limits, error) { return env.findLimits(ctx, targets) })
	if err != nil {
		return a, err
	}
	var k []uint16
	if rule.NodeDependent {
		if k, err = env.table(ctx); err != nil {
			return a, err
		}
	}
	last := func(node int64) int {
		if k == nil {
			return rule.Hops(0)
		}
		return rule.Hops(int(k[node]))
	}
	stride := m.out.Panels() * packed.PanelColumns
	a = a.joining(m, half)
	a.picker = func() pick {
		b := smooth.NewBlend(len(m.out.Keep), m.out.Features)
		return func(values []float32, row int64, columns []float32) {
			i := l.of(row)
			b.Row(values, columns, stride, last(i), l.mean.Row(i), l.state.Up(i))
		}
	}
	return a, nil
}

// joining returns the assembly of feature rows made from all kept hops.
func (a assembly) joining(m *smoothedTiles, half bool) assembly {
	a.kind, a.folder = catalog.KindSmoothed, "smoothed"
	a.schema = shards.RowSchema{Column: "feature", Width: m.out.Features, Half: half}
	a.panels = len(m.out.Keep) * m.out.Panels()
	a.joined = a.panels * packed.PanelColumns
	return a
}
