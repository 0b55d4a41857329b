package partition

import (
	"context"
	"encoding/binary"
	"sync"

	"ndls/internal/direct"
	"ndls/internal/extsort"
	"ndls/internal/mem"
	"ndls/shards"
)

const (
	// minChunk and maxChunk bound the unit in which rows are spilled.
	minChunk = direct.Align
	maxChunk = 1 << 20
)

// spilledRows scatters rows to cells. A cell holds the tiles of one group for a range of rows that fits in memory. Cells are filled chunk
// by chunk; the chunks of all cells follow each other in one file, in the order in which they became full.
type spilledRows struct {
	budget      *mem.Budget
	n, interval int64
	rowBytes    int64 // in a tile
	rows        int64 // in a cell; the last of an interval may have fewer
	panels      int
	groups      int
	perInterval int64 // cells of a group in an interval

	chunk   int64 // bytes
	cells   []spillCell
	buffers *mem.Array[byte]   // one chunk per cell
	places  *mem.Array[uint32] // chunk numbers in the file, cell after cell
	out     *extsort.Spill
	written uint32     // chunks
	mu      sync.Mutex // held by put

	in     *extsort.Spilled
	page   *mem.Array[byte] // one chunk
	values *mem.Array[byte] // one cell
}

// spillCell counts its records. A record is a row number within the cell and the values of the group's tiles.
type spillCell struct {
	records  int64
	record   int64 // bytes
	perChunk int64 // records
	places   int64 // first index in spilledRows.places
}

// newSpilledRows lays out cells for the given free bytes of the budget. Half of them hold the chunks being filled, and later one cell.
func newSpilledRows(b *mem.Budget, free int64, s *extsort.Scratch, n, interval int64, panels int, rowBytes int64) (_ *spilledRows,
	err error,
) {
	r := &spilledRows{
		budget: b, n: n, interval: interval, rowBytes: rowBytes, panels: panels, groups: (panels + tileGroup - 1) / tileGroup,
	}
	free = free*15/16 - 4*direct.Align // the rest is for places and whole pages
	interval = min(interval, n)
	r.rows = max(min(free/2/(tileGroup*rowBytes), interval), 1)
	r.perInterval = (interval + r.rows - 1) / r.rows
	intervals := (n + interval - 1) / interval
	count := intervals * r.perInterval * int64(r.groups)
	r.chunk = max(min(free/2/count, maxChunk)&^(direct.Align-1), minChunk)
	if r.buffers, err = mem.Alloc[byte](b, count*r.chunk, "feature cells"); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			r.close()
		}
	}()
	places := int64(0)
	r.cells = make([]spillCell, count)
	for i := range r.cells {
		first := i % r.groups * tileGroup
		c := &r.cells[i]
		c.record = 4 + int64(min(tileGroup, panels-first))*rowBytes
		c.perChunk = r.chunk / c.record
		c.places = places
		places += (r.rows + c.perChunk - 1) / c.perChunk
	}
	if r.places, err = mem.Alloc[uint32](b, places, "feature cells"); err != nil {
		return nil, err
	}
	r.out, err = s.Create()
	return r, err
}

// placeOfRow returns the number of a node's cell in the first group, and its row there.
func (r *spilledRows) placeOfRow(node int64) (first int, row int64) {
	inside := node % r.interval
	return int((node/r.interval*r.perInterval + inside/r.rows) * int64(r.groups)), inside % r.rows
}

func (r *spilledRows) put(nodes []uint32, values []float32, encoded []byte) error {
	for i, node := range nodes {
		if err := r.putRow(node, rowOf(values, i, nodes), encoded); err != nil {
			return err
		}
	}
	return nil
}

func (r *spilledRows) putRow(node uint32, values []float32, row []byte) error {
	if !shards.EncodeTile(row, values, isHalf(r.rowBytes)) {
		return errNotHalf
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	first, number := r.placeOfRow(int64(node))
	for i := first; i < first+r.groups; i++ {
		c := &r.cells[i]
		at := int64(i)*r.chunk + c.records%c.perChunk*c.record
		record := r.buffers.S[at : at+c.record]
		binary.LittleEndian.PutUint32(record, uint32(number))
		row = row[copy(record[4:], row):]
		c.records++
		if c.records%c.perChunk == 0 {
			if err := r.flush(i); err != nil {
				return err
			}
		}
	}
	return nil
}

// flush writes the chunk that cell i was filling.
func (r *spilledRows) flush(i int) error {
	c := &r.cells[i]
	r.places.S[c.places+(c.records-1)/c.perChunk] = r.written
	r.written++
	return r.out.Write(r.buffers.S[int64(i)*r.chunk:][:r.chunk])
}

func (r *spilledRows) seal() (err error) {
	for i, c := range r.cells {
		if c.records%c.perChunk != 0 {
			if err := r.flush(i); err != nil {
				return err
			}
		}
	}
	r.buffers.Free()
	out := r.out
	r.out = nil
	if r.in, err = out.Finish(); err != nil {
		return err
	}
	if r.page, err = mem.Alloc[byte](r.budget, r.chunk, "feature cell"); err != nil {
		return err
	}
	r.values, err = mem.Alloc[byte](r.budget, r.rows*tileGroup*r.rowBytes, "feature cell")
	return err
}

func (r *spilledRows) cellRows() int64 { return r.rows }

func (r *spilledRows) load(_ context.Context, lo, hi int64, first, last int) ([][]byte, error) {
	tiles := make([][]byte, last-first)
	for i := range tiles {
		tiles[i] = r.values.S[int64(i)*r.rows*r.rowBytes:][:(hi-lo)*r.rowBytes]
	}
	i, _ := r.placeOfRow(lo)
	c := r.cells[i+first/tileGroup]
	for done := int64(0); done < c.records; done += c.perChunk {
		place := r.places.S[c.places+done/c.perChunk]
		if got, err := r.in.ReadAt(r.page.S, int64(place)*r.chunk); got < len(r.page.S) {
			return nil, r.in.ReadError(err)
		}
		r.in.DropRange(int64(place)*r.chunk, r.chunk)
		for k := range min(c.perChunk, c.records-done) {
			record := r.page.S[k*c.record:][:c.record]
			row := int64(binary.LittleEndian.Uint32(record))
			for i, tile := range tiles {
				copy(tile[row*r.rowBytes:][:r.rowBytes], record[4+int64(i)*r.rowBytes:])
			}
		}
	}
	return tiles, nil
}

func (r *spilledRows) close() {
	if r.out != nil {
		r.out.Abort()
	}
	if r.in != nil {
		r.in.Close()
	}
	r.buffers.Free()
	r.places.Free()
	r.page.Free()
	r.values.Free()
}
