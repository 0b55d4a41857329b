package shards

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"ndls/catalog"
	"ndls/internal/mem"
	"ndls/internal/packed"
	"ndls/internal/seal"
	"ndls/internal/storage"
	"ndls/internal/storage/storagetest"
	"ndls/internal/testkit"
)

// hopEdges draws sorted edges into rows [lo, hi) of n nodes.
func hopEdges(seed uint64, n, lo, hi, count int) (src, dst []uint32) {
	rng := rand.New(rand.NewPCG(seed, 1))
	keys := make([]uint64, count)
	for i := range keys {
		d, s := uint64(lo+rng.IntN(hi-lo)), uint64(rng.IntN(n))
		keys[i] = d>>packed.BlockShift<<(32+packed.BlockShift) | s<<packed.BlockShift | d&(packed.BlockRows-1)
	}
	slices.Sort(keys)
	keys = slices.Compact(keys)
	for _, k := range keys {
		src = append(src, uint32(k>>packed.BlockShift))
		dst = append(dst, uint32(k>>(32+packed.BlockShift)<<packed.BlockShift|k&(packed.BlockRows-1)))
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
		if err := w.Write(src[:n], dst[:n], nil); err != nil {
			t.Fatal(err)
		}
		src, dst = src[n:], dst[n:]
	}
	if _, err := w.Close(""); err != nil {
		t.Fatal(err)
	}
	return buf.Bytes()
}

// commitHops stores a graph of three intervals, the last one short, and returns
// its edges.
func commitHops(t testing.TB, store storage.Store, n int) (c *catalog.Catalog, src, dst []uint32) {
	t.Helper()
	ctx := context.Background()
	c, err := catalog.Open(ctx, store)
	if err != nil {
		t.Fatal(err)
	}
	const interval = 2 * packed.BlockRows
	for i := 0; i*interval < n; i++ {
		m := EdgeMeta{Interval: i, Lo: int64(i * interval), Hi: int64(min((i+1)*interval, n)), NumNodes: int64(n), BlockRows: packed.BlockRows}
		s, d := hopEdges(uint64(i), n, int(m.Lo), int(m.Hi), 400000)
		f, err := c.Create(ctx, catalog.Describe(catalog.KindHops, fmt.Sprintf("graph/hops/part-%05d.hops", i)).In(i))
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

// byStrip sorts edges the way a stream gives them.
func byStrip(src, dst []uint32) {
	keys := make([]uint64, len(src))
	for i, d := range dst {
		keys[i] = uint64(d)>>packed.StripShift<<47 | uint64(src[i])<<packed.StripShift | uint64(d)%packed.StripRows
	}
	slices.Sort(keys)
	for i, k := range keys {
		src[i] = uint32(k >> packed.StripShift)
		dst[i] = uint32(k>>47<<packed.StripShift | k%packed.StripRows)
	}
}

// readWindow reads the edges whose source is in [lo, hi) and compares their
// number with what the stream says.
func readWindow(ctx context.Context, s *HopStream, lo, hi uint32) (src, dst []uint32, err error) {
	for strip := range s.Strips() {
		before := len(src)
		f, err := s.Open(ctx, strip, lo, hi)
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
				dst = append(dst, uint32(strip)<<packed.StripShift|row)
			})
		}
		if err := f.Close(); err != nil {
			return nil, nil, err
		}
		if n := int64(len(src) - before); lo == 0 && int64(hi) == s.NumNodes() && n != s.Edges(strip) {
			return nil, nil, fmt.Errorf("strip %d gives %d edges of %d: %w", strip, n, s.Edges(strip), seal.ErrCorrupt)
		}
	}
	return src, dst, nil
}

func readAll(ctx context.Context, s *HopStream) (src, dst []uint32, err error) {
	return readWindow(ctx, s, 0, uint32(s.NumNodes()))
}

func TestHopStreamRoundTrip(t *testing.T) {
	testkit.NotUnderRace(t, "TestReaders and TestHopStreamWindows start the same goroutines")
	local, err := storage.NewLocal(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for name, store := range map[string]storage.Store{"local": local, "mem": storagetest.NewMem()} {
		t.Run(name, func(t *testing.T) {
			c, src, dst := commitHops(t, store, 5*packed.BlockRows+7)
			byStrip(src, dst)
			s, err := OpenHopStream(context.Background(), c)
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			if s.Strips() != 5*packed.BlockStrips+1 || s.NumEdges() != int64(len(dst)) {
				t.Fatalf("%d strips, %d edges", s.Strips(), s.NumEdges())
			}
			b, err := mem.NewBudget(256 << 20)
			if err != nil {
				t.Fatal(err)
			}
			some, err := OpenHopStream(context.Background(), c)
			if err != nil {
				t.Fatal(err)
			}
			defer some.Close()
			// Rows of two files, those of other strips stay on disk.
			lo, hi := int64(2*packed.BlockRows-packed.BlockRows/2), int64(2*packed.BlockRows+packed.BlockRows/2)
			free := b.Free()
			if err := some.LoadRows(t.Context(), b, lo, hi, 2); err != nil {
				t.Fatal(err)
			}
			if taken, all := free-b.Free(), some.Bytes(); taken != some.RowsBytes(lo, hi) || taken < all/10 || taken > all/3 || !some.Resident() {
				t.Errorf("rows [%d, %d) take %d bytes of %d", lo, hi, taken, all)
			}
			for pass := range 4 {
				switch pass {
				case 2:
					s, some = some, s
				case 3:
					s, some = some, s
					if err := s.Load(t.Context(), b, 2); err != nil {
						t.Fatal(err)
					}
				}
				gotSrc, gotDst, err := readAll(t.Context(), s)
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

// denseHops is a stream in memory of two strips with many full frames each, and
// its edges.
func denseHops(t testing.TB) (s *HopStream, src, dst []uint32) {
	t.Helper()
	const n = packed.StripRows + 1000
	src, dst = hopEdges(3, n, 0, n, 1200000)
	h, err := OpenHops(storagetest.NewBytesReader(hopFile(t, EdgeMeta{Hi: n, NumNodes: n, BlockRows: packed.BlockRows}, src, dst)), "dense.hops")
	if err != nil {
		t.Fatal(err)
	}
	if s, err = NewHopStream(h); err != nil {
		t.Fatal(err)
	}
	byStrip(src, dst)
	return s, src, dst
}

// TestHopStreamWindows reads the edges of ranges of sources, which begin and end
// anywhere in frames, from disk and from memory.
func TestHopStreamWindows(t *testing.T) {
	s, src, dst := denseHops(t)
	defer s.Close()
	if frames := len(s.files[0].frames); frames < 14 {
		t.Fatalf("only %d frames", frames)
	}
	b, err := mem.NewBudget(256 << 20)
	if err != nil {
		t.Fatal(err)
	}
	n := uint32(s.NumNodes())
	for pass := range 2 {
		for _, w := range [][2]uint32{{0, n}, {0, 1}, {0, n / 2}, {n / 2, n}, {n / 3, n/3 + 1}, {5, 5}, {100, 20000}, {n - 1, n}} {
			var wantSrc, wantDst []uint32
			for i, u := range src {
				if u >= w[0] && u < w[1] {
					wantSrc, wantDst = append(wantSrc, u), append(wantDst, dst[i])
				}
			}
			gotSrc, gotDst, err := readWindow(t.Context(), s, w[0], w[1])
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(gotSrc, wantSrc) || !slices.Equal(gotDst, wantDst) {
				t.Errorf("pass %d, sources %v: %d edges, not %d", pass, w, len(gotSrc), len(wantSrc))
			}
		}
		if pass == 0 {
			if err := s.Load(t.Context(), b, 2); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// failing gives an error from an offset on.
type failing struct {
	io.ReaderAt
	from int64
}

var errRead = errors.New("the disk is gone")

func (f failing) ReadAt(p []byte, off int64) (int, error) {
	if off >= f.from {
		return 0, errRead
	}
	return f.ReaderAt.ReadAt(p, off)
}

// TestHopStreamReadError fails one read after the other: the pass gets the error,
// again if it asks again, and the reads ahead of it end.
func TestHopStreamReadError(t *testing.T) {
	s, _, _ := denseHops(t)
	defer s.Close()
	h := s.files[0]
	whole := h.r
	for _, f := range h.frames {
		h.r = failing{whole, int64(f.page) * packed.Align}
		if _, _, err := readAll(t.Context(), s); !errors.Is(err, errRead) {
			t.Fatalf("a read that fails at page %d gives %v", f.page, err)
		}
	}
	h.r = failing{whole, 0}
	f, err := s.Open(t.Context(), 0, 0, uint32(s.NumNodes()))
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, err := f.Next(); !errors.Is(err, errRead) {
			t.Errorf("got %v", err)
		}
	}
	if err := f.Close(); err != nil {
		t.Error(err)
	}
}

// TestHopBytesDependOnTheEdgesAlone divides the same edges differently among
// calls.
func TestHopBytesDependOnTheEdgesAlone(t *testing.T) {
	n := packed.BlockRows + 50000
	m := EdgeMeta{Hi: int64(n), NumNodes: int64(n), BlockRows: packed.BlockRows}
	src, dst := hopEdges(2, n, 0, n, 300000)
	want := hopFile(t, m, src, dst)
	var buf bytes.Buffer
	w, err := NewHopWriter(&buf, m)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Write(src, dst, nil); err != nil {
		t.Fatal(err)
	}
	if edges, err := w.Close(""); err != nil || edges != int64(len(src)) {
		t.Fatalf("%d edges, %v", edges, err)
	}
	if !bytes.Equal(buf.Bytes(), want) {
		t.Error("other bytes")
	}
}

// TestFilterHops keeps some rows, with any number of threads, in memory and on
// disk, and filters what was filtered again.
func TestFilterHops(t *testing.T) {
	ctx := context.Background()
	s, src, dst := denseHops(t)
	defer s.Close()
	dir := t.TempDir()
	for name, keep := range map[string]func(int64) bool{
		"all": func(int64) bool { return true }, "none": func(int64) bool { return false },
		"a third":      func(d int64) bool { return d%3 == 1 },
		"second strip": func(d int64) bool { return d >= packed.StripRows },
	} {
		if testing.Short() && name != "a third" {
			continue
		}
		for _, c := range []struct {
			budget  int64
			threads int
		}{{mem.MinBudget, 1}, {mem.MinBudget, 3}, {256 << 20, 2}} {
			b, err := mem.NewBudget(c.budget)
			if err != nil {
				t.Fatal(err)
			}
			// Of the smallest budget nothing is left.
			if c.budget == mem.MinBudget {
				if err := b.Reserve(b.Free(), "everything"); err != nil {
					t.Fatal(err)
				}
			}
			first, err := FilterHops(ctx, s, keep, nil, dir, b, b.Free()/4, c.threads)
			if err != nil {
				t.Fatal(err)
			}
			odd := func(d int64) bool { return d%2 == 1 && keep(d) }
			second, err := FilterHops(ctx, first, odd, nil, dir, b, b.Free()/4, c.threads)
			if err != nil {
				t.Fatal(err)
			}
			for f, keep := range map[*HopStream]func(int64) bool{first: keep, second: odd} {
				var wantSrc, wantDst []uint32
				for i, d := range dst {
					if keep(int64(d)) {
						wantSrc, wantDst = append(wantSrc, src[i]), append(wantDst, d)
					}
				}
				gotSrc, gotDst, err := readAll(t.Context(), f)
				if err != nil {
					t.Fatal(err)
				}
				if !slices.Equal(gotSrc, wantSrc) || !slices.Equal(gotDst, wantDst) || f.NumEdges() != int64(len(wantDst)) {
					t.Errorf("%s, %+v: %d edges, not %d", name, c, len(gotDst), len(wantDst))
				}
				if want := c.budget > mem.MinBudget; f.Resident() != want {
					t.Errorf("%s, %+v: %d bytes in memory: %v", name, c, f.Bytes(), !want)
				}
			}
			second.Close()
			first.Close()
			if c.budget > mem.MinBudget && b.Free() != b.Limit() {
				t.Errorf("%s: %d bytes are still charged", name, b.Limit()-b.Free())
			}
		}
	}
}

// TestFilterHopsFails passes on the errors of its source and of the disk.
func TestFilterHopsFails(t *testing.T) {
	s, _, _ := denseHops(t)
	defer s.Close()
	b, err := mem.NewBudget(mem.MinBudget)
	if err != nil {
		t.Fatal(err)
	}
	all := func(int64) bool { return true }
	if _, err := FilterHops(context.Background(), s, all, nil, t.TempDir()+"/none", b, 0, 2); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a missing folder gives %v", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := FilterHops(ctx, s, all, nil, t.TempDir(), b, 0, 2); !errors.Is(err, context.Canceled) {
		t.Errorf("a source that fails gives %v", err)
	}
}

// TestHopStreamReadsStopEarly closes readers in the middle and cancels.
func TestHopStreamReadsStopEarly(t *testing.T) {
	c, _, _ := commitHops(t, storagetest.NewMem(), packed.BlockRows)
	ctx, cancel := context.WithCancel(t.Context())
	s, err := OpenHopStream(ctx, c)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	f, err := s.Open(t.Context(), 0, 0, uint32(s.NumNodes()))
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
	if _, _, err := readAll(ctx, s); !errors.Is(err, context.Canceled) {
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
			err = errors.Join(err, w.Write([]uint32{e[0]}, []uint32{e[1]}, nil))
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
	byStrip(src, dst)
	try := func(what string, data []byte) {
		h, err := OpenHops(storagetest.NewBytesReader(data), "part.hops")
		if err == nil {
			var s *HopStream
			if s, err = NewHopStream(h); err == nil {
				var gs, gd []uint32
				if gs, gd, err = readAll(t.Context(), s); err == nil && (!slices.Equal(gs, src) || !slices.Equal(gd, dst)) {
					t.Errorf("%s: other edges without an error", what)
				}
			}
		}
		if err != nil && !errors.Is(err, seal.ErrCorrupt) && !errors.Is(err, seal.ErrVersion) {
			t.Errorf("%s: %v", what, err)
		}
	}
	for cut := 0; cut < len(good); cut += 5009 {
		try(fmt.Sprint("cut to ", cut), good[:cut])
	}
	h, err := OpenHops(storagetest.NewBytesReader(good), "part.hops")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := OpenHops(storagetest.NewBytesReader(slices.Concat(good[:h.Bytes()], make([]byte, packed.Align), good[h.Bytes():])), "part.hops"); !errors.Is(err, seal.ErrCorrupt) {
		t.Errorf("a page that belongs to no frame: %v", err)
	}
	h.meta.NumNodes = 10 // of which the sources are not
	for range 2 {
		frames := h.open(t.Context(), 0, 0, uint32(n))
		if _, err := frames.Next(); !errors.Is(err, seal.ErrCorrupt) {
			t.Errorf("a frame with sources outside of the graph: %v", err)
		}
		if err := frames.Close(); err != nil {
			t.Error(err)
		}
	}
	for at := 0; at < len(good); at += step(at, len(good)) {
		bad := bytes.Clone(good)
		bad[at] ^= 0x41
		try(fmt.Sprint("byte ", at), bad)
	}
}

// TestFilterHopsKeepsWeights: each edge that is kept has its own weight.
func TestFilterHopsKeepsWeights(t *testing.T) {
	n := packed.StripRows + 100
	m := EdgeMeta{Hi: int64(n), NumNodes: int64(n), BlockRows: packed.BlockRows, Weighted: true}
	src, dst := hopEdges(1, n, 0, n, 3000)
	weight := func(src, dst uint32) float32 { return 1 + float32((31*src+dst)%1000) }
	keep := func(d int64) bool { return d%3 == 1 }
	weights, kept := make([]float32, len(src)), 0
	for i := range src {
		weights[i] = weight(src[i], dst[i])
		if keep(int64(dst[i])) {
			kept++
		}
	}
	var file bytes.Buffer
	w, err := NewHopWriter(&file, m)
	if err == nil {
		err = w.Write(src, dst, weights)
	}
	if err == nil {
		_, err = w.Close("")
	}
	if err != nil {
		t.Fatal(err)
	}
	h, err := OpenHops(storagetest.NewBytesReader(file.Bytes()), "part.hops")
	if err != nil {
		t.Fatal(err)
	}
	s, err := NewHopStream(h)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	b, err := mem.NewBudget(256 << 20)
	if err != nil {
		t.Fatal(err)
	}
	some, err := FilterHops(t.Context(), s, keep, nil, t.TempDir(), b, b.Free()/4, 2)
	if err != nil {
		t.Fatal(err)
	}
	defer some.Close()
	for strip := range some.Strips() {
		frames, err := some.Open(t.Context(), strip, 0, uint32(n))
		if err != nil {
			t.Fatal(err)
		}
		for f, err := frames.Next(); err != io.EOF; f, err = frames.Next() {
			if err != nil {
				t.Fatal(err)
			}
			at := 0
			f.Visit(func(src, row uint32) {
				if dst := uint32(strip*packed.StripRows) + row; f.Weight(at) != weight(src, dst) {
					t.Errorf("edge %d → %d has weight %v", src, dst, f.Weight(at))
				}
				at++
			})
			kept -= at
		}
		if err := frames.Close(); err != nil {
			t.Error(err)
		}
	}
	if kept != 0 {
		t.Errorf("%d edges are missing", kept)
	}
}

// step is small where a file of mostly padding has something to damage: in the
// first frame and in the footer.
func step(at, size int) int {
	if at < packed.Align || at > size-2*packed.Align {
		return 31
	}
	return 4099
}

func FuzzOpenHops(f *testing.F) {
	n := packed.BlockRows + 5
	m := EdgeMeta{Hi: int64(n), NumNodes: int64(n), BlockRows: packed.BlockRows}
	src, dst := hopEdges(1, n, 0, n, 50)
	f.Add(hopFile(f, m, src, dst))
	f.Fuzz(func(t *testing.T, data []byte) {
		h, err := OpenHops(storagetest.NewBytesReader(data), "fuzz.hops")
		if err != nil {
			return
		}
		if s, err := NewHopStream(h); err == nil {
			_, _, _ = readAll(t.Context(), s)
		}
	})
}

// TestOtherHopStreams refuses files of another version: they are made again.
func TestOtherHopStreams(t *testing.T) {
	n := packed.BlockRows
	src, dst := hopEdges(2, n, 0, n, 1000)
	file := hopFile(t, EdgeMeta{Hi: int64(n), NumNodes: int64(n), BlockRows: packed.BlockRows}, src, dst)
	for _, version := range []uint32{3, 99} {
		binary.LittleEndian.PutUint32(file[len(file)-hopTrailer:][8:], version)
		if _, err := OpenHops(storagetest.NewBytesReader(file), "old.hops"); !errors.Is(err, seal.ErrVersion) || !strings.Contains(err.Error(), "old.hops") {
			t.Errorf("version %d opened: %v", version, err)
		}
		if _, err := ReadHopShard(storagetest.NewBytesReader(file), "old.hops"); !errors.Is(err, seal.ErrVersion) {
			t.Errorf("shard of version %d: %v", version, err)
		}
	}
}
