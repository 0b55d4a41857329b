package dataset

import (
	"context"
	"fmt"
	"math"
	"math/bits"
	"slices"
	"strconv"
	"strings"

	"ndls/dataset/graph"
	"ndls/internal/rng"
)

// What is published of ogbn-papers100M (Hu et al., NeurIPS 2020): citations of
// which the last of three years are held out, words embedded in 128 features.
const (
	papersNodes    = 111_059_956
	papersEdges    = 1_615_685_872
	papersTrain    = 1_207_179
	papersValid    = 125_265
	papersTest     = 214_338
	papersClasses  = 172
	papersFeatures = 128
	// papersMaxScale is the largest divisor of the counts above.
	papersMaxScale = 4096
)

// The mixture of citations: inside a field, to a near field, and to any paper.
// With them 65 to 70 % of the edges are inside a class.
const (
	sameField = 0.65
	nearField = 0.20
	nearReach = 32
	// maxField is the number of papers of a field, but fields are smaller where
	// there would be fewer of them than classes.
	maxField = 1024
)

// papers describes a graph of the shape of ogbn-papers100M. Node ids are cut
// into fields of equal length; a field's papers share a class and mostly cite
// each other, so that near ids have much in common, as in a list ordered by
// subject and time. Edges are drawn with repetition; self-loops occur.
type papers struct {
	divisor int64
	seed    uint64
	weights int64 // octaves over which they are spread, 0 without weights
	// tails is the share of the nodes that are no papers of a field, but hang in chains, and apart
	// the share of the chains that hang on no paper.
	tails, apart float64
	uneven       bool // classes differ in size
	slow         bool // papers cite their own group and near ones

	nodes, edges, train, valid, labelled int64
	// The first papers nodes are not of the tails, and the first cited edges are theirs.
	papers, cited int64

	field, fields int64
	// Citations are drawn by units of papers with consecutive ids: fields, or groups where slow.
	unit, units int64
	// fame orders the nodes by how often papers of all fields cite them; topics
	// orders the fields, which take the classes in turn; held orders the labelled
	// nodes: train, valid, test.
	fame, topics, held *synthetic
	means              []int32  // classes × features, in units of papersUnit
	drawn              rng.Stem // of the random numbers of edges
	starts             []uint16 // of each field: the place of its paper of rank 0; nil where slow
}

// The random numbers of the generator, apart from those of the orders.
const (
	papersEdge = 1000 + iota
	papersMean
	papersNoise
	papersFame
	papersTopics
	papersHeld
	papersStart
	papersTail
)

// A node of the tails follows the node before it in a chain with chance inChain.
const (
	inChain = 0.5
	// mostTails bounds the share of nodes in tails.
	mostTails = 0.9
)

// Without the key tails the graph has usualTails, usualApart and uneven classes: as many
// nodes of degree 1 as facebook, the densest of the real graphs at hand, and a largest component of
// 0.9995 of the nodes and more, as the published graph. With the key, and without keys for the
// others, classes are even and apart is givenApart: such graphs are quoted in measurements.
const (
	usualTails = 0.24
	usualApart = 0.001
	givenApart = 0.25
)

// unevenness sets the sizes of uneven classes, beside one field for each: the largest is
// (1+unevenness)² times the smallest, as in Coauthor CS.
const unevenness = 5

// Where rows come to stand late, a paper cites its own group. With chance leaves it cites one in its
// block of blockGroups groups; each block of blockGroups times the groups has farther times the
// chance. So a random walk reaches few papers in many steps, at any size of the graph. With chance
// anywhere the group is drawn from all, so that the graph hangs together.
const (
	groupSize   = 128
	blockGroups = 4
	leaves      = 0x1p-5
	farther     = 3.0 / 16
	anywhere    = 0x1p-10
)

// papersUnit is the step between two values of a feature. Values are less than
// 2^11 steps, the significand of a float16: halving the files loses nothing.
const papersUnit = 0x1p-10

var papersKeys = []string{"scale", "seed", "tails", "apart", "classes", "mix", "weights"}

func parsePapers(rest string) (*papers, error) {
	params, err := graph.ParseParams(rest, ",", papersKeys)
	if err != nil {
		return nil, err
	}
	g := &papers{divisor: 256, seed: 1, tails: usualTails, apart: usualApart, uneven: true}
	if slices.ContainsFunc(params, func(p graph.Param) bool { return p.Key == "tails" }) {
		g.apart, g.uneven = givenApart, false
	}
	for _, p := range params {
		switch p.Key {
		case "scale":
			g.divisor = 1
			if divisor, ok := strings.CutPrefix(p.Value, "1/"); ok {
				g.divisor, _ = strconv.ParseInt(divisor, 10, 64)
			} else if p.Value != "1" {
				g.divisor = 0
			}
			if g.divisor < 1 || g.divisor > papersMaxScale {
				return nil, graph.BadURI("scale=%s: 1, or 1/N with N up to %d is needed", p.Value, papersMaxScale)
			}
		case "seed":
			if g.seed, err = strconv.ParseUint(p.Value, 10, 64); err != nil {
				return nil, graph.BadURI("seed=%s: a whole number from 0 is needed", p.Value)
			}
		case "tails":
			if g.tails, err = strconv.ParseFloat(p.Value, 64); err != nil || !(g.tails >= 0 && g.tails <= mostTails) {
				return nil, graph.BadURI("tails=%s: a share of the nodes from 0 to %g is needed", p.Value, mostTails)
			}
			g.tails = math.Abs(g.tails) // -0
		case "apart":
			if g.apart, err = strconv.ParseFloat(p.Value, 64); err != nil || !(g.apart >= 0 && g.apart <= 1) {
				return nil, graph.BadURI("apart=%s: a share of the chains from 0 to 1 is needed", p.Value)
			}
			g.apart = math.Abs(g.apart) // -0
		case "classes":
			if g.uneven = p.Value == "uneven"; !g.uneven && p.Value != "even" {
				return nil, graph.BadURI("classes=%s: even or uneven is needed", p.Value)
			}
		case "mix":
			if g.slow = p.Value == "slow"; !g.slow && p.Value != "fast" {
				return nil, graph.BadURI("mix=%s: fast or slow is needed", p.Value)
			}
		case "weights":
			if g.weights, err = parseWeights(p); err != nil {
				return nil, err
			}
		}
	}
	return g, nil
}

func (g *papers) identity() string {
	scale := "1"
	if g.divisor > 1 {
		scale = fmt.Sprintf("1/%d", g.divisor)
	}
	// What tails=X stands for without the other keys is left out.
	identity := fmt.Sprintf("papers100m:scale=%s,seed=%d,tails=%g", scale, g.seed, g.tails)
	if g.apart != givenApart {
		identity += fmt.Sprintf(",apart=%g", g.apart)
	}
	if g.uneven {
		identity += ",classes=uneven"
	}
	if g.slow {
		identity += ",mix=slow"
	}
	if g.weights > 0 {
		identity += fmt.Sprintf(",weights=%d", g.weights)
	}
	return identity
}

func openPapers(_ context.Context, rest string, o Options) (Dataset, error) {
	g, err := parsePapers(rest)
	if err != nil {
		return nil, err
	}
	return g.dataset(o), nil
}

// papersDataset is the graph as a dataset.
type papersDataset struct {
	*counted
	g *papers
}

func (g *papers) dataset(o Options) *papersDataset {
	g.prepare()
	d := &papersDataset{g: g, counted: &counted{
		info: Info{
			Name: "papers100m", Identity: g.identity(), NumNodes: g.nodes,
			HasLabels: true, HasSplits: true, EdgeHint: g.edges, SizeHint: 8 * g.edges, CutsFeatures: true,
		},
		nodes: g.nodes, rows: g.edges, edge: g.edge,
		labelled: g.labelled, labelledNode: g.labelledNode, label: g.class, split: g.split,
	}}
	if !o.NoFeatures {
		d.info.NumFeatures, d.feature = papersFeatures, g.feature
	}
	if g.weights > 0 {
		d.info.Weighted, d.weight = true, generatedWeight(g.seed, g.weights)
	}
	for i := range papersClasses {
		d.info.Classes = append(d.info.Classes, strconv.Itoa(i))
	}
	return d
}

// prepare scales the counts and draws what does not depend on a position.
func (g *papers) prepare() {
	scaled := func(n int64) int64 { return (n + g.divisor/2) / g.divisor }
	g.nodes, g.edges, g.train, g.valid = scaled(papersNodes), scaled(papersEdges), scaled(papersTrain), scaled(papersValid)
	g.labelled = g.train + g.valid + scaled(papersTest)
	hanging := int64(g.tails * float64(g.nodes))
	g.papers, g.cited = g.nodes-hanging, g.edges-hanging
	g.field = maxField
	for g.field*papersClasses > g.papers {
		g.field /= 2
	}
	g.fields = g.papers / g.field
	g.unit, g.units = g.field, g.fields
	if g.slow {
		g.unit, g.units = groupSize, g.papers/groupSize
	}
	order := func(n int64, stream uint64) *synthetic {
		s := &synthetic{nodes: n, seed: rng.Hash(g.seed, stream)}
		s.prepare()
		return s
	}
	g.fame, g.topics, g.held = order(g.papers, papersFame), order(g.fields, papersTopics), order(g.labelled, papersHeld)
	g.drawn = rng.Stem(rng.Hash(g.seed, papersEdge))
	if !g.slow {
		starts := make([]uint16, g.fields)
		for f := range starts {
			starts[f] = uint16(g.start(int64(f)))
		}
		g.starts = starts
	}
	// The means of two classes are four noise deviations apart: a paper's own words
	// say its class about every other time, those of its neighbours nearly always.
	g.means = make([]int32, papersClasses*papersFeatures)
	for i := range g.means {
		mean, _ := bells(rng.Hash(g.seed, papersMean, uint64(i)))
		g.means[i] = mean / 4
	}
}

// bells are the sums of the four lower and of the four upper bytes, less their
// mean: from -510 to 510 with deviation 148.
func bells(x uint64) (low, high int32) {
	const everyOther = 0x00ff00ff00ff00ff
	x = x&everyOther + x>>8&everyOther
	x += x >> 16
	return int32(x&0xffff) - 510, int32(x>>32&0xffff) - 510
}

// fieldOf finds the field of a node. The last one is longer than the others. A node of the tails
// is of the field of the paper that its chain hangs on, or would hang on.
func (g *papers) fieldOf(node int64) int64 {
	for node >= g.papers {
		node, _ = g.before(node)
	}
	return min(node/g.field, g.fields-1)
}

// before is the node that a node of the tails follows, or, for the first of a chain, the paper
// that it hangs on. hangs is false for the first node of a component of its own.
func (g *papers) before(node int64) (before int64, hangs bool) {
	s := rng.New(rng.Hash(g.seed, papersTail, uint64(node)))
	follows, on, paper := s.Float64() < inChain, s.Float64() < 1-g.apart, s.Uint64()
	if follows && node > g.papers {
		return node - 1, true
	}
	return int64(rng.Below(paper, uint64(g.papers))), on
}

// class is the class of a node's field. Fields take the classes in turn. Where classes are uneven,
// they do so once, so that no class is empty; after that, the class of rank x of n ranks is the
// share x/(n + unevenness·(n-x)) of all classes.
func (g *papers) class(node int64) int32 {
	rank := g.topics.rank(g.fieldOf(node))
	if !g.uneven || rank < papersClasses {
		return int32(rank % papersClasses)
	}
	x, n := rank-papersClasses, g.fields-papersClasses
	return int32(papersClasses * x / (n + unevenness*(n-x)))
}

// paper returns the paper of a unit at a rank, where rank is a share of all in
// [0, 2^64). Ranks follow ids from a random start, around the unit's end.
func (g *papers) paper(unit int64, rank uint64) uint32 {
	size := uint64(g.sizeOf(unit))
	at := rng.Below(rank, size) + g.start(unit)
	if at >= size {
		at -= size
	}
	return uint32(uint64(unit*g.unit) + at)
}

// start is the place of a unit's paper of rank 0.
func (g *papers) start(unit int64) uint64 {
	if g.starts != nil {
		return uint64(g.starts[unit])
	}
	return rng.Hash(g.seed, papersStart, uint64(unit)) % uint64(g.sizeOf(unit))
}

// sizeOf is the number of papers of a unit, less than 2^16.
func (g *papers) sizeOf(unit int64) int64 {
	if unit == g.units-1 {
		return g.papers - unit*g.unit
	}
	return g.unit
}

// related draws the group that a paper of a group cites, by a share of the citations and a share of
// the groups that are possible.
func (g *papers) related(group int64, citation float64, share uint64) int64 {
	first, count := int64(0), g.units
	if citation < 1-anywhere {
		size := int64(1)
		for chance := leaves; citation < chance && size < g.units; chance *= farther {
			size *= blockGroups
		}
		first = group - group%size
		count = min(size, g.units-first)
	}
	return first + int64(rng.Below(share, uint64(count)))
}

// edge draws edge i. The number of papers that a paper cites falls
// exponentially: its rank is the product of two uniform numbers, whose density is
// -log; ranks go half a field further there, as those who cite most are not the
// most cited. Within fields the number of citations d falls like d^-3, among all
// papers like d^-2.7, which gives the most cited one 15 % · n^-0.4 / 0.6 of all:
// 0.24 million for 1.6 thousand million. The factor y leaves papers without any.
func (g *papers) edge(i int64) Edge {
	if i >= g.cited {
		return g.tailEdge(g.papers + i - g.cited)
	}
	s := rng.New(g.drawn.Hash(uint64(i)))
	field := int64(rng.Below(s.Uint64(), uint64(g.units)))
	source := g.paper(field, product(s.Uint64(), s.Uint64())+1<<63)
	kind, x, y := s.Float64(), s.Uint64(), s.Uint64()
	if g.slow {
		return Edge{U: source, V: g.paper(g.related(field, kind, s.Uint64()), product(product(x, x), y))}
	}
	if kind >= sameField+nearField {
		return Edge{U: source, V: g.famous(rng.Float64(x), rng.Float64(y))}
	}
	if kind >= sameField {
		if field += 1 + int64(s.Intn(nearReach)); field >= g.fields {
			field %= g.fields
		}
	}
	return Edge{U: source, V: g.paper(field, product(product(x, x), y))}
}

// tailEdge is the edge from a node of the tails to the node before it. The first node of a
// component of its own has a self-loop.
func (g *papers) tailEdge(node int64) Edge {
	before, hangs := g.before(node)
	if !hangs {
		before = node
	}
	return Edge{U: uint32(node), V: uint32(before)}
}

// product multiplies two shares of 2^64.
func product(x, y uint64) uint64 {
	high, _ := bits.Mul64(x, y)
	return high
}

// famous draws a paper from all: the rank is a share x^2.5 · y.
func (g *papers) famous(x, y float64) uint32 {
	share := x * x * math.Sqrt(x) * y
	return g.fame.node(min(uint64(share*float64(g.papers)), uint64(g.papers-1)))
}

// feature is the mean of the node's class and noise, two values from each random
// number: one for each half.
func (g *papers) feature(node int64, first int, row []float32) {
	mean := g.means[int(g.class(node))*papersFeatures+first:][:len(row)]
	noise := rng.Stem(rng.Hash(rng.Hash(g.seed, papersNoise, uint64(node))))
	at := 0
	if first%2 == 1 && len(row) > 0 {
		_, high := bells(noise.Hash(uint64(first - 1)))
		row[0] = float32(mean[0]+high) * papersUnit
		at = 1
	}
	for ; at+1 < len(row); at += 2 {
		low, high := bells(noise.Hash(uint64(first + at)))
		row[at], row[at+1] = float32(mean[at]+low)*papersUnit, float32(mean[at+1]+high)*papersUnit
	}
	if at < len(row) {
		low, _ := bells(noise.Hash(uint64(first + at)))
		row[at] = float32(mean[at]+low) * papersUnit
	}
}

// labelledNode is labelled node j: they are spread evenly, so that every field
// has one.
func (g *papers) labelledNode(j int64) int64 {
	high, low := bits.Mul64(uint64(j), uint64(g.nodes))
	node, _ := bits.Div64(high, low, uint64(g.labelled))
	return int64(node)
}

func (g *papers) split(j int64) Split {
	switch k := g.held.rank(j); {
	case k < g.train:
		return Train
	case k < g.train+g.valid:
		return Valid
	}
	return Test
}
