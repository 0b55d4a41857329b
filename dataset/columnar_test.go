package dataset

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"ndls/dataset/graph"
)

// columnarFiles writes the files of testdata/columnar.py.
func columnarFiles(t *testing.T) (dir string) {
	t.Helper()
	python := os.Getenv("NDLS_PYTHON")
	if python == "" && os.Getenv("CI") == "true" {
		t.Fatal("NDLS_PYTHON is not set, and CI=true requires it: it names a python with pyarrow, Polars and DuckDB")
	}
	if python == "" {
		t.Skip("NDLS_PYTHON is not set: it names a python with pyarrow, Polars and DuckDB")
	}
	dir = t.TempDir()
	if out, err := exec.Command(python, "testdata/columnar.py", dir).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return dir
}

// numbered gives ids of tables the numbers of their order.
func numbered(t *testing.T, d Dataset) (names []string) {
	t.Helper()
	k, ok := d.(Keyed)
	if !ok {
		return nil
	}
	typ, err := k.KeyType(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var keys []string
	err = k.EachKey(t.Context(), 1, func(int) func([]byte) error {
		return func(key []byte) error {
			keys = append(keys, string(key))
			return nil
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(keys)
	keys = slices.Compact(keys)
	k.Number(int64(len(keys)), func(key []byte) (uint32, bool) {
		i, ok := slices.BinarySearch(keys, string(key))
		return uint32(i), ok
	})
	for _, key := range keys {
		names = append(names, string(typ.AppendText(nil, []byte(key))))
	}
	return names
}

// told returns the content of a dataset as a text.
func told(t *testing.T, uri string) string {
	t.Helper()
	d := open(t, uri, Options{})
	names := numbered(t, d)
	var parts []string
	edges, err := readEdges(d, 100)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range edges {
		if names != nil {
			parts = append(parts, names[e.U]+">"+names[e.V])
		} else {
			parts = append(parts, fmt.Sprintf("%d>%d", e.U, e.V))
		}
	}
	if d.Info().Weighted {
		r, err := d.Edges(t.Context(), Whole)
		if err != nil {
			t.Fatal(err)
		}
		weights := make([]float32, len(edges))
		if _, err := r.Read(make([]Edge, len(edges)), weights); err != nil {
			t.Fatal(err)
		}
		parts = append(parts, fmt.Sprint(weights))
	}
	if d.Info().NumFeatures > 0 {
		r, err := d.Features(t.Context(), Whole)
		if err != nil {
			t.Fatal(err)
		}
		for range d.Info().NumNodes {
			row, err := r.Next()
			if err != nil {
				t.Fatal(err)
			}
			dense := make([]float32, d.Info().NumFeatures)
			copy(dense, row.Dense)
			for i, at := range row.Indices {
				dense[at] = row.Values[i]
			}
			parts = append(parts, fmt.Sprint(row.ID, dense))
		}
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if d.Info().HasLabels {
		labels, err := readLabels(d)
		if err != nil {
			t.Fatal(err)
		}
		parts = append(parts, fmt.Sprint("labels ", d.Info().Classes, labels))
	}
	if d.Info().HasSplits {
		splits, err := readSplits(d)
		if err != nil {
			t.Fatal(err)
		}
		parts = append(parts, fmt.Sprint("splits ", splits))
	}
	return strings.Join(parts, " ")
}

// TestColumnTypes reads columns of Parquet and Arrow as what their types say.
func TestColumnTypes(t *testing.T) {
	dir := columnarFiles(t)
	const ring, three = "0>1 1>2 2>0", "&nodes=3"
	for uri, want := range map[string]string{
		"edges:%s/weight.parquet?weight=w":                                         "0>1 [0.25]",
		"table:%s/weight.parquet?weight=w":                                         "0>1 [0.25]",
		"edges:%s/a.txt?features=%s/decimals.parquet" + three:                      ring + " 0 [0.25] 1 [-1.5] 2 [3]",
		"edges:%s/a.txt?features=%s/wide.parquet" + three:                          ring + " 0 [0.25] 1 [-1.5] 2 [3]",
		"edges:%s/a.txt?features=%s/u64.parquet" + three:                           ring + " 0 [9.223372e+18] 1 [9.223372e+18] 2 [9.223372e+18]",
		"edges:%s/a.txt?features=%s/float16.parquet" + three:                       ring + " 0 [0 1 0.5] 1 [1 2 1] 2 [2 0 -2]",
		"edges:%s/a.txt?features=%s/bools.parquet" + three:                         ring + " 0 [1] 1 [0] 2 [1]",
		"edges:%s/a.txt?features=%s/vectors.parquet" + three:                       ring + " 0 [0 0 0.5] 1 [1 2 3] 2 [0 0 0]",
		"edges:%s/a.txt?features=%s/vectors.arrow" + three:                         ring + " 0 [0 0 0.5] 1 [1 2 3] 2 [0 0 0]",
		"edges:%s/ids92.parquet":                                                   ring,
		"table:%s/ids92.parquet":                                                   ring,
		"edges:%s/floats.parquet":                                                  ring,
		"table:%s/floats.parquet":                                                  ring,
		"edges:%s/float16.parquet":                                                 ring,
		"edges:%s/variant.parquet":                                                 ring,
		"table:%s/variant.parquet":                                                 ring,
		"edges:%s/split.parquet":                                                   ring,
		"edges:%s/delta.parquet":                                                   ring,
		"table:%s/delta.parquet":                                                   ring,
		"edges:%s/lz4.parquet":                                                     ring,
		"edges:%s/stream.arrow":                                                    ring,
		"table:%s/stream.arrow":                                                    ring,
		"edges:%s/edges.feather":                                                   ring,
		"table:%s/d180.parquet":                                                    "5>6 6>7",
		"table:%s/d380.parquet":                                                    "5>6 6>18446744073709551615",
		"table:%s/huge.parquet":                                                    "0>1 1>2 2>3",
		"table:%s/uuid_duckdb.parquet":                                             "00000000-0000-0000-0000-00000000000a>00000000-0000-0000-0000-00000000000b",
		"table:%s/uuid_pyarrow.parquet":                                            "00000000-0000-0000-0000-00000000000a>00000000-0000-0000-0000-00000000000b",
		"table:%s/views.arrow":                                                     "a longer text than fits a view>b b>c",
		"edges:%s/a.txt?features=%s/list_null.parquet&nulls=zero" + three:          ring + " 0 [1 2] 1 [0 0] 2 [3 4]",
		"edges:%s/a.txt?features=%s/list_empty.arrow&nulls=zero" + three:           ring + " 0 [1 2] 1 [0 0] 2 [3 4]",
		"edges:%s/a.txt?features=%s/list_hole.arrow&nulls=zero" + three:            ring + " 0 [1 2] 1 [1 0] 2 [3 4]",
		"edges:%s/a.txt?features=%s/first.parquet&nulls=zero" + three:              ring + " 0 [0 0] 1 [0 0] 2 [3 4]",
		"edges:%s/a.txt?features=%s/null.parquet&nulls=zero" + three:               ring + " 0 [1] 1 [0] 2 [3]",
		"edges:%s/a.txt?labels=%s/labels.parquet%23topic&splits=%s/labels.parquet": ring + " labels [a b] map[0:0 1:1 2:1] splits map[0:valid 1:test 2:train]",
		"edges:%s/a.txt?labels=%s/labels.arrow%23train":                            ring + " labels [0 1] map[0:1 1:0 2:1]",
		"edges:%s/a.txt?labels=%s/rowlabels.parquet":                               ring + " labels [1 3] map[0:1 1:0 2:0]",
	} {
		t.Run(uri, func(t *testing.T) {
			uri = strings.ReplaceAll(strings.ReplaceAll(uri, "%23", "#"), "%s", dir)
			if got := told(t, uri); got != want {
				t.Errorf("read\n%s, not\n%s", got, want)
			}
		})
	}
	for nodes, want := range map[string]string{
		"moments.parquet&features=t":              "[1.5778368e+15] [1.5778368e+15] [1.5778368e+15]",
		"moments.parquet&features=d,x":            "[2 1] [2 2] [2 3]",
		"inside.parquet&features=s.x,s.l":         "[1.5 1 2] [2.5 3 4] [3.5 5 6]",
		"vectors.parquet&features=v":              "[0 0 0.5] [1 2 3] [0 0 0]",
		"list_null.parquet&features=x&nulls=zero": "[1 2] [0 0] [3 4]",
		"decimals.parquet&features=x":             "[0.25] [-1.5] [3]",
	} {
		t.Run("table "+nodes, func(t *testing.T) {
			d := open(t, strings.ReplaceAll("table:%s/split.parquet?nodes=%s/"+nodes, "%s", dir), Options{})
			numbered(t, d)
			rows, err := d.Features(t.Context(), Whole)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for range 3 {
				row, err := rows.Next()
				if err != nil {
					t.Fatal(err)
				}
				dense := make([]float32, d.Info().NumFeatures)
				copy(dense, row.Dense)
				for i, at := range row.Indices {
					dense[at] = row.Values[i]
				}
				got = append(got, fmt.Sprint(dense))
			}
			if strings.Join(got, " ") != want {
				t.Errorf("read %s, not %s", got, want)
			}
			if strings.Contains(nodes, "moments") {
				var notes []string
				for _, n := range Notes(d) {
					notes = append(notes, n.Text)
				}
				if text := strings.Join(notes, "\n"); !strings.Contains(text, "since 1970") {
					t.Errorf("no note says what a time is: %s", text)
				}
			}
		})
	}
}

// TestColumnTypesRefused refuses what is not read, with the column, the type or row, and the way out.
func TestColumnTypesRefused(t *testing.T) {
	dir := columnarFiles(t)
	for uri, want := range map[string][]string{
		"edges:%s/stamps.parquet":                                 {`column "src" is of type timestamp[us]`, "cast it"},
		"table:%s/stamps.parquet":                                 {`column "src" is of type timestamp[us]`, "cast it"},
		"edges:%s/a.txt?features=%s/moments.parquet":              {`column "t" is of type timestamp[us]`, "cast it"},
		"edges:%s/a.txt?labels=%s/labels.parquet#when":            {`column "when" is of type timestamp[us]`, "cast it"},
		"table:%s/split.parquet?nodes=%s/moments.parquet&label=d": {`column "d" is of type date`, "cast it"},
		"edges:%s/fraction.parquet":                               {"row 1", `column "src"`, "1.5", "whole number"},
		"table:%s/fraction.parquet":                               {"row 1", `"src"`, "1.5", "whole number"},
		"edges:%s/float_nan.parquet":                              {"row 1", `column "src"`, "NaN"},
		"table:%s/float_nan.parquet":                              {"row 1", `column "src"`, "NaN"},
		"edges:%s/float_half.parquet":                             {"row 1", `column "src"`, "1.5"},
		"table:%s/float_half.parquet":                             {"row 1", `column "src"`, "1.5"},
		"table:%s/float_large.parquet":                            {"row 1", `column "src"`, "2^53"},
		"edges:%s/variant.parquet?src=v&dst=dst":                  {`column "v" is of type variant, which is not read`},
		"table:%s/variant.parquet?src=v&dst=dst":                  {`column "v" is of type variant, which is not read`},
		"edges:%s/twice.parquet":                                  {"twice.parquet", `two columns named "dst"`},
		"table:%s/twice.parquet":                                  {"twice.parquet", `two columns named "dst"`},
		"table:%s/twice.arrow":                                    {"twice.arrow", `two columns named "dst"`},
		"table:%s/alike.parquet?src=src&dst=dst":                  {"alike.parquet", `two columns named "dst"`},
		"table:%s/parts":                                          {"b.parquet", "is empty (0 bytes)"},
		"edges:%s/a.txt?features=%s/list_null.parquet&nodes=3":    {"list_null.parquet row 1", "null", "nulls=zero"},
		"edges:%s/a.txt?features=%s/list_empty.parquet&nodes=3":   {"list_empty.parquet row 1", "empty list", "nulls=zero"},
		"edges:%s/a.txt?features=%s/list_hole.parquet&nodes=3":    {"list_hole.parquet row 1", "null", "nulls=zero"},
		"edges:%s/a.txt?features=%s/list_short.parquet&nodes=3":   {"list_short.parquet row 1", "1 numbers, and 2"},
		"edges:%s/a.txt?features=%s/list_null.arrow&nodes=3":      {"list_null.arrow row 1", "null", "nulls=zero"},
		"edges:%s/a.txt?features=%s/list_empty.arrow&nodes=3":     {"list_empty.arrow row 1", "empty list", "nulls=zero"},
		"edges:%s/a.txt?features=%s/null.parquet&nodes=3":         {"null.parquet row 1", "null", "nulls=zero"},
		"table:%s/bytes.parquet":                                  {"bytes.parquet row 0", `"src"`, "UTF-8"},
		"table:%s/bools.parquet?src=x&dst=id":                     {`column "x" is of type bool`, "cast it"},
	} {
		t.Run(uri, func(t *testing.T) {
			err := readKeyed(t, strings.ReplaceAll(uri, "%s", dir))
			for _, part := range want {
				if !errors.Is(err, graph.ErrData) || !strings.Contains(err.Error(), part) {
					t.Errorf("%v lacks %q", err, part)
				}
			}
		})
	}
	for uri, part := range map[string]string{"edges:a.txt?features=x.parquet&nulls=skip": "nulls=zero", "table:e.parquet?nulls=zero": "features="} {
		if _, err := Open(t.Context(), uri, Options{}); !errors.Is(err, ErrURI) || !strings.Contains(err.Error(), part) {
			t.Errorf("%s: %v", uri, err)
		}
	}
}

// readKeyed reads a dataset whose ids may have to be numbered.
func readKeyed(t *testing.T, uri string) error {
	t.Helper()
	if !strings.HasPrefix(uri, "table:") {
		return readAll(t, uri)
	}
	d, err := Open(t.Context(), uri, Options{})
	if err != nil {
		return err
	}
	defer d.Close()
	k := d.(Keyed)
	if _, err := k.KeyType(t.Context()); err != nil {
		return err
	}
	return k.EachKey(t.Context(), 1, func(int) func([]byte) error { return func([]byte) error { return nil } })
}

// TestColumnarIDs reads lists of ids from columns.
func TestColumnarIDs(t *testing.T) {
	dir := columnarFiles(t)
	for name, want := range map[string]string{"decimals.parquet": "[0 1 2]", "labels.arrow": "[2 0 1]", "rowlabels.parquet": "[3 1 1]", "list_null.arrow": "[0 1 2]"} {
		ids, err := OpenIDs(t.Context(), dir+"/"+name)
		if err != nil {
			t.Error(err)
			continue
		}
		var got []int64
		for id, err := ids.Next(); err == nil; id, err = ids.Next() {
			got = append(got, id)
		}
		if fmt.Sprint(got) != want {
			t.Errorf("%s has the ids %v, not %s", name, got, want)
		}
		if err := ids.Close(); err != nil {
			t.Error(err)
		}
	}
	if _, err := OpenIDs(t.Context(), dir+"/uuid_duckdb.parquet"); !errors.Is(err, ErrData) || !strings.Contains(err.Error(), "src, dst") {
		t.Error(err)
	}
}
