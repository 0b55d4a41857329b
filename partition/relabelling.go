package partition

import (
	"context"
	"errors"
	"fmt"

	"ndls/catalog"
	"ndls/internal/mem"
	"ndls/internal/seal"
	"ndls/shards"
)

// nodeTable writes the node table and the summary, and reads the table again.
type nodeTable struct{ *job }

func (j *job) nodeTable() nodeTable { return nodeTable{j} }

// readers returns the threads and the budget for reading tables.
func (j nodeTable) readers() shards.Readers {
	return shards.Readers{Threads: j.o.Threads, Budget: j.o.Budget}
}

// eachNodes visits columns of the node table in batches, or of its parts if they are not joined yet.
func (j nodeTable) eachNodes(ctx context.Context, want shards.NodeColumns, by shards.Readers,
	visit func(first int64, b shards.NodeBatch) error,
) (err error) {
	entries := j.nodeFiles()
	if len(entries) == 0 {
		return fmt.Errorf("%s is not in the catalogue: remove the run directory and run again: %w", NodesPath, seal.ErrCorrupt)
	}
	lo := int64(0)
	for _, e := range entries {
		if err := j.eachOfPart(ctx, e, lo, want, by, visit); err != nil {
			return err
		}
		lo += e.Rows
	}
	return nil
}

// nodeFiles returns the node table, or its parts in order.
func (j nodeTable) nodeFiles() []catalog.Entry {
	if e, ok := j.cat.Lookup(NodesPath); ok {
		return []catalog.Entry{e}
	}
	return runs(j.cat, Nodes)
}

// eachOfPart visits columns of a part of the node table whose first node is lo.
func (j nodeTable) eachOfPart(ctx context.Context, e catalog.Entry, lo int64, want shards.NodeColumns, by shards.Readers,
	visit func(first int64, b shards.NodeBatch) error,
) (err error) {
	r, err := j.cat.Open(ctx, e)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	return shards.ReadNodePart(r, e.Path, lo, want, by, visit)
}

// ensureRelabelling sets j.ids and j.nodeOf, unless they are set.
func (j nodeTable) ensureRelabelling(ctx context.Context) error {
	if j.nodeOf != nil {
		return nil
	}
	return j.readRelabelling(ctx)
}

// readRelabelling sets j.ids and j.nodeOf as they were when the node table was written.
func (j nodeTable) readRelabelling(ctx context.Context) (err error) {
	if j.info.NumNodes >= 0 {
		j.ids = allIDs(j.info.NumNodes)
	} else if err := j.readIDs(ctx); err != nil {
		return err
	}
	rows := int64(0)
	for _, e := range j.nodeFiles() {
		rows += e.Rows
	}
	if rows != j.ids.n {
		return fmt.Errorf("the committed node table holds %d nodes, %s %d: use another run directory", rows, j.info.Name, j.ids.n)
	}
	if j.nodeOf, err = mem.Alloc[uint32](j.o.Budget, j.ids.n, "relabelling"); err != nil {
		return err
	}
	return j.eachNodes(ctx, shards.NodeID, j.readers(), func(first int64, b shards.NodeBatch) error {
		for i, id := range b.ID {
			rank, ok := j.ids.rank(uint32(id))
			if !ok {
				return fmt.Errorf("the committed node table holds node %d, %s does not: use another run directory", id, j.info.Name)
			}
			j.nodeOf.S[rank] = uint32(first + int64(i))
		}
		return ctx.Err()
	})
}

func (j nodeTable) readIDs(ctx context.Context) (err error) {
	if j.ids, err = newIDSet(j.o.Budget); err != nil {
		return err
	}
	// The set grows while ids are read, so readers leave the budget to it.
	if err := j.eachNodes(ctx, shards.NodeID, shards.Readers{Threads: j.o.Threads}, func(_ int64, b shards.NodeBatch) error {
		for _, id := range b.ID {
			if err := j.ids.add(uint32(id)); err != nil {
				return err
			}
		}
		return ctx.Err()
	}); err != nil {
		return err
	}
	return j.ids.rankAll()
}
