package spmv

import (
	"bytes"
	"errors"
	"slices"
	"testing"

	"ndls/internal/direct"
	"ndls/internal/packed"
	"ndls/internal/testgraph"
)

// TestPanelsComeBack saves a block of three panels and loads some of them
// into blocks of other widths and places.
func TestPanelsComeBack(t *testing.T) {
	const n, off = packed.StripRows + 77, 3 * direct.Align
	for _, precision := range []Precision{Float32, Float16} {
		x := rows(n, 48, 5)
		for i := range x.S { // that float16 holds
			x.S[i] = float32(i%2039) - 1000
		}
		for at, from := range layouts(precision)[1:4] {
			f, err := direct.NewScratch(testgraph.Scratch(t))
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			a := block(t, goKernel, x, from, 3)
			if err := a.Save(f, off, 3); err != nil {
				t.Fatal(err)
			}
			for _, some := range [][2]int{{0, 1}, {2, 3}, {1, 3}} {
				to := layouts(precision)[3-at]
				b := block(t, goKernel, rows(n, 32, 6), to, 2)
				if err := b.Load(f, off+int64(some[0])*a.PanelBytes(), some[1]-some[0]); err != nil {
					t.Fatal(err)
				}
				want := make([]float32, n*32)
				for i := range n {
					copy(want[i*32:], x.S[i*48+some[0]*16:i*48+some[1]*16])
				}
				if !slices.Equal(contents(t, b), want) {
					t.Errorf("%s %s to %s, panels %v: other rows", precision, from.Residency, to.Residency, some)
				}
			}
		}
	}
}

// TestExportImport takes rows from one place to another as they are stored.
func TestExportImport(t *testing.T) {
	for _, precision := range []Precision{Float32, Float16} {
		x := rows(packed.StripRows+77, 16, 5)
		for _, from := range layouts(precision)[:3] {
			a := block(t, goKernel, x, from, 1)
			var raw bytes.Buffer
			next := int64(0)
			if err := a.Export(func(first int64, r Rows) error {
				if first != next {
					t.Errorf("row %d comes after row %d", first, next)
				}
				next += r.Len()
				all, _, _ := r.Bytes()
				raw.Write(all)
				return nil
			}); err != nil {
				t.Fatal(err)
			}
			for _, to := range layouts(precision)[:3] {
				b := block(t, goKernel, rows(packed.StripRows+77, 16, 6), to, 2)
				r := bytes.NewReader(raw.Bytes())
				if err := b.Import(func(_ int64, rows Rows) error {
					all, _, _ := rows.Bytes()
					_, err := r.Read(all)
					return err
				}); err != nil {
					t.Fatal(err)
				}
				if !slices.Equal(contents(t, b), contents(t, a)) {
					t.Errorf("%s: other rows came from %s to %s", precision, from.Residency, to.Residency)
				}
			}
		}
	}
	b := block(t, goKernel, rows(100, 16, 1), Layout{}, 1)
	broken := errors.New("broken")
	if err := b.Import(func(int64, Rows) error { return broken }); !errors.Is(err, broken) {
		t.Errorf("a broken source gives %v", err)
	}
}
