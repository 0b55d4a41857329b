package train

import (
	"bytes"
	"errors"
	"slices"
	"testing"
	"testing/iotest"

	"ndls/internal/mem"
	"ndls/internal/seal"
)

func saved(t testing.TB, m *Model) []byte {
	t.Helper()
	var buf bytes.Buffer
	if err := m.Save(&buf); err != nil {
		t.Fatal(err)
	}
	return buf.Bytes()
}

func TestModelRoundTrip(t *testing.T) {
	b := testBudget(t, 1<<20)
	for _, f := range []form{{dims: []int{1, 2}}, {dims: []int{5, 3, 2}}, {dims: []int{5, 3, 2}, norm: true}, {dims: []int{40, 30, 20, 10}, norm: true}, {dims: []int{5, 2}, standard: true}, {[]int{40, 30, 10}, true, true, Regress}, {dims: []int{5, 2}, task: Label}} {
		m, dims := randomOf(t, b, 4, f), f.dims
		file := saved(t, m)
		if want := 8 + 4 + 4*len(dims) + 4 + 4*len(m.memory.S) + 32; len(file) != want {
			t.Errorf("%v: %d bytes, want %d", dims, len(file), want)
		}
		got, err := LoadModel(iotest.OneByteReader(bytes.NewReader(file)), "model", b)
		if err != nil {
			t.Fatal(err)
		}
		if !got.equal(f) || !sameBits(got.memory.S, m.memory.S) || got.Width() != dims[0] || got.Classes() != dims[len(dims)-1] {
			t.Errorf("%v came back as %v", dims, got.dims)
		}
		got.Free()
	}
}

func TestDamagedModelsAreRefused(t *testing.T) {
	for _, f := range []form{{}, {norm: true}, {standard: true}, {norm: true, standard: true}, {task: Label}, {standard: true, task: Regress}} {
		damagedIsRefused(t, form{[]int{5, 3, 2}, f.norm, f.standard, f.task})
	}
}

func damagedIsRefused(t *testing.T, f form) {
	b := testBudget(t, 1<<20)
	file := saved(t, randomOf(t, b, 4, f))
	refused := func(what string, i int, bytesOf []byte) {
		t.Helper()
		m, err := LoadModel(bytes.NewReader(bytesOf), "model", b)
		m.Free()
		version := what == "flipped" && i == len(modelMagic) && errors.Is(err, seal.ErrVersion)
		if !version && !errors.Is(err, seal.ErrCorrupt) {
			t.Errorf("%s at %d: %v", what, i, err)
		}
	}
	for i := range file {
		refused("cut", i, file[:i])
		for bit := range 8 {
			flipped := slices.Clone(file)
			flipped[i] ^= 1 << bit
			refused("flipped", i, flipped)
		}
	}
	refused("longer", len(file), append(slices.Clone(file), 0))
}

func TestModelErrorsBesidesDamage(t *testing.T) {
	b := testBudget(t, 1<<20)
	m := randomModel(t, b, 4, 100, 50, 2)
	file := saved(t, m)
	if _, err := LoadModel(bytes.NewReader(file), "model", testBudget(t, 4096)); !errors.Is(err, mem.ErrBudget) {
		t.Errorf("a tiny budget: %v", err)
	}
	for _, n := range []int{3, 20, 1000, len(file) - 1} {
		in := iotest.TimeoutReader(iotest.OneByteReader(bytes.NewReader(file)))
		if n > 3 {
			in = &failing{bytes.NewReader(file[:n])}
		}
		if _, err := LoadModel(in, "model", b); !errors.Is(err, iotest.ErrTimeout) || errors.Is(err, seal.ErrCorrupt) {
			t.Errorf("a disk that fails after %d bytes: %v", n, err)
		}
	}
	if err := m.Save(&full{room: 1000}); !errors.Is(err, errFull) {
		t.Errorf("a full disk: %v", err)
	}
}

// failing gives the bytes of r, then a timeout.
type failing struct{ r *bytes.Reader }

func (f *failing) Read(p []byte) (int, error) {
	if f.r.Len() == 0 {
		return 0, iotest.ErrTimeout
	}
	return f.r.Read(p)
}

var errFull = errors.New("disk full")

// full takes room bytes.
type full struct{ room int }

func (f *full) Write(p []byte) (int, error) {
	if f.room -= len(p); f.room < 0 {
		return 0, errFull
	}
	return len(p), nil
}

func FuzzLoadModel(f *testing.F) {
	b := testBudget(f, 1<<20)
	f.Add(saved(f, randomModel(f, b, 4, 5, 3, 2)))
	f.Add(saved(f, randomOf(f, b, 4, form{dims: []int{5, 3, 2}, norm: true})))
	f.Add(saved(f, randomOf(f, b, 4, form{[]int{5, 3, 2}, true, true, Label})))
	f.Add([]byte("NDLSMLP1"))
	f.Fuzz(func(t *testing.T, file []byte) {
		m, err := LoadModel(bytes.NewReader(file), "model", b)
		if err != nil {
			if !errors.Is(err, seal.ErrCorrupt) && !errors.Is(err, seal.ErrVersion) && !errors.Is(err, mem.ErrBudget) {
				t.Errorf("an error of no kind: %v", err)
			}
			return
		}
		defer m.Free()
		if !bytes.Equal(saved(t, m), file) {
			t.Error("an accepted file is not the file of its model")
		}
	})
}
