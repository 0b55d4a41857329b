package partition

import (
	"ndls/internal/extsort"
)

// pairKey orders edges of input ids, or of their ranks: by (smaller, larger) end, or by (source, destination) with directions. It never
// equals extsort.End, because ids end at dataset.MaxID.
func pairKey(lo, hi uint32) uint64 { return uint64(lo)<<32 | uint64(hi) }

func pairOfKey(key uint64) (lo, hi uint32) { return uint32(key >> 32), uint32(key) }

// visits calls visit for items in ascending order.
type visits[T extsort.Item] func(visit func([]T) error) error

// batched visits the keys that each adds, in batches.
func batched(each func(add func(key uint64) error) error) visits[uint64] {
	return func(visit func([]uint64) error) error {
		batch := make([]uint64, 0, extsort.BatchKeys)
		err := each(func(key uint64) error {
			batch = append(batch, key)
			if len(batch) < cap(batch) {
				return nil
			}
			full := batch
			batch = batch[:0]
			return visit(full)
		})
		if err == nil && len(batch) > 0 {
			err = visit(batch)
		}
		return err
	}
}
