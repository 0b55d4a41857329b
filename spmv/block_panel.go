package spmv

import (
	"errors"
	"fmt"

	"ndls/internal/direct"
	"ndls/internal/mem"
	"ndls/internal/packed"
)

// Bytes returns the rows as they are stored. Each row has stride bytes; panel of them belong to one
// panel.
func (r Rows) Bytes() (raw []byte, stride, panel int) {
	if r.H != nil {
		return mem.AsBytes(r.H), 2 * r.Stride, 2 * packed.PanelColumns
	}
	return mem.AsBytes(r.S), 4 * r.Stride, 4 * packed.PanelColumns
}

// Export shows the rows as they are stored, strip by strip in ascending order;
// they are valid during the call.
func (b *Block) Export(show func(first int64, rows Rows) error) error { return b.export(b.read, show) }

// ExportBefore shows, in the same way, the rows before those of the block, which [Pass.Recur] has kept.
func (b *Block) ExportBefore(show func(first int64, rows Rows) error) error {
	if !b.held {
		return errNotHeld
	}
	return b.export(b.readBefore, show)
}

var errNotHeld = errors.New("the block has no rows before its own")

func (b *Block) export(read func(t *thread, strip int) (Rows, error), show func(first int64, rows Rows) error) error {
	for s := range b.strips() {
		r, err := read(b.threads[0], s)
		if err != nil {
			return err
		}
		lo, _ := b.bounds(s)
		if err := show(lo, r); err != nil {
			return err
		}
	}
	return nil
}

// Import replaces the rows by what fill leaves in those of each strip, in
// ascending order. On entry the rows hold arbitrary old values.
func (b *Block) Import(fill func(first int64, rows Rows) error) error {
	b.changed()
	for s := range b.strips() {
		if err := b.replace(b.threads[0], s, fill); err != nil {
			return err
		}
	}
	return nil
}

// ImportBefore replaces, in the same way, the rows before those of the block, for [Pass.Recur].
func (b *Block) ImportBefore(fill func(first int64, rows Rows) error) error {
	for s := range b.strips() {
		lo, hi := b.bounds(s)
		if b.layout.Residency == Resident {
			if err := fill(lo, b.next.Slice(lo, hi)); err != nil {
				return err
			}
			continue
		}
		r := b.threads[0].stage.Slice(0, hi-lo)
		if err := fill(lo, r); err != nil {
			return err
		}
		if err := b.file[b.nextFile()].WriteAt(b.pages(r, hi-lo), b.offset(lo)); err != nil {
			return fmt.Errorf("rows before a hop: %w", err)
		}
	}
	b.summed, b.held = false, true
	return nil
}

// replace lets fill overwrite the rows of a strip.
func (b *Block) replace(t *thread, strip int, fill func(first int64, rows Rows) error) error {
	lo, hi := b.bounds(strip)
	if b.layout.Residency != External {
		return fill(lo, b.cur.Slice(lo, hi))
	}
	r := t.stage.Slice(0, hi-lo)
	if err := fill(lo, r); err != nil {
		return err
	}
	return b.file[0].WriteAt(b.pages(r, hi-lo), b.offset(lo))
}

// PanelBytes is the size of each panel that Save writes.
func (b *Block) PanelBytes() int64 {
	return direct.RoundUp(b.n * packed.PanelColumns * b.layout.Precision.Bytes())
}

// Save writes the first panels of the rows to f, each on its own in
// PanelBytes, from off on, a multiple of direct.Align. What is saved does not
// depend on the width of the block.
func (b *Block) Save(f *direct.Scratch, off int64, panels int) error {
	return b.parallel(b.strips(), func(t *thread, s int) error {
		r, err := b.read(t, s)
		if err != nil {
			return err
		}
		lo, _ := b.bounds(s)
		return b.pieces(t, r, lo, panels, func(p piece) error {
			p.each(func(row, saved []byte) { copy(saved, row) })
			return f.WriteAt(p.page, off+p.at)
		})
	})
}

// Load reads what Save wrote into the first panels, and makes the others zero.
func (b *Block) Load(f *direct.Scratch, off int64, panels int) error {
	b.changed()
	return b.parallel(b.strips(), func(t *thread, s int) error {
		return b.replace(t, s, func(lo int64, r Rows) error {
			if panels*packed.PanelColumns < r.Stride {
				raw, _, _ := r.Bytes()
				clear(raw)
			}
			return b.pieces(t, r, lo, panels, func(p piece) error {
				if err := f.ReadAt(p.page, off+p.at); err != nil {
					return err
				}
				p.each(func(row, saved []byte) { copy(row, saved) })
				return nil
			})
		})
	})
}

// pieceRows is the number of rows of a panel that are moved at a time.
const pieceRows = 4096

// piece is a part of a panel that is moved from or to a scratch file.
type piece struct {
	rows         []byte // of the block; nil where page is they themselves
	stride, size int
	column       int // in bytes
	page         []byte
	at           int64 // of the page, behind the first panel's first byte
}

// each calls show with the panel's part of each row, and the part of the page for it.
func (p piece) each(show func(row, saved []byte)) {
	for at := 0; len(p.rows) > 0; at += p.size {
		show(p.rows[p.column:][:p.size], p.page[at:][:p.size])
		p.rows = p.rows[p.stride:]
	}
}

// pieces goes through the pieces of the first panels of rows r, of which first
// is the first.
func (b *Block) pieces(t *thread, r Rows, first int64, panels int, move func(p piece) error) error {
	raw, stride, size := r.Bytes()
	if stride == size {
		return move(piece{page: b.pages(r, r.Len()), at: b.offset(first)})
	}
	if t.piece == nil {
		t.piece = direct.AlignedBytes(pieceRows * size)
	}
	for g := range panels {
		for lo := 0; lo < len(raw); lo += pieceRows * stride {
			p := piece{rows: raw[lo:min(lo+pieceRows*stride, len(raw))], stride: stride, size: size, column: g * size}
			p.page = t.piece[:direct.RoundUp(int64(len(p.rows)/stride*size))]
			p.at = int64(g)*b.PanelBytes() + first*int64(size) + int64(lo/stride*size)
			if err := move(p); err != nil {
				return err
			}
		}
	}
	return nil
}
