package dataset

import (
	"archive/zip"
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ndls/dataset/npy"
)

const pygFiles = "testdata/pyg/" // written by make.py there

func TestPyG(t *testing.T) {
	for _, name := range []string{"data.pt", "dict.pt", "dataset.pt", "tuple.pt", "collated.pt", "splits.pt?split=1", "pairs.pt"} {
		d := open(t, "pyg:"+pygFiles+name, Options{})
		isPath4(t, d)
		info := d.Info()
		whole := name != "pairs.pt"
		if info.NumNodes != 4 || info.NumFeatures != 2 || info.HasLabels != whole || info.HasSplits != whole || info.EdgeHint != 6 || info.Identity != "pyg:"+name {
			t.Errorf("%s: %+v", name, info)
		}
		weighted := strings.HasPrefix(name, "splits")
		if notes := Notes(d); (len(notes) > 0) != weighted || weighted && (!notes[0].Ignored || !strings.Contains(notes[0].Text, "edge_weight")) {
			t.Errorf("%s: %v", name, notes)
		}
	}
	if d := open(t, "pyg:"+pygFiles+"data.pt", Options{NoFeatures: true}); d.Info().NumFeatures != 0 {
		t.Errorf("%+v", d.Info())
	}
	if notes := Notes(open(t, "pyg:"+pygFiles+"splits.pt", Options{})); len(notes) != 2 || !strings.Contains(notes[0].Text, "2 splits") {
		t.Errorf("%v", notes)
	}
	for name, want := range map[string]string{
		"two.pt": "2 graphs", "hetero.pt": "HeteroData", "tensor.pt": "one tensor", "view.pt": "x: is a view", "columns.pt": "x: is stored column by column",
		"old.pt": "since version 1.6", "class.pt": "torch.device", "make.py": "since version 1.6", "data.pt?split=1": "one split: leave split=1 out", "pairs.pt?split=0": "no split", "split_dict.pt": "no edge_index (it has train",
	} {
		if err := readAll(t, "pyg:"+pygFiles+name); !errors.Is(err, ErrData) || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), strings.SplitN(name, "?", 2)[0]) {
			t.Errorf("%s: %v, want %q", name, err, want)
		}
	}
}

// TestPyGWeights reads weights from tensors of several types and shapes, whole and in parts.
func TestPyGWeights(t *testing.T) {
	for _, name := range []string{"edge_weight", "edge_attr", "half"} {
		for _, query := range []string{"?weight=" + name, "?weight=" + name + "&repeated=sum"} {
			d := open(t, "pyg:"+pygFiles+"weights.pt"+query, Options{})
			info := d.Info()
			if !info.Weighted || info.Identity != "pyg:weights.pt"+query || !IsWeighted(info.Identity) || info.AddRepeated != strings.Contains(query, "sum") {
				t.Errorf("%+v", info)
			}
			isPath4(t, d)
			for _, parts := range []int{1, 4} {
				if name == "half" {
					if got, err := weightsOf(t, d, parts); err != nil || len(got) != 6 || got[0] != "0 1 0.5" || got[5] != "3 2 65504" {
						t.Errorf("%v, %v", got, err)
					}
					continue
				}
				isWeightedPath4(t, name, d, parts)
			}
		}
	}
	d := open(t, "pyg:"+pygFiles+"weights.pt", Options{})
	if d.Info().Weighted || !slices.ContainsFunc(Notes(d), func(n Note) bool { return n.Ignored && strings.Contains(n.Text, "weight=edge_attr reads weights") }) {
		t.Errorf("%+v, %v", d.Info(), Notes(d))
	}
	for query, want := range map[string]string{
		"weight=none": `no tensor "none" for weight=: it has x, edge_index`, "weight=wide": "shape [6 2], and there are 6 edges", "weight=short": "shape [5], and there are 6 edges",
		"weight=negative": "negative: edge 4: the weight is -1", "weight=nan": "nan: edge 5: the weight is NaN", "weight=bools": "booleans", "weight=num_nodes": "num_nodes",
	} {
		if err := readAll(t, "pyg:"+pygFiles+"weights.pt?"+query); !errors.Is(err, ErrData) || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "weights.pt") {
			t.Errorf("%s: %v, want %q", query, err, want)
		}
	}
	if _, err := Open(t.Context(), "pyg:"+pygFiles+"weights.pt?repeated=sum", Options{}); !errors.Is(err, ErrURI) {
		t.Errorf("%v is no ErrURI", err)
	}
}

// TestPyGPartition reads a graph that PyG has cut into parts: from the folder of the parts, and
// from the one above with labels and splits.
func TestPyGPartition(t *testing.T) {
	const parts = "pyg:" + pygFiles + "parts"
	for uri, labelled := range map[string]bool{parts: true, parts + "/path4-partitions": false} {
		d := open(t, uri, Options{})
		isPath4(t, d)
		if info := d.Info(); info.NumNodes != 4 || info.NumFeatures != 2 || info.EdgeHint != 6 || info.HasLabels != labelled || info.HasSplits != labelled || info.Weighted {
			t.Errorf("%s: %+v", uri, info)
		}
		if notes := Notes(d); len(notes) != 1 || !notes[0].Ignored || !strings.Contains(notes[0].Text, "weight=edge_attr reads weights") {
			t.Errorf("%v", notes)
		}
		inputs, err := Files(d)
		if want := map[bool]int{true: 13, false: 6}[labelled]; err != nil || len(inputs) != want {
			t.Errorf("%d files of %d: %v, %v", len(inputs), want, inputs, err)
		}
		d = open(t, uri+"?weight=edge_attr", Options{NoFeatures: true})
		if info := d.Info(); info.NumFeatures != 0 || !info.Weighted || !IsWeighted(info.Identity) {
			t.Errorf("%+v", info)
		}
		for _, share := range []int{1, 2, 5} {
			isWeightedPath4(t, uri, d, share)
		}
	}
}

// partitioned are the files of the graph above.
func partitioned(t testing.TB) map[string][]byte {
	files := map[string][]byte{}
	root := pygFiles + "parts"
	if err := filepath.WalkDir(root, func(path string, e os.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		files[strings.TrimPrefix(path, root+"/")] = readFile(t, path)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return files
}

func TestBadPyGPartition(t *testing.T) {
	good := partitioned(t)
	const p = "path4-partitions/"
	two := change(good, "other-partitions/META.json", []byte("{}"))
	refuses(t, "pyg:%s", good, []refusal{
		{p + "META.json", nil, []string{"has 0 folders NAME-partitions"}},
		{p + "META.json", []byte(`{"num_parts": 2, "is_hetero": true, "is_sorted": true}`), []string{"META.json", "is_hetero"}},
		{p + "META.json", []byte(`{"num_parts": 2, "is_hetero": false}`), []string{"META.json", "PyG 2.5"}},
		{p + "META.json", []byte(`{"num_parts": 0, "is_sorted": true}`), []string{"META.json", "num_parts is 0"}},
		{p + "META.json", []byte(`{"num_parts": "2"}`), []string{"META.json", "num_parts"}},
		{p + "META.json", []byte(`{"num_parts": 1, "is_sorted": true}`), []string{"node_feats.pt", "2 rows", "4 nodes"}},
		{p + "part_1/graph.pt", good[p+"part_1/node_feats.pt"], []string{"part_1/graph.pt", "size"}},
		{p + "part_1/graph.pt", readFile(t, pygFiles+"tensor.pt"), []string{"part_1/graph.pt", "size"}},
		{p + "part_1/graph.pt", nil, []string{"part_1/graph.pt: is missing", "2 parts"}},
		{p + "part_0/node_feats.pt", nil, []string{"node_feats.pt", "2 rows", "4 nodes"}},
		{"path4-label/label.pt", readFile(t, pygFiles+"parts/path4-test-partitions/partition0.pt"), []string{"label.pt", "1 rows", "4 nodes"}},
		{"path4-val-partitions/partition1.pt", readFile(t, pygFiles+"tensor.pt"), []string{"partition1.pt", "valid nodes"}},
	})
	refuses(t, "pyg:%s", two, []refusal{{"x", []byte{}, []string{"has 2 folders"}}})
	refuses(t, "pyg:%s?weight=edge_attr", good, []refusal{
		{p + "part_1/edge_feats.pt", good[p+"part_0/edge_feats.pt"], []string{"edge_attr", "shape [2 1], and there are 4 edges"}},
		{p + "part_1/edge_feats.pt", nil, []string{"part_1/edge_feats.pt: is missing", "2 parts"}},
		{p + "part_1/edge_feats.pt", good[p+"part_0/graph.pt"], []string{"part_1/edge_feats.pt", "weight="}},
	})
	if _, err := Open(t.Context(), "pyg:"+pygFiles+"parts?split=1", Options{}); !errors.Is(err, ErrURI) {
		t.Errorf("%v is no ErrURI", err)
	}
}

func FuzzPyGPartition(f *testing.F) {
	good := partitioned(f)
	f.Add([]byte(`{"num_parts": 3, "is_sorted": true}`))
	f.Add([]byte(`{"num_parts": 4096, "is_sorted": true}`))
	f.Fuzz(func(t *testing.T, data []byte) { fuzzTree(t, "pyg:%s", good, "path4-partitions/META.json", data) })
}

// FuzzPyGPart changes the pickle of a file of a part.
func FuzzPyGPart(f *testing.F) {
	good := partitioned(f)
	files := []string{"path4-partitions/part_1/graph.pt", "path4-partitions/part_1/node_feats.pt", "path4-partitions/part_1/edge_feats.pt"}
	for i, name := range files {
		_ = repack(f, good[name], func(member string, data []byte) []byte {
			if strings.HasSuffix(member, "data.pkl") {
				f.Add(uint8(i), data)
			}
			return data
		})
	}
	f.Fuzz(func(t *testing.T, which uint8, pkl []byte) {
		name := files[int(which)%len(files)]
		data := repack(t, good[name], func(member string, data []byte) []byte {
			if strings.HasSuffix(member, "data.pkl") {
				return append([]byte{}, pkl...)
			}
			return data
		})
		fuzzTree(t, "pyg:%s?weight=edge_attr", good, name, data)
	})
}

// repack changes the members of a zip archive.
func repack(t testing.TB, data []byte, change func(name string, data []byte) []byte) []byte {
	z, err := zip.NewReader(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		t.Fatal(err)
	}
	var members []member
	for _, f := range z.File {
		r, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		if content = change(f.Name, content); content != nil {
			members = append(members, member{f.Name, content})
		}
	}
	return zipped(zip.Store, members...)
}

func readFile(t testing.TB, path string) []byte {
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func TestBadPyG(t *testing.T) {
	good := readFile(t, pygFiles+"data.pt")
	with := func(end string, content []byte) []byte {
		return repack(t, good, func(name string, data []byte) []byte {
			if strings.HasSuffix(name, end) {
				return content
			}
			return data
		})
	}
	refuses(t, "pyg:%s/g.pt", nil, []refusal{
		{"g.pt", with("byteorder", []byte("big")), []string{"byteorder", `"big"`}},
		{"g.pt", with("data.pkl", nil), []string{"without data.pkl"}},
		{"g.pt", with("data/0", nil), []string{"g.pt x", "storage", "missing"}},
		{"g.pt", with("data/0", []byte{1}), []string{"g.pt x", "lie outside of the 1 bytes"}},
		{"g.pt", with("data.pkl", []byte("\x80\x02cos\nsystem\n.")), []string{"os.system", "tensors"}},
		{"g.pt", with("data.pkl", []byte("\x80\x02NQ.")), []string{"no storage"}},
		{"g.pt", with("data.pkl", []byte("\x80\x02]q\x00h\x00a.")), []string{"more than 16 objects in each other"}}, // a list that holds itself
		{"g.pt", with("data.pkl", []byte("\x80\x02}U\tnum_nodesK\x01"+strings.Repeat("2\x86", 60)+"s.")), []string{"num_nodes is a tuple of 2 items"}},
		{"g.pt", with("data.pkl", []byte("\x80\x02"+strings.Repeat("N2", 1<<21)+".")), []string{"too large", "torch.save({"}},
	})
	for i := 0; i < len(good); i += 7 {
		broken := bytes.Clone(good)
		broken[i] ^= 0xff
		dir := writeFiles(t, map[string][]byte{"g.pt": broken})
		if err := readAll(t, "pyg:"+dir+"/g.pt"); err != nil && !errors.Is(err, ErrData) {
			t.Errorf("byte %d: %v is no ErrData", i, err)
		}
	}
}

func FuzzPyG(f *testing.F) {
	good := readFile(f, pygFiles+"dataset.pt")
	_ = repack(f, good, func(name string, data []byte) []byte {
		if strings.HasSuffix(name, "data.pkl") {
			f.Add(data)
		}
		return data
	})
	f.Fuzz(func(t *testing.T, pkl []byte) {
		data := repack(t, good, func(name string, data []byte) []byte {
			if strings.HasSuffix(name, "data.pkl") {
				return append([]byte{}, pkl...)
			}
			return data
		})
		fuzzFile(t, "g.pt", "pyg:g.pt", data)
	})
}

// mag is path4 in the files of MAG240M.
func mag(t testing.TB) map[string][]byte {
	const p = "mag240m_kddcup2021/"
	return map[string][]byte{
		p + "processed/paper___cites___paper/edge_index.npy": npyArray(npy.Int64, []int64{2, 3}, []int64{0, 2, 3, 1, 1, 2}),
		p + "processed/paper/node_feat.npy":                  npyArray(npy.Float16, []int64{4, 2}, []uint16{0x3c00, 0x3800, 0, 0x4000, 0xbc00, 0, 0x4200, 0x4400}),
		p + "processed/paper/node_label.npy":                 vec[float32](3, 9, 9, 3),
		p + "split_dict.pt":                                  readFile(t, pygFiles+"split_dict.pt"),
	}
}

func TestMAG240M(t *testing.T) {
	good := mag(t)
	dir := writeTree(t, good)
	for _, dir := range []string{dir, filepath.Join(dir, "mag240m_kddcup2021")} {
		d := open(t, "mag240m:"+dir, Options{})
		isPath4(t, d)
		if info := d.Info(); info.NumNodes != 4 || info.NumFeatures != 2 || !info.HasLabels || !info.HasSplits || info.EdgeHint != 3 || !d.Info().CutsFeatures {
			t.Errorf("%+v", info)
		}
	}
	for name := range good {
		if !strings.Contains(name, "edge_index") {
			isPath4(t, open(t, "mag240m:"+writeTree(t, change(good, name, nil)), Options{}))
		}
	}
	const p = "mag240m_kddcup2021/"
	refuses(t, "mag240m:%s", good, []refusal{
		{p + "processed/paper___cites___paper/edge_index.npy", nil, []string{"paper___cites___paper", "unpacks to"}},
		{p + "processed/paper___cites___paper/edge_index.npy", npyArray(npy.Int64, []int64{2, 1}, []int64{0, 4}), []string{"edge 0", "node id 4", "node_label.npy has 4 rows"}},
		{p + "processed/paper/node_feat.npy", npyArray(npy.Float16, []int64{3, 1}, []uint16{0, 0, 0}), []string{"node_feat.npy", "3 rows", "4 nodes"}},
		{p + "processed/paper/node_feat.npy", npyArray(npy.Float16, []int64{4, 1}, []uint16{0, 0, 0x7c00, 0}), []string{"node_feat.npy: row 2", "finite"}},
		{p + "split_dict.pt", readFile(t, pygFiles+"dict.pt"), []string{"split_dict.pt", "none of the lists"}},
	})
}

// igb is a graph of 4 papers in the files of IGB, features and labels without header.
func igb() map[string][]byte {
	features := make([]float32, 4*1024)
	for i, row := range path4.features {
		copy(features[1024*i:], row[:])
	}
	const p = "large/processed/"
	return map[string][]byte{
		p + "paper__cites__paper/edge_index.npy": npyArray(npy.Int32, []int64{3, 2}, []int32{0, 1, 2, 1, 3, 2}),
		p + "paper/node_feat.npy":                floats(features...),
		p + "paper/node_label_19.npy":            floats(0, 1, 1, 0),
		p + "paper/node_label_2K.npy":            vec[float32](5, 2000, 7, 1),
	}
}

// floats are numbers without a header.
func floats(values ...float32) []byte {
	b := npyArray(npy.Float32, []int64{int64(len(values))}, values)
	return b[len(b)-4*len(values):]
}

func TestIGB(t *testing.T) {
	good := igb()
	const p = "large/processed/"
	half := make([]uint16, 4*1024)
	for i, row := range [][2]uint16{{0x3c00, 0x3800}, {0, 0x4000}, {0xbc00, 0}, {0x4200, 0x4400}} {
		copy(half[1024*i:], row[:])
	}
	raw := npyArray(npy.Uint16, []int64{4 * 1024}, half)
	pairs := npyArray(npy.Int32, []int64{6}, []int32{0, 1, 2, 1, 3, 2})
	for name, files := range map[string]map[string][]byte{
		"raw": good, "half": change(good, p+"paper/node_feat.npy", raw[len(raw)-2*len(half):]),
		"header":  change(good, p+"paper/node_feat.npy", npyArray(npy.Float16, []int64{4, 1024}, half)),
		"labels":  change(good, p+"paper/node_label_19.npy", vec[int64](0, 1, 1, 0)),
		"rawedge": change(good, p+"paper__cites__paper/edge_index.npy", pairs[len(pairs)-24:]),
	} {
		d := open(t, "igb:"+writeTree(t, files)+",size=large,nodes=4", Options{})
		if info := d.Info(); info.NumNodes != 4 || info.NumFeatures != 1024 || !d.Info().CutsFeatures || len(info.Classes) != 2 || info.EdgeHint != 3 {
			t.Errorf("%s: %+v", name, info)
		}
		rows, err := readFeatures(d)
		if err != nil || len(rows) != 4 || rows[3].values[0] != 3 || rows[3].values[1] != 4 || rows[2].values[0] != -1 || len(rows[2].values) != 1 {
			t.Errorf("%s: %v, %v", name, rows, err)
		}
		edges, err := readEdges(d, 2)
		if err != nil || len(edges) != 3 || edges[2] != (Edge{U: 3, V: 2}) {
			t.Errorf("%s: %v, %v", name, edges, err)
		}
		splits, err := readSplits(d)
		if err != nil || len(splits) != 4 || splits[1] != Train || splits[2] != Test {
			t.Errorf("%s: %v, %v", name, splits, err)
		}
	}
	dir := writeTree(t, good)
	if d := open(t, "igb:"+dir+",classes=2983,size=large,nodes=4", Options{}); len(d.Info().Classes) != 4 || !strings.HasSuffix(d.Info().Identity, ",size=large,classes=2983,nodes=4") {
		t.Errorf("%+v", d.Info())
	}
	refuses(t, "igb:%s,size=large,nodes=4", good, []refusal{
		{p + "paper/node_feat.npy", floats(1, 2), []string{"node_feat.npy", "8 bytes", "16384 bytes of float32 or 8192 of float16"}},
		{p + "paper/node_feat.npy", []byte("abc"), []string{"node_feat.npy", "3 bytes"}},
		{p + "paper/node_feat.npy", npyArray(npy.Float32, []int64{3, 1024}, make([]float32, 3*1024)), []string{"3 rows", "4 nodes"}},
		{p + "paper/node_label_19.npy", floats(1), []string{"node_label_19.npy", "1 labels"}},
		{p + "paper/node_label_19.npy", floats(1, 0.5, 1, 1), []string{"node_label_19.npy row 1", "whole number"}},
		{p + "paper__cites__paper/edge_index.npy", npyArray(npy.Int32, []int64{1, 2}, []int32{0, 4}), []string{"edge 0", "size large has 4 papers"}},
		{p + "paper__cites__paper/edge_index.npy", floats(1, 2, 3), []string{"edge_index.npy", "3 numbers"}},
	})
	for uri, want := range map[string]string{
		"igb:" + dir: "size= is missing", "igb:" + dir + ",size=huge": "size=huge", "igb:" + dir + ",size=tiny": "tiny/processed", "igb:" + dir + ",size=large,classes=3": "19 or of 2983",
		"igb:" + dir + ",size=large": "409600000000 bytes of float32", "igb:" + dir + ",size=full,nodes=0": "nodes=0", "igb:,size=full": "path is missing",
	} {
		if err := readAll(t, uri); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", uri, err)
		}
	}
}

func FuzzMemoryMaps(f *testing.F) {
	papers, citations := igb(), mag(f)
	f.Add(floats(1, 2, 3, 4))
	f.Add(npyArray(npy.Int32, []int64{1, 2}, []int32{0, 3}))
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, name := range []string{"paper/node_feat.npy", "paper/node_label_19.npy", "paper__cites__paper/edge_index.npy"} {
			fuzzTree(t, "igb:%s,size=large,nodes=4", papers, "large/processed/"+name, data)
		}
		fuzzTree(t, "mag240m:%s", citations, "mag240m_kddcup2021/processed/paper/node_label.npy", data)
		fuzzTree(t, "mag240m:%s", citations, "mag240m_kddcup2021/split_dict.pt", data)
	})
}
