package table

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"ndls/dataset/graph"
)

// TestTextTables reads text as users have it, in short and in long parts.
func TestTextTables(t *testing.T) {
	dir := t.TempDir()
	defer func(n int64) { unitBytes = n }(unitBytes)
	utf16 := func(mark string, order func(r rune) string, text string) []byte {
		for _, r := range text {
			mark += order(r)
		}
		return []byte(mark)
	}
	le := func(r rune) string { return string([]byte{byte(r), byte(r >> 8)}) }
	be := func(r rune) string { return string([]byte{byte(r >> 8), byte(r)}) }
	for i, c := range []struct {
		name, text, query string
		want              []string // edges
	}{
		{"no header", "a,b\nb,c\n", "header=false", []string{"a b", "b c"}},
		{"numbers without header", "0,1\n1,2\n2,3\n", "header=false", []string{"0 1", "1 2", "2 3"}},
		{"columns by number", "x,0,1\ny,1,2\n", "header=false&src=2&dst=3", []string{"0 1", "1 2"}},
		{"names that are numbers", "0,1\n5,6\n", "header=true", []string{"5 6"}},
		{"some numbers among names", "src,dst,2019\na,b,3\n", "", []string{"a b"}},
		{"sep=", "sep=;\nsrc;dst\na;b,c\n", "", []string{"a b,c"}},
		{"sep= in quotes", "\"sep=|\"\r\nsrc|dst\r\na|b\r\n", "", []string{"a b"}},
		{"sep= tab", "sep=\t\nsrc\tdst\na\tb\n", "", []string{"a b"}},
		{"bars", "src|dst\na|b\n", "", []string{"a b"}},
		{"separator in quotes of the header", "\"src, from\";dst\na;b\n", "src=src%2C from&dst=dst", []string{"a b"}},
		{"CRLF", "src,dst\r\na,b\r\n\r\nb,c\r\n", "", []string{"a b", "b c"}},
		{"CR", "src,dst\ra,b\rb,c\r", "", []string{"a b", "b c"}},
		{"mixed line ends", "src,dst\ra,b\nb,c\r\nc,d", "", []string{"a b", "b c", "c d"}},
		{"CR CR LF", "src,dst\r\r\na,b\r\r\n", "", []string{"a b"}},
		{"mark", "\xef\xbb\xbfsrc,dst\na,b\n", "", []string{"a b"}},
		{"empty lines first", "\n \n\nsrc,dst\na,b\n", "", []string{"a b"}},
		{"comments", "# made by\n# hand\nsrc,dst\na,b\n", "", []string{"a b"}},
		{"names in a comment", "# Nodes: 3\n# FromNodeId\tToNodeId\n0\t1\n1\t2\n", "", []string{"0 1", "1 2"}},
		{"names behind #", "#src,dst\na,b\n", "src=%23src&dst=dst", []string{"a b"}},
		{"quotes", "src,dst\n\"a \"\"x\"\"\",\"b\nc\"\n \"d\" , e\n", "", []string{"a \"x\" b\nc", "d e"}},
		{"quotes as letters", "src,dst\n5\" disk,b\"\n", "quotes=false", []string{"5\" disk b\""}},
		{"trailing separators", "src,dst,\na,b,\n", "src=src&dst=dst", []string{"a b"}},
		{"leading zeros", "src,dst\n007,7\n0,00\n", "", []string{"007 7", "0 00"}},
		{"latin-1", "src,dst\nJos\xe9,b\n", "encoding=latin-1", []string{"José b"}},
		{"ISO-8859-1", "src,dst\nJos\xe9,\x80\n", "encoding=ISO-8859-1", []string{"José \u0080"}},
		{"windows-1252", "src,dst\nJos\xe9,\x80\n", "encoding=windows-1252", []string{"José €"}},
		{"cp1252", "s\xe9rc,dst\na,b\n", "encoding=cp1252&src=s%C3%A9rc&dst=dst", []string{"a b"}},
		{"UTF-8 by name", "src,dst\né,b\n", "encoding=utf-8", []string{"é b"}},
		{"GBK", "src,dst\n\xc4\xe3\xba\xc3,b\n", "encoding=gbk", []string{"你好 b"}},
		{"UTF-16", string(utf16("\xff\xfe", le, "src,dst\né,€\n")), "encoding=utf-16", []string{"é €"}},
		{"UTF-16, big end first", string(utf16("\xfe\xff", be, "src,dst\né,€\n")), "encoding=UTF16", []string{"é €"}},
		{"UTF-16 without mark", string(utf16("", le, "src,dst\né,€\n")), "encoding=utf-16le", []string{"é €"}},
		{"UTF-16BE without mark", string(utf16("", be, "src,dst\né,€\n")), "encoding=utf-16-be", []string{"é €"}},
	} {
		name := put(t, []byte(c.text), dir, fmt.Sprintf("%d.csv", i))
		for _, unitBytes = range []int64{1, 9, 8 << 20} {
			g, err := openGraph(t, name+"?"+c.query)
			if err != nil {
				t.Errorf("%s: %v", c.name, err)
				continue
			}
			got, err := readAll(t.Context(), g)
			if err != nil || !slices.Equal(got.edges, c.want) {
				t.Errorf("%s in parts of %d: %q, %v", c.name, unitBytes, got.edges, err)
			}
		}
	}
}

// TestRefusedText holds text that is refused, with where, what and the way out.
func TestRefusedText(t *testing.T) {
	dir := t.TempDir()
	defer func(n int64) { unitBytes = n }(unitBytes)
	edges := put(t, []byte("src,dst\na,b\nb,c\n"), dir, "e.csv")
	tables := 0
	nodes := func(text, query string) string {
		tables++
		return edges + "?nodes=" + put(t, []byte("id,x,y\n"+text), dir, fmt.Sprint(tables, "n.csv")) + "&" + query
	}
	for i, c := range []struct {
		name, text, query string
		want              []string
	}{
		{"header of numbers", "0,1\n1,2\n", "", []string{"line 1", "header=false", "header=true"}},
		{"header of decimal numbers", "\n1.5;2e3\n1;2\n", "", []string{"line 2", "header=false"}},
		{"not UTF-8", "src,dst\na,b\nJos\xe9,b\n", "", []string{"line 3", "not UTF-8", "0xe9", "encoding=latin-1"}},
		{"name that is not UTF-8", "s\xe9rc,dst\na,b\n", "", []string{"line 1", "not UTF-8"}},
		{"half a character", "src,dst\na,\xc3", "", []string{"line 2", "not UTF-8"}},
		{"a surrogate", "src,dst\na,\xed\xa0\x80\n", "", []string{"line 2", "not UTF-8"}},
		{"NUL", "src,dst\na,b\nb,\x00c\n", "", []string{"line 3", "byte of 0"}},
		{"UTF-16", "\xff\xfes\x00r\x00c\x00", "", []string{"encoding=utf-16"}},
		{"UTF-16 without mark", "s\x00,\x00d\x00\n\x00", "", []string{"encoding=utf-16le"}},
		{"UTF-16BE without mark", "\x00s\x00,\x00d\x00\n", "", []string{"encoding=utf-16be"}},
		{"half of UTF-16", "s\x00,\x00d\x00\n\x00a\x00,\x00\x00\xd8b\x00\n\x00", "encoding=utf-16le", []string{"line 2", "utf-16le"}},
		{"another encoding", "src,dst\n\xff\xff,b\n", "encoding=gbk", []string{"line 2", "gbk"}},
		{"two columns of a name", "src,dst,src\na,b,c\n", "", []string{`two columns named "src"`}},
		{"two columns but for case", "SRC,dst,Src\na,b,c\n", "src=src&dst=dst", []string{`two columns named "src"`}},
		{"open quote", "src,dst\na,b\n\"b,c\nd,e\n", "", []string{"line 3", "a quote opens and does not close", "quotes=false"}},
		{"open quote in the second line of a record", "src,dst\n\"a\nx\",\"b\nc,d\n", "", []string{"line 3", "a quote opens"}},
		{"quote inside", "src,dst\na,b\n5\" disk,c\n", "", []string{"line 3", "quotes=false"}},
		{"text behind a quote", "src,dst\n\"a\"b,c\n", "", []string{"line 2", "follows the closing quote", "twice"}},
		{"backslash", "src,dst\n\"a \\\"x\\\" b\",c\n", "", []string{"line 2", "twice", "backslash"}},
		{"short row", "src,dst,w\na,b,1\na,b\n", "", []string{"line 3", "the number of columns is 2", "3"}},
		{"long row", "src,dst\na,b,\n", "", []string{"line 2", "the number of columns is 3"}},
		{"header alone", "src,dst\n", "", []string{".csv", "no rows"}},
		{"missing by its key", "src,dst\na,b\nb,NA\n", "missing=NA,NULL", []string{"line 3", `"dst"`, "null"}},
		{"missing of databases", "src,dst\na,b\n\\N,b\n", `missing=\N`, []string{"line 3", `"src"`, "null"}},
		{"GML", "graph [\n  node [\n id 0\n ]\n]\n", "", []string{"GML", "to_pandas_edgelist", "read_gml"}},
		{"GML with a creator", "Creator \"x\"\ngraph\n[\n node [ id 0 ]\n]\n", "", []string{"GML"}},
		{"GraphML", "<?xml version='1.0'?>\n<graphml xmlns=\"x\">\n</graphml>", "", []string{"GraphML", "read_graphml"}},
		{"GEXF", "<?xml version='1.0'?>\n<gexf version=\"1.2\">", "", []string{"GEXF", "read_gexf"}},
		{"DOT", "digraph g {\n a -> b\n}\n", "", []string{"DOT", "read_dot"}},
		{"Pajek", "*Vertices 3\n1 \"a\"\n", "", []string{"Pajek", "read_pajek"}},
		{"a web page", "<!DOCTYPE html>\n<html>\n", "", []string{"web page"}},
		{"LFS", "version https://git-lfs.github.com/spec/v1\noid sha256:1\n", "", []string{"git lfs pull"}},
		{"DIMACS", "c hello\np sp 3 4\na 1 2 3\n", "", []string{"dimacs:"}},
		{"MatrixMarket", "%%MatrixMarket matrix coordinate pattern general\n3 3 1\n1 2\n", "", []string{"mtx:"}},
		{"JSON", "{\"src\": 1, \"dst\": 2}\n", "", []string{"jsonl"}},
		{"JSON list", "[{\"src\": 1, \"dst\": 2}]\n", "", []string{"jsonl"}},
		{"comments alone", "# a\n# b\n", "", []string{"comments"}},
		{"a number of Go", nodes("a,1_000,1\nb,2,1\nc,3,2\n", "features=x"), "", []string{"line 2", `"1_000"`}},
		{"a hexadecimal number", nodes("a,1,1\nb,0x1p4,1\nc,3,2\n", "features=x"), "", []string{"line 3", `"0x1p4"`}},
		{"an infinite number", nodes("a,1,1\nb,Infinity,1\nc,3,22\n", "features=x"), "", []string{"line 3", `"Infinity"`}},
		{"a missing feature", nodes("a,1,1\nb,NA,1\nc,3,2222\n", "features=x"), "", []string{"line 3", `"NA"`}},
		{"a missing feature by its key", nodes("a,1,1\nb,NA,1\nc,3,33333\n", "features=x&missing=NA"), "", []string{"line 3", "null"}},
		{"real labels", nodes("a,1,0.5\nb,1,1.25\nc,3,444444\n", "label=y"), "", []string{"line 2", "0.5", "classes", "real numbers"}},
		{"real labels later", nodes("a,1,1\nb,1,2\nc,3,1e-3\nd,1,\n", "label=y"), "", []string{"line 4", "1e-3", "real numbers"}},
		{"missing split", nodes("a,1,train\nb,1,NA\nc,3,test\n", "split=y"), "", []string{"line 3", `"NA"`}},
	} {
		uri := c.text
		if !strings.HasPrefix(uri, edges) {
			uri = put(t, []byte(c.text), dir, fmt.Sprintf("%d.csv", i)) + "?" + c.query
		}
		for _, unitBytes = range []int64{1, 9, 8 << 20} {
			g, err := openGraph(t, uri)
			if err == nil {
				_, err = readAll(t.Context(), g)
			}
			if !errors.Is(err, graph.ErrData) {
				t.Errorf("%s in parts of %d: %v", c.name, unitBytes, err)
				continue
			}
			for _, want := range c.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%s in parts of %d: %q lacks %q", c.name, unitBytes, err, want)
				}
			}
		}
	}
}

// TestMissingValues warns of words that may stand for a missing value, and of names of columns that are ids, and makes
// those words null where the URI says so.
func TestMissingValues(t *testing.T) {
	dir := t.TempDir()
	edges := put(t, []byte("src,dst\na,NA\nb,NA\nNA,c\nnan,\\N\na,b\n"), dir, "e.csv")
	nodes := put(t, []byte("id,y,s,x\na,NA,train,+1\nb,1,NULL,.5\nc,NULL,,5.\nNA,2,,1e3\nnan,NA,,0\n\\N,,,1\n"), dir, "n.csv")
	read := func(uri string) (*Graph, content) {
		t.Helper()
		g, err := openGraph(t, uri)
		if err != nil {
			t.Fatal(err)
		}
		c, err := readAll(t.Context(), g)
		if err != nil {
			t.Fatal(err)
		}
		return g, c
	}
	g, _ := read(edges)
	want := []string{`3 ids are "NA"`, `1 id is "\\N"`, `1 id is "nan"`}
	if got := g.Doubts(); len(got) != len(want) || !strings.HasPrefix(got[0], want[0]) || !strings.Contains(got[0], "missing=NA") || !slices.ContainsFunc(got, func(s string) bool { return strings.HasPrefix(s, want[1]) }) || !slices.ContainsFunc(got, func(s string) bool { return strings.HasPrefix(s, want[2]) }) {
		t.Errorf("doubts: %q", got)
	}
	parquet := put(t, asParquet(t, []col{{"src", []string{"a", "NA"}}, {"dst", []string{"b", "None"}}}), dir, "e.parquet")
	if g, _ := read(parquet); len(g.Doubts()) != 2 {
		t.Errorf("doubts of Parquet: %q", g.Doubts())
	}
	if g, err := openGraph(t, parquet+"?missing=NA"); err != nil {
		t.Error(err)
	} else if _, err := readAll(t.Context(), g); err == nil || !strings.Contains(err.Error(), "null") {
		t.Errorf("missing of Parquet: %v", err)
	}
	g, _ = read(put(t, []byte("ann,bob\nbob,eve\neve,ann\n"), dir, "people.csv"))
	if got := g.Doubts(); len(got) != 2 || !strings.Contains(got[0], `"ann" is the name of a column of people.csv`) || !strings.Contains(got[0], "header=false") {
		t.Errorf("doubts of a header: %q", got)
	}
	if g, c := read(dir + "/people.csv?header=false"); len(g.Doubts()) > 0 || len(c.edges) != 3 {
		t.Errorf("without header: %q, %q", c.edges, g.Doubts())
	}
	// Labels.
	g, err := openGraph(t, edges+"?nodes="+nodes+"&label=y&features=x")
	if err != nil {
		t.Fatal(err)
	}
	var warned []string
	for _, n := range g.Notes() {
		if n.Ignored {
			warned = append(warned, n.Text)
		}
	}
	if text := strings.Join(warned, "\n"); !strings.Contains(text, `2 labels are "NA"`) || !strings.Contains(text, `1 labels are "NULL"`) || !strings.Contains(text, "missing=NULL") {
		t.Errorf("warnings: %q", warned)
	}
	// By the key the ids are null, too: only labels and splits may be.
	labels := put(t, []byte("id,y,s\na,NA,train\nb,1,NULL\nc,2,\n"), dir, "l.csv")
	g, c := read(put(t, []byte("src,dst\na,b\nb,c\n"), dir, "abc.csv") + "?labels=" + labels + "&splits=" + labels + "&label=y&split=s&missing=NA,NULL")
	if !slices.Equal(g.Info().Classes, []string{"1", "2"}) || len(c.labels) != 2 || len(c.splits) != 1 {
		t.Errorf("classes %q, labels %v, splits %v", g.Info().Classes, c.labels, c.splits)
	}
}

// TestJSONFields reads what matters of JSON lines, whatever other fields hold.
func TestJSONFields(t *testing.T) {
	dir := t.TempDir()
	defer func(n int64) { unitBytes = n }(unitBytes)
	for i, c := range []struct {
		text string
		want []string // edges, or what an error says
	}{
		{"{\"src\":1,\"dst\":2,\"x\":1}\n{\"x\":\"a\",\"src\":2,\"dst\":3}\n{\"src\":3,\"x\":{\"a\":[1,{\"b\":\"}\\\"]\"}]},\"dst\":4}\n{\"src\":4,\"dst\":5,\"x\":NaN}\n", []string{"1 2", "2 3", "3 4", "4 5"}},
		{"{\"src\":\"a\",\"dst\":\"\\u00e9\\n\"}\r\n\r\n { \"dst\" : \"\\\"\" , \"src\" : \"b,\" } \r\n", []string{"a é\n", "b, \""}},
		{"{\"src\":18446744073709551615,\"dst\":0,\"x\":1,\"x\":2}\n", []string{"18446744073709551615 0"}},
		{"\xef\xbb\xbf{\"src\":1,\"dst\":2}", []string{"1 2"}},
		{"{\"src\":1,\"dst\":2,\"src\":3}\n", []string{"line 1", "twice"}},
		{"{\"src\":1,\"dst\":2}\n{\"src\":18446744073709551616,\"dst\":0}\n", []string{"line 2", "18446744073709551616"}},
		{"{\"src\":NaN,\"dst\":2}\n", []string{"line 1", "null"}},
		{"{\"src\":\"\\ud800\",\"dst\":\"b\"}\n", []string{"line 1", "surrogate"}},
		{"{\"src\":\"a\\u0000\",\"dst\":\"b\"}\n", []string{"line 1", "character of 0"}},
		{"{\"src\":\"a\xe9\",\"dst\":\"b\"}\n", []string{"line 1", "UTF-8"}},
		{"{\"src\":1,\"dst\":2} x\n", []string{"line 1", "behind the object"}},
		{"{\"src\":1,\"dst\":2\n", []string{"line 1", "no JSON object"}},
		{"{\"src\":01,\"dst\":2}\n", []string{"line 1", "01"}},
		{"{\"src\":1 \"dst\":2}\n", []string{"line 1", "no JSON object"}},
		{"[{\"src\":1,\"dst\":2}]\n", []string{"line 1", "lines=True"}},
		{"{\"src\":1,\"dst\":2}\n{\"src\":\"1\",\"dst\":2}\n", []string{"line 2", "one type"}},
	} {
		name := put(t, []byte(c.text), dir, fmt.Sprintf("%d.jsonl", i))
		for _, unitBytes = range []int64{1, 30, 8 << 20} {
			g, err := openGraph(t, name)
			var got content
			if err == nil {
				got, err = readAll(t.Context(), g)
			}
			if err == nil && !slices.Equal(got.edges, c.want) {
				t.Errorf("%d: %q, not %q", i, got.edges, c.want)
			}
			for _, want := range c.want {
				if err != nil && (!errors.Is(err, graph.ErrData) || !strings.Contains(err.Error(), want)) {
					t.Errorf("%d: %v lacks %q", i, err, want)
				}
			}
		}
	}
	name := put(t, []byte("{\"src\":\"Jos\xe9\",\"dst\":\"b\"}\n"), dir, "latin.jsonl")
	g, err := openGraph(t, name+"?encoding=latin-1")
	if err != nil {
		t.Fatal(err)
	}
	if got, err := readAll(t.Context(), g); err != nil || !slices.Equal(got.edges, []string{"José b"}) {
		t.Errorf("%q, %v", got.edges, err)
	}
}

// TestHeadersOfSomeTables reads edges without header beside nodes with one.
func TestHeadersOfSomeTables(t *testing.T) {
	dir := t.TempDir()
	edges, nodes := put(t, []byte("0,1\n1,2\n"), dir, "e.csv"), put(t, []byte("id,x\n0,1\n1,2\n2,3\n"), dir, "n.csv")
	g, err := openGraph(t, edges+"?nodes="+nodes+"&features=x&header=nodes")
	if err != nil {
		t.Fatal(err)
	}
	if c, err := readAll(t.Context(), g); err != nil || len(c.edges) != 2 || len(c.features) != 3 {
		t.Errorf("%v, %v", c, err)
	}
	for _, bad := range []string{"header=no", "header=nodes,rows", "encoding=klingon", "quotes=1"} {
		if _, err := openGraph(t, edges+"?"+bad); !errors.Is(err, graph.ErrURI) {
			t.Errorf("%s: %v", bad, err)
		}
	}
	one, err := openGraph(t, edges+"?missing=NULL,NA&header=false&encoding=latin-1&quotes=false")
	if err != nil {
		t.Fatal(err)
	}
	if id := one.Info().Identity; id != "table:e.csv?encoding=latin-1&header=false&missing=NULL,NA&quotes=false" {
		t.Error(id)
	}
}

// endless writes a text and then the same bytes over and over.
type endless struct {
	text     string
	at, left int
}

func (e *endless) Read(p []byte) (int, error) {
	if e.left == 0 {
		return 0, io.EOF
	}
	n := 0
	for n < len(p) && e.left > 0 {
		k := copy(p[n:min(len(p), n+e.left)], e.text[e.at:])
		n, e.at, e.left = n+k, (e.at+k)%len(e.text), e.left-k
	}
	return n, nil
}

// TestBoundedText reads files that are one quote or one line to their end, in bounded memory.
func TestBoundedText(t *testing.T) {
	dir := t.TempDir()
	const size = 300 << 20
	for _, c := range []struct{ name, first, rest, want string }{
		{"quote.csv", "src,dst\na,b\n\"b,c\n", "d,eeeeeeeeeeeeeeeeeeeeeeeeee\n", "line 3: a quote opens and does not close within 16 MiB"},
		{"line.csv", "src,dst\na,b\n", "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx", "line 3: is longer than 16 MiB"},
		{"quoted.csv", "src,dst\na,b\n\"", "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx", "line 3: is longer than 16 MiB"},
		{"long.csv", "src,dst\na,b\n\"\n", "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx", "line 3: a quote opens and does not close within 16 MiB"},
		{"quotes.csv", "src,dst\na,b\n\"", "\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\n\"\"\"\"\"\"\"\"", "line 3: a quote opens and does not close within 16 MiB"},
		{"fields.csv", "src,dst\na,b\n", "\"a\nb\",", "line "},
		{"first.csv", "", "xxxxxxxxxxxxxxxx", "line 1: is longer than 16 MiB"},
		{"line.jsonl", "{\"src\":1,\"dst\":2}\n{\"src\":1,\"dst\":\"", "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx", "line 2: is longer than 16 MiB"},
		{"deep.jsonl", "{\"src\":1,\"dst\":2}\n{\"src\":1,\"dst\":", "[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[", "line 2: is longer than 16 MiB"},
	} {
		var packed bytes.Buffer
		w, err := zstd.NewWriter(&packed)
		must(t, err)
		_, err = io.Copy(w, io.MultiReader(strings.NewReader(c.first), &endless{c.rest, 0, size}))
		must(t, errors.Join(err, w.Close()))
		name := put(t, packed.Bytes(), dir, c.name+".zst")
		runtime.GC()
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		g, err := openGraph(t, name)
		if err == nil {
			_, err = readOn(t.Context(), g, 1)
			_ = g.Close()
		}
		runtime.ReadMemStats(&after)
		if !errors.Is(err, graph.ErrData) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", c.name, err)
		}
		// What is taken from the system is a bound of what was in use at any time.
		if grown := int64(after.HeapSys) - int64(before.HeapSys); grown > 160<<20 {
			t.Errorf("%s of %d packed bytes: the heap grew by %d MiB", c.name, packed.Len(), grown>>20)
		}
		if taken := int64(after.TotalAlloc - before.TotalAlloc); taken > 700<<20 {
			t.Errorf("%s: %d MiB were allocated", c.name, taken>>20)
		}
	}
}
