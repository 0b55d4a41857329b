package partition

import (
	"context"
	"errors"
	"math"

	"golang.org/x/sync/errgroup"

	"ndls/catalog"
	"ndls/dataset"
	"ndls/internal/inputid"
	"ndls/shards"
)

// A Survey holds what an import finds in a graph.
type Survey struct {
	shards.Summary
	Degrees Degrees `json:"degrees"`
	// Strengths is nil in a graph without weights.
	Strengths *Strengths `json:"strengths,omitempty"`
	// ClassSizes holds the number of nodes of each class, in order of class.
	ClassSizes []int64 `json:"class_sizes,omitempty"`
	// FirstID and LastID are the smallest and the largest input id, as messages show them.
	FirstID string `json:"first_id"`
	LastID  string `json:"last_id"`
}

// Degrees describes the degrees of the nodes of a graph.
type Degrees struct {
	// Isolated is the number of nodes without an edge to another node.
	Isolated int64   `json:"isolated"`
	Mean     float64 `json:"mean"`
	// Half, nine tenths and 99 hundredths of the nodes have at most these degrees.
	Median int64 `json:"median"`
	P90    int64 `json:"p90"`
	P99    int64 `json:"p99"`
	Max    int64 `json:"max"`
}

// Strengths describes the sums of the edge weights of the nodes that have edges.
type Strengths struct {
	Min  float64 `json:"min"`
	Mean float64 `json:"mean"`
	Max  float64 `json:"max"`
}

// Inspect reads a graph like an import, refuses what an import refuses, and returns what it finds. It executes the steps up to Order and
// commits their files to cat, which must serve this purpose alone. Then it reads the features, if requested, without keeping them.
func Inspect(ctx context.Context, ds dataset.Dataset, cat *catalog.Catalog, o Options) (s Survey, err error) {
	j, err := openGraph(ctx, ds, cat, o)
	if err != nil {
		return s, err
	}
	defer func() { err = errors.Join(err, j.close()) }()
	if err := j.fitting().fit(ctx); err != nil {
		return s, err
	}
	edges := j.ownEdges(true)
	defer edges.close()
	if err := edges.splitEdges(ctx, allSlices); err != nil {
		return s, err
	}
	if err := edges.orderNodes(ctx); err != nil {
		return s, err
	}
	return surveying{j}.describe(ctx)
}

// surveying describes a graph whose nodes are numbered, for a Survey.
type surveying struct{ *job }

// describe collects the results of the steps.
func (j surveying) describe(ctx context.Context) (s Survey, err error) {
	if s.Summary, err = j.nodeTable().summarise(); err != nil {
		return s, err
	}
	if err := j.describeNodes(ctx, &s); err != nil {
		return s, err
	}
	if j.named.Type != inputid.Number {
		if err := j.describeIDs(ctx, &s); err != nil {
			return s, err
		}
	}
	if j.wantFeatures() {
		if s.FeatureType, err = j.checkFeatures(ctx); j.columns.FromNeighbours() {
			s.FeatureType = shards.Float32
		}
	}
	return s, err
}

// describeNodes counts degrees and classes. The node table is in order of descending degree.
func (j surveying) describeNodes(ctx context.Context, s *Survey) error {
	n, sum := s.Nodes, int64(0)
	first, last := int64(dataset.MaxID), int64(0)
	s.ClassSizes = make([]int64, len(s.Classes))
	d := &s.Degrees
	quantiles := []struct {
		node   int64
		degree *int64
	}{{n / 2, &d.Median}, {n / 10, &d.P90}, {n / 100, &d.P99}}
	if s.Weighted {
		s.Strengths = &Strengths{Min: math.Inf(1)}
	}
	if err := j.nodeTable().eachNodes(ctx, shards.AllNodeColumns, j.nodeTable().readers(), func(at int64, b shards.NodeBatch) error {
		for i, degree := range b.Degree {
			degree := int64(degree)
			for _, q := range quantiles {
				if at+int64(i) == q.node {
					*q.degree = degree
				}
			}
			sum += degree
			d.Max = max(d.Max, degree)
			if degree == 0 {
				d.Isolated++
			} else if s.Weighted {
				s.Strengths.add(b.Strength[i])
			}
			if b.Label[i] != noLabel {
				s.ClassSizes[b.Label[i]]++
			}
			first, last = min(first, b.ID[i]), max(last, b.ID[i])
		}
		return ctx.Err()
	}); err != nil {
		return err
	}
	d.Mean = float64(sum) / float64(n)
	if s.Weighted {
		s.Strengths.divide(n - d.Isolated)
	}
	s.Edges = sum / 2
	s.Repeated = s.InputRows - s.SelfLoops - s.Edges - s.Dropped
	s.FirstID, s.LastID = numberText(first), numberText(last)
	return nil
}

// add counts a strength; Mean holds the sum until divide is called.
func (s *Strengths) add(strength float64) {
	s.Min, s.Max = min(s.Min, strength), max(s.Max, strength)
	s.Mean += strength
}

// divide computes Mean from the sum, and sets Min to 0 if there are no nodes.
func (s *Strengths) divide(nodes int64) {
	if nodes == 0 {
		s.Min = 0
		return
	}
	s.Mean /= float64(nodes)
}

func numberText(id int64) string {
	return inputid.Int64.Quote(inputid.AppendInt(nil, id))
}

// describeIDs finds the first and the last id of ids that were numbered.
func (j surveying) describeIDs(ctx context.Context, s *Survey) (err error) {
	t, closeFile, err := j.numbering().openIDs(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, closeFile()) }()
	return t.Each(func(first int64, keys [][]byte) error {
		if first == 0 {
			s.FirstID = j.named.Type.Quote(keys[0])
		}
		s.LastID = j.named.Type.Quote(keys[len(keys)-1])
		return ctx.Err()
	})
}

// checkFeatures reads all features like making tiles, and returns the type of those tiles.
func (j surveying) checkFeatures(ctx context.Context) (string, error) {
	if err := j.numbering().load(ctx); err != nil {
		return "", err
	}
	defer j.numbering().free()
	switch err := j.readFeaturesAs(ctx, true); {
	case err == nil:
		return shards.Float16, nil
	case !errors.Is(err, errNotHalf):
		return "", err
	}
	return shards.Float32, j.readFeaturesAs(ctx, false)
}

func (j surveying) readFeaturesAs(ctx context.Context, half bool) error {
	return j.tiling().readingFeatures(func(seen []uint64, readers int) error {
		if j.info.SparseFeatures {
			return j.readSparse(ctx, half, seen)
		}
		w := &tileWriter{
			tiling: j.tiling(), tiles: j.tiling().tilesOf(half), commit: &errgroup.Group{}, readers: readers,
			part: allSlices, last: j.ordered.Panels, seen: seen, store: noRows{half},
		}
		return w.readFeatures(ctx)
	})
}

// readSparse reads features that list only what is not zero. It does not expand rows, because they may be wide.
func (j surveying) readSparse(ctx context.Context, half bool, seen []uint64) error {
	w := &tileWriter{tiling: j.tiling(), seen: seen}
	var values []float32
	var encoded []byte
	if err := j.eachFeatureRow(ctx, "reading features", func(row int64, f dataset.FeatureRow) error {
		if !j.holds(f.ID) {
			return nil
		}
		node, err := j.node(f.ID, "feature", row)
		if err != nil {
			return err
		}
		if seen[node/64]>>(node%64)&1 != 0 {
			return dataset.Repeated(ctx, j.ds, dataset.FeatureRows, f.ID)
		}
		seen[node/64] |= 1 << (node % 64)
		w.count.Add(1)
		values = append(values[:0], f.Values...)
		if j.normalize() {
			NormalizeRow(values)
		}
		for half && len(values)%shards.TileColumns != 0 {
			values = append(values, 0)
		}
		if n := shards.TileRowBytes(true) / shards.TileColumns * len(values); n > len(encoded) {
			encoded = make([]byte, 2*n)
		}
		if half && !shards.EncodeTile(encoded, values, true) {
			return errNotHalf
		}
		return nil
	}); err != nil {
		return err
	}
	return w.checkMissing(ctx)
}
