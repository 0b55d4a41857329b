package dataset

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"ndls/dataset/graph"
)

// TestTextOfEdges reads lists of edges, and files beside them, as users have them.
func TestTextOfEdges(t *testing.T) {
	for i, c := range []struct {
		name, edges, query string
		want               []Edge
	}{
		{"bars", "0|1\n1|2\n", "", []Edge{{U: 0, V: 1}, {U: 1, V: 2}}},
		{"sep=", "sep=;\n0;1\n1;2\n", "", []Edge{{U: 0, V: 1}, {U: 1, V: 2}}},
		{"sep= and a header", "sep=,\r\nsrc,dst\r\n0,1\r\n1,2\r\n", "", []Edge{{U: 0, V: 1}, {U: 1, V: 2}}},
		{"CR", "0 1\r1 2\r", "", []Edge{{U: 0, V: 1}, {U: 1, V: 2}}},
		{"CR and a header", "src,dst\r0,1\r1,2", "", []Edge{{U: 0, V: 1}, {U: 1, V: 2}}},
		{"mixed line ends", "0 1\r\n1 2\r\r\n# c\r2 3\n", "", []Edge{{U: 0, V: 1}, {U: 1, V: 2}, {U: 2, V: 3}}},
		{"mark and sep=", "\xef\xbb\xbfsep=;\n0;1\n1;2\n", "", []Edge{{U: 0, V: 1}, {U: 1, V: 2}}},
		{"NetworkX without data", "0 1 {}\n1 2 {}\n", "", []Edge{{U: 0, V: 1}, {U: 1, V: 2}}},
		{"header of numbers", "7,8\n0,1\n", "header=true&src=7&dst=8", []Edge{{U: 0, V: 1}}},
		{"no header", "0,1\n1,2\n", "header=false", []Edge{{U: 0, V: 1}, {U: 1, V: 2}}},
		{"blanks and signs", " 5, +6\n\"0\" , 1\n", "", []Edge{{U: 5, V: 6}, {U: 0, V: 1}}},
		{"UTF-16", "\xff\xfe0\x00 \x001\x00\r\x00\n\x001\x00\t\x002\x00", "encoding=utf-16", []Edge{{U: 0, V: 1}, {U: 1, V: 2}}},
		{"latin-1", "src,dst,who\n0,1,Jos\xe9\n1,2,b\n", "encoding=latin1", []Edge{{U: 0, V: 1}, {U: 1, V: 2}}},
		{"a field that nobody reads", "src,dst,x\n0,1,\"5\" disk\n1,2,0x1p4\n", "", []Edge{{U: 0, V: 1}, {U: 1, V: 2}}},
	} {
		dir := writeFiles(t, map[string][]byte{"e.csv": []byte(c.edges)})
		d := open(t, "edges:"+dir+"/e.csv?"+c.query, Options{})
		got, err := readEdges(d, 2)
		if err != nil || !slices.Equal(got, c.want) {
			t.Errorf("%d %s: %v, %v", i, c.name, got, err)
		}
		// In parts, each of which begins where it may.
		for _, of := range []int{2, 5, 50} {
			got = nil
			for p := range of {
				err := ReadEdges(t.Context(), d, graph.Share{First: p, Last: p + 1, Of: of}, make([]Edge, 3), nil, func(e []Edge, _ []float32) error {
					got = append(got, e...)
					return nil
				})
				if err != nil {
					t.Fatalf("%s: %v", c.name, err)
				}
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("%s in %d parts: %v", c.name, of, got)
			}
		}
	}
}

// TestRefusedTextOfEdges holds what is refused, with where, what and the way out.
func TestRefusedTextOfEdges(t *testing.T) {
	for _, c := range []struct {
		name, file, text, query string // the file takes the place of e.csv, f.csv or l.csv
		want                    []string
	}{
		{"leading zeros", "e.csv", "870,1\n0870,2\n", "", []string{"e.csv line 2", `"0870"`, "leading zeros", "870", "table:"}},
		{"zeros", "e.csv", "0,1\n00,2\n", "", []string{"line 2", `"00"`, "same as 0"}},
		{"leading zeros and a sign", "e.csv", "0,1\n+07,2\n", "", []string{"line 2", "leading zeros"}},
		{"leading zeros and a fraction", "e.csv", "0,1\n07.0,2\n", "", []string{"line 2", "leading zeros"}},
		{"missing", "e.csv", "0,1\n1,NA\n", "", []string{"line 2", `"NA"`, "missing value"}},
		{"number of Go", "e.csv", "0,1\n1_0,2\n", "", []string{"line 2", `"1_0"`, "not a number"}},
		{"hexadecimal number", "e.csv", "0,1\n0x10,2\n", "", []string{"line 2", `"0x10"`}},
		{"weight of Go", "e.csv", "src,dst,w\n0,1,1\n0,2,1_000\n", "weight=w", []string{"line 3", `"1_000"`, "decimal"}},
		{"hexadecimal weight", "e.csv", "src,dst,w\n0,1,1\n0,2,0x1p4\n", "weight=w", []string{"line 3", `"0x1p4"`}},
		{"not UTF-8", "e.csv", "src,dst,who\n0,1,a\n1,2,Jos\xe9\n", "", []string{"line 3", "not UTF-8", "encoding=latin-1"}},
		{"not UTF-8 in a comment", "e.csv", "0 1\n# Jos\xe9\n1 2\n", "", []string{"line 2", "not UTF-8"}},
		{"NUL", "e.csv", "0,1\n1,2\x00\n", "", []string{"line 2", "byte of 0"}},
		{"UTF-16", "e.csv", "\xff\xfe0\x00,\x001\x00", "", []string{"encoding=utf-16"}},
		{"two columns of a name", "e.csv", "src,dst,src\n0,1,2\n", "", []string{`two columns named "src"`}},
		{"two columns of a name that is asked for", "e.csv", "a,b,b\n0,1,2\n", "src=a&dst=b", []string{`two columns named "b"`}},
		{"NetworkX with data", "e.csv", "0 1 {'weight': 2.0}\n", "", []string{"line 1", "data=False", `data=["weight"]`}},
		{"NetworkX with more data", "e.csv", "0 1 {'a': 1, 'b': 2}\n", "", []string{"line 1", "data=False"}},
		{"NetworkX with data later", "e.csv", "0 1 {}\n1 2 {'weight': 2.0}\n", "", []string{"line 2", "data=False"}},
		{"header alone", "e.csv", "src,dst\n", "", []string{"e.csv", "no edge"}},
		{"GML", "e.csv", "graph [\n  directed 0\n]\n", "", []string{"GML", "read_gml"}},
		{"GraphML", "e.csv", "<?xml version=\"1.0\"?><graphml>", "", []string{"GraphML"}},
		{"DIMACS", "e.csv", "c x\nc y\np edge 3 1\ne 1 2\n", "", []string{"dimacs:"}},
		{"JSON", "e.csv", "{\"a\": 1}\n", "", []string{"jsonl"}},
		{"feature of Go", "f.csv", "0,1\n1,1_0\n", "", []string{"f.csv line 2", `"1_0"`}},
		{"missing feature", "f.csv", "0,1\n1,NA\n", "missing=NA", []string{"f.csv line 2", `"NA"`, "missing="}},
		{"feature that is not UTF-8", "f.csv", "id,x\xe9\n0,1\n", "", []string{"f.csv line 1", "not UTF-8"}},
		{"real labels", "l.csv", "id,y\n0,1.5\n1,2\n", "", []string{"l.csv line 2", "1.5", "real numbers"}},
		{"two columns of labels", "l.csv", "id,y,y\n0,1,2\n1,2,2\n", "", []string{`two columns named "y"`}},
		{"a header that is not known", "l.csv", "topic\n1\n2\n2\n", "", []string{"l.csv line 1", `"topic"`, "header=true", "header=false"}},
		{"open quote of labels", "l.csv", "id,y\n0,a\n1,\"b\n", "", []string{"l.csv line 3", "a quote opens"}},
		{"labels that are not UTF-8", "l.csv", "id,y\n0,Jos\xe9\n", "", []string{"l.csv line 2", "not UTF-8"}},
		{"labels of other width", "l.csv", "id,y\n0,a\n1,b,c\n", "", []string{"l.csv line 3", "the number of columns is 3"}},
		{"ids of labels", "l.csv", "id,y\n0,a\n01,b\n", "", []string{"l.csv line 3", "leading zeros"}},
	} {
		files := map[string][]byte{"e.csv": []byte("0,1\n1,2\n"), c.file: []byte(c.text)}
		dir := writeFiles(t, files)
		uri := "edges:" + dir + "/e.csv?" + c.query
		if c.query != "" {
			uri += "&"
		}
		switch c.file {
		case "f.csv":
			uri += "features=" + dir + "/f.csv"
		case "l.csv":
			uri += "labels=" + dir + "/l.csv"
		default:
			uri = strings.TrimRight(uri, "?&")
		}
		err := readAll(t, uri)
		if !errors.Is(err, ErrData) {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		for _, want := range c.want {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %q lacks %q", c.name, err, want)
			}
		}
	}
}

// TestTextLabels reads labels by the keys that say how their text is to be read.
func TestTextLabels(t *testing.T) {
	for i, c := range []struct {
		name, text, query, column string
		classes                   []string
		labels                    map[uint32]int32
		warning                   string
	}{
		{"warned of", "id,y\n0,a\n1,NA\n2,NA\n", "", "", []string{"NA", "a"}, map[uint32]int32{0: 1, 1: 0, 2: 0}, `2 labels are "NA"`},
		{"missing", "id,y\n0,a\n1,NA\n2,\\N\n", `&missing=NA,\N`, "", []string{"a"}, map[uint32]int32{0: 0}, ""},
		{"latin-1", "id,y\n0,Jos\xe9\n1,b\n", "&encoding=latin-1", "", []string{"José", "b"}, map[uint32]int32{0: 0, 1: 1}, ""},
		{"a header", "topic\n1\n2\n2\n", "&header=true", "", []string{"1", "2"}, map[uint32]int32{0: 0, 1: 1, 2: 1}, ""},
		{"a header by its name", "topic\n1\n2\n2\n", "", "#topic", []string{"1", "2"}, map[uint32]int32{0: 0, 1: 1, 2: 1}, ""},
		{"no header", "topic\n1\n2\n", "&header=false", "", []string{"1", "2", "topic"}, map[uint32]int32{0: 2, 1: 0, 2: 1}, ""},
		{"a header of labels alone", "7,8\n0,a\n1,b\n", "&header=labels", "#8", []string{"a", "b"}, map[uint32]int32{0: 0, 1: 1}, ""},
		{"columns by number", "0,x,a\n1,y,b\n", "&header=false", "#3", []string{"a", "b"}, map[uint32]int32{0: 0, 1: 1}, ""},
		{"quotes as letters", "0,5\"\n1,b\n", "&quotes=false", "", []string{"5\"", "b"}, map[uint32]int32{0: 0, 1: 1}, ""},
		{"sep=", "sep=;\nid;y\n0;a,b\n1;c\n", "", "", []string{"a,b", "c"}, map[uint32]int32{0: 0, 1: 1}, ""},
		{"CR", "id,y\r0,a\r1,c\r", "", "", []string{"a", "c"}, map[uint32]int32{0: 0, 1: 1}, ""},
		{"bars", "id|y\n0|a\n1|c\n", "", "", []string{"a", "c"}, map[uint32]int32{0: 0, 1: 1}, ""},
	} {
		dir := writeFiles(t, map[string][]byte{"e.txt": []byte("0 1\n1 2\n"), "l.csv": []byte(c.text)})
		d := open(t, "edges:"+dir+"/e.txt?labels="+dir+"/l.csv"+c.column+c.query, Options{})
		got, err := readLabels(d)
		if err != nil || fmt.Sprint(got) != fmt.Sprint(c.labels) || !slices.Equal(d.Info().Classes, c.classes) {
			t.Errorf("%d %s: %v of %q, %v", i, c.name, got, d.Info().Classes, err)
		}
		warned := ""
		for _, n := range Notes(d) {
			if n.Ignored {
				warned += n.Text
			}
		}
		if !strings.Contains(warned, c.warning) || c.warning == "" && warned != "" {
			t.Errorf("%s: warning %q", c.name, warned)
		}
	}
}

// TestTextOfFeatures reads features as users write them.
func TestTextOfFeatures(t *testing.T) {
	for i, c := range []struct {
		name, text, query string
		want              []row
	}{
		{"blanks", "# id x y\n3 1  2.5\n4\t0 7\n", "", []row{{3, []uint32{0, 1}, []float32{1, 2.5}}, {4, []uint32{1}, []float32{7}}}},
		{"missing as zero", "id,x,y\n0,NA,3\n1,4,NULL\n", "&missing=NA,NULL&nulls=zero", []row{{0, []uint32{1}, []float32{3}}, {1, []uint32{0}, []float32{4}}}},
		{"quotes", "\"id\",\"x\"\n\"0\",\"-1e3\"\n", "", []row{{0, []uint32{0}, []float32{-1000}}}},
		{"many columns", "0" + strings.Repeat(",1", 100_000) + "\n", "&header=false", []row{{0, numbers(100_000), slices.Repeat([]float32{1}, 100_000)}}},
	} {
		dir := writeFiles(t, map[string][]byte{"e.txt": []byte("0 1\n"), "f.csv": []byte(c.text)})
		got, err := readFeatures(open(t, "edges:"+dir+"/e.txt?features="+dir+"/f.csv"+c.query, Options{}))
		if err != nil || !reflect.DeepEqual(got, c.want) {
			t.Errorf("%d %s: %d rows, %v", i, c.name, len(got), err)
		}
	}
}

// numbers are 0 to n-1.
func numbers(n uint32) (list []uint32) {
	for i := range n {
		list = append(list, i)
	}
	return list
}

// TestFormsOfNumbers has the numbers that users of CSV write, and some that only Go reads.
func TestFormsOfNumbers(t *testing.T) {
	for text, want := range map[string]float32{"1": 1, "+1": 1, "-1": -1, ".5": .5, "5.": 5, "1e3": 1000, "1E+3": 1000, "-2.5e-1": -.25, "007": 7, "0": 0} {
		if v, ok := graph.Number([]byte(text), 32); !ok || float32(v) != want {
			t.Errorf("%s is %v, %v", text, v, ok)
		}
	}
	for _, text := range []string{"", "1_000", "0x1p4", "0x10", "0b1", "Infinity", "inf", "-Inf", "NaN", "nan", "1,5", "1e", "e1", ".", "+", "1 2", "--1", "1f", "١"} {
		if v, ok := graph.Number([]byte(text), 32); ok {
			t.Errorf("%q is %v", text, v)
		}
	}
}
