package partition

import (
	"context"
	"errors"

	"ndls/catalog"
	"ndls/dataset"
	"ndls/internal/inputid"
)

// A Part holds the nodes of the part of a graph that Options.Only names. Its arrays are charged to Options.Budget.
type Part struct{ job *job }

// FindPart finds the nodes of a part of a graph like an import. It reads labels or splits, and edges only if ids occur in edges alone. If
// ids have to be numbered, it commits their table to cat, which must serve this purpose alone, and the streams of ds have numbers until the
// part is closed. The caller closes it.
func FindPart(ctx context.Context, ds dataset.Dataset, cat *catalog.Catalog, o Options) (_ *Part, err error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	if o.Only == "" {
		return nil, errors.New("partition: no part of the graph is named")
	}
	j, err := newJob(ds, cat, o)
	if err != nil {
		return nil, err
	}
	if err = j.numbering().number(ctx); err == nil {
		err = j.findMembers(ctx)
	}
	if err == nil {
		err = j.numbering().load(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, j.close())
	}
	return &Part{j}, nil
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
