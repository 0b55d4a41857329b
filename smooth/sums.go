package smooth

import (
	"fmt"

	"ndls/internal/direct"
	"ndls/internal/mem"
	"ndls/internal/packed"
)

// sums holds layers of rows of the targets of one column block, in memory, or strip by strip in a
// scratch file: one layer of running sums, or a layer of each polynomial ([history]).
type sums struct {
	targets *Targets
	columns int
	offset  []int64 // in a layer, of each strip's first target, in bytes, then of the end
	memory  *mem.Array[float32]
	file    *direct.Scratch
	buffers chan *mem.Array[float32]
	all     []*mem.Array[float32]
}

const sumBytes = 4

// newSums lays out sums; spilled puts them on disk, with buffers for that many
// threads.
func newSums(b *mem.Budget, t *Targets, columns, layers int, spilled bool, threads int, dir string) (_ *sums, err error) {
	s := &sums{targets: t, columns: columns}
	at := int64(0)
	for lo := int64(0); lo < t.n; lo += packed.StripRows {
		s.offset = append(s.offset, at)
		size := (t.Before(min(lo+packed.StripRows, t.n)) - t.Before(lo)) * int64(columns) * sumBytes
		at += direct.RoundUp(size)
	}
	s.offset = append(s.offset, at)
	defer func() {
		if err != nil {
			s.free()
		}
	}()
	if !spilled {
		s.memory, err = mem.Alloc[float32](b, int64(layers)*at/sumBytes, "sums")
		return s, err
	}
	if s.file, err = direct.NewScratch(dir); err != nil {
		return nil, fmt.Errorf("scratch file: %w", err)
	}
	s.buffers = make(chan *mem.Array[float32], threads)
	for range threads {
		a, err := mem.Alloc[float32](b, stripSumBytes(t.n, columns)/sumBytes, "sums of a strip")
		if err != nil {
			return nil, err
		}
		s.all = append(s.all, a)
		s.buffers <- a
	}
	return s, nil
}

// stripSumBytes returns the size of the sums of one strip, in whole pages.
func stripSumBytes(n int64, columns int) int64 {
	size := min(n, packed.StripRows) * int64(columns) * sumBytes
	return direct.RoundUp(size)
}

// sumsBytes returns the largest memory of layers of sums of some targets.
func sumsBytes(t *Targets, columns, layers int, spilled bool, threads int) int64 {
	if spilled {
		return int64(threads) * (stripSumBytes(t.n, columns) + direct.Align)
	}
	return int64(layers) * (t.size*int64(columns)*sumBytes + ((t.n+packed.StripRows-1)/packed.StripRows+1)*direct.Align)
}

func (s *sums) free() {
	s.memory.Free()
	for _, a := range s.all {
		a.Free()
	}
	if s.file != nil {
		_ = s.file.Close()
	}
}

// access says what is done with the sums of a strip.
type access uint8

const (
	read    access = iota // they are read
	change                // they are read and stored again
	replace               // they are all set, and stored
)

// with passes the sums of the strip that starts at row lo in a layer to use, one row of columns for
// each target. Concurrent calls are for different strips or layers.
func (s *sums) with(layer int, lo int64, a access, use func(rows []float32) error) error {
	begin := int64(layer) * s.offset[len(s.offset)-1]
	from, to := begin+s.offset[lo/packed.StripRows], begin+s.offset[lo/packed.StripRows+1]
	size := (s.targets.Before(min(lo+packed.StripRows, s.targets.n)) - s.targets.Before(lo)) * int64(s.columns)
	if size == 0 {
		return nil
	}
	if s.file == nil {
		return use(s.memory.S[from/sumBytes:][:size])
	}
	buf := <-s.buffers
	defer func() { s.buffers <- buf }()
	raw := mem.AsBytes(buf.S)[:to-from]
	if a != replace {
		if err := s.file.ReadAt(raw, from); err != nil {
			return fmt.Errorf("sums: %w", err)
		}
	}
	if err := use(buf.S[:size]); err != nil || a == read {
		return err
	}
	if err := s.file.WriteAt(raw, from); err != nil {
		return fmt.Errorf("sums: %w", err)
	}
	return nil
}
