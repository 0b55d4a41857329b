package partition

import (
	"context"

	"ndls/internal/direct"
	"ndls/internal/extsort"
	"ndls/internal/mem"
)

// spilledRows keeps rows in the cells of a scratch file.
type spilledRows struct {
	*cellReader
	threads int
	writer  *cellWriter
	out     *extsort.Spill
	in      *extsort.Spilled
}

// newSpilledRows lays out cells for the given free bytes of the budget. Half of them hold the chunks being filled, and later one cell.
func newSpilledRows(b *mem.Budget, free int64, threads int, s *extsort.Scratch, nodes, interval int64, panels int, half bool) (*spilledRows,
	error,
) {
	free = free*15/16 - 4*direct.Align // the rest is for the list of chunks and whole pages
	c := cells{nodes: nodes, interval: min(interval, nodes), panels: panels, half: half}
	c.rows = max(min(free/2/(tileGroup*c.rowBytes()), c.interval), 1)
	out, err := s.Create()
	if err != nil {
		return nil, err
	}
	r := &spilledRows{cellReader: &cellReader{cells: c, budget: b}, threads: threads, out: out}
	if r.writer, err = newCellWriter(b, free/2, c, false, out.Write); err != nil {
		out.Abort()
		return nil, err
	}
	return r, nil
}

func (r *spilledRows) put(nodes []uint32, values []float32, encoded []byte) error {
	return r.writer.put(nodes, values, encoded)
}

func (r *spilledRows) seal() (err error) {
	if err := r.writer.seal(); err != nil {
		return err
	}
	out := r.out
	r.out = nil
	if r.in, err = out.Finish(); err != nil {
		return err
	}
	open := func(context.Context) (chunkReader, error) { return spilledChunks{r.in}, nil }
	r.files = []cellFile{{name: r.in.Name(), index: r.writer.index(), open: open}}
	return r.alloc(min(tileGroup, r.panels), r.threads)
}

func (r *spilledRows) close() {
	if r.out != nil {
		r.out.Abort()
	}
	if r.in != nil {
		r.in.Close()
	}
	r.writer.close()
	r.cellReader.close()
}

// spilledChunks takes off the disk what has been read of a scratch file, and leaves the file open.
type spilledChunks struct{ *extsort.Spilled }

func (s spilledChunks) ReadAt(p []byte, off int64) (int, error) {
	n, err := s.Spilled.ReadAt(p, off)
	if n < len(p) {
		err = s.ReadError(err)
	}
	return n, err
}

func (s spilledChunks) done(off, n int64) { s.DropRange(off, n) }
func (spilledChunks) Close() error        { return nil }
