package partition

import (
	"context"
	"errors"

	"ndls/catalog"
	"ndls/dataset"
	"ndls/internal/inputid"
	"ndls/internal/mem"
)

// A Part holds the nodes of the part of a graph that Options.Only names. Its arrays are charged to Options.Budget.
type Part struct{ job *job }

// FindPart finds the nodes of a part of a graph like an import. It reads labels or splits, and edges only if ids occur in edges alone. If
// ids have to be numbered, it commits their table to cat, which must serve this purpose alone, and the streams of ds have numbers until the
// part is closed. The caller closes it.
func FindPart(ctx context.Context, ds dataset.Dataset, cat *catalog.Catalog, o Options) (*Part, error) {
	if o.Only == "" {
		return nil, errors.New("partition: no part of the graph is named")
	}
	j, err := openGraph(ctx, ds, cat, o)
	if err != nil {
		return nil, err
	}
	if err := j.numbering().load(ctx); err != nil {
		return nil, errors.Join(err, j.close())
	}
	return &Part{j}, nil
}

// openGraph returns the job of a worker that does all steps: ids have numbers, and the members are known. The caller closes it.
func openGraph(ctx context.Context, ds dataset.Dataset, cat *catalog.Catalog, o Options) (*job, error) {
	j, err := newJob(ds, cat, o)
	if err != nil {
		return nil, err
	}
	if err = j.numbering().number(ctx); err == nil {
		err = j.findMembers(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, j.close())
	}
	return j, nil
}

// CountIDs counts the ids of all nodes if they are numbered, and returns zeros if they are numbers already.
func (p *Part) CountIDs(ctx context.Context) (c IDCounts, err error) {
	if _, ok := p.job.ds.(dataset.Keyed); !ok {
		return c, nil
	}
	t, closeFile, err := p.job.numbering().openIDs(ctx)
	if err != nil {
		return c, err
	}
	defer func() { err = errors.Join(err, closeFile()) }()
	c.Nodes, c.Dense = t.Rows(), p.job.named.Type == inputid.Number
	err = t.Each(func(_ int64, keys [][]byte) error {
		for _, key := range keys {
			c.Bytes += int64(len(key))
		}
		return ctx.Err()
	})
	return c, err
}

// Has reports whether the node of an input id is in the part.
func (p *Part) Has(id uint32) bool { return p.job.holds(id) }

// Nodes returns the number of training nodes and of validation nodes in the part.
func (p *Part) Nodes() (train, valid int64) {
	for _, split := range p.job.members.split.S {
		switch split := dataset.Split(split); {
		case split == dataset.NoSplit || split > p.job.members.last:
		case split == dataset.Train:
			train++
		default:
			valid++
		}
	}
	return train, valid
}

// Close frees the memory of the part.
func (p *Part) Close() error { return p.job.close() }

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
