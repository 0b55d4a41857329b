package partition

import (
	"context"

	"ndls/dataset"
	"ndls/internal/mem"
)

// members holds the nodes of a graph that is restricted to some splits. What the dataset says of other nodes, and edges of other nodes, are
// ignored.
type members struct {
	ids   *idSet            // of all nodes in a split
	split *mem.Array[uint8] // by rank in ids
	last  dataset.Split     // the splits from Train to this one are members
}

// findMembers sets j.members if the options restrict the graph. The nodes are then the ids that occur, even if the dataset states their
// number.
func (j *job) findMembers(ctx context.Context) (err error) {
	if j.o.Only == "" {
		return nil
	}
	if j.split == nil && !j.info.HasSplits {
		return badData("--only %s, and %s has no splits: give it splits, or draw them with --split", j.o.Only, j.info.Name)
	}
	m := &members{last: dataset.Train}
	if j.o.Only == OnlyTrainValid {
		m.last = dataset.Valid
	}
	defer func() {
		if err != nil {
			m.free()
		}
	}()
	if m.ids, err = newIDSet(j.o.Budget); err != nil {
		return err
	}
	if err := j.numbering().load(ctx); err != nil {
		return err
	}
	defer j.numbering().free()
	find := m.readPublished
	if j.split != nil {
		find = m.draw
	}
	if err := find(ctx, j); err != nil {
		return err
	}
	j.members, j.stated, j.info.NumNodes = m, j.info.NumNodes, -1
	return nil
}

// readPublished reads the published splits.
func (m *members) readPublished(ctx context.Context, j *job) (err error) {
	if err := j.eachSplit(ctx, 0, func(_ int64, id uint32, _ dataset.Split) error { return m.ids.add(id) }); err != nil {
		return err
	}
	if err := m.rank(j.o.Budget); err != nil {
		return err
	}
	return j.eachSplit(ctx, 0, func(_ int64, id uint32, split dataset.Split) error {
		rank, _ := m.ids.rank(id)
		if old := dataset.Split(m.split.S[rank]); old != dataset.NoSplit && old != split {
			return dataset.Repeated(ctx, j.ds, dataset.SplitRows, id)
		}
		m.split.S[rank] = uint8(split)
		return nil
	})
}

// draw draws the splits from the labels of the whole dataset.
func (m *members) draw(ctx context.Context, j *job) error {
	if err := j.eachLabel(ctx, func(_ int64, id uint32, _ int32) error { return m.ids.add(id) }); err != nil {
		return err
	}
	if err := m.rank(j.o.Budget); err != nil {
		return err
	}
	ids, err := mem.Alloc[uint32](j.o.Budget, m.ids.n, "input ids")
	if err != nil {
		return err
	}
	defer ids.Free()
	labels, err := mem.Alloc[int32](j.o.Budget, m.ids.n, "labels")
	if err != nil {
		return err
	}
	defer labels.Free()
	if err := m.ids.each(func(rank, id uint32) error { ids.S[rank] = id; return nil }); err != nil {
		return err
	}
	if err := j.eachLabel(ctx, func(row int64, id uint32, label int32) error {
		if label < 0 || int(label) >= len(j.info.Classes) {
			return j.noClass(row, id, label)
		}
		rank, _ := m.ids.rank(id)
		labels.S[rank] = label
		return nil
	}); err != nil {
		return err
	}
	if _, err := j.split.check(j.info.Classes, classSizes(labels.S, len(j.info.Classes))); err != nil {
		return err
	}
	return j.split.draw(j.o.Budget, j.o.Seed, len(j.info.Classes), ids.S, labels.S, m.split.S)
}

// rank allocates the splits of the ids that were added.
func (m *members) rank(b *mem.Budget) (err error) {
	if err := m.ids.rankAll(); err != nil {
		return err
	}
	m.split, err = mem.Alloc[uint8](b, m.ids.n, "splits")
	return err
}

// splitOf returns the split of a member, and NoSplit for any other node.
func (m *members) splitOf(id uint32) dataset.Split {
	rank, ok := m.ids.rank(id)
	if !ok {
		return dataset.NoSplit
	}
	if s := dataset.Split(m.split.S[rank]); s <= m.last {
		return s
	}
	return dataset.NoSplit
}

func (m *members) free() {
	if m != nil && m.ids != nil {
		m.ids.free()
		m.split.Free()
	}
}

// limit returns one more than the largest input id that the dataset may have.
func (j *job) limit() int64 {
	if n := max(j.info.NumNodes, j.stated); n >= 0 {
		return n
	}
	return int64(dataset.MaxID) + 1
}

// holds reports whether the node of an input id belongs to the graph.
func (j *job) holds(id uint32) bool {
	return j.members == nil || j.members.splitOf(id) != dataset.NoSplit
}
