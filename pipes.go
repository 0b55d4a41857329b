package ndls

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"

	"ndls/coordinator"
	"ndls/dataset"
	"ndls/dataset/source"
	"ndls/internal/vfs"
)

// copiedPipes are the pipes of a dataset as temporary files. An import reads its files more than
// once, and a pipe can be read once.
type copiedPipes struct {
	// uri names the files in place of the pipes.
	uri string
	// notes say what was copied, and as what it is read.
	notes  []string
	digest map[string]string // by file
	undo   []func()
}

// remove deletes the files.
func (c *copiedPipes) remove() {
	for _, f := range c.undo {
		f()
	}
	c.undo = nil
}

// copyPipes copies the pipes that a URI names to files in a folder for temporary files. A file is
// named by the digest of its bytes, so that the same bytes are the same dataset, and others are not.
func (r Resources) copyPipes(ctx context.Context, uri string) (c *copiedPipes, err error) {
	c = &copiedPipes{uri: uri, digest: map[string]string{}}
	pipes := dataset.Pipes(uri)
	if len(pipes) == 0 {
		return c, nil
	}
	defer func() {
		if err != nil {
			c.remove()
		}
	}()
	scratch, remove, err := r.scratch()
	if err != nil {
		return c, err
	}
	dir, err := vfs.MkdirTemp(scratch, "ndls-pipes-*", 0o777)
	if err != nil {
		remove()
		return c, fmt.Errorf("a folder for what comes from a pipe: %w; give --scratch", err)
	}
	c.undo = append(c.undo, func() { _ = vfs.RemoveAll(dir) }, remove)
	files := map[dataset.Pipe]string{}
	for _, p := range pipes {
		temporary := filepath.Join(dir, "pipe")
		copied, err := source.CopyPipe(ctx, p.Path, temporary)
		if err != nil {
			return c, err
		}
		end := p.End(copied)
		file := filepath.Join(dir, "pipe-"+copied.Digits()[:16]+end)
		if err := vfs.Rename(temporary, file); err != nil {
			return c, err
		}
		form := strings.TrimPrefix(end, ".")
		if form == "" {
			form = "text"
		}
		c.notes = append(c.notes, fmt.Sprintf("%s: its %d bytes were copied to a temporary file, because an import reads its files more than once; they are read as %s", p.Path, copied.Size, form))
		files[p], c.digest[file] = file, copied.Digest
	}
	c.uri = dataset.WithCopies(uri, files)
	return c, nil
}

// digests fills in the digests of files that were copied.
func (c *copiedPipes) digests(files []coordinator.InputFile) {
	for i, f := range files {
		if sum, ok := c.digest[f.Path]; ok {
			files[i].Digest = sum
		}
	}
}
