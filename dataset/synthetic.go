package dataset

import (
	"context"
	"fmt"
	"math"
	"math/bits"
	"strconv"

	"ndls/dataset/column"
	"ndls/dataset/graph"
	"ndls/internal/rng"
)

// synthetic describes a degree-corrected community graph. Node v has rank
// k = multiplier·(v - offset) mod nodes; its class is k mod classes, and within
// its class it is number k / classes by expected degree.
type synthetic struct {
	nodes, edges, classes int64
	features              int
	seed                  uint64
	homophily             float64
	train, valid          float64
	noise                 float64
	weights               int64 // octaves over which they are spread, 0 without weights

	multiplier, inverse, offset uint64
	means                       []float32 // classes × features
}

// The positions of the random numbers of the generator, so that none is used twice.
const (
	streamMultiplier = iota
	streamOffset
	streamEdge
	streamMean
	streamNoise
	streamSplit
	streamWeight
)

// maxMeans bounds classes × features, the only table that is kept.
const maxMeans = 1 << 20

var syntheticKeys = []string{"nodes", "edges", "features", "classes", "seed", "homophily", "train", "valid", "noise", "weights"}

func parseSynthetic(rest string) (*synthetic, error) {
	params, err := graph.ParseParams(rest, ",", syntheticKeys)
	if err != nil {
		return nil, err
	}
	g := &synthetic{
		nodes: 100_000, edges: 1_000_000, features: 64, classes: 8, seed: 1,
		homophily: 0.8, train: 0.1, valid: 0.1, noise: 1,
	}
	width := int64(g.features)
	for _, p := range params {
		switch p.Key {
		case "nodes":
			g.nodes, err = graph.ParseCount(p.Key, p.Value, 1, MaxID+1)
		case "edges":
			g.edges, err = graph.ParseCount(p.Key, p.Value, 0, 1<<40)
		case "features":
			width, err = graph.ParseCount(p.Key, p.Value, 0, MaxFeatures)
		case "classes":
			g.classes, err = graph.ParseCount(p.Key, p.Value, 1, column.MaxClasses)
		case "seed":
			if g.seed, err = strconv.ParseUint(p.Value, 10, 64); err != nil {
				err = graph.BadURI("seed=%s: a whole number from 0 is needed", p.Value)
			}
		case "homophily":
			g.homophily, err = parseShare(p, 1)
		case "train":
			g.train, err = parseShare(p, 1)
		case "valid":
			g.valid, err = parseShare(p, 1)
		case "noise":
			g.noise, err = parseShare(p, 1000)
		case "weights":
			g.weights, err = parseWeights(p)
		}
		if err != nil {
			return nil, err
		}
	}
	g.features = int(width)
	switch {
	case g.classes > g.nodes:
		return nil, graph.BadURI("classes=%d: there are only %d nodes", g.classes, g.nodes)
	case g.train+g.valid > 1:
		return nil, graph.BadURI("train=%v and valid=%v are more than all nodes", g.train, g.valid)
	case g.classes*width > maxMeans:
		return nil, graph.BadURI("classes=%d times features=%d is more than %d", g.classes, width, maxMeans)
	}
	return g, nil
}

func parseShare(p graph.Param, limit float64) (float64, error) {
	v, err := strconv.ParseFloat(p.Value, 64)
	if err != nil || !(v >= 0 && v <= limit) {
		return 0, graph.BadURI("%s=%s: a number from 0 to %v is needed", p.Key, p.Value, limit)
	}
	return v, nil
}

// mostOctaves bounds how far apart generated weights lie.
const mostOctaves = 40

// parseWeights reads the number of octaves over which weights are spread.
func parseWeights(p graph.Param) (int64, error) {
	return graph.ParseCount(p.Key, p.Value, 1, mostOctaves)
}

// generatedWeight is the weight of an edge of a generated graph: the weights are spread over so
// many octaves around 1, about evenly by their logarithms. It depends on the two ends alone.
func generatedWeight(seed uint64, octaves int64) func(e Edge) float32 {
	return func(e Edge) float32 {
		x := rng.Float64(rng.Hash(seed, streamWeight, uint64(min(e.U, e.V)), uint64(max(e.U, e.V))))
		y := float64(float64(octaves)*x) - float64(octaves)/2
		octave := math.Floor(y)
		return float32(math.Ldexp(1+(y-octave), int(octave)))
	}
}

// identity spells every option, so that a changed default is another dataset.
func (g *synthetic) identity() string {
	text := fmt.Sprintf("synthetic:nodes=%d,edges=%d,features=%d,classes=%d,seed=%d,homophily=%v,train=%v,valid=%v,noise=%v",
		g.nodes, g.edges, g.features, g.classes, g.seed, g.homophily, g.train, g.valid, g.noise)
	if g.weights > 0 {
		text += fmt.Sprintf(",weights=%d", g.weights)
	}
	return text
}

func openSynthetic(_ context.Context, rest string, o Options) (Dataset, error) {
	g, err := parseSynthetic(rest)
	if err != nil {
		return nil, err
	}
	return g.dataset(o), nil
}

func (g *synthetic) dataset(o Options) *counted {
	if o.NoFeatures {
		g.features = 0
	}
	g.prepare()
	c := &counted{
		info: Info{
			Name: "synthetic", Identity: g.identity(), NumNodes: g.nodes, NumFeatures: g.features,
			HasLabels: true, HasSplits: true, EdgeHint: g.edges, SizeHint: 8 * g.edges, CutsFeatures: true,
		},
		nodes: g.nodes, rows: g.edges, labelled: g.nodes,
		edge:  g.edge,
		label: func(v int64) int32 { return int32(g.rank(v) % g.classes) },
		split: g.split,
	}
	if g.features > 0 {
		c.feature = g.feature
	}
	if g.weights > 0 {
		c.info.Weighted, c.weight = true, generatedWeight(g.seed, g.weights)
	}
	for i := range g.classes {
		c.info.Classes = append(c.info.Classes, strconv.FormatInt(i, 10))
	}
	return c
}

// prepare draws the permutation of the nodes and the means of the classes.
func (g *synthetic) prepare() {
	n := uint64(g.nodes)
	g.offset = rng.Below(rng.Hash(g.seed, streamOffset), n)
	for try := uint64(0); ; try++ {
		g.multiplier = 1 + rng.Below(rng.Hash(g.seed, streamMultiplier, try), n)
		if inverse, ok := invert(g.multiplier, n); ok {
			g.inverse = inverse
			break
		}
	}
	// Means are one noise deviation times √2 apart, whatever the width: a node's
	// own row says its class only roughly, the mean over neighbours clearly.
	scale := 1 / math.Sqrt(float64(max(g.features, 1)))
	g.means = make([]float32, g.classes*int64(g.features))
	for i := range g.means {
		g.means[i] = float32(rng.Normal(rng.Hash(g.seed, streamMean, uint64(i))) * scale)
	}
}

// invert finds the inverse of a modulo n, if there is one.
func invert(a, n uint64) (uint64, bool) {
	r0, r1, t0, t1 := int64(n), int64(a%n), int64(0), int64(1)
	for r1 != 0 {
		q := r0 / r1
		r0, r1 = r1, r0-q*r1
		t0, t1 = t1, t0-q*t1
	}
	if t0 < 0 {
		t0 += int64(n)
	}
	return uint64(t0) % n, r0 == 1
}

func (g *synthetic) rank(node int64) int64 {
	n := uint64(g.nodes)
	return int64((uint64(node) + n - g.offset) % n * g.multiplier % n)
}

func (g *synthetic) node(rank uint64) uint32 {
	n := uint64(g.nodes)
	return uint32((rank*g.inverse%n + g.offset) % n)
}

// member draws a node of a class. Rank j is drawn with weight about (j+1)^-½, as
// the square of a uniform number: then the number of nodes of degree d falls
// like d^-3.
func (g *synthetic) member(class, x uint64) uint32 {
	count := (uint64(g.nodes) - class + uint64(g.classes) - 1) / uint64(g.classes)
	square, _ := bits.Mul64(x, x)
	return g.node(class + uint64(g.classes)*rng.Below(square, count))
}

// edge draws edge i: the class of its source, the source, whether the target is
// of the same class, the target.
func (g *synthetic) edge(i int64) Edge {
	e, c := uint64(i), uint64(g.classes)
	class := rng.Below(rng.Hash(g.seed, streamEdge, e, 0), c)
	u := g.member(class, rng.Hash(g.seed, streamEdge, e, 1))
	if x := rng.Hash(g.seed, streamEdge, e, 2); c > 1 && rng.Float64(x) >= g.homophily {
		class = (class + 1 + rng.Below(rng.Hash(g.seed, streamEdge, e, 3), c-1)) % c
	}
	return Edge{U: u, V: g.member(class, rng.Hash(g.seed, streamEdge, e, 4))}
}

// feature is the mean of the node's class and noise. The conversions keep the
// compiler from fusing product and sum, which would change bits.
func (g *synthetic) feature(node int64, first int, row []float32) {
	class := g.rank(node) % g.classes
	mean := g.means[int(class)*g.features+first:]
	h := rng.Hash(g.seed, streamNoise, uint64(node))
	for j := range row {
		noise := float64(rng.Normal(rng.Hash(h, uint64(first+j))) * g.noise)
		row[j] = float32(float64(mean[j]) + noise)
	}
}

func (g *synthetic) split(node int64) Split {
	u := rng.Float64(rng.Hash(g.seed, streamSplit, uint64(node)))
	switch {
	case u < g.train:
		return Train
	case u < g.train+g.valid:
		return Valid
	}
	return Test
}
