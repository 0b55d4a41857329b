package dataset

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"ndls/dataset/graph"
	"ndls/dataset/source"
	"ndls/internal/direct"
	"ndls/internal/progress"
)

// Inputs lists the files that Open opens for a URI, in the order in which it does. The
// files of parts that are left out are not among them. It reads what Open reads, and
// fails where Open fails. A dataset without files has none.
//
// To notice that inputs have changed, compare paths and sizes, and digests unless device, inode and time of the last
// change are known and the same ([Input]): a copy of a file has others and the same bytes, and another file may have the
// same size and the same time of modification. Files of an object store have a version in place of time and digest.
func Inputs(ctx context.Context, uri string, o Options) (_ []Input, err error) {
	ds, err := Open(ctx, uri, o)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, ds.Close()) }()
	return Files(ds)
}

// Digest fills in the digests of inputs, but for those with a version, which it leaves as they
// are. It reads what no dataset has read in a context with [source.Sums]. A file
// that is not as it was listed gives [ErrData]. It reads past the page cache and ends
// soon after ctx does.
func Digest(ctx context.Context, inputs []Input) (err error) {
	var bytes int64
	for _, in := range inputs {
		if in.Version == "" {
			bytes += in.Size
		}
	}
	meter := progress.Start(ctx, "reading inputs for their digests", bytes, "bytes")
	defer meter.Done()
	for i := range inputs {
		if inputs[i].Version != "" {
			continue
		}
		if err := digest(ctx, &inputs[i], meter); err != nil {
			return err
		}
	}
	return nil
}

func digest(ctx context.Context, in *Input, meter *progress.Meter) (err error) {
	f, err := direct.Open(in.Path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	sum := source.SumsOf(ctx).Of(*in)
	if f.Size() == in.Size {
		for first, last := range sum.Missing() {
			if err := sumUp(ctx, f, first, last, sum, meter); err != nil {
				return fmt.Errorf("%s: %w", in.Path, err)
			}
		}
	}
	switch now, err := source.Stat(in.Path); {
	case err != nil:
		return err
	case now.Size != in.Size || !now.Modified.Equal(in.Modified) || now.Size != f.Size():
		return graph.BadData(in.Path, "it changed while it was being read: run again when nobody writes to it")
	case !now.Changed.Equal(in.Changed):
		in.Device, in.Inode, in.Changed = 0, 0, time.Time{} // as a link or a mode that changed does, too
	}
	in.Digest = sum.Text()
	return nil
}

// sumUp reads a stretch of a file for its sum.
func sumUp(ctx context.Context, f *direct.File, first, last int64, sum *source.Sum, meter *progress.Meter) (err error) {
	r := direct.NewReader(f, first, last)
	defer func() { err = errors.Join(err, r.Close()) }()
	for buf := make([]byte, source.BufferSize); first < last; {
		part := buf[:min(int64(len(buf)), last-first)]
		if _, err := io.ReadFull(r, part); err != nil {
			return err
		}
		sum.Add(first, part)
		first += int64(len(part))
		meter.Add(int64(len(part)))
		if err := ctx.Err(); err != nil {
			return err
		}
	}
	return nil
}
