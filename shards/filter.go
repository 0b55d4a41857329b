package shards

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"

	"ndls/internal/direct"
	"ndls/internal/mem"
	"ndls/internal/packed"
)

// FilterHops copies the edges of src whose destination keep accepts, and whose source from accepts, unless from is nil. The copy goes to a
// nameless scratch file in dir or, if it has at most this number of bytes, to memory charged to b. Each thread holds two frames beside what
// src reads ahead. Errors come from the source, the disk or ctx; ctx also ends the reads of later passes.
func FilterHops(ctx context.Context, src packed.Source, keep, from func(row int64) bool, dir string, b *mem.Budget, bytes int64,
	threads int,
) (_ *HopStream, err error) {
	scratch, err := direct.NewScratch(dir)
	if err != nil {
		return nil, fmt.Errorf("shards: scratch file of filtered edges: %w", err)
	}
	f := &filter{ctx: ctx, src: src, keep: keep, from: from, scratch: scratch, frames: make([][]hopFrame, src.Strips())}
	if err := f.run(threads); err != nil {
		return nil, errors.Join(fmt.Errorf("shards: filter the hop stream: %w", err), scratch.Close())
	}
	s, err := NewHopStream(f.file())
	if err != nil {
		return nil, errors.Join(err, scratch.Close())
	}
	if max(s.Bytes(), packed.Align) > bytes {
		return s, nil
	}
	if err := s.Load(ctx, b, threads); err != nil {
		s.Close()
		return nil, err
	}
	// All reads come from memory now, so the disk space can be freed.
	return s, scratch.Close()
}

// filter is one call of FilterHops.
type filter struct {
	ctx     context.Context
	src     packed.Source
	keep    func(dst int64) bool
	from    func(src int64) bool // nil for any
	scratch *direct.Scratch
	pages   atomic.Int64
	next    atomic.Int64 // strip
	frames  [][]hopFrame // by strip

	weighted atomic.Bool // edges have weights
}

func (f *filter) run(threads int) error {
	var wg sync.WaitGroup
	errs := make([]error, threads)
	for i := range errs {
		wg.Go(func() {
			if errs[i] = f.work(); errs[i] != nil {
				f.next.Store(int64(len(f.frames))) // the other threads can stop
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

// work filters one strip after the other.
func (f *filter) work() error {
	var enc *packed.Encoder
	var kept [packed.StripRows]bool
	for {
		strip := int(f.next.Add(1)) - 1
		if strip >= len(f.frames) {
			return nil
		}
		if f.ctx.Err() != nil {
			return context.Cause(f.ctx)
		}
		some := false
		lo := int64(strip) << packed.StripShift
		for i := lo; i < min(lo+packed.StripRows, f.src.NumNodes()); i++ {
			kept[i-lo] = f.keep(i)
			some = some || kept[i-lo]
		}
		if some && f.src.Edges(strip) > 0 {
			var err error
			if enc, err = f.strip(enc, strip, &kept); err != nil {
				return err
			}
		}
	}
}

// strip copies the edges of a strip with an encoder and returns the encoder. It creates one if enc is nil, because the first frame tells
// whether edges have weights.
func (f *filter) strip(enc *packed.Encoder, strip int, kept *[packed.StripRows]bool) (_ *packed.Encoder, err error) {
	frames, err := f.src.Open(f.ctx, strip, 0, uint32(f.src.NumNodes()))
	if err != nil {
		return enc, err
	}
	defer func() { err = errors.Join(err, frames.Close()) }()
	for {
		frame, err := frames.Next()
		if err == io.EOF && enc != nil {
			return enc, enc.Flush()
		}
		if err != nil {
			return enc, err
		}
		weighted := len(frame.Weights) > 0
		if weighted {
			f.weighted.Store(true)
		}
		if enc == nil && weighted {
			enc = packed.NewWeightedEncoder(f.emit)
		} else if enc == nil {
			enc = packed.NewEncoder(f.emit)
		}
		if err := f.frame(enc, frame, uint32(strip)<<packed.StripShift, kept, weighted); err != nil {
			return enc, err
		}
	}
}

// frame copies the edges of a frame into rows lo, lo+1, ….
func (f *filter) frame(enc *packed.Encoder, frame packed.Frame, lo uint32, kept *[packed.StripRows]bool, weighted bool) (err error) {
	if !weighted {
		frame.Into(kept, func(src, row uint32) {
			if err == nil && (f.from == nil || f.from(int64(src))) {
				err = enc.Add(src, lo+row)
			}
		})
		return err
	}
	at := 0
	frame.Visit(func(src, row uint32) {
		if kept[row] && err == nil && (f.from == nil || f.from(int64(src))) {
			err = enc.AddWeighted(src, lo+row, frame.Weight(at))
		}
		at++
	})
	return err
}

// emit writes a frame after those of all threads.
func (f *filter) emit(frame packed.Frame, data []byte) error {
	pages := int64(len(data) / packed.Align)
	page := f.pages.Add(pages) - pages
	f.frames[frame.Strip] = append(f.frames[frame.Strip], hopFrame{uint32(page), uint32(pages), frame.Src, frame.Last, frame.Edges})
	return f.scratch.WriteAt(data, page*packed.Align)
}

// file returns the written frames in the form of a hop stream of one interval.
func (f *filter) file() *HopFile {
	n := f.src.NumNodes()
	h := &HopFile{
		r: scratchReader{f.scratch}, c: f.scratch, name: "scratch file of filtered edges",
		meta:  EdgeMeta{Hi: n, NumNodes: n, BlockRows: packed.BlockRows, Weighted: f.weighted.Load()},
		start: []uint32{0}, bytes: f.pages.Load() * packed.Align,
	}
	for _, frames := range f.frames {
		h.frames = append(h.frames, frames...)
		h.start = append(h.start, uint32(len(h.frames)))
	}
	h.seen = make([]atomic.Bool, len(h.frames))
	return h
}

// scratchReader reads a scratch file like any other.
type scratchReader struct{ *direct.Scratch }

func (s scratchReader) ReadAt(p []byte, off int64) (int, error) {
	if err := s.Scratch.ReadAt(p, off); err != nil {
		return 0, err
	}
	return len(p), nil
}
