package table

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/apache/arrow/go/v14/arrow"
	"github.com/apache/arrow/go/v14/arrow/array"
	"github.com/apache/arrow/go/v14/arrow/ipc"
	"github.com/apache/arrow/go/v14/arrow/memory"
	"github.com/apache/arrow/go/v14/parquet"
	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"ndls/dataset/graph"
	"ndls/dataset/parquettest"
	"ndls/internal/inputid"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A col is a column of a table: []string, []int64, []uint64, []float64, [][]float32, or
// []any with nil for null and one of string, int64 and float64.
type col struct {
	name   string
	values any
}

func length(c col) int {
	switch v := c.values.(type) {
	case []string:
		return len(v)
	case []int64:
		return len(v)
	case []uint64:
		return len(v)
	case []float64:
		return len(v)
	case [][]float32:
		return len(v)
	case []any:
		return len(v)
	}
	panic("no column")
}

// at is the value of a row; nil stands for null.
func at(c col, row int) any {
	switch v := c.values.(type) {
	case []string:
		return v[row]
	case []int64:
		return v[row]
	case []uint64:
		return v[row]
	case []float64:
		return v[row]
	case [][]float32:
		return v[row]
	case []any:
		return v[row]
	}
	return nil
}

// cut takes some rows of columns.
func cut(cols []col, lo, hi int) []col {
	cols = slices.Clone(cols)
	for i, c := range cols {
		switch v := c.values.(type) {
		case []string:
			cols[i].values = v[lo:hi]
		case []int64:
			cols[i].values = v[lo:hi]
		case []uint64:
			cols[i].values = v[lo:hi]
		case []float64:
			cols[i].values = v[lo:hi]
		case [][]float32:
			cols[i].values = v[lo:hi]
		case []any:
			cols[i].values = v[lo:hi]
		}
	}
	return cols
}

func asCSV(t testing.TB, cols []col) []byte {
	var out bytes.Buffer
	w := csv.NewWriter(&out)
	var names []string
	for _, c := range cols {
		names = append(names, c.name)
	}
	must(t, w.Write(names))
	for row := range length(cols[0]) {
		var fields []string
		for _, c := range cols {
			v := at(c, row)
			if v == nil {
				v = ""
			}
			fields = append(fields, fmt.Sprint(v))
		}
		must(t, w.Write(fields))
	}
	w.Flush()
	return out.Bytes()
}

func asJSON(t testing.TB, cols []col) []byte {
	var out bytes.Buffer
	for row := range length(cols[0]) {
		object := map[string]any{}
		for _, c := range cols {
			object[c.name] = at(c, row)
		}
		line, err := json.Marshal(object)
		must(t, err)
		out.Write(append(line, '\n'))
	}
	return out.Bytes()
}

func asRecord(t testing.TB, cols []col) arrow.Record {
	var fields []arrow.Field
	for _, c := range cols {
		var typ arrow.DataType = arrow.BinaryTypes.String
		switch v := c.values.(type) {
		case []int64:
			typ = arrow.PrimitiveTypes.Int64
		case []uint64:
			typ = arrow.PrimitiveTypes.Uint64
		case []float64:
			typ = arrow.PrimitiveTypes.Float64
		case [][]float32:
			typ = arrow.ListOf(arrow.PrimitiveTypes.Float32)
		case []any:
			for _, x := range v {
				switch x.(type) {
				case int64:
					typ = arrow.PrimitiveTypes.Int64
				case float64:
					typ = arrow.PrimitiveTypes.Float64
				}
			}
		}
		fields = append(fields, arrow.Field{Name: c.name, Type: typ, Nullable: true})
	}
	b := array.NewRecordBuilder(memory.NewGoAllocator(), arrow.NewSchema(fields, nil))
	defer b.Release()
	for i, c := range cols {
		for row := range length(c) {
			switch v := at(c, row).(type) {
			case nil:
				b.Field(i).AppendNull()
			case string:
				b.Field(i).(*array.StringBuilder).Append(v)
			case int64:
				b.Field(i).(*array.Int64Builder).Append(v)
			case uint64:
				b.Field(i).(*array.Uint64Builder).Append(v)
			case float64:
				b.Field(i).(*array.Float64Builder).Append(v)
			case []float32:
				l := b.Field(i).(*array.ListBuilder)
				l.Append(true)
				l.ValueBuilder().(*array.Float32Builder).AppendValues(v, nil)
			}
		}
	}
	return b.NewRecord()
}

func asParquet(t testing.TB, cols []col) []byte {
	rec := asRecord(t, cols)
	defer rec.Release()
	data, err := parquettest.Write(rec, parquet.WithMaxRowGroupLength(700), parquet.WithDataPageSize(2000))
	must(t, err)
	return data
}

// seekable makes a buffer what the writer of Arrow files wants.
type seekable struct{ bytes.Buffer }

func (s *seekable) Seek(int64, int) (int64, error) { return int64(s.Len()), nil }

func asArrow(t testing.TB, cols []col) []byte {
	rec := asRecord(t, cols)
	defer rec.Release()
	var out seekable
	w, err := ipc.NewFileWriter(&out, ipc.WithSchema(rec.Schema()))
	must(t, err)
	for lo := int64(0); lo < rec.NumRows(); lo += 600 {
		part := rec.NewSlice(lo, min(lo+600, rec.NumRows()))
		must(t, w.Write(part))
		part.Release()
	}
	must(t, w.Close())
	return out.Bytes()
}

func gzipped(data []byte) []byte {
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	_, _ = w.Write(data)
	_ = w.Close()
	return out.Bytes()
}

// forms are the formats of tables, by the end of the name.
var forms = map[string]func(t testing.TB, cols []col) []byte{
	"csv": asCSV, "jsonl": asJSON, "parquet": asParquet, "arrow": asArrow,
	"csv.gz":   func(t testing.TB, cols []col) []byte { return gzipped(asCSV(t, cols)) },
	"jsonl.gz": func(t testing.TB, cols []col) []byte { return gzipped(asJSON(t, cols)) },
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// put writes a file, in folders that are made.
func put(t testing.TB, data []byte, path ...string) string {
	t.Helper()
	name := filepath.Join(path...)
	must(t, os.MkdirAll(filepath.Dir(name), 0o755))
	must(t, os.WriteFile(name, data, 0o644))
	return name
}

func openGraph(t testing.TB, rest string) (*Graph, error) {
	t.Helper()
	ds, err := Open(context.Background(), rest, graph.Options{})
	if err != nil {
		return nil, err
	}
	t.Cleanup(func() { _ = ds.Close() })
	return ds.(*Graph), nil
}

// number gives the ids of a graph their numbers, as partition does, by a map.
func number(ctx context.Context, g *Graph, threads int) (ids []string, err error) {
	t, err := g.KeyType(ctx)
	if err != nil {
		return nil, err
	}
	seen := make([]map[string]int, threads)
	if err := g.EachKey(ctx, threads, func(thread int) func([]byte) error {
		seen[thread] = map[string]int{}
		return func(key []byte) error { seen[thread][string(key)]++; return nil }
	}); err != nil {
		return nil, err
	}
	for _, s := range seen[1:] {
		for key, n := range s {
			seen[0][key] += n
		}
	}
	keys := slices.Sorted(maps.Keys(seen[0]))
	numbers := map[string]uint32{}
	for i, key := range keys {
		if g.OwnNodes() && seen[0][key] > 1 {
			return nil, g.Twice(ctx, []byte(key))
		}
		numbers[key] = uint32(i)
		ids = append(ids, string(t.AppendText(nil, []byte(key))))
	}
	g.Number(int64(len(keys)), func(key []byte) (uint32, bool) { n, ok := numbers[string(key)]; return n, ok })
	return ids, nil
}

// content is a graph in memory, by ids.
type content struct {
	ids      []string
	edges    []string // "u v"
	labels   map[string]string
	splits   map[string]string
	features map[string]string
}

// readAll reads a graph.
func readAll(ctx context.Context, g *Graph) (c content, err error) { return readOn(ctx, g, 2) }

// readOn reads a graph, and its ids on some threads.
func readOn(ctx context.Context, g *Graph, threads int) (c content, err error) {
	if c.ids, err = number(ctx, g, threads); err != nil {
		return c, err
	}
	c.labels, c.splits, c.features = map[string]string{}, map[string]string{}, map[string]string{}
	for _, parts := range []int{1, 7} { // in the middle, too
		c.edges = nil
		for p := range parts {
			r, err := g.Edges(ctx, graph.Share{First: p, Last: p + 1, Of: parts})
			if err != nil {
				return c, err
			}
			buf := make([]graph.Edge, 100)
			for {
				n, err := r.Read(buf, nil)
				if err == io.EOF {
					break
				}
				if err != nil {
					return c, errors.Join(err, r.Close())
				}
				for _, e := range buf[:n] {
					c.edges = append(c.edges, c.ids[e.U]+" "+c.ids[e.V])
				}
			}
			if err := r.Close(); err != nil {
				return c, err
			}
		}
	}
	info := g.Info()
	if info.HasLabels {
		r, err := g.Labels(ctx)
		if err != nil {
			return c, err
		}
		defer r.Close()
		for {
			id, label, err := r.Next()
			if err == io.EOF {
				break
			}
			if err != nil {
				return c, err
			}
			c.labels[c.ids[id]] = info.Classes[label]
		}
	}
	if info.HasSplits {
		r, err := g.Splits(ctx, 0)
		if err != nil {
			return c, err
		}
		defer r.Close()
		for {
			id, split, err := r.Next()
			if err == io.EOF {
				break
			}
			if err != nil {
				return c, err
			}
			c.splits[c.ids[id]] = split.String()
		}
	}
	if info.NumFeatures > 0 {
		parts := 1
		if g.Info().CutsFeatures {
			parts = 3
		}
		for p := range parts {
			r, err := g.Features(ctx, graph.Share{First: p, Last: p + 1, Of: parts})
			if err != nil {
				return c, err
			}
			for {
				f, err := r.Next()
				if err == io.EOF {
					break
				}
				if err != nil {
					return c, errors.Join(err, r.Close())
				}
				c.features[c.ids[f.ID]] = fmt.Sprint(f.Dense)
			}
			if err := r.Close(); err != nil {
				return c, err
			}
		}
	}
	return c, nil
}

func (c content) compare(t *rapid.T, want content) {
	for _, x := range []struct {
		what      string
		got, want any
	}{{"ids", c.ids, want.ids}, {"edges", c.edges, want.edges}, {"labels", c.labels, want.labels}, {"splits", c.splits, want.splits}, {"features", c.features, want.features}} {
		if fmt.Sprint(x.got) != fmt.Sprint(x.want) {
			t.Fatalf("%s: %.300v\nwant %.300v", x.what, x.got, x.want)
		}
	}
}

// TestTablesLikeAMap reads a random graph from tables of any format, spread over any files,
// and compares it with what was written.
func TestTablesLikeAMap(t *testing.T) {
	dir := t.TempDir()
	defer func(n int64) { unitBytes = n }(unitBytes)
	run := 0
	rapid.Check(t, func(r *rapid.T) {
		run++
		typ := rapid.SampledFrom([]inputid.Type{inputid.Int64, inputid.Uint64, inputid.String}).Draw(r, "type")
		unitBytes = rapid.SampledFrom([]int64{8 << 20, 1000, 40}).Draw(r, "bytes of a part")
		text := rapid.StringMatching(`[a-z"][a-z#,"é\n]{0,5}x`)
		id := rapid.Custom(func(r *rapid.T) string {
			switch typ {
			case inputid.Int64:
				return strconv.FormatInt(rapid.Int64().Draw(r, "id"), 10)
			case inputid.Uint64:
				return strconv.FormatUint(rapid.Uint64Min(1<<63).Draw(r, "id"), 10)
			}
			return text.Draw(r, "id")
		})
		nodes := rapid.SliceOfNDistinct(id, 1, 2000, func(s string) string { return s }).Draw(r, "nodes")
		form := func(name string) string { return rapid.SampledFrom(slices.Sorted(maps.Keys(forms))).Draw(r, name) }
		column := func(name string, ids []string) col {
			switch typ {
			case inputid.Int64:
				v := make([]int64, len(ids))
				for i, s := range ids {
					v[i], _ = strconv.ParseInt(s, 10, 64)
				}
				return col{name, v}
			case inputid.Uint64:
				v := make([]uint64, len(ids))
				for i, s := range ids {
					v[i], _ = strconv.ParseUint(s, 10, 64)
				}
				return col{name, v}
			}
			return col{name, slices.Clone(ids)}
		}
		want := content{labels: map[string]string{}, splits: map[string]string{}, features: map[string]string{}}
		var us, vs []string
		for range rapid.IntRange(1, 1500).Draw(r, "edges") {
			u, v := nodes[rapid.IntRange(0, len(nodes)-1).Draw(r, "u")], nodes[rapid.IntRange(0, len(nodes)-1).Draw(r, "v")]
			us, vs = append(us, u), append(vs, v)
			want.edges = append(want.edges, u+" "+v)
		}
		var f0 []float64
		var f1 [][]float32
		var labels, splits []any
		for i, node := range nodes {
			f0, f1 = append(f0, float64(i)/4), append(f1, []float32{float32(i), -1, 0.5})
			want.features[node] = fmt.Sprint([]float32{float32(i) / 4, float32(i), -1, 0.5})
			labels, splits = append(labels, nil), append(splits, nil)
			if i%3 == 0 || i == 1 {
				labels[i], want.labels[node] = "class "+strconv.Itoa(i%5), "class "+strconv.Itoa(i%5)
			}
			if i%2 == 0 {
				splits[i] = []string{"train", "val", "test"}[i%3]
				want.splits[node] = []string{"train", "valid", "test"}[i%3]
			}
		}
		want.ids = slices.Clone(nodes)
		slices.SortFunc(want.ids, func(a, b string) int {
			x, _ := typ.ParseKey(nil, a)
			y, _ := typ.ParseKey(nil, b)
			return bytes.Compare(x, y)
		})
		spread := func(name string, cols []col) string {
			n, files := length(cols[0]), rapid.IntRange(1, 4).Draw(r, "files of "+name)
			folder := filepath.Join(dir, strconv.Itoa(run), name)
			end := form("form of " + name)
			if name == "nodes" && strings.HasPrefix(end, "csv") {
				end = "parquet" // CSV has no lists
			}
			var list []string
			for i := range files {
				list = append(list, put(t, forms[end](t, cut(cols, n*i/files, n*(i+1)/files)), folder, fmt.Sprintf("part-%d.%s", i, end)))
			}
			put(t, nil, folder, "_SUCCESS")
			switch rapid.IntRange(0, 2).Draw(r, "place of "+name) {
			case 0:
				return folder
			case 1:
				return folder + "/part-*"
			}
			return strings.Join(list, ",")
		}
		own := rapid.Bool().Draw(r, "own tables")
		uri := spread("edges", []col{column("from", us), {"since", make([]int64, len(us))}, column("to", vs)}) + "?src=from&dst=to"
		table := []col{{"f0", f0}, column("key", nodes), {"emb", f1}}
		if own {
			uri += "&labels=" + spread("labels", []col{column("key", nodes), {"label", labels}})
			uri += "&splits=" + spread("splits", []col{{"split", splits}, column("key", nodes)})
		} else {
			table = append(table, col{"topic", labels}, col{"set", splits})
			uri += "&label=topic&split=set"
		}
		uri += "&nodes=" + spread("nodes", table) + "&id=key&features=f0,emb"
		g, err := openGraph(t, uri)
		if err != nil {
			r.Fatalf("%s: %v", uri, err)
		}
		got, err := readAll(t.Context(), g)
		if err != nil {
			r.Fatalf("%s: %v", uri, err)
		}
		got.compare(r, want)
		must(t, g.Close())
	})
}

// TestNodesThatOccur takes the ids of edges and labels for nodes where there is no table of
// them.
func TestNodesThatOccur(t *testing.T) {
	dir := t.TempDir()
	edges := put(t, []byte("source\ttarget\n7\t-3\n9223372036854775807\t7\n"), dir, "e.tsv")
	labels := put(t, []byte("id,y\n100,a\n7,b\n8,\n"), dir, "l.csv")
	g, err := openGraph(t, edges+"?labels="+labels)
	must(t, err)
	c, err := readAll(t.Context(), g)
	must(t, err)
	if want := "[-3 7 8 100 9223372036854775807]"; fmt.Sprint(c.ids) != want || g.keyType != inputid.Int64 {
		t.Errorf("ids %v of type %s", c.ids, g.keyType)
	}
	if fmt.Sprint(c.edges) != "[7 -3 9223372036854775807 7]" || fmt.Sprint(c.labels) != "map[100:a 7:b]" {
		t.Errorf("%v, %v", c.edges, c.labels)
	}
	if id := g.Info().Identity; id != "table:e.tsv?labels=l.csv" {
		t.Errorf("identity %s", id)
	}
}

// TestKeyTypes chooses the type of ids.
func TestKeyTypes(t *testing.T) {
	dir := t.TempDir()
	ints := put(t, asParquet(t, []col{{"src", []int64{1}}, {"dst", []int64{2}}}), dir, "i.parquet")
	uints := put(t, asParquet(t, []col{{"src", []uint64{1}}, {"dst", []uint64{2}}}), dir, "u.parquet")
	texts := put(t, asParquet(t, []col{{"src", []string{"1"}}, {"dst", []string{"2"}}}), dir, "s.parquet")
	csvInts := put(t, []byte("src,dst\n1,2\n"), dir, "i.csv")
	csvLarge := put(t, []byte("src,dst\n1,18446744073709551615\n"), dir, "u.csv")
	csvText := put(t, []byte("src,dst\n007,2\n"), dir, "s.csv")
	jsonInts := put(t, []byte(`{"src":1,"dst":2}`), dir, "i.jsonl")
	jsonText := put(t, []byte(`{"src":"1","dst":"2"}`), dir, "s.jsonl")
	nodes := put(t, []byte("id\n1\n2\n"), dir, "n.csv")
	for uri, want := range map[string]string{
		ints: "int64", uints: "uint64", texts: "string", csvInts: "int64", csvLarge: "uint64", csvText: "string", jsonInts: "int64", jsonText: "string",
		texts + "?nodes=" + nodes: "string", uints + "?nodes=" + nodes: "uint64", ints + "?nodes=" + nodes: "int64", jsonText + "?nodes=" + nodes: "string",
	} {
		g, err := openGraph(t, uri)
		must(t, err)
		typ, err := g.KeyType(t.Context())
		if err != nil || typ.String() != want {
			t.Errorf("%s: %s, %v", filepath.Base(uri), typ, err)
		}
		if strings.Contains(uri, "nodes=") {
			if _, err := readAll(t.Context(), g); err != nil {
				t.Error(err)
			}
		}
	}
}

// TestBadTables has an error with file, row and remedy for each.
func TestBadTables(t *testing.T) {
	dir := t.TempDir()
	edges := put(t, []byte("src,dst\na,b\nb,c\n"), dir, "e.csv")
	nodes := put(t, []byte("id,x,y\na,1,2\nb,3,4\nc,5,6\n"), dir, "n.csv")
	must(t, os.MkdirAll(filepath.Join(dir, "empty"), 0o755))
	put(t, nil, dir, "marks", "_SUCCESS")
	put(t, []byte("src,dst\n1,2\n"), dir, "other", "a.csv")
	put(t, []byte("x"), dir, "other", "README.md")
	two := func(name string, first, second []byte) string {
		put(t, first, dir, name, "a.parquet")
		put(t, second, dir, name, "b.parquet")
		return filepath.Join(dir, name)
	}
	changing := two("changing", asParquet(t, []col{{"src", []int64{1}}, {"dst", []int64{2}}}), asParquet(t, []col{{"src", []string{"1"}}, {"dst", []int64{2}}}))
	lacking := two("lacking", asParquet(t, []col{{"src", []int64{1}}, {"dst", []int64{2}}}), asParquet(t, []col{{"src", []int64{1}}, {"to", []int64{2}}}))
	widths := two("widths", asParquet(t, []col{{"id", []int64{1}}, {"f", [][]float32{{1, 2}}}}), asParquet(t, []col{{"id", []int64{2}}, {"f", [][]float32{{1, 2, 3}}}}))
	ints := put(t, asParquet(t, []col{{"src", []int64{1}}, {"dst", []int64{2}}}), dir, "i.parquet")
	for name, c := range map[string]struct {
		uri  string
		want []string
	}{
		"null id in Parquet":       {put(t, asParquet(t, []col{{"src", []any{int64(1), nil}}, {"dst", []int64{1, 2}}}), dir, "null.parquet"), []string{"null.parquet row 1", `"src"`, "null"}},
		"null id in Arrow":         {put(t, asArrow(t, []col{{"src", []any{"a", nil}}, {"dst", []string{"x", "y"}}}), dir, "null.arrow"), []string{"null.arrow row 1", "null"}},
		"null id in JSON":          {put(t, []byte("{\"src\":1,\"dst\":2}\n{\"src\":null,\"dst\":2}\n"), dir, "null.jsonl"), []string{"null.jsonl line 2", "null"}},
		"absent id in JSON":        {put(t, []byte("{\"src\":1,\"dst\":2}\n\n{\"dst\":2}\n"), dir, "absent.jsonl"), []string{"absent.jsonl line 3", "null"}},
		"empty id":                 {put(t, []byte("src,dst\na,b\n ,c\n"), dir, "empty.csv"), []string{"empty.csv line 3", "empty"}},
		"long id":                  {put(t, []byte("src,dst\na,"+strings.Repeat("b", 5000)+"\n"), dir, "long.csv"), []string{"long.csv line 2", "5000 bytes"}},
		"missing column":           {edges + "?src=from&dst=to", []string{"e.csv", `"from"`, "src, dst"}},
		"unknown columns":          {put(t, []byte("a,b,c\n1,2,3\n"), dir, "abc.csv"), []string{"abc.csv", "src=COLUMN&dst=COLUMN", "a, b, c"}},
		"missing feature":          {edges + "?nodes=" + nodes + "&features=x,z", []string{"n.csv", `"z"`, "id, x, y"}},
		"missing label":            {edges + "?nodes=" + nodes + "&label=z", []string{"n.csv", `"z"`}},
		"missing id":               {edges + "?nodes=" + nodes + "&id=key", []string{"n.csv", `"key"`}},
		"changing type":            {changing, []string{"b.parquet", `"src"`, "string", "int64", "a.parquet"}},
		"column lacks in one":      {lacking, []string{"b.parquet", `"dst"`, "src, to"}},
		"lists of two lengths":     {ints + "?nodes=" + widths + "&features=f", []string{"b.parquet", "3 numbers", "2 in"}},
		"ids of two types":         {ints + "?nodes=" + put(t, asParquet(t, []col{{"id", []string{"1"}}}), dir, "sn.parquet"), []string{"sn.parquet", "string", "int64", "i.parquet"}},
		"text among numbers":       {ints + "?nodes=" + put(t, []byte("id\n1\n2\nx\n"), dir, "x.csv"), []string{"x.csv line 4", `"x"`, "int64"}},
		"numbers and text in JSON": {put(t, []byte("{\"src\":1,\"dst\":2}\n{\"src\":\"1\",\"dst\":2}\n"), dir, "mixed.jsonl"), []string{"mixed.jsonl line 2", `"src"`, "string"}},
		"fraction in JSON":         {put(t, []byte("{\"src\":1.5,\"dst\":2}\n"), dir, "frac.jsonl"), []string{"frac.jsonl line 1", "1.5"}},
		"unknown node":             {edges + "?nodes=" + put(t, []byte("id\na\nb\n"), dir, "ab.csv"), []string{"e.csv line 3", `"c"`, "ab.csv"}},
		"label of no node":         {edges + "?nodes=" + nodes + "&labels=" + put(t, []byte("id,label\na,1\nq,2\n"), dir, "ql.csv"), []string{"ql.csv line 3", `"q"`}},
		"duplicate node":           {edges + "?nodes=" + put(t, []byte("id\na\nb\nc\nb\n"), dir, "dup.csv"), []string{"dup.csv line 5", `"b"`, "line 3"}},
		"empty folder":             {dir + "/empty", []string{"empty", "no file"}},
		"folder of marks":          {dir + "/marks", []string{"marks", "no file"}},
		"pattern of nothing":       {dir + "/nothing-*.csv", []string{"nothing-*.csv", "no file"}},
		"foreign file":             {dir + "/other", []string{"README.md", "no table"}},
		"empty file":               {put(t, nil, dir, "void.csv"), []string{"void.csv", "is empty (0 bytes)"}},
		"empty lines":              {put(t, nil, dir, "void.jsonl"), []string{"void.jsonl", "is empty", "no file of the table holds a row"}},
		"other width":              {put(t, []byte("src,dst\n1,2\n1,2,3\n"), dir, "wide.csv"), []string{"wide.csv line 3", "the number of columns is 3, and 2 in the first line"}},
		"open quote":               {put(t, []byte("src,dst\n\"1,2\n"), dir, "quote.csv"), []string{"quote.csv line", "quotes"}},
		"text feature":             {edges + "?nodes=" + put(t, []byte("id,x\na,1\nb,?\nc,2\n"), dir, "q.csv") + "&features=x", []string{"q.csv line 3", `"?"`}},
		"NaN feature":              {edges + "?nodes=" + put(t, []byte("id,x\na,1\nb,nan\nc,2\n"), dir, "nan.csv") + "&features=x", []string{"nan.csv line 3", `"nan"`}},
		"null feature":             {ints + "?nodes=" + put(t, asParquet(t, []col{{"id", []int64{1, 2}}, {"x", []any{1.5, nil}}}), dir, "nf.parquet") + "&features=x", []string{"nf.parquet row 1", "null"}},
		"infinite feature":         {ints + "?nodes=" + put(t, asArrow(t, []col{{"id", []int64{1, 2}}, {"x", []float64{1, math.Inf(1)}}}), dir, "inf.arrow") + "&features=x", []string{"inf.arrow row 1", "Inf"}},
		"unknown split":            {edges + "?nodes=" + put(t, []byte("id,s\na,train\nb,what\nc,\n"), dir, "sp.csv") + "&split=s", []string{"sp.csv line 3", `"what"`}},
		"not JSON":                 {put(t, []byte("{\"src\":1,\"dst\":2}\n[1,2]\n"), dir, "list.jsonl"), []string{"list.jsonl line 2"}},
		"Parquet that is none":     {put(t, []byte("PAR1 hello PAR1"), dir, "no.parquet"), []string{"no.parquet"}},
		"Arrow that is none":       {put(t, []byte("hello"), dir, "no.arrow"), []string{"no.arrow"}},
		"binary CSV":               {put(t, asParquet(t, []col{{"src", []int64{1}}}), dir, "p.csv"), []string{"p.csv", "Parquet"}},
		"no labels at all":         {edges + "?nodes=" + put(t, []byte("id,l\na,\nb,\nc,\n"), dir, "nol.csv") + "&label=l", []string{"nol.csv", "no label"}},
	} {
		for _, unitBytes = range []int64{9, 8 << 20} {
			t.Run(fmt.Sprint(name, " in parts of ", unitBytes), func(t *testing.T) {
				g, err := openGraph(t, c.uri)
				if err == nil {
					_, err = readAll(t.Context(), g)
				}
				if err == nil || !errors.Is(err, graph.ErrData) {
					t.Fatalf("%v", err)
				}
				for _, want := range c.want {
					if !strings.Contains(err.Error(), want) {
						t.Errorf("%q lacks %q", err, want)
					}
				}
			})
		}
	}
}

// TestDeltaParquet reads columns of deltas, some of which another reader gets wrong.
func TestDeltaParquet(t *testing.T) {
	const n = 100_000
	ids, years := make([]int64, n), make([]int64, n)
	for i := range ids {
		ids[i], years[i] = int64(i)*7919%(1<<40), int64(i)
	}
	rec := asRecord(t, []col{{"src", ids}, {"dst", years}})
	defer rec.Release()
	data, err := parquettest.Write(rec, parquet.WithDictionaryDefault(false), parquet.WithEncoding(parquet.Encodings.DeltaBinaryPacked))
	must(t, err)
	g, err := openGraph(t, put(t, data, t.TempDir(), "delta.parquet"))
	must(t, err)
	c, err := readAll(t.Context(), g)
	if err != nil || len(c.edges) != n {
		t.Fatalf("%d edges, %v", len(c.edges), err)
	}
	for i, e := range c.edges {
		if e != fmt.Sprint(ids[i], " ", years[i]) {
			t.Fatalf("edge %d is %s", i, e)
		}
	}
}

// TestRanges: a range stands for the columns of its numbers, in their order.
func TestRanges(t *testing.T) {
	for text, want := range map[string]string{
		"x9..x11": "x9 x10 x11", "x08..x10": "x08 x09 x10", "f2x0..f2x1": "f2x0 f2x1", "x0..x0": "x0", "0..2": "0 1 2",
		"a0..b2": "a0..b2", "a..b": "a..b", "x0%2E%2Ex3": "x0..x3", "a%2C1..a%2C2": "a,1 a,2",
	} {
		names, err := columns(text)
		if got := strings.Join(names, " "); err != nil || got != want {
			t.Errorf("%s: %s, %v; want %s", text, got, err, want)
		}
	}
	nodes := put(t, []byte("id,x0,x1,x2,y\n7,1,2,3,a\n8,4,5,6,b\n"), t.TempDir(), "n.csv")
	edges := put(t, []byte("src,dst\n7,8\n"), t.TempDir(), "e.csv")
	g, err := openGraph(t, edges+"?nodes="+nodes+"&features=x0..x2&label=y")
	if err != nil || g.info.NumFeatures != 3 {
		t.Fatalf("%+v, %v", g, err)
	}
	defer func() { _ = g.Close() }()
	if named, err := openGraph(t, edges+"?nodes="+nodes+"&features=x0,x1,x2&label=y"); err != nil || named.info.Identity != g.info.Identity {
		t.Errorf("another identity than with all names: %v", err)
	} else {
		_ = named.Close()
	}
}

// TestBadURIs has an error with the way out for each.
func TestBadURIs(t *testing.T) {
	for uri, want := range map[string]string{
		"": "table:EDGES", "e.csv?src=a": "go together", "e.csv?src=a&dst=a": "same column",
		"e.csv?features=x": "nodes=", "e.csv?label=x": "labels=", "e.csv?split=x": "splits=", "e.csv?sorce=x": "unknown key", "e.csv?nodse=n.csv": "did you mean nodes?",
		"e.csv,": "empty path", "e.csv?nodes=n.csv&features=a,a": "each once", "e.csv?nodes=n.csv&features=a1,a0..a3": "each once",
		"e.csv?nodes=n.csv&features=a3..a1": "larger one", "e.csv?nodes=n.csv&features=a0..a999999999": "65536 columns", "e.csv?directed=maybe": "true or false",
	} {
		if _, err := openGraph(t, uri); !errors.Is(err, graph.ErrURI) || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", uri, err)
		}
	}
}

// TestNearColumn: a column that is not there is answered with the one that may have been meant.
func TestNearColumn(t *testing.T) {
	nodes := put(t, []byte("id,x0,topic\n7,1,a\n8,4,b\n"), t.TempDir(), "n.csv")
	edges := put(t, []byte("from,to\n7,8\n"), t.TempDir(), "e.csv")
	for query, want := range map[string]string{
		"?src=form&dst=to&nodes=" + nodes:                                "did you mean from?",
		"?src=from&dst=to&nodes=" + nodes + "&features=x0&label=topci":   "did you mean topic?",
		"?src=from&dst=to&nodes=" + nodes + "&features=x0&label=subject": "the columns are id, x0, topic",
	} {
		if _, err := openGraph(t, edges+query); !errors.Is(err, graph.ErrData) || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("%s: %v", query, err)
		}
	}
}

// FuzzTable reads any bytes as any format, for what a table may hold. An input takes about 10
// milliseconds: without -fuzzminimizetime 1x, which make fuzz has, the fuzzer does nothing but
// shorten each input that it likes, for a minute.
func FuzzTable(f *testing.F) {
	for end, form := range forms {
		f.Add(form(f, []col{{"id", []int64{1, 2, 3}}, {"dst", []any{int64(2), nil, int64(1)}}, {"f", []float64{1, 2, 3}}, {"l", []string{"a", "b", ""}}}), end)
		f.Add(form(f, []col{{"id", []string{"a", "b"}}, {"dst", []string{"b", "c"}}, {"f", [][]float32{{1, 2}, {3, 4}}}}), end)
	}
	f.Add([]byte("{\"id\":1,\"dst\":null,\"f\":[1,2]}\n{\"id\":2,\"f\":null}\n"), "jsonl")
	f.Fuzz(func(t *testing.T, data []byte, end string) {
		if _, ok := forms[end]; !ok {
			return
		}
		name := put(t, data, t.TempDir(), "t."+end)
		for _, uri := range []string{
			name + "?src=id&dst=dst", name + "?header=false&missing=NA,1&src=1&dst=2", name + "?src=id&dst=dst&encoding=windows-1252&quotes=false", name + "?src=id&dst=dst&nodes=" + name + "&id=id&features=f&label=l", name + "?src=id&dst=id2&nodes=" + name + "&features=f,dst&split=l",
		} {
			g, err := openGraph(t, uri)
			if err == nil {
				// On one thread an input always covers the same code.
				_, err = readOn(t.Context(), g, 1)
				_ = g.Close()
			}
			if err != nil && !errors.Is(err, graph.ErrData) && !errors.Is(err, graph.ErrURI) {
				t.Fatalf("%s: %v", uri, err)
			}
		}
	})
}

// TestNumberAgain ends what an earlier Number has made of ids, with what was called before they were looked up.
func TestNumberAgain(t *testing.T) {
	dir := t.TempDir()
	g, err := Open(t.Context(), put(t, []byte("src,dst\na,b\nb,c\n"), dir, "edges.csv"), graph.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = g.Close() }()
	ids := g.(graph.Keyed)
	fetched := 0
	for range 2 {
		ids.Number(26, func(key []byte) (uint32, bool) { return uint32(key[0] - 'a'), true })
		for round := range 2 {
			if round == 1 {
				ids.FetchBy(func(keys [][]byte) { fetched += len(keys) })
			}
			before, batch := fetched, make([]graph.Edge, 8)
			r, err := g.Edges(t.Context(), graph.Share{First: 0, Last: 1, Of: 1})
			if err != nil {
				t.Fatal(err)
			}
			n, _ := r.Read(batch, nil)
			if err := r.Close(); err != nil || n != 2 || batch[0] != (graph.Edge{U: 0, V: 1}) || batch[1] != (graph.Edge{U: 1, V: 2}) {
				t.Fatalf("%d edges %v, %v", n, batch[:n], err)
			}
			if got := fetched - before; got != 4*round {
				t.Errorf("%d keys were fetched, want %d", got, 4*round)
			}
		}
	}
}
