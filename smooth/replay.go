package smooth

import (
	"fmt"

	"ndls/hops"
	"ndls/internal/direct"
	"ndls/internal/mem"
	"ndls/internal/packed"
)

// replay passes the rows of a panel several times. It makes them once, and then reads them from a
// scratch file.
type replay struct {
	from   hops.Rows
	values int64
	file   *direct.Scratch
	made   bool
	buffer *mem.Array[float32]
}

const (
	// replayValues is the number of values that are read from the scratch file at a time,
	// replayBytes the memory for them.
	replayValues = 1 << 18
	replayBytes  = 4 * replayValues
)

func newReplay(g hops.Graph, from hops.Rows) (_ *replay, err error) {
	r := &replay{from: from, values: g.Source.NumNodes() * packed.PanelColumns}
	if r.buffer, err = mem.Alloc[float32](g.Budget, replayValues, "rows that are read again"); err != nil {
		return nil, err
	}
	if r.file, err = direct.NewScratch(g.Scratch); err != nil {
		r.buffer.Free()
		return nil, fmt.Errorf("scratch file: %w", err)
	}
	return r, nil
}

// free may be called on nil.
func (r *replay) free() {
	if r != nil {
		r.buffer.Free()
		_ = r.file.Close()
	}
}

// put passes the rows, as [hops.Rows].
func (r *replay) put(put func(rows []float32) error) error {
	if !r.made {
		return r.make(put)
	}
	for at := int64(0); at < r.values; at += replayValues {
		if err := r.file.ReadAt(mem.AsBytes(r.buffer.S), at*4); err != nil {
			return fmt.Errorf("rows that are read again: %w", err)
		}
		if err := put(r.buffer.S[:min(replayValues, r.values-at)]); err != nil {
			return err
		}
	}
	return nil
}

// make passes the rows and saves them.
func (r *replay) make(put func(rows []float32) error) error {
	at, full := int64(0), 0 // saved values, and values in the buffer
	save := func() error {
		if err := r.file.WriteAt(mem.AsBytes(r.buffer.S), at*4); err != nil {
			return fmt.Errorf("rows that are read again: %w", err)
		}
		at, full = at+int64(full), 0
		return nil
	}
	if err := r.from(func(rows []float32) error {
		for rest := rows; len(rest) > 0; {
			n := copy(r.buffer.S[full:], rest)
			rest, full = rest[n:], full+n
			if full == replayValues {
				if err := save(); err != nil {
					return err
				}
			}
		}
		return put(rows)
	}); err != nil {
		return err
	}
	r.made = true
	return save()
}
