package partition

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"

	"ndls/catalog"
	"ndls/internal/extsort"
	"ndls/internal/inorder"
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
	nodeOf, edge := j.nodeOf.S, edgeKeysOf(j.ids.n)
	buffers := sync.Pool{New: func() any { return new([edgeBatch]uint64) }}
	return func(batch []uint64) error {
		keys := buffers.Get().(*[edgeBatch]uint64)
		defer buffers.Put(keys)
		for len(batch) > 0 {
			n := min(len(batch), edgeBatch/2)
			for i, k := range batch[:n] {
				lo, hi := pairOfKey(k)
				u, v := nodeOf[lo], nodeOf[hi]
				keys[2*i], keys[2*i+1] = edge.of(u, v), edge.of(v, u)
			}
			if err := s.Add(keys[:2*n]); err != nil {
				return err
			}
			batch = batch[n:]
		}
		return nil
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
	edge, blocks := edgeKeysOf(j.ordered.Nodes), int64(j.o.IntervalBlocks)
	keys, err := j.keys.edges(ctx, edge.first(int64(missing[0])*blocks), edge.first(int64(missing[len(missing)-1]+1)*blocks))
	if err != nil {
		return err
	}
	defer keys.Close()
	meter := progress.Start(ctx, "writing shards", 0, "edges")
	defer meter.Done()
	w := &rowsWriter{job: j, ctx: ctx, edge: edge, meter: meter, missing: missing}
	defer w.close()
	if err := keys.InOrder(w.add); err != nil {
		return err
	}
	return w.finish()
}

// rowsWriter cuts the sorted keys of directed edges into shards and hop streams.
type rowsWriter struct {
	*job
	ctx     context.Context
	edge    edgeKeys
	meter   *progress.Meter
	missing []int           // intervals that are left, the one being written included
	cur     *intervalWriter // nil before the first edge of an interval
	commit  errgroup.Group  // of one interval, while the next one is written
}

// add takes the next keys.
func (w *rowsWriter) add(keys []uint64) error {
	w.meter.Add(int64(len(keys)))
	for len(keys) > 0 && len(w.missing) > 0 {
		if err := w.begin(); err != nil {
			return err
		}
		blocks := int64(w.o.IntervalBlocks)
		first, end := w.edge.first(int64(w.missing[0])*blocks), w.edge.first(int64(w.missing[0]+1)*blocks)
		skip, _ := slices.BinarySearch(keys, first) // their shard is there already
		n, _ := slices.BinarySearch(keys, end)
		if err := w.cur.add(keys[skip:n]); err != nil {
			return err
		}
		if keys = keys[n:]; len(keys) > 0 {
			if err := w.end(); err != nil {
				return err
			}
		}
	}
	return nil
}

// begin starts the first missing interval, unless it is being written.
func (w *rowsWriter) begin() (err error) {
	if w.cur == nil {
		w.cur, err = w.newInterval(w.ctx, w.missing[0], w.edge)
	}
	return err
}

// end completes the interval that is being written, and begins to commit it.
func (w *rowsWriter) end() error {
	done := w.cur
	if err := done.finish(); err != nil {
		return err
	}
	if err := w.commit.Wait(); err != nil {
		return err
	}
	w.cur, w.missing = nil, w.missing[1:]
	w.commit.Go(func() error { return w.cat.Commit(w.ctx, done.shard, done.hops) })
	return nil
}

// finish completes all intervals; those without edges are left.
func (w *rowsWriter) finish() error {
	for len(w.missing) > 0 {
		if err := w.begin(); err != nil {
			return err
		}
		if err := w.end(); err != nil {
			return err
		}
	}
	return w.commit.Wait()
}

// close drops what is not committed.
func (w *rowsWriter) close() {
	_ = w.commit.Wait() // finish has its error
	if w.cur != nil {
		w.cur.abort()
	}
}

// maxPages is how many threads encode pages: more would wait for the one that writes.
const maxPages = 6

// intervalWriter writes the shard and the hop stream of an interval side by side.
type intervalWriter struct {
	ctx         context.Context
	edge        edgeKeys
	meta        shards.EdgeMeta
	shard, hops *catalog.File
	edges       *shards.EdgeWriter
	stream      *shards.HopWriter
	pages       *inorder.Line[shards.EdgePage]
	page        *shards.EdgePage // being filled
}

// newInterval starts both files of interval i.
func (j *job) newInterval(ctx context.Context, i int, edge edgeKeys) (_ *intervalWriter, err error) {
	lo, hi := j.interval(i)
	w := &intervalWriter{
		ctx: ctx, edge: edge,
		meta: shards.EdgeMeta{Interval: i, Lo: lo, Hi: hi, NumNodes: j.ordered.Nodes, BlockRows: BlockRows},
	}
	defer func() {
		if err != nil {
			w.abort()
		}
	}()
	if w.shard, err = j.cat.Create(ctx, catalog.Describe(catalog.KindEdges, EdgesPath(i)).In(i)); err != nil {
		return nil, err
	}
	if w.hops, err = j.cat.Create(ctx, catalog.Describe(catalog.KindHops, HopPath(i)).In(i)); err != nil {
		return nil, err
	}
	if w.edges, err = shards.NewEdgeWriter(w.shard, w.meta); err != nil {
		return nil, err
	}
	if w.stream, err = shards.NewHopWriter(w.hops, w.meta); err != nil {
		return nil, err
	}
	threads := min(j.o.Threads, maxPages)
	if threads == 1 {
		threads = 0 // the one that merges
	}
	pages := make([]shards.EdgePage, threads+2)
	for i := range pages {
		pages[i] = shards.NewEdgePage()
	}
	w.pages = inorder.New(threads, pages, func(p *shards.EdgePage) error { return p.Encode(w.meta) }, w.write)
	return w, nil
}

// add takes the next keys of the interval.
func (w *intervalWriter) add(keys []uint64) (err error) {
	for len(keys) > 0 {
		if w.page == nil {
			if w.page, err = w.pages.Next(); err != nil {
				return err
			}
			w.page.Src, w.page.Dst = w.page.Src[:0], w.page.Dst[:0]
		}
		p, at := w.page, len(w.page.Src)
		n := min(len(keys), shards.EdgePageRows-at)
		p.Src, p.Dst = p.Src[:at+n], p.Dst[:at+n]
		src, dst := p.Src[at:], p.Dst[at:]
		for i, k := range keys[:n] {
			src[i], dst[i] = w.edge.edge(k)
		}
		if keys = keys[n:]; at+n == shards.EdgePageRows {
			w.put()
		}
	}
	return w.ctx.Err()
}

// put hands on the page that was filled.
func (w *intervalWriter) put() {
	w.page = nil
	w.pages.Put()
}

// write appends the edges of a page to both files.
func (w *intervalWriter) write(p *shards.EdgePage) error {
	if err := w.edges.WritePage(p); err != nil {
		return err
	}
	return w.stream.Write(p.Src, p.Dst)
}

// finish completes both files. They are still to be committed.
func (w *intervalWriter) finish() (err error) {
	if w.page != nil {
		w.put()
	}
	if err := w.pages.Close(); err != nil {
		return err
	}
	if w.shard.Rows, err = w.edges.Close(); err != nil {
		return err
	}
	w.hops.Rows, err = w.stream.Close(w.shard.Sum())
	return err
}

// abort drops both files.
func (w *intervalWriter) abort() {
	if w.pages != nil {
		_ = w.pages.Close()
	}
	for _, f := range []*catalog.File{w.shard, w.hops} {
		if f != nil {
			f.Abort()
		}
	}
}
