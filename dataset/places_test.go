package dataset

import (
	"errors"
	"strings"
	"testing"

	"github.com/apache/arrow/go/v14/arrow"
	arrowarray "github.com/apache/arrow/go/v14/arrow/array"
)

// TestRepeated finds the lines of a node that a file gives twice.
func TestRepeated(t *testing.T) {
	wide := arrow.NewSchema([]arrow.Field{{Name: "id", Type: arrow.PrimitiveTypes.Int64}, {Name: "x", Type: arrow.PrimitiveTypes.Float32}}, nil)
	table := parquetOf(t, wide, func(b *arrowarray.RecordBuilder) {
		b.Field(0).(*arrowarray.Int64Builder).AppendValues([]int64{5, 7, 5}, nil)
		b.Field(1).(*arrowarray.Float32Builder).AppendValues([]float32{1, 2, 3}, nil)
	})
	dir := writeFiles(t, map[string][]byte{
		"a.txt": []byte("5 7\n"), "f.csv": []byte("# ids\nid,x\n5,1\n\n7,2\n5,3\n"), "f.json": []byte("{\"5\": [1],\n\"7\": [],\n\"5\": [2]}"), "f.parquet": table,
		"l.csv": []byte("id,label\n5,cat\n5,cat\n7,dog\n5,dog\n"), "s.csv": []byte("id,split\n5,train\n7,test\n5,valid\n"),
	})
	for _, c := range []struct {
		keys string
		part Part
		want []string
	}{
		{"features=%s/f.csv", FeatureRows, []string{"f.csv line 6: node 5", "second feature row", "f.csv line 3", "keep one"}},
		{"features=%s/f.json", FeatureRows, []string{"f.json line 3 byte 28: node 5", "f.json line 1"}},
		{"features=%s/f.parquet", FeatureRows, []string{"f.parquet row 2: node 5", "f.parquet row 0"}},
		{"labels=%s/l.csv", LabelRows, []string{"l.csv line 5: node 5", `"dog"`, `"cat"`, "l.csv line 2", "keep one"}},
		{"splits=%s/s.csv", SplitRows, []string{"s.csv line 4: node 5", "valid", "train", "s.csv line 2"}},
	} {
		d := open(t, "edges:"+dir+"/a.txt?"+strings.ReplaceAll(c.keys, "%s", dir), Options{})
		err := Repeated(t.Context(), d, c.part, 5)
		for _, part := range c.want {
			if !errors.Is(err, ErrData) || !strings.Contains(err.Error(), part) {
				t.Errorf("%s: %v lacks %q", c.keys, err, part)
			}
		}
	}
	folder := ogbFolder(t, changed(ogbBinary(), "split/time/valid.csv.gz", gzipped("0\n1\n2\n3\n")))
	d := open(t, "ogb:"+folder, Options{})
	err := Repeated(t.Context(), d, SplitRows, 3)
	for _, part := range []string{"valid.csv.gz line 4: node 3", "split valid", "train, in", "train.csv.gz line 1"} {
		if !errors.Is(err, ErrData) || !strings.Contains(err.Error(), part) {
			t.Errorf("overlapping splits: %v lacks %q", err, part)
		}
	}
}

func TestLackingFeatures(t *testing.T) {
	dir := writeFiles(t, map[string][]byte{"a.txt": []byte("5 7\n"), "f.csv": []byte("5 1\n")})
	d := open(t, "edges:"+dir+"/a.txt?features="+dir+"/f.csv", Options{})
	for count, want := range map[int64]string{1: "node 7 has no feature row: ", 2: "and one other node", 12: "and 11 other nodes"} {
		err := LackingFeatures(t.Context(), d, 7, count)
		if !errors.Is(err, ErrData) || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "f.csv") || !strings.Contains(err.Error(), "--features none") {
			t.Errorf("%d nodes: %v", count, err)
		}
	}
}
