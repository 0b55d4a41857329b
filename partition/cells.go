package partition

import (
	"encoding/binary"
	"hash/crc32"
	"iter"
	"slices"
	"sync"

	"ndls/internal/direct"
	"ndls/internal/mem"
	"ndls/internal/seal"
	"ndls/shards"
)

// Rows of features that do not stay in memory are scattered to the cells of a file: a scratch file, or a file of the step Deal. A cell has
// some consecutive rows of an interval, and is filled chunk by chunk. The full chunks of all cells follow each other in the file, in the
// order in which they became full; behind them is the last chunk of each cell, in order. A chunk of r rows holds
//
//	numbers  r times the number of a row in its cell, uint32
//	values   for each panel, r rows as in tiles
//
// All numbers are little-endian.

// cells describes the cells of a file.
type cells struct {
	nodes, interval int64 // of the graph; rows of an interval
	rows            int64 // of a cell; the last one of an interval may have fewer
	panels          int
	half            bool // values are float16, else float32
}

const (
	// panelChunk bounds the values of a panel in a chunk, in bytes.
	panelChunk = 4 << 20
	// numberBytes is the size of the number of a row.
	numberBytes = 4
)

// perInterval returns the number of cells of an interval.
func (c cells) perInterval() int64 { return (min(c.interval, c.nodes) + c.rows - 1) / c.rows }

// count returns the number of cells.
func (c cells) count() int64 { return (c.nodes + c.interval - 1) / c.interval * c.perInterval() }

// place returns the number of a node's cell, and its row there.
func (c cells) place(node int64) (cell, row int64) {
	inside := node % c.interval
	return node/c.interval*c.perInterval() + inside/c.rows, inside % c.rows
}

func (c cells) rowBytes() int64 { return int64(shards.TileRowBytes(c.half)) }

// record returns the number of bytes of so many panels of a row.
func (c cells) record(panels int) int64 { return numberBytes + int64(panels)*c.rowBytes() }

// chunk returns the size of a full chunk. The chunks of all cells together take at most so many bytes, and one chunk at most half of them;
// but a chunk holds at least one row.
func (c cells) chunk(bytes int64) int64 {
	size := min(bytes/max(c.count(), 2), int64(c.panels)*panelChunk)
	return max(size, c.record(c.panels)+direct.Align-1) &^ (direct.Align - 1)
}

// cellIndex finds the rows of each cell in a file. It is the index of a file of the step Deal ([sealIndex]).
type cellIndex struct {
	Half  bool     `json:"half"`
	Chunk int64    `json:"chunk"` // bytes of a full chunk
	Rows  []int64  `json:"rows"`  // of each cell
	Full  []uint32 `json:"full"`  // the cell of each full chunk
	// Sums has the checksums (CRC-32C) of the numbers and of the values of each panel, chunk by chunk; none of a scratch file.
	Sums []uint32 `json:"sums"`
}

// cellChunk is a chunk of a file.
type cellChunk struct {
	at, length int64
	rows       int64
	sums       []uint32
}

// fullRows returns the number of rows of a full chunk.
func (x cellIndex) fullRows(c cells) int64 {
	c.half = x.Half
	return x.Chunk / c.record(c.panels)
}

// longest returns the number of rows of the longest chunk.
func (x cellIndex) longest(c cells) int64 { return min(x.fullRows(c), slices.Max(x.Rows)) }

// chunks lists the chunks of a cell.
func (x cellIndex) chunks(c cells, cell int64) iter.Seq[cellChunk] {
	full := x.fullRows(c)
	c.half = x.Half
	sums := func(chunk int) []uint32 {
		if len(x.Sums) == 0 {
			return nil
		}
		return x.Sums[chunk*(1+c.panels):]
	}
	return func(yield func(cellChunk) bool) {
		for i, of := range x.Full {
			if int64(of) == cell && !yield(cellChunk{int64(i) * x.Chunk, x.Chunk, full, sums(i)}) {
				return
			}
		}
		before, chunk := int64(0), len(x.Full)
		for _, rows := range x.Rows[:cell] {
			if rows %= full; rows > 0 {
				before, chunk = before+rows, chunk+1
			}
		}
		record := c.record(c.panels)
		if rows := x.Rows[cell] % full; rows > 0 {
			yield(cellChunk{int64(len(x.Full))*x.Chunk + before*record, rows * record, rows, sums(chunk)})
		}
	}
}

// cellWriter is a rowStore that writes rows to a file of cells. It loads nothing.
type cellWriter struct {
	noRows
	cells
	out     func(chunk []byte) error
	full    int64 // rows of a full chunk
	size    int64 // of a full chunk
	filling []fillingCell
	buffers *mem.Array[byte] // one chunk per cell

	mu      sync.Mutex // held while a chunk is written
	written int
	of      *mem.Array[uint32] // the cell of each chunk
	sums    *mem.Array[uint32] // nil without checksums
}

// fillingCell counts the rows of a cell.
type fillingCell struct {
	mu   sync.Mutex
	rows int64
}

// newCellWriter takes so many bytes of the budget for chunks, or more if these are not enough for a row of each cell.
func newCellWriter(b *mem.Budget, bytes int64, c cells, summed bool, out func(chunk []byte) error) (_ *cellWriter, err error) {
	size := c.chunk(bytes)
	w := &cellWriter{cells: c, out: out, size: size, full: size / c.record(c.panels), filling: make([]fillingCell, c.count())}
	defer func() {
		if err != nil {
			w.close()
		}
	}()
	if w.buffers, err = mem.Alloc[byte](b, c.count()*size, "feature cells"); err != nil {
		return nil, err
	}
	if w.of, err = mem.Alloc[uint32](b, 1, "feature cells"); err != nil || !summed {
		return w, err
	}
	w.sums, err = mem.Alloc[uint32](b, 1, "checksums of feature cells")
	return w, err
}

func (w *cellWriter) close() {
	w.buffers.Free()
	w.of.Free()
	w.sums.Free()
}

func (w *cellWriter) put(nodes []uint32, values []float32, encoded []byte) error {
	for i, node := range nodes {
		if !shards.EncodeTile(encoded, rowOf(values, i, nodes), w.half) {
			return errNotHalf
		}
		if err := w.add(int64(node), encoded); err != nil {
			return err
		}
	}
	return nil
}

// add adds a row in tile form to the cell of its node.
func (w *cellWriter) add(node int64, tiles []byte) error {
	cell, number := w.place(node)
	c, size := &w.filling[cell], w.rowBytes()
	c.mu.Lock()
	defer c.mu.Unlock()
	chunk, at := w.chunkOf(cell), c.rows%w.full
	binary.LittleEndian.PutUint32(chunk[at*numberBytes:], uint32(number))
	for p := range int64(w.panels) {
		copy(chunk[w.full*numberBytes+(p*w.full+at)*size:], tiles[p*size:][:size])
	}
	if c.rows++; c.rows%w.full > 0 {
		return nil
	}
	return w.write(cell, w.full, w.size)
}

// chunkOf returns the chunk that a cell is filling.
func (w *cellWriter) chunkOf(cell int64) []byte { return w.buffers.S[cell*w.size:][:w.size] }

// write writes so many bytes of a cell's chunk, which has so many rows.
func (w *cellWriter) write(cell, rows, length int64) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	chunk, n := w.chunkOf(cell), w.written
	if err := grow(w.of, n, 1); err != nil {
		return err
	}
	w.of.S[n] = uint32(cell)
	if w.sums != nil {
		if err := grow(w.sums, n*(1+w.panels), 1+w.panels); err != nil {
			return err
		}
		for i, section := range sections(chunk, rows, w.panels, w.rowBytes()) {
			w.sums.S[n*(1+w.panels)+i] = crc32.Checksum(section, seal.Castagnoli)
		}
	}
	w.written++
	return w.out(chunk[:length])
}

// grow makes room for more elements behind the first n.
func grow(a *mem.Array[uint32], n, more int) error {
	if n+more <= len(a.S) {
		return nil
	}
	return a.Grow(int64(max(2*n, n+more)), "feature cells")
}

// sections lists the numbers, then the values of each panel of a chunk.
func sections(chunk []byte, rows int64, panels int, rowBytes int64) iter.Seq2[int, []byte] {
	return func(yield func(int, []byte) bool) {
		size := rows * numberBytes
		for i := 0; i <= panels && yield(i, chunk[:size]); i++ {
			chunk, size = chunk[size:], rows*rowBytes
		}
	}
}

// seal writes the last chunk of each cell.
func (w *cellWriter) seal() error {
	size := w.rowBytes()
	for i := range w.filling {
		rows := w.filling[i].rows % w.full
		if rows == 0 {
			continue
		}
		chunk := w.chunkOf(int64(i))
		for p := range int64(w.panels) { // the rows of a panel follow those of the one before
			copy(chunk[(numberBytes+p*size)*rows:], chunk[(numberBytes+p*size)*w.full:][:rows*size])
		}
		if err := w.write(int64(i), rows, rows*w.record(w.panels)); err != nil {
			return err
		}
	}
	w.buffers.Free()
	return nil
}

// index returns the index of the sealed file. It is valid until close.
func (w *cellWriter) index() cellIndex {
	x := cellIndex{Half: w.half, Chunk: w.size, Rows: make([]int64, len(w.filling))}
	full := int64(0)
	for i := range w.filling {
		x.Rows[i] = w.filling[i].rows
		full += x.Rows[i] / w.full
	}
	x.Full = w.of.S[:full]
	if w.sums != nil {
		x.Sums = w.sums.S[:w.written*(1+w.panels)]
	}
	return x
}
