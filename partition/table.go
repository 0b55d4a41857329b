package partition

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"sync/atomic"

	"ndls/catalog"
	"ndls/internal/inputid"
	"ndls/internal/mem"
	"ndls/internal/progress"
	"ndls/internal/seal"
	"ndls/internal/share"
	"ndls/shards"
	"ndls/steps"
)

// Kinds of files that the step Nodes leaves beside a part of the node table: its counts, and the bytes of each further split.
const (
	partCounts = "-counts"
	partSplits = "-splits"
)

// writeParts executes pieces of the step Nodes; each is a row group of the node table.
func (j nodeTable) writeParts(ctx context.Context, p steps.Piece) (err error) {
	if p.In(havePieces(j.cat, Nodes)) {
		return nil
	}
	w := &partWriter{nodeTable: j, lo: int64(p.First) * j.named.GroupRows(), hi: min(int64(p.Last)*j.named.GroupRows(), j.ordered.Nodes)}
	defer w.free()
	if w.files, err = j.ordering().openRanked(ctx); err != nil {
		return err
	}
	if err := w.alloc(); err != nil {
		return err
	}
	files := j.cat.Batch()
	defer files.Abort()
	create := func(e catalog.Entry) (*catalog.File, error) {
		return files.Create(ctx, e.Pieces(p.First, p.Last).Counting(w.hi-w.lo))
	}
	for k := 1; k < w.splits; k++ {
		f, err := create(splitPart(p, k))
		if err != nil {
			return err
		}
		w.further = append(w.further, f)
	}
	f, err := create(keysOf(Nodes, runPath(Nodes, p)))
	if err != nil {
		return err
	}
	meter := progress.Start(ctx, "writing the node table", w.hi-w.lo, "nodes")
	defer meter.Done()
	if err := shards.WriteNodes(f, w.lo, w.hi, j.named, j.moreNodes(), j.o.Threads, func(first int64, b shards.NodeBatch) error {
		meter.Add(int64(len(b.ID)))
		return w.fill(ctx, first, b)
	}); err != nil {
		return err
	}
	found := keysOf(Nodes+partCounts, runPath(Nodes+partCounts, p)).Pieces(p.First, p.Last).Counting(1)
	if err := files.Write(ctx, found, writeJSON(w.found)); err != nil {
		return err
	}
	return files.Commit(ctx)
}

// splitPart describes the bytes of a further split of a part of the nodes.
func splitPart(p steps.Piece, number int) catalog.Entry {
	return keysOf(Nodes+partSplits, fmt.Sprintf("%s-%03d", runPath(Nodes+partSplits, p), number)).AtHop(number)
}

// partWriter writes the rows [lo, hi) of the node table, as many at a time as fit in memory.
type partWriter struct {
	nodeTable
	lo, hi  int64
	files   []rankedFile
	splits  int
	further []*catalog.File // of the splits after the first
	found   counted

	rows                            int64 // allocated: a whole number of row groups
	first, end                      int64 // nodes in memory
	ids, degrees, component, begins *mem.Array[uint32]
	space                           [2]*mem.Array[uint32]
	labels                          *mem.Array[int32]
	strength                        *mem.Array[float64] // in a graph with weights
	split                           *mem.Array[uint8]   // of all splits, one after the other
	numbers                         *mem.Array[uint64]
	keys                            *nodeKeys
}

func (w *partWriter) free() {
	closeRanked(w.files)
	for _, a := range []*mem.Array[uint32]{w.ids, w.degrees, w.component, w.begins, w.space[0], w.space[1]} {
		a.Free()
	}
	w.labels.Free()
	w.strength.Free()
	w.split.Free()
	w.numbers.Free()
	w.keys.free()
}

func (w *partWriter) isKeyed() bool { return w.named.Type != inputid.Number }

func (w *partWriter) alloc() (err error) {
	w.splits = w.files[0].Splits
	row, group := partRow(w.splits, w.info.Directed, w.info.Weighted, w.isKeyed()), w.named.GroupRows()
	free := w.o.Budget.Free() * 7 / 8
	if w.isKeyed() {
		free /= 2 // the other half is for keys
	}
	w.rows = min(max(free/row/group, 1)*group, w.hi-w.lo)
	arrays := []**mem.Array[uint32]{&w.ids, &w.degrees, &w.component, &w.space[0], &w.space[1]}
	if w.info.Directed {
		arrays = append(arrays, &w.begins)
	}
	for _, a := range arrays {
		if *a, err = mem.Alloc[uint32](w.o.Budget, w.rows, "rows of the node table"); err != nil {
			return err
		}
	}
	if w.isKeyed() {
		if w.numbers, err = mem.Alloc[uint64](w.o.Budget, w.rows, "numbers of ids"); err != nil {
			return err
		}
	}
	if w.labels, err = mem.Alloc[int32](w.o.Budget, w.rows, "labels"); err != nil {
		return err
	}
	if w.info.Weighted {
		if w.strength, err = mem.Alloc[float64](w.o.Budget, w.rows, "strengths"); err != nil {
			return err
		}
	}
	w.split, err = mem.Alloc[uint8](w.o.Budget, w.rows*int64(w.splits), "splits")
	return err
}

// fill fills the rows of a batch.
func (w *partWriter) fill(ctx context.Context, first int64, b shards.NodeBatch) error {
	if first < w.first || first >= w.end {
		if err := w.load(ctx, first); err != nil {
			return err
		}
	}
	at, n := first-w.first, len(b.ID)
	for i, id := range w.ids.S[at:][:n] {
		b.ID[i] = int64(id)
	}
	copy(b.Degree, w.degrees.S[at:])
	copy(b.Component, w.component.S[at:])
	copy(b.Label, w.labels.S[at:])
	copy(b.Split, w.split.S[at:])
	if len(b.OutDegree) > 0 {
		copy(b.OutDegree, w.begins.S[at:])
	}
	if len(b.Strength) > 0 {
		copy(b.Strength, w.strength.S[at:])
	}
	if w.keys != nil {
		return w.keys.fill(first, b.Key)
	}
	return ctx.Err()
}

// load reads the nodes from first on, as many as fit in memory.
func (w *partWriter) load(ctx context.Context, first int64) error {
	w.first, w.end = first, min(first+w.rows, w.hi)
	n := w.end - w.first
	count := atomic.Int64{}
	if err := share.Each(w.o.Threads, len(w.files), func(i int) error {
		f := w.files[i]
		if f.Splits != w.splits {
			return seal.Corrupt(f.entry.Path, "it has %d splits and not %d", f.Splits, w.splits)
		}
		if f.Weighted != w.info.Weighted {
			return seal.Corrupt(f.entry.Path, "it has strengths: %v, and edges have weights: %v", f.Weighted, w.info.Weighted)
		}
		rows := int64(0)
		err := f.eachRecord(ctx, w.first, w.end, func(record []byte) error {
			w.put(record)
			rows++
			return nil
		})
		count.Add(rows)
		return err
	}); err != nil {
		return err
	}
	if count.Load() != n {
		return fmt.Errorf("the files of step %s have %d of the nodes %d to %d: %w", Rank, count.Load(), w.first, w.end, seal.ErrCorrupt)
	}
	if err := w.number(ctx); err != nil {
		return err
	}
	splits := func(k int) []uint8 { return w.split.S[int64(k)*w.rows:][:n] }
	w.found.add(w.countNodes(w.ids.S[:n], w.labels.S[:n], splits(0)))
	for k, f := range w.further {
		if _, err := f.Write(splits(k + 1)); err != nil {
			return err
		}
	}
	if w.isKeyed() {
		return w.loadKeys(ctx)
	}
	return nil
}

// put stores a record. Concurrent calls have records of different nodes.
func (w *partWriter) put(record []byte) {
	at := int64(binary.LittleEndian.Uint32(record)) - w.first
	w.ids.S[at] = binary.LittleEndian.Uint32(record[4:])
	w.degrees.S[at] = binary.LittleEndian.Uint32(record[8:])
	w.component.S[at] = binary.LittleEndian.Uint32(record[12:])
	w.labels.S[at] = int32(binary.LittleEndian.Uint32(record[16:]))
	if w.begins != nil {
		w.begins.S[at] = binary.LittleEndian.Uint32(record[20:])
	}
	record = record[recordBytes:]
	if w.strength != nil {
		w.strength.S[at] = math.Float64frombits(binary.LittleEndian.Uint64(record))
		record = record[strengthBytes:]
	}
	for k, split := range record {
		w.split.S[int64(k)*w.rows+at] = split
	}
}

// number replaces the first ids of components by their numbers. Nodes without an edge come last, and each is a component of its own.
func (w *partWriter) number(ctx context.Context) error {
	files, err := w.runFiles().open(ctx, Components, steps.Unit(0), false)
	if err != nil {
		return err
	}
	notes := files[0].Notes()
	files.Close()
	connected, lonely := notes[0], w.ordered.Nodes-w.ordered.Lonely // lonely: the first one
	w.found.Components, w.found.LargestComponent = connected+w.ordered.Lonely, max(notes[1], min(w.ordered.Lonely, 1))
	n := max(min(w.end, lonely)-w.first, 0)
	if err := w.ordering().replaceBy(ctx, Components, w.component.S[:n], [2][]uint32{w.space[0].S, w.space[1].S}); err != nil {
		return err
	}
	for node := w.first + n; node < w.end; node++ {
		w.component.S[node-w.first] = uint32(connected + node - lonely)
	}
	return nil
}

// loadKeys prepares the keys of the nodes in memory.
func (w *partWriter) loadKeys(ctx context.Context) (err error) {
	w.keys.free()
	numbers := w.numbers.S[:w.end-w.first]
	for i := range numbers {
		numbers[i] = pairKey(w.ids.S[i], uint32(i))
	}
	slices.Sort(numbers)
	w.keys, err = w.numbering().newNodeKeys(w.first, w.end, func(visit func(node int64, key []byte)) error {
		at := 0
		return w.numbering().eachID(ctx, func(number uint32, key []byte) {
			if at == len(numbers) {
				return
			}
			if id, i := pairOfKey(numbers[at]); id == number {
				visit(w.first+int64(i), key)
				at++
			}
		})
	})
	return err
}

// joinParts commits the node table and the further splits, made from the parts that the step Nodes left.
func (j nodeTable) joinParts(ctx context.Context) (err error) {
	if _, ok := j.cat.Lookup(NodesPath); ok {
		return nil
	}
	files := j.cat.Batch()
	defer files.Abort()
	if err := files.Write(ctx, catalog.Describe(catalog.KindNodes, NodesPath), func(f *catalog.File) (err error) {
		if f.Rows, err = j.joinNodes(ctx, f); err == nil && f.Rows != j.ordered.Nodes {
			err = fmt.Errorf("the parts of the node table have %d nodes of %d: %w", f.Rows, j.ordered.Nodes, seal.ErrCorrupt)
		}
		return err
	}); err != nil {
		return err
	}
	for number := 1; number < max(j.o.Splits, 1); number++ {
		split := catalog.Describe(catalog.KindSplits, SplitPath(number)).Counting(j.ordered.Nodes)
		if err := files.Write(ctx, split, func(f *catalog.File) error { return j.joinSplit(ctx, f, number) }); err != nil {
			return err
		}
	}
	var all counted
	for _, e := range runs(j.cat, Nodes+partCounts) {
		var c counted
		if err := readJSON(ctx, j.cat, e, &c); err != nil {
			return err
		}
		all.add(c)
		all.Components, all.LargestComponent = c.Components, c.LargestComponent
	}
	if err := files.Write(ctx, keysOf(counts, runPath(counts, steps.Unit(0))).Counting(1), writeJSON(all)); err != nil {
		return err
	}
	return files.Commit(ctx)
}

// moreNodes returns the additional column of the node table.
func (j nodeTable) moreNodes() shards.NodeColumns {
	switch {
	case j.info.Weighted:
		return shards.NodeStrength
	case j.info.Directed:
		return shards.NodeOutDegree
	}
	return 0
}

// joinNodes writes the node table.
func (j nodeTable) joinNodes(ctx context.Context, w io.Writer) (rows int64, err error) {
	parts := runs(j.cat, Nodes)
	meter := progress.Start(ctx, "joining the node table", j.ordered.Nodes, "nodes")
	defer meter.Done()
	var open shards.NodePart
	done := func() error {
		if open.Reader == nil {
			return nil
		}
		r := open.Reader
		open.Reader = nil
		return r.Close()
	}
	defer func() { err = errors.Join(err, done()) }()
	named, err := j.idsOfTable(ctx)
	if err != nil {
		return 0, err
	}
	return shards.JoinNodes(w, named, j.moreNodes(), j.o.Threads, func() (shards.NodePart, error) {
		if err := errors.Join(done(), ctx.Err()); err != nil {
			return open, err
		}
		if len(parts) == 0 {
			return open, io.EOF
		}
		e := parts[0]
		parts = parts[1:]
		meter.Add(e.Rows)
		r, err := j.cat.OpenOnce(ctx, e)
		open = shards.NodePart{Name: e.Path, Reader: r}
		return open, err
	})
}

// idsOfTable describes the input ids if no dataset is open.
func (j nodeTable) idsOfTable(ctx context.Context) (named shards.IDs, err error) {
	if _, ok := j.cat.Lookup(shards.IDsPath); !ok {
		return named, nil
	}
	t, closeFile, err := j.numbering().openIDs(ctx)
	if err != nil {
		return named, err
	}
	defer func() { err = errors.Join(err, closeFile()) }()
	if dense, err := t.Dense(); err != nil || dense {
		return named, err
	}
	return t.IDs(), nil
}

// joinSplit writes a further split.
func (j nodeTable) joinSplit(ctx context.Context, w io.Writer, number int) error {
	rows := int64(0)
	for _, e := range runs(j.cat, Nodes+partSplits) {
		if int(e.Hop) != number {
			continue
		}
		r, err := j.cat.Stream(ctx, e)
		if err != nil {
			return err
		}
		n, err := io.Copy(w, r)
		if err := errors.Join(err, r.Close()); err != nil {
			return err
		}
		rows += n
	}
	if rows != j.ordered.Nodes {
		return fmt.Errorf("the parts of split %d have %d nodes of %d: %w", number, rows, j.ordered.Nodes, seal.ErrCorrupt)
	}
	return nil
}
