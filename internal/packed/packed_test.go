package packed

import (
	"bytes"
	"errors"
	"reflect"
	"slices"
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
			rapid.Uint32Range(0, 3), rapid.Uint32Range(Escape-2, Escape+2), rapid.Uint32Range(0, 1<<22),
		), 1, 600).Draw(t, "steps")
		var edges []edge
		src := uint32(0)
		for _, d := range steps {
			src += d
			edges = append(edges, edge{src, rapid.Uint32Range(0, StripRows-1).Draw(t, "row")})
		}
		got, _ := unpack(t, pack(t, edges))
		if !slices.Equal(got, edges) {
			t.Fatal("other edges came back")
		}
	})
}

// TestFramesAreFull packs more than fits one frame, with an escape at each
// place around the end of a frame.
func TestFramesAreFull(t *testing.T) {
	for shift := range 4 {
		var edges []edge
		for i := range FrameWords + 5000 {
			src := uint32(i)
			if i >= FrameWords-2-shift {
				src += Escape + 10
			}
			edges = append(edges, edge{src, uint32(i) & rowMask})
		}
		got, frames := unpack(t, pack(t, edges))
		if frames != 2 || !slices.Equal(got, edges) {
			t.Fatalf("shift %d: %d frames, equal %v", shift, frames, slices.Equal(got, edges))
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
		for _, d := range rapid.SliceOfN(rapid.SampledFrom([]uint32{0, 1, 5, Escape - 1, Escape, 3 * Escape}), 1, 60).Draw(t, "steps") {
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
		if again, ok := cut.Trim(lo, hi); !ok || !slices.Equal(again.Words, cut.Words) || again.Src != cut.Src {
			t.Fatalf("a second cut gives %+v, %v", again, ok)
		}
	})
}

// TestDamage flips every bit of a small frame's first page and cuts it short:
// the frame is refused, or what comes back is unchanged.
func TestDamage(t *testing.T) {
	edges := []edge{{0, 3}, {1, 3}, {900000, 4}, {900000, 5}, {900001, 0}}
	good := pack(t, edges)
	for bit := range 8 * (HeaderBytes + 4*7) {
		buf := append(alignedCopy(good), 0)[:len(good)]
		buf[bit/8] ^= 1 << (bit % 8)
		f, _, err := Decode(buf)
		if err == nil {
			err = f.Check(1000000, 6)
		}
		if err == nil {
			var got []edge
			f.Visit(func(src, row uint32) { got = append(got, edge{src, row}) })
			if f.Strip == 0 && !slices.Equal(got, edges) && f.Src == 0 {
				t.Errorf("bit %d: other edges without an error", bit)
			}
		} else if !errors.Is(err, ErrFrame) {
			t.Errorf("bit %d: %v", bit, err)
		}
	}
	for cut := range 200 {
		if _, _, err := Decode(good[:cut]); !errors.Is(err, ErrFrame) {
			t.Errorf("%d bytes: %v", cut, err)
		}
	}
}

// alignedCopy clones b into memory that words may be read from.
func alignedCopy(b []byte) []byte { return bytes.Clone(b) }

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
}

func FuzzDecode(f *testing.F) {
	f.Add(pack(f, []edge{{1, 2}, {500000, 3}}))
	f.Add(make([]byte, Align))
	f.Fuzz(func(t *testing.T, b []byte) {
		fr, n, err := Decode(bytes.Clone(b))
		if err != nil {
			return
		}
		if n <= 0 || n > len(b) {
			t.Fatalf("a frame of %d bytes in %d", n, len(b))
		}
		if fr.Check(1000000, 100) == nil {
			fr.Visit(func(src, row uint32) {
				if src >= 1000000 || row >= 100 {
					t.Fatalf("edge %d → %d passed the check", src, row)
				}
			})
		}
	})
}
