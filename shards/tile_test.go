package shards

import (
	"encoding/binary"
	"math"
	"slices"
	"testing"

	"ndls/internal/half"
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

func TestNoHalf(t *testing.T) {
	for _, x := range []float32{0.1, 65505, 65536, 1e30, 0x1p-25, math.SmallestNonzeroFloat32, float32(math.NaN())} {
		if EncodeTile(make([]byte, 4), []float32{1, x}, true) {
			t.Errorf("%v is stored as a float16", x)
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
