package memmap

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"ndls/dataset/array"
	"ndls/dataset/column"
	"ndls/dataset/graph"
	"ndls/dataset/layout"
	"ndls/dataset/npy"
	"ndls/dataset/source"
)

// igbWidth is the number of features of a paper.
const igbWidth = 1024

// igbSize is the number of papers of a size, and how many of them have a label of 19 and
// of 2983 classes: the first ones.
type igbSize struct {
	name             string
	nodes, few, many int64
}

var igbSizes = []igbSize{
	{"tiny", 100_000, 100_000, 100_000},
	{"small", 1_000_000, 1_000_000, 1_000_000},
	{"medium", 10_000_000, 10_000_000, 10_000_000},
	{"large", 100_000_000, 100_000_000, 100_000_000},
	{"full", 269_346_174, 227_130_858, 157_675_969},
}

// igbLabels are the files of labels by the number of classes.
var igbLabels = map[string]string{"19": "node_label_19.npy", "2983": "node_label_2K.npy"}

const igbForm = "igb:DIR,size=tiny|small|medium|large|full,classes=19|2983,nodes=N"

// IGBKeys are the options of the URI.
var IGBKeys = []string{"size", "classes", "nodes"}

// igb is a parsed URI.
type igb struct {
	igbSize
	dir, classes string
}

func parseIGB(rest string) (u igb, identity string, err error) {
	dir, options, _ := strings.Cut(rest, ",")
	t, err := graph.ParseTarget(igbForm, dir)
	if err != nil {
		return u, "", err
	}
	params, err := graph.ParseParams(options, ",", IGBKeys)
	if err != nil {
		return u, "", err
	}
	u.dir, u.classes = t.Path, "19"
	nodes := int64(0)
	for _, p := range params {
		switch p.Key {
		case "size":
			i := slices.IndexFunc(igbSizes, func(s igbSize) bool { return s.name == p.Value })
			if i < 0 {
				return u, "", graph.BadURI("size=%s: the sizes are tiny, small, medium, large and full", p.Value)
			}
			u.igbSize = igbSizes[i]
		case "classes":
			if u.classes = p.Value; igbLabels[p.Value] == "" {
				return u, "", graph.BadURI("classes=%s: papers have labels of 19 or of 2983 classes", p.Value)
			}
		case "nodes":
			if nodes, err = graph.ParseCount(p.Key, p.Value, 1, graph.MaxID+1); err != nil {
				return u, "", err
			}
		}
	}
	if u.name == "" {
		return u, "", graph.BadURI("size= is missing: %s", igbForm)
	}
	identity = fmt.Sprintf("igb:%s,size=%s,classes=%s", t.Base, u.name, u.classes)
	if nodes > 0 {
		u.nodes, u.few, u.many = nodes, min(nodes, u.few), min(nodes, u.many)
		identity += fmt.Sprintf(",nodes=%d", nodes)
	}
	return u, identity, nil
}

// OpenIGB opens igb:DIR,size=….
func OpenIGB(ctx context.Context, rest string, o graph.Options) (graph.Dataset, error) {
	u, identity, err := parseIGB(rest)
	if err != nil {
		return nil, err
	}
	g := &layout.Graph{Known: graph.Info{Name: "igb-" + u.name, Identity: identity, NumNodes: u.nodes}}
	return g.Opened(u.open(ctx, g, o))
}

func (u igb) open(ctx context.Context, g *layout.Graph, o graph.Options) error {
	dir := filepath.Join(u.dir, u.name, "processed")
	if !source.Exists(dir) {
		return graph.BadData(u.dir, "has no folder %s: give the folder that the download of this size unpacks to", filepath.Join(u.name, "processed"))
	}
	limit := graph.IDLimit{N: u.nodes, Stated: fmt.Sprintf("size %s has %d papers", u.name, u.nodes)}
	src, _, err := g.Files.Open(filepath.Join(dir, "paper__cites__paper", "edge_index.npy"))
	if err != nil {
		return err
	}
	edges, err := array.OpenRawEdges(ctx, src, npy.Int32, limit)
	if err != nil {
		return err
	}
	g.EdgeList, g.Known.EdgeHint = edges, edges.M
	if path := filepath.Join(dir, "paper", "node_feat.npy"); !o.NoFeatures && source.Exists(path) {
		if err := u.openFeatures(ctx, g, path); err != nil {
			return err
		}
	}
	path := filepath.Join(dir, "paper", igbLabels[u.classes])
	if !source.Exists(path) {
		return nil
	}
	return u.openLabels(ctx, g, path)
}

// openFeatures takes float32 or float16 numbers: without a header, the size of the file
// tells which.
func (u igb) openFeatures(ctx context.Context, g *layout.Graph, path string) error {
	src, _, err := g.Files.Open(path)
	if err != nil {
		return err
	}
	typ := npy.Float32
	if src.Size == u.nodes*igbWidth*npy.Float16.Size() {
		typ = npy.Float16
	}
	v, shape, err := array.OpenRaw(ctx, src, typ)
	if err != nil {
		return err
	}
	if shape != nil {
		return g.SetDense(v, shape)
	}
	if v.N != u.nodes*igbWidth {
		return graph.BadData(path, "has %d bytes and no header: %d features of %d papers are %d bytes of float32 or %d of float16; fetch the file again, or correct size= or nodes=",
			src.Size, igbWidth, u.nodes, u.nodes*igbWidth*4, u.nodes*igbWidth*2)
	}
	return g.SetDense(v, []int64{u.nodes, igbWidth})
}

func (u igb) openLabels(ctx context.Context, g *layout.Graph, path string) error {
	src, _, err := g.Files.Open(path)
	if err != nil {
		return err
	}
	v, shape, err := array.OpenRaw(ctx, src, npy.Float32)
	if err != nil {
		return err
	}
	labelled := u.few
	if u.classes != "19" {
		labelled = u.many
	}
	if v.N < labelled || v.N > u.nodes || len(shape) > 1 && v.N != shape[0] {
		return graph.BadData(path, "holds %d labels: the %d papers have %d; fetch the file again, or correct size= or nodes=", v.N, u.nodes, labelled)
	}
	g.Classes, err = column.OpenLabels(ctx, column.Vector{Values: v.Part(0, labelled)})
	// The loaders of IGB take 60 % of the labelled papers for training, and 20 % each for
	// validation and test, in order.
	train, valid := labelled*6/10, labelled*6/10+labelled*2/10
	g.Membership = &column.Lists{Limit: graph.AnyID, Parts: []column.List{
		column.RangeList(graph.Train, 0, train), column.RangeList(graph.Valid, train, valid), column.RangeList(graph.Test, valid, labelled),
	}}
	return err
}
