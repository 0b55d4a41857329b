package ndls

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"ndls/dataset"
	"ndls/internal/vfs"
)

// Generate writes a synthetic graph, whose features and labels can be learned, to an
// empty or new folder, and returns the URI that reads it. uri is
// synthetic:nodes=N,edges=M,features=F,classes=C,seed=S, which is written as NumPy and
// CSV files, or papers100m:scale=1/N,seed=S, which is written as the Open Graph
// Benchmark publishes its graphs. With weights=N edges are a Parquet file, and all else is
// NumPy and CSV files.
func Generate(ctx context.Context, uri, dir string) (written string, err error) {
	if err := emptyOut(dir); err != nil {
		return "", err
	}
	written, err = dataset.Generate(ctx, uri, dir)
	return written, interruption(ctx, err)
}

// emptyOut refuses a folder that holds something.
func emptyOut(dir string) error {
	if err := outsideOfRuns(dir); err != nil {
		return err
	}
	if left, err := vfs.ReadDir(dir); err == nil && len(left) > 0 {
		return fmt.Errorf("--out %s holds %s; nothing was changed, give an empty or new folder", dir, left[0].Name())
	} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("--out: %w", err)
	}
	return nil
}
