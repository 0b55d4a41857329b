package packed

import (
	"encoding/binary"
	"errors"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

type weightedEdge struct {
	edge
	weight float32
}

// packWeighted encodes edges with weights, by an Encoder or a BlockEncoder, and returns the
// frames end to end.
func packWeighted(t interface{ Fatal(...any) }, edges []weightedEdge, block bool) (out []byte) {
	emit := func(said Frame, data []byte) error {
		if len(data)%Align != 0 || len(data) > FrameBytes || len(said.Weights) != WeightBytes*int(said.Edges) {
			t.Fatal("a frame of", len(data), "bytes with", len(said.Weights), "bytes of weights for", said.Edges, "edges")
		}
		out = append(out, data...)
		return nil
	}
	var err error
	if block {
		e := NewWeightedBlockEncoder(emit)
		var src, dst []uint32
		var weights []float32
		for _, x := range edges {
			src, dst, weights = append(src, x.src), append(dst, x.row), append(weights, x.weight)
		}
		err = errors.Join(e.AddWeighted(src, dst, weights), e.Flush())
	} else {
		e := NewWeightedEncoder(emit)
		for _, x := range edges {
			err = errors.Join(err, e.AddWeighted(x.src, x.row, x.weight))
		}
		err = errors.Join(err, e.Flush())
	}
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// weightedOf are the edges of a frame with their weights.
func weightedOf(f Frame) (edges []weightedEdge) {
	at := 0
	f.Visit(func(src, row uint32) {
		edges = append(edges, weightedEdge{edge{src, row}, f.Weight(at)})
		at++
	})
	return edges
}

// TestWeights: edges and weights come back, from narrow and wide words, with skips, over
// several frames, and cut at any source.
func TestWeights(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		steps := rapid.SliceOfN(rapid.OneOf(
			rapid.Uint32Range(0, 3), rapid.Uint32Range(narrowEscape-2, narrowEscape+2), rapid.Uint32Range(wideEscape-2, wideEscape+2),
		), 1, 200).Draw(t, "steps")
		repeat := rapid.SampledFrom([]int{1, 1, 1, 300}).Draw(t, "repeat")
		var edges []weightedEdge
		src := uint32(0)
		for range repeat {
			for _, d := range steps {
				if src+d >= src {
					src += d
				}
				edges = append(edges, weightedEdge{edge{src, uint32(len(edges)) % StripRows}, float32(len(edges)) + 0.25})
			}
		}
		data := packWeighted(t, edges, false)
		if !slices.Equal(packWeighted(t, edges, true), data) {
			t.Fatal("the encoder of a block gives other frames")
		}
		lo, hi := rapid.Uint32Range(0, src+1).Draw(t, "lo"), rapid.Uint32Range(0, src+1).Draw(t, "hi")
		if rapid.Bool().Draw(t, "cut in the first frame") && len(edges) > 1 {
			lo, hi = edges[len(edges)/2].src, src+1
		}
		var got, cut, wantCut []weightedEdge
		for _, e := range edges {
			if lo <= e.src && e.src < hi {
				wantCut = append(wantCut, e)
			}
		}
		for len(data) > 0 {
			f, n, err := Decode(data)
			if err == nil {
				err = f.Check(1<<32-1, StripRows)
			}
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, weightedOf(f)...)
			if part, ok := f.Trim(lo, hi); ok {
				if len(part.Weights) != WeightBytes*int(part.Edges) {
					t.Fatalf("%d bytes of weights for %d edges", len(part.Weights), part.Edges)
				}
				cut = append(cut, weightedOf(part)...)
			}
			data = data[n:]
		}
		if !slices.Equal(got, edges) || !slices.Equal(cut, wantCut) {
			t.Fatal("other edges came back")
		}
	})
}

// TestWeightedFramesAreFull packs more edges with weights than fit one frame.
func TestWeightedFramesAreFull(t *testing.T) {
	edges := make([]weightedEdge, FrameWords)
	for i := range edges {
		edges[i] = weightedEdge{edge{uint32(i), uint32(i) % StripRows}, float32(i) + 0.25}
	}
	var got []weightedEdge
	for data, first := packWeighted(t, edges, false), true; len(data) > 0; first = false {
		f, n, err := Decode(data)
		if err != nil {
			t.Fatal(err)
		}
		if most := Narrow * FrameWords / (Narrow + WeightBytes); first && int(f.Edges) != most {
			t.Errorf("a frame of %d edges, %d fit", f.Edges, most)
		}
		got, data = append(got, weightedOf(f)...), data[n:]
	}
	if !slices.Equal(got, edges) {
		t.Error("other edges came back")
	}
}

// TestBadWeights: weights that no edge can have, and damage to them, are found.
func TestBadWeights(t *testing.T) {
	edges := []weightedEdge{{edge{1, 3}, 2}, {edge{5, 2}, 0.5}, {edge{900, 1}, 3}}
	for _, w := range []float32{0, -1, float32(math.NaN()), float32(math.Inf(1))} {
		bad := slices.Clone(edges)
		bad[1].weight = w
		f, _, err := Decode(packWeighted(t, bad, false))
		if err != nil {
			t.Fatal(err)
		}
		if err := f.Check(1000, 10); !errors.Is(err, ErrFrame) {
			t.Errorf("weight %v: %v", w, err)
		}
	}
	good := packWeighted(t, edges, false)
	f, _, err := Decode(good)
	if err != nil || f.Check(1000, 10) != nil {
		t.Fatal(err)
	}
	for bit := range 8 * (HeaderBytes + f.bytes()) {
		data := slices.Clone(good)
		data[bit/8] ^= 1 << (bit % 8)
		if _, _, err := Decode(data); !errors.Is(err, ErrFrame) {
			t.Fatalf("bit %d of byte %d: %v", bit%8, bit/8, err)
		}
	}
	// Weights of another size, with the right checksum.
	data := slices.Clone(good)
	binary.LittleEndian.PutUint32(data[28:], 2)
	if _, _, err := Parse(data); !errors.Is(err, ErrFrame) {
		t.Error(err)
	}
}
