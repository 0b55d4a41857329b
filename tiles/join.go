package tiles

import (
	"context"

	"ndls/catalog"
)

// joinRows is the number of rows of a tile that are copied at a time.
const joinRows = 1 << 14

// Join commits the tiles of an interval that exist in parts, and removes the parts.
func (m *Matrix) Join(ctx context.Context, interval int) error {
	for p := range m.Panels() {
		if m.Has(interval, p) || m.isNeedless(interval, p) {
			continue
		}
		if err := m.join(ctx, interval, p); err != nil {
			return err
		}
	}
	return m.drop(ctx, interval, m.PartKind)
}

func (m *Matrix) join(ctx context.Context, interval, panel int) error {
	lo, hi := m.Bounds(interval)
	rows, err := m.open(ctx, interval, panel, lo, hi)
	if err != nil {
		return err
	}
	defer rows.Close()
	g, err := m.Create(ctx, interval, panel, panel+1)
	if err != nil {
		return err
	}
	defer g.Abort()
	buf := make([]byte, joinRows*m.rowBytes())
	for ; lo < hi; lo += joinRows {
		part := buf[:min(joinRows, hi-lo)*m.rowBytes()]
		if err := rows.fetch(part, lo); err != nil {
			return err
		}
		if err := rows.add(part, lo, lo+joinRows >= hi); err != nil {
			return err
		}
		if err := g.Write(panel, part); err != nil {
			return err
		}
	}
	return g.Commit(ctx)
}

// Drop removes the tiles of an interval and their parts.
func (m *Matrix) Drop(ctx context.Context, interval int) error {
	return m.drop(ctx, interval, m.Kind, m.PartKind)
}

func (m *Matrix) drop(ctx context.Context, interval int, kinds ...string) error {
	return m.cat.Remove(ctx, func(e catalog.Entry) bool {
		for _, k := range kinds {
			if k != "" && e.Kind == k && e.Interval == int32(interval) {
				return true
			}
		}
		return false
	})
}
