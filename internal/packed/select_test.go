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
		for _, e := range edges {
			if rapid.Bool().Draw(t, "row is marked") {
				marked[e.row] = true
			}
		}
		var into, want []edge
		f.Visit(func(src, row uint32) {
			if marked[row] {
				want = append(want, edge{src, row})
			}
		})
		f.Into(&marked, func(src, row uint32) { into = append(into, edge{src, row}) })
		if !slices.Equal(into, want) {
			t.Errorf("into marked rows come %v, not %v", into, want)
		}
	})
}
