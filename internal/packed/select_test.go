package packed

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// TestSelect: Into and From visit the edges that Visit does, those of some rows and those from
// some sources.
func TestSelect(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var edges []edge
		src := uint32(0)
		for _, d := range rapid.SliceOfN(rapid.SampledFrom([]uint32{0, 0, 0, 1, 2, 5, narrowEscape - 1, narrowEscape, 3 * narrowEscape, wideEscape, 3 * wideEscape}), 1, 60).Draw(t, "steps") {
			src += d
			edges = append(edges, edge{src, rapid.Uint32Range(0, StripRows-1).Draw(t, "row")})
		}
		f, _, err := Decode(pack(t, edges))
		if err != nil {
			t.Fatal(err)
		}
		var marked [StripRows]bool
		bits := make([]uint32, src/32+1)
		for _, e := range edges {
			if rapid.Bool().Draw(t, "row is marked") {
				marked[e.row] = true
			}
			if rapid.Bool().Draw(t, "source is marked") {
				bits[e.src/32] |= 1 << (e.src % 32)
			}
		}
		var into, from, wantInto, wantFrom []edge
		f.Visit(func(src, row uint32) {
			if marked[row] {
				wantInto = append(wantInto, edge{src, row})
			}
			if bits[src/32]>>(src%32)&1 != 0 {
				wantFrom = append(wantFrom, edge{src, row})
			}
		})
		f.Into(&marked, func(src, row uint32) { into = append(into, edge{src, row}) })
		f.From(bits, func(src, row uint32) { from = append(from, edge{src, row}) })
		if !slices.Equal(into, wantInto) || !slices.Equal(from, wantFrom) {
			t.Errorf("into marked rows come %v, not %v; from marked sources %v, not %v", into, wantInto, from, wantFrom)
		}
	})
}
