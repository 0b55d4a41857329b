package catalog

import (
	"errors"
	"slices"
	"testing"

	"ndls/internal/seal"
	"ndls/internal/storage/storagetest"
)

func sampleCatalog(t testing.TB) []byte {
	t.Helper()
	data, err := encodeCatalog([]Entry{
		{Kind: KindEdges, Path: "graph/edges/part-00000.parquet", Rows: 12, Bytes: 345, Checksum: "sha256:00", Interval: 0, Block: -1},
		{Kind: KindNodes, Path: "graph/nodes.parquet", Rows: 7, Bytes: 99, Checksum: "sha256:11", Interval: -1, Block: -1},
		{Kind: KindFeatures, Path: "graph/features/tile-00001-00002.f32", Rows: 7, Bytes: 448, Checksum: "sha256:22", Interval: 1, Block: 2},
	}, 3)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// A catalogue with a changed or missing byte is refused, or lists the same.
func TestDamagedCatalog(t *testing.T) {
	data := sampleCatalog(t)
	want, _, err := readCatalog(storagetest.NewBytesReader(data), Name)
	if err != nil {
		t.Fatal(err)
	}
	for at := range data {
		flipped := slices.Clone(data)
		flipped[at] ^= byte(1 + at%255)
		switch got, _, err := readCatalog(storagetest.NewBytesReader(flipped), Name); {
		case err == nil && !slices.Equal(got, want):
			t.Errorf("flip at %d: other entries without an error", at)
		case err != nil && !errors.Is(err, seal.ErrCorrupt):
			t.Errorf("flip at %d: %v, want ErrCorrupt", at, err)
		}
		if _, _, err := readCatalog(storagetest.NewBytesReader(data[:at]), Name); !errors.Is(err, seal.ErrCorrupt) {
			t.Errorf("cut at %d: %v, want ErrCorrupt", at, err)
		}
		if _, _, err := readCatalog(storagetest.NewBytesReader(slices.Insert(slices.Clone(data), at, 0)), Name); !errors.Is(err, seal.ErrCorrupt) {
			t.Errorf("a byte more at %d: %v, want ErrCorrupt", at, err)
		}
	}
}

func FuzzCatalog(f *testing.F) {
	data := sampleCatalog(f)
	f.Add(data)
	f.Add(data[:len(data)/2])
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, data []byte) {
		if _, _, err := readCatalog(storagetest.NewBytesReader(data), Name); err != nil && !errors.Is(err, seal.ErrCorrupt) && !errors.Is(err, seal.ErrVersion) {
			t.Errorf("%v, want ErrCorrupt or ErrVersion", err)
		}
	})
}
