package shards

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow/go/v14/arrow"
	"github.com/apache/arrow/go/v14/arrow/array"
	"github.com/apache/arrow/go/v14/arrow/ipc"

	"ndls/internal/inputid"
	"ndls/internal/storage"
	"ndls/internal/storage/storagetest"
)

// stored is bytes as a stored file.
func stored(t testing.TB, data []byte) storage.Reader {
	t.Helper()
	s := storagetest.NewMem()
	w, err := s.Create(context.Background(), "f")
	if err == nil {
		_, err = w.Write(data)
	}
	if err == nil {
		_, err = w.Commit(context.Background())
	}
	if err != nil {
		t.Fatal(err)
	}
	r, err := s.Open(context.Background(), "f")
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// namedGraph is a node table whose ids are numbered: keys by number, numbers by node.
type namedGraph struct {
	ids     IDs
	keys    [][]byte
	numbers []int64
	table   []byte
}

func newNamedGraph(t testing.TB, typ inputid.Type, n int, long bool) namedGraph {
	t.Helper()
	g := namedGraph{ids: IDs{Type: typ}}
	for i := range n {
		key := typ.AppendBits(nil, int64(i)*1_000_003-5)
		if typ == inputid.Uint64 {
			key = inputid.AppendUint(nil, uint64(i)*18_000_000_000_000)
		}
		if typ == inputid.String {
			key = fmt.Appendf(nil, "user/%07d", i)
			if long && i%1000 == 0 {
				key = append(key, strings.Repeat("x", inputid.MaxKey-len(key))...)
			}
			if i == 0 {
				key = nil
			}
		}
		g.keys = append(g.keys, key)
		g.ids.Longest = max(g.ids.Longest, len(key))
	}
	for _, number := range rand.New(rand.NewPCG(1, 2)).Perm(n) {
		g.numbers = append(g.numbers, int64(number))
	}
	var out bytes.Buffer
	if err := WriteNodes(&out, 0, int64(n), g.ids, 0, 2, func(first int64, b NodeBatch) error {
		for i := range b.ID {
			b.ID[i] = g.numbers[first+int64(i)]
			b.Key[i] = g.keys[b.ID[i]]
			b.Degree[i], b.Component[i], b.Label[i], b.Split[i] = uint32(i), 0, -1, uint8(i%4)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	g.table = out.Bytes()
	return g
}

func (g namedGraph) names(t testing.TB) *IDReader {
	t.Helper()
	names, err := OpenNodeIDs(stored(t, g.table), "nodes")
	if err != nil {
		t.Fatal(err)
	}
	return names
}

var namedTypes = []inputid.Type{inputid.Int64, inputid.Uint64, inputid.String}

// TestIDsComeBack writes and reads every table with ids of every type.
func TestIDsComeBack(t *testing.T) {
	for _, typ := range namedTypes {
		for _, n := range []int{0, 1, 3, 70_000} {
			t.Run(fmt.Sprintf("%s/%d", typ, n), func(t *testing.T) {
				g := newNamedGraph(t, typ, n, n == 70_000)
				var out bytes.Buffer
				rows, err := WriteIDs(&out, g.ids, func(put func([]byte) error) error {
					for _, key := range g.keys {
						if err := put(slices.Clone(key)); err != nil {
							return err
						}
					}
					return nil
				})
				if err != nil || rows != int64(n) {
					t.Fatal(rows, err)
				}
				table, err := OpenIDs(stored(t, out.Bytes()), "ids")
				if err != nil || table.IDs() != g.ids || table.Rows() != int64(n) {
					t.Fatal(table, err)
				}
				at := 0
				if err := table.Each(func(first int64, keys [][]byte) error {
					for i, key := range keys {
						if first != int64(at-i) || !bytes.Equal(key, g.keys[at]) {
							t.Fatalf("id %d is %q", at, key)
						}
						at++
					}
					return nil
				}); err != nil || at != n {
					t.Fatal(at, err)
				}
				at = 0
				if err := ReadNodes(stored(t, g.table), "nodes", Readers{}, func(first int64, b NodeBatch) error {
					for i, id := range b.ID {
						if id != g.numbers[at] || b.Split[i] != uint8(int(b.Degree[i])%4) || first != int64(at-i) {
							t.Fatalf("node %d has number %d", at, id)
						}
						at++
					}
					return nil
				}); err != nil || at != n {
					t.Fatal(at, err)
				}
				out.Reset()
				if err := WriteLSI(&out, int64(n), g.names(t), 2, func(first int64, b LSIBatch) error {
					copy(b.ID, g.numbers[first:])
					return nil
				}); err != nil {
					t.Fatal(err)
				}
				at = 0
				if err := ReadLSI(stored(t, out.Bytes()), "lsi", Readers{}, func(first int64, b LSIBatch) error {
					if !slices.Equal(b.ID, g.numbers[first:][:len(b.ID)]) {
						t.Fatalf("rows from %d on have other numbers", first)
					}
					at += len(b.ID)
					return nil
				}); err != nil || at != n {
					t.Fatal(at, err)
				}
			})
		}
	}
}

// checkFooter compares the record batches that the footer of an Arrow file states with the messages
// that are there. Other libraries refuse a file in which they differ.
func checkFooter(t *testing.T, data []byte, batches int) {
	t.Helper()
	u32 := func(b []byte, at uint32) uint32 { return binary.LittleEndian.Uint32(b[at:]) }
	end := len(data) - len("ARROW1") - 4
	b := data[end-int(u32(data, uint32(end))) : end]
	root := u32(b, 0)
	vector := root + uint32(binary.LittleEndian.Uint16(b[root-u32(b, root)+4+2*3:]))
	vector += u32(b, vector)
	if n := int(u32(b, vector)); n != batches {
		t.Fatalf("the footer states %d record batches, not %d", n, batches)
	}
	for i := range uint32(batches) {
		block := b[vector+4+24*i:]
		at, length := uint32(binary.LittleEndian.Uint64(block)), u32(block, 8)
		if u32(data, at) != 0xffffffff || u32(data, at+4)+8 != length {
			t.Errorf("batch %d: the footer states a message of %d bytes at %d, where one of %d begins", i, length, at, u32(data, at+4)+8)
		}
	}
}

// TestNamedRows writes rows of some nodes and reads them here and with the Arrow library.
func TestNamedRows(t *testing.T) {
	const n, width = 100_000, 3
	for _, typ := range namedTypes {
		for _, half := range []bool{false, true} {
			g := newNamedGraph(t, typ, n, false)
			var out bytes.Buffer
			names := g.names(t)
			w, err := NewRowWriter(&out, RowSchema{Column: "probability", Width: width, Label: true, Half: half}, names)
			if err != nil {
				t.Fatal(err)
			}
			var numbers []int64
			var labels []int32
			var values []float32
			for node := 5; node < n; node += 1 + node%3 {
				numbers, labels = append(numbers, g.numbers[node]), append(labels, int32(node))
				values = append(values, 1, float32(node%1000), 3)
			}
			for lo, step := 0, 40_001; lo < len(numbers); lo += step {
				hi := min(lo+step, len(numbers))
				if err := w.Write(numbers[lo:hi], labels[lo:hi], values[lo*width:hi*width]); err != nil {
					t.Fatal(err)
				}
			}
			if rows, err := w.Close(); err != nil || rows != int64(len(numbers)) {
				t.Fatal(rows, err)
			}
			f, err := OpenRows(stored(t, out.Bytes()), "rows")
			if err != nil {
				t.Fatal(err)
			}
			if f.Schema().ID != typ || !f.Schema().Label || f.NumBatches() < 2 {
				t.Fatalf("%+v in %d batches", f.Schema(), f.NumBatches())
			}
			at := 0
			var b RowBatch
			for i := range f.NumBatches() {
				if err := f.ReadBatch(i, &b); err != nil {
					t.Fatal(err)
				}
				if !slices.Equal(b.ID, numbers[at:][:len(b.ID)]) || !slices.Equal(b.Label, labels[at:][:len(b.ID)]) || !slices.Equal(b.Values, values[at*width:][:len(b.Values)]) {
					t.Fatalf("%s: batch %d has other rows", typ, i)
				}
				if err := f.ReadIDs(i, 2, b.ID[:3]); err != nil || !slices.Equal(b.ID[:3], numbers[at+2:][:3]) {
					t.Fatal(err)
				}
				at += len(b.ID)
			}
			if at != len(numbers) {
				t.Fatal(at)
			}
			checkFooter(t, out.Bytes(), f.NumBatches())
			r, err := ipc.NewFileReader(bytes.NewReader(out.Bytes()))
			if err != nil {
				t.Fatal(err)
			}
			at = 0
			for i := range r.NumRecords() {
				rec, err := r.Record(i)
				if err != nil {
					t.Fatal(err)
				}
				for k := range int(rec.NumRows()) {
					want := string(typ.AppendText(nil, g.keys[numbers[at]]))
					if got := rec.Column(0).ValueStr(k); got != want || rec.Column(1).(*array.Int64).Value(k) != numbers[at] {
						t.Fatalf("row %d is of %s, not %s", at, got, want)
					}
					at++
				}
			}
			if at != len(numbers) || r.Schema().Field(0).Type.ID() != map[inputid.Type]arrow.Type{inputid.Int64: arrow.INT64, inputid.Uint64: arrow.UINT64, inputid.String: arrow.STRING}[typ] {
				t.Fatal(at, r.Schema())
			}
			_ = r.Close()
			for _, off := range []int{100, len(out.Bytes()) / 2} { // in the first ids, and amid rows
				bad := slices.Clone(out.Bytes())
				bad[off] ^= 4
				if f, err := OpenRows(stored(t, bad), "rows"); err == nil {
					failed := false
					for i := range f.NumBatches() {
						failed = failed || f.ReadBatch(i, &b) != nil
					}
					if !failed {
						t.Errorf("%s: a flipped bit at %d is not found", typ, off)
					}
				}
			}
		}
	}
}

// TestIDReaderSkips finds nodes of the end of a table, and refuses what is not there.
func TestIDReaderSkips(t *testing.T) {
	g := newNamedGraph(t, inputid.String, 50_000, true) // row groups of few rows
	names := g.names(t)
	names.SkipTo(40_000)
	if names.group == 0 {
		t.Error("the reader did not skip row groups")
	}
	keys, err := names.Keys([]int64{g.numbers[40_000], g.numbers[49_999]})
	if err != nil || !bytes.Equal(keys[0], g.keys[g.numbers[40_000]]) || !bytes.Equal(keys[1], g.keys[g.numbers[49_999]]) {
		t.Fatalf("%q, %v", keys, err)
	}
	if _, err := names.Keys([]int64{g.numbers[7]}); err == nil {
		t.Error("a node before was found")
	}
}

// TestIDReaderPasses finds ids of the end of a table of ids, and does not read the row groups in front of them.
func TestIDReaderPasses(t *testing.T) {
	g := newNamedGraph(t, inputid.String, 50_000, true)
	var out bytes.Buffer
	if _, err := WriteIDs(&out, g.ids, func(put func(key []byte) error) error {
		for _, key := range g.keys {
			if err := put(key); err != nil {
				return err
			}
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	file := &countingReader{Reader: stored(t, out.Bytes())}
	table, err := OpenIDs(file, "ids")
	if err != nil {
		t.Fatal(err)
	}
	file.read = 0
	r := table
	for _, numbers := range [][]int64{{40_000, 40_001}, {49_999}} {
		keys, err := r.Keys(numbers)
		if err != nil {
			t.Fatal(err)
		}
		for i, number := range numbers {
			if !bytes.Equal(keys[i], g.keys[number]) {
				t.Errorf("id %d is %q, want %q", number, keys[i], g.keys[number])
			}
		}
	}
	if all := int64(out.Len()); file.read > all/2 {
		t.Errorf("%d bytes of %d were read for the last fifth", file.read, all)
	}
	if _, err := table.Keys([]int64{50_000}); err == nil {
		t.Error("an id behind the last one was found")
	}
}

// countingReader counts the bytes that are read.
type countingReader struct {
	storage.Reader
	read int64
}

func (c *countingReader) ReadAt(p []byte, off int64) (int, error) {
	n, err := c.Reader.ReadAt(p, off)
	c.read += int64(n)
	return n, err
}
