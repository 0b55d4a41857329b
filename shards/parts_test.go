package shards

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"testing"

	"ndls/internal/inputid"
	"ndls/internal/seal"
	"ndls/internal/storage/storagetest"
	"ndls/internal/testkit"
)

// TestJoinedNodes makes node tables of parts: the bytes equal those of one writer.
func TestJoinedNodes(t *testing.T) {
	testkit.NotUnderRace(t, "TestReaders and TestHopStreamWindows start the same goroutines")
	long := IDs{Type: inputid.String, Longest: 1000}
	for _, c := range []struct {
		name string
		ids  IDs
		more NodeColumns
		n    int64
		cuts []int64 // in row groups
	}{
		{"no rows", IDs{}, 0, 0, []int64{0}},
		{"one row", IDs{}, 0, 1, []int64{0}},
		{"one part", IDs{}, 0, 2*tableGroupRows + 5, []int64{0}},
		{"parts", IDs{}, 0, 4*tableGroupRows + 5, []int64{0, 1, 3, 4}},
		{"weights", IDs{}, NodeStrength, 2*tableGroupRows + 9, []int64{0, 1, 2}},
		{"whole row groups", IDs{}, NodeOutDegree, 2 * tableGroupRows, []int64{0, 1}},
		{"ids that are numbered", IDs{Type: inputid.Uint64, Longest: 8}, 0, 2*tableGroupRows + 1, []int64{0, 2}},
		{"ids that are text", long, 0, 3*long.GroupRows() + 7, []int64{0, 1, 3}},
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
				for i := range b.Strength {
					b.Strength[i] = float64(first+int64(i)) / 3
				}
				return nil
			}
			var want bytes.Buffer
			if err := WriteNodes(&want, 0, c.n, c.ids, c.more, 2, fill); err != nil {
				t.Fatal(err)
			}
			var parts []NodePart
			for i, cut := range c.cuts {
				lo, hi := cut*c.ids.GroupRows(), c.n
				if i+1 < len(c.cuts) {
					hi = c.cuts[i+1] * c.ids.GroupRows()
				}
				var part bytes.Buffer
				if err := WriteNodes(&part, lo, hi, c.ids, c.more, 2, fill); err != nil {
					t.Fatal(err)
				}
				rows, reader := lo, storagetest.NewBytesReader(part.Bytes())
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
			rows, err := JoinNodes(&got, c.ids, c.more, 1+len(c.cuts)%2, func() (NodePart, error) {
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
	if err := WriteNodes(&part, 0, 1000, IDs{}, 0, 1, fillNodes); err != nil {
		t.Fatal(err)
	}
	join := func(text []byte, more NodeColumns) error {
		given := false
		_, err := JoinNodes(io.Discard, IDs{}, more, 2, func() (NodePart, error) {
			if given {
				return NodePart{}, io.EOF
			}
			given = true
			return NodePart{"part", storagetest.NewBytesReader(text)}, nil
		})
		return err
	}
	for at := 0; at < part.Len(); at += 13 {
		text := bytes.Clone(part.Bytes())
		text[at] ^= 4
		if err := join(text, 0); !errors.Is(err, seal.ErrCorrupt) {
			t.Fatalf("byte %d of %d: %v", at, part.Len(), err)
		}
	}
	if err := join(part.Bytes(), NodeStrength); !errors.Is(err, seal.ErrCorrupt) {
		t.Errorf("a part of other columns: %v", err)
	}
	mine := errors.New("mine")
	if _, err := JoinNodes(io.Discard, IDs{}, 0, 2, func() (NodePart, error) { return NodePart{}, mine }); !errors.Is(err, mine) {
		t.Errorf("an error of the caller: %v", err)
	}
}
