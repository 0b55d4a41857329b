package partition

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"ndls/catalog"
	"ndls/internal/extsort"
	"ndls/internal/seal"
	"ndls/internal/storage"
	"ndls/shards"
)

// EnsureHops rebuilds hop streams that are missing, that were made from other shards, or that have the format of another version.
func EnsureHops(ctx context.Context, cat *catalog.Catalog) error {
	for _, shard := range slices.Concat(cat.Entries(catalog.KindEdges), cat.Entries(catalog.KindReversed)) {
		ok, err := hasHops(ctx, cat, shard)
		if err == nil && !ok {
			err = BuildHops(ctx, cat, shard)
		}
		if err != nil {
			return err
		}
	}
	// Earlier versions had other names.
	return cat.Remove(ctx, func(e catalog.Entry) bool {
		return e.Kind == catalog.KindHops && e.Path != HopPath(int(e.Interval))
	})
}

// hasHops reports whether the hop stream of a shard exists and belongs to it.
func hasHops(ctx context.Context, cat *catalog.Catalog, shard catalog.Entry) (ok bool, err error) {
	e, ok := cat.Lookup(filesOf(shard.Kind, int(shard.Interval)).hops.Path)
	if !ok {
		return false, nil
	}
	if _, err := cat.Store().Stat(ctx, e.Path); errors.Is(err, storage.ErrNotExist) {
		return false, nil
	}
	file, err := cat.OpenOnce(ctx, e)
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	sum, err := shards.ReadHopShard(file, e.Path)
	if errors.Is(err, seal.ErrVersion) {
		return false, nil
	}
	return "sha256:"+sum == shard.Checksum, err
}

// BuildHops makes the hop stream of a committed shard and commits it under [HopPath] or [ReversedHopPath], replacing any present one. The
// bytes equal those that are written with the shard.
func BuildHops(ctx context.Context, cat *catalog.Catalog, shard catalog.Entry) (err error) {
	file, err := cat.Open(ctx, shard)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	r, err := shards.OpenEdges(file, shard.Path)
	if err != nil {
		return err
	}
	return cat.Write(ctx, filesOf(shard.Kind, int(shard.Interval)).hops, func(f *catalog.File) error { return buildHops(ctx, f, r, shard) })
}

// buildHops writes the hop stream of a shard, which r reads.
func buildHops(ctx context.Context, f *catalog.File, r *shards.EdgeReader, shard catalog.Entry) error {
	w, err := shards.NewHopWriter(f, r.Meta())
	if err != nil {
		return err
	}
	src, dst := make([]uint32, extsort.BatchKeys), make([]uint32, extsort.BatchKeys)
	var weights []float32
	if r.Meta().Weighted {
		weights = make([]float32, extsort.BatchKeys)
	}
	for {
		n, err := r.ReadWeighted(src, dst, weights)
		if errors.Is(err, io.EOF) {
			break
		}
		if err == nil {
			err = w.Write(src[:n], dst[:n], weights[:min(n, len(weights))])
		}
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return fmt.Errorf("make the hop stream of %s: %w", shard.Path, err)
		}
	}
	if f.Rows, err = w.Close(strings.TrimPrefix(shard.Checksum, "sha256:")); err != nil {
		return err
	}
	if f.Rows != shard.Rows {
		return fmt.Errorf("%s holds %d edges, its catalogue entry says %d: remove the run directory and run again: %w",
			shard.Path, f.Rows, shard.Rows, seal.ErrCorrupt)
	}
	return nil
}
