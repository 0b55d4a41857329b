package dataset

import (
	"archive/zip"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ndls/dataset/npy"
)

// path4 is the graph that the tests of layouts store: 0-1, 1-2, 2-3, of four nodes with
// two features, two classes, and one training, one validation and two test nodes.
var path4 = struct {
	edges    []Edge
	features [][2]float32
	labels   map[uint32]int32
	splits   map[uint32]Split
}{
	[]Edge{{U: 0, V: 1}, {U: 1, V: 2}, {U: 2, V: 3}},
	[][2]float32{{1, 0.5}, {0, 2}, {-1, 0}, {3, 4}},
	map[uint32]int32{0: 0, 1: 1, 2: 1, 3: 0},
	map[uint32]Split{0: Train, 1: Valid, 2: Test, 3: Test},
}

// isPath4 compares a dataset with the graph above. Edges may be stored in both
// directions. What the dataset does not have is not compared.
func isPath4(t *testing.T, d Dataset) {
	t.Helper()
	info := d.Info()
	edges, err := readEdges(d, 2)
	for i, e := range edges {
		edges[i] = Edge{U: min(e.U, e.V), V: max(e.U, e.V)}
	}
	slices.SortFunc(edges, func(a, b Edge) int { return int(a.U) - int(b.U) })
	if edges = slices.Compact(edges); err != nil || !slices.Equal(edges, path4.edges) {
		t.Errorf("edges %v, %v", edges, err)
	}
	if info.NumNodes != 4 && info.NumNodes != -1 {
		t.Errorf("%d nodes", info.NumNodes)
	}
	if info.NumFeatures > 0 {
		rows, err := readFeatures(d)
		if err != nil || len(rows) != 4 || info.NumFeatures != 2 {
			t.Errorf("%d rows of %d features, %v", len(rows), info.NumFeatures, err)
		}
		for _, r := range rows {
			var got [2]float32
			for i, c := range r.indices {
				got[c] = r.values[i]
			}
			if got != path4.features[r.id] {
				t.Errorf("row %d is %v", r.id, got)
			}
		}
	}
	if info.HasLabels {
		labels, err := readLabels(d)
		if err != nil || !maps.Equal(labels, path4.labels) || len(info.Classes) != 2 {
			t.Errorf("labels %v of %v, %v", labels, info.Classes, err)
		}
	}
	if info.HasSplits {
		splits, err := readSplits(d)
		if err != nil || !maps.Equal(splits, path4.splits) {
			t.Errorf("splits %v, %v", splits, err)
		}
	}
}

// change is a copy of files with one of them replaced, or left out where data is nil.
func change(files map[string][]byte, name string, data []byte) map[string][]byte {
	if files = maps.Clone(files); files == nil {
		files = map[string][]byte{}
	}
	if files[name] = data; data == nil {
		delete(files, name)
	}
	return files
}

// refusal is a change of one file, and words of the error that follows.
type refusal struct {
	name string
	data []byte
	want []string
}

// refuses opens and reads a folder with one file changed at a time.
func refuses(t *testing.T, uri string, good map[string][]byte, refusals []refusal) {
	t.Helper()
	for _, c := range refusals {
		dir := writeTree(t, change(good, c.name, c.data))
		err := readAll(t, strings.ReplaceAll(uri, "%s", dir))
		if err == nil {
			t.Errorf("%s %.60q is read", c.name, c.data)
			continue
		}
		if !errors.Is(err, ErrData) {
			t.Errorf("%v is no ErrData", err)
		}
		for _, part := range c.want {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("%s: %q lacks %q", c.name, err, part)
			}
		}
	}
}

// writeTree writes files, also in folders.
func writeTree(t testing.TB, files map[string][]byte) string {
	t.Helper()
	dir := t.TempDir()
	for name, data := range files {
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

// fuzzTree reads a folder with one file of any content: any answer is right that is no
// panic, and an error that says the data is wrong.
func fuzzTree(t *testing.T, uri string, good map[string][]byte, name string, data []byte) {
	dir := writeTree(t, change(good, name, data))
	if err := readAll(t, strings.ReplaceAll(uri, "%s", dir)); err != nil && !errors.Is(err, ErrData) {
		t.Errorf("%v is no ErrData", err)
	}
}

// saint is path4 in the files of GraphSAINT, both directions of an edge stored.
func saint() map[string][]byte {
	return map[string][]byte{
		"adj_full.npz": saintMatrix("csr", ones),
		"feats.npy":    npyArray(npy.Float64, []int64{4, 2}, []float64{1, 0.5, 0, 2, -1, 0, 3, 4}),
		"class_map.json": []byte(`{"3": 7, "0": 7,
			"1": 12, "2": 12}`),
		"role.json": []byte(`{"te": [3, 2], "tr": [0], "va": [1]}`),
	}
}

// ones are the values of a matrix without weights.
var ones = npyArray(npy.Bool, []int64{6}, []byte{1, 1, 1, 1, 1, 1})

func saintMatrix(format string, values []byte) []byte {
	return zipped(zip.Deflate,
		member{"indices.npy", vec[int32](1, 0, 2, 1, 3, 2)}, member{"indptr.npy", vec[int32](0, 1, 3, 5, 6)},
		member{"format.npy", withDescr(npyArray(npy.Int8, nil, [3]byte([]byte(format))), "|i1", "|S3")},
		member{"shape.npy", vec[int64](4, 4)}, member{"data.npy", values})
}

func TestGraphSAINT(t *testing.T) {
	good := saint()
	d := open(t, "graphsaint:"+writeTree(t, good), Options{})
	isPath4(t, d)
	if info := d.Info(); info.EdgeHint != 6 || !info.HasLabels || !info.HasSplits || info.NumFeatures != 2 || !slices.Equal(info.Classes, []string{"7", "12"}) {
		t.Errorf("%+v", info)
	}
	for _, name := range []string{"feats.npy", "class_map.json", "role.json"} {
		isPath4(t, open(t, "graphsaint:"+writeTree(t, change(good, name, nil)), Options{}))
	}
	refuses(t, "graphsaint:%s", good, []refusal{
		{"adj_full.npz", nil, []string{"no adj_full.npz", "role.json"}},
		{"adj_full.npz", saintMatrix("bsr", ones), []string{"adj_full.npz", `"bsr"`, "tocsr"}},
		{"adj_full.npz", zipped(zip.Store, member{"row.npy", vec[int32](0)}), []string{"adj_full.npz", "no arrays data", "row"}},
		{"feats.npy", npyArray(npy.Float32, []int64{3, 2}, make([]float32, 6)), []string{"feats.npy", "3 rows", "4 nodes"}},
		{"class_map.json", []byte(`{"0": [1, 0]}`), []string{"class_map.json line 1 byte 7", "node 0", "several classes"}},
		{"class_map.json", []byte(`{"0": 1, "9": 1}`), []string{"class_map.json", "node id 9", "4 rows"}},
		{"class_map.json", []byte(`{"0": 1`), []string{"class_map.json", "ends too early"}},
		{"class_map.json", []byte(`{"0": true}`), []string{"class_map.json", "true"}},
		{"class_map.json", []byte(`[3]`), []string{"class_map.json", "object of node id to class"}},
		{"class_map.json", []byte(`{"0": 1} {}`), []string{"class_map.json", "behind the end"}},
		{"class_map.json", []byte(`{"0": ` + strings.Repeat("1", 3<<20)), []string{"class_map.json", "more than 1048576 bytes"}},
		{"role.json", []byte(`{"tr": [0], "train": [1]}`), []string{"role.json", `"train"`, "tr, va and te"}},
		{"role.json", []byte(`{"tr": [0], "tr": [1]}`), []string{"role.json", "twice"}},
		{"role.json", []byte(`{"tr": [4]}`), []string{"role.json", "node id 4"}},
		{"role.json", []byte(`{"tr": ["a"]}`), []string{"role.json", "found a"}},
		{"role.json", []byte(`{"tr": 3}`), []string{"role.json", "list of nodes"}},
	})
}

func FuzzGraphSAINT(f *testing.F) {
	good := saint()
	f.Add([]byte(`{"0": 3, "2": null}`))
	f.Add([]byte(`{"tr": [0], "te": [1, 3]}`))
	f.Add([]byte(`{}tr": [0]`))
	f.Fuzz(func(t *testing.T, data []byte) {
		fuzzTree(t, "graphsaint:%s", good, "class_map.json", data)
		fuzzTree(t, "graphsaint:%s", good, "role.json", data)
	})
}

// heterophilous is path4 in one archive with two splits; the second one equals that of path4.
func heterophilous(changed ...member) []byte {
	members := []member{
		{"node_features.npy", npyArray(npy.Float32, []int64{4, 2}, []float32{1, 0.5, 0, 2, -1, 0, 3, 4})},
		{"node_labels.npy", vec[int64](0, 1, 1, 0)},
		{"edges.npy", npyArray(npy.Int64, []int64{3, 2}, []int64{0, 1, 1, 2, 2, 3})},
		{"train_masks.npy", npyArray(npy.Bool, []int64{2, 4}, []byte{0, 0, 1, 1, 1, 0, 0, 0})},
		{"val_masks.npy", npyArray(npy.Bool, []int64{2, 4}, []byte{1, 0, 0, 0, 0, 1, 0, 0})},
		{"test_masks.npy", npyArray(npy.Bool, []int64{2, 4}, []byte{0, 1, 0, 0, 0, 0, 1, 1})},
	}
	for _, c := range changed {
		i := slices.IndexFunc(members, func(m member) bool { return m.name == c.name })
		switch {
		case i < 0:
			members = append(members, c)
		case c.data == nil:
			members = slices.Delete(members, i, i+1)
		default:
			members[i] = c
		}
	}
	return zipped(zip.Deflate, members...)
}

func TestHeterophilous(t *testing.T) {
	dir := writeTree(t, map[string][]byte{
		"g.npz":    heterophilous(),
		"wide.npz": heterophilous(member{"val_masks.npy", npyArray(npy.Uint8, []int64{4, 2}, []byte{1, 0, 0, 1, 0, 0, 0, 0})}),
		"one.npz": heterophilous(member{"train_masks.npy", npyArray(npy.Bool, []int64{4}, []byte{1, 0, 0, 0})},
			member{"val_masks.npy", npyArray(npy.Bool, []int64{4}, []byte{0, 1, 0, 0})}, member{"test_masks.npy", npyArray(npy.Bool, []int64{4}, []byte{0, 0, 1, 1})}),
		"pyg.npz": zipped(zip.Deflate, member{"x.npy", npyArray(npy.Float32, []int64{4, 2}, []float32{1, 0.5, 0, 2, -1, 0, 3, 4})}, member{"y.npy", vec[int64](0, 1, 1, 0)},
			member{"edge_index.npy", npyArray(npy.Int64, []int64{2, 3}, []int64{0, 1, 2, 1, 2, 3})}, member{"train_mask.npy", npyArray(npy.Bool, []int64{4}, []byte{1, 0, 0, 0})},
			member{"val_mask.npy", npyArray(npy.Bool, []int64{4}, []byte{0, 1, 0, 0})}, member{"test_mask.npy", npyArray(npy.Bool, []int64{4}, []byte{0, 0, 1, 1})}),
		"unlabelled.npz": heterophilous(member{"node_labels.npy", nil}, member{"train_masks.npy", nil}, member{"val_masks.npy", nil}, member{"test_masks.npy", nil}),
	})
	for _, name := range []string{"g.npz?split=1", "wide.npz?split=1", "one.npz", "one.npz?split=0", "pyg.npz", "unlabelled.npz"} {
		d := open(t, "npz:"+dir+"/"+name, Options{})
		isPath4(t, d)
		if info := d.Info(); info.NumNodes != 4 || info.SparseFeatures || info.Identity != "npz:"+name || info.HasSplits != (name != "unlabelled.npz") || len(Notes(d)) != 0 {
			t.Errorf("%s: %+v, %v", name, info, Notes(d))
		}
	}
	d := open(t, "npz:"+dir+"/g.npz", Options{})
	splits, err := readSplits(d)
	if want := (map[uint32]Split{2: Train, 3: Train, 0: Valid, 1: Test}); err != nil || !maps.Equal(splits, want) {
		t.Errorf("the first split: %v, %v", splits, err)
	}
	if notes := Notes(d); len(notes) != 1 || !strings.Contains(notes[0].Text, "2 splits, and number 0 is read") || !strings.Contains(notes[0].Text, "split=N") {
		t.Errorf("%v", notes)
	}
	for uri, want := range map[string]string{"g.npz?split=2": "2 splits, numbered from 0: split=2", "unlabelled.npz?split=0": "--split"} {
		if err := readAll(t, "npz:"+dir+"/"+uri); !errors.Is(err, ErrData) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", uri, err)
		}
	}
	file := func(m member) []byte { return heterophilous(m) }
	refuses(t, "npz:%s/g.npz", nil, []refusal{
		{"g.npz", file(member{"edges.npy", npyArray(npy.Int64, []int64{2, 2}, []int64{0, 1, 2, 4})}), []string{"edges", "edge 1", "node id 4", "4 rows"}},
		{"g.npz", file(member{"edges.npy", nil}), []string{"g.npz", "array edges", "node_labels"}},
		{"g.npz", file(member{"node_features.npy", npyArray(npy.Float32, []int64{2, 2}, make([]float32, 4))}), []string{"node_features", "2 rows", "4 nodes"}},
		{"g.npz", file(member{"val_masks.npy", npyArray(npy.Bool, []int64{1, 4}, make([]byte, 4))}), []string{"val_masks", "1 splits, another mask has 2"}},
		{"g.npz", file(member{"val_masks.npy", npyArray(npy.Bool, []int64{3}, make([]byte, 3))}), []string{"val_masks", "shape [3]", "4 nodes"}},
		{"g.npz", file(member{"val_masks.npy", npyArray(npy.Float32, []int64{4}, []float32{0, .5, 0, 0})}), []string{"val_masks", "row 1: is no whole number"}},
		{"g.npz", file(member{"val_masks.npy", npyArray(npy.Int8, []int64{2, 4}, []byte{0, 0, 2, 0, 0, 0, 0, 0})}), []string{"val_masks", "row 2: holds \"2\"", "boolean"}},
	})
}

func FuzzHeterophilous(f *testing.F) {
	f.Add(heterophilous())
	f.Add(zipped(zip.Store, member{"edges.npy", npyArray(npy.Int8, []int64{2, 1}, []int8{0, 1})}, member{"train_mask.npy", npyArray(npy.Bool, []int64{2}, []byte{0, 1})}))
	f.Fuzz(func(t *testing.T, data []byte) { fuzzFile(t, "g.npz", "npz:g.npz?split=1", data) })
}

// TestSeveralSplits picks a split from each form that can hold several.
func TestSeveralSplits(t *testing.T) {
	mask := func(values ...byte) []byte { return npyArray(npy.Bool, []int64{4}, values) }
	dir := writeTree(t, map[string][]byte{
		"e.txt":    []byte("0 1\n1 2\n2 3\n"),
		"rows.npy": npyArray(npy.Int8, []int64{2, 4}, []int8{3, 3, 3, 3, 1, 2, 3, 3}),
		"cols.npy": npyArray(npy.Int8, []int64{4, 3}, []int8{0, 1, 0, 0, 2, 0, 0, 3, 0, 1, 3, 0}),
		"mask.npz": zipped(zip.Deflate, member{"train_mask.npy", mask(1, 0, 0, 0)}, member{"val_mask.npy", mask(0, 1, 0, 0)}, member{"test_mask.npy", mask(0, 0, 1, 1)}),
		"list.npz": zipped(zip.Store, member{"train_idx.npy", vec[int64](0)}, member{"valid_idx.npy", vec[int32](1)}, member{"test_idx.npy", vec[int64](3, 2)}),
		"bool.npz": zipped(zip.Store, member{"train.npy", mask(1, 0, 0, 0)}, member{"val.npy", vec[int32](1)}, member{"test.npy", npyArray(npy.Int64, []int64{2, 1}, []int64{3, 2})}),
	})
	for _, query := range []string{"rows.npy&split=1", "cols.npy&split=1", "mask.npz", "list.npz", "bool.npz", "mask.npz&nodes=4", "list.npz&nodes=4"} {
		d := open(t, "edges:"+dir+"/e.txt?splits="+dir+"/"+query, Options{})
		if isPath4(t, d); !d.Info().HasSplits || strings.Contains(query, "split=") && !strings.HasSuffix(d.Info().Identity, "split=1") {
			t.Errorf("%s: %+v", query, d.Info())
		}
	}
	if notes := Notes(open(t, "edges:"+dir+"/e.txt?splits="+dir+"/cols.npy", Options{})); len(notes) != 1 || !strings.Contains(notes[0].Text, "3 splits, and number 0 is read") {
		t.Errorf("%v", notes)
	}
	for query, want := range map[string]string{
		"splits=%s/rows.npy&split=2": "2 splits, numbered from 0", "splits=%s/mask.npz&nodes=3": "shape [4]", "splits=%s/list.npz&split=1": "one split",
		"splits=%s/rows.npy&nodes=3": "4 rows", "split=1": "splits=FILE is missing", "splits=%s/none.npz": "none.npz",
	} {
		if err := readAll(t, "edges:"+dir+"/e.txt?"+strings.ReplaceAll(query, "%s", dir)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", query, err)
		}
	}
}

// fuzzFolder is fuzzTree for a file that names others: they may be missing, or folders.
func fuzzFolder(t *testing.T, uri string, good map[string][]byte, name string, data []byte) {
	dir := writeTree(t, change(good, name, data))
	err := readAll(t, strings.ReplaceAll(uri, "%s", dir))
	var path *os.PathError
	if err != nil && !errors.Is(err, ErrData) && !errors.As(err, &path) && !strings.Contains(err.Error(), "is a directory") && !strings.Contains(err.Error(), "not a regular file") {
		t.Errorf("%v is no ErrData", err)
	}
}
