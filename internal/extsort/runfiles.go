package extsort

import (
	"context"
	"sort"
)

// RunFiles are open run files.
type RunFiles[T Item] []*RunFile[T]

// Close closes all files.
func (rs RunFiles[T]) Close() {
	for _, r := range rs {
		r.Close()
	}
}

// Keys returns the number of keys of all files together.
func (rs RunFiles[T]) Keys() (n int64) {
	for _, r := range rs {
		n += r.keys
	}
	return n
}

// maxSamples is about how many keys stand for all when those are cut.
const maxSamples = 1 << 16

// Border is the key with which slice i of n slices of about the same number of items begins.
func (rs RunFiles[T]) Border(i, n int) uint64 {
	switch i {
	case 0:
		return 0
	case n:
		return End
	}
	samples, weight := rs.samples()
	want := weight * int64(i) / int64(n)
	for _, s := range samples {
		if want < s.keys {
			return s.first
		}
		want -= s.keys
	}
	return End
}

// sample stands for so many keys from its first.
type sample struct {
	first uint64
	keys  int64
}

// samples are first keys of blocks, in order.
func (rs RunFiles[T]) samples() (all []sample, weight int64) {
	blocks := int64(0)
	for _, r := range rs {
		blocks += r.blocks()
	}
	stride := blocks/maxSamples + 1
	for _, r := range rs {
		for b := int64(0); b < r.blocks(); b += stride {
			all = append(all, sample{Key(&r.marks.S[b].first), min(stride*blockKeys, r.keys-b*blockKeys)})
		}
		weight += r.keys
	}
	sort.Slice(all, func(i, j int) bool { return all[i].first < all[j].first })
	return all, weight
}

// Each calls visit for the keys of all files in batches that may be overwritten, on so
// many threads at a time and in any order of batches. The files stay open.
func (rs RunFiles[T]) Each(ctx context.Context, threads int, visit func([]T) error) error {
	for _, r := range rs {
		if err := eachOf[T](ctx, threads, r, false, 0, r.blocks(), visit); err != nil {
			return err
		}
	}
	return nil
}

// EachWithin is Each of the items with keys in [lo, hi). It reads no more than their blocks.
func (rs RunFiles[T]) EachWithin(ctx context.Context, threads int, lo, hi uint64, visit func([]T) error) error {
	return rs.within(ctx, threads, false, lo, hi, visit)
}

// InOrderWithin is InOrder of the items with keys in [lo, hi). It may be called on several threads at a time.
func (rs RunFiles[T]) InOrderWithin(ctx context.Context, threads int, lo, hi uint64, visit func([]T) error) error {
	return rs.within(ctx, threads, true, lo, hi, visit)
}

func (rs RunFiles[T]) within(ctx context.Context, threads int, inOrder bool, lo, hi uint64, visit func([]T) error) error {
	first, end := least[T](lo), least[T](hi)
	for _, r := range rs {
		from, err := firstBlock[T](r, first)
		if err != nil {
			return err
		}
		to, err := firstBlock[T](r, end)
		if err != nil {
			return err
		}
		if err := eachOf[T](ctx, threads, r, inOrder, max(from-1, 0), to, func(items []T) error {
			items = items[firstOf(items, first):]
			if items = items[:firstOf(items, end)]; len(items) == 0 {
				return nil
			}
			return visit(items)
		}); err != nil {
			return err
		}
	}
	return nil
}

// InOrder is Each for one file after the other, in the order of the keys of each: visit is
// called by one goroutine at a time, while the threads check what comes next.
func (rs RunFiles[T]) InOrder(ctx context.Context, threads int, visit func([]T) error) error {
	for _, r := range rs {
		if err := eachOf[T](ctx, threads, r, true, 0, r.blocks(), visit); err != nil {
			return err
		}
	}
	return nil
}
