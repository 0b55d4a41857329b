package array

import (
	"bufio"
	"cmp"
	"context"
	"io"

	"ndls/dataset/graph"
	"ndls/dataset/pickle"
	"ndls/dataset/source"
)

const (
	// blockBytes is the number of bytes that are put in order at a time of a matrix that is not
	// stored row by row. It is within the memory set aside for a thread that reads.
	blockBytes = 8 << 20
	// mostReadings is the number of times that a file is read to put its entries in order, a block
	// at a time, if it can only be read from its beginning.
	mostReadings = 128
)

// blockRows returns the number of rows of a matrix stored column by column that are put in order at
// a time.
func (v Vector) blockRows() int64 { return max(blockBytes/(v.cols*v.Type.Size()), 1) }

// checkReadings refuses a matrix that would have to be unpacked too often.
func (v Vector) checkReadings() error {
	if n := (v.rows + v.blockRows() - 1) / v.blockRows(); !v.canCut() && n > mostReadings {
		return graph.BadData(v.Name, "is in Fortran order and compressed, and would be unpacked %d times to be read row by row: save numpy.ascontiguousarray(a), or save it uncompressed", n)
	}
	return nil
}

// turned reads a matrix that is stored column by column as if it were stored row by row. A
// file that is stored as it is it reads at the places of a block of rows, another one from its
// beginning to its end for each block.
type turned struct {
	ctx   context.Context
	v     Vector
	next  int64 // the first row of the next block
	block []byte
	pos   int // in block
	col   []byte
}

// newTurned reads from some element on.
func newTurned(ctx context.Context, v Vector, first int64) (*turned, error) {
	t := &turned{ctx: ctx, v: v, next: first / v.cols}
	if first == v.rows*v.cols {
		return t, nil
	}
	if err := t.fill(); err != nil {
		return nil, err
	}
	t.pos = int(first % v.cols * v.Type.Size())
	return t, nil
}

// Read implements io.Reader.
func (t *turned) Read(p []byte) (int, error) {
	if t.pos == len(t.block) {
		if t.next == t.v.rows {
			return 0, io.EOF
		}
		if err := t.fill(); err != nil {
			return 0, err
		}
	}
	n := copy(p, t.block[t.pos:])
	t.pos += n
	return n, nil
}

// Close implements io.Closer.
func (t *turned) Close() error { return nil }

// fill reads the next block of rows.
func (t *turned) fill() error {
	size := t.v.Type.Size()
	rows := min(t.v.blockRows(), t.v.rows-t.next)
	if need := rows * t.v.cols * size; int64(cap(t.block)) < need {
		t.block, t.col = make([]byte, need), make([]byte, rows*size)
	}
	t.block, t.col, t.pos = t.block[:rows*t.v.cols*size], t.col[:rows*size], 0
	read, end, err := t.columns(rows)
	if err != nil {
		return err
	}
	for c := range t.v.cols {
		if err = t.ctx.Err(); err == nil {
			err = read(c)
		}
		if err != nil {
			return cmp.Or(graph.Damaged(t.v.Name, err), end(false))
		}
		place(t.block[c*size:], t.col, t.v.cols*size, int(size))
	}
	t.next += rows
	return end(true)
}

// columns gives a function that reads some rows of one column after the other, and one that is
// called after the last one.
func (t *turned) columns(rows int64) (read func(c int64) error, end func(whole bool) error, err error) {
	v, size := t.v, t.v.Type.Size()
	if v.canCut() && (v.src.Checksum == nil || rows < v.rows) {
		base := v.src.Off + v.off + t.next*size
		return func(c int64) error {
			n, err := v.src.File.ReadAt(t.col, base+c*v.rows*size)
			if n == len(t.col) {
				err = nil
			}
			return err
		}, func(bool) error { return nil }, nil
	}
	st, err := v.src.Open(t.ctx, v.off)
	if err != nil {
		return nil, nil, err
	}
	var r io.Reader = bufio.NewReaderSize(st, 64<<10)
	if v.latin1 {
		r = pickle.Latin1Reader(r)
	}
	skip := t.next * size
	return func(int64) error {
			err := source.Skip(r, skip)
			skip = (v.rows - rows) * size
			if err == nil {
				_, err = io.ReadFull(r, t.col)
			}
			return err
		}, func(whole bool) (err error) {
			if whole && st.Check {
				err = source.Skip(st, -1)
			}
			return cmp.Or(err, st.Close())
		}, nil
}

// place writes elements at distances of step.
func place(to, elements []byte, step int64, size int) {
	for at := int64(0); len(elements) > 0; at += step {
		switch size { // copies of a known length are moves
		case 1:
			to[at] = elements[0]
		case 4:
			copy(to[at:at+4], elements[:4])
		case 8:
			copy(to[at:at+8], elements[:8])
		default:
			copy(to[at:at+int64(size)], elements[:size])
		}
		elements = elements[size:]
	}
}

// finish checks the checksum of a member of an archive that was read at places of its own.
func (t *turned) finish() (err error) {
	if t.v.src.Checksum == nil || !t.v.canCut() || t.v.blockRows() >= t.v.rows {
		return nil
	}
	st, err := t.v.src.Open(t.ctx, 0)
	if err != nil {
		return err
	}
	return cmp.Or(source.Skip(st, -1), st.Close())
}
