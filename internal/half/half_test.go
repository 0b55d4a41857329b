package half

import (
	"math"
	"testing"

	"pgregory.net/rapid"
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
