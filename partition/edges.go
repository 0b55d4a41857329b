package partition

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sort"

	"ndls/catalog"
	"ndls/internal/seal"

	"golang.org/x/sync/errgroup"

	"ndls/internal/mem"
	"ndls/internal/packed"
	"ndls/internal/progress"
	"ndls/shards"
)

const (
	rowBits   = packed.BlockShift
	rowMask   = BlockRows - 1
	blockBits = 32 - rowBits
)

// edgeKey orders directed edges by (block of dst, src, dst). It is never
// endOfRun: node ids end at dataset.MaxID.
func edgeKey(src, dst uint32) uint64 {
	return uint64(dst>>rowBits)<<(64-blockBits) | uint64(src)<<rowBits | uint64(dst&rowMask)
}

func edgeOfKey(key uint64) (src, dst uint32) {
	return uint32(key >> rowBits), uint32(key>>(64-blockBits))<<rowBits | uint32(key&rowMask)
}

// writeShards commits the shard and the hop stream of every interval, and
// returns the component numbers by node id.
func (j *job) writeShards(ctx context.Context, edges uniqueEdges) (component *mem.Array[uint32], err error) {
	sorter, component, err := j.sortEdges(ctx, edges)
	if err != nil {
		return nil, err
	}
	defer sorter.close()
	if err = j.cutShards(ctx, sorter, 0, j.intervals(), 2*edges.n); err != nil {
		component.Free()
		return nil, err
	}
	return component, nil
}

// cutShards writes the shards of intervals [first, last) from their sorted edges.
func (j *job) cutShards(ctx context.Context, sorter *sorter, first, last int, edges int64) error {
	keys, err := sorter.stream()
	if err != nil {
		return err
	}
	defer keys.close()
	meter := progress.Start(ctx, "writing shards", edges, "edges")
	defer meter.Done()
	source := &edgeSource{keys: readAhead(j.o.Threads, keys), meter: meter}
	defer source.keys.close()
	var hops errgroup.Group // packs one interval while the next shard is written
	for i := first; i < last; i++ {
		e, err := j.writeShard(ctx, i, source)
		if err := errors.Join(err, hops.Wait()); err != nil {
			return err
		}
		hops.Go(func() error { return BuildHops(ctx, j.cat, e) })
		if j.o.Threads == 1 {
			if err := hops.Wait(); err != nil {
				return err
			}
		}
	}
	return hops.Wait()
}

// sortEdges sorts both directions of all edges, and numbers the components. It
// closes edges: that gives the disk space back.
func (j *job) sortEdges(ctx context.Context, edges uniqueEdges) (_ *sorter, component *mem.Array[uint32], err error) {
	defer edges.close()
	parents, err := mem.Alloc[uint32](j.o.Budget, j.ids.n, "components")
	if err != nil {
		return nil, nil, err
	}
	defer parents.Free()
	s, err := newSorter(ctx, j.o.Budget, j.scratch, sortOptions{want: max(2*edges.n, 1), threads: j.o.Threads})
	if err != nil {
		return nil, nil, err
	}
	defer func() {
		if err != nil {
			s.close()
		}
	}()
	components := newForest(parents.S)
	if err := j.addDirected(ctx, edges, components, s); err != nil {
		return nil, nil, err
	}
	if err := s.finish(); err != nil {
		return nil, nil, err
	}
	if component, err = mem.Alloc[uint32](j.o.Budget, j.ids.n, "components"); err != nil {
		return nil, nil, err
	}
	components.number(j.nodeOf.S, component.S)
	return s, component, nil
}

// addDirected adds both directions of all edges to s and joins their ends.
func (j *job) addDirected(ctx context.Context, edges uniqueEdges, components forest, s *sorter) error {
	meter := progress.Start(ctx, "sorting edges", edges.n, "edges")
	defer meter.Done()
	add := j.directed(s)
	return edges.each(ctx, func(batch []uint64) error {
		// Two loops, so that a miss of one array does not wait for the other.
		for _, k := range batch {
			components.join(uint32(k>>32), uint32(k))
		}
		meter.Add(int64(len(batch)))
		return add(batch)
	})
}

// directed adds both directions of edges by rank to s.
func (j *job) directed(s *sorter) func([]uint64) error {
	nodeOf := j.nodeOf.S
	keys := make([]uint64, 2*batchKeys)
	return func(batch []uint64) error {
		for i, k := range batch {
			u, v := nodeOf[k>>32], nodeOf[uint32(k)]
			keys[2*i], keys[2*i+1] = edgeKey(u, v), edgeKey(v, u)
		}
		return s.add(keys[:2*len(batch)])
	}
}

// edgeSource cuts a stream of edgeKeys into edges of one interval after the
// other.
type edgeSource struct {
	keys     *aheadKeys
	rest     []uint64
	src, dst [batchKeys]uint32
	meter    *progress.Meter
}

// below returns the next edges into blocks below end, none at the end.
func (s *edgeSource) below(end int64) (src, dst []uint32, err error) {
	if len(s.rest) == 0 {
		batch, err := s.keys.next()
		if errors.Is(err, io.EOF) {
			return nil, nil, nil
		}
		if err != nil {
			return nil, nil, err
		}
		s.rest = batch.keys
	}
	n := sort.Search(len(s.rest), func(i int) bool { return int64(s.rest[i]>>(64-blockBits)) >= end })
	for i, k := range s.rest[:n] {
		s.src[i], s.dst[i] = edgeOfKey(k)
	}
	s.rest = s.rest[n:]
	s.meter.Add(int64(n))
	return s.src[:n], s.dst[:n], nil
}

// EdgesPath is where the shard of an interval is in a run directory.
func EdgesPath(interval int) string { return fmt.Sprintf("graph/edges/part-%05d.parquet", interval) }

func (j *job) writeShard(ctx context.Context, i int, source *edgeSource) (catalog.Entry, error) {
	f, err := j.cat.Create(ctx, catalog.Describe(catalog.KindEdges, EdgesPath(i)).In(i))
	if err != nil {
		return catalog.Entry{}, err
	}
	defer f.Abort()
	lo, hi := j.interval(i)
	w, err := shards.NewEdgeWriter(f, shards.EdgeMeta{Interval: i, Lo: lo, Hi: hi, NumNodes: j.ids.n, BlockRows: BlockRows})
	if err != nil {
		return catalog.Entry{}, err
	}
	for {
		src, dst, err := source.below(int64(i+1) * int64(j.o.IntervalBlocks))
		if err != nil {
			return catalog.Entry{}, err
		}
		if len(src) == 0 {
			break
		}
		if err := w.Write(src, dst); err != nil {
			return catalog.Entry{}, err
		}
	}
	if f.Rows, err = w.Close(); err != nil {
		return catalog.Entry{}, err
	}
	if err := j.cat.Commit(ctx, f); err != nil {
		return catalog.Entry{}, err
	}
	e, _ := j.cat.Lookup(EdgesPath(i))
	return e, nil
}

// HopPath is where the hop stream of a shard is in a run directory. It holds
// the start of the shard's checksum, so that a hop stream is never taken for that
// of another shard.
func HopPath(edges catalog.Entry) string {
	sum := edges.Checksum[len("sha256:"):]
	return fmt.Sprintf("graph/hops/part-%05d-%s.hops", edges.Interval, sum[:12])
}

// BuildHops derives the hop stream of a committed shard and commits it under
// [HopPath], in place of what is there.
func BuildHops(ctx context.Context, cat *catalog.Catalog, edges catalog.Entry) (err error) {
	file, err := cat.Open(ctx, edges)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	r, err := shards.OpenEdges(file, edges.Path)
	if err != nil {
		return err
	}
	f, err := cat.Create(ctx, catalog.Describe(catalog.KindHops, HopPath(edges)).In(int(edges.Interval)))
	if err != nil {
		return err
	}
	defer f.Abort()
	w, err := shards.NewHopWriter(f, r.Meta())
	if err != nil {
		return err
	}
	src, dst := make([]uint32, batchKeys), make([]uint32, batchKeys)
	for {
		n, err := r.Read(src, dst)
		if errors.Is(err, io.EOF) {
			break
		}
		if err == nil {
			err = w.Write(src[:n], dst[:n])
		}
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return fmt.Errorf("partition: hop stream of %s: %w", edges.Path, err)
		}
	}
	if f.Rows, err = w.Close(); err != nil {
		return err
	}
	if f.Rows != edges.Rows {
		return fmt.Errorf("partition: %s holds %d edges, its catalogue entry says %d: %w: remove the run directory and run again",
			edges.Path, f.Rows, edges.Rows, seal.ErrCorrupt)
	}
	return cat.Commit(ctx, f)
}
