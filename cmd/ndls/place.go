package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"ndls/internal/storage"
	"ndls/internal/vfs"
)

// cacheShare is the part of the free disk space that a cache takes unless
// --cache-size says otherwise.
const cacheShare = 2

// cacheFlags adds --cache and --cache-size.
func (a *app) cacheFlags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&a.cache, "cache", "", "local folder, of this process alone, for copies of what is read from s3:// (default in --scratch)")
	cmd.Flags().StringVar(&a.cacheSize, "cache-size", "", "largest size of the cache, such as 200GiB (default half of what is free on its disk)")
}

// scratchDir is --scratch, or its default; "" in an object store.
func (a *app) scratchDir() string {
	if a.scratch == "" && !a.remote() {
		return filepath.Join(a.runDir, "scratch")
	}
	return a.scratch
}

// place makes sure of a folder for temporary files. remove deletes it if it was
// made for this process alone.
func (a *app) place(scratch string) (dir string, remove func(), err error) {
	if scratch != "" {
		return scratch, func() {}, nil
	}
	if dir, err = vfs.MkdirTemp(os.TempDir(), "ndls-scratch-*"); err != nil {
		return "", nil, fmt.Errorf("a folder for temporary files: %w; give --scratch", err)
	}
	return dir, func() { _ = vfs.RemoveAll(dir) }, nil
}

// cached keeps copies of the files of a store in an object store.
func (a *app) cached(store storage.Store, scratch string) (_ storage.Store, stop func(), err error) {
	if !a.remote() {
		return store, func() {}, nil
	}
	dir := a.cache
	if dir == "" {
		dir = filepath.Join(scratch, "cache")
	}
	size, err := a.cacheBytes(dir)
	if err != nil {
		return nil, nil, err
	}
	c, err := storage.NewCached(store, dir, size)
	if err != nil {
		return nil, nil, err
	}
	return c, func() { _ = c.Close() }, nil
}

// cacheBytes is --cache-size, or its default.
func (a *app) cacheBytes(dir string) (int64, error) {
	if a.cacheSize != "" {
		n, err := parseBytes(a.cacheSize)
		if err != nil {
			return 0, asUsage(fmt.Errorf("--cache-size %w", err))
		}
		return n, nil
	}
	if _, err := vfs.MkdirAll(dir, 0o755); err != nil {
		return 0, fmt.Errorf("--cache: %w", err)
	}
	space, err := vfs.Statfs(dir)
	if err != nil {
		return 0, fmt.Errorf("--cache %s: %w", dir, err)
	}
	return space.Free / cacheShare, nil
}
