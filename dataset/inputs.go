package dataset

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"ndls/internal/direct"
	"ndls/internal/progress"
)

// Input is a file that a dataset is read from.
type Input struct {
	// Path is the file as the URI names it, with the folder of the URI where that
	// names a folder.
	Path     string
	Size     int64
	Modified time.Time
	// SHA256 is the digest of the file in hexadecimal, empty until [Digest] fills it.
	SHA256 string
}

// Inputs lists the files that Open opens for a URI, in the order in which it does. The
// files of parts that are left out are not among them. It reads what Open reads, and
// fails where Open fails. A dataset without files has none.
//
// To notice that inputs have changed, compare paths, sizes and times first, and digests
// where these differ: a copy of a file has another time and the same bytes.
func Inputs(ctx context.Context, uri string, o Options) (_ []Input, err error) {
	ds, err := Open(ctx, uri, o)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, ds.Close()) }()
	d, ok := ds.(interface{ inputs() ([]Input, error) })
	if !ok {
		return nil, nil
	}
	return d.inputs()
}

func (fs *files) inputs() ([]Input, error) {
	var inputs []Input
	known := map[string]bool{}
	for _, f := range fs.opened {
		if known[f.Name()] {
			continue
		}
		known[f.Name()] = true
		in, err := stat(f.Name())
		if err != nil {
			return nil, err
		}
		inputs = append(inputs, in)
	}
	return inputs, nil
}

func stat(path string) (Input, error) {
	st, err := os.Stat(path)
	if err != nil {
		return Input{}, err
	}
	return Input{Path: path, Size: st.Size(), Modified: st.ModTime()}, nil
}

// Digest reads the inputs from beginning to end and fills in their SHA-256. A file
// that is not as it was listed gives [ErrData]. It reads past the page cache and ends
// soon after ctx does.
func Digest(ctx context.Context, inputs []Input) (err error) {
	var bytes int64
	for _, in := range inputs {
		bytes += in.Size
	}
	meter := progress.Start(ctx, "reading inputs for their digests", bytes, "bytes")
	defer meter.Done()
	for i := range inputs {
		if err := inputs[i].digest(ctx, meter); err != nil {
			return err
		}
	}
	return nil
}

func (in *Input) digest(ctx context.Context, meter *progress.Meter) (err error) {
	f, err := direct.Open(in.Path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	r := direct.NewReader(f, 0, f.Size())
	defer func() { err = errors.Join(err, r.Close()) }()
	sum, buf := sha256.New(), make([]byte, bufferSize)
	for err == nil {
		if err := ctx.Err(); err != nil {
			return err
		}
		var n int
		n, err = r.Read(buf)
		_, _ = sum.Write(buf[:n])
		meter.Add(int64(n))
	}
	if err != io.EOF {
		return fmt.Errorf("%s: %w", in.Path, err)
	}
	switch now, err := stat(in.Path); {
	case err != nil:
		return err
	case now.Size != in.Size || !now.Modified.Equal(in.Modified) || now.Size != f.Size():
		return badData(in.Path, "it changed while it was being read: run again when nobody writes to it")
	}
	in.SHA256 = hex.EncodeToString(sum.Sum(nil))
	return nil
}
