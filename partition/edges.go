package partition

import (
	"context"
	"sort"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"ndls/catalog"
	"ndls/internal/extsort"
	"ndls/internal/inorder"
	"ndls/internal/progress"
	"ndls/internal/share"
	"ndls/shards"
	"ndls/steps"
)

// relabelPairs implements edgeSteps.
func (j *sortedEdges[T]) relabelPairs(ctx context.Context, p steps.Piece) error {
	if p.In(j.have(Relabel)) {
		return nil
	}
	if err := j.nodeTable().ensureRelabelling(ctx); err != nil {
		return err
	}
	pairs, err := j.rankedPairs(ctx, p)
	if err != nil {
		return err
	}
	defer pairs.close()
	keys := max(2*pairs.keys(), 1)
	s, kept, err := pairs.again(keys)
	switch {
	case err != nil:
	case s != nil:
		err = j.turnKept(ctx, s, kept)
	default:
		if s, err = extsort.NewSorter[T](ctx, j.o.Budget, j.scratch, sortOptions(keys, j.o.Threads, false)); err != nil {
			return err
		}
		err = j.eachPair(ctx, "sorting edges", pairs, pairs.each, j.bothDirections(s, s.Add))
	}
	if err == nil {
		err = s.Finish()
	}
	if err != nil {
		s.Close()
		return err
	}
	return j.keys.save(ctx, Relabel, p, s, [2]int64{})
}

// rankedPairs opens unique pairs in a form that needs no memory of the budget while they are visited. A worker that continues after the
// step Order holds sorted pairs; it first writes them by rank.
func (j *sortedEdges[T]) rankedPairs(ctx context.Context, p steps.Piece) (pairSource[T], error) {
	pairs, err := j.keys.openPairs(ctx, p)
	if err != nil || pairs.ranked() || !j.alone {
		return pairs, err
	}
	defer pairs.close()
	if err := j.eachPair(ctx, "ranking edges", pairs, pairs.each, pairs.pass); err != nil {
		return nil, err
	}
	return j.keys.openPairs(ctx, p)
}

// turnKept replaces pairs by rank in the memory of s by one direction of their edges, and adds the other one.
func (j *sortedEdges[T]) turnKept(ctx context.Context, s *extsort.Sorter[T], pairs []T) error {
	meter := progress.Start(ctx, "sorting edges", int64(len(pairs)), "edges")
	defer meter.Done()
	turn := j.bothDirections(s, func(edges []T) error {
		s.Changed(edges)
		return ctx.Err()
	})
	return share.Ranges(j.o.Threads, len(pairs), extsort.BatchKeys, func(lo, hi int) error {
		meter.Add(int64(hi - lo))
		return turn(pairs[lo:hi])
	})
}

// bothDirections returns a function that replaces pairs by rank by one direction of their edges, which it gives to first, and adds the
// other one to s. If edges have directions, the keys of the reversed ones follow all others.
func (j *sortedEdges[T]) bothDirections(s *extsort.Sorter[T], first func(edges []T) error) func(pairs []T) error {
	nodeOf, edge := j.nodeOf.S, newEdgeKeys(j.ordered.Cuts)
	reversed := uint64(0) // added to the keys of reversed edges
	if j.info.Directed {
		reversed = edge.reversedOffset()
	}
	return func(batch []T) error {
		for len(batch) > 0 {
			part := batch[:min(len(batch), lookAhead)]
			batch = batch[len(part):]
			for i := range part {
				_, hi := pairOfKey(extsort.Key(&part[i]))
				atomic.LoadUint32(&nodeOf[hi])
			}
			if err := s.AddFrom(len(part), func(others []T) {
				for i := range part {
					lo, hi := pairOfKey(extsort.Key(&part[i]))
					u, v := nodeOf[lo], nodeOf[hi]
					extsort.Set(&others[i], edge.of(v, u)+reversed, extsort.Value(&part[i]))
					extsort.SetKey(&part[i], edge.of(u, v))
				}
			}); err != nil {
				return err
			}
			if err := first(part); err != nil {
				return err
			}
		}
		return nil
	}
}

// writeRows implements edgeSteps. Pieces of the step Rows are files of edges; one more piece joins the node table.
func (j *sortedEdges[T]) writeRows(ctx context.Context, p steps.Piece) error {
	if p.Last > j.ordered.rowPieces() {
		if err := j.nodeTable().joinParts(ctx); err != nil {
			return err
		}
		p.Last--
	}
	var missing []int // pieces to make from sorted edges
	for i := p.First; i < p.Last; i++ {
		files := j.ordered.files(i)
		shard, hasShard := j.cat.Lookup(files.shard.Path)
		_, hasStream := j.cat.Lookup(files.hops.Path)
		switch {
		case hasStream && (hasShard || j.ordered.NoShards):
		case hasShard:
			if err := BuildHops(ctx, j.cat, shard); err != nil {
				return err
			}
		default:
			missing = append(missing, i)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	w := &rowsWriter[T]{job: j.job, ctx: ctx, edge: newEdgeKeys(j.ordered.Cuts), missing: missing}
	first, _ := w.keys(missing[0])
	_, end := w.keys(missing[len(missing)-1])
	edges, err := j.keys.openEdges(ctx, first, end)
	if err != nil {
		return err
	}
	defer edges.Close()
	w.meter = progress.Start(ctx, "writing shards", 0, "edges")
	defer w.meter.Done()
	defer w.close()
	if err := edges.InOrder(w.add); err != nil {
		return err
	}
	return w.finish()
}

// rowsWriter cuts the sorted keys of directed edges into shards and hop streams.
type rowsWriter[T extsort.Item] struct {
	*job
	ctx     context.Context
	edge    *edgeKeys
	meter   *progress.Meter
	missing []int          // pieces left, including the one being written
	cur     *edgesWriter   // nil before the first edge of a piece
	commit  errgroup.Group // of one piece, while the next is written
}

// keys returns the range of keys of the edges of a piece: from first to below end.
func (w *rowsWriter[T]) keys(piece int) (first, end uint64) {
	f := w.ordered.files(piece)
	return w.edge.first(f.lo, f.reversed), w.edge.first(f.hi, f.reversed)
}

// add adds the next edges.
func (w *rowsWriter[T]) add(keys []T) error {
	w.meter.Add(int64(len(keys)))
	for len(keys) > 0 && len(w.missing) > 0 {
		if err := w.begin(); err != nil {
			return err
		}
		first, end := w.keys(w.missing[0])
		skip := keysBelow(keys, first) // these edges have a shard already
		n := keysBelow(keys, end)
		if err := addEdges(w.cur, keys[skip:n]); err != nil {
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

// keysBelow returns the number of edges, which are in order, with keys below key.
func keysBelow[T extsort.Item](edges []T, key uint64) int {
	return sort.Search(len(edges), func(i int) bool { return extsort.Key(&edges[i]) >= key })
}

// begin starts the first missing piece, unless it is being written.
func (w *rowsWriter[T]) begin() (err error) {
	if w.cur == nil {
		w.cur, err = newEdgesWriter(w.ctx, w.job, w.missing[0], w.edge)
	}
	return err
}

// end completes the piece that is being written and starts to commit it.
func (w *rowsWriter[T]) end() error {
	done := w.cur
	if err := done.finish(); err != nil {
		return err
	}
	if err := w.commit.Wait(); err != nil {
		return err
	}
	w.cur, w.missing = nil, w.missing[1:]
	w.commit.Go(func() error { return w.cat.Commit(w.ctx, done.files()...) })
	return nil
}

// finish completes all pieces; those that are left have no edges.
func (w *rowsWriter[T]) finish() error {
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

// close drops files that are not committed.
func (w *rowsWriter[T]) close() {
	_ = w.commit.Wait() // finish returned its error
	if w.cur != nil {
		w.cur.abort()
	}
}

// maxPages is the largest number of threads that encode pages: more would wait for the one that writes.
const maxPages = 6

// edgesWriter writes a shard, unless there are none, and its hop stream side by side.
type edgesWriter struct {
	ctx         context.Context
	edge        *edgeKeys
	meta        shards.EdgeMeta
	shard, hops *catalog.File      // shard is nil if there is none
	edges       *shards.EdgeWriter // nil if there is no shard
	stream      *shards.HopWriter
	pages       *inorder.Line[shards.EdgePage]
	page        *shards.EdgePage // being filled
}

// newEdgesWriter creates both files of a piece.
func newEdgesWriter(ctx context.Context, j *job, piece int, edge *edgeKeys) (_ *edgesWriter, err error) {
	files := j.ordered.files(piece)
	w := &edgesWriter{
		ctx: ctx, edge: edge,
		meta: shards.EdgeMeta{
			Interval: files.number, Lo: files.lo, Hi: files.hi, NumNodes: j.ordered.Nodes, BlockRows: BlockRows,
			Weighted: j.info.Weighted,
		},
	}
	defer func() {
		if err != nil {
			w.abort()
		}
	}()
	encode := (*shards.EdgePage).Check
	if !j.ordered.NoShards {
		encode = (*shards.EdgePage).Encode
		if w.shard, err = j.cat.Create(ctx, files.shard); err != nil {
			return nil, err
		}
		if w.edges, err = shards.NewEdgeWriter(w.shard, w.meta); err != nil {
			return nil, err
		}
	}
	if w.hops, err = j.cat.Create(ctx, files.hops); err != nil {
		return nil, err
	}
	if w.stream, err = shards.NewHopWriter(w.hops, w.meta); err != nil {
		return nil, err
	}
	threads := min(j.o.Threads, maxPages)
	if threads == 1 {
		threads = 0 // the merging thread encodes
	}
	pages := make([]shards.EdgePage, threads+2)
	for i := range pages {
		pages[i] = newPage(w.meta)
	}
	w.pages = inorder.New(threads, pages, func(p *shards.EdgePage) error { return encode(p, w.meta) }, w.write)
	return w, nil
}

// addEdges adds the next edges to the files of an edgesWriter.
func addEdges[T extsort.Item](w *edgesWriter, keys []T) (err error) {
	for len(keys) > 0 {
		if w.page == nil {
			if w.page, err = w.pages.Next(); err != nil {
				return err
			}
			w.page.Clear()
		}
		p, at := w.page, len(w.page.Src)
		n := min(len(keys), shards.EdgePageRows-at)
		p.Src, p.Dst = p.Src[:at+n], p.Dst[:at+n]
		src, dst := p.Src[at:], p.Dst[at:]
		for i := range keys[:n] {
			src[i], dst[i] = w.edge.edge(extsort.Key(&keys[i]))
		}
		if w.meta.Weighted {
			for i := range keys[:n] {
				p.Weights = append(p.Weights, extsort.Value(&keys[i]))
			}
		}
		if keys = keys[n:]; at+n == shards.EdgePageRows {
			w.put()
		}
	}
	return w.ctx.Err()
}

// put passes on the filled page.
func (w *edgesWriter) put() {
	w.page = nil
	w.pages.Put()
}

// write appends the edges of a page to the files.
func (w *edgesWriter) write(p *shards.EdgePage) error {
	if w.edges != nil {
		if err := w.edges.WritePage(p); err != nil {
			return err
		}
	}
	return w.stream.Write(p.Src, p.Dst, p.Weights)
}

// finish completes the files without committing them.
func (w *edgesWriter) finish() (err error) {
	if w.page != nil {
		w.put()
	}
	if err := w.pages.Close(); err != nil {
		return err
	}
	shard := "" // its checksum
	if w.shard != nil {
		if w.shard.Rows, err = w.edges.Close(); err != nil {
			return err
		}
		shard = w.shard.Sum()
	}
	w.hops.Rows, err = w.stream.Close(shard)
	return err
}

// files returns the files that the writer has created.
func (w *edgesWriter) files() (files []*catalog.File) {
	for _, f := range []*catalog.File{w.shard, w.hops} {
		if f != nil {
			files = append(files, f)
		}
	}
	return files
}

// abort drops the files.
func (w *edgesWriter) abort() {
	if w.pages != nil {
		_ = w.pages.Close()
	}
	for _, f := range w.files() {
		f.Abort()
	}
}

// newPage returns an empty page of a shard.
func newPage(m shards.EdgeMeta) shards.EdgePage {
	p := shards.NewEdgePage()
	if m.Weighted {
		p.Weights = make([]float32, 0, shards.EdgePageRows)
	}
	return p
}
