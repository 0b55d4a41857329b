package hops

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"testing"

	"ndls/group"
	"ndls/internal/mem"
	"ndls/internal/packed"
	"ndls/spmv"
)

// TestStateInPortions writes and reads in portions that are not those of frames.
func TestStateInPortions(t *testing.T) {
	data := make([]byte, 3*frameBytes+77)
	for i := range data {
		data[i] = byte(i * 2654435761 >> 7)
	}
	for _, size := range []int{0, 1, frameBytes - 20, frameBytes, len(data)} {
		var raw bytes.Buffer
		w, err := NewStateWriter(&raw, "header")
		if err != nil {
			t.Fatal(err)
		}
		for at := 0; at < size; at += 100_003 {
			if err := w.Put(data[at:min(at+100_003, size)]); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		r, err := NewStateReader(&raw)
		if err != nil {
			t.Fatal(err)
		}
		var header string
		got := make([]byte, size)
		if err := errors.Join(r.Header(&header), r.Fill(got[:size/3]), r.Fill(got[size/3:]), r.End()); err != nil {
			t.Fatal(err)
		}
		if header != "header" || !bytes.Equal(got, data[:size]) {
			t.Errorf("%d bytes: others came back", size)
		}
		if err := r.Fill(make([]byte, 1)); !errors.Is(err, ErrState) {
			t.Errorf("behind the end: %v", err)
		}
	}
}

// TestReadErrors: an error of the source is told as it is.
func TestReadErrors(t *testing.T) {
	var raw bytes.Buffer
	w, err := NewStateWriter(&raw, 1)
	if err = errors.Join(err, w.Put(make([]byte, 100)), w.Close()); err != nil {
		t.Fatal(err)
	}
	cut := errors.New("connection lost")
	for n := range raw.Len() {
		r, err := NewStateReader(io.MultiReader(bytes.NewReader(raw.Bytes()[:n]), failing{cut}))
		if err == nil {
			err = errors.Join(r.Fill(make([]byte, 100)), r.End())
		}
		if !errors.Is(err, cut) {
			t.Fatalf("after %d bytes: %v", n, err)
		}
	}
	other := slices.Clone(raw.Bytes())
	other[len(stateMagic)]++
	if _, err := NewStateReader(bytes.NewReader(other)); !errors.Is(err, ErrState) {
		t.Errorf("another version: %v", err)
	}
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

// TestAfter saves when that is due, and once more when it stops.
func TestAfter(t *testing.T) {
	g := Graph{Group: group.Solo(1)}
	due, stop, saves := false, false, 0
	c := Checkpoints{
		Due: func() bool { return due }, Stop: func() bool { return stop },
		Save: func(context.Context, int, func(io.Writer) error) error { saves++; return nil },
	}
	for _, want := range []struct {
		due, stop bool
		saves     int
	}{{false, false, 0}, {true, false, 1}, {true, true, 2}, {false, true, 3}} {
		due, stop = want.due, want.stop
		if err := g.After(t.Context(), c, 1, nil); errors.Is(err, ErrStopped) != stop || saves != want.saves {
			t.Errorf("%+v: %d saves, error %v", want, saves, err)
		}
	}
	if err := g.After(t.Context(), Checkpoints{}, 1, nil); err != nil {
		t.Error(err)
	}
}

// FuzzStateReader reads anything as a state.
func FuzzStateReader(f *testing.F) {
	var raw bytes.Buffer
	w, err := NewStateWriter(&raw, Origin{Engine: "smooth"})
	if err = errors.Join(err, w.Put(make([]byte, 1000)), w.Close()); err != nil {
		f.Fatal(err)
	}
	f.Add(raw.Bytes())
	f.Add(raw.Bytes()[:40])
	f.Add([]byte(stateMagic + "\x01\x00\x00\x00\xff\xff\xff\xff"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		r, err := NewStateReader(bytes.NewReader(raw))
		if err == nil {
			var o Origin
			err = errors.Join(r.Header(&o), r.Panels(make([]byte, 10*64), 64, 32, 3, 1, 2), r.End())
		}
		if err != nil && !errors.Is(err, ErrState) {
			t.Errorf("the reason is %v", err)
		}
	})
}

// BenchmarkState writes and reads a block of a million rows.
func BenchmarkState(b *testing.B) {
	budget, err := mem.NewBudget(2 << 30)
	if err != nil {
		b.Fatal(err)
	}
	kernel, err := spmv.Select("auto")
	if err != nil {
		b.Fatal(err)
	}
	const n = 1 << 20
	for _, l := range []spmv.Layout{
		{Columns: 16},
		{Columns: 32},
		{Columns: 16, Precision: spmv.Float16},
		{Columns: 16, Residency: spmv.External, Window: packed.StripRows, Accumulators: 1},
	} {
		block, err := spmv.NewBlock(budget, kernel, group.Solo(n), l, 1, b.TempDir())
		if err != nil {
			b.Fatal(err)
		}
		row := make([]float32, l.Columns*1024)
		for i := range row {
			row[i] = float32(i % 17)
		}
		if err := block.Fill(func(put func([]float32) error) error {
			for range n / 1024 {
				if err := put(row); err != nil {
					return err
				}
			}
			return nil
		}); err != nil {
			b.Fatal(err)
		}
		write := func(to io.Writer) {
			w, err := NewStateWriter(to, "header")
			if err = errors.Join(err, w.Block(block, l.Columns/16), w.Close()); err != nil {
				b.Fatal(err)
			}
		}
		name := fmt.Sprintf("%d columns/%s/%s", l.Columns, l.Precision, l.Residency)
		bytesEach := n * int64(l.Columns) * l.Precision.Bytes()
		b.Run("write/"+name, func(b *testing.B) {
			b.SetBytes(bytesEach)
			for b.Loop() {
				write(io.Discard)
			}
		})
		b.Run("read/"+name, func(b *testing.B) {
			var raw bytes.Buffer
			raw.Grow(int(bytesEach) + 1<<20)
			write(&raw)
			b.SetBytes(bytesEach)
			for b.Loop() {
				r, err := NewStateReader(bytes.NewReader(raw.Bytes()))
				if err = errors.Join(err, r.Block(block, l.Columns/16, 0, l.Columns/16), r.End()); err != nil {
					b.Fatal(err)
				}
			}
		})
		block.Free()
	}
}
