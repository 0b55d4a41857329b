package partition

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sort"

	"golang.org/x/sync/errgroup"

	"ndls/catalog"
	"ndls/internal/ahead"
	"ndls/internal/extsort"
	"ndls/internal/progress"
	"ndls/shards"
)

// EdgesPath is where the shard of an interval is in a run directory.
func EdgesPath(interval int) string { return fmt.Sprintf("graph/edges/part-%05d.parquet", interval) }

// relabelPairs writes both directions of a range of the unique pairs, in the order of
// the shards.
func (j *job) relabelPairs(ctx context.Context, p Piece) error {
	if len(uncovered(j.keys.have(Relabel), []Piece{p})) == 0 {
		return nil
	}
	if err := j.ensureRelabelling(ctx); err != nil {
		return err
	}
	pairs, err := j.rankedPairs(ctx, p)
	if err != nil {
		return err
	}
	defer pairs.close()
	s, err := extsort.NewSorter(ctx, j.o.Budget, j.scratch, sortOptions(max(2*pairs.keys(), 1), j.o.Threads, false))
	if err != nil {
		return err
	}
	err = j.eachPair(ctx, "sorting edges", pairs, j.directed(s))
	if err == nil {
		err = s.Finish()
	}
	if err != nil {
		s.Close()
		return err
	}
	return j.keys.save(ctx, Relabel, p, s, [2]int64{})
}

// rankedPairs opens unique pairs that need no memory of the budget while they are
// visited: a worker that goes on after the step Order has sorted pairs, and writes
// them by rank first.
func (j *job) rankedPairs(ctx context.Context, p Piece) (pairSource, error) {
	pairs, err := j.keys.pairs(ctx, p)
	if err != nil || pairs.ranked() || !j.alone {
		return pairs, err
	}
	defer pairs.close()
	if err := j.eachPair(ctx, "ranking edges", pairs, pairs.pass); err != nil {
		return nil, err
	}
	return j.keys.pairs(ctx, p)
}

// directed adds both directions of edges by rank to s.
func (j *job) directed(s *extsort.Sorter) func([]uint64) error {
	nodeOf := j.nodeOf.S
	keys := make([]uint64, 2*extsort.BatchKeys)
	return func(batch []uint64) error {
		for i, k := range batch {
			lo, hi := pairOfKey(k)
			u, v := nodeOf[lo], nodeOf[hi]
			keys[2*i], keys[2*i+1] = edgeKey(u, v), edgeKey(v, u)
		}
		return s.Add(keys[:2*len(batch)])
	}
}

// writeRows commits the shards and hop streams of intervals.
func (j *job) writeRows(ctx context.Context, p Piece) error {
	var missing []int // shards
	for i := p.First; i < p.Last; i++ {
		shard, ok := j.cat.Lookup(EdgesPath(i))
		if !ok {
			missing = append(missing, i)
		} else if _, ok := j.cat.Lookup(HopPath(i)); !ok {
			if err := BuildHops(ctx, j.cat, shard); err != nil {
				return err
			}
		}
	}
	if len(missing) == 0 {
		return nil
	}
	blocks := j.o.IntervalBlocks
	keys, err := j.keys.edges(ctx, firstKey(missing[0], blocks), firstKey(missing[len(missing)-1]+1, blocks))
	if err != nil {
		return err
	}
	defer keys.Close()
	meter := progress.Start(ctx, "writing shards", 0, "edges")
	defer meter.Done()
	source := &edgeSource{keys: extsort.ReadAhead(j.o.Threads, keys), meter: meter}
	defer source.keys.Close()
	var commit errgroup.Group // of one interval, while the next one is written
	for _, i := range missing {
		shard, hops, err := j.writeInterval(ctx, i, source)
		if err := errors.Join(err, commit.Wait()); err != nil {
			if shard != nil {
				shard.Abort()
				hops.Abort()
			}
			return err
		}
		commit.Go(func() error { return j.cat.Commit(ctx, shard, hops) })
	}
	return commit.Wait()
}

// edgeSource cuts a stream of edgeKeys into edges of one interval after the
// other.
type edgeSource struct {
	keys     *ahead.Reader[extsort.Batch]
	rest     []uint64
	src, dst [extsort.BatchKeys]uint32
	meter    *progress.Meter
}

// below returns the next edges into blocks below end, none at the end.
func (s *edgeSource) below(end int64) (src, dst []uint32, err error) {
	if len(s.rest) == 0 {
		batch, err := s.keys.Next()
		if errors.Is(err, io.EOF) {
			return nil, nil, nil
		}
		if err != nil {
			return nil, nil, err
		}
		s.rest = batch.Keys
	}
	n := sort.Search(len(s.rest), func(i int) bool { return int64(s.rest[i]>>(64-blockBits)) >= end })
	for i, k := range s.rest[:n] {
		s.src[i], s.dst[i] = edgeOfKey(k)
	}
	s.rest = s.rest[n:]
	s.meter.Add(int64(n))
	return s.src[:n], s.dst[:n], nil
}

// skipTo drops the edges into blocks below first: their shard is there already.
func (s *edgeSource) skipTo(first int64) error {
	for {
		src, _, err := s.below(first)
		if err != nil || len(src) == 0 {
			return err
		}
	}
}

// writeInterval writes the shard and the hop stream of an interval side by side. They
// are still to be committed.
func (j *job) writeInterval(ctx context.Context, i int, source *edgeSource) (shard, hops *catalog.File, err error) {
	if shard, err = j.cat.Create(ctx, catalog.Describe(catalog.KindEdges, EdgesPath(i)).In(i)); err != nil {
		return nil, nil, err
	}
	if hops, err = j.cat.Create(ctx, catalog.Describe(catalog.KindHops, HopPath(i)).In(i)); err != nil {
		shard.Abort()
		return nil, nil, err
	}
	if err = j.writeEdges(i, source, shard, hops); err != nil {
		shard.Abort()
		hops.Abort()
		return nil, nil, err
	}
	return shard, hops, nil
}

// writeEdges writes the edges of interval i to both files.
func (j *job) writeEdges(i int, source *edgeSource, shard, hops *catalog.File) error {
	lo, hi := j.interval(i)
	meta := shards.EdgeMeta{Interval: i, Lo: lo, Hi: hi, NumNodes: j.ordered.Nodes, BlockRows: BlockRows}
	edges, err := shards.NewEdgeWriter(shard, meta)
	if err != nil {
		return err
	}
	stream, err := shards.NewHopWriter(hops, meta)
	if err != nil {
		return err
	}
	if err := source.skipTo(int64(i) * int64(j.o.IntervalBlocks)); err != nil {
		return err
	}
	for {
		src, dst, err := source.below(int64(i+1) * int64(j.o.IntervalBlocks))
		if err != nil {
			return err
		}
		if len(src) == 0 {
			break
		}
		if err := both(j.o.Threads,
			func() error { return stream.Write(src, dst) },
			func() error { return edges.Write(src, dst) },
		); err != nil {
			return err
		}
	}
	if shard.Rows, err = edges.Close(); err != nil {
		return err
	}
	hops.Rows, err = stream.Close(shard.Sum())
	return err
}
