package partition

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"

	"ndls/catalog"
	"ndls/dataset"
	"ndls/internal/mem"
	"ndls/internal/progress"
	"ndls/internal/seal"
)

// Steps of a partition in pieces. A step may begin when all pieces of the one
// before are committed.
const (
	// Split sorts the pairs of parts of the edge list.
	Split = "split"
	// Merge gives the unique pairs of ranges of keys.
	Merge = "merge"
	// Order counts degrees, finds components and commits the node table.
	Order = "order"
	// Relabel sorts the directed edges by node id of ranges of unique pairs.
	Relabel = "relabel"
	// Rows commits the shards and hop streams of intervals.
	Rows = "rows"
	// Columns commits the feature tiles of granules.
	Columns = "columns"
	// Whole is what [Run] does with what is left: in the end, the summary.
	Whole = "whole"
)

// IsStep says whether there is such a step, other than Whole.
func IsStep(name string) bool {
	return slices.Contains([]string{Split, Merge, Order, Relabel, Rows, Columns}, name)
}

// Slices is into how many pieces the steps Split, Merge and Relabel can be cut.
const Slices = 1024

// Folders of run files.
const (
	runFolder    = "graph/runs/"
	pairsFolder  = runFolder + "pairs/"
	uniqueFolder = runFolder + "unique/"
	edgesFolder  = runFolder + "edges/"
	orderPath    = runFolder + "order.json"
)

// Piece is [First, Last) of the pieces of a step.
type Piece struct{ First, Last int }

// path is that of a piece's run file.
func (p Piece) path(folder string) string { return fmt.Sprintf("%s%04d-%04d", folder, p.First, p.Last) }

// ordered is what the step Order leaves beside the node table.
type ordered struct {
	Rows      int64 `json:"rows"`
	Loops     int64 `json:"loops"`
	Nodes     int64 `json:"nodes"`
	Stated    bool  `json:"stated"` // the dataset states the number of nodes
	Intervals int   `json:"intervals"`
	Granules  int   `json:"granules"`
}

func readOrdered(ctx context.Context, cat *catalog.Catalog) (o ordered, ok bool, err error) {
	e, ok := cat.Lookup(orderPath)
	if !ok {
		return o, false, nil
	}
	r, err := cat.Stream(ctx, e)
	if err != nil {
		return o, false, err
	}
	defer r.Close()
	text, err := io.ReadAll(r)
	if err == nil {
		err = json.Unmarshal(text, &o)
	}
	if err != nil {
		return o, false, fmt.Errorf("partition: read %s: %w", orderPath, err)
	}
	return o, true, nil
}

// Execute does a piece of a step, of the graph that open gives. What is committed
// already is not made again.
func Execute(ctx context.Context, open func() (dataset.Dataset, error), cat *catalog.Catalog, o Options, step string, p Piece) (err error) {
	if err := o.Validate(); err != nil {
		return err
	}
	ordered, isOrdered, err := readOrdered(ctx, cat)
	if err != nil {
		return err
	}
	early := step == Split || step == Merge || step == Order
	most := map[string]int{Split: Slices, Merge: Slices, Order: 1, Relabel: Slices, Rows: ordered.Intervals, Columns: ordered.Granules}[step]
	if p.First < 0 || p.First >= p.Last || p.Last > most {
		return fmt.Errorf("partition: there is no %s %d to %d", step, p.First, p.Last)
	}
	if early && isOrdered {
		return nil // an attempt that comes late
	}
	var ds dataset.Dataset = noDataset{ordered}
	if step != Order {
		o.Split = ""
	}
	if step == Split || step == Order || step == Columns {
		if ds, err = open(); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, ds.Close()) }()
	}
	j, err := newJob(ds, cat, o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, j.close()) }()
	switch step {
	case Split:
		return j.splitEdges(ctx, p)
	case Merge:
		return j.mergePairs(ctx, p)
	case Order:
		return j.orderNodes(ctx)
	case Relabel:
		return j.relabelPairs(ctx, p)
	case Rows:
		return j.writeRows(ctx, p, ordered)
	}
	if err := j.readRelabelling(ctx); err != nil {
		return err
	}
	return j.writeTiles(ctx, p)
}

// noDataset stands for the dataset in steps that do not read it.
type noDataset struct{ ordered }

func (d noDataset) Info() dataset.Info {
	if d.Stated {
		return dataset.Info{NumNodes: d.Nodes}
	}
	return dataset.Info{NumNodes: -1}
}

func (noDataset) Edges(context.Context) (dataset.EdgeReader, error) { return nil, errNoDataset }

func (noDataset) Features(context.Context) (dataset.FeatureReader, error) { return nil, errNoDataset }

func (noDataset) Labels(context.Context) (dataset.LabelReader, error) { return nil, errNoDataset }

func (noDataset) Splits(context.Context) (dataset.SplitReader, error) { return nil, errNoDataset }
func (noDataset) Close() error                                        { return nil }

var errNoDataset = errors.New("partition: this step does not read the dataset")

// commitRun commits a sorter's keys as a run file.
func (j *job) commitRun(ctx context.Context, path string, s *sorter, rows, loops int64) error {
	keys, err := s.stream()
	if err != nil {
		return err
	}
	defer keys.close()
	f, err := j.cat.Create(ctx, catalog.Describe(catalog.KindRun, path))
	if err != nil {
		return err
	}
	defer f.Abort()
	w := &runWriter{f: f, runFooter: runFooter{rows: rows, loops: loops}}
	source := readAhead(j.o.Threads, keys)
	defer source.close()
	meter := progress.Start(ctx, "writing sorted edges", 0, "edges")
	defer meter.Done()
	for {
		batch, err := source.next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err == nil {
			err = w.write(batch.keys)
		}
		if err != nil {
			return err
		}
		meter.Add(int64(len(batch.keys)))
	}
	if err := w.close(); err != nil {
		return err
	}
	return j.cat.Commit(ctx, f)
}

// openRuns opens the run files that make up a piece of a step.
func (j *job) openRuns(ctx context.Context, folder string, p Piece, all bool) (files runFiles, err error) {
	next := p.First
	for _, e := range runs(j.cat, folder) {
		q := pieceOf(e)
		if q.Last <= p.First || q.First >= p.Last {
			continue
		}
		if q.First != next || q.Last > p.Last {
			break
		}
		next = q.Last
		r, err := openRun(ctx, j.o.Budget, j.cat, e, all)
		if err != nil {
			files.close()
			return nil, err
		}
		files = append(files, r)
	}
	if next != p.Last {
		files.close()
		return nil, fmt.Errorf("partition: the files in %s end at %d, and %d to %d are needed: %w", folder, next, p.First, p.Last, seal.ErrCorrupt)
	}
	return files, nil
}

// splitEdges commits the sorted pairs of a part of the edge list. Where the nodes
// are the ids that occur, a self-loop is kept as a pair of the same id.
func (j *job) splitEdges(ctx context.Context, p Piece) error {
	path := p.path(pairsFolder)
	if _, ok := j.cat.Lookup(path); ok {
		return nil
	}
	j.part = p
	j.info.EdgeHint = j.info.EdgeHint * int64(p.Last-p.First) / Slices
	if j.info.NumNodes >= 0 {
		j.ids = allIDs(j.info.NumNodes)
	}
	s, err := j.sortPairs(ctx)
	if err != nil {
		return err
	}
	defer s.close()
	return j.commitRun(ctx, path, s, j.rows, j.loops)
}

// mergePairs commits the unique pairs of a range of keys.
func (j *job) mergePairs(ctx context.Context, p Piece) error {
	path := p.path(uniqueFolder)
	if _, ok := j.cat.Lookup(path); ok {
		return nil
	}
	files, err := j.openRuns(ctx, pairsFolder, Piece{0, Slices}, false)
	if err != nil {
		return err
	}
	var rows, loops int64
	if p.First == 0 { // of all
		for _, r := range files {
			rows, loops = rows+r.rows, loops+r.loops
		}
	}
	s := j.merge(ctx, files, files.border(p.First), files.border(p.Last))
	defer s.close()
	return j.commitRun(ctx, path, s, rows, loops)
}

// merge merges the keys in [lo, hi) of files, which it closes.
func (j *job) merge(ctx context.Context, files runFiles, lo, hi uint64) *sorter {
	var runs []run
	for _, r := range files {
		runs = append(runs, r.section(lo, hi))
	}
	return mergeOf(ctx, j.o.Budget, j.scratch, runs)
}

// orderNodes commits the node table, and what later steps have to know.
func (j *job) orderNodes(ctx context.Context) error {
	files, err := j.openRuns(ctx, uniqueFolder, Piece{0, Slices}, true)
	if err != nil {
		return err
	}
	defer files.close()
	if err := j.findNodes(ctx, files); err != nil {
		return err
	}
	degrees, err := mem.Alloc[uint32](j.o.Budget, j.ids.n, "degrees")
	if err != nil {
		return err
	}
	defer degrees.Free()
	parents, err := mem.Alloc[uint32](j.o.Budget, j.ids.n, "components")
	if err != nil {
		return err
	}
	defer parents.Free()
	components := newForest(parents.S)
	if err := j.eachPair(ctx, "counting degrees", files, func(pairs []uint64) error {
		parallel(j.o.Threads, 2, func(i int) {
			for _, k := range pairs {
				if u, v := uint32(k>>32), uint32(k); i == 0 {
					components.join(u, v)
				} else {
					degrees.S[u]++
					degrees.S[v]++
				}
			}
		})
		return nil
	}); err != nil {
		return err
	}
	ends, err := j.relabel(degrees)
	if err != nil {
		return err
	}
	defer ends.Free()
	degrees.Free()
	component, err := mem.Alloc[uint32](j.o.Budget, j.ids.n, "components")
	if err != nil {
		return err
	}
	defer component.Free()
	components.number(j.nodeOf.S, component.S)
	parents.Free()

	o := ordered{Rows: files[0].rows, Loops: files[0].loops, Nodes: j.ids.n, Stated: j.info.NumNodes >= 0, Intervals: j.intervals()}
	if j.wantFeatures() {
		o.Granules = granulesOf(j.info.NumFeatures)
	}
	text, err := json.Marshal(o)
	if err != nil {
		return err
	}
	f, err := j.cat.Create(ctx, catalog.Describe(catalog.KindRun, orderPath))
	if err != nil {
		return err
	}
	defer f.Abort()
	if _, err := f.Write(append(text, '\n')); err != nil {
		return err
	}
	f.Rows = 1
	return j.writeNodes(ctx, ends.S, component.S, f)
}

// findNodes sets j.ids.
func (j *job) findNodes(ctx context.Context, files runFiles) (err error) {
	if err := j.noteIDs(); err != nil {
		return err
	}
	if j.ids.all {
		return j.rankIDs(ctx)
	}
	meter := progress.Start(ctx, "reading node ids", files.keys(), "edges")
	defer meter.Done()
	if err := files.each(ctx, j.o.Threads, func(pairs []uint64) error {
		for _, k := range pairs {
			if err := j.ids.add(uint32(k >> 32)); err != nil {
				return err
			}
			if err := j.ids.add(uint32(k)); err != nil {
				return err
			}
		}
		meter.Add(int64(len(pairs)))
		return nil
	}); err != nil {
		return err
	}
	return j.rankIDs(ctx)
}

// eachPair visits the pairs of all files by the ranks of their ids, without
// self-loops.
func (j *job) eachPair(ctx context.Context, what string, files runFiles, visit func([]uint64) error) error {
	meter := progress.Start(ctx, what, files.keys(), "edges")
	defer meter.Done()
	return files.each(ctx, j.o.Threads, func(pairs []uint64) error {
		meter.Add(int64(len(pairs)))
		if j.ids.all {
			return visit(pairs)
		}
		n := 0
		for _, k := range pairs {
			if uint32(k>>32) == uint32(k) {
				continue
			}
			u, _ := j.ids.rank(uint32(k >> 32))
			v, _ := j.ids.rank(uint32(k))
			pairs[n] = pairKey(u, v)
			n++
		}
		return visit(pairs[:n])
	})
}

// relabelPairs commits both directions of a range of the unique pairs, in the
// order of the shards.
func (j *job) relabelPairs(ctx context.Context, p Piece) error {
	path := p.path(edgesFolder)
	if _, ok := j.cat.Lookup(path); ok {
		return nil
	}
	if err := j.readRelabelling(ctx); err != nil {
		return err
	}
	files, err := j.openRuns(ctx, uniqueFolder, p, true)
	if err != nil {
		return err
	}
	defer files.close()
	s, err := newSorter(ctx, j.o.Budget, j.scratch, sortOptions{want: max(2*files.keys(), 1), threads: j.o.Threads})
	if err != nil {
		return err
	}
	defer s.close()
	if err := j.eachPair(ctx, "sorting edges", files, j.directed(s)); err != nil {
		return err
	}
	if err := s.finish(); err != nil {
		return err
	}
	return j.commitRun(ctx, path, s, 0, 0)
}

// writeRows commits the shards and hop streams of intervals.
func (j *job) writeRows(ctx context.Context, p Piece, o ordered) error {
	j.ids = allIDs(o.Nodes)
	for i := p.First; i < p.Last; i++ {
		e, ok := j.cat.Lookup(EdgesPath(i))
		if !ok {
			if err := j.writeInterval(ctx, i); err != nil {
				return err
			}
		} else if _, ok := j.cat.Lookup(HopPath(e)); !ok {
			if err := BuildHops(ctx, j.cat, e); err != nil {
				return err
			}
		}
	}
	return nil
}

func (j *job) writeInterval(ctx context.Context, i int) error {
	files, err := j.openRuns(ctx, edgesFolder, Piece{0, Slices}, false)
	if err != nil {
		return err
	}
	s := j.merge(ctx, files, j.firstKey(i), j.firstKey(i+1))
	defer s.close()
	return j.cutShards(ctx, s, i, i+1, 0)
}

// firstKey is the smallest edgeKey into an interval.
func (j *job) firstKey(i int) uint64 {
	if block := uint64(i) * uint64(j.o.IntervalBlocks); block < 1<<blockBits {
		return block << (64 - blockBits)
	}
	return endOfRun
}
