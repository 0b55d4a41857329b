package shards

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"testing"

	"ndls/internal/mem"
	"ndls/internal/packed"
	"ndls/internal/storage"
)

// hopEdges draws sorted edges into rows [lo, hi) of n nodes.
func hopEdges(seed uint64, n, lo, hi, count int) (src, dst []uint32) {
	rng := rand.New(rand.NewPCG(seed, 1))
	keys := make([]uint64, count)
	for i := range keys {
		d, s := uint64(lo+rng.IntN(hi-lo)), uint64(rng.IntN(n))
		keys[i] = d>>20<<52 | s<<20 | d&(packed.BlockRows-1)
	}
	slices.Sort(keys)
	keys = slices.Compact(keys)
	for _, k := range keys {
		src = append(src, uint32(k>>20))
		dst = append(dst, uint32(k>>52<<20|k&(packed.BlockRows-1)))
	}
	return src, dst
}

func hopFile(t testing.TB, m EdgeMeta, src, dst []uint32) []byte {
	t.Helper()
	var buf bytes.Buffer
	w, err := NewHopWriter(&buf, m)
	if err != nil {
		t.Fatal(err)
	}
	for len(dst) > 0 {
		n := min(1000, len(dst))
		if err := w.Write(src[:n], dst[:n]); err != nil {
			t.Fatal(err)
		}
		src, dst = src[n:], dst[n:]
	}
	if _, err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return buf.Bytes()
}

// commitHops stores a graph of three intervals, the last one short, and returns
// its edges.
func commitHops(t testing.TB, store storage.Store, n int) (c *Catalog, src, dst []uint32) {
	t.Helper()
	ctx := context.Background()
	c, err := OpenCatalog(ctx, store)
	if err != nil {
		t.Fatal(err)
	}
	const interval = 2 * packed.BlockRows
	for i := 0; i*interval < n; i++ {
		m := EdgeMeta{Interval: i, Lo: int64(i * interval), Hi: int64(min((i+1)*interval, n)), NumNodes: int64(n), BlockRows: packed.BlockRows}
		s, d := hopEdges(uint64(i), n, int(m.Lo), int(m.Hi), 400000)
		f, err := c.Create(ctx, KindHops, fmt.Sprintf("graph/hops/part-%05d.hops", i), int32(i), NotApplicable)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.Write(hopFile(t, m, s, d)); err != nil {
			t.Fatal(err)
		}
		f.Rows = int64(len(d))
		if err := c.Commit(ctx, f); err != nil {
			t.Fatal(err)
		}
		src, dst = append(src, s...), append(dst, d...)
	}
	return c, src, dst
}

func readAll(s *HopStream) (src, dst []uint32, err error) {
	for b := range s.Blocks() {
		f, err := s.Open(b)
		if err != nil {
			return nil, nil, err
		}
		for {
			fr, err := f.Next()
			if err == io.EOF {
				break
			}
			if err != nil {
				return nil, nil, errors.Join(err, f.Close())
			}
			fr.Visit(func(s, row uint32) {
				src = append(src, s)
				dst = append(dst, uint32(b)<<packed.BlockShift|row)
			})
		}
		if err := f.Close(); err != nil {
			return nil, nil, err
		}
	}
	return src, dst, nil
}

func TestHopStreamRoundTrip(t *testing.T) {
	local, err := storage.NewLocal(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for name, store := range map[string]storage.Store{"local": local, "mem": storage.NewMem()} {
		t.Run(name, func(t *testing.T) {
			c, src, dst := commitHops(t, store, 5*packed.BlockRows+7)
			s, err := OpenHopStream(context.Background(), c)
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			if s.Blocks() != 6 || s.NumEdges() != int64(len(dst)) {
				t.Fatalf("%d blocks, %d edges", s.Blocks(), s.NumEdges())
			}
			b, err := mem.NewBudget(256 << 20)
			if err != nil {
				t.Fatal(err)
			}
			for pass := range 3 {
				if pass == 2 {
					if err := s.Load(b); err != nil {
						t.Fatal(err)
					}
				}
				gotSrc, gotDst, err := readAll(s)
				if err != nil {
					t.Fatal(err)
				}
				if !slices.Equal(gotSrc, src) || !slices.Equal(gotDst, dst) {
					t.Fatalf("pass %d: other edges", pass)
				}
			}
		})
	}
}

// TestHopStreamReadsStopEarly closes readers in the middle and cancels.
func TestHopStreamReadsStopEarly(t *testing.T) {
	c, _, _ := commitHops(t, storage.NewMem(), packed.BlockRows)
	ctx, cancel := context.WithCancel(context.Background())
	s, err := OpenHopStream(ctx, c)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	f, err := s.Open(0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Next(); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	cancel()
	if _, _, err := readAll(s); !errors.Is(err, context.Canceled) {
		t.Errorf("a cancelled read gave %v", err)
	}
}

func TestHopWriterRefuses(t *testing.T) {
	m := EdgeMeta{Lo: 0, Hi: 2 * packed.BlockRows, NumNodes: 2 * packed.BlockRows, BlockRows: packed.BlockRows}
	for name, edges := range map[string][][2]uint32{
		"another interval":   {{0, 2 * packed.BlockRows}},
		"a block again":      {{0, packed.BlockRows}, {0, 3}},
		"descending sources": {{5, 1}, {4, 1}},
	} {
		w, err := NewHopWriter(io.Discard, m)
		if err != nil {
			t.Fatal(err)
		}
		err = nil
		for _, e := range edges {
			err = errors.Join(err, w.Write([]uint32{e[0]}, []uint32{e[1]}))
		}
		if err == nil {
			t.Errorf("%s was accepted", name)
		}
	}
	if _, err := NewHopWriter(io.Discard, EdgeMeta{Lo: 5, Hi: 6, NumNodes: 6, BlockRows: packed.BlockRows}); err == nil {
		t.Error("an interval that cuts a block was accepted")
	}
}

// TestHopStreamDamage cuts a file at many places and flips bytes: it is refused
// by name, or gives the same edges.
func TestHopStreamDamage(t *testing.T) {
	n := 2*packed.BlockRows + 5
	m := EdgeMeta{Hi: int64(n), NumNodes: int64(n), BlockRows: packed.BlockRows}
	src, dst := hopEdges(1, n, 0, n, 3000)
	good := hopFile(t, m, src, dst)
	try := func(what string, data []byte) {
		h, err := OpenHops(storage.NewBytesReader(data), "part.hops")
		if err == nil {
			s := &HopStream{ctx: context.Background(), files: []*HopFile{h}, first: []int{0, len(h.blocks)}, nodes: int64(n)}
			var gs, gd []uint32
			if gs, gd, err = readAll(s); err == nil && (!slices.Equal(gs, src) || !slices.Equal(gd, dst)) {
				t.Errorf("%s: other edges without an error", what)
			}
		}
		if err != nil && !errors.Is(err, ErrCorrupt) && !errors.Is(err, ErrVersion) {
			t.Errorf("%s: %v", what, err)
		}
	}
	for cut := 0; cut < len(good); cut += 509 {
		try(fmt.Sprint("cut to ", cut), good[:cut])
	}
	for at := 0; at < len(good); at += 61 {
		bad := bytes.Clone(good)
		bad[at] ^= 0x41
		try(fmt.Sprint("byte ", at), bad)
	}
}

func FuzzOpenHops(f *testing.F) {
	n := packed.BlockRows + 5
	m := EdgeMeta{Hi: int64(n), NumNodes: int64(n), BlockRows: packed.BlockRows}
	src, dst := hopEdges(1, n, 0, n, 50)
	f.Add(hopFile(f, m, src, dst))
	f.Fuzz(func(t *testing.T, data []byte) {
		h, err := OpenHops(storage.NewBytesReader(data), "fuzz.hops")
		if err != nil {
			return
		}
		s := &HopStream{ctx: context.Background(), files: []*HopFile{h}, first: []int{0, len(h.blocks)}, nodes: h.meta.NumNodes}
		_, _, _ = readAll(s)
	})
}
