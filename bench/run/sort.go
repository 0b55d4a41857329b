package main

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"ndls/dataset"
	"ndls/internal/extsort"
	"ndls/internal/inorder"
	"ndls/internal/mem"
	"ndls/shards"
)

// sortPairs writes the edges of a dataset in both directions, each once, without self-loops
// and in order of destination and source, to a Parquet file: what the peers of the table do.
// It reads, sorts and writes as the partition stage does, and does no more.
func sortPairs(ctx context.Context, uri string, s settings) (err error) {
	start := time.Now()
	runtime.GOMAXPROCS(s.threads + 1) // one thread may wait for the disk
	memory, err := parseGiB(s.sortMemory)
	if err != nil {
		return err
	}
	budget, err := mem.NewBudget(memory)
	if err != nil {
		return err
	}
	defer budget.Close()
	scratch, err := extsort.NewScratch(s.dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, scratch.Remove()) }()
	d, err := dataset.Open(ctx, uri, dataset.Options{NoFeatures: true})
	if err != nil {
		return err
	}
	defer d.Close()
	keys, err := extsort.NewSorter[uint64](ctx, budget, scratch, extsort.Options{Want: 2 * d.Info().EdgeHint, Threads: s.threads})
	if err != nil {
		return err
	}
	defer keys.Close()
	if err := addPairs(ctx, d, s.threads, keys); err != nil {
		return err
	}
	if err := keys.Finish(); err != nil {
		return err
	}
	rows, err := writePairs(filepath.Join(s.dir, "sorted.parquet"), s.threads, keys)
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(outcome{Seconds: map[string]float64{"sort": time.Since(start).Seconds()}, Edges: rows})
}

// edgeParts is the number of parts of an edge list that each thread reads, one after the other.
const edgeParts = 8

// addPairs gives both directions of all edges to a sorter.
func addPairs(ctx context.Context, d dataset.Dataset, threads int, to *extsort.Sorter[uint64]) error {
	var next atomic.Int64
	workers, ctx := errgroup.WithContext(ctx)
	for range threads {
		workers.Go(func() error {
			batch, keys := make([]dataset.Edge, 1<<13), make([]uint64, 0, 1<<14)
			for i := next.Add(1) - 1; i < int64(threads*edgeParts); i = next.Add(1) - 1 {
				r, err := d.Edges(ctx, dataset.Share{First: int(i), Last: int(i + 1), Of: threads * edgeParts})
				if err != nil {
					return err
				}
				for {
					n, err := r.Read(batch, nil)
					if err == io.EOF {
						break
					}
					keys = keys[:0]
					for _, e := range batch[:n] {
						if e.U != e.V {
							keys = append(keys, uint64(e.V)<<32|uint64(e.U), uint64(e.U)<<32|uint64(e.V))
						}
					}
					if err == nil {
						err = to.Add(keys)
					}
					if err != nil {
						return errors.Join(err, r.Close())
					}
				}
				if err := r.Close(); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return workers.Wait()
}

// writePairs writes the keys of a sorter to a Parquet file, and says how many they are.
func writePairs(path string, threads int, from *extsort.Sorter[uint64]) (rows int64, err error) {
	f, err := os.Create(path)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	// These are blocks of one destination: the order is by destination, then by source.
	meta := shards.EdgeMeta{Hi: math.MaxUint32, NumNodes: math.MaxUint32, BlockRows: 1}
	w, err := shards.NewEdgeWriter(f, meta)
	if err != nil {
		return 0, err
	}
	pages := make([]shards.EdgePage, threads+2)
	for i := range pages {
		pages[i] = shards.NewEdgePage()
	}
	line := inorder.New(threads, pages, func(p *shards.EdgePage) error { return p.Encode(meta) }, w.WritePage)
	var page *shards.EdgePage
	put := func() {
		page = nil
		line.Put()
	}
	err = from.InOrder(func(keys []uint64) (err error) {
		for len(keys) > 0 {
			if page == nil {
				if page, err = line.Next(); err != nil {
					return err
				}
				page.Src, page.Dst = page.Src[:0], page.Dst[:0]
			}
			n := min(len(keys), shards.EdgePageRows-len(page.Src))
			for _, k := range keys[:n] {
				page.Src, page.Dst = append(page.Src, uint32(k)), append(page.Dst, uint32(k>>32))
			}
			if keys = keys[n:]; len(page.Src) == shards.EdgePageRows {
				put()
			}
		}
		return nil
	})
	if page != nil {
		put()
	}
	if err := errors.Join(err, line.Close()); err != nil {
		return 0, err
	}
	if rows, err = w.Close(); err != nil {
		return 0, err
	}
	return rows, f.Sync()
}
