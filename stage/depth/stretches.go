package depth

import (
	"context"
	"fmt"
	"math"
	"slices"

	"ndls/catalog"
	"ndls/estimate"
	"ndls/group"
	"ndls/internal/control"
	"ndls/internal/packed"
	"ndls/lsi"
	"ndls/partition"
	"ndls/plan"
	"ndls/shards"
	"ndls/spmv"
	"ndls/stage"
	"ndls/stage/graph"
	"ndls/steps"
)

// Several workers find K together, each with some panels of the probe, in stretches of hops. A group of workers may share the rows of a
// panel. In a stretch, each task of Columns makes the hops of its panels, and each task of Strips the hops of its rows. They commit
//
//	lsi/squares/…   for each piece of the nodes and each panel, the squared lengths of the rows
//	                after each hop, of the nodes whose K is unknown: float64, little-endian
//	lsi/rows/…      for each panel, the rows after the last hop
//
// If polynomials make the hops after the first ones (lsi.Options.Few), the last stretch goes from there to Kmax. Then lsi/squares has the
// products from which the squared lengths follow, node by node, and lsi/rows has no rows.
//
// The tasks of Rows add the squared lengths of all panels of a piece, hop by hop, and commit
//
//	lsi/found/…     K of its nodes for each ε: uint16, little-endian, 65535 if unknown;
//	                and the distances of the sampled nodes
//
// When K of all nodes is known, or after Kmax hops, the task of the whole stage makes the K table from the pieces. All other files are
// removed once no task reads them any more.

const (
	// piecesOfLSI is the number of nodes in a piece.
	piecesOfLSI = partition.BlockRows
	// mostPanels is the largest number of panels that workers share: a task of Rows opens a file per panel.
	mostPanels = 256
	// sharedWork is the least number of nodes and directed edges, times panels, for which sharing pays. A hop of all panels then takes some
	// tenths of a second.
	sharedWork = 1 << 26
)

// The first stretch is short, because most nodes settle in it: later squared lengths belong to few nodes. Each later stretch is as long as
// the number of nodes with unknown K suggests, and at most half as long as all before it.
const (
	firstStretch    = 4
	shortestStretch = 8
	// leastStretch is the least number of hops of a later stretch: the last nodes need more than the fall of their number suggests.
	leastStretch = 3
)

// stretchEnd returns the last hop that a stretch may have if it begins after hop from; -1 stands for the probe itself. A stretch ends
// where polynomials may replace the other hops.
func stretchEnd(from int, o lsi.Options) int {
	if from < 0 {
		return min(firstStretch, o.Kmax)
	}
	if from < o.PlainHops() {
		return o.PlainHops()
	}
	return min(from+min(max(from/2, shortestStretch), lsi.Longest), o.NextPlain(from))
}

// probePanels returns the number of panels of the probe for a graph.
func probePanels(p plan.Options, nodes, edges int64, features int) int {
	return packed.Panels(probeWidth(sized(p.LSI, nodes, edges, features), nodes, features))
}

// probeWidth returns the number of columns of the probe.
func probeWidth(o plan.LSIOptions, nodes int64, features int) int {
	switch o.Mode {
	case "influence-exact":
		return int(min(nodes, math.MaxInt32-packed.PanelColumns))
	case "feature":
		return max(features, 1)
	}
	return o.Probes + o.Directions
}

// dividedPanels returns the number of panels that workers share, 1 if they are too many.
func dividedPanels(p plan.Options, nodes, edges int64, features int) int {
	if panels := probePanels(p, nodes, edges, features); panels <= mostPanels {
		return panels
	}
	return 1
}

// panelsTogether returns the number of panels that one task of a worker should hold. A row of 16 float16 values is half a cache line, so a
// pass over two panels takes hardly longer than over one.
func panelsTogether(p plan.Options, weighted bool) int {
	if lsi.Precision(sketches(p.LSI), weighted, graph.Precision(p)) == spmv.Float16 {
		return 2
	}
	return 1
}

// tasksOfLSI returns the largest number of tasks into which panels can be divided for workers.
func tasksOfLSI(p plan.Options, weighted bool, panels, workers int) int {
	together := panelsTogether(p, weighted)
	return min((panels+together-1)/together, workers)
}

// paysToShare reports whether sharing the panels of a graph of this size saves time.
func paysToShare(p plan.Options, nodes, edges int64, weighted bool, panels int) bool {
	return float64(nodes+2*edges)*float64(panels) >= sharedWork && tasksOfLSI(p, weighted, panels, panels) > 1
}

// lsiProgress holds the progress of workers that share the panels.
type lsiProgress struct {
	kmax  int
	nodes int64
	// known holds, for each piece, the hop up to which K is known; Kmax if it is known for all nodes. at holds, for each panel, the hop of
	// its stored rows, if panels may be shared. Values are -1 before the first stretch.
	known, at []int
	// The stretch makes hops from+1 to to, by polynomials if few is true. Both are Kmax if nothing is left.
	from, to int
	few      bool
}

// lsiProgressOf reads the progress from the catalogue.
func lsiProgressOf(p plan.Options, sum shards.Summary, cat *catalog.Catalog) lsiProgress {
	pieces := int((sum.Nodes + piecesOfLSI - 1) / piecesOfLSI)
	panels := dividedPanels(p, sum.Nodes, sum.Edges, sum.Features)
	x := lsiProgress{kmax: p.LSI.Kmax, nodes: sum.Nodes, known: before(pieces), at: before(panels), from: p.LSI.Kmax, to: p.LSI.Kmax}
	left := make([]int64, pieces) // by piece, the nodes whose K is unknown
	before := map[int]int64{}     // by last hop of a stretch, the nodes whose K was unknown one hop before
	if _, all := foundAll(cat, x.nodes, x.kmax, p.LSI.Epsilon); all {
		x.from = x.kmax
		return x
	}
	for _, e := range cat.Entries(catalog.KindLSIFound) {
		if holdsK(e, p.LSI.Epsilon) && ofPiece(e, pieces) && int(e.Hop) > x.known[e.Interval] {
			x.known[e.Interval], left[e.Interval] = int(e.Hop), e.Unknown
		}
	}
	for _, e := range cat.Entries(catalog.KindLSISampled) {
		if ofPiece(e, pieces) && int(e.Hop) == x.known[e.Interval] {
			before[int(e.Until)] += e.Unknown
		}
	}
	rows := map[[2]int][]catalog.Entry{} // by panel and hop
	for _, e := range cat.Entries(catalog.KindLSIRows) {
		of := [2]int{int(e.Block), int(e.Hop)}
		rows[of] = append(rows[of], e)
	}
	for of, list := range rows {
		panel, hop := of[0], of[1]
		if _, whole := catalog.Cover(list, 0, x.nodes); whole && panel < len(x.at) {
			x.at[panel] = max(x.at[panel], hop)
		}
	}
	for _, hop := range x.known {
		x.from = min(x.from, hop)
	}
	o := optionsOfK(p)
	unknown := int64(0)
	for _, nodes := range left {
		unknown += nodes
	}
	if o.Few(x.from, sum.Nodes, before[x.from], unknown) {
		x.to, x.few = x.kmax, true
		return x
	}
	for _, hop := range x.at {
		if hop > x.from {
			x.to = hop // the stretch is under way
			return x
		}
	}
	x.to = stretchEnd(x.from, o)
	if x.from < o.PlainHops() {
		return x
	}
	last := x.from + leastStretch
	for last < x.to && lsi.MoreThan(last-x.from, before[x.from], unknown) {
		last++
	}
	x.to = min(x.to, last)
	return x
}

// rowsOf returns the files with the rows of a panel after a hop.
func rowsOf(cat *catalog.Catalog, panel, hop int) []catalog.Entry {
	return slices.DeleteFunc(cat.Entries(catalog.KindLSIRows),
		func(e catalog.Entry) bool { return int(e.Block) != panel || int(e.Hop) != hop })
}

// agreed returns the progress on which all workers of a group agree: for each panel, the fewest hops that one of them finds committed.
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
			return x, fmt.Errorf("group members disagree on the next hops: a peer has %v, this worker %v; the catalogue views differ, retry", theirs[:stretch], mine[:stretch])
		}
		for panel, hop := range theirs[stretch:] {
			x.at[panel] = min(x.at[panel], int(hop))
		}
	}
	return x, nil
}

// before returns n times -1, the hop before the first.
func before(n int) []int {
	all := make([]int, n)
	for i := range all {
		all[i] = -1
	}
	return all
}

// bounds returns the nodes [lo, hi) of a piece.
func (x lsiProgress) bounds(piece int) (lo, hi int64) {
	lo = int64(piece) * piecesOfLSI
	return lo, min(lo+piecesOfLSI, x.nodes)
}

// begun reports whether workers have shared the panels.
func (x lsiProgress) begun() bool { return x.from >= 0 || len(x.missing(x.at, -1)) < len(x.at) }

// missing lists the pieces or panels that are at most at a hop.
func (lsiProgress) missing(hops []int, hop int) (list []steps.Piece) {
	for i, at := range hops {
		if at <= hop {
			list = append(list, steps.Unit(i))
		}
	}
	return list
}

// superseded reports whether a file can be removed: a later one replaces it, or no task reads it any more. If only some workers of a group
// have ended a stretch, all of it is made again, perhaps by workers that divide the rows differently.
func (x lsiProgress) superseded(e catalog.Entry) bool {
	switch e.Kind {
	case catalog.KindLSIRows:
		return int(e.Hop) < x.at[e.Block] || int(e.Hop) > x.at[e.Block] && e.Hi > 0 && e.Hi-e.Lo < x.nodes
	case catalog.KindLSISquares:
		lo, hi := x.bounds(int(e.Interval))
		return int(e.Hop) <= x.from || int(e.Hop) > x.at[e.Block] && e.Hi > 0 && e.Hi-e.Lo < hi-lo
	case catalog.KindLSIFound, catalog.KindLSISampled:
		return ofPiece(e, len(x.known)) && int(e.Hop) < x.known[e.Interval]
	}
	return false
}

// ofPiece reports whether a file is of one of so many pieces. One with K of the rows of a worker that had all panels is not.
func ofPiece(e catalog.Entry, pieces int) bool { return 0 <= e.Interval && int(e.Interval) < pieces }

// isLSIShare reports whether workers leave each other files of this kind.
func isLSIShare(kind string) bool {
	switch kind {
	case catalog.KindLSIRows, catalog.KindLSISquares, catalog.KindLSIFound, catalog.KindLSISampled:
		return true
	}
	return false
}

// leftOfLSI returns the next work of workers that share the panels.
func leftOfLSI(p plan.Options, sum shards.Summary, cat *catalog.Catalog) steps.Left {
	x := lsiProgressOf(p, sum, cat)
	if len(cat.Entries(catalog.KindLSI)) == stage.Intervals(sum) {
		return steps.Left{}
	}
	left := steps.Left{Shared: x.begun(), Small: !paysToShare(p, sum.Nodes, sum.Edges, sum.Weighted, len(x.at)), Superseded: x.superseded}
	if x.from == x.kmax {
		return left
	}
	// Panels that have reached the end of the stretch wait for the others.
	if left.Pieces = x.missing(x.at, x.to-1); len(left.Pieces) > 0 {
		left.Step, left.Count = string(control.Columns), func(workers int) int { return tasksOfLSI(p, sum.Weighted, len(x.at), workers) }
		return left
	}
	left.Step, left.Pieces = string(control.Rows), x.missing(x.known, x.from)
	return left
}

// ofShare returns the suffix of the name of a file that a worker of a group commits for rows [lo, hi).
func (env lsiRun) ofShare(lo, hi int64) string {
	if !env.IsShare() {
		return ""
	}
	return fmt.Sprintf(".rows-%d-%d", lo, hi)
}

// sharedPanels returns the number of probe panels that the workers of a sheet, or groups of them, share; 0 if they do not.
func sharedPanels(s *estimate.Sheet) int {
	panels := dividedPanels(s.Plan, s.Nodes, s.Edges, s.Features)
	shares := s.Workers > 1 && paysToShare(s.Plan, s.Nodes, s.Edges, s.Weighted, panels)
	if s.Members() > 1 {
		shares = s.Groups() > 1
	}
	if !shares || panels == 1 {
		return 0
	}
	return panels
}

// StretchEnds returns the last hop of each stretch in which workers that share panels are expected to make each hop, if the last node
// settles after so many. If few is not zero, polynomials then make the others.
func StretchEnds(last int, p plan.Options) (ends []int, few lsi.Options) {
	o := optionsOfK(p)
	plain := o.PlainHops()
	if o.FewExpected(last) {
		last, few = plain, o
	}
	for from := -1; from < min(last, o.Kmax); {
		from = min(stretchEnd(from, o), max(last, firstStretch))
		ends = append(ends, from)
	}
	return ends, few
}
