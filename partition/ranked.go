package partition

import (
	"bufio"
	"container/heap"
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"slices"
	"sort"
	"strings"

	"ndls/catalog"
	"ndls/internal/mem"
	"ndls/internal/progress"
	"ndls/internal/seal"
	"ndls/steps"
)

// A file of the step Rank consists of lots, each with the nodes of as many ids as fit in memory:
//
//	records     the nodes of a lot in ascending order, each with its data for the node table
//	components  those with edges, in ascending order of their first ids
//
// It ends with an index of the lots ([sealIndex]). A record is
//
//	node, id, degree, component, label, edges that begin there   uint32 each; the component is its first id
//	strength                                                     float64, in a graph with weights
//	splits                                                       a byte each
//
// and a component is its first id, its first node in the lot, and its number of nodes in the lot, uint32 each. All numbers are
// little-endian.

// rankIndex is the index of a file of the step Rank.
type rankIndex struct {
	Splits   int         `json:"splits"`
	Weighted bool        `json:"weighted,omitempty"`
	Lots     []rankedLot `json:"lots"`
}

// known returns the number of bytes of a record before its splits.
func (r rankIndex) known() int {
	if r.Weighted {
		return recordBytes + strengthBytes
	}
	return recordBytes
}

// rankedLot holds the first node and the checksum (CRC-32C) of each block of records, and the checksum of the components.
type rankedLot struct {
	Rows       int64    `json:"rows"`
	Components int64    `json:"components"`
	Firsts     []uint32 `json:"firsts"`
	Sums       []uint32 `json:"sums"`
	Sum        uint32   `json:"sum"`
}

const (
	// recordBytes is the size of a record without strength and splits, componentBytes of a component.
	recordBytes    = 24
	componentBytes = 12
	// recordBlock is the number of records that share a checksum.
	recordBlock = 1 << 12
	// leastRanked is the number of nodes in a lot if memory is short.
	leastRanked = 1 << 8
	// smallDegrees bounds the degrees that are looked up in an array.
	smallDegrees = 1 << 16
)

// rankNodes executes pieces of the step Rank: it gives the ids of ranges their nodes.
func (j ordering) rankNodes(ctx context.Context, p steps.Piece) error {
	ranges, err := j.gathered(ctx, p)
	if err != nil {
		return err
	}
	for _, r := range ranges {
		if r.piece.In(havePieces(j.cat, Rank)) {
			continue
		}
		if err := j.rankRange(ctx, r); err != nil {
			return err
		}
	}
	return nil
}

func (j ordering) rankRange(ctx context.Context, r gatheredRange) error {
	// Memory decides where lots end, so two attempts may write different files.
	path := runPath(Rank, r.piece) + "-" + strings.ToLower(rand.Text()[:8])
	return j.cat.Write(ctx, keysOf(Rank, path).Pieces(r.piece.First, r.piece.Last), func(f *catalog.File) error {
		w := &ranker{ordering: j, r: r, out: f, index: rankIndex{Splits: max(j.o.Splits, 1), Weighted: j.info.Weighted, Lots: []rankedLot{}}}
		defer w.free()
		if err := w.readClasses(ctx); err != nil {
			return err
		}
		if err := w.eachLot(ctx); err != nil {
			return err
		}
		for _, lot := range w.index.Lots {
			f.Rows += lot.Rows
		}
		return sealIndex(f, w.index)
	})
}

// ranker ranks the nodes of a range.
type ranker struct {
	ordering
	r     gatheredRange
	out   io.Writer
	index rankIndex
	// degrees lists those of the range in ascending order; next has the next node of each. place maps a small degree to its index.
	degrees, next, starts, place *mem.Array[uint32]
	set                          *idSet // the ids, unless all are stated

	// Of a lot:
	ids, degree, component, begins, order, sizes *mem.Array[uint32]
	space                                        [2]*mem.Array[uint32]
	labels                                       *mem.Array[int32]
	strength                                     *mem.Array[uint64] // bits, in a graph with weights
	splits                                       *mem.Array[uint8]
	rows                                         int64 // allocated
	buffer                                       []byte
}

func (w *ranker) free() {
	for _, a := range []*mem.Array[uint32]{
		w.degrees, w.next, w.starts, w.place, w.ids, w.degree, w.component, w.begins, w.order,
		w.sizes, w.space[0], w.space[1],
	} {
		a.Free()
	}
	w.labels.Free()
	w.strength.Free()
	w.splits.Free()
	if w.set != nil {
		w.set.free()
	}
}

// readClasses finds the first node of each degree.
func (w *ranker) readClasses(ctx context.Context) (err error) {
	for _, a := range []**mem.Array[uint32]{&w.degrees, &w.next, &w.starts} {
		if *a, err = mem.Alloc[uint32](w.o.Budget, w.r.classes, "degree counts"); err != nil {
			return err
		}
	}
	n := 0
	if err := w.eachClass(ctx, w.r, func(degree, nodes uint32) {
		w.degrees.S[n] = degree
		w.r.nodes += int64(nodes)
		n++
	}); err != nil {
		return err
	}
	first, firsts := int64(w.r.piece.First), w.starts.S[:0]
	if err := w.eachOf(ctx, orderFirsts, steps.Unit(0), idRange{lo: first, hi: first + 1}, 1, func(_, complement uint32) error {
		if len(firsts) == n {
			return w.otherDegrees(n + 1)
		}
		firsts = append(firsts, complement)
		return nil
	}); err != nil {
		return err
	}
	if len(firsts) != n {
		return w.otherDegrees(len(firsts))
	}
	slices.Sort(firsts)
	for i, complement := range firsts {
		w.next.S[i] = ^complement
	}
	largest := uint32(0)
	if n > 0 {
		largest = w.degrees.S[n-1]
	}
	if w.place, err = mem.Alloc[uint32](w.o.Budget, min(int64(largest)+1, smallDegrees), "degree counts"); err != nil {
		return err
	}
	for i, degree := range w.degrees.S {
		if int64(degree) < int64(len(w.place.S)) {
			w.place.S[degree] = uint32(i)
		}
	}
	return nil
}

func (w *ranker) otherDegrees(n int) error {
	return fmt.Errorf("step %s left the first nodes of %d degrees for a range that has %d: %w", Order, n, len(w.degrees.S), seal.ErrCorrupt)
}

// class returns the index of a degree.
func (w *ranker) class(degree uint32) uint32 {
	if int64(degree) < int64(len(w.place.S)) {
		return w.place.S[degree]
	}
	at, _ := slices.BinarySearch(w.degrees.S, degree)
	return uint32(at)
}

// eachLot ranks the ids of the range, as many at a time as fit in memory.
func (w *ranker) eachLot(ctx context.Context) (err error) {
	if !w.ordered.Stated {
		if w.set, err = newIDSet(w.o.Budget); err != nil {
			return err
		}
		if err := w.eachOf(ctx, Gather, w.r.piece, w.r.idRange, w.o.Threads, func(id, _ uint32) error { return w.set.add(id) }); err != nil {
			return err
		}
		if err := w.set.rankAll(); err != nil {
			return err
		}
	}
	if err := w.alloc(); err != nil {
		return err
	}
	meter := progress.Start(ctx, "ordering nodes", w.r.nodes, "nodes")
	defer meter.Done()
	n := 0
	add := func(id uint32) error {
		w.ids.S[n] = id
		if n++; n < len(w.ids.S) {
			return nil
		}
		meter.Add(int64(n))
		err := w.rankLot(ctx, w.ids.S[:n])
		n = 0
		return err
	}
	if w.set != nil {
		err = w.set.each(func(_, id uint32) error { return add(id) })
	} else {
		for id := w.r.lo; id < w.r.hi && err == nil; id++ {
			err = add(uint32(id))
		}
	}
	if err == nil && n > 0 {
		err = w.rankLot(ctx, w.ids.S[:n])
	}
	return err
}

func (w *ranker) alloc() (err error) {
	w.buffer = make([]byte, 0, recordBlock*(w.index.known()+w.index.Splits))
	w.rows = max(min(w.o.Budget.Free()*7/8/rankedRow(w.index.Splits, w.info.Directed, w.info.Weighted), w.r.nodes),
		min(leastRanked, w.r.nodes))
	arrays := []**mem.Array[uint32]{&w.ids, &w.degree, &w.component, &w.order, &w.sizes, &w.space[0], &w.space[1]}
	if w.info.Directed {
		arrays = append(arrays, &w.begins)
	}
	for _, a := range arrays {
		if *a, err = mem.Alloc[uint32](w.o.Budget, w.rows, "nodes of a range"); err != nil {
			return err
		}
	}
	if w.labels, err = mem.Alloc[int32](w.o.Budget, w.rows, "labels"); err != nil {
		return err
	}
	if w.info.Weighted {
		if w.strength, err = mem.Alloc[uint64](w.o.Budget, w.rows, "strengths"); err != nil {
			return err
		}
	}
	w.splits, err = mem.Alloc[uint8](w.o.Budget, w.rows*int64(w.index.Splits), "splits")
	return err
}

// rankLot ranks consecutive ids of the range and writes their nodes.
func (w *ranker) rankLot(ctx context.Context, ids []uint32) error {
	if err := w.readLot(ctx, ids); err != nil {
		return err
	}
	n := len(ids)
	// Counting sort by descending degree.
	starts := w.starts.S
	clear(starts)
	for _, d := range w.degree.S[:n] {
		starts[w.class(d)]++
	}
	at := uint32(0)
	for c := len(starts) - 1; c >= 0; c-- {
		starts[c], at = at, at+starts[c]
	}
	for i, d := range w.degree.S[:n] {
		c := w.class(d)
		w.order.S[starts[c]] = uint32(i)
		starts[c]++ // ends where the next degree begins
	}
	lot := rankedLot{Rows: int64(n)}
	labels := distinctOf(w.component.S[:n], w.space[0].S)
	first, sizes := w.space[1].S[:len(labels)], w.sizes.S[:len(labels)]
	clear(sizes)
	label, last := -1, uint32(0)
	for at, i := range w.order.S[:n] {
		degree := w.degree.S[i]
		c := w.class(degree)
		node := w.next.S[c]
		w.next.S[c]++
		if degree > 0 {
			if x := w.component.S[i]; label < 0 || x != last {
				label, _ = slices.BinarySearch(labels, x)
				last = x
			}
			if sizes[label] == 0 {
				first[label] = node
			}
			sizes[label]++
		}
		if at%recordBlock == 0 {
			lot.Firsts = append(lot.Firsts, node)
		}
		w.record(node, ids, int(i))
		if (at+1)%recordBlock == 0 || at+1 == n {
			sum, err := w.flush()
			if err != nil {
				return err
			}
			lot.Sums = append(lot.Sums, sum)
		}
	}
	for i, x := range labels {
		if sizes[i] == 0 {
			continue
		}
		for _, v := range []uint32{x, first[i], sizes[i]} {
			w.buffer = binary.LittleEndian.AppendUint32(w.buffer, v)
		}
		lot.Sum = crc32.Update(lot.Sum, seal.Castagnoli, w.buffer[len(w.buffer)-componentBytes:])
		lot.Components++
		if len(w.buffer)+componentBytes > cap(w.buffer) {
			if _, err := w.flush(); err != nil {
				return err
			}
		}
	}
	if _, err := w.flush(); err != nil {
		return err
	}
	w.index.Lots = append(w.index.Lots, lot)
	return ctx.Err()
}

// record appends the record of an id of the lot to the buffer.
func (w *ranker) record(node uint32, ids []uint32, i int) {
	begins := uint32(0)
	if w.begins != nil {
		begins = w.begins.S[i]
	}
	b := w.buffer
	for _, v := range [...]uint32{node, ids[i], w.degree.S[i], w.component.S[i], uint32(w.labels.S[i]), begins} {
		b = binary.LittleEndian.AppendUint32(b, v)
	}
	if w.strength != nil {
		b = binary.LittleEndian.AppendUint64(b, w.strength.S[i])
	}
	w.buffer = append(b, w.splits.S[i*w.index.Splits:][:w.index.Splits]...)
}

// flush writes the buffer and returns its checksum.
func (w *ranker) flush() (sum uint32, err error) {
	sum = crc32.Checksum(w.buffer, seal.Castagnoli)
	_, err = w.out.Write(w.buffer)
	w.buffer = w.buffer[:0]
	return sum, err
}

// readLot reads the data of consecutive ids of the range.
func (w *ranker) readLot(ctx context.Context, ids []uint32) error {
	r := idRange{w.r.piece, int64(ids[0]), int64(ids[len(ids)-1]) + 1}
	at := func(id uint32) int { return int(id - ids[0]) }
	if w.set != nil {
		first, _ := w.set.rank(ids[0])
		at = func(id uint32) int {
			rank, _ := w.set.rank(id)
			return int(rank - first)
		}
	}
	clear(w.degree.S)
	copy(w.component.S, ids)
	clear(w.splits.S)
	for i := range w.labels.S {
		w.labels.S[i] = noLabel
	}
	put := func(to []uint32) func(id, n uint32) error {
		return func(id, n uint32) error {
			to[at(id)] = n
			return nil
		}
	}
	if err := w.eachOf(ctx, Gather, r.piece, r, w.o.Threads, put(w.degree.S)); err != nil {
		return err
	}
	if w.begins != nil {
		clear(w.begins.S)
		if err := w.eachOf(ctx, Gather+tallyStarts, r.piece, r, w.o.Threads, put(w.begins.S)); err != nil {
			return err
		}
	}
	if w.strength != nil {
		clear(w.strength.S)
		for kind, shift := range map[string]uint{tallyHigh: 32, tallyLow: 0} {
			if err := w.eachOf(ctx, Gather+kind, r.piece, r, w.o.Threads, func(id, half uint32) error {
				w.strength.S[at(id)] |= uint64(half) << shift
				return nil
			}); err != nil {
				return err
			}
		}
	}
	if err := w.eachOf(ctx, Gather+tallyRoots, r.piece, r, w.o.Threads, put(w.component.S)); err != nil {
		return err
	}
	if err := w.replaceBy(ctx, orderRoots, w.component.S[:len(ids)], [2][]uint32{w.space[0].S, w.space[1].S}); err != nil {
		return err
	}
	if err := w.eachOf(ctx, orderLabels, steps.Unit(0), r, w.o.Threads, func(id, label uint32) error {
		w.labels.S[at(id)] = int32(label)
		return nil
	}); err != nil {
		return err
	}
	for k := range w.index.Splits {
		if err := w.eachOf(ctx, orderSplits, steps.Unit(k), r, w.o.Threads, func(id, split uint32) error {
			w.splits.S[at(id)*w.index.Splits+k] = uint8(split)
			return nil
		}); err != nil {
			return err
		}
	}
	return nil
}

// eachOf visits the numbers of a range in the files of some pieces of a kind, on threads.
func (j ordering) eachOf(ctx context.Context, kind string, p steps.Piece, r idRange, threads int, visit func(id, n uint32) error) error {
	files, err := j.runFiles().open(ctx, kind, p, false)
	if err != nil {
		return err
	}
	defer files.Close()
	lo, hi := r.keys()
	return files.EachWithin(ctx, threads, lo, hi, func(batch []uint64) error {
		for _, key := range batch {
			if err := visit(pairOfKey(key)); err != nil {
				return err
			}
		}
		return nil
	})
}

// rankedFile is an open file of the step Rank.
type rankedFile struct {
	entry catalog.Entry
	file  io.ReaderAt
	rankIndex
	close func() error
}

// openRanked opens the files of the step Rank. If several attempts ranked the same ids, it opens one.
func (j ordering) openRanked(ctx context.Context) (files []rankedFile, err error) {
	defer func() {
		if err != nil {
			closeRanked(files)
		}
	}()
	end := 0
	for _, e := range runs(j.cat, Rank) {
		p := pieceOf(e)
		if p.First < end {
			continue
		}
		if p.First > end {
			break
		}
		end = p.Last
		r, err := j.cat.OpenOnce(ctx, e)
		if err != nil {
			return files, err
		}
		f := rankedFile{entry: e, file: r, close: r.Close}
		files = append(files, f)
		if err := readIndex(r, e.Path, &files[len(files)-1].rankIndex); err != nil {
			return files, err
		}
	}
	if end != Slices {
		return files, fmt.Errorf("the files of step %s end at piece %d; %d pieces are needed: %w", Rank, end, Slices, seal.ErrCorrupt)
	}
	return files, nil
}

func closeRanked(files []rankedFile) {
	for _, f := range files {
		_ = f.close()
	}
}

// stride returns the size of a record.
func (f rankedFile) stride() int64 { return int64(f.known() + f.Splits) }

// eachLot visits the lots with the offsets of their records and their components.
func (f rankedFile) eachLot(visit func(lot rankedLot, records, components int64) error) error {
	at := int64(0)
	for _, lot := range f.Lots {
		records := at
		components := records + lot.Rows*f.stride()
		at = components + lot.Components*componentBytes
		if blocks := (lot.Rows + recordBlock - 1) / recordBlock; int64(len(lot.Firsts)) != blocks || int64(len(lot.Sums)) != blocks {
			return seal.Corrupt(f.entry.Path, "its index has %d and %d blocks of %d records", len(lot.Firsts), len(lot.Sums), lot.Rows)
		}
		if err := visit(lot, records, components); err != nil {
			return err
		}
	}
	return nil
}

// eachRecord visits the records of the nodes [lo, hi).
func (f rankedFile) eachRecord(ctx context.Context, lo, hi int64, visit func(record []byte) error) error {
	var buffer []byte
	return f.eachLot(func(lot rankedLot, records, _ int64) error {
		// The block before the first one that begins at or after lo may have some of these nodes.
		first := max(sort.Search(len(lot.Firsts), func(i int) bool { return int64(lot.Firsts[i]) >= lo })-1, 0)
		for i := first; i < len(lot.Firsts) && int64(lot.Firsts[i]) < hi; i++ {
			from := int64(i) * recordBlock
			rows := min(lot.Rows-from, recordBlock)
			if buffer == nil {
				buffer = make([]byte, recordBlock*f.stride())
			}
			block := buffer[:rows*f.stride()]
			if err := f.readAt(block, records+from*f.stride()); err != nil {
				return err
			}
			if crc32.Checksum(block, seal.Castagnoli) != lot.Sums[i] {
				return seal.Corrupt(f.entry.Path, "block %d of its records has another checksum", i)
			}
			for ; len(block) > 0; block = block[f.stride():] {
				if node := int64(binary.LittleEndian.Uint32(block)); node < lo || node >= hi {
					continue
				}
				if err := visit(block[:f.stride()]); err != nil {
					return err
				}
			}
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
		}
		return nil
	})
}

func (f rankedFile) readAt(p []byte, at int64) error {
	if n, err := f.file.ReadAt(p, at); n < len(p) {
		if err == nil || errors.Is(err, io.EOF) {
			return seal.Corrupt(f.entry.Path, "it ends too early")
		}
		return fmt.Errorf("read %s: %w", f.entry.Path, err)
	}
	return nil
}

// numberComponents executes the step Components: it numbers the components with edges in order of their first nodes. The notes of its file
// hold their number and the number of nodes of the largest.
func (j ordering) numberComponents(ctx context.Context, _ steps.Piece) error {
	if len(havePieces(j.cat, Components)) > 0 {
		return nil
	}
	files, err := j.openRanked(ctx)
	if err != nil {
		return err
	}
	defer closeRanked(files)
	largest := uint32(0)
	// By their first nodes, then by their first ids.
	byNode, err := j.sortKnown(ctx, func(add func(node, id uint32) error) error {
		return mergeComponents(files, func(c lotComponent) error {
			largest = max(largest, c.size)
			return add(c.first, c.id)
		})
	})
	if err != nil {
		return err
	}
	number := uint32(0)
	byID, err := j.sortKnown(ctx, func(add func(id, number uint32) error) error {
		return byNode.InOrder(func(batch []uint64) error {
			for _, key := range batch {
				_, id := pairOfKey(key)
				if err := add(id, number); err != nil {
					return err
				}
				number++
			}
			return nil
		})
	})
	byNode.Close()
	if err != nil {
		return err
	}
	defer byID.Close()
	return j.runFiles().write(ctx, Components, steps.Unit(0), byID.Keys(), byID.InOrder, [2]int64{int64(number), int64(largest)})
}

// lotComponent describes a component within a lot, or within all lots.
type lotComponent struct{ id, first, size uint32 }

// componentReader reads the components of a lot.
type componentReader struct {
	name      string
	in        *bufio.Reader
	left      int64
	sum, want uint32
	lotComponent
}

// next reads the next component; ok is false after the last one.
func (r *componentReader) next() (ok bool, err error) {
	if r.left == 0 {
		if r.sum != r.want {
			return false, seal.Corrupt(r.name, "its components have another checksum")
		}
		return false, nil
	}
	var b [componentBytes]byte
	if _, err := io.ReadFull(r.in, b[:]); err != nil {
		return false, fmt.Errorf("read %s: %w", r.name, err)
	}
	r.left--
	r.sum = crc32.Update(r.sum, seal.Castagnoli, b[:])
	r.lotComponent = lotComponent{binary.LittleEndian.Uint32(b[:]), binary.LittleEndian.Uint32(b[4:]), binary.LittleEndian.Uint32(b[8:])}
	return true, nil
}

// componentReaders is a heap with the smallest id on top.
type componentReaders []*componentReader

func (h componentReaders) Len() int           { return len(h) }
func (h componentReaders) Less(i, j int) bool { return h[i].id < h[j].id }
func (h componentReaders) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }

func (h *componentReaders) Push(x any) { *h = append(*h, x.(*componentReader)) }

func (h *componentReaders) Pop() any {
	last := len(*h) - 1
	x := (*h)[last]
	*h = (*h)[:last]
	return x
}

// mergeComponents visits the components of all lots in ascending order of their first ids.
func mergeComponents(files []rankedFile, visit func(lotComponent) error) error {
	var readers componentReaders
	for _, f := range files {
		if err := f.eachLot(func(lot rankedLot, _, components int64) error {
			r := &componentReader{
				name: f.entry.Path, left: lot.Components, want: lot.Sum,
				in: bufio.NewReader(io.NewSectionReader(f.file, components, lot.Components*componentBytes)),
			}
			ok, err := r.next()
			if ok {
				readers = append(readers, r)
			}
			return err
		}); err != nil {
			return err
		}
	}
	heap.Init(&readers)
	for len(readers) > 0 {
		all := readers[0].lotComponent
		all.size = 0
		for len(readers) > 0 && readers[0].id == all.id {
			r := readers[0]
			all.first, all.size = min(all.first, r.first), all.size+r.size
			ok, err := r.next()
			switch {
			case err != nil:
				return err
			case ok:
				heap.Fix(&readers, 0)
			default:
				heap.Pop(&readers)
			}
		}
		if err := visit(all); err != nil {
			return err
		}
	}
	return nil
}
