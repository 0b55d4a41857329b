package shards

import (
	"encoding/binary"
	"math"
	"slices"
	"testing"

	"ndls/internal/half"
	"ndls/internal/mem"
)

// TestHalfTiles holds every finite float16, and what lies beside it.
func TestHalfTiles(t *testing.T) {
	for h := range 1 << 16 {
		want := half.Float(uint16(h))
		if want-want != 0 {
			continue
		}
		var stored [2]byte
		if !EncodeTile(stored[:], []float32{want}, true) {
			t.Fatalf("%v is no float16", want)
		}
		if got := binary.LittleEndian.Uint16(stored[:]); got != uint16(h) {
			t.Fatalf("%v is stored as %#x, not %#x", want, got, h)
		}
		var got [1]float32
		if DecodeTile(got[:], stored[:], true); math.Float32bits(got[0]) != math.Float32bits(want) {
			t.Fatalf("%v is read as %v", want, got)
		}
		for _, other := range []float32{math.Nextafter32(want, 1e30), math.Nextafter32(want, -1e30)} {
			if EncodeTile(stored[:], []float32{other}, true) {
				t.Fatalf("%v is stored as a float16", other)
			}
		}
	}
}

// TestHalvesInRows encodes every finite float16 in a row of its neighbours, and with one that
// is none.
func TestHalvesInRows(t *testing.T) {
	const width = 16
	for first := 0; first < 1<<16; first += width {
		var row, got [width]float32
		for i := range row {
			row[i] = half.Float(uint16(first + i))
		}
		if row[0]-row[0] != 0 {
			continue
		}
		var stored [2 * width]byte
		if !EncodeTile(stored[:], row[:], true) {
			t.Fatalf("%v are no float16", row)
		}
		if DecodeTile(got[:], stored[:], true); !slices.Equal(mem.AsBytes(got[:]), mem.AsBytes(row[:])) {
			t.Fatalf("%v is read as %v", row, got)
		}
		row[first/width%width] = math.Nextafter32(row[0], 1e30)
		if EncodeTile(stored[:], row[:], true) {
			t.Fatalf("%v are stored as float16", row)
		}
	}
}

func TestNoHalf(t *testing.T) {
	for _, x := range []float32{0.1, 65505, 65536, 1e30, 0x1p-25, math.SmallestNonzeroFloat32, float32(math.NaN())} {
		if EncodeTile(make([]byte, 4), []float32{1, x}, true) {
			t.Errorf("%v is stored as a float16", x)
		}
	}
}

// TestHalfRows encodes rows of every length with all kinds of float16, and refuses one
// other value wherever it is.
func TestHalfRows(t *testing.T) {
	kinds := []float32{1, -1, 0, float32(math.Copysign(0, -1)), 65504, -65504, 0x1p-14, 0x1p-15, 0x1p-24, -0x1p-24, 0.5, 1.0009765625}
	for n := range 19 {
		for first := range kinds {
			row := make([]float32, n)
			for i := range row {
				row[i] = kinds[(first+i*(first+1))%len(kinds)]
			}
			stored, got := make([]byte, 2*n), make([]float32, n)
			if !EncodeTile(stored, row, true) {
				t.Fatalf("%v is no float16", row)
			}
			DecodeTile(got, stored, true)
			for i := range row {
				if math.Float32bits(got[i]) != math.Float32bits(row[i]) {
					t.Fatalf("%v is read as %v", row, got)
				}
			}
			for i, x := range row {
				for _, other := range []float32{0.1, 65536, 0x1p-25, float32(math.NaN()), float32(math.Inf(1))} {
					row[i] = other
					if encoded := EncodeTile(stored, row, true); encoded != math.IsInf(float64(other), 1) {
						t.Fatalf("value %d of %v: encoded %v", i, row, encoded)
					}
				}
				row[i] = x
			}
		}
	}
}

func TestFloatTiles(t *testing.T) {
	values := []float32{0, float32(math.Copysign(0, -1)), 0.1, math.MaxFloat32, math.SmallestNonzeroFloat32}
	stored, got := make([]byte, 4*len(values)), make([]float32, len(values))
	if !EncodeTile(stored, values, false) || binary.LittleEndian.Uint32(stored[8:]) != math.Float32bits(0.1) {
		t.Errorf("stored as % x", stored)
	}
	if DecodeTile(got, stored, false); !slices.Equal(got, values) || !math.Signbit(float64(got[1])) {
		t.Errorf("%v, want %v", got, values)
	}
}

// TestTilePath holds names that other programs use.
func TestTilePath(t *testing.T) {
	for half, want := range map[bool]string{false: "graph/features/tile-00001-00002.f32", true: "graph/features/tile-00001-00002.f16"} {
		if got := TilePath("graph/features", 1, 2, half); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}
