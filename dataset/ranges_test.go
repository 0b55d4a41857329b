package dataset

import (
	"archive/zip"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/apache/arrow/go/v14/arrow"
	arrowarray "github.com/apache/arrow/go/v14/arrow/array"
	"github.com/apache/arrow/go/v14/parquet"

	"ndls/dataset/npy"
	"ndls/internal/testgraph"
)

// inRanges reads the edges of a dataset in parts cut at these places.
func inRanges(t *testing.T, ds Dataset, of int, cuts ...int) (all []Edge, busy int) {
	t.Helper()
	first := 0
	for _, last := range append(cuts, of) {
		r, err := ds.Edges(t.Context(), Share{First: first, Last: last, Of: of})
		if err != nil {
			t.Fatal(err)
		}
		before := len(all)
		for batch := make([]Edge, 3); ; {
			n, err := r.Read(batch, nil)
			if err == io.EOF {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, batch[:n]...)
		}
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
		if len(all) > before {
			busy++
		}
		first = last
	}
	return all, busy
}

// TestEdgeRanges reads each row once, wherever the list is cut.
func TestEdgeRanges(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return "edges:" + path
	}
	var lines, pairs strings.Builder
	var rows []int64
	for i := range int64(200) {
		rows = append(rows, i*3, i)
		fmt.Fprintf(&lines, "%d,%d\n", i*i, i)
		if i%17 == 0 {
			lines.WriteString("# a comment\n\r\n")
		}
		pairs.Write([]byte{byte(i), 0, 0, 0, byte(i / 2), 0, 0, 0})
	}
	ends := arrow.NewSchema([]arrow.Field{{Name: "src", Type: arrow.PrimitiveTypes.Int64}, {Name: "dst", Type: arrow.PrimitiveTypes.Int64}}, nil)
	for _, c := range []struct {
		name, uri string
		cut       bool
	}{
		{"text", file("plain.csv", lines.String()), true},
		{"text with a header", file("header.csv", "# first\nsrc,dst\n"+lines.String()), true},
		{"text with a mark", file("mark.csv", "\xef\xbb\xbf"+lines.String()), true},
		{"text without a last line end", file("end.csv", strings.TrimSuffix(lines.String(), "\n")), true},
		{"a short text", file("short.csv", "1,2\n3,4"), true},
		{"pairs", file("pairs.u32", pairs.String()), true},
		{"array of pairs", file("pairs.npy", string(npyArray(npy.Int64, []int64{200, 2}, rows))), true},
		{"array of ends", file("ends.npy", string(npyArray(npy.Int64, []int64{2, 200}, rows))), true},
		{"archive", file("a.npz", string(zipped(zip.Store, member{"edge_index.npy", npyArray(npy.Int64, []int64{2, 200}, rows)}))), true},
		{"packed archive", file("b.npz", string(zipped(zip.Deflate, member{"edge_index.npy", npyArray(npy.Int64, []int64{2, 200}, rows)}))), false},
		{"packed text", file("c.csv.gz", string(gzipped(lines.String()))), false},
		{"Parquet", file("d.parquet", string(parquetOf(t, ends, func(b *arrowarray.RecordBuilder) {
			for i := range rows[:200] {
				b.Field(0).(*arrowarray.Int64Builder).Append(rows[i])
				b.Field(1).(*arrowarray.Int64Builder).Append(rows[2*i])
			}
		}, parquet.WithMaxRowGroupLength(23)))), true},
		{"generator", "synthetic:nodes=50,edges=333", true},
		{"papers", "papers100m:scale=1/4096", true},
		{"slow papers", "papers100m:scale=1/4096,mix=slow", true},
		{"built in", "karate:", true},
		{"pickle", "planetoid:" + testgraph.Published(t, "data/cora") + "/cora", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			ds, err := Open(t.Context(), c.uri, Options{NoFeatures: true})
			if err != nil {
				t.Fatal(err)
			}
			defer ds.Close()
			want, err := readEdges(ds, 100)
			if err != nil {
				t.Fatal(err)
			}
			for _, cuts := range [][]int{nil, {512}, {1, 2, 3}, {100, 101, 700, 1023}, {256, 512, 768}} {
				got, busy := inRanges(t, ds, 1024, cuts...)
				if !slices.Equal(got, want) {
					t.Errorf("cut at %v: %d edges, want %d, or others", cuts, len(got), len(want))
				}
				if len(cuts) == 3 && cuts[0] == 256 && len(want) > 10 && (busy > 1) != c.cut {
					t.Errorf("%d of 4 parts hold edges", busy)
				}
			}
			// All parts at the same time.
			parts := make([][]Edge, 8)
			var reading sync.WaitGroup
			for i := range parts {
				reading.Go(func() {
					r, err := ds.Edges(t.Context(), Share{First: i * 128, Last: (i + 1) * 128, Of: 1024})
					if err != nil {
						t.Error(err)
						return
					}
					for batch := make([]Edge, 7); err == nil; {
						var n int
						n, err = r.Read(batch, nil)
						parts[i] = append(parts[i], batch[:n]...)
					}
					if err := r.Close(); err != nil {
						t.Error(err)
					}
				})
			}
			reading.Wait()
			if got := slices.Concat(parts...); !slices.Equal(got, want) {
				t.Errorf("parts read at the same time: %d edges, want %d, or others", len(got), len(want))
			}
			// Every place at which a short file can be cut.
			for cut := 1; cut < 40 && len(want) < 500; cut++ {
				if got, _ := inRanges(t, ds, 40, cut); !slices.Equal(got, want) {
					t.Errorf("cut at %d/40: %d edges, want %d, or others", cut, len(got), len(want))
				}
			}
		})
	}
}

// TestFeatureRanges reads each feature row once, wherever the rows are cut.
func TestFeatureRanges(t *testing.T) {
	dir := t.TempDir()
	write := func(name string, data []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, data, 0o644); err != nil {
			t.Fatal(err)
		}
		return path
	}
	edges := "edges:" + write("e.csv", []byte("0,1\n1,2\n")) + "?features="
	values := make([]float32, 37*3)
	for i := range values {
		values[i] = float32(i)
	}
	matrix := npyArray(npy.Float32, []int64{37, 3}, values)
	for _, c := range []struct {
		name, uri string
		cut       bool
	}{
		{"matrix", edges + write("f.npy", matrix), true},
		{"packed matrix", edges + write("f.npy.gz", gzipped(string(matrix))), false},
		{"text", edges + write("f.csv", []byte("id,a,b\n0,1,2\n1,3,4\n2,5,6\n")), false},
		{"generator", "synthetic:nodes=50,edges=60,features=40", true},
		{"papers", "papers100m:scale=1/4096", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			ds, err := Open(t.Context(), c.uri, Options{})
			if err != nil {
				t.Fatal(err)
			}
			defer ds.Close()
			if ds.Info().CutsFeatures != c.cut {
				t.Fatalf("the rows can be cut: %v, want %v", !c.cut, c.cut)
			}
			if !c.cut {
				return
			}
			for _, cuts := range [][]int{{0, 1024}, {0, 512, 1024}, {0, 1, 2, 3, 1024}, {0, 100, 101, 700, 1023, 1024}} {
				whole, err := ds.Features(t.Context(), Whole)
				if err != nil {
					t.Fatal(err)
				}
				for i := range cuts[1:] {
					part, err := ds.Features(t.Context(), Share{First: cuts[i], Last: cuts[i+1], Of: 1024})
					if err != nil {
						t.Fatal(err)
					}
					for {
						got, err := part.Next()
						if err == io.EOF {
							break
						}
						if err != nil {
							t.Fatal(err)
						}
						if want, err := whole.Next(); err != nil || got.ID != want.ID || !slices.Equal(got.Dense, want.Dense) {
							t.Fatalf("cut at %v: the row of node %d, want that of %d, %v", cuts, got.ID, want.ID, err)
						}
					}
					if err := part.Close(); err != nil {
						t.Fatal(err)
					}
				}
				if _, err := whole.Next(); err != io.EOF {
					t.Errorf("cut at %v: rows are left, %v", cuts, err)
				}
				if err := whole.Close(); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

// TestEdgeRangeNamesTheLine counts lines from the beginning of the file.
func TestEdgeRangeNamesTheLine(t *testing.T) {
	path := filepath.Join(t.TempDir(), "e.csv")
	text := bytes.Repeat([]byte("1,2\n"), 300)
	text = append(text, "3,x\n"...)
	text = append(text, bytes.Repeat([]byte("1,2\n"), 20)...)
	if err := os.WriteFile(path, text, 0o644); err != nil {
		t.Fatal(err)
	}
	ds, err := Open(context.Background(), "edges:"+path, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer ds.Close()
	r, err := ds.Edges(t.Context(), Share{First: 512, Last: 1024, Of: 1024})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if _, err := r.Read(make([]Edge, 1000), nil); !errors.Is(err, ErrData) || !strings.Contains(err.Error(), "e.csv line 301") {
		t.Error(err)
	}
}
