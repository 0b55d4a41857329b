package estimate

import (
	"math"

	"ndls/hops"
	"ndls/plan"
)

// slowest lists the number of hops after which the last of so many nodes of a graph with few hops
// has settled, for ε 0.03 and r 0.5. Up to 4.3e5 nodes it follows the K tables of papers100m: with
// tails=0, at scale 1/64 and 1/16, in which one of so many nodes needs as many hops. The other
// entries are the largest K at scale 1/64, 1/16, 1/4 and 1, which one or two nodes of the drawn
// graph decide: at 1/8 it is 13.
var slowest = []struct{ nodes, hops float64 }{
	{1, 3}, {36, 4}, {500, 5}, {1.7e3, 6}, {1.2e4, 7}, {1.2e5, 8}, {434e3, 9}, {1.735e6, 13}, {6.94e6, 21}, {27.8e6, 27}, {111e6, 20},
}

// slowestEpsilon is the ε of these hops. For another ε the distance of a node is assumed to fall by
// the same factor with each hop; that was not measured.
const slowestEpsilon = 0.03

// lastHop returns the number of hops after which the last of so many nodes of a generated graph has
// settled.
func lastHop(nodes int64, epsilon float64) float64 {
	n, at := float64(nodes), slowest[0]
	hops := at.hops
	for _, next := range slowest[1:] {
		if n <= at.nodes {
			break
		}
		part := min(math.Log(n/at.nodes)/math.Log(next.nodes/at.nodes), 1)
		hops, at = at.hops+part*(next.hops-at.hops), next
	}
	if epsilon > 0 && epsilon < 1 {
		hops *= math.Log(epsilon) / math.Log(slowestEpsilon)
	}
	return hops
}

// hopsOf returns the expected number of hops, at least one, after which the last of some nodes
// settles.
func (c Counts) hopsOf(nodes int64, epsilon float64) int {
	hops := max(int(math.Round(lastHop(nodes, epsilon))), 1)
	if c.Hops > 0 {
		hops = min(hops, c.Hops)
	}
	return hops
}

// ExpectedHops returns the Hops to plan with before the K table is known: Kmax, unless the graph is
// generated without chains. Some nodes of every published graph that was tried reach a Kmax of 200
// (Cora, Citeseer, Coauthor CS, facebook, web-NotreDame).
func (c Counts) ExpectedHops(o plan.LSIOptions) int {
	if c.FewHops {
		return min(c.hopsOf(c.Nodes, o.Epsilon), o.Kmax)
	}
	return o.Kmax
}

// usualHops is the number of hops after which almost all nodes of a generated graph have settled.
// The few other nodes hang on the rest by few edges, as in chains.
const usualHops = 9

// needless returns the number of passes, as a sum over the last hops, whose edges lead into rows
// that these hops do not need, for so many targets. Each step back from the rows that count the
// last hop multiplies the needed edges by the neighbours of a row, until all edges are needed. From
// nodes with unusually many hops the first step or two lead to fewer edges. Measured on
// papers100m: with tails=0, with 28 edges a row, from the last hop back: hop 13 of all rows at 1/64 needs 1,
// then 10, 525, 2e4, 5e5, 9e6 of 49e6 edges; hop 21 at 1/16 one, then 4, 42, 1.6e3, 7e4, 2e6, 4e7
// of 194e6; hop 9 of labelled rows at 1/4 14, then 670, 3e4, 1e6, 4e7, 3e8 of 777e6; and hop 6 of
// validation rows at 1/64 80, then 4e3, 1e5, 3e6, 3e7.
func (s *Sheet) needless(targets int64, last int) float64 {
	edges := max(float64(s.OnGraph().edgesOfPass()), 1)
	spread := max(edges/float64(s.Nodes), 1)
	needed := s.countedAt(targets, last) * spread
	if !s.FewHops || last > usualHops {
		needed /= spread * math.Sqrt(spread)
	}
	passes := 0.0
	for range min(last, hops.MostEarly) {
		passes += max(1-needed/edges, 0)
		needed *= spread
	}
	return passes
}

// countedAt returns the expected number of targets that count the last hop: one, or, if hops end
// before the last node of a generated graph has settled, the number of nodes that are left.
func (s *Sheet) countedAt(targets int64, last int) float64 {
	for _, x := range slowest {
		if s.FewHops && x.nodes < float64(targets) && lastHop(int64(x.nodes), s.Plan.LSI.Epsilon) >= float64(last) {
			return float64(targets) / x.nodes
		}
	}
	return 1
}
