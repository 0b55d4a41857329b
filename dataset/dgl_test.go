package dataset

import (
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow/go/v14/arrow"
	arrowarray "github.com/apache/arrow/go/v14/arrow/array"

	"ndls/dataset/npy"
)

const dglMetadata = `{
  "graph_name": "mag", "node_type": ["author", "paper"], "num_nodes_per_type": [9, 4],
  "edge_type": ["author:writes:paper", "paper:cites:paper"],
  "edges": {
    "author:writes:paper": {"format": {"name": "csv", "delimiter": " "}, "data": ["none.csv"]},
    "paper:cites:paper": {"format": {"name": "csv", "delimiter": " "}, "data": ["e0.csv", "e1.csv"]}
  },
  "node_data": {"paper": {
    "feat": {"format": {"name": "numpy"}, "data": ["x0.npy", "x1.npy"]},
    "label": {"format": {"name": "numpy"}, "data": ["y0.npy", "y1.npy"]},
    "train_mask": {"format": {"name": "numpy"}, "data": ["train.npy"]},
    "val_mask": {"format": {"name": "numpy"}, "data": ["val.npy"]},
    "test_mask": {"format": {"name": "numpy"}, "data": ["test0.npy", "test1.npy"]},
    "year": {"format": {"name": "numpy"}, "data": ["none.npy"]}
  }}
}`

// dglFiles is path4 as the papers of a graph in chunks.
func dglFiles(t testing.TB) map[string][]byte {
	table := arrow.NewSchema([]arrow.Field{{Name: "a", Type: arrow.PrimitiveTypes.Int64}, {Name: "b", Type: arrow.PrimitiveTypes.Int64}}, nil)
	lists := func(valid []bool, values ...float32) []byte {
		return parquetOf(t, arrow.NewSchema([]arrow.Field{{Name: "feat", Type: arrow.FixedSizeListOf(2, arrow.PrimitiveTypes.Float32), Nullable: true}}, nil), func(b *arrowarray.RecordBuilder) {
			l := b.Field(0).(*arrowarray.FixedSizeListBuilder)
			l.AppendValues(valid)
			l.ValueBuilder().(*arrowarray.Float32Builder).AppendValues(values, nil)
		})
	}
	return map[string][]byte{
		"metadata.json": []byte(dglMetadata), "e0.csv": []byte("0 1\n2 1\n"), "e1.csv": []byte("3 2\n"),
		"e.npy": npyArray(npy.Int64, []int64{3, 2}, []int64{0, 1, 1, 2, 2, 3}), "e.tsv": []byte("0|1\n1|2\n2|3\n"),
		"e.parquet": parquetOf(t, table, func(b *arrowarray.RecordBuilder) {
			b.Field(0).(*arrowarray.Int64Builder).AppendValues([]int64{0, 1, 2}, nil)
			b.Field(1).(*arrowarray.Int64Builder).AppendValues([]int64{1, 2, 3}, nil)
		}),
		"x0.parquet": lists([]bool{true, true, true}, 1, 0.5, 0, 2, -1, 0), "x1.parquet": lists([]bool{true}, 3, 4),
		"wide.parquet": parquetOf(t, arrow.NewSchema([]arrow.Field{{Name: "f0", Type: arrow.PrimitiveTypes.Int32}, {Name: "f1", Type: arrow.PrimitiveTypes.Float64}}, nil), func(b *arrowarray.RecordBuilder) {
			b.Field(0).(*arrowarray.Int32Builder).AppendValues([]int32{1, 0, -1, 3}, nil)
			b.Field(1).(*arrowarray.Float64Builder).AppendValues([]float64{0.5, 2, 0, 4}, nil)
		}),
		"y.parquet": parquetOf(t, arrow.NewSchema([]arrow.Field{{Name: "label", Type: arrow.PrimitiveTypes.Int64}}, nil), func(b *arrowarray.RecordBuilder) {
			b.Field(0).(*arrowarray.Int64Builder).AppendValues([]int64{5, 6, 6, 5}, nil)
		}),
		"train.parquet": parquetOf(t, arrow.NewSchema([]arrow.Field{{Name: "train_mask", Type: arrow.FixedWidthTypes.Boolean}}, nil), func(b *arrowarray.RecordBuilder) {
			b.Field(0).(*arrowarray.BooleanBuilder).AppendValues([]bool{true, false, false, false}, nil)
		}),
		"x0.npy": npyArray(npy.Float32, []int64{3, 2}, []float32{1, 0.5, 0, 2, -1, 0}), "x1.npy": npyArray(npy.Float64, []int64{1, 2}, []float64{3, 4}),
		"y0.npy": vec[int64](5), "y1.npy": vec[float32](6, 6, 5),
		"train.npy": npyArray(npy.Bool, []int64{4}, []byte{1, 0, 0, 0}), "val.npy": npyArray(npy.Int8, []int64{4}, []byte{0, 1, 0, 0}),
		"x0.csv": []byte("1,0.5\n0,2\n-1,0\n"), "x1.csv": []byte("3e0,\"4\""), "y.csv": []byte("5\n6\n6\n5\n"), "train.csv": []byte("true\nfalse\nFalse\n0\n"),
		"test0.npy": npyArray(npy.Bool, []int64{2}, []byte{0, 0}), "test1.npy": npyArray(npy.Bool, []int64{2}, []byte{1, 1}),
	}
}

func edit(files map[string][]byte, name, from, to string) map[string][]byte {
	if !strings.Contains(string(files[name]), from) {
		panic(from)
	}
	return change(files, name, []byte(strings.Replace(string(files[name]), from, to, 1)))
}

func TestDGL(t *testing.T) {
	good := dglFiles(t)
	cites := `"format": {"name": "csv", "delimiter": " "}, "data": ["e0.csv", "e1.csv"]`
	for name, files := range map[string]map[string][]byte{
		"csv": good, "numpy": edit(good, "metadata.json", cites, `"format": {"name": "numpy"}, "data": ["e.npy"]`),
		"parquet":   edit(good, "metadata.json", cites, `"format": {"name": "parquet"}, "data": ["e.parquet"]`),
		"delimiter": edit(good, "metadata.json", cites, `"format": {"name": "csv", "delimiter": "|"}, "data": ["e.tsv"]`),
		"data in parquet": edit(edit(edit(good, "metadata.json", `"numpy"}, "data": ["x0.npy", "x1.npy"]`, `"parquet"}, "data": ["x0.parquet", "x1.parquet"]`),
			"metadata.json", `"numpy"}, "data": ["y0.npy", "y1.npy"]`, `"parquet"}, "data": ["y.parquet"]`), "metadata.json", `"numpy"}, "data": ["train.npy"]`, `"parquet"}, "data": ["train.parquet"]`),
		"data in csv": edit(edit(edit(good, "metadata.json", `"numpy"}, "data": ["x0.npy", "x1.npy"]`, `"csv", "delimiter": ","}, "data": ["x0.csv", "x1.csv"]`),
			"metadata.json", `"numpy"}, "data": ["y0.npy", "y1.npy"]`, `"csv"}, "data": ["y.csv"]`), "metadata.json", `"numpy"}, "data": ["train.npy"]`, `"csv"}, "data": ["train.csv"]`),
		"columns in parquet": edit(good, "metadata.json", `"numpy"}, "data": ["x0.npy", "x1.npy"]`, `"parquet"}, "data": ["wide.parquet"]`),
		"counts":             edit(good, "metadata.json", `"num_nodes_per_type": [9, 4]`, `"num_nodes_per_chunk": [[9, 0], [1, 3]]`),
	} {
		for _, query := range []string{"", "?relation=paper:cites:paper&features=feat&labels=label"} {
			d := open(t, "dgl:"+writeTree(t, files)+query, Options{})
			isPath4(t, d)
			info := d.Info()
			if info.NumNodes != 4 || info.NumFeatures != 2 || !info.HasSplits || !slices.Equal(info.Classes, []string{"5", "6"}) || !strings.HasSuffix(info.Identity, query) {
				t.Errorf("%s: %+v", name, info)
			}
			first, err := d.Edges(t.Context(), Share{First: 0, Last: 1, Of: 2})
			if err != nil {
				t.Fatal(err)
			}
			if n, err := first.Read(make([]Edge, 9), nil); name == "csv" && (err != nil || n != 2) {
				t.Errorf("%s: %d edges in the first half, %v", name, n, err)
			}
			_ = first.Close()
			if notes := Notes(d); len(notes) < 2 || !strings.Contains(notes[0].Text, "paper:cites:paper are read") {
				t.Errorf("%s: %v", name, notes)
			}
		}
	}
	meta := func(from, to string) refusal {
		return refusal{"metadata.json", edit(good, "metadata.json", from, to)["metadata.json"], nil}
	}
	with := func(r refusal, want ...string) refusal {
		r.want = want
		return r
	}
	refuses(t, "dgl:%s", good, []refusal{
		{"metadata.json", nil, []string{"no metadata.json"}},
		{"metadata.json", []byte("{\n]"), []string{"metadata.json", "byte 3", "JSON"}},
		{"metadata.json", []byte(`{"edges": []}`), []string{"edges", "array"}},
		with(meta(`"author:writes:paper": {`, `"paper:is:paper": {`), "several kinds of edges", "paper:is:paper", "relation="),
		with(meta(`"paper:cites:paper": {`, `"paper:cites:book": {`), "no edges join nodes of one kind", "paper:cites:book"),
		with(meta(`[9, 4]`, `[9]`), `kind "paper"`, "num_nodes_per_type"),
		with(meta(`[9, 4]`, `[9, 0]`), "0 nodes"),
		with(meta(`"name": "csv", "delimiter": " "}, "data": ["e0.csv", "e1.csv"]`, `"name": "orc"}, "data": ["e0.csv"]`), `"orc"`, "csv, numpy and parquet"),
		with(meta(`"data": ["e0.csv", "e1.csv"]`, `"data": []`), "no files"),
		with(meta(`"feat": {"format": {"name": "numpy"`, `"feat": {"format": {"name": "parquet"`), "x0.npy", "no Parquet file"),
		with(meta(`"feat": {"format": {"name": "numpy"}, "data": ["x0.npy", "x1.npy"]`, `"feat": {"format": {"name": "parquet"}, "data": []`), "metadata.json", "no files"),
		with(meta(`"feat": {"format": {"name": "numpy"}, "data": ["x0.npy", "x1.npy"]`, `"feat": {"format": {"name": "parquet"}, "data": ["x0.parquet"]`), "x0.parquet", "3 rows", "4 nodes"),
		with(meta(`"label": {"format": {"name": "numpy"}, "data": ["y0.npy", "y1.npy"]`, `"label": {"format": {"name": "parquet"}, "data": ["x0.parquet", "x1.parquet"]`), "x0.parquet", "feat", "one column of numbers or text"),
		with(meta(`"train_mask": {"format": {"name": "numpy"}, "data": ["train.npy"]`, `"train_mask": {"format": {"name": "parquet"}, "data": ["y.parquet"]`), "y.parquet row 0", `"5"`, "mask"),
		{"e1.csv", []byte("3 4\n"), []string{"e1.csv line 1", "node id 4", "states 4 nodes"}},
		{"e1.csv", []byte("3\n"), []string{"e1.csv", "the number of columns is 1"}},
		{"x1.npy", npyArray(npy.Float32, []int64{1, 3}, make([]float32, 3)), []string{"x1.npy", "3 columns", "x0.npy has 2"}},
		{"x1.npy", npyArray(npy.Float32, []int64{2, 2}, make([]float32, 4)), []string{"5 rows", "4 nodes"}},
		{"y1.npy", vec[int64](1), []string{"y0.npy", "2 rows", "4 nodes"}},
		{"test1.npy", npyArray(npy.Bool, []int64{1}, []byte{1}), []string{"test0.npy", "3 rows", "4 nodes"}},
	})
	texts := edit(edit(good, "metadata.json", `"numpy"}, "data": ["x0.npy", "x1.npy"]`, `"csv", "delimiter": "|"}, "data": ["x.csv"]`),
		"metadata.json", `"numpy"}, "data": ["train.npy"]`, `"csv"}, "data": ["train.csv"]`)
	texts["x.csv"] = []byte("1|0.5\n0|2\n-1|0\n3|4\n")
	refuses(t, "dgl:%s", texts, []refusal{
		{"x.csv", []byte("1|0.5\n0|2\n-1|0\n"), []string{"x.csv", "3 rows", "4 nodes"}},
		{"x.csv", []byte("1|0.5\n0|2\n-1|0\n3|4\n5|6\n"), []string{"x.csv line 5", "one more than there are nodes, 4"}},
		{"x.csv", []byte("a|b\n0|2\n-1|0\n3|4\n"), []string{"x.csv line 1", `column "1" is "a"`}},
		{"x.csv", []byte("1|0.5\n0|inf\n-1|0\n3|4\n"), []string{"x.csv line 2", `column "2" is "inf"`}},
		{"x.csv", []byte("1|0.5\n0|2|3\n-1|0\n3|4\n"), []string{"x.csv line 2", "the number of columns is 3, and 2 in the first line"}},
		{"x.csv", []byte("1|0.5\n\n-1|0\n3|4\n"), []string{"x.csv", "has 3 rows", "4 nodes"}},
		{"x.csv", []byte(""), []string{"x.csv", "is empty (0 bytes)"}},
		{"x.csv", []byte("\n"), []string{"x.csv"}},
		{"train.csv", []byte("1\n2\n0\n0\n"), []string{"train.csv line 2", `"2"`, "mask"}},
		{"train.csv", []byte("1 0\n0 0\n"), []string{"train.csv", "has the columns 1, 2"}},
	})
	dir := writeTree(t, good)
	for query, want := range map[string]string{"?relation=a": `no edges "a"`, "?relation=author:writes:paper": "no edges join", "?features=z": `no data "z"`, "?labels=": "needs a value"} {
		if err := readAll(t, "dgl:"+dir+query); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", query, err)
		}
	}
}

// FuzzDGLText reads data of nodes in CSV.
func FuzzDGLText(f *testing.F) {
	good := edit(dglFiles(f), "metadata.json", `"numpy"}, "data": ["x0.npy", "x1.npy"]`, `"csv"}, "data": ["x.csv"]`)
	labels := edit(dglFiles(f), "metadata.json", `"numpy"}, "data": ["y0.npy", "y1.npy"]`, `"csv"}, "data": ["x.csv"]`)
	f.Add([]byte("1,0.5\n0,2\n-1,0\n3,4\n"))
	f.Add([]byte("1\n\n\"2\"\r\n0"))
	f.Fuzz(func(t *testing.T, data []byte) {
		fuzzTree(t, "dgl:%s", good, "x.csv", data)
		fuzzTree(t, "dgl:%s", labels, "x.csv", data)
	})
}

func FuzzDGL(f *testing.F) {
	good := dglFiles(f)
	f.Add([]byte(dglMetadata))
	f.Fuzz(func(t *testing.T, data []byte) {
		if !strings.Contains(string(data), "..") && !strings.Contains(string(data), "/") && !strings.Contains(string(data), `\`) {
			fuzzFolder(t, "dgl:%s", good, "metadata.json", data)
		}
	})
}

const boltMetadata = `dataset_name: path
graph:
  nodes:
    - num: 4
  edges:
    - format: csv
      path: edges/e.csv
feature_data:
  - {domain: edge, type: null, name: weight, format: numpy, path: none.npy}
  - {domain: node, type: null, name: year, format: numpy, path: none.npy}
  - domain: node
    type: null
    name: feat
    format: torch
    in_memory: true
    path: x.pt
tasks:
  - name: node_classification
    num_classes: 2
    train_set:
      - data:
          - {name: seeds, format: numpy, path: train.npy}
          - {name: labels, format: numpy, path: train_labels.npy}
    validation_set:
      - type: null
        data:
          - {name: seeds, format: numpy, path: val.npy}
          - {name: labels, format: numpy, path: val_labels.npy}
    test_set:
      - data:
          - {name: seed_nodes, format: numpy, path: test.npy}
          - {name: labels, format: numpy, path: test_labels.npy}
`

func boltFiles(t testing.TB) map[string][]byte {
	return map[string][]byte{
		"metadata.yaml": []byte(boltMetadata), "edges/e.csv": []byte("0,1\n1,2\n2,3\n"), "e.npy": npyArray(npy.Int32, []int64{2, 3}, []int32{0, 1, 2, 1, 2, 3}),
		"x.pt": readFile(t, pygFiles+"tensor.pt"), "x.npy": npyArray(npy.Float32, []int64{4, 2}, []float32{1, 0.5, 0, 2, -1, 0, 3, 4}),
		"train.npy": vec[int64](0), "train_labels.npy": vec[int64](0), "val.npy": vec[int32](1), "val_labels.npy": vec[int64](1), "test.npy": vec[int64](3, 2), "test_labels.npy": vec[int64](0, 1),
	}
}

func TestGraphBolt(t *testing.T) {
	good := boltFiles(t)
	for name, files := range map[string]map[string][]byte{
		"csv": good, "numpy": edit(good, "metadata.yaml", "format: csv\n      path: edges/e.csv", "format: numpy\n      path: e.npy"),
		"features": edit(good, "metadata.yaml", "format: torch\n    in_memory: true\n    path: x.pt", "format: numpy\n    path: x.npy"),
	} {
		d := open(t, "graphbolt:"+writeTree(t, files), Options{})
		isPath4(t, d)
		if info := d.Info(); info.NumNodes != 4 || info.NumFeatures != 2 || !info.HasSplits || !info.HasLabels {
			t.Errorf("%s: %+v", name, info)
		}
		if notes := Notes(d); len(notes) != 1 || !notes[0].Ignored || !strings.Contains(notes[0].Text, `"weight" and "year"`) {
			t.Errorf("%s: %v", name, notes)
		}
	}
	meta := func(from, to string, want ...string) refusal {
		return refusal{"metadata.yaml", edit(good, "metadata.yaml", from, to)["metadata.yaml"], want}
	}
	refuses(t, "graphbolt:%s", good, []refusal{
		{"metadata.yaml", nil, []string{"no metadata.yaml"}},
		{"metadata.yaml", []byte("graph: [1"), []string{"metadata.yaml", "line 1"}},
		{"metadata.yaml", []byte("graph_topology: {type: FusedCSCSamplingGraph}\n"), []string{"preprocessed", "folder above"}},
		{"metadata.yaml", []byte("graph: {}\n"), []string{"no graph"}},
		meta("    - num: 4\n", "    - {type: user, num: 4}\n    - {type: item, num: 4}\n", "2 kinds of nodes"),
		meta("num: 4", "num: 0", "0 nodes"),
		meta("format: csv", "format: orc", `"orc"`),
		meta("name: seeds,", "name: negative_srcs,", `"negative_srcs"`, "links"),
		meta("          - {name: seeds, format: numpy, path: train.npy}\n", "", "no seeds"),
		{"edges/e.csv", []byte("0,1\n1,4\n"), []string{"e.csv line 2", "node id 4", "metadata.yaml states 4"}},
		{"x.pt", readFile(t, pygFiles+"view.pt"), []string{"x.pt"}},
		{"train.npy", vec[int64](0, 1), []string{"train_labels.npy", "1 labels", "2 nodes"}},
		{"test.npy", vec[int64](3, 9), []string{"test.npy", "row 1", "node id 9"}},
		{"test.npy", vec[float32](3, 0.5), []string{"test.npy", "number 1 is 0.5", "whole numbers"}},
	})
}

func FuzzGraphBolt(f *testing.F) {
	good := boltFiles(f)
	f.Add([]byte(boltMetadata))
	f.Fuzz(func(t *testing.T, data []byte) {
		if !strings.Contains(string(data), "..") && !strings.Contains(string(data), "/") && !strings.Contains(string(data), `\`) {
			fuzzFolder(t, "graphbolt:%s", good, "metadata.yaml", data)
		}
	})
}
