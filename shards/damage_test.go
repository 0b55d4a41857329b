package shards

import (
	"errors"
	"reflect"
	"runtime"
	"slices"
	"testing"

	"ndls/internal/seal"
	"ndls/internal/storage/storagetest"
)

// maxDamageAllocation is far above what a sample needs and far below what a
// damaged length can ask for.
const maxDamageAllocation = 16 << 20

// checkDamaged reads damaged bytes: the data must come back equal, or not at
// all, with seal.ErrCorrupt and without a large allocation.
func checkDamaged(t *testing.T, s sample, data []byte, want any, what string, at int) {
	t.Helper()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	got, err := s.read(storagetest.NewBytesReader(data))
	runtime.ReadMemStats(&after)
	if size := after.TotalAlloc - before.TotalAlloc; size > maxDamageAllocation {
		t.Errorf("%s %d: %d bytes allocated", what, at, size)
	}
	switch {
	case err == nil && !reflect.DeepEqual(got, want):
		t.Errorf("%s %d: other data without an error", what, at)
	case err != nil && !errors.Is(err, seal.ErrCorrupt):
		t.Errorf("%s %d: %v, want seal.ErrCorrupt", what, at, err)
	}
}

func TestDamagedFiles(t *testing.T) {
	for _, s := range samples() {
		t.Run(s.name, func(t *testing.T) {
			data := s.file(t)
			want, err := s.read(storagetest.NewBytesReader(data))
			if err != nil {
				t.Fatal(err)
			}
			step := max(1, len(data)/400)
			for at := 0; at < len(data); at++ {
				// Every byte of the end, where lengths and offsets are; a sample of the rest.
				if at%step != 0 && at < len(data)-400 {
					continue
				}
				flipped := slices.Clone(data)
				flipped[at] ^= byte(1 + at%255)
				checkDamaged(t, s, flipped, want, "flip at", at)
				if err := func() error { _, err := s.read(storagetest.NewBytesReader(data[:at])); return err }(); !errors.Is(err, seal.ErrCorrupt) {
					t.Errorf("cut at %d: %v, want seal.ErrCorrupt", at, err)
				}
			}
			checkDamaged(t, s, append(slices.Clone(data), 0), want, "longer than", len(data))
		})
	}
}

// A file of one format handed to the reader of another is refused.
func TestFormatsAreNotMixedUp(t *testing.T) {
	for _, is := range samples() {
		for _, as := range samples() {
			rows := []string{"rows", "half rows", "hops"} // one format
			if is.name == as.name || slices.Contains(rows, is.name) && slices.Contains(rows, as.name) {
				continue
			}
			t.Run(is.name+" read as "+as.name, func(t *testing.T) {
				if _, err := as.read(storagetest.NewBytesReader(is.file(t))); !errors.Is(err, seal.ErrCorrupt) && !errors.Is(err, seal.ErrVersion) {
					t.Errorf("got %v, want seal.ErrCorrupt or seal.ErrVersion", err)
				}
			})
		}
	}
}

func fuzz(f *testing.F, s sample) {
	data := s.file(f)
	f.Add(data)
	f.Add(data[:len(data)/2])
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, data []byte) {
		if _, err := s.read(storagetest.NewBytesReader(data)); err != nil && !errors.Is(err, seal.ErrCorrupt) && !errors.Is(err, seal.ErrVersion) {
			t.Errorf("%v, want seal.ErrCorrupt or seal.ErrVersion", err)
		}
	})
}

func FuzzEdges(f *testing.F) { fuzz(f, samples()[0]) }
func FuzzNodes(f *testing.F) { fuzz(f, samples()[1]) }
func FuzzLSI(f *testing.F)   { fuzz(f, samples()[2]) }
func FuzzRows(f *testing.F)  { fuzz(f, samples()[3]) }
