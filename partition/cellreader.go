package partition

import (
	"context"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"ndls/internal/direct"
	"ndls/internal/mem"
	"ndls/internal/packed"
	"ndls/internal/seal"
	"ndls/shards"
)

// cellFile is a file of cells.
type cellFile struct {
	name  string
	index cellIndex
	open  func(ctx context.Context) (chunkReader, error)
}

// chunkReader reads a file of cells.
type chunkReader interface {
	io.ReaderAt
	io.Closer
	// done says that values are not read again.
	done(off, n int64)
}

// cellReader is a rowStore that loads the rows of tiles from files of cells, which together have each row once. It takes none.
type cellReader struct {
	noRows
	cells  // half: the values of all files are float16
	budget *mem.Budget
	files  []cellFile

	wide   int                // panels that are loaded at a time
	most   int64              // rows that are loaded at a time
	seen   *mem.Array[uint64] // a bit for each row
	values *mem.Array[byte]   // panel by panel
	pages  *mem.Array[byte]   // what a thread reads of a chunk
	page   int64
}

// errRows reports that some node has no row of features, or several.
var errRows = fmt.Errorf("the sorted features do not have exactly one row for each node: %w", seal.ErrCorrupt)

// pageOf returns the largest number of bytes that are read of so many panels of a chunk.
func (r *cellReader) pageOf(panels int) int64 {
	page := int64(direct.Align)
	for _, f := range r.files {
		c := r.cells
		c.half = f.index.Half
		page = max(page, (f.index.longest(c)*c.record(panels)+direct.Align-1)&^(direct.Align-1))
	}
	return page
}

// widest returns the number of panels to load at a time.
func (r *cellReader) widest() int {
	wide := min(tileGroup, r.panels)
	for wide > 1 && r.pageOf(wide) > r.budget.Free()/4 {
		wide /= 2
	}
	return wide
}

// alloc prepares for loading so many panels at a time on so many threads, or fewer if memory is short.
func (r *cellReader) alloc(panels, threads int) (err error) {
	if panels == r.wide {
		return nil
	}
	r.close()
	r.wide, r.page = panels, r.pageOf(panels)
	// While one more thread waits for the disk, all others put rows into their places.
	pages := max(min(int64(threads+1), r.budget.Free()/4/r.page), 1)
	if r.pages, err = mem.Alloc[byte](r.budget, pages*r.page, "chunks of features"); err != nil {
		return err
	}
	row := int64(panels) * r.rowBytes()
	r.most = r.rows
	if fits := (r.budget.Free() - 4*direct.Align) * 8 / (8*row + 1); fits < r.most {
		r.most = max(fits/64*64, 64)
	}
	if r.seen, err = mem.Alloc[uint64](r.budget, (r.most+63)/64, "rows seen"); err != nil {
		return err
	}
	r.values, err = mem.Alloc[byte](r.budget, r.most*row, "features")
	return err
}

func (r *cellReader) cellRows() int64 { return r.most }

func (r *cellReader) close() {
	r.values.Free()
	r.seen.Free()
	r.pages.Free()
	r.values, r.seen, r.pages = nil, nil, nil
}

// load implements rowStore. Each thread reads a share of the chunks of one file after the other.
func (r *cellReader) load(ctx context.Context, lo, hi int64, first, last int) ([][]byte, error) {
	clear(r.seen.S)
	l := &cellLoad{cellReader: r, first: first, last: last}
	l.cell, l.lo = r.place(lo)
	l.hi = l.lo + hi - lo
	pages := len(r.pages.S) / int(r.page)
	stripes := (pages + len(r.files) - 1) / max(len(r.files), 1)
	var next atomic.Int64
	threads, ctx := errgroup.WithContext(ctx)
	for t := range pages {
		threads.Go(func() error {
			page := r.pages.S[int64(t)*r.page:][:r.page]
			for i := int(next.Add(1) - 1); i < stripes*len(r.files); i = int(next.Add(1) - 1) {
				if err := l.loadStripe(ctx, r.files[i/stripes], i%stripes, stripes, page); err != nil {
					return err
				}
			}
			return nil
		})
	}
	if err := threads.Wait(); err != nil {
		return nil, err
	}
	if l.count.Load() != hi-lo {
		return nil, errRows
	}
	tiles := make([][]byte, last-first)
	for i := range tiles {
		tiles[i] = r.values.S[int64(i)*r.most*r.rowBytes():][:(hi-lo)*r.rowBytes()]
	}
	return tiles, nil
}

// cellLoad loads the rows [lo, hi) and the panels [first, last) of a cell.
type cellLoad struct {
	*cellReader
	cell, lo, hi int64
	first, last  int
	count        atomic.Int64
}

// loadStripe loads every stripes-th chunk of a file.
func (l *cellLoad) loadStripe(ctx context.Context, f cellFile, stripe, stripes int, page []byte) error {
	number, in := 0, chunkReader(nil)
	defer func() {
		if in != nil {
			_ = in.Close()
		}
	}()
	for c := range f.index.chunks(l.cells, l.cell) {
		if number++; number%stripes != stripe {
			continue
		}
		if in == nil {
			opened, err := f.open(ctx)
			if err != nil {
				return err
			}
			in = opened
		}
		if err := l.loadChunk(in, f.index.Half, c, page); err != nil {
			return fmt.Errorf("%s: %w", f.name, err)
		}
		if err := ctx.Err(); err != nil {
			return err
		}
	}
	return nil
}

// loadChunk reads a chunk, or the wanted panels of it, and puts its rows into their places.
func (l *cellLoad) loadChunk(in chunkReader, half bool, c cellChunk, page []byte) (err error) {
	size, panels := int64(shards.TileRowBytes(half)), l.last-l.first
	numbers, values := c.rows*numberBytes, c.rows*size*int64(panels)
	at := c.at + numbers + c.rows*size*int64(l.first)
	if panels == l.panels {
		err = readAll(in, page[:min(c.length, l.page)], c.at)
	} else if err = readAll(in, page[:numbers], c.at); err == nil {
		err = readAll(in, page[numbers:numbers+values], at)
	}
	if err != nil {
		return err
	}
	in.done(at, values)
	for i, section := range sections(page, c.rows, panels, size) {
		of := i
		if i > 0 {
			of += l.first
		}
		if c.sums != nil && crc32.Checksum(section, seal.Castagnoli) != c.sums[of] {
			return fmt.Errorf("rows of features do not match their checksum: %w", seal.ErrCorrupt)
		}
		if i > 0 {
			l.scatter(i-1, page[:numbers], section, half)
		} else if err := l.note(section); err != nil {
			return err
		}
	}
	return nil
}

// readAll fills p from an offset.
func readAll(in io.ReaderAt, p []byte, at int64) error {
	n, err := in.ReadAt(p, at)
	if n < len(p) && (err == nil || err == io.EOF) {
		return io.ErrUnexpectedEOF
	} else if n < len(p) {
		return err
	}
	return nil
}

// note marks the rows of a chunk as seen.
func (l *cellLoad) note(numbers []byte) error {
	count := int64(0)
	for ; len(numbers) > 0; numbers = numbers[numberBytes:] {
		n := int64(binary.LittleEndian.Uint32(numbers))
		if n < l.lo || n >= l.hi {
			continue
		}
		n -= l.lo
		if bit := uint64(1) << (n % 64); atomic.OrUint64(&l.seen.S[n/64], bit)&bit != 0 {
			return errRows
		}
		count++
	}
	l.count.Add(count)
	return nil
}

// scatter copies the values of a panel to their places.
func (l *cellLoad) scatter(panel int, numbers, values []byte, half bool) {
	size := l.rowBytes()
	to := l.values.S[int64(panel)*l.most*size:]
	var row [packed.PanelColumns]float32
	for ; len(numbers) > 0; numbers, values = numbers[numberBytes:], values[shards.TileRowBytes(half):] {
		n := int64(binary.LittleEndian.Uint32(numbers))
		if n < l.lo || n >= l.hi {
			continue
		}
		place := to[(n-l.lo)*size:][:size]
		if half == l.half {
			copy(place, values)
			continue
		}
		shards.DecodeTile(row[:], values, half)
		shards.EncodeTile(place, row[:], l.half)
	}
}
