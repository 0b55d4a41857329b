package shards

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"testing"

	"ndls/internal/inputid"
	"ndls/internal/seal"
	"ndls/internal/storage"
)

// TestJoinedNodes makes node tables of parts: the bytes are those of one writer.
func TestJoinedNodes(t *testing.T) {
	long := IDs{Type: inputid.String, Longest: 1000}
	for _, c := range []struct {
		name     string
		ids      IDs
		directed bool
		n        int64
		cuts     []int64 // in row groups
	}{
		{"no rows", IDs{}, false, 0, []int64{0}},
		{"one row", IDs{}, false, 1, []int64{0}},
		{"one part", IDs{}, false, 2*tableGroupRows + 5, []int64{0}},
		{"parts", IDs{}, false, 4*tableGroupRows + 5, []int64{0, 1, 3, 4}},
		{"whole row groups", IDs{}, true, 2 * tableGroupRows, []int64{0, 1}},
		{"ids that are numbered", IDs{Type: inputid.Uint64, Longest: 8}, false, 2*tableGroupRows + 1, []int64{0, 2}},
		{"ids that are text", long, false, 3*long.GroupRows() + 7, []int64{0, 1, 3}},
	} {
		t.Run(c.name, func(t *testing.T) {
			fill := func(first int64, b NodeBatch) error {
				if err := fillNodes(first, b); err != nil {
					return err
				}
				for i := range b.Key {
					b.Key[i] = fmt.Appendf(nil, "%08d", first+int64(i))
				}
				for i := range b.OutDegree {
					b.OutDegree[i] = uint32(first) + uint32(i)*7
				}
				return nil
			}
			var want bytes.Buffer
			write := WriteNodes
			if c.directed {
				write = WriteDirectedNodes
			}
			if err := write(&want, c.n, c.ids, 2, fill); err != nil {
				t.Fatal(err)
			}
			var parts []NodePart
			for i, cut := range c.cuts {
				lo, hi := cut*c.ids.GroupRows(), c.n
				if i+1 < len(c.cuts) {
					hi = c.cuts[i+1] * c.ids.GroupRows()
				}
				var part bytes.Buffer
				if err := WriteNodePart(&part, lo, hi, c.ids, c.directed, 2, fill); err != nil {
					t.Fatal(err)
				}
				rows, reader := lo, storage.NewBytesReader(part.Bytes())
				if err := ReadNodePart(reader, "part", lo, AllNodeColumns, Readers{}, func(first int64, b NodeBatch) error {
					if first != rows {
						t.Errorf("rows from %d, want %d", first, rows)
					}
					rows += int64(len(b.ID))
					return nil
				}); err != nil || rows != hi {
					t.Errorf("a part ends at %d, want %d: %v", rows, hi, err)
				}
				if err := ReadNodePart(reader, "part", lo+1, AllNodeColumns, Readers{}, func(int64, NodeBatch) error { return nil }); hi > lo && !errors.Is(err, seal.ErrCorrupt) {
					t.Errorf("a part is taken for another one: %v", err)
				}
				parts = append(parts, NodePart{"part", reader})
			}
			var got bytes.Buffer
			rows, err := JoinNodes(&got, c.ids, c.directed, 1+len(c.cuts)%2, func() (NodePart, error) {
				if len(parts) == 0 {
					return NodePart{}, io.EOF
				}
				p := parts[0]
				parts = parts[1:]
				return p, nil
			})
			if err != nil || rows != c.n {
				t.Fatalf("%d rows, want %d: %v", rows, c.n, err)
			}
			if !bytes.Equal(got.Bytes(), want.Bytes()) {
				t.Errorf("%d bytes of parts, %d of one writer, and they differ", got.Len(), want.Len())
			}
		})
	}
}

// TestDamagedPart: no byte of a part may change unnoticed.
func TestDamagedPart(t *testing.T) {
	var part bytes.Buffer
	if err := WriteNodePart(&part, 0, 1000, IDs{}, false, 1, fillNodes); err != nil {
		t.Fatal(err)
	}
	join := func(text []byte, directed bool) error {
		given := false
		_, err := JoinNodes(io.Discard, IDs{}, directed, 2, func() (NodePart, error) {
			if given {
				return NodePart{}, io.EOF
			}
			given = true
			return NodePart{"part", storage.NewBytesReader(text)}, nil
		})
		return err
	}
	for at := 0; at < part.Len(); at += 13 {
		text := bytes.Clone(part.Bytes())
		text[at] ^= 4
		if err := join(text, false); !errors.Is(err, seal.ErrCorrupt) {
			t.Fatalf("byte %d of %d: %v", at, part.Len(), err)
		}
	}
	if err := join(part.Bytes(), true); !errors.Is(err, seal.ErrCorrupt) {
		t.Errorf("a part of other columns: %v", err)
	}
	mine := errors.New("mine")
	if _, err := JoinNodes(io.Discard, IDs{}, false, 2, func() (NodePart, error) { return NodePart{}, mine }); !errors.Is(err, mine) {
		t.Errorf("an error of the caller: %v", err)
	}
}
