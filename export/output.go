package export

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"ndls/internal/direct"
	"ndls/internal/failure"
	"ndls/internal/rundir"
	"ndls/internal/vfs"
)

// check refuses an output that Run must not write.
func (o Options) check() error {
	if o.To != nil {
		return nil
	}
	if o.Out == "" {
		return failure.Of(ErrOption, "--out is empty; give a file, or - for standard output")
	}
	if suffix := filepath.Ext(o.Out); o.Format == "parquet" && (suffix == ".gz" || suffix == ".zst") {
		return failure.Of(ErrOption, "--out %s: no program reads a compressed parquet file; give a name without %s", o.Out, suffix)
	}
	if run, inside := rundir.Around(o.Out); inside {
		return failure.Of(ErrOption, "--out %s is inside the run directory %s, whose files only stages write; give a file elsewhere", o.Out, run)
	}
	switch st, err := vfs.Stat(o.Out); {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return fmt.Errorf("--out: %w", err)
	case st.IsDir():
		return failure.Of(ErrOption, "--out %s is a folder; give a file", o.Out)
	case o.Force || streams(st):
		return nil
	}
	return failure.Of(ErrExists, "%s is there already; give another --out, or --force to replace it", o.Out)
}

// streams reports whether a file takes bytes as they come: a pipe or a device.
func streams(st fs.FileInfo) bool { return st.Mode()&(fs.ModeNamedPipe|fs.ModeCharDevice) != 0 }

// output takes the bytes of an export. A file gets its name when it is complete.
type output struct {
	// Writer receives the rows.
	io.Writer
	// closers end what lies above the file, the topmost first.
	closers []io.Closer
	finish  func() error
	undo    func()
	dir     string // the folder of the file
}

// create opens the output.
func (o Options) create() (*output, error) {
	out, err := o.open()
	if err != nil || o.To != nil {
		return out, err
	}
	switch strings.ToLower(filepath.Ext(o.Out)) {
	case ".gz":
		// No name and no time in the header: the bytes depend on the rows alone.
		z := gzip.NewWriter(out.Writer)
		out.Writer, out.closers = z, []io.Closer{z}
	case ".zst":
		z, err := zstd.NewWriter(out.Writer, zstd.WithEncoderConcurrency(1), zstd.WithLowerEncoderMem(true))
		if err != nil {
			out.abort()
			return nil, err
		}
		out.Writer, out.closers = z, []io.Closer{z}
	}
	return out, nil
}

// open opens what lies below a compression.
func (o Options) open() (*output, error) {
	nothing := func() {}
	if o.To != nil {
		return &output{Writer: o.To, finish: func() error { return nil }, undo: nothing}, nil
	}
	if st, err := vfs.Stat(o.Out); err == nil && streams(st) {
		f, err := os.OpenFile(o.Out, os.O_WRONLY, 0) // a pipe or a device
		if err != nil {
			return nil, fmt.Errorf("--out: %w", err)
		}
		return &output{Writer: f, finish: f.Close, undo: func() { _ = f.Close() }}, nil
	}
	var attempt [4]byte
	if _, err := rand.Read(attempt[:]); err != nil {
		return nil, err
	}
	tmp := o.Out + "." + hex.EncodeToString(attempt[:]) + ".tmp"
	w, err := direct.Create(tmp)
	if err != nil {
		return nil, fmt.Errorf("--out: %w", err)
	}
	return &output{
		Writer: w,
		dir:    filepath.Dir(o.Out),
		finish: func() error {
			if err := w.Finish(); err != nil {
				return err
			}
			return vfs.Rename(tmp, o.Out)
		},
		undo: func() { w.Abort(); _ = vfs.Remove(tmp) },
	}, nil
}

// commit makes the output what was asked for.
func (o *output) commit() error {
	for _, c := range o.closers {
		if err := c.Close(); err != nil {
			return fmt.Errorf("writing --out: %w", err)
		}
	}
	if err := o.finish(); err != nil {
		return fmt.Errorf("writing --out: %w; %s", err, vfs.Remedy(err, o.dir))
	}
	o.undo = func() {}
	return nil
}

// abort leaves nothing of an output that was not committed.
func (o *output) abort() { o.undo() }
