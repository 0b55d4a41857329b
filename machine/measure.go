package machine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"ndls/internal/control"
	"ndls/internal/direct"
	"ndls/internal/mem"
	"ndls/internal/packed"
	"ndls/internal/rng"
	"ndls/internal/share"
	"ndls/internal/vfs"
	"ndls/spmv"
	"ndls/train/dense"
)

const (
	// FileBytes is the size of the file that is written and read.
	FileBytes = 128 << 20

	// diskRounds is the number of times that it is written and read.
	diskRounds = 2
	// rounds is the number of times that a thread runs each loop. A round takes at least span, and the
	// median of the rounds counts.
	rounds = 3
	// degree is the number of edges of a row.
	degree = 16
	// fillings is the number of parts in which threads fill the rows.
	fillings = 64
	// sortedKeys is the number of keys that are sorted at a time. The second-level cache holds
	// them.
	sortedKeys = 1 << 14
	// side is the number of rows, columns and products of a value of the matrices that are
	// multiplied.
	side = 192
)

// Options say what is measured.
type Options struct {
	// Folder is on the disk that is measured. It must be there.
	Folder string
	// Threads is the number of threads that work at the same time.
	Threads int
	// Kernel is "auto", "avx512", "avx2" or "go".
	Kernel string
	// Rows is the size of the rows that edges are passed over, 0 for control.FarBytes.
	Rows int64
}

// Measure returns the speeds of this machine. It fails if Folder cannot be written to, or has
// not the space, and with [mem.ErrBudget] if b has not 64 MiB free.
func Measure(ctx context.Context, b *mem.Budget, o Options) (s control.Speeds, err error) {
	if s.Edges, err = EdgeRate(ctx, b, o); err != nil {
		return s, err
	}
	near := o
	near.Rows = control.NearBytes
	if s.Near, err = EdgeRate(ctx, b, near); err != nil {
		return s, err
	}
	if s.Flops, err = flops(ctx, o); err != nil {
		return s, err
	}
	if s.Values, err = values(ctx, o); err != nil {
		return s, err
	}
	s.Write, s.Read, err = disk(ctx, o.Folder)
	return s, err
}

// each runs a loop on so many threads, some rounds of span each, and returns the work that a thread does a
// second in the median round. The function that start gives does some work, and returns how much.
func each(ctx context.Context, threads int, start func(thread int) func() int) (float64, error) {
	var wg sync.WaitGroup
	rates := make([][rounds]float64, threads)
	for t := range rates {
		work := start(t)
		wg.Go(func() {
			work() // fills the caches
			for round := range rounds {
				done, begin := 0, time.Now()
				for time.Since(begin) < span && ctx.Err() == nil {
					done += work()
				}
				rates[t][round] = float64(done) / time.Since(begin).Seconds()
			}
		})
	}
	wg.Wait()
	sum := 0.0
	for _, r := range rates {
		slices.Sort(r[:])
		sum += r[rounds/2]
	}
	return sum / float64(threads), ctx.Err()
}

// EdgeRate returns the edges a second and thread with rows of 64 bytes. It does not use o.Folder.
func EdgeRate(ctx context.Context, b *mem.Budget, o Options) (float64, error) {
	kernel, err := spmv.Select(o.Kernel)
	if err != nil {
		return 0, err
	}
	const rowBytes = 4 * packed.PanelColumns
	wanted := cmp.Or(o.Rows, control.FarBytes) / rowBytes
	n := min(wanted, b.Free()/4/rowBytes)
	if least := min(wanted, packed.StripRows); n < least {
		least *= 4 * rowBytes
		return 0, fmt.Errorf("machine: measuring needs %s, %s are free; %s: %w", mem.Bytes(least), mem.Bytes(b.Free()), b.Would(least-b.Free()), mem.ErrBudget)
	}
	rows, err := mem.Alloc[float32](b, n*packed.PanelColumns, "measured rows")
	if err != nil {
		return 0, err
	}
	defer rows.Free()
	if err := share.Ranges(o.Threads, len(rows.S), len(rows.S)/fillings+1, func(lo, hi int) error {
		for i := range rows.S[lo:hi] {
			rows.S[lo+i] = float32(i & 1023)
		}
		return ctx.Err()
	}); err != nil {
		return 0, err
	}
	strip := min(n, packed.StripRows)
	words, err := mem.Alloc[byte](b, max(n, strip*degree)*packed.Wide+1, "measured edges") // a byte follows the last word
	if err != nil {
		return 0, err
	}
	defer words.Free()
	frames, err := draw(words.S, n)
	if err != nil {
		return 0, err
	}
	all := spmv.Rows{Stride: packed.PanelColumns, S: rows.S}
	return each(ctx, o.Threads, func(t int) func() int {
		sums := make([]float32, strip*packed.PanelColumns)
		var decoded spmv.Decoded
		at := t * len(frames) / o.Threads
		return func() int {
			f := frames[at]
			kernel.Add(spmv.Addition{Acc: sums, Cols: packed.PanelColumns, Rows: all}, f, &decoded)
			at = (at + 1) % len(frames)
			return int(f.Edges)
		}
	})
}

// draw puts the words of the first strips of a graph of n nodes into words: as many as have n edges, and at least one. Nodes lie in the
// order of their degrees, which fall as the root of the place. All threads have the same edges, at different places.
func draw(words []byte, n int64) (frames []packed.Frame, err error) {
	e := packed.NewEncoder(func(f packed.Frame, _ []byte) error {
		f.Words = words[:copy(words, f.Words)]
		words = words[len(f.Words):]
		frames = append(frames, f)
		return nil
	})
	rows := min(n, packed.StripRows)
	edges := rows * degree
	for strip := range uint32(max(n/edges, 1)) {
		for i := range edges {
			drawn := rng.Hash(uint64(strip), uint64(i))
			at := (float64(i) + float64(float64(drawn>>40)/(1<<24))) / float64(edges)
			if err := e.Add(uint32(float64(n)*at*at), strip<<packed.StripShift|uint32(drawn)%uint32(rows)); err != nil {
				return nil, err
			}
		}
		if err := e.Flush(); err != nil {
			return nil, err
		}
	}
	return frames, nil
}

// flops returns the float32 operations of matrix products a second and thread, where both matrices are packed for each product as in
// training.
func flops(ctx context.Context, o Options) (float64, error) {
	k, err := dense.Select(o.Kernel)
	if err != nil {
		return 0, err
	}
	return each(ctx, o.Threads, func(int) func() int {
		a, c := make([]float32, side*side), make([]float32, side*side)
		for i := range a {
			a[i] = float32(i&7) / 8
		}
		left, right := make([]float32, k.LeftSize(side, side)), make([]float32, k.RightSize(side, side))
		return func() int {
			k.PackLeft(left, a, 0, side, side, side)
			k.PackRight(right, a, side, 0, side, side, side)
			clear(c)
			k.Add(c, dense.Area{Bottom: side, Right: side}, side, side, left, right)
			return 2 * side * side * side
		}
	})
}

// values returns the keys a second and thread that are put in order.
func values(ctx context.Context, o Options) (float64, error) {
	return each(ctx, o.Threads, func(t int) func() int {
		drawn, keys := make([]uint64, sortedKeys), make([]uint64, sortedKeys)
		for i := range drawn {
			drawn[i] = rng.Hash(uint64(t), uint64(i))
		}
		return func() int {
			copy(keys, drawn)
			slices.Sort(keys)
			return sortedKeys
		}
	})
}

// disk returns the bytes a second that are written to a file in a folder and made durable, and
// read: the most of some rounds, since a disk that others use may be slow for a moment.
func disk(ctx context.Context, folder string) (write, read float64, err error) {
	own, err := vfs.MkdirTemp(folder, "ndls-measure-*", 0o777)
	if err != nil {
		return 0, 0, err
	}
	defer func() { err = errors.Join(err, vfs.RemoveAll(own)) }()
	for range diskRounds {
		written, back, err := throughFile(ctx, filepath.Join(own, "file"))
		if err != nil {
			return 0, 0, err
		}
		write, read = max(write, written), max(read, back)
	}
	return write, read, nil
}

// throughFile is a round of disk.
func throughFile(ctx context.Context, name string) (write, read float64, err error) {
	part := direct.AlignedBytes(1 << 20)
	for i := range part {
		part[i] = byte(i * 7)
	}
	begin := time.Now()
	w, err := direct.Create(name)
	if err != nil {
		return 0, 0, err
	}
	for at := 0; at < FileBytes; at += len(part) {
		if err = errors.Join(err, ctx.Err()); err == nil {
			_, err = w.Write(part)
		}
	}
	if err != nil {
		w.Abort()
		return 0, 0, err
	}
	if err := w.Finish(); err != nil {
		return 0, 0, err
	}
	write = FileBytes / time.Since(begin).Seconds()
	defer func() { err = errors.Join(err, vfs.Remove(name)) }()
	f, err := direct.Open(name)
	if err != nil {
		return 0, 0, err
	}
	defer f.Close()
	begin = time.Now()
	r := direct.NewReader(f, 0, f.Size())
	defer r.Close()
	if n, err := io.Copy(io.Discard, r); err != nil || n != FileBytes {
		return 0, 0, errors.Join(err, fmt.Errorf("machine: %s: %d of %d bytes are there", name, n, FileBytes))
	}
	return write, FileBytes / time.Since(begin).Seconds(), ctx.Err()
}
