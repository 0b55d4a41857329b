package packed

import (
	"bytes"
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

type edge struct{ src, row uint32 }

// pack encodes edges of strip 0 and returns the frames end to end.
func pack(t interface{ Fatal(...any) }, edges []edge) []byte {
	var out []byte
	e := NewEncoder(func(_ Frame, f []byte) error {
		if len(f)%Align != 0 || len(f) > FrameBytes {
			t.Fatal("a frame of", len(f), "bytes")
		}
		out = append(out, f...)
		return nil
	})
	for _, x := range edges {
		if err := e.Add(x.src, x.row); err != nil {
			t.Fatal(err)
		}
	}
	if err := e.Flush(); err != nil {
		t.Fatal(err)
	}
	return out
}

func unpack(t interface{ Fatal(...any) }, buf []byte) (edges []edge, frames int) {
	for len(buf) > 0 {
		f, n, err := Decode(buf)
		if err != nil {
			t.Fatal(err)
		}
		if err := f.Check(1<<32-1, StripRows); err != nil {
			t.Fatal(err)
		}
		before := len(edges)
		f.Visit(func(src, row uint32) { edges = append(edges, edge{src, row}) })
		if len(edges)-before != int(f.Edges) {
			t.Fatal("a frame visits", len(edges)-before, "edges of", f.Edges)
		}
		buf = buf[n:]
		frames++
	}
	return edges, frames
}

func TestRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		steps := rapid.SliceOfN(rapid.OneOf(
			rapid.Uint32Range(0, 3), rapid.Uint32Range(narrowEscape-2, narrowEscape+2), rapid.Uint32Range(wideEscape-2, wideEscape+2),
			rapid.Uint32Range(0, 1<<22), rapid.SampledFrom(large),
		), 1, 600).Draw(t, "steps")
		var edges []edge
		src := uint32(0)
		for _, d := range steps {
			if src+d < src { // ids end
				d = 0
			}
			src += d
			edges = append(edges, edge{src, rapid.Uint32Range(0, StripRows-1).Draw(t, "row")})
		}
		got, _ := unpack(t, pack(t, edges))
		if !slices.Equal(got, edges) {
			t.Fatal("other edges came back")
		}
	})
}

// large are differences that need as many skips as a word can count, one more, and two
// words of them.
var large = []uint32{
	rowMask * narrowEscape, rowMask*narrowEscape + narrowEscape - 1, (rowMask + 1) * narrowEscape, 2 * rowMask * narrowEscape,
	rowMask * wideEscape, (rowMask + 1) * wideEscape,
}

// TestFramesAreFull packs more than fits one frame, with a large difference at each
// place around the end of a frame, and through an encoder of a block as well.
func TestFramesAreFull(t *testing.T) {
	for _, leap := range append(slices.Clone(large[:5]), narrowEscape-1, narrowEscape+10) {
		for shift := range 5 {
			var edges []edge
			for i := range FrameWords + 5000 {
				src := uint32(i)
				if i >= FrameWords-shift {
					src += leap
				}
				edges = append(edges, edge{src, uint32(i) & rowMask})
			}
			data := pack(t, edges)
			got, frames := unpack(t, data)
			if frames != 2 || !slices.Equal(got, edges) {
				t.Fatalf("leap %d, shift %d: %d frames, equal %v", leap, shift, frames, slices.Equal(got, edges))
			}
			if !bytes.Equal(packBlock(t, edges), data) {
				t.Fatalf("leap %d, shift %d: the encoder of a block gives other frames", leap, shift)
			}
		}
	}
}

// packBlock is pack with a BlockEncoder.
func packBlock(t *testing.T, edges []edge) (out []byte) {
	e := NewBlockEncoder(func(_ Frame, f []byte) error {
		out = append(out, f...)
		return nil
	})
	var src, dst []uint32
	for _, x := range edges {
		src, dst = append(src, x.src), append(dst, x.row)
	}
	if err := e.Add(src, dst); err != nil {
		t.Fatal(err)
	}
	if err := e.Flush(); err != nil {
		t.Fatal(err)
	}
	return out
}

// TestWidth compares the size of frames with what either width takes.
func TestWidth(t *testing.T) {
	for _, tc := range []struct{ step, width, size int }{
		{0, Narrow, 3}, {narrowEscape - 1, Narrow, 3}, {narrowEscape, Wide, 4}, {wideEscape - 1, Wide, 4}, {wideEscape, Narrow, 6},
	} {
		var edges []edge
		for i := range uint32(30000) {
			edges = append(edges, edge{i * uint32(tc.step), i & rowMask})
		}
		data := pack(t, edges)
		got, frames := unpack(t, data)
		f, n, err := Decode(data)
		if err != nil || frames != 1 || n != len(data) || !slices.Equal(got, edges) {
			t.Fatalf("step %d: %d frames, %v", tc.step, frames, err)
		}
		// The first edge takes a word.
		if want := len(edges)*tc.size - tc.size + f.Width; f.Width != tc.width || len(f.Words) != want {
			t.Errorf("step %d: %d bytes in words of %d, not %d in words of %d", tc.step, len(f.Words), f.Width, want, tc.width)
		}
	}
	// Every third edge needs a skip: both widths take as much. One more and wide words win.
	for more := range 2 {
		edges := []edge{}
		src := uint32(0)
		for i := range 3000 {
			if i%3 == 2 || i == 1 && more == 1 {
				src += narrowEscape
			}
			edges = append(edges, edge{src, 1})
		}
		f, _, err := Decode(pack(t, edges))
		if err != nil || f.Width != Narrow+more {
			t.Errorf("%d skips: words of %d bytes, %v", 1000+more, f.Width, err)
		}
	}
}

func TestOrderIsChecked(t *testing.T) {
	e := NewEncoder(func(Frame, []byte) error { return nil })
	if err := e.Add(5, 1); err != nil {
		t.Fatal(err)
	}
	if e.Add(4, 1) == nil {
		t.Error("a descending source was accepted")
	}
	if e.Add(6, StripRows) == nil {
		t.Error("another strip was accepted without Flush")
	}
	if err := e.Flush(); err != nil {
		t.Fatal(err)
	}
	if e.Add(4, 1) == nil {
		t.Error("a source before the frame's was accepted in the next frame")
	}
	if err := e.Add(3, StripRows); err != nil {
		t.Error("another strip:", err)
	}
}

// TestEncoderStatesTheFrame compares what an encoder says of a frame with what
// is decoded.
func TestEncoderStatesTheFrame(t *testing.T) {
	frames := 0
	e := NewEncoder(func(said Frame, data []byte) error {
		got, n, err := Decode(data)
		if err != nil || n != len(data) || !reflect.DeepEqual(got, said) {
			t.Errorf("%v: %+v, not %+v", err, got, said)
		}
		frames++
		return nil
	})
	for i := range uint32(3) {
		for src := range uint32(FrameWords - 1) {
			if err := e.Add(7+2*src, i<<StripShift|src%9); err != nil {
				t.Fatal(err)
			}
		}
		if err := e.Flush(); err != nil {
			t.Fatal(err)
		}
	}
	if frames != 3 {
		t.Errorf("%d frames", frames)
	}
}

// TestTrim cuts random frames at random sources and compares with a filter over
// all edges.
func TestTrim(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var edges []edge
		src := uint32(0)
		for _, d := range rapid.SliceOfN(rapid.SampledFrom([]uint32{0, 0, 0, 1, 2, 5, narrowEscape - 1, narrowEscape, 3 * narrowEscape, wideEscape, 3 * wideEscape}), 1, 60).Draw(t, "steps") {
			src += d
			edges = append(edges, edge{src, uint32(len(edges))})
		}
		f, _, err := Decode(pack(t, edges))
		if err != nil {
			t.Fatal(err)
		}
		bound := rapid.OneOf(rapid.Uint32Range(0, src+2), rapid.Custom(func(t *rapid.T) uint32 {
			return rapid.SampledFrom(edges).Draw(t, "edge").src
		}))
		lo, hi := bound.Draw(t, "lo"), bound.Draw(t, "hi")
		var want, got []edge
		for _, e := range edges {
			if e.src >= lo && e.src < hi {
				want = append(want, e)
			}
		}
		cut, ok := f.Trim(lo, hi)
		if ok != (len(want) > 0) {
			t.Fatalf("any left: %v, of %d", ok, len(want))
		}
		if !ok {
			return
		}
		cut.Visit(func(src, row uint32) { got = append(got, edge{src, row}) })
		if !slices.Equal(got, want) || int(cut.Edges) != len(want) || cut.Last != want[len(want)-1].src {
			t.Fatalf("%+v holds %v, not %v", cut, got, want)
		}
		if err := cut.Check(int64(src)+1, StripRows); err != nil {
			t.Fatal(err)
		}
		if again, ok := cut.Trim(lo, hi); !ok || !bytes.Equal(again.Words, cut.Words) || again.Src != cut.Src {
			t.Fatalf("a second cut gives %+v, %v", again, ok)
		}
	})
}

// TestDamage flips every bit of the header and the words of small frames, and cuts them
// short: each is refused.
func TestDamage(t *testing.T) {
	for name, edges := range map[string][]edge{
		"narrow": {{0, 3}, {1, 3}, {2, 5}, {900000, 4}, {900000, 5}, {900001, 0}},
		"wide":   {{0, 3}, {1000, 3}, {900000, 4}, {902000, 5}, {904001, 0}},
	} {
		good := pack(t, edges)
		f, _, err := Decode(good)
		if err != nil || (f.Width == Wide) != (name == "wide") {
			t.Fatalf("%s: words of %d bytes, %v", name, f.Width, err)
		}
		for bit := range 8 * (HeaderBytes + len(f.Words)) {
			buf := bytes.Clone(good)
			buf[bit/8] ^= 1 << (bit % 8)
			if _, _, err := Decode(buf); !errors.Is(err, ErrFrame) {
				t.Errorf("%s, bit %d: %v", name, bit, err)
			}
		}
		for cut := range len(good) {
			if _, _, err := Decode(good[:cut]); !errors.Is(err, ErrFrame) {
				t.Errorf("%s, %d bytes: %v", name, cut, err)
			}
		}
	}
}

func TestCheckRefusesWhatLeavesTheGraph(t *testing.T) {
	f, _, err := Decode(pack(t, []edge{{7, 3}, {500007, 9}}))
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Check(500008, 10); err != nil {
		t.Error(err)
	}
	if f.Check(500007, 10) == nil || f.Check(500008, 9) == nil {
		t.Error("an edge outside the graph was accepted")
	}
	f.Edges++
	if f.Check(500008, 10) == nil {
		t.Error("a wrong count was accepted")
	}
	// Without its last word the frame ends in a skip.
	f.Edges, f.Last, f.Words = 1, 7, f.Words[:len(f.Words)-f.Width]
	if err := f.Check(500008, 10); err == nil || !strings.Contains(err.Error(), "last word") {
		t.Errorf("a frame that ends in a skip: %v", err)
	}
}

// FuzzParse gives damaged frames to the parser. Those that pass the check have no edge
// outside of the graph, and every part of them is a frame that passes, too.
func FuzzParse(f *testing.F) {
	f.Add(pack(f, []edge{{1, 2}, {500000, 3}}))
	f.Add(pack(f, []edge{{1, 2}, {1000, 3}, {2000, 3}, {3000, 4}}))
	f.Add(make([]byte, Align))
	f.Fuzz(func(t *testing.T, b []byte) {
		fr, n, err := Parse(b)
		if err != nil {
			if !errors.Is(err, ErrFrame) {
				t.Fatal(err)
			}
			return
		}
		if n <= 0 || n > len(b) {
			t.Fatalf("a frame of %d bytes in %d", n, len(b))
		}
		if fr.Check(1000000, 100) != nil {
			return
		}
		edges := uint32(0)
		fr.Visit(func(src, row uint32) {
			if src >= 1000000 || row >= 100 {
				t.Fatalf("edge %d → %d passed the check", src, row)
			}
			edges++
		})
		if edges != fr.Edges {
			t.Fatalf("%d edges of %d", edges, fr.Edges)
		}
		for _, at := range []uint32{fr.Src, fr.Src/2 + fr.Last/2, fr.Last} {
			for _, part := range [][2]uint32{{0, at}, {at, 1000000}} {
				if cut, ok := fr.Trim(part[0], part[1]); ok {
					if err := cut.Check(1000000, 100); err != nil {
						t.Fatalf("sources %d to %d: %v", part[0], part[1], err)
					}
				}
			}
		}
	})
}
