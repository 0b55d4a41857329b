package export

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"ndls/catalog"
	"ndls/internal/direct"
	"ndls/internal/mem"
	"ndls/internal/progress"
	"ndls/internal/vfs"
)

var (
	// ErrOption reports an unknown artifact or format.
	ErrOption = errors.New("invalid export")
	// ErrExists reports an output file that is there already.
	ErrExists = errors.New("output file exists")
)

// Artifacts and Formats are what can be exported, and how.
var (
	Artifacts = []string{"lsi", "features", "smoothed", "soft-labels", "predictions", "edges", "nodes"}
	Formats   = []string{"csv", "npy", "parquet", "arrow"}
)

// Options say what to write where.
type Options struct {
	What, Format string
	// Out is a path on the local file system. It appears complete or not at
	// all; what is there is replaced only with Force.
	Out    string
	Force  bool
	Budget *mem.Budget
}

// writer takes rows, column by column, n at a time.
type writer interface {
	write(cols [][]byte, n int) error
	close() error
}

// Run exports from the run directory of cat and returns the number of rows.
// Errors wrap [ErrOption], [ErrExists], [mem.ErrBudget], [seal.ErrCorrupt] or
// are those of the file system.
func Run(ctx context.Context, cat *catalog.Catalog, o Options) (rows int64, err error) {
	if !slices.Contains(Artifacts, o.What) {
		return 0, fmt.Errorf("export: --what %q is none of %s: %w", o.What, strings.Join(Artifacts, ", "), ErrOption)
	}
	if !slices.Contains(Formats, o.Format) {
		return 0, fmt.Errorf("export: --format %q is none of %s: %w", o.Format, strings.Join(Formats, ", "), ErrOption)
	}
	if err := absent(o); err != nil {
		return 0, err
	}
	if err := verify(ctx, cat, o.What); err != nil {
		return 0, err
	}
	out, err := create(o.Out)
	if err != nil {
		return 0, err
	}
	defer out.abort()
	if o.What == "edges" {
		rows, err = exportEdges(ctx, cat, o, out.w)
	} else {
		rows, err = exportTable(ctx, cat, o, out.w)
	}
	if err != nil {
		return 0, fmt.Errorf("export: %s: %w", o.What, err)
	}
	if err := absent(o); err != nil {
		return 0, err
	}
	return rows, out.commit()
}

// absent refuses to replace a file without Force.
func absent(o Options) error {
	if _, err := vfs.Lstat(o.Out); o.Force || errors.Is(err, fs.ErrNotExist) {
		return nil
	} else if err != nil {
		return fmt.Errorf("export: %w", err)
	}
	return fmt.Errorf("export: %s is there already; give another --out, or --force to replace it: %w", o.Out, ErrExists)
}

// made says which kinds of file an artifact is read from and which verb makes it.
var made = map[string]struct {
	kinds []string
	verb  string
}{
	"lsi":         {[]string{catalog.KindLSI}, "lsi"},
	"features":    {[]string{catalog.KindNodes, catalog.KindFeatures}, "partition"},
	"smoothed":    {[]string{catalog.KindSmoothed}, "smooth"},
	"soft-labels": {[]string{catalog.KindSoftLabels}, "train"},
	"predictions": {[]string{catalog.KindPredictions}, "smooth-labels"},
	"edges":       {[]string{catalog.KindNodes, catalog.KindEdges}, "partition"},
	"nodes":       {[]string{catalog.KindNodes}, "partition"},
}

// verify reads every file the artifact is made of against its checksum.
func verify(ctx context.Context, cat *catalog.Catalog, what string) error {
	var entries []catalog.Entry
	for _, kind := range made[what].kinds {
		found := cat.Entries(kind)
		if len(found) == 0 {
			return fmt.Errorf("export: %s has no %s; run ndls %s first", cat.Store().URI(), what, made[what].verb)
		}
		entries = append(entries, found...)
	}
	var bytes int64
	for _, e := range entries {
		bytes += e.Bytes
	}
	m := progress.Start(ctx, "verify", bytes, "bytes")
	defer m.Done()
	for _, e := range entries {
		if err := cat.Verify(ctx, e); err != nil {
			return err
		}
		m.Add(e.Bytes)
	}
	return nil
}

// output is a file that gets its name when it is complete.
type output struct {
	path, tmp string
	w         *direct.Writer
}

func create(path string) (*output, error) {
	var attempt [4]byte
	if _, err := rand.Read(attempt[:]); err != nil {
		return nil, fmt.Errorf("export: %w", err)
	}
	tmp := path + "." + hex.EncodeToString(attempt[:]) + ".tmp"
	w, err := direct.Create(tmp)
	if err != nil {
		return nil, fmt.Errorf("export: %w", err)
	}
	return &output{path, tmp, w}, nil
}

func (o *output) commit() error {
	if err := o.w.Finish(); err != nil {
		return fmt.Errorf("export: writing %s: %w; free space there or choose another --out", o.path, err)
	}
	if err := vfs.Rename(o.tmp, o.path); err != nil {
		return fmt.Errorf("export: %w", err)
	}
	o.tmp = ""
	return nil
}

func (o *output) abort() {
	if o.tmp != "" {
		o.w.Abort()
		_ = vfs.Remove(o.tmp)
	}
}
