package partition

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"ndls/catalog"
	"ndls/internal/direct"
	"ndls/internal/mem"
	"ndls/internal/packed"
	"ndls/internal/progress"
	"ndls/internal/seal"
	"ndls/internal/storage"
	"ndls/shards"
	"ndls/steps"
)

// If feature rows can be read from the middle, several workers read each row once. The step Deal leaves the rows of a part by interval of
// the nodes; the step Tiles makes tiles from all parts of an interval. A file of Deal holds lots of as many rows as fit in memory:
//
//	for each interval  the numbers of its rows in the lot, uint32, then, panel by panel, their values as in tiles
//
// It ends with the index of the lots, a [dealt] in JSON, followed by the length and the checksum (CRC-32C) of the index, uint32 each
// ([sealIndex]). All numbers are little-endian. Values are float16 if all values of the file are exactly float16, else float32.

// dealt is the index of a file of the step Deal.
type dealt struct {
	Half bool       `json:"half"`
	Lots []dealtLot `json:"lots"`
}

// dealtLot lists the parts of a lot, by interval.
type dealtLot []dealtPart

// dealtPart describes the rows of a lot in an interval, with the checksum (CRC-32C) of their numbers and one of their values per panel.
type dealtPart struct {
	Rows   int64    `json:"rows"`
	Nodes  uint32   `json:"nodes"`
	Panels []uint32 `json:"panels"`
}

const (
	// mostDealt is the largest number of rows in a lot: making tiles holds the numbers of a part in memory.
	mostDealt = 1 << 20
	// leastDealt is the number of rows in a lot if memory is short.
	leastDealt = 1 << 8
	// dealtBuffer is the number of bytes of a part that are written at a time.
	dealtBuffer = 1 << 18
	// numberBytes is the size of the number of a row.
	numberBytes = 4
)

// dealtRow returns the memory for a row of a lot: its values, its node and its place in the order of the lot.
func dealtRow(panels int, rowBytes int64) int64 { return int64(panels)*rowBytes + 2*numberBytes }

// dealFeatures leaves the rows of a part of the features by interval. It writes values as float16, unless a value of this part, or of
// another part written so far, is not exactly float16; then as float32.
func (j tiling) dealFeatures(ctx context.Context, p steps.Piece) error {
	if p.In(havePieces(j.cat, Deal)) {
		return nil
	}
	return j.withNodes(ctx, func() error {
		if !hasFullTiles(j.cat) {
			if err := j.dealAs(ctx, p, true); !errors.Is(err, errNotHalf) {
				return err
			}
		}
		return j.dealAs(ctx, p, false)
	})
}

func (j tiling) dealAs(ctx context.Context, p steps.Piece, half bool) error {
	return j.readingFeatures(func(seen []uint64, readers int) error {
		// Two attempts write the rows of a lot in different orders, so each has its own file name.
		path := runPath(Deal, p) + "-" + strings.ToLower(rand.Text()[:8])
		return j.cat.Write(ctx, keysOf(Deal, path).Pieces(p.First, p.Last), func(f *catalog.File) error {
			d, err := newDealer(j.job, f, half)
			if err != nil {
				return err
			}
			w := &tileWriter{tiling: j, tiles: j.tilesOf(half), readers: readers, part: p, last: j.ordered.Panels, seen: seen, store: d}
			defer func() { w.store.close() }()
			if err := w.readFeatures(ctx); err != nil {
				return err
			}
			f.Rows = w.count.Load()
			return d.seal()
		})
	})
}

// dealer is a rowStore that writes rows to a file of the step Deal, one lot at a time.
type dealer struct {
	noRows
	index     dealt
	interval  int64
	intervals int
	panels    int
	rowBytes  int64
	out       io.Writer

	rows   int64              // in a lot
	nodes  *mem.Array[uint32] // of the present lot
	order  *mem.Array[uint32] // rows of the lot, by interval
	values *mem.Array[byte]   // panel by panel
	buffer []byte

	mu   sync.RWMutex // held for writing while a lot is written
	next atomic.Int64 // next free row of the lot
}

func newDealer(j *job, out io.Writer, half bool) (_ *dealer, err error) {
	d := &dealer{
		index: dealt{Half: half, Lots: []dealtLot{}}, interval: j.intervalRows(), intervals: j.ordered.Intervals, panels: j.ordered.Panels,
		rowBytes: int64(shards.TileRowBytes(half)), out: out, buffer: make([]byte, dealtBuffer),
	}
	b := j.o.Budget
	d.rows = min(max((b.Free()-4*direct.Align)/dealtRow(d.panels, d.rowBytes), leastDealt), j.ids.n, mostDealt)
	defer func() {
		if err != nil {
			d.close()
		}
	}()
	if d.nodes, err = mem.Alloc[uint32](b, d.rows, "nodes of feature rows"); err != nil {
		return nil, err
	}
	if d.order, err = mem.Alloc[uint32](b, d.rows, "order of feature rows"); err != nil {
		return nil, err
	}
	d.values, err = mem.Alloc[byte](b, d.rows*int64(d.panels)*d.rowBytes, "features")
	return d, err
}

func (d *dealer) close() {
	d.nodes.Free()
	d.order.Free()
	d.values.Free()
}

func (d *dealer) put(nodes []uint32, values []float32, _ []byte) error {
	for i, node := range nodes {
		if err := d.putRow(node, rowOf(values, i, nodes)); err != nil {
			return err
		}
	}
	return nil
}

func (d *dealer) putRow(node uint32, values []float32) error {
	for {
		d.mu.RLock()
		if row := d.next.Add(1) - 1; row < d.rows {
			defer d.mu.RUnlock()
			d.nodes.S[row] = node
			for panel := range int64(d.panels) {
				if !shards.EncodeTile(d.values.S[(panel*d.rows+row)*d.rowBytes:], values[panel*packed.PanelColumns:][:packed.PanelColumns],
					d.index.Half) {
					return errNotHalf
				}
			}
			return nil
		}
		d.mu.RUnlock()
		if err := d.flush(false); err != nil {
			return err
		}
	}
}

// seal writes the last lot and the index.
func (d *dealer) seal() error {
	if err := d.flush(true); err != nil {
		return err
	}
	return sealIndex(d.out, d.index)
}

// sealIndex ends a file with its index.
func sealIndex(out io.Writer, index any) error {
	text, err := json.Marshal(index)
	if err != nil {
		return err
	}
	text = binary.LittleEndian.AppendUint32(text, uint32(len(text)))
	text = binary.LittleEndian.AppendUint32(text, crc32.Checksum(text[:len(text)-4], seal.Castagnoli))
	_, err = out.Write(text)
	return err
}

// readIndex reads an index that [sealIndex] wrote.
func readIndex(r storage.Reader, name string, index any) error {
	const tail = 8
	var end bytes.Buffer
	read := func(from, to int64) error {
		end.Reset()
		part := direct.NewReader(r, max(from, 0), to)
		_, err := io.Copy(&end, part)
		return errors.Join(err, part.Close())
	}
	size := r.Size()
	if err := read(size-tail, size); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	if end.Len() < tail {
		return seal.Corrupt(name, "it has no index")
	}
	length, sum := int64(binary.LittleEndian.Uint32(end.Bytes())), binary.LittleEndian.Uint32(end.Bytes()[4:])
	if length > size-tail {
		return seal.Corrupt(name, "its index has %d bytes, the file has %d", length, size)
	}
	if err := read(size-tail-length, size-tail); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	if crc32.Checksum(end.Bytes(), seal.Castagnoli) != sum || json.Unmarshal(end.Bytes(), index) != nil {
		return seal.Corrupt(name, "its index is damaged")
	}
	return nil
}

// flush writes the lot if it is full or, with end, the rows that it has.
func (d *dealer) flush(end bool) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	rows := min(d.next.Load(), d.rows)
	if rows < d.rows && !end || rows == 0 {
		return nil // another thread has written it
	}
	d.next.Store(0)
	starts := make([]int64, d.intervals+1)
	for _, node := range d.nodes.S[:rows] {
		starts[int64(node)/d.interval+1]++
	}
	for i := range d.intervals {
		starts[i+1] += starts[i]
	}
	at := slices.Clone(starts)
	for row, node := range d.nodes.S[:rows] {
		i := int64(node) / d.interval
		d.order.S[at[i]] = uint32(row)
		at[i]++
	}
	lot := make(dealtLot, d.intervals)
	for i := range lot {
		p := dealtPart{Rows: starts[i+1] - starts[i], Panels: make([]uint32, d.panels)}
		order := d.order.S[starts[i]:starts[i+1]]
		var err error
		if p.Nodes, err = d.write(order, numberBytes, func(to []byte, row uint32) {
			binary.LittleEndian.PutUint32(to, uint32(int64(d.nodes.S[row])-int64(i)*d.interval))
		}); err != nil {
			return err
		}
		for panel := range p.Panels {
			values := d.values.S[int64(panel)*d.rows*d.rowBytes:]
			if p.Panels[panel], err = d.write(order, d.rowBytes, func(to []byte, row uint32) {
				copy(to, values[int64(row)*d.rowBytes:][:d.rowBytes])
			}); err != nil {
				return err
			}
		}
		lot[i] = p
	}
	d.index.Lots = append(d.index.Lots, lot)
	return nil
}

// write writes size bytes for each row and returns their checksum.
func (d *dealer) write(order []uint32, size int64, of func(to []byte, row uint32)) (sum uint32, err error) {
	for len(order) > 0 {
		n := min(int64(len(order)), dealtBuffer/size)
		for i, row := range order[:n] {
			of(d.buffer[int64(i)*size:][:size], row)
		}
		sum = crc32.Update(sum, seal.Castagnoli, d.buffer[:n*size])
		if _, err := d.out.Write(d.buffer[:n*size]); err != nil {
			return sum, err
		}
		order = order[n:]
	}
	return sum, nil
}

// writeCells commits the tiles of cells [First, Last): panel p of interval i is cell i·panels + p.
func (j tiling) writeCells(ctx context.Context, p steps.Piece) (err error) {
	panels := j.ordered.Panels
	store, err := j.openDealt(ctx, p.First/panels, (p.Last-1)/panels+1)
	if err != nil {
		return err
	}
	defer store.close()
	var commit errgroup.Group
	defer func() { err = errors.Join(err, commit.Wait()) }()
	w := &tileWriter{tiling: j, tiles: j.tilesOf(store.half), commit: &commit, last: panels, store: store}
	meter := progress.Start(ctx, "writing feature tiles", 0, "rows")
	defer meter.Done()
	for at := p.First; at < p.Last; {
		interval, first := at/panels, at%panels
		end := min(first+tileGroup, panels, first+p.Last-at)
		if err := store.alloc(end - first); err != nil {
			return err
		}
		if err := w.writeGroup(ctx, interval, first, end, meter); err != nil {
			if errors.Is(err, errRows) {
				return cmp.Or(j.explainRows(ctx), err)
			}
			return err
		}
		at += end - first
	}
	return nil
}

// errRows reports that some node has no row of features, or several.
var errRows = fmt.Errorf("the sorted features do not have exactly one row for each node: %w", seal.ErrCorrupt)

// explainRows reads all rows to find the node that has none, or several.
func (j tiling) explainRows(ctx context.Context) error {
	return j.withNodes(ctx, func() error {
		return j.readingFeatures(func(seen []uint64, readers int) error {
			w := &tileWriter{
				tiling: j, tiles: j.tilesOf(false), readers: readers, part: allSlices, last: j.ordered.Panels, seen: seen, store: noRows{},
			}
			return w.readFeatures(ctx)
		})
	})
}

// dealtRows is a rowStore that loads the rows of tiles from the files of the step Deal.
type dealtRows struct {
	noRows
	*job
	half     bool
	rowBytes int64
	files    []dealtFile
	threads  int
	readers  inputReaders
	numbers  *mem.Array[uint32] // rows of a part, per thread
	most     int64              // largest number of rows in a part

	panels int                // allocated
	rows   int64              // in a cell
	seen   *mem.Array[uint64] // a bit for each row
	values *mem.Array[byte]   // panel by panel
}

// dealtFile is a file of Deal with the offsets of its parts in some intervals.
type dealtFile struct {
	entry catalog.Entry
	half  bool
	parts map[int][]placedPart // by interval
}

type placedPart struct {
	dealtPart
	at int64
}

// openDealt opens the files of Deal for intervals [first, last).
func (j tiling) openDealt(ctx context.Context, first, last int) (_ *dealtRows, err error) {
	d := &dealtRows{job: j.job, half: true}
	end := 0
	for _, e := range runs(j.cat, Deal) {
		piece := pieceOf(e)
		if piece.First < end {
			continue // another attempt has left the same rows
		}
		end = piece.Last
		f, err := j.readDealt(ctx, e, first, last)
		if err != nil {
			return nil, err
		}
		d.half = d.half && f.half
		for _, parts := range f.parts {
			for _, p := range parts {
				d.most = max(d.most, p.Rows)
			}
		}
		d.files = append(d.files, f)
	}
	d.rowBytes = int64(shards.TileRowBytes(d.half))
	defer func() {
		if err != nil {
			d.close()
		}
	}()
	if d.readers, err = j.takeReaders(0); err != nil {
		return nil, err
	}
	d.threads = max(min(d.readers.n, len(d.files)), 1)
	d.numbers, err = mem.Alloc[uint32](j.o.Budget, max(int64(d.threads)*d.most, 1), "numbers of feature rows")
	return d, err
}

// readDealt reads the index of a file.
func (j tiling) readDealt(ctx context.Context, e catalog.Entry, first, last int) (f dealtFile, err error) {
	f = dealtFile{entry: e, parts: map[int][]placedPart{}}
	r, err := j.cat.OpenOnce(ctx, e)
	if err != nil {
		return f, err
	}
	defer r.Close()
	var index dealt
	if err := readIndex(r, e.Path, &index); err != nil {
		return f, err
	}
	f.half = index.Half
	at := int64(0)
	for _, lot := range index.Lots {
		for i, p := range lot {
			if first <= i && i < last && p.Rows > 0 {
				f.parts[i] = append(f.parts[i], placedPart{p, at})
			}
			at += p.Rows * (numberBytes + int64(j.ordered.Panels)*int64(shards.TileRowBytes(f.half)))
		}
	}
	return f, nil
}

// alloc allocates rows of this number of panels.
func (d *dealtRows) alloc(panels int) (err error) {
	if panels == d.panels {
		return nil
	}
	d.values.Free()
	d.seen.Free()
	d.values, d.seen, d.panels = nil, nil, panels
	row := int64(panels) * d.rowBytes
	d.rows = min(d.intervalRows(), d.ordered.Nodes)
	if fits := (d.o.Budget.Free() - 4*direct.Align) * 8 / (8*row + 1); fits < d.rows {
		d.rows = max(fits/64*64, 64)
	}
	if d.seen, err = mem.Alloc[uint64](d.o.Budget, (d.rows+63)/64, "rows seen"); err != nil {
		return err
	}
	d.values, err = mem.Alloc[byte](d.o.Budget, d.rows*row, "features")
	return err
}

func (d *dealtRows) cellRows() int64 { return d.rows }

func (d *dealtRows) close() {
	d.values.Free()
	d.seen.Free()
	d.numbers.Free()
	d.readers.release()
}

// load implements rowStore: each thread reads one file after the other.
func (d *dealtRows) load(ctx context.Context, lo, hi int64, first, last int) ([][]byte, error) {
	clear(d.seen.S)
	c := &cellLoad{dealtRows: d, interval: int(lo / d.intervalRows()), first: first, last: last}
	c.lo, c.hi = lo-int64(c.interval)*d.intervalRows(), hi-int64(c.interval)*d.intervalRows()
	var next atomic.Int64
	threads, ctx := errgroup.WithContext(ctx)
	for t := range d.threads {
		threads.Go(func() error {
			numbers := d.numbers.S[int64(t)*d.most:][:d.most]
			for i := next.Add(1) - 1; i < int64(len(d.files)); i = next.Add(1) - 1 {
				if err := c.loadFile(ctx, d.files[i], numbers); err != nil {
					return err
				}
			}
			return nil
		})
	}
	if err := threads.Wait(); err != nil {
		return nil, err
	}
	if c.count.Load() != hi-lo {
		return nil, errRows
	}
	tiles := make([][]byte, last-first)
	for i := range tiles {
		tiles[i] = d.values.S[int64(i)*d.rows*d.rowBytes:][:(hi-lo)*d.rowBytes]
	}
	return tiles, nil
}

// cellLoad loads rows [lo, hi) of an interval and of panels [first, last).
type cellLoad struct {
	*dealtRows
	interval    int
	lo, hi      int64
	first, last int
	count       atomic.Int64
}

// loadFile loads the rows that a file has.
func (c *cellLoad) loadFile(ctx context.Context, f dealtFile, numbers []uint32) (err error) {
	parts := f.parts[c.interval]
	if len(parts) == 0 {
		return nil
	}
	r, err := c.cat.OpenOnce(ctx, f.entry)
	if err != nil {
		return err
	}
	defer r.Close()
	for _, p := range parts {
		if err := c.loadPart(ctx, r, f, p, numbers[:p.Rows]); err != nil {
			return fmt.Errorf("%s: %w", f.entry.Path, err)
		}
	}
	return nil
}

// loadPart loads a part of a file.
func (c *cellLoad) loadPart(ctx context.Context, r io.ReaderAt, f dealtFile, p placedPart, numbers []uint32) error {
	size := int64(shards.TileRowBytes(f.half))
	if err := section(ctx, r, p.at, p.Rows, numberBytes, p.Nodes, func(row int64, b []byte) error {
		number := binary.LittleEndian.Uint32(b)
		numbers[row] = number
		if n := int64(number); n < c.lo || n >= c.hi {
			return nil
		}
		at := int64(number) - c.lo
		if bit := uint64(1) << (at % 64); atomic.OrUint64(&c.seen.S[at/64], bit)&bit != 0 {
			return errRows
		}
		c.count.Add(1)
		return nil
	}); err != nil {
		return err
	}
	var row [packed.PanelColumns]float32
	for panel := c.first; panel < c.last; panel++ {
		to := c.values.S[int64(panel-c.first)*c.rows*c.rowBytes:]
		at := p.at + p.Rows*(numberBytes+int64(panel)*size)
		if err := section(ctx, r, at, p.Rows, size, p.Panels[panel], func(i int64, b []byte) error {
			n := int64(numbers[i])
			if n < c.lo || n >= c.hi {
				return nil
			}
			place := to[(n-c.lo)*c.rowBytes:][:c.rowBytes]
			if f.half == c.half {
				copy(place, b)
				return nil
			}
			shards.DecodeTile(row[:], b, f.half)
			shards.EncodeTile(place, row[:], c.half)
			return nil
		}); err != nil {
			return err
		}
	}
	return nil
}

// section visits rows of size bytes each, which are consecutive in a file, and checks their checksum.
func section(ctx context.Context, r io.ReaderAt, at, rows, size int64, want uint32, visit func(row int64, b []byte) error) error {
	in := direct.NewReader(r, at, at+rows*size)
	defer in.Close()
	buf := make([]byte, min(rows, dealtBuffer/size)*size)
	sum := uint32(0)
	for row := int64(0); row < rows; {
		n := min(rows-row, int64(len(buf))/size)
		if _, err := io.ReadFull(in, buf[:n*size]); err != nil {
			return err
		}
		sum = crc32.Update(sum, seal.Castagnoli, buf[:n*size])
		for i := range n {
			if err := visit(row+i, buf[i*size:][:size]); err != nil {
				return err
			}
		}
		row += n
		if err := ctx.Err(); err != nil {
			return err
		}
	}
	if sum != want {
		return fmt.Errorf("rows of features do not match their checksum: %w", seal.ErrCorrupt)
	}
	return nil
}
