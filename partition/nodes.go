package partition

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"ndls/catalog"
	"ndls/dataset"
	"ndls/internal/inputid"
	"ndls/internal/mem"
	"ndls/internal/share"
	"ndls/shards"
	"ndls/steps"
)

// writeNodes commits the node table together with what later steps read. Nodes of degree d end before ends[d].
func (j nodeTable) writeNodes(ctx context.Context, ends, component []uint32) error {
	n := j.ids.n
	ids, err := mem.Alloc[uint32](j.o.Budget, n, "input ids")
	if err != nil {
		return err
	}
	defer ids.Free()
	labels, err := mem.Alloc[int32](j.o.Budget, n, "labels")
	if err != nil {
		return err
	}
	defer labels.Free()
	splits, err := mem.Alloc[uint8](j.o.Budget, n, "splits")
	if err != nil {
		return err
	}
	defer splits.Free()

	if err := j.ids.each(func(rank, id uint32) error {
		ids.S[j.nodeOf.S[rank]] = id
		return nil
	}); err != nil {
		return err
	}
	if err := j.numbering().load(ctx); err != nil {
		return err
	}
	if err := j.readLabels(ctx, labels.S); err != nil {
		return err
	}
	if j.wantFeatures() {
		if err := j.tiling().chooseNorm(ctx); err != nil {
			return err
		}
	}
	if err := j.readSplits(ctx, 0, ids.S, labels.S, splits.S); err != nil {
		return err
	}
	if err := j.writeSplits(ctx, ids.S, labels.S); err != nil {
		return err
	}
	j.numbering().free()
	j.ordered.add(j.countNodes(ids.S, labels.S, splits.S))
	lonely := n
	if len(ends) > 1 {
		lonely -= int64(ends[1])
	}
	j.warnOfLonelyNodes(n, lonely)
	var keys *nodeKeys
	if j.named.Type != inputid.Number {
		if keys, err = j.numbering().newNodeKeys(0, n, j.numbering().eachNodeKey(ctx)); err != nil {
			return err
		}
		defer keys.free()
	}

	files := j.cat.Batch()
	defer files.Abort()
	f, err := files.Create(ctx, catalog.Describe(catalog.KindNodes, NodesPath).Counting(n))
	if err != nil {
		return err
	}
	degree := len(ends) - 1
	write := shards.WriteNodes
	switch {
	case j.info.Weighted:
		write = shards.WriteWeightedNodes
	case j.info.Directed:
		write = shards.WriteDirectedNodes
	}
	if err := write(f, n, j.named, j.o.Threads, func(first int64, b shards.NodeBatch) error {
		for i := range b.ID {
			node := first + int64(i)
			for int64(ends[degree]) <= node {
				degree--
			}
			b.ID[i] = int64(ids.S[node])
			b.Degree[i] = uint32(degree)
		}
		for i := range b.OutDegree {
			rank, _ := j.ids.rank(ids.S[first+int64(i)])
			b.OutDegree[i] = j.outDegree.S[rank]
		}
		end := first + int64(len(b.ID))
		copy(b.Component, component[first:end])
		copy(b.Label, labels.S[first:end])
		copy(b.Split, splits.S[first:end])
		if err := j.strengths(b.ID, b.Strength); err != nil {
			return err
		}
		if keys != nil {
			return keys.fill(first, b.Key)
		}
		return ctx.Err()
	}); err != nil {
		return err
	}
	if err := j.addOrdered(ctx, files); err != nil {
		return err
	}
	return files.Commit(ctx)
}

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

// readLabels sets the labels by node. It accepts repetitions of the same label and refuses a different one.
func (j nodeTable) readLabels(ctx context.Context, labels []int32) error {
	for i := range labels {
		labels[i] = noLabel
	}
	if !j.info.HasLabels {
		return nil
	}
	return j.eachLabel(ctx, func(row int64, id uint32, label int32) error {
		node, err := j.node(id, "label", row)
		if err != nil {
			return err
		}
		if label < 0 || int(label) >= len(j.info.Classes) {
			return j.noClass(row, id, label)
		}
		if old := labels[node]; old != noLabel && old != label {
			return dataset.Repeated(ctx, j.ds, dataset.LabelRows, id)
		}
		labels[node] = label
		return nil
	})
}

// writeSplits commits the files of the splits after the first.
func (j nodeTable) writeSplits(ctx context.Context, ids []uint32, labels []int32) error {
	if j.o.Splits < 2 {
		return nil
	}
	splits, err := mem.Alloc[uint8](j.o.Budget, int64(len(ids)), "a further split")
	if err != nil {
		return err
	}
	defer splits.Free()
	for number := 1; number < j.o.Splits; number++ {
		clear(splits.S)
		if err := j.readSplits(ctx, number, ids, labels, splits.S); err != nil {
			return fmt.Errorf("--splits %d: %w", j.o.Splits, err)
		}
		if err := j.writeSplit(ctx, number, splits.S); err != nil {
			return err
		}
	}
	return nil
}

func (j nodeTable) writeSplit(ctx context.Context, number int, splits []uint8) error {
	e := catalog.Describe(catalog.KindSplits, SplitPath(number)).Counting(int64(len(splits)))
	return j.cat.Write(ctx, e, func(w *catalog.File) error {
		_, err := w.Write(splits)
		return err
	})
}

// readSplits sets a split by node. It refuses a node that is in two parts of it.
func (j nodeTable) readSplits(ctx context.Context, number int, ids []uint32, labels []int32, splits []uint8) (err error) {
	if j.members != nil {
		for node, id := range ids {
			splits[node] = uint8(j.members.splitOf(id))
		}
		return nil
	}
	var warnings []string
	if j.split != nil {
		warnings, err = j.drawSplit(number, ids, labels, splits)
	} else if j.info.HasSplits {
		published := number
		if j.o.LabelsPerClass > 0 {
			published = 0
		}
		err = j.readPublished(ctx, published, splits)
		if n := int64(j.o.LabelsPerClass); n > 0 && err == nil {
			warnings, err = drawTraining(j.o.Budget, j.o.Seed+uint64(number), n, j.info.Classes, ids, labels, splits)
		}
	}
	j.warnOfSplit(number, warnings)
	return err
}

// drawSplit draws a split among the labelled nodes of a list.
func (j nodeTable) drawSplit(number int, ids []uint32, labels []int32, splits []uint8) (warnings []string, err error) {
	if warnings, err = j.split.check(j.info.Classes, classSizes(labels, len(j.info.Classes))); err != nil {
		return nil, err
	}
	return warnings, j.split.draw(j.o.Budget, j.o.Seed+uint64(number), len(j.info.Classes), ids, labels, splits)
}

// warnOfSplit keeps the warnings of the first split for the summary.
func (j nodeTable) warnOfSplit(number int, warnings []string) {
	if number == 0 {
		j.ordered.Warnings = warnings
	}
}

// readPublished sets a published split by node.
func (j nodeTable) readPublished(ctx context.Context, number int, splits []uint8) error {
	return j.eachSplit(ctx, number, func(row int64, id uint32, split dataset.Split) error {
		node, err := j.node(id, "split", row)
		if err != nil {
			return err
		}
		if old := dataset.Split(splits[node]); old != dataset.NoSplit && old != split {
			return dataset.Repeated(ctx, j.ds, dataset.SplitRows, id)
		}
		splits[node] = uint8(split)
		return nil
	})
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
