package partition

import (
	"context"
	"errors"

	"ndls/internal/mem"
	"ndls/shards"
)

// rowStore takes rows in any order and returns tiles.
type rowStore interface {
	// put stores the values of a node in all tiles, or returns errNotHalf. No node comes twice. Several threads may call it, each with its
	// own memory for an encoded row.
	put(node uint32, values []float32, encoded []byte) error
	// seal ends the stores; every node has had its row.
	seal() error
	// cellRows returns the largest number of rows that load accepts, counted from the start of an interval.
	cellRows() int64
	// load returns the rows [lo, hi) of the tiles [first, last) of one group, one slice per tile, valid until the next call.
	load(ctx context.Context, lo, hi int64, first, last int) ([][]byte, error)
	close()
}

// errNotHalf reports a feature that is not exactly a float16.
var errNotHalf = errors.New("a feature is no float16")

// noRows is a store that keeps nothing.
type noRows struct{ half bool }

func (r noRows) put(_ uint32, values []float32, encoded []byte) error {
	if !shards.EncodeTile(encoded, values, r.half) {
		return errNotHalf
	}
	return nil
}

func (noRows) seal() error                                                    { return nil }
func (noRows) cellRows() int64                                                { return 0 }
func (noRows) load(context.Context, int64, int64, int, int) ([][]byte, error) { return nil, nil }
func (noRows) close()                                                         {}

// memoryRows keeps all rows in memory, tile by tile.
type memoryRows struct {
	n, interval int64
	rowBytes    int64
	values      *mem.Array[byte]
}

func newMemoryRows(b *mem.Budget, n, interval int64, panels int, rowBytes int64) (*memoryRows, error) {
	values, err := mem.Alloc[byte](b, n*int64(panels)*rowBytes, "features")
	return &memoryRows{n, interval, rowBytes, values}, err
}

func (m *memoryRows) put(node uint32, values []float32, _ []byte) error {
	at := int64(node) * m.rowBytes
	for ; len(values) > 0; values = values[shards.TileColumns:] {
		if !shards.EncodeTile(m.values.S[at:], values[:shards.TileColumns], isHalf(m.rowBytes)) {
			return errNotHalf
		}
		at += m.n * m.rowBytes
	}
	return nil
}

// isHalf reports whether tile rows of this size hold float16 values.
func isHalf(rowBytes int64) bool { return rowBytes == int64(shards.TileRowBytes(true)) }

func (m *memoryRows) seal() error { return nil }

func (m *memoryRows) cellRows() int64 { return m.interval }

func (m *memoryRows) close() { m.values.Free() }

func (m *memoryRows) load(_ context.Context, lo, hi int64, first, last int) ([][]byte, error) {
	tiles := make([][]byte, 0, tileGroup)
	for g := int64(first); g < int64(last); g++ {
		tiles = append(tiles, m.values.S[(g*m.n+lo)*m.rowBytes:(g*m.n+hi)*m.rowBytes])
	}
	return tiles, nil
}
