package shards

import (
	"fmt"
	"io"
	"math"
	"strconv"
	"unsafe"

	"ndls/catalog"
	"ndls/internal/seal"

	"github.com/apache/arrow/go/v14/parquet"
	"github.com/apache/arrow/go/v14/parquet/file"

	"ndls/internal/storage"
)

// edgeGroupRows is the number of edges in a row group: one column of it is held
// in memory while the other is written.
const edgeGroupRows = 1 << 20

var edgeColumns = []column{uint32Column("src"), uint32Column("dst")}

// EdgeMeta says which part of the matrix a shard holds: the edges whose
// destination is in [Lo, Hi) of NumNodes nodes, in blocks of BlockRows
// destinations, counted from 0.
type EdgeMeta struct {
	Interval  int
	Lo, Hi    int64
	NumNodes  int64
	BlockRows int64
}

func (m EdgeMeta) valid() bool {
	return m.Interval >= 0 && m.Interval <= math.MaxInt32 && m.Lo >= 0 && m.Lo <= m.Hi && m.Hi <= m.NumNodes &&
		m.NumNodes <= math.MaxUint32 && m.BlockRows > 0
}

func (m EdgeMeta) pairs() []string {
	number := func(n int64) string { return strconv.FormatInt(n, 10) }
	return []string{
		"ndls.interval", number(int64(m.Interval)), "ndls.lo", number(m.Lo), "ndls.hi", number(m.Hi),
		"ndls.nodes", number(m.NumNodes), "ndls.block_rows", number(m.BlockRows),
	}
}

// EdgeWriter writes an edge shard.
type EdgeWriter struct {
	meta  EdgeMeta
	out   *parquetWriter
	group file.SerialRowGroupWriter
	src   file.ColumnChunkWriter
	// held is sources that do not fill a batch yet: where pages end depends on
	// batches, and must not depend on how many edges come at a time.
	held []uint32
	// dst is held back: in a file, a row group's first column comes first.
	dst  []uint32
	last [3]uint64
}

// NewEdgeWriter starts a shard on w, which the caller commits after Close.
func NewEdgeWriter(w io.Writer, m EdgeMeta) (*EdgeWriter, error) {
	return newEdgeWriter(w, m, writerProperties())
}

func newEdgeWriter(w io.Writer, m EdgeMeta, props *parquet.WriterProperties) (*EdgeWriter, error) {
	if !m.valid() {
		return nil, fmt.Errorf("shards: edge shard with impossible bounds %+v", m)
	}
	out, err := newParquetWriter(w, catalog.KindEdges, edgeColumns, m.pairs(), props)
	if err != nil {
		return nil, err
	}
	return &EdgeWriter{meta: m, out: out, held: make([]uint32, 0, pageBatch), dst: make([]uint32, 0, edgeGroupRows)}, nil
}

// Write appends edges src[i] → dst[i]. Edges must come in ascending order of
// (block of dst, src, dst), none twice, inside the bounds of the shard.
func (w *EdgeWriter) Write(src, dst []uint32) error {
	if len(src) != len(dst) {
		return fmt.Errorf("shards: %d sources for %d destinations", len(src), len(dst))
	}
	if err := w.checkOrder(src, dst); err != nil {
		return err
	}
	for len(src) > 0 {
		n := min(len(src), edgeGroupRows-len(w.dst))
		if err := w.append(src[:n], dst[:n]); err != nil {
			return err
		}
		src, dst = src[n:], dst[n:]
	}
	return nil
}

func (w *EdgeWriter) append(src, dst []uint32) (err error) {
	if w.group == nil {
		defer w.out.recovered(&err)
		w.group = w.out.file.AppendRowGroup()
		if w.src, err = w.group.NextColumn(); err != nil {
			return fmt.Errorf("shards: writing edges: %w", err)
		}
	}
	for len(src) > 0 {
		n := min(len(src), pageBatch-len(w.held))
		w.held, src = append(w.held, src[:n]...), src[n:]
		if len(w.held) == pageBatch {
			if err := w.writeHeld(); err != nil {
				return err
			}
		}
	}
	if w.dst = append(w.dst, dst...); len(w.dst) == edgeGroupRows {
		return w.endGroup()
	}
	return nil
}

func (w *EdgeWriter) writeHeld() error {
	if len(w.held) == 0 {
		return nil
	}
	err := writeColumn(w.out, w.src, asInt32(w.held))
	w.held = w.held[:0]
	return err
}

func (w *EdgeWriter) endGroup() (err error) {
	defer w.out.recovered(&err)
	if err := w.writeHeld(); err != nil {
		return err
	}
	col, err := w.group.NextColumn()
	if err != nil {
		return fmt.Errorf("shards: writing edges: %w", err)
	}
	if err := writeColumn(w.out, col, asInt32(w.dst)); err != nil {
		return err
	}
	err = w.out.endGroup(w.group, len(w.dst))
	w.group, w.dst = nil, w.dst[:0]
	return err
}

// checkOrder keeps the promise that readers rely on: sums in a fixed order.
func (w *EdgeWriter) checkOrder(src, dst []uint32) error {
	lo, hi, nodes := uint64(w.meta.Lo), uint64(w.meta.Hi), uint64(w.meta.NumNodes)
	blockRows := uint64(w.meta.BlockRows)
	// lastBlock is one more than the last edge's block, 0 before the first edge.
	lastBlock, lastSrc, lastDst := w.last[0], w.last[1], w.last[2]
	blockLo, blockHi := (lastBlock-1)*blockRows, lastBlock*blockRows
	for i := range src {
		s, d := uint64(src[i]), uint64(dst[i])
		if d < lo || d >= hi || s >= nodes {
			return w.misplaced(i, src[i], dst[i], "is outside the shard's bounds")
		}
		if d >= blockHi || lastBlock == 0 {
			lastBlock = d/blockRows + 1
			blockLo, blockHi = (lastBlock-1)*blockRows, lastBlock*blockRows
		} else if d < blockLo || s < lastSrc || s == lastSrc && d <= lastDst {
			return w.misplaced(i, src[i], dst[i], "is not in ascending order of block, source, destination")
		}
		lastSrc, lastDst = s, d
	}
	w.last = [3]uint64{lastBlock, lastSrc, lastDst}
	return nil
}

func (w *EdgeWriter) misplaced(i int, src, dst uint32, why string) error {
	return fmt.Errorf("shards: edge %d → %d at row %d of interval %d %s",
		src, dst, w.out.rows+int64(len(w.dst)+i), w.meta.Interval, why)
}

// Close writes the footer and returns the number of edges. It does not close
// or commit what is below.
func (w *EdgeWriter) Close() (rows int64, err error) {
	defer w.out.recovered(&err)
	if w.group != nil {
		if err := w.endGroup(); err != nil {
			return 0, err
		}
	}
	return w.out.rows, w.out.close()
}

// EdgeReader reads an edge shard from its first edge to its last.
type EdgeReader struct {
	meta  EdgeMeta
	in    *parquetReader
	group int
	left  int64
	cols  []file.ColumnChunkReader
}

// OpenEdges checks the shard's footer and metadata; name stands for it in
// errors. r stays open when reading is done.
func OpenEdges(r storage.Reader, name string) (*EdgeReader, error) {
	in, err := openParquet(r, name, catalog.KindEdges, edgeColumns)
	if err != nil {
		return nil, err
	}
	e := &EdgeReader{in: in}
	var interval int64
	for _, f := range []struct {
		key string
		to  *int64
	}{
		{"ndls.interval", &interval},
		{"ndls.lo", &e.meta.Lo},
		{"ndls.hi", &e.meta.Hi},
		{"ndls.nodes", &e.meta.NumNodes},
		{"ndls.block_rows", &e.meta.BlockRows},
	} {
		if *f.to, err = in.metaInt(f.key); err != nil {
			return nil, err
		}
	}
	e.meta.Interval = int(interval)
	if !e.meta.valid() {
		return nil, seal.Corrupt(name, "impossible bounds %+v", e.meta)
	}
	return e, nil
}

// Meta says which part of the matrix the shard holds.
func (e *EdgeReader) Meta() EdgeMeta { return e.meta }

// NumEdges is the number of edges in the shard.
func (e *EdgeReader) NumEdges() int64 { return e.in.rows }

// Read fills src and dst, which have the same length, from the front and
// returns the number of edges; io.EOF comes alone, with 0. A damaged row group
// gives seal.ErrCorrupt before any of its edges.
func (e *EdgeReader) Read(src, dst []uint32) (n int, err error) {
	if len(src) != len(dst) {
		return 0, fmt.Errorf("shards: %d sources for %d destinations", len(src), len(dst))
	}
	for e.left == 0 {
		if e.group == len(e.in.marks) {
			return 0, io.EOF
		}
		if err := e.nextGroup(); err != nil {
			return 0, err
		}
	}
	n = int(min(int64(len(src)), e.left))
	for i, values := range [][]uint32{src[:n], dst[:n]} {
		if err := readColumn(e.in, e.cols[i], asInt32(values)); err != nil {
			return 0, err
		}
	}
	e.left -= int64(n)
	return n, nil
}

func (e *EdgeReader) nextGroup() (err error) {
	if e.cols, e.left, err = e.in.columns(e.group, len(edgeColumns)); err != nil {
		return err
	}
	e.group++
	return nil
}

// asInt32 views values as the physical type that Parquet has for them.
func asInt32(values []uint32) []int32 {
	return unsafe.Slice((*int32)(unsafe.Pointer(unsafe.SliceData(values))), len(values))
}
