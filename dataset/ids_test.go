package dataset

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestIDs(t *testing.T) {
	for _, c := range []struct {
		name, file string
		data       []byte
		want       []int64
		problem    string
	}{
		{"lines", "t.txt", []byte("# chosen\n5\n0\r\n17\n"), []int64{5, 0, 17}, ""},
		{"header", "t.csv", []byte("id\n3\n4\n"), []int64{3, 4}, ""},
		{"numpy", "t.npy", npyArray("<i8", []int64{3}, []int64{9, 8, 7}), []int64{9, 8, 7}, ""},
		{"negative", "t.txt", []byte("1\n-2\n"), nil, "t.txt line 2"},
		{"a word", "t.txt", []byte("1\nx\n"), nil, "t.txt line 2"},
		{"floats", "t.npy", npyArray("<f4", []int64{2}, []float32{1, 3}), []int64{1, 3}, ""},
		{"a fraction", "t.npy", npyArray("<f4", []int64{2}, []float32{1, .5}), nil, "number 1 is 0.5"},
		{"booleans", "t.npy", npyArray("|b1", []int64{2}, []byte{0, 1}), nil, "integers"},
		{"a matrix", "t.npy", npyArray("<i8", []int64{1, 2}, []int64{1, 2}), nil, "vector"},
		{"nothing", "t.txt", nil, nil, "is empty (0 bytes)"},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), c.file)
			if err := os.WriteFile(path, c.data, 0o600); err != nil {
				t.Fatal(err)
			}
			got, err := readIDs(path)
			if c.problem != "" {
				if !errors.Is(err, ErrData) || !strings.Contains(err.Error(), c.problem) {
					t.Fatalf("%v does not say %q", err, c.problem)
				}
				return
			}
			if err != nil || !slices.Equal(got, c.want) {
				t.Errorf("%v, %v", got, err)
			}
		})
	}
}

func readIDs(path string) (got []int64, err error) {
	l, err := OpenIDs(context.Background(), path)
	if err != nil {
		return nil, err
	}
	defer l.Close()
	for {
		id, err := l.Next()
		if err == io.EOF {
			return got, nil
		}
		if err != nil {
			return nil, err
		}
		got = append(got, id)
	}
}
