package ndls

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"ndls/dataset"
	"ndls/internal/failure"
	"ndls/internal/rundir"
	"ndls/internal/vfs"
)

// Generate writes a synthetic graph, whose features and labels can be learned, to an
// empty or new folder, and returns the URI that reads it. uri is
// synthetic:nodes=N,edges=M,features=F,classes=C,seed=S, which is written as NumPy and
// CSV files, or papers100m:scale=1/N,seed=S, which is written as the Open Graph
// Benchmark publishes its graphs.
func Generate(ctx context.Context, uri, dir string) (written string, err error) {
	if run, inside := rundir.Around(dir); inside {
		return "", failure.Of(ErrOption, "--out %s is inside the run directory %s, whose files only stages write; give a folder elsewhere", dir, run)
	}
	if left, err := vfs.ReadDir(dir); err == nil && len(left) > 0 {
		return "", fmt.Errorf("--out %s holds %s; nothing was changed, give an empty or new folder", dir, left[0].Name())
	} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("--out: %w", err)
	}
	written, err = dataset.Generate(ctx, uri, dir)
	return written, interruption(ctx, err)
}
