package partition

import (
	"context"
	"errors"
	"sync/atomic"

	"ndls/internal/mem"
	"ndls/shards"
)

// rowStore takes rows in any order and returns tiles.
type rowStore interface {
	// put stores the values of some nodes in all tiles, row after row, or returns errNotHalf. No node comes twice. Several threads may call
	// it, each with its own memory for an encoded row.
	put(nodes []uint32, values []float32, encoded []byte) error
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

// noRows is a store that keeps nothing; exact says that values must be exactly float16.
type noRows struct{ exact bool }

func (r noRows) put(nodes []uint32, values []float32, encoded []byte) error {
	for i := range nodes {
		if !shards.EncodeTile(encoded, rowOf(values, i, nodes), r.exact) {
			return errNotHalf
		}
	}
	return nil
}

// rowOf returns the values of one of some nodes.
func rowOf(values []float32, i int, nodes []uint32) []float32 {
	width := len(values) / len(nodes)
	return values[i*width:][:width]
}

func (noRows) seal() error                                                    { return nil }
func (noRows) cellRows() int64                                                { return 0 }
func (noRows) load(context.Context, int64, int64, int, int) ([][]byte, error) { return nil, nil }
func (noRows) close()                                                         {}

// memoryRows keeps all rows in memory, tile by tile.
type memoryRows struct {
	n, interval int64
	rowBytes    int64
	words       *mem.Array[uint32]
	values      []byte // the same
}

func newMemoryRows(b *mem.Budget, n, interval int64, panels int, rowBytes int64) (*memoryRows, error) {
	words, err := mem.Alloc[uint32](b, n*int64(panels)*rowBytes/4, "features")
	if err != nil {
		return nil, err
	}
	return &memoryRows{n, interval, rowBytes, words, mem.AsBytes(words.S)}, nil
}

func (m *memoryRows) put(nodes []uint32, values []float32, _ []byte) error {
	for i, node := range nodes {
		if i%fetchedRows == 0 {
			m.fetch(nodes[i:min(i+fetchedRows, len(nodes))], len(values)/len(nodes)/shards.TileColumns)
		}
		at := int64(node) * m.rowBytes
		for row := rowOf(values, i, nodes); len(row) > 0; row = row[shards.TileColumns:] {
			if !shards.EncodeTile(m.values[at:], row[:shards.TileColumns], isHalf(m.rowBytes)) {
				return errNotHalf
			}
			at += m.n * m.rowBytes
		}
	}
	return nil
}

// fetchedRows is the number of nodes whose places in memory are fetched at the same time, and not one after the other.
const fetchedRows = 8

// fetch loads the places of nodes into the cache. The compiler keeps atomic loads.
func (m *memoryRows) fetch(nodes []uint32, tiles int) {
	for _, node := range nodes {
		at := int64(node) * m.rowBytes / 4
		for range tiles {
			atomic.LoadUint32(&m.words.S[at])
			at += m.n * m.rowBytes / 4
		}
	}
}

// isHalf reports whether tile rows of this size hold float16 values.
func isHalf(rowBytes int64) bool { return rowBytes == int64(shards.TileRowBytes(true)) }

func (m *memoryRows) seal() error { return nil }

func (m *memoryRows) cellRows() int64 { return m.interval }

func (m *memoryRows) close() { m.words.Free() }

func (m *memoryRows) load(_ context.Context, lo, hi int64, first, last int) ([][]byte, error) {
	tiles := make([][]byte, 0, tileGroup)
	for g := int64(first); g < int64(last); g++ {
		tiles = append(tiles, m.values[(g*m.n+lo)*m.rowBytes:(g*m.n+hi)*m.rowBytes])
	}
	return tiles, nil
}
