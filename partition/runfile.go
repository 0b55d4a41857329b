package partition

import (
	"context"
	"fmt"
	"hash/crc32"
	"io"
	"slices"
	"sort"

	"ndls/catalog"
	"ndls/internal/mem"
	"ndls/internal/seal"
	"ndls/internal/storage"
)

// A run file is a sorted run that other tasks read, from the middle too:
//
//	keys     8 bytes each, ascending, none twice
//	marks    of every block of runBlock keys: its first key, the CRC-32C of its bytes
//	footer   runFooter
//
// All numbers are little-endian.
const (
	// runBlock is how many keys share a checksum: half of minRunBuffer.
	runBlock = minRunBuffer / 2 / 8
	// runMagic ends a run file.
	runMagic = 0x314e5552 // "RUN1"
)

// mark describes a block of a run file.
type mark struct {
	first uint64
	sum   uint32
	_     uint32
}

// runFooter ends a run file. rows and loops are of what it was made from: edge
// rows and self-loops of the input.
type runFooter struct {
	keys, rows, loops int64
	sum               uint32 // of marks and footer up to here
	magic             uint32
}

const (
	markBytes   = 16
	footerBytes = 32
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// runWriter writes a run file.
type runWriter struct {
	f     *catalog.File
	marks []mark
	runFooter
}

// write takes the next keys.
func (w *runWriter) write(keys []uint64) error {
	if _, err := w.f.Write(mem.AsBytes(keys)); err != nil {
		return err
	}
	for len(keys) > 0 {
		if w.keys%runBlock == 0 {
			w.marks = append(w.marks, mark{first: keys[0]})
		}
		n := min(int64(len(keys)), runBlock-w.keys%runBlock)
		m := &w.marks[len(w.marks)-1]
		m.sum = crc32.Update(m.sum, castagnoli, mem.AsBytes(keys[:n]))
		w.keys += n
		keys = keys[n:]
	}
	return nil
}

// close ends the file, which is still to be committed.
func (w *runWriter) close() error {
	if _, err := w.f.Write(mem.AsBytes(w.marks)); err != nil {
		return err
	}
	w.magic, w.f.Rows = runMagic, w.keys
	footer := []runFooter{w.runFooter}
	footer[0].sum = footerSum(w.marks, footer)
	_, err := w.f.Write(mem.AsBytes(footer))
	return err
}

func footerSum(marks []mark, footer []runFooter) uint32 {
	sum := crc32.Checksum(mem.AsBytes(marks), castagnoli)
	return crc32.Update(sum, castagnoli, mem.AsBytes(footer)[:24])
}

// runFile is an open run file.
type runFile struct {
	runFooter
	path  string
	file  storage.Reader
	marks *mem.Array[mark]
}

// openRun opens a run file. Where all of it is to be read a store may keep a copy.
func openRun(ctx context.Context, b *mem.Budget, cat *catalog.Catalog, e catalog.Entry, all bool) (*runFile, error) {
	open := cat.OpenOnce
	if all {
		open = cat.Open
	}
	file, err := open(ctx, e)
	if err != nil {
		return nil, err
	}
	r, err := readRun(b, file, e.Path)
	if err != nil {
		_ = file.Close()
	}
	return r, err
}

// readRun reads footer and marks.
func readRun(b *mem.Budget, file storage.Reader, path string) (*runFile, error) {
	r := &runFile{path: path, file: file}
	footer := make([]runFooter, 1)
	at := file.Size() - footerBytes
	if at < 0 {
		return nil, r.corrupt("has %d bytes", file.Size())
	}
	if err := r.readAt(mem.AsBytes(footer), at); err != nil {
		return nil, err
	}
	r.runFooter = footer[0]
	if r.magic != runMagic || r.keys < 0 || r.keys > at/8 || r.rows < 0 || r.loops < 0 || at != 8*r.keys+markBytes*r.blocks() {
		return nil, r.corrupt("has %d bytes, and ends in %d keys", file.Size(), r.keys)
	}
	var err error
	if r.marks, err = mem.Alloc[mark](b, r.blocks(), "run index"); err != nil {
		return nil, err
	}
	if err = r.readAt(mem.AsBytes(r.marks.S), 8*r.keys); err == nil && footerSum(r.marks.S, footer) != r.sum {
		err = r.corrupt("its index has another checksum")
	}
	if err != nil {
		r.marks.Free()
		return nil, err
	}
	return r, nil
}

func (r *runFile) blocks() int64 { return (r.keys + runBlock - 1) / runBlock }

func (r *runFile) readAt(p []byte, off int64) error {
	if n, err := r.file.ReadAt(p, off); n < len(p) {
		return fmt.Errorf("partition: read %s: %w", r.path, err)
	}
	return nil
}

func (r *runFile) corrupt(format string, args ...any) error {
	return fmt.Errorf("partition: %s: %s: %w: run again with --resume=false", r.path, fmt.Sprintf(format, args...), seal.ErrCorrupt)
}

func (r *runFile) close() {
	_ = r.file.Close()
	r.marks.Free()
}

// section is the run of those keys of a run file that are in [lo, hi). It closes
// the file.
type section struct {
	*runFile
	lo, hi     uint64
	block, end int64
}

func (r *runFile) section(lo, hi uint64) *section {
	s := &section{runFile: r, lo: lo, hi: hi}
	s.block = max(r.firstBlock(func(first uint64) bool { return first > lo })-1, 0)
	s.end = r.firstBlock(func(first uint64) bool { return first >= hi })
	return s
}

// firstBlock is the first one whose first key is beyond something.
func (r *runFile) firstBlock(beyond func(uint64) bool) int64 {
	return int64(sort.Search(len(r.marks.S), func(i int) bool { return beyond(r.marks.S[i].first) }))
}

func (s *section) fill(keys []uint64) (int, error) {
	for s.block < s.end {
		n := min(int64(len(keys))/runBlock, s.end-s.block)
		got := keys[:min(n*runBlock, s.keys-s.block*runBlock)]
		if err := s.readAt(mem.AsBytes(got), s.block*runBlock*8); err != nil {
			return 0, err
		}
		for rest := got; len(rest) > 0; s.block++ {
			block := rest[:min(runBlock, len(rest))]
			if crc32.Checksum(mem.AsBytes(block), castagnoli) != s.marks.S[s.block].sum {
				return 0, s.corrupt("block %d has another checksum", s.block)
			}
			rest = rest[len(block):]
		}
		last, _ := slices.BinarySearch(got, s.hi)
		first, _ := slices.BinarySearch(got[:last], s.lo)
		if n := copy(keys, got[first:last]); n > 0 {
			return n, nil
		}
	}
	return 0, io.EOF
}

// runFiles are open run files.
type runFiles []*runFile

func (rs runFiles) close() {
	for _, r := range rs {
		r.close()
	}
}

// keys is how many there are in all files.
func (rs runFiles) keys() (n int64) {
	for _, r := range rs {
		n += r.keys
	}
	return n
}

// maxSamples is about how many keys stand for all when those are cut.
const maxSamples = 1 << 16

// border is where slice i of Slices of about the same number of keys begins.
func (rs runFiles) border(i int) uint64 {
	switch i {
	case 0:
		return 0
	case Slices:
		return endOfRun
	}
	samples, weight := rs.samples()
	want := weight * int64(i) / Slices
	for _, s := range samples {
		if want < s.keys {
			return s.first
		}
		want -= s.keys
	}
	return endOfRun
}

// sample stands for so many keys from its first.
type sample struct {
	first uint64
	keys  int64
}

// samples are first keys of blocks, in order.
func (rs runFiles) samples() (all []sample, weight int64) {
	blocks := int64(0)
	for _, r := range rs {
		blocks += r.blocks()
	}
	stride := blocks/maxSamples + 1
	for _, r := range rs {
		for b := int64(0); b < r.blocks(); b += stride {
			all = append(all, sample{r.marks.S[b].first, min(stride*runBlock, r.keys-b*runBlock)})
		}
		weight += r.keys
	}
	sort.Slice(all, func(i, j int) bool { return all[i].first < all[j].first })
	return all, weight
}

// each visits the keys of all files, one file after the other, in batches that may
// be overwritten.
func (rs runFiles) each(ctx context.Context, threads int, visit func([]uint64) error) error {
	for _, r := range rs {
		if err := r.each(ctx, threads, visit); err != nil {
			return err
		}
	}
	return nil
}

func (r *runFile) each(ctx context.Context, threads int, visit func([]uint64) error) error {
	source := readAhead(threads, sectionStream{r.section(0, endOfRun)})
	defer source.close()
	for {
		batch, err := source.next()
		if err == io.EOF {
			return nil
		}
		if err == nil {
			err = visit(batch.keys)
		}
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return err
		}
	}
}

// sectionStream is a section as a stream of keys.
type sectionStream struct{ *section }

func (s sectionStream) next(buf []uint64) ([]uint64, error) {
	n, err := s.fill(buf)
	return buf[:n], err
}
