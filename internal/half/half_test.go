package half

import (
	"encoding/binary"
	"math"
	"testing"

	"pgregory.net/rapid"

	"ndls/internal/mem"
)

// TestRounding checks every float16 and random float32 against the definition.
func TestRounding(t *testing.T) {
	for h := range 1 << 16 {
		f := Float(uint16(h))
		back := FromFloat(f)
		if f != f {
			if g := Float(back); g == g {
				t.Fatalf("%#04x: not a number becomes %v", h, g)
			}
			continue
		}
		if back != uint16(h) {
			t.Fatalf("%#04x is %v, which becomes %#04x", h, f, back)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		f := math.Float32frombits(rapid.Uint32().Draw(t, "bits"))
		if f != f {
			return
		}
		h := FromFloat(f)
		got := float64(Float(h))
		if math.Abs(float64(f)) >= 65520 {
			if !math.IsInf(got, int(math.Copysign(1, float64(f)))) {
				t.Fatalf("%v becomes %v, want infinity", f, got)
			}
			return
		}
		// No neighbour is nearer, and at equal distance the last bit is even.
		err := math.Abs(got - float64(f))
		for _, near := range []uint16{h - 1, h + 1} {
			n := float64(Float(near))
			if math.IsNaN(n) || math.Signbit(n) != math.Signbit(got) {
				continue
			}
			if d := math.Abs(n - float64(f)); d < err || d == err && h&1 == 1 {
				t.Fatalf("%v becomes %v, %v is nearer", f, got, n)
			}
		}
	})
}

// TestManyAgree converts rows of values of all kinds and lengths like one value after the other.
func TestManyAgree(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(0, 70).Draw(t, "values")
		exactly := rapid.Bool().Draw(t, "of float16")
		values, want := make([]float32, n), true
		for i := range values {
			values[i] = math.Float32frombits(rapid.Uint32().Draw(t, "bits"))
			if exactly {
				values[i] = Float(uint16(rapid.Uint32().Draw(t, "bits")))
			}
			want = want && Float(FromFloat(values[i])) == values[i]
		}
		encoded := make([]byte, 2*n)
		if exact := Encode(encoded, values); exact != want {
			t.Fatalf("%v: exact %v, want %v", values, exact, want)
		}
		// The values are decoded in other memory, and where they end with the memory of what they become.
		apart, over := make([]float32, n), make([]float32, n)
		Decode(apart, encoded)
		bytes := mem.AsBytes(over)
		copy(bytes[2*n:], encoded)
		Decode(over, bytes[2*n:])
		for i, v := range values {
			h := binary.LittleEndian.Uint16(encoded[2*i:])
			if h != FromFloat(v) {
				t.Fatalf("value %d of %v becomes %#04x, not %#04x", i, values, h, FromFloat(v))
			}
			for _, got := range []float32{apart[i], over[i]} {
				if math.Float32bits(got) != math.Float32bits(Float(h)) {
					t.Fatalf("value %d is read as %v, not %v", i, got, Float(h))
				}
			}
		}
	})
}
