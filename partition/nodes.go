package partition

import (
	"context"
	"fmt"

	"ndls/catalog"
	"ndls/dataset"
	"ndls/internal/inputid"
	"ndls/internal/mem"
	"ndls/shards"
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
	if err := shards.WriteNodes(f, 0, n, j.named, j.moreNodes(), j.o.Threads, func(first int64, b shards.NodeBatch) error {
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
		warnings, err = drawSplit(j.job, number, ids, labels, splits)
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
