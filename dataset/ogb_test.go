package dataset

import (
	"archive/zip"
	"errors"
	"io"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ndls/dataset/graph"
	"ndls/dataset/npy"
)

// ogbFolder writes files in folders, and returns the folder of all.
func ogbFolder(t testing.TB, contents map[string][]byte) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "small")
	for name, data := range contents {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// changed replaces files; nil removes one.
func changed(contents map[string][]byte, name string, data []byte) map[string][]byte {
	contents = maps.Clone(contents)
	contents[name] = data
	if data == nil {
		delete(contents, name)
	}
	return contents
}

// ogbArrays is raw/data.npz of 4 nodes and 3 edges; a changed member replaces its
// own, or is added.
func ogbArrays(method uint16, replaced ...member) []byte {
	members := []member{
		{"edge_index.npy", npyArray(npy.Int64, []int64{2, 3}, []int64{0, 1, 3, 1, 2, 1})},
		{"node_feat.npy", npyArray(npy.Float32, []int64{4, 2}, []float32{0, 1, 0.5, 0, 2, 3, -1, 0})},
		{"node_year.npy", npyArray(npy.Int64, []int64{4, 1}, []int64{2017, 2018, 2019, 2017})},
		{"num_nodes_list.npy", vec[int64](4)},
		{"num_edges_list.npy", vec[int64](3)},
	}
	for _, r := range replaced {
		if i := slices.IndexFunc(members, func(m member) bool { return m.name == r.name }); i >= 0 {
			members[i] = r
		} else {
			members = append(members, r)
		}
	}
	return zipped(method, members...)
}

func ogbLabels(data []byte) []byte { return zipped(zip.Deflate, member{"node_label.npy", data}) }

func ogbBinary() map[string][]byte {
	return map[string][]byte{
		"raw/data.npz":            ogbArrays(zip.Store),
		"raw/node-label.npz":      ogbLabels(npyArray(npy.Float32, []int64{4, 1}, []float32{3, float32(math.NaN()), 0, 3})),
		"split/time/train.csv.gz": gzipped("3\n"),
		"split/time/valid.csv.gz": gzipped("0\r\n"),
		"split/time/test.csv.gz":  gzipped("2"),
	}
}

func ogbText() map[string][]byte {
	return map[string][]byte{
		"raw/edge.csv.gz":            gzipped("0,1\n1,2\n3,1\n"),
		"raw/node-feat.csv.gz":       gzipped("0.0,1.0\n0.5,0.0\n2,3e0\n-1.0,0.0\n"),
		"raw/node-label.csv.gz":      gzipped("3.0\nnan\n0.0\n3.0\n"),
		"raw/node_year.csv.gz":       gzipped("2017\n2018\n2019\n2017\n"),
		"raw/num-node-list.csv.gz":   gzipped("4\n"),
		"raw/num-edge-list.csv.gz":   gzipped("3\n"),
		"split/random/train.csv.gz":  gzipped("3\n"),
		"split/random/valid.csv.gz":  gzipped("0\n"),
		"split/random/test.csv.gz":   gzipped("2\n"),
		"split/random/split_dict.pt": {0},
	}
}

// TestOGB reads the same small graph in every form.
// TestEdgesEndAtOnce: where one array has all sources before all targets, the list of edges ends after the last target. The targets are not
// read a second time as if they were sources.
func TestEdgesEndAtOnce(t *testing.T) {
	d := open(t, "ogb:"+graph.EscapePath(ogbFolder(t, ogbBinary()))+"/", Options{})
	r, err := d.Edges(t.Context(), Whole)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	edges := make([]Edge, 10)
	if n, err := r.Read(edges, nil); n != 3 || err != nil {
		t.Errorf("%d edges, %v", n, err)
	}
	if n, err := r.Read(edges, nil); n != 0 || err != io.EOF {
		t.Errorf("%d edges behind the last, %v", n, err)
	}
}

func TestOGB(t *testing.T) {
	half := npyArray(npy.Float16, []int64{4, 2}, []uint16{0, 0x3c00, 0x3800, 0, 0x4000, 0x4200, 0xbc00, 0})
	integers := ogbLabels(npyArray(npy.Int64, []int64{4, 1}, []int64{3, -1, 0, 3}))
	for name, contents := range map[string]map[string][]byte{
		"binary":         ogbBinary(),
		"deflated":       changed(ogbBinary(), "raw/data.npz", ogbArrays(zip.Deflate)),
		"float16":        changed(ogbBinary(), "raw/data.npz", ogbArrays(zip.Store, member{"node_feat.npy", half})),
		"integer labels": changed(ogbBinary(), "raw/node-label.npz", integers),
		"text":           ogbText(),
		"integer text":   changed(ogbText(), "raw/node-label.csv.gz", gzipped("3\n-1\n0\n3\n")),
		"quoted gaps":    changed(ogbText(), "raw/node-label.csv.gz", gzipped("3.0\n\"\"\n0.0\n3.0\n")),
	} {
		t.Run(name, func(t *testing.T) {
			d := open(t, "ogb:"+graph.EscapePath(ogbFolder(t, contents))+"/", Options{})
			info := d.Info()
			if info.Name != "small" || info.Identity != "ogb:small" || info.NumNodes != 4 || info.EdgeHint != 3 || info.NumFeatures != 2 || info.SizeHint == 0 {
				t.Errorf("%+v", info)
			}
			// Classes that do not occur keep their number.
			if !slices.Equal(info.Classes, []string{"0", "1", "2", "3"}) {
				t.Errorf("classes %v", info.Classes)
			}
			for _, batch := range []int{1, 2, 3, 100} {
				edges, err := readEdges(d, batch)
				if err != nil || !slices.Equal(edges, []Edge{{U: 0, V: 1}, {U: 1, V: 2}, {U: 3, V: 1}}) {
					t.Errorf("edges in batches of %d: %v, %v", batch, edges, err)
				}
			}
			rows, err := readFeatures(d)
			want := []row{{0, []uint32{1}, []float32{1}}, {1, []uint32{0}, []float32{0.5}}, {2, []uint32{0, 1}, []float32{2, 3}}, {3, []uint32{0}, []float32{-1}}}
			if err != nil || !slices.EqualFunc(rows, want, equalRows) {
				t.Errorf("features %v, %v", rows, err)
			}
			if labels, err := readLabels(d); err != nil || !maps.Equal(labels, map[uint32]int32{0: 3, 2: 0, 3: 3}) {
				t.Errorf("labels %v, %v", labels, err)
			}
			if splits, err := readSplits(d); err != nil || !maps.Equal(splits, map[uint32]Split{3: Train, 0: Valid, 2: Test}) {
				t.Errorf("splits %v, %v", splits, err)
			}
		})
	}
}

// TestOGBParts leaves out what may be missing.
func TestOGBParts(t *testing.T) {
	bare := func(contents map[string][]byte) map[string][]byte {
		return maps.Collect(func(yield func(string, []byte) bool) {
			for name, data := range contents {
				if !strings.Contains(name, "split") && !strings.Contains(name, "label") && !strings.Contains(name, "feat") {
					yield(name, data)
				}
			}
		})
	}
	for name, contents := range map[string]map[string][]byte{"binary": bare(ogbBinary()), "text": bare(ogbText())} {
		d := open(t, "ogb:"+ogbFolder(t, contents), Options{NoFeatures: true})
		if info := d.Info(); info.HasLabels || info.HasSplits || info.NumFeatures != 0 || info.NumNodes != 4 {
			t.Errorf("%s: %+v", name, info)
		}
		if _, err := d.Features(t.Context(), Whole); err == nil {
			t.Errorf("%s: features", name)
		}
		if _, err := d.Labels(t.Context()); err == nil {
			t.Errorf("%s: labels", name)
		}
		if _, err := d.Splits(t.Context(), 0); err == nil {
			t.Errorf("%s: splits", name)
		}
	}
}

// TestOGBRefused holds what is refused, with the parts of the message: where,
// what, and the way out.
func TestOGBRefused(t *testing.T) {
	binary := func(name string, data []byte) map[string][]byte {
		return changed(ogbBinary(), "raw/data.npz", ogbArrays(zip.Store, member{name + ".npy", data}))
	}
	label := func(data []byte) map[string][]byte {
		return changed(ogbBinary(), "raw/node-label.npz", ogbLabels(data))
	}
	text := func(name, data string) map[string][]byte {
		return changed(ogbText(), "raw/"+name+".csv.gz", gzipped(data))
	}
	for _, c := range []struct {
		name     string
		contents map[string][]byte
		want     []string
	}{
		{"no layout", map[string][]byte{"data.npz": nil}, []string{"small", "raw/data.npz", "raw/edge.csv.gz", "unpacks"}},
		{"not an archive", changed(ogbBinary(), "raw/data.npz", []byte("no")), []string{"data.npz", "no zip"}},
		{"no array", changed(ogbBinary(), "raw/data.npz", triangle()), []string{"data.npz", "num_nodes_list", "adj_data", "fetch"}},
		{"edges of another graph", binary("num_edges_list", vec[int64](7)), []string{"data.npz member edge_index.npy", "holds 3 edges", "(2, 7)", "fetch"}},
		{"features of another graph", binary("num_nodes_list", vec[int64](5)), []string{"node_feat", "4 rows", "5 nodes", "folder states"}},
		{"several graphs", binary("num_nodes_list", vec[int64](2, 2)), []string{"num_nodes_list", "2 numbers", "one graph"}},
		{"too many nodes", binary("num_nodes_list", vec[int64](1<<32)), []string{"data.npz", "4294967296 nodes", "4294967295"}},
		{"edge out of range", binary("edge_index", npyArray(npy.Int64, []int64{2, 3}, []int64{0, 1, 4, 1, 2, 1})), []string{"edge_index", "edge 2", "4 is not below the number of nodes, 4"}},
		{"negative id", binary("edge_index", npyArray(npy.Int64, []int64{2, 3}, []int64{0, 1, 3, 1, -2, 1})), []string{"edge_index", "edge 1", "-2 is negative"}},
		{"real ids", binary("edge_index", npyArray(npy.Float64, []int64{2, 3}, []float64{0, 1, 2, .5, 0, 0})), []string{"edge_index", "number 3 is 0.5", "whole numbers"}},
		{"feature not finite", binary("node_feat", npyArray(npy.Float32, []int64{4, 1}, []float32{0, 1, float32(math.Inf(1)), 0})), []string{"node_feat", "row 2, column 0", "+Inf", "replace"}},
		{"features as vector", binary("node_feat", vec[float32](1, 2, 3, 4)), []string{"node_feat", "shape [4]", "matrix"}},
		{"short labels", label(npyArray(npy.Float32, []int64{3, 1}, []float32{0, 1, 0})), []string{"node_label", "3 rows", "4 nodes"}},
		{"tasks", label(npyArray(npy.Int64, []int64{4, 2}, make([]int64, 8))), []string{"node_label", "[4 2]", "one class"}},
		{"fraction", label(npyArray(npy.Float32, []int64{4, 1}, []float32{0, 1, 0.5, 0})), []string{"node_label", "row 2", "whole number"}},
		{"negative label", label(npyArray(npy.Int64, []int64{4, 1}, []int64{0, -7, 0, 0})), []string{"node_label", `"-7"`, "NaN or -1"}},
		{"huge label", label(npyArray(npy.Int64, []int64{4, 1}, []int64{0, 1 << 40, 0, 0})), []string{"node_label", `"1099511627776"`, "from 0 to 65535"}},
		{"two splits", changed(ogbBinary(), "split/other/train.csv.gz", gzipped("1")), []string{"split", "2 folders", "other, time", "keep the one"}},
		{"missing split", changed(ogbBinary(), "split/time/valid.csv.gz", nil), []string{"valid.csv.gz", "no such file"}},
		{"split out of range", changed(ogbBinary(), "split/time/test.csv.gz", gzipped("1\n4\n")), []string{"test.csv.gz line 2", "4 is not below"}},
		{"split is no list", changed(ogbBinary(), "split/time/train.csv.gz", gzipped("1,2\n")), []string{"train.csv.gz", "no column named id", "from 1 to 2"}},
		{"split truncated", changed(ogbBinary(), "split/time/train.csv.gz", gzipped("1\n")[:12]), []string{"train.csv.gz", "truncated", "fetch"}},
		{"text: no count", changed(ogbText(), "raw/num-node-list.csv.gz", nil), []string{"num-node-list.csv.gz", "no such file"}},
		{"text: empty count", text("num-node-list", ""), []string{"num-node-list.csv.gz", "no number"}},
		{"text: bad count", text("num-edge-list", "many\n"), []string{"num-edge-list.csv.gz line 1", "many"}},
		{"text: several graphs", text("num-node-list", "2\n2\n"), []string{"num-node-list.csv.gz line 2", "one graph"}},
		{"text: no nodes", text("num-node-list", "0\n"), []string{"0 nodes"}},
		{"text: edge missing", text("edge", "0,1\n1,2\n"), []string{"edge.csv.gz", "3 rows", "row 2", "fetch"}},
		{"text: edge more", text("edge", "0,1\n1,2\n1,3\n0,2\n"), []string{"edge.csv.gz", "3 rows", "row 4"}},
		{"text: edge out of range", text("edge", "0,1\n1,9\n3,1\n"), []string{"edge.csv.gz line 2", "9 is not below"}},
		{"text: row missing", text("node-feat", "0,1\n"), []string{"node-feat.csv.gz", "1 rows", "4 nodes"}},
		{"text: no rows", text("node-feat", ""), []string{"node-feat.csv.gz", "no rows"}},
		{"text: row more", text("node-feat", "1\n2\n3\n4\n5\n"), []string{"node-feat.csv.gz line 5", "one more"}},
		{"text: column missing", text("node-feat", "1,2\n3\n"), []string{"node-feat.csv.gz line 2", "the number of columns is 1", "2"}},
		{"text: not finite", text("node-feat", "1,2\n3,inf\n"), []string{"node-feat.csv.gz line 2", `column "2"`, "inf"}},
		{"text: no number", text("node-feat", "1,2\n3,\n"), []string{"node-feat.csv.gz line 2", `column "2"`}},
		{"text: labels with ids", text("node-label", "0,1\n1,1\n"), []string{"node-label.csv.gz", "several columns"}},
		{"text: short labels", text("node-label", "0\n\n1\n1\n"), []string{"node-label.csv.gz", "3 rows", "4 nodes"}},
		{"text: named labels", text("node-label", "cat\ndog\ncat\ndog\n"), []string{"node-label.csv.gz", "cat", "whole numbers"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := readAll(t, "ogb:"+ogbFolder(t, c.contents))
			if err == nil {
				t.Fatal("no error")
			}
			for _, part := range c.want {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("%q lacks %q", err, part)
				}
			}
			if !errors.Is(err, ErrData) && !errors.Is(err, os.ErrNotExist) {
				t.Errorf("%v is no ErrData", err)
			}
		})
	}
	if _, err := Open(t.Context(), "ogb:", Options{}); !errors.Is(err, ErrURI) {
		t.Errorf("%v", err)
	}
}

// fuzzOGB reads data as one file of a dataset.
func fuzzOGB(t *testing.T, contents map[string][]byte, name string, data []byte) {
	t.Chdir(ogbFolder(t, changed(contents, name, data)))
	if err := readAll(t, "ogb:."); err != nil && !errors.Is(err, ErrData) {
		t.Errorf("%v is no ErrData", err)
	}
}

func FuzzOGBArrays(f *testing.F) {
	f.Add(ogbArrays(zip.Store))
	f.Add(ogbArrays(zip.Deflate))
	f.Fuzz(func(t *testing.T, data []byte) { fuzzOGB(t, ogbBinary(), "raw/data.npz", data) })
}

func FuzzOGBText(f *testing.F) {
	names := []string{"raw/node-feat.csv.gz", "raw/node-label.csv.gz", "raw/edge.csv.gz", "raw/num-node-list.csv.gz", "split/random/train.csv.gz"}
	f.Add(uint8(0), "0.0,1.0\n0.5,0.0\n2,3e0\n-1.0,0.0\n")
	f.Add(uint8(1), "3.0\nnan\n\"\"\n3.0\n")
	f.Add(uint8(2), "0,1\n1,2\n3,1\n")
	f.Add(uint8(3), "4\n")
	f.Add(uint8(4), " 3\n")
	f.Fuzz(func(t *testing.T, which uint8, data string) {
		fuzzOGB(t, ogbText(), names[int(which)%len(names)], gzipped(data))
	})
}
