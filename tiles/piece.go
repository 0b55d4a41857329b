package tiles

import (
	"context"
	"io"

	"ndls/internal/ahead"
	"ndls/internal/mem"
	"ndls/internal/share"
)

// Piece holds stored rows of some panels.
type Piece struct {
	Row  int64 // first row
	Rows int
	// First is the first panel; Panels is the number of panels.
	First, Panels int
	// Last says that the piece has the last of the panels being read.
	Last bool

	stored []byte // panel by panel
}

// Panel returns the stored rows of panel First+k.
func (p *Piece) Panel(k int) []byte {
	size := len(p.stored) / p.Panels
	return p.stored[k*size : (k+1)*size]
}

// Pieces reads the stored rows of panels piece by piece: one piece is read, and one summed, while the caller uses the one before. Pieces of
// the same rows follow each other, panels in ascending order, before pieces of later rows. Each thread takes a panel. A file is compared
// with its checksum at its end, before its last piece is returned.
type Pieces struct {
	next *ahead.Reader[Piece]
	free []func()
}

// pieceSize returns the largest number of bytes in a piece, for this number of panels and batches of batch rows.
func pieceSize(panels, batch int, row int64) int64 {
	rows, group := pieceShape(panels, batch, row)
	return int64(rows) * int64(group) * row
}

// pieceShape returns the number of rows and panels in a piece.
func pieceShape(panels, batch int, row int64) (rows, group int) {
	if panels == 0 || batch == 0 {
		return 0, 0
	}
	least := min(batch, leastRows)
	group = int(min(max(pieceBytes/(int64(least)*row), 1), int64(panels)))
	group = (panels + (panels+group-1)/group - 1) / ((panels + group - 1) / group) // evenly
	rows = int(min(int64(batch), max(pieceBytes/(int64(group)*row), int64(least))))
	if rows < batch && rows > alignedRows {
		rows -= rows % alignedRows
	}
	return rows, group
}

// alignedRows is a number of rows of 16 values that fills whole pages of the disk.
const alignedRows = 128

// Pieces opens panels of the caller's rows of an interval, which has some. No piece has rows of two batches.
func (m *Matrix) Pieces(ctx context.Context, interval, first, panels, batch int) (_ *Pieces, err error) {
	in := &Pieces{}
	defer func() {
		if err != nil {
			in.Close()
		}
	}()
	lo, hi := m.Mine(interval)
	files := make([]*PartReader, panels)
	for p := range files {
		if files[p], err = m.open(ctx, interval, first+p, lo, hi); err != nil {
			return nil, err
		}
		in.free = append(in.free, files[p].Close)
	}
	rows, group := pieceShape(panels, batch, m.rowBytes())
	size := pieceSize(panels, batch, m.rowBytes())
	memory, err := mem.Alloc[byte](m.budget, pieces*size, "tile rows")
	if err != nil {
		return nil, err
	}
	in.free = append(in.free, memory.Free)
	buffers := make([]Piece, pieces)
	for i := range buffers {
		buffers[i].stored = memory.S[int64(i)*size:][:0:size]
	}
	at, panel := lo, 0 // position of the next piece
	in.next = ahead.New(max(m.threads, 1), buffers, func(p *Piece) error {
		if at == hi {
			return io.EOF
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		inBatch := (at - lo) % int64(batch)
		p.Row, p.Rows = at, int(min(int64(rows), int64(batch)-inBatch, hi-at))
		p.First, p.Panels = first+panel, min(group, panels-panel)
		p.stored = p.stored[:int64(p.Rows)*int64(p.Panels)*m.rowBytes()]
		if err := share.Each(readers(m.threads), p.Panels, func(k int) error {
			return files[panel+k].fetch(p.Panel(k), at)
		}); err != nil {
			return err
		}
		if panel += p.Panels; panel < panels {
			p.Last = false
			return nil
		}
		p.Last, panel, at = true, 0, at+int64(p.Rows)
		return nil
	}, func(p *Piece) error {
		return share.Each(m.threads, p.Panels, func(k int) error {
			return files[p.First+k-first].add(p.Panel(k), p.Row, p.Row+int64(p.Rows) == hi)
		})
	})
	return in, nil
}

// open opens the files of a panel that hold rows of [lo, hi).
func (m *Matrix) open(ctx context.Context, interval, panel int, lo, hi int64) (*PartReader, error) {
	list, err := m.files(interval, panel)
	if err != nil {
		return nil, err
	}
	return OpenParts(ctx, m.cat, meeting(list, lo, hi), m.rowBytes())
}

// readers returns the number of goroutines that read: one more than several threads, because some wait for the disk.
func readers(threads int) int {
	if threads <= 1 {
		return 1
	}
	return threads + 1
}

// Next returns the next piece, valid until the next call, or io.EOF.
func (in *Pieces) Next() (*Piece, error) { return in.next.Next() }

// Close closes the files.
func (in *Pieces) Close() {
	if in.next != nil {
		in.next.Close()
	}
	for _, free := range in.free {
		free()
	}
}

// PiecesBytes returns the memory of [Pieces] for this number of panels, and batches of batch rows of row bytes.
func PiecesBytes(panels, batch int, row int64) int64 {
	return pieces*pieceSize(panels, batch, row) + 4096
}
