package shards

import (
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"unsafe"

	"github.com/apache/arrow/go/v14/arrow/memory"
	"github.com/apache/arrow/go/v14/parquet"
	"github.com/apache/arrow/go/v14/parquet/compress"
	"github.com/apache/arrow/go/v14/parquet/file"
	"github.com/apache/arrow/go/v14/parquet/metadata"
	"github.com/apache/arrow/go/v14/parquet/schema"

	"ndls/catalog"
	"ndls/internal/mem"
	"ndls/internal/packed"
	"ndls/internal/seal"
	"ndls/internal/storage"
)

// edgeGroupRows is the number of edges in a row group. One of its columns is held in memory, compressed, while the other is written.
const edgeGroupRows = 1 << 20

// edgeCodec compresses the pages of shards.
var edgeCodec = compress.Codecs.Snappy

var (
	edgeColumns  = []column{uint32Column("src"), uint32Column("dst")}
	weightColumn = column{"weight", parquet.Types.Float, schema.NoLogicalType{}}
)

// weightsType is the type of weights, as metadata spell it.
const weightsType = "float32"

// columns returns the columns of a shard.
func (m EdgeMeta) columns() []column {
	if m.Weighted {
		return append(edgeColumns[:2:2], weightColumn)
	}
	return edgeColumns
}

// EdgeMeta describes the part of the matrix that a shard holds: the edges whose destination is in [Lo, Hi) of NumNodes nodes, in blocks of
// BlockRows destinations, counted from 0.
type EdgeMeta struct {
	Interval  int
	Lo, Hi    int64
	NumNodes  int64
	BlockRows int64
	// Weighted says that each edge has a weight.
	Weighted bool
}

func (m EdgeMeta) valid() bool {
	return m.Interval >= 0 && m.Interval <= math.MaxInt32 && m.Lo >= 0 && m.Lo <= m.Hi && m.Hi <= m.NumNodes &&
		m.NumNodes <= math.MaxUint32 && m.BlockRows > 0
}

func (m EdgeMeta) pairs() []string {
	number := func(n int64) string { return strconv.FormatInt(n, 10) }
	pairs := []string{
		"ndls.interval", number(int64(m.Interval)), "ndls.lo", number(m.Lo), "ndls.hi", number(m.Hi),
		"ndls.nodes", number(m.NumNodes), "ndls.block_rows", number(m.BlockRows),
	}
	if m.Weighted {
		pairs = append(pairs, keyWeights, weightsType)
	}
	return pairs
}

// EdgeWriter writes an edge shard. Pages are encoded independently, on any thread ([EdgePage.Encode]), and written in order.
type EdgeWriter struct {
	meta   EdgeMeta
	sink   *seal.Writer
	footer *metadata.FileMetaDataBuilder
	props  *parquet.WriterProperties
	rows   int64 // in complete row groups
	groups int

	group   *metadata.RowGroupMetaDataBuilder // nil between two row groups
	inGroup int                               // rows
	bytes   int64                             // in the pages
	columns []file.PageWriter
	// later holds the pages of all columns but the first, because a file has the first column of a row group first.
	later []laterPages
	last  edgeOrder // after the last page
}

// laterPages holds the pages of a column, one after the other.
type laterPages struct {
	pages []byte
	ends  []pageEnd
}

// pageEnd is the end of a page in laterPages, and its number of rows.
type pageEnd struct{ at, rows int }

// EdgePageRows is the number of edges in an [EdgePage].
const EdgePageRows = pageBytes / 4

// EdgePage holds consecutive edges of a shard: a page of each column.
type EdgePage struct {
	// Src and Dst are the edges, EdgePageRows in all pages but the last.
	Src, Dst []uint32
	// Weights are the weights of the edges, in a graph with weights.
	Weights []float32

	packed [3][]byte
	last   edgeOrder
	wrong  string // what is wrong with edge at; "" if nothing is
	at     int
}

// NewEdgePage returns an empty page.
func NewEdgePage() EdgePage {
	return EdgePage{Src: make([]uint32, 0, EdgePageRows), Dst: make([]uint32, 0, EdgePageRows)}
}

// Clear empties the page.
func (p *EdgePage) Clear() { p.Src, p.Dst, p.Weights = p.Src[:0], p.Dst[:0], p.Weights[:0] }

// Encode compresses the edges of a page, and records for [EdgeWriter.WritePage] whether they are in order and inside the bounds of the
// shard.
func (p *EdgePage) Encode(m EdgeMeta) error {
	if err := p.look(m); err != nil {
		return err
	}
	codec, err := compress.GetCodec(edgeCodec)
	if err != nil {
		return fmt.Errorf("compress edges: %w", err)
	}
	columns := [][]byte{mem.AsBytes(p.Src), mem.AsBytes(p.Dst)}
	if m.Weighted {
		columns = append(columns, mem.AsBytes(p.Weights))
	}
	for i, values := range columns {
		p.packed[i] = codec.Encode(p.packed[i][:cap(p.packed[i])], values)
	}
	return nil
}

// Check returns an error for a page whose edges are out of order or outside the bounds of m, or whose weights are invalid. It is for pages
// that are not written to a shard.
func (p *EdgePage) Check(m EdgeMeta) error {
	if err := p.look(m); err != nil || p.wrong == "" {
		return err
	}
	return fmt.Errorf("edge %d → %d of the interval [%d, %d) %s", p.Src[p.at], p.Dst[p.at], m.Lo, m.Hi, p.wrong)
}

// look records the first edge that is wrong.
func (p *EdgePage) look(m EdgeMeta) error {
	weights := 0
	if m.Weighted {
		weights = len(p.Src)
	}
	if len(p.Src) != len(p.Dst) || len(p.Src) == 0 || len(p.Src) > EdgePageRows || len(p.Weights) != weights {
		return fmt.Errorf("a page of %d sources, %d destinations and %d weights", len(p.Src), len(p.Dst), len(p.Weights))
	}
	p.last = edgeOrder{}
	p.at, p.wrong = p.last.follow(m, p.Src, p.Dst)
	for i, w := range p.Weights {
		if !packed.ValidWeight(w) {
			p.at, p.wrong = i, fmt.Sprintf("has weight %v", w)
			break
		}
	}
	return nil
}

// NewEdgeWriter starts a shard on w. The caller commits w after Close.
func NewEdgeWriter(w io.Writer, m EdgeMeta) (*EdgeWriter, error) {
	if !m.valid() {
		return nil, fmt.Errorf("shards: edge shard with impossible bounds %+v", m)
	}
	root, err := parquetSchema(m.columns())
	if err != nil {
		return nil, err
	}
	pairs, err := parquetPairs(catalog.KindEdges, m.pairs())
	if err != nil {
		return nil, err
	}
	e := &EdgeWriter{meta: m, sink: seal.NewWriter(w), props: writerProperties()}
	e.columns = make([]file.PageWriter, len(m.columns()))
	e.later = make([]laterPages, len(e.columns)-1)
	e.footer = metadata.NewFileMetadataBuilder(schema.NewSchema(root), e.props, pairs)
	_, err = e.sink.Write([]byte(seal.Parquet))
	return e, err
}

// WritePage appends the edges of an encoded page. Edges must come in ascending order of (block of dst, src, dst), without repetitions,
// inside the bounds of the shard. Only the last page of a shard may have fewer edges than EdgePageRows.
func (w *EdgeWriter) WritePage(p *EdgePage) (err error) {
	defer func() { recovered(w.sink, &err, recover()) }()
	if p.wrong != "" {
		return w.misplaced(p.at, p.Src[p.at], p.Dst[p.at], p.wrong)
	}
	if _, wrong := w.last.follow(w.meta, p.Src[:1], p.Dst[:1]); wrong != "" {
		return w.misplaced(0, p.Src[0], p.Dst[0], wrong)
	}
	if w.inGroup%EdgePageRows != 0 {
		return errors.New("a page of edges follows one that is not full")
	}
	w.last = p.last
	if w.group == nil {
		if err := w.beginGroup(); err != nil {
			return err
		}
	}
	if err := w.put(0, p.packed[0], len(p.Src)); err != nil {
		return err
	}
	for i := range w.later {
		l := &w.later[i]
		l.pages = append(l.pages, p.packed[1+i]...)
		l.ends = append(l.ends, pageEnd{len(l.pages), len(p.Dst)})
	}
	if w.inGroup += len(p.Src); w.inGroup == edgeGroupRows {
		return w.endGroup()
	}
	return nil
}

func (w *EdgeWriter) beginGroup() (err error) {
	w.group, w.bytes = w.footer.AppendRowGroup(), 0
	for i := range w.columns {
		w.columns[i], err = file.NewPageWriter(position{w.sink}, edgeCodec, w.props.CompressionLevelFor(w.meta.columns()[i].name),
			w.group.NextColumnChunk(),
			int16(w.groups), int16(i), allocator, false, nil, nil)
		if err != nil {
			return fmt.Errorf("shards: writing edges: %w", err)
		}
	}
	return nil
}

// put writes an encoded page of a column.
func (w *EdgeWriter) put(column int, page []byte, rows int) error {
	data := file.NewDataPageV1WithStats(memory.NewBufferBytes(page), int32(rows), parquet.Encodings.Plain,
		parquet.Encodings.RLE, parquet.Encodings.RLE, int32(4*rows), metadata.EncodedStatistics{})
	defer data.Release()
	n, err := w.columns[column].WriteDataPage(data)
	if err != nil {
		return fmt.Errorf("shards: writing edges: %w", err)
	}
	w.bytes += n
	return nil
}

func (w *EdgeWriter) endGroup() error {
	if err := w.columns[0].Close(false, false); err != nil {
		return fmt.Errorf("shards: writing edges: %w", err)
	}
	for i := range w.later {
		l := &w.later[i]
		from := 0
		for _, end := range l.ends {
			if err := w.put(1+i, l.pages[from:end.at], end.rows); err != nil {
				return err
			}
			from = end.at
		}
		if err := w.columns[1+i].Close(false, false); err != nil {
			return fmt.Errorf("shards: writing edges: %w", err)
		}
		l.pages, l.ends = l.pages[:0], l.ends[:0]
	}
	w.group.SetNumRows(w.inGroup)
	if err := w.group.Finish(w.bytes, int16(w.groups)); err != nil {
		return fmt.Errorf("shards: writing edges: %w", err)
	}
	w.sink.Mark(w.inGroup)
	w.rows += int64(w.inGroup)
	w.groups++
	w.group, w.inGroup = nil, 0
	return nil
}

// position is a sink that tells the Parquet library the number of bytes written.
type position struct{ *seal.Writer }

// Tell implements the library's interface.
func (p position) Tell() int64 { return p.Pos() }

// edgeOrder is the last edge so far, against which the next ones are checked.
type edgeOrder struct {
	block uint64 // block of the edge plus one, 0 before the first edge
	edge  uint64 // source and destination in one number
}

// follow returns the first edge that is out of order or out of bounds, and the reason. Readers rely on the order: it fixes the order of
// sums.
func (o *edgeOrder) follow(m EdgeMeta, src, dst []uint32) (at int, wrong string) {
	lo, hi, nodes, blockRows := uint64(m.Lo), uint64(m.Hi), uint64(m.NumNodes), uint64(m.BlockRows)
	last := *o
	blockLo, rows := uint64(0), uint64(0) // of the present block, within the shard
	if last.block > 0 {
		blockLo = (last.block - 1) * blockRows
		rows = min(blockRows, hi-blockLo)
	}
	dst = dst[:len(src)]
	for i := range src {
		s, d := uint64(src[i]), uint64(dst[i])
		edge := s<<32 | d
		if d-blockLo < rows && d >= lo && s < nodes && edge > last.edge {
			last.edge = edge // nearly all edges
			continue
		}
		if d < lo || d >= hi || s >= nodes {
			return i, "is outside the shard's bounds"
		}
		if last.block > 0 && d < blockLo+blockRows {
			return i, "is not in ascending order of block, source, destination"
		}
		last = edgeOrder{d/blockRows + 1, edge}
		blockLo = (last.block - 1) * blockRows
		rows = min(blockRows, hi-blockLo)
	}
	*o = last
	return 0, ""
}

// misplaced returns the error about edge i of a page.
func (w *EdgeWriter) misplaced(i int, src, dst uint32, why string) error {
	return fmt.Errorf("edge %d → %d at row %d of interval %d %s", src, dst, w.rows+int64(w.inGroup+i), w.meta.Interval, why)
}

// Close writes the footer and returns the number of edges. It neither closes nor commits the underlying writer.
func (w *EdgeWriter) Close() (rows int64, err error) {
	defer func() { recovered(w.sink, &err, recover()) }()
	if w.group != nil {
		if err := w.endGroup(); err != nil {
			return 0, err
		}
	}
	w.sink.Hold()
	return w.rows, closeParquet(w.sink, w.footer)
}

// EdgeReader reads an edge shard from its first edge to its last.
type EdgeReader struct {
	meta  EdgeMeta
	in    *parquetReader
	group int
	left  int64
	cols  []file.ColumnChunkReader
}

// OpenEdges checks the shard's footer and metadata; errors use name. r stays open when reading is done.
func OpenEdges(r storage.Reader, name string) (*EdgeReader, error) {
	in, err := openSealed(r, name)
	if err != nil {
		return nil, err
	}
	e := &EdgeReader{in: in}
	e.meta.Weighted = in.meta(keyWeights) != ""
	if err := in.checked(catalog.KindEdges, e.meta.columns()); err != nil {
		return nil, err
	}
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

// Meta returns the part of the matrix that the shard holds.
func (e *EdgeReader) Meta() EdgeMeta { return e.meta }

// Read fills src and dst, which have the same length, from the front and
// returns the number of edges; io.EOF comes alone, with 0. A damaged row group
// gives seal.ErrCorrupt before any of its edges.
func (e *EdgeReader) Read(src, dst []uint32) (n int, err error) { return e.ReadWeighted(src, dst, nil) }

// ReadWeighted is [EdgeReader.Read] that also fills weights, unless they are nil. Edges of a graph without weights have the weight 1.
func (e *EdgeReader) ReadWeighted(src, dst []uint32, weights []float32) (n int, err error) {
	if len(src) != len(dst) || weights != nil && len(src) != len(weights) {
		return 0, fmt.Errorf("%d sources for %d destinations and %d weights", len(src), len(dst), len(weights))
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
	if weights != nil {
		if err := e.readWeights(weights[:n]); err != nil {
			return 0, err
		}
	}
	e.left -= int64(n)
	return n, nil
}

// readWeights fills weights with the next weights of the row group.
func (e *EdgeReader) readWeights(weights []float32) error {
	if !e.meta.Weighted {
		for i := range weights {
			weights[i] = 1
		}
		return nil
	}
	if err := readColumn(e.in, e.cols[2], weights); err != nil {
		return err
	}
	for i, w := range weights {
		if !packed.ValidWeight(w) {
			return seal.Corrupt(e.in.name, "row group %d: an edge has weight %v, value %d of those read at a time", e.group-1, w, i)
		}
	}
	return nil
}

func (e *EdgeReader) nextGroup() (err error) {
	if e.cols, e.left, err = e.in.columns(e.group, len(e.meta.columns())); err != nil {
		return err
	}
	e.group++
	return nil
}

// asInt32 views values as their physical type in Parquet.
func asInt32(values []uint32) []int32 {
	return unsafe.Slice((*int32)(unsafe.Pointer(unsafe.SliceData(values))), len(values))
}
