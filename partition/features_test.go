package partition

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"ndls/internal/extsort"
	"ndls/internal/rng"
	"ndls/shards"
)

// tilesOf reads every tile of a store, interval after interval.
func tilesOf(t rapid.TB, s rowStore, n, interval int64, panels int) [][]byte {
	t.Helper()
	var all [][]byte
	for lo := int64(0); lo < n; lo += interval {
		end := min(lo+interval, n)
		for first := 0; first < panels; first += tileGroup {
			last := min(first+tileGroup, panels)
			tiles := make([][]byte, last-first)
			for at := lo; at < end; at += s.cellRows() {
				cell, err := s.load(context.Background(), at, min(at+s.cellRows(), end), first, last)
				must(t, err)
				for i := range tiles {
					tiles[i] = append(tiles[i], cell[i]...)
				}
			}
			all = append(all, tiles...)
		}
	}
	return all
}

// TestRowStores puts the same rows into memory and into cells.
func TestRowStores(t *testing.T) {
	dir := scratchFolder(t)
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.Int64Range(1, 3000).Draw(t, "nodes")
		interval := rapid.Int64Range(n/5+1, n+100).Draw(t, "interval")
		panels := rapid.IntRange(1, 10).Draw(t, "panels")
		free := rapid.Int64Range(128<<10, 1<<20).Draw(t, "free")
		rowBytes := rapid.SampledFrom([]int64{32, 64}).Draw(t, "bytes")
		scratch, err := extsort.NewScratch(dir)
		must(t, err)
		defer func() { must(t, scratch.Remove()) }()

		b := budget(t, free)
		spilled, err := newSpilledRows(b, free, 2, scratch, n, interval, panels, rowBytes == 32)
		must(t, err)
		inMemory, err := newMemoryRows(budget(t, 4<<20), n, interval, panels, rowBytes)
		must(t, err)
		defer inMemory.close()
		// Values that are float16 exactly.
		value := func(node, column int) float32 { return float32(rng.Hash(uint64(node), uint64(column)) % 2048) }
		values, encoded := make([]float32, panels*shards.TileColumns), make([]byte, panels*int(rowBytes))
		for _, node := range rng.New(uint64(n)).Perm(int(n)) {
			for c := range values {
				values[c] = value(node, c)
			}
			must(t, errors.Join(spilled.put([]uint32{uint32(node)}, values, encoded), inMemory.put([]uint32{uint32(node)}, values, nil)))
		}
		must(t, errors.Join(spilled.seal(), inMemory.seal()))
		got, want := tilesOf(t, spilled, n, interval, panels), tilesOf(t, inMemory, n, interval, panels)
		if !slices.EqualFunc(got, want, bytes.Equal) {
			t.Fatal("the cells hold other values")
		}
		var first [1]float32
		shards.DecodeTile(first[:], want[panels-1], rowBytes == 32)
		if last := value(0, (panels-1)*shards.TileColumns); first[0] != last {
			t.Fatalf("the last tile starts with %v, not %v", first[0], last)
		}
		if rowBytes == 32 {
			values[0] = 0.1
			if err := errors.Join(spilled.put([]uint32{0}, values, encoded), inMemory.put([]uint32{0}, values, nil)); !errors.Is(err, errNotHalf) {
				t.Fatalf("0.1 is stored as float16: %v", err)
			}
		}
		spilled.close()
		if b.Free() != free {
			t.Fatalf("%d bytes not given back", free-b.Free())
		}
	})
}

func TestNormalizeL1(t *testing.T) {
	for _, c := range []struct {
		name      string
		row, want []float32
	}{
		{"zeros stay", []float32{0, 0}, []float32{0, 0}},
		{"signs stay", []float32{1, -3}, []float32{0.25, -0.75}},
		{"sum past float32", []float32{3e38, 3e38}, []float32{0.5, 0.5}},
		{"denormal", []float32{1e-45, 0}, []float32{1, 0}},
	} {
		if NormalizeRow(c.row); !slices.Equal(c.row, c.want) {
			t.Errorf("%s: %v, want %v", c.name, c.row, c.want)
		}
	}
}
