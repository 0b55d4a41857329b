package partition

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"ndls/catalog"
	"ndls/dataset"
	"ndls/internal/share"
	"ndls/shards"
	"ndls/steps"
)

// countNodes counts, for the summary, the labelled nodes, the nodes of each split, and the nodes with blanked features.
func (j nodeTable) countNodes(ids []uint32, labels []int32, splits []uint8) counted {
	names := [...]string{dataset.Train: "train", dataset.Valid: "valid", dataset.Test: "test"}
	var (
		mu     sync.Mutex
		c      counted
		of     [len(names)]int64
		blanks = j.o.BlankFeatures > 0 && j.wantFeatures()
	)
	_ = share.Ranges(j.o.Threads, len(ids), countedNodes, func(lo, hi int) error {
		var labelled, blanked int64
		var splitOf [len(names)]int64
		for i := lo; i < hi; i++ {
			if labels[i] != noLabel {
				labelled++
			}
			splitOf[splits[i]]++
			if blanks && j.o.blanks(int64(ids[i]), labels[i], splits[i]) {
				blanked++
			}
		}
		mu.Lock()
		defer mu.Unlock()
		c.Labelled += labelled
		c.Blanked += blanked
		for split, n := range splitOf {
			of[split] += n
		}
		return nil
	})
	c.Splits = map[string]int64{}
	for split, n := range of {
		if dataset.Split(split) != dataset.NoSplit && n > 0 {
			c.Splits[names[split]] = n
		}
	}
	return c
}

// countedNodes is the number of nodes that a thread counts at a time.
const countedNodes = 1 << 16

// warnOfLonelyNodes warns of nodes in a table of nodes that have no edge.
func (j nodeTable) warnOfLonelyNodes(n, lonely int64) {
	if ds, ok := j.ds.(dataset.Keyed); !ok || !ds.OwnNodes() {
		return
	}
	if lonely > 0 {
		j.ordered.Warnings = append(j.ordered.Warnings, fmt.Sprintf("%d of %d nodes have no edge to another node: each is a component of its own, and smoothing leaves its features as they are", lonely, n))
	}
}

// warnOfSplit keeps the warnings of the first split for the summary.
func (j nodeTable) warnOfSplit(number int, warnings []string) {
	if number == 0 {
		j.ordered.Warnings = warnings
	}
}

// writeSummary commits the summary.
func (j nodeTable) writeSummary(ctx context.Context, _ steps.Piece) error {
	s, err := j.summarise()
	if err != nil {
		return err
	}
	return shards.WriteSummary(ctx, j.cat, s)
}

// checkNodes refuses a dataset that states another number of nodes than the node table has.
func (j nodeTable) checkNodes() error {
	if n := j.info.NumNodes; n >= 0 && n != j.ordered.Nodes {
		return fmt.Errorf("the committed node table holds %d nodes, %s %d: use another run directory", j.ordered.Nodes, j.info.Name, n)
	}
	return nil
}

// summarise collects the counts of the steps.
func (j nodeTable) summarise() (shards.Summary, error) {
	if err := j.checkNodes(); err != nil {
		return shards.Summary{}, err
	}
	s := shards.Summary{
		Name: j.info.Name, Nodes: j.ordered.Nodes, InputRows: j.ordered.Rows, SelfLoops: j.ordered.Loops,
		Components: j.ordered.Components, LargestComponent: j.ordered.LargestComponent,
		Labelled: j.ordered.Labelled, Splits: j.ordered.Splits, Blanked: j.ordered.Blanked,
		Classes: j.info.Classes, HasSplits: j.info.HasSplits || j.split != nil,
		BlockRows: BlockRows, IntervalRows: j.intervalRows(), IDs: j.named.Type.Name(), Weighted: j.info.Weighted,
		Directed: j.info.Directed,
	}
	if j.wantFeatures() {
		s.Features, s.Normalized, s.FeatureType = j.info.NumFeatures, j.normalize(), shards.Float32
		s.Normalization = j.ordered.Choice
		if !hasFullTiles(j.cat) && !HasUnfilled(j.cat) {
			s.FeatureType = shards.Float16
		}
	}
	for _, e := range j.cat.Entries(catalog.KindHops) {
		s.Edges += e.Rows
	}
	if !s.Directed {
		s.Edges /= 2 // hop streams have both directions
	}
	s.Warnings = slices.Concat(j.doubts, j.ordered.Warnings)
	s.Dropped = j.ordered.Dropped
	s.Repeated = s.InputRows - s.SelfLoops - s.Edges - s.Dropped

	return s, nil
}
