package dataset

import (
	"archive/zip"
	"errors"
	"maps"
	"strings"
	"testing"

	"ndls/dataset/npy"
)

// TestSplitNumber opens each of several splits of a dataset that is open: it is the one that
// split=N in the URI picks.
func TestSplitNumber(t *testing.T) {
	dir := writeTree(t, map[string][]byte{
		"e.txt":    []byte("0 1\n1 2\n2 3\n"),
		"rows.npy": npyArray(npy.Int8, []int64{2, 4}, []int8{3, 3, 3, 3, 1, 2, 3, 3}),
		"one.npy":  npyArray(npy.Int8, []int64{4}, []int8{1, 2, 3, 3}),
		"mask.npz": zipped(zip.Deflate, member{"train_mask.npy", npyArray(npy.Bool, []int64{4, 2}, []byte{1, 0, 0, 1, 0, 0, 0, 0})}, member{"test_mask.npy", npyArray(npy.Bool, []int64{4, 2}, []byte{0, 1, 0, 0, 1, 0, 0, 1})}),
		"text.csv": []byte("id,split\n0,train\n1,test\n"),
		"g.npz":    heterophilous(),
	})
	number := func(d Dataset, i int) (map[uint32]Split, error) {
		r, err := d.Splits(t.Context(), i)
		if err != nil {
			return nil, err
		}
		defer r.Close()
		splits := map[uint32]Split{}
		for {
			id, split, err := r.Next()
			if err != nil {
				return splits, nil
			}
			splits[id] = split
		}
	}
	for _, uri := range []string{
		"npz:" + dir + "/g.npz?", "pyg:" + pygFiles + "splits.pt?",
		"edges:" + dir + "/e.txt?splits=" + dir + "/rows.npy&nodes=4&", "edges:" + dir + "/e.txt?splits=" + dir + "/mask.npz&nodes=4&",
	} {
		d := open(t, strings.TrimRight(uri, "?&"), Options{})
		var last map[uint32]Split
		for i, pick := range []string{"split=0", "split=1"} {
			got, err := number(d, i)
			if err != nil {
				t.Fatalf("%s: %v", uri, err)
			}
			want, err := readSplits(open(t, uri+pick, Options{}))
			if err != nil || len(want) == 0 || !maps.Equal(got, want) || maps.Equal(got, last) {
				t.Errorf("%s: number %d is %v, want %v, %v", uri, i, got, want, err)
			}
			last = got
		}
		if first, err := readSplits(d); err != nil || maps.Equal(first, last) {
			t.Errorf("%s: the dataset has another split afterwards: %v, %v", uri, first, err)
		}
		if _, err := number(d, 2); !errors.Is(err, ErrData) || !strings.Contains(err.Error(), "2 splits") {
			t.Errorf("%s: number 2: %v", uri, err)
		}
		if _, err := number(open(t, uri+"split=0", Options{}), 1); !errors.Is(err, ErrData) || !strings.Contains(err.Error(), "picks one") {
			t.Errorf("%s: a picked one: %v", uri, err)
		}
	}
	for _, uri := range []string{"edges:" + dir + "/e.txt?splits=" + dir + "/text.csv", "edges:" + dir + "/e.txt?splits=" + dir + "/one.npy", "karate:"} {
		d := open(t, uri, Options{})
		if !d.Info().HasSplits {
			continue
		}
		if _, err := d.Splits(t.Context(), 1); !errors.Is(err, ErrData) || !strings.Contains(err.Error(), "one") {
			t.Errorf("%s: %v", uri, err)
		}
	}
}
