package ndls

import (
	"context"
	"errors"
	"maps"
	"slices"

	"ndls/catalog"
	"ndls/internal/failure"
	"ndls/internal/storage"
	"ndls/partition"
	"ndls/shards"
	"ndls/stage"
)

// DegreeHops says how many hops the nodes of some degrees take.
type DegreeHops struct {
	// Lo and Hi are the smallest and the largest degree: 0, 1, 2 to 3, 4 to 7, ….
	Lo, Hi int64
	// Histogram lists [K, nodes], in ascending order of K.
	Histogram [][2]int64
}

// HopsByDegree counts the nodes of the run by degree and K, in buckets of degrees that double. The
// error wraps [ErrNoRun] where the run has no K table.
func (d *Directory) HopsByDegree(ctx context.Context) (_ []DegreeHops, err error) {
	defer func() { err = interruption(ctx, stage.Explain(err, d.cat)) }()
	tables := d.cat.Entries(catalog.KindLSI)
	nodes, ok := d.cat.Lookup(partition.NodesPath)
	if !ok || len(tables) == 0 {
		return nil, failure.Of(ErrNoRun, "%s holds no K table yet; run ndls lsi first", d.uri)
	}
	// Nodes are in descending order of degree: ends has for each bucket the node after its last one.
	var ends []struct{ node, bucket int64 }
	if err := d.read(ctx, nodes, func(r storage.Reader, name string) error {
		return shards.ReadNodes(r, name, func(first int64, b shards.NodeBatch) error {
			for i, degree := range b.Degree {
				bucket := bucketOf(int64(degree))
				if len(ends) == 0 || ends[len(ends)-1].bucket != bucket {
					ends = append(ends, struct{ node, bucket int64 }{0, bucket})
				}
				ends[len(ends)-1].node = first + int64(i) + 1
			}
			return ctx.Err()
		})
	}); err != nil {
		return nil, err
	}
	counts := map[int64]map[int64]int64{}
	node, at := int64(0), 0
	for _, e := range tables {
		if err := d.read(ctx, e, func(r storage.Reader, name string) error {
			return shards.ReadLSI(r, name, func(_ int64, b shards.LSIBatch) error {
				for _, k := range b.K {
					for at < len(ends)-1 && node >= ends[at].node {
						at++
					}
					bucket := ends[at].bucket
					if counts[bucket] == nil {
						counts[bucket] = map[int64]int64{}
					}
					counts[bucket][int64(k)]++
					node++
				}
				return ctx.Err()
			})
		}); err != nil {
			return nil, err
		}
	}
	var all []DegreeHops
	for _, bucket := range slices.Sorted(maps.Keys(counts)) {
		h := DegreeHops{Lo: bucket, Hi: max(2*bucket-1, bucket)}
		for _, k := range slices.Sorted(maps.Keys(counts[bucket])) {
			h.Histogram = append(h.Histogram, [2]int64{k, counts[bucket][k]})
		}
		all = append(all, h)
	}
	return all, nil
}

// bucketOf is the smallest degree of the bucket of a degree: the power of two that is not larger.
func bucketOf(degree int64) int64 {
	b := min(degree, 1)
	for 2*b <= degree && b > 0 {
		b *= 2
	}
	return b
}

// read opens a committed file for a function.
func (d *Directory) read(ctx context.Context, e catalog.Entry, do func(r storage.Reader, name string) error) (err error) {
	r, err := d.cat.Open(ctx, e)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	return do(r, e.Path)
}
