package stage

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"

	"ndls/catalog"
	"ndls/estimate"
	"ndls/group"
	"ndls/hops"
	"ndls/internal/control"
	"ndls/internal/direct"
	"ndls/internal/packed"
	"ndls/lsi"
	"ndls/partition"
	"ndls/shards"
	"ndls/spmv"
)

// Several workers, or groups of workers that share the rows of a panel, find K together, each with some panels of the
// probe, in stretches of hops. In a stretch each task of Columns makes the hops of its panels, each of Strips those of
// its rows, and commits
//
//	lsi/squares/…   for each piece of the nodes and each panel, the squared lengths of the rows
//	                after each hop, of the nodes of which K is not known: float64, little-endian
//	lsi/rows/…      for each panel, the rows after the last hop
//
// The tasks of Rows add the squared lengths of the panels of a piece, hop by hop, and commit
//
//	lsi/found/…     K of its nodes for each ε: uint16, little-endian, 65535 where it is not known;
//	                and distances of those of the sample
//
// When K of all nodes is known, or after Kmax hops, the task of the whole stage makes the K table of
// the pieces. All other files go as soon as no task reads them any more.

const (
	// piecesOfLSI is how many nodes a piece has.
	piecesOfLSI = partition.BlockRows
	// mostPanels is how many panels workers share at most: a task of Rows opens a file of each.
	mostPanels = 256
	// sharedWork is how many nodes and directed edges, times the panels, there must be so that
	// sharing pays: then a hop of all panels takes some tenths of a second.
	sharedWork = 1 << 26
)

// The first stretch is short, since most nodes settle in it: the squared lengths of later hops are
// those of few nodes. Each of the others is as long as distances let expect that it takes, and at
// most half as long as all before.
const (
	firstStretch    = 4
	shortestStretch = 8
	longestStretch  = 32
	// leastStretch is how many hops it takes to see how distances fall.
	leastStretch = 3
)

// stretchEnd is the last hop that a stretch may have which begins with rows of a hop, -1 for those of
// the probe.
func stretchEnd(from, kmax int) int {
	if from < 0 {
		return min(firstStretch, kmax)
	}
	return min(from+min(max(from/2, shortestStretch), longestStretch), kmax)
}

// probePanels is the number of panels of the probe of a graph.
func probePanels(p control.Plan, nodes, edges int64, features int) int {
	return packed.Panels(probeWidth(sized(p.LSI, nodes, edges, features), nodes, features))
}

// probeWidth is the number of columns of a probe.
func probeWidth(o control.LSIOptions, nodes int64, features int) int {
	switch o.Mode {
	case "influence-exact":
		return int(min(nodes, math.MaxInt32-packed.PanelColumns))
	case "feature":
		return max(features, 1)
	}
	return o.Probes
}

// sharesPanels says whether workers may share so many panels.
func sharesPanels(p control.Plan, panels int) bool {
	return !p.SlackSettles() && 1 < panels && panels <= mostPanels
}

// panelsTogether is how many panels belong in the same task of a worker. A row of 16 float16 values is
// half a cache line, and a pass over two panels takes hardly longer than over one: they stay together.
func panelsTogether(p control.Plan, weighted bool) int {
	if lsi.Precision(sketches(p.LSI), weighted, (&Env{Plan: p}).precision()) == spmv.Float16 {
		return 2
	}
	return 1
}

// tasksOfLSI is how many tasks so many workers can have at most of so many panels.
func tasksOfLSI(p control.Plan, weighted bool, panels, workers int) int {
	together := panelsTogether(p, weighted)
	return min((panels+together-1)/together, workers)
}

// paysToShare says whether sharing panels of such a graph saves time.
func paysToShare(p control.Plan, nodes, edges int64, weighted bool, panels int) bool {
	return float64(nodes+2*edges)*float64(panels) >= sharedWork && tasksOfLSI(p, weighted, panels, panels) > 1
}

// lsiProgress is how far workers are that share the panels.
type lsiProgress struct {
	kmax  int
	nodes int64
	// known is up to which hop K of each piece is known, Kmax where it is known of all its nodes; at
	// is the hop of the rows of each panel, where panels may be shared. Both are -1 before the first
	// stretch.
	known, at []int
	// The stretch goes from a hop to another one. Both are Kmax where nothing is left.
	from, to int
}

// lsiProgressOf reads it from the catalogue.
func lsiProgressOf(p control.Plan, sum shards.Summary, cat *catalog.Catalog) lsiProgress {
	pieces := int((sum.Nodes + piecesOfLSI - 1) / piecesOfLSI)
	panels := probePanels(p, sum.Nodes, sum.Edges, sum.Features)
	if !sharesPanels(p, panels) {
		panels = 0
	}
	x := lsiProgress{kmax: p.LSI.Kmax, nodes: sum.Nodes, known: before(pieces), at: before(panels), from: p.LSI.Kmax, to: p.LSI.Kmax}
	expected := before(pieces) // after which hop K is expected to be known
	for _, e := range cat.Entries(catalog.KindLSIFound) {
		if e.Run == 0 && int(e.Interval) < pieces && int(e.Hop) > x.known[e.Interval] {
			x.known[e.Interval], expected[e.Interval] = int(e.Hop), int(e.Last)
		}
	}
	rows := map[[2]int][]catalog.Entry{} // by panel and hop
	for _, e := range cat.Entries(catalog.KindLSIRows) {
		of := [2]int{int(e.Block), int(e.Hop)}
		rows[of] = append(rows[of], e)
	}
	for of, list := range rows {
		panel, hop := of[0], of[1]
		if _, whole := Cover(list, x.nodes); whole && panel < len(x.at) {
			x.at[panel] = max(x.at[panel], hop)
		}
	}
	for _, hop := range x.known {
		x.from = min(x.from, hop)
	}
	if x.from == x.kmax {
		return x
	}
	for _, hop := range x.at {
		if hop > x.from {
			x.to = hop // the stretch is under way
			return x
		}
	}
	x.to = stretchEnd(x.from, x.kmax)
	if x.from < 0 {
		return x
	}
	last := x.from + leastStretch
	for piece, hop := range x.known {
		if hop == x.from {
			last = max(last, expected[piece]+1) // distances fall ever more slowly
		}
	}
	x.to = min(x.to, last)
	return x
}

// rowsOf are the files that have rows of a panel after a hop.
func rowsOf(cat *catalog.Catalog, panel, hop int) []catalog.Entry {
	return slices.DeleteFunc(cat.Entries(catalog.KindLSIRows), func(e catalog.Entry) bool { return int(e.Block) != panel || int(e.Hop) != hop })
}

// agreed is what all workers of a group take for granted: of each panel the fewest hops that one of them finds committed.
func (x lsiProgress) agreed(ctx context.Context, members group.Group) (lsiProgress, error) {
	mine := []float64{float64(x.from), float64(x.to)}
	stretch := len(mine)
	for _, hop := range x.at {
		mine = append(mine, float64(hop))
	}
	all, err := members.AllGather(ctx, mine)
	if err != nil {
		return x, err
	}
	x.at = slices.Clone(x.at)
	for _, theirs := range all {
		if !slices.Equal(theirs[:stretch], mine[:stretch]) {
			return x, fmt.Errorf("a worker of the group is about to make hops %v of the probe, this one %v", theirs[:stretch], mine[:stretch])
		}
		for panel, hop := range theirs[stretch:] {
			x.at[panel] = min(x.at[panel], int(hop))
		}
	}
	return x, nil
}

// before are n hops before the first.
func before(n int) []int {
	all := make([]int, n)
	for i := range all {
		all[i] = -1
	}
	return all
}

// bounds are the nodes [lo, hi) of a piece.
func (x lsiProgress) bounds(piece int) (lo, hi int64) {
	lo = int64(piece) * piecesOfLSI
	return lo, min(lo+piecesOfLSI, x.nodes)
}

// begun says whether workers have shared the panels.
func (x lsiProgress) begun() bool { return x.from >= 0 || len(x.missing(x.at, -1)) < len(x.at) }

// missing lists those that are not beyond a hop.
func (lsiProgress) missing(hops []int, hop int) (list []partition.Piece) {
	for i, at := range hops {
		if at <= hop {
			list = append(list, partition.Piece{First: i, Last: i + 1})
		}
	}
	return list
}

// superseded says whether a file can go: a later one has taken its place, or no task reads it any more. If only some
// workers of a group have ended a stretch, all of it is made again, maybe by workers that cut the rows in another way.
func (x lsiProgress) superseded(e catalog.Entry) bool {
	switch e.Kind {
	case catalog.KindLSIRows:
		return int(e.Hop) < x.at[e.Block] || int(e.Hop) > x.at[e.Block] && e.Hi > 0 && e.Hi-e.Lo < x.nodes
	case catalog.KindLSISquares:
		lo, hi := x.bounds(int(e.Interval))
		return int(e.Hop) <= x.from || int(e.Hop) > x.at[e.Block] && e.Hi > 0 && e.Hi-e.Lo < hi-lo
	case catalog.KindLSIFound:
		return int(e.Hop) < x.known[e.Interval]
	}
	return false
}

// isLSIShare says whether a file is one that workers leave each other.
func isLSIShare(kind string) bool {
	switch kind {
	case catalog.KindLSIPart, catalog.KindLSIRows, catalog.KindLSISquares, catalog.KindLSIFound:
		return true
	}
	return false
}

// leftOfLSI is what workers that share the panels do next.
func leftOfLSI(p control.Plan, sum shards.Summary, cat *catalog.Catalog) partition.Left {
	x := lsiProgressOf(p, sum, cat)
	_, shared := lsiRun{&Env{Catalog: cat}}.lsiShares(sum.Nodes)
	if shared || len(cat.Entries(catalog.KindLSI)) == intervals(sum) || !sharesPanels(p, len(x.at)) {
		return partition.Left{}
	}
	left := partition.Left{Shared: x.begun(), Small: !paysToShare(p, sum.Nodes, sum.Edges, sum.Weighted, len(x.at)), Superseded: x.superseded}
	if x.from == x.kmax {
		return left
	}
	// Panels that are at the end of the stretch already wait for the others.
	if left.Pieces = x.missing(x.at, x.to-1); len(left.Pieces) > 0 {
		left.Step, left.Count = string(control.Columns), func(workers int) int { return tasksOfLSI(p, sum.Weighted, len(x.at), workers) }
		return left
	}
	left.Step, left.Pieces = string(control.Rows), x.missing(x.known, x.from)
	return left
}

// panelsOfGroup makes the hops of the task's panels, whose rows a group of workers shares.
func (env lsiRun) panelsOfGroup(ctx context.Context) error {
	first, last := env.Task.FirstPanel, env.Task.LastPanel
	x := lsiProgressOf(env.Plan, env.Summary, env.Catalog)
	if first < 0 || first >= last || last > len(x.at) {
		return env.NoPart()
	}
	if slices.Min(x.at[first:last]) >= x.to {
		return nil
	}
	return env.Peers.Work(ctx, x.nodes, func(ctx context.Context) error { return env.stretch(ctx, first, last) })
}

// stretch makes the hops of panels [first, last), of the stretch that is next.
func (env lsiRun) stretch(ctx context.Context, first, last int) error {
	x, err := lsiProgressOf(env.Plan, env.Summary, env.Catalog).agreed(ctx, env.Group)
	if err != nil {
		return err
	}
	for ; first < last; first++ { // those that are done lie side by side with others
		if x.at[first] >= x.to {
			continue
		}
		end := first + 1
		for end < last && x.at[end] == x.at[first] {
			end++
		}
		if err := env.stretchPanels(ctx, x, first, end); err != nil {
			return err
		}
		first = end - 1
	}
	return nil
}

// stretchPanels makes the hops of panels that are at the same hop.
func (env lsiRun) stretchPanels(ctx context.Context, x lsiProgress, first, last int) (err error) {
	if x.at[first] != x.from {
		return nil // this attempt comes after another one has gone on
	}
	g, err := env.graph(ctx)
	if err != nil {
		return err
	}
	o := env.lsiOptions()
	var probe lsi.Probe
	if x.from < 0 {
		ids, err := env.ids(ctx, x.nodes)
		if err != nil {
			return err
		}
		defer ids.Free()
		var free func()
		if probe, free, err = env.probe(ctx, g.summary, ids.S); err != nil {
			return err
		}
		defer free()
	}
	state, err := g.state(ctx)
	if err != nil {
		return err
	}
	defer state.Free()
	scratch, err := direct.NewScratch(env.Resources.Scratch)
	if err != nil {
		return fmt.Errorf("scratch file: %w", err)
	}
	defer func() { err = errors.Join(err, scratch.Close()) }()
	f, err := env.newSquares(ctx, x, g.lo, g.hi, scratch)
	if err != nil {
		return err
	}
	defer f.free()
	free := g.capacity((last - first) * packed.PanelColumns)
	free.Precision = lsi.Precision(sketches(o), g.summary.Weighted, free.Precision)
	fits, err := g.agree(ctx, free, func(c hops.Capacity) (spmv.Layout, error) {
		o, _, err := lsi.Options{}.StretchPlan(c)
		return o.Layout, err
	})
	if err != nil {
		return err
	}
	options, need, err := lsi.Options{}.StretchPlan(fits)
	if err != nil {
		return g.refused("lsi", need, err)
	}
	f.first, f.block = first, options.Layout.Columns/packed.PanelColumns
	stats, err := lsi.Stretch{
		First: first, Last: last, From: x.from, To: x.to,
		Rows:    func(panel int) []lsi.Saved { return env.savedRows(ctx, panel, x.from, g.lo) },
		Squares: f.put,
		Save: func(ctx context.Context, panel int, write func(io.Writer) error) error {
			if err := f.commit(ctx, panel); err != nil {
				return err
			}
			return env.commitRowsOf(ctx, panel, x.to, g.lo, g.hi, write)
		},
	}.Run(ctx, g.hops(state), probe, options)
	g.passed(stats, options.Layout)
	return err
}

// savedRows lists the files that have the rows of a panel after a hop, counted from row lo of the graph.
func (env lsiRun) savedRows(ctx context.Context, panel, hop int, lo int64) (files []lsi.Saved) {
	parts, _ := Cover(rowsOf(env.Catalog, panel, hop), env.Summary.Nodes)
	for _, part := range parts {
		first, end := holds(part.Entry, env.Summary.Nodes)
		files = append(files, lsi.Saved{First: first - lo, Rows: end - first, Open: func() (io.ReadCloser, error) { return env.Catalog.Stream(ctx, part.Entry) }})
	}
	return files
}

// ofShare is the end of the name of a file that a worker of a group commits, of rows [lo, hi).
func (env lsiRun) ofShare(lo, hi int64) string {
	if !env.isShare() {
		return ""
	}
	return fmt.Sprintf(".rows-%d-%d", lo, hi)
}

// commitRowsOf commits rows [lo, hi) of a panel after a hop: the panel has then ended its stretch, if the other rows
// have as well.
func (env lsiRun) commitRowsOf(ctx context.Context, panel, hop int, lo, hi int64, write func(io.Writer) error) error {
	path := fmt.Sprintf("lsi/rows/%05d-%05d%s", panel, hop, env.ofShare(lo, hi))
	f, err := env.Catalog.Create(ctx, catalog.Describe(catalog.KindLSIRows, path).Holding(lo, hi).Panels(panel, panel+1).AtHop(hop))
	if err != nil {
		return err
	}
	defer f.Abort()
	if err := write(f); err != nil {
		return err
	}
	f.Rows = hi - lo
	env.Disk.Look()
	return env.Catalog.Commit(ctx, f)
}

// sharedPanels is how many panels of the probe workers of a sheet share, or groups of them, 0 if they do not.
func sharedPanels(s *estimate.Sheet) int {
	panels := probePanels(s.Plan, s.Nodes, s.Edges, s.Features)
	shares := s.Workers > 1 && paysToShare(s.Plan, s.Nodes, s.Edges, s.Weighted, panels)
	if s.Members() > 1 {
		shares = s.Groups() > 1
	}
	if !shares || !sharesPanels(s.Plan, panels) {
		return 0
	}
	return panels
}

// StretchEnds are the last hops of the stretches in which workers that share panels see a hop.
func StretchEnds(last, kmax int) (ends []int) {
	for from := -1; from < min(last, kmax); {
		from = min(stretchEnd(from, kmax), max(last, firstStretch))
		ends = append(ends, from)
	}
	return ends
}
