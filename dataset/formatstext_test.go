package dataset

import (
	"flag"
	"os"
	"strings"
	"testing"

	"ndls/dataset/column"
	"ndls/dataset/layout/npz"
	"ndls/dataset/table"
)

var rewrite = flag.Bool("rewrite", false, "write docs/formats.md again")

// TestFormatsDocument keeps docs/formats.md the text that the program prints:
// `go test ./dataset -run TestFormatsDocument -rewrite` writes it.
func TestFormatsDocument(t *testing.T) {
	const path = "../docs/formats.md"
	text, kinds := Formats()
	for _, k := range kinds {
		text += "\n" + k.Text
	}
	if *rewrite {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	written, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if string(written) != text {
		t.Errorf("%s is not what ndls help datasets prints: run this test with -rewrite", path)
	}
}

// TestFormatsTellAll looks for every key, name and extension that the readers know.
func TestFormatsTellAll(t *testing.T) {
	intro, kinds := Formats()
	about := map[string]string{}
	for i, k := range kinds {
		s := schemes[i]
		if k.Name != s.name || !strings.HasPrefix(k.Text, "## "+s.name+": ") || k.Title == "" || !strings.Contains(intro, "    "+s.name+":") {
			t.Errorf("%s has no heading, or is missing in the introduction", s.name)
		}
		about[s.name] = k.Text
	}
	tells := func(kind string, words ...string) {
		for _, word := range words {
			if !strings.Contains(about[kind], word) {
				t.Errorf("%s: nothing is said of %s", kind, word)
			}
		}
	}
	for _, key := range edgesKeys {
		tells("edges", "`"+key+"=")
	}
	for _, names := range [][]string{column.IDNames, table.LabelNames, table.SplitNames} {
		for _, name := range names {
			tells("edges", "`"+name+"`")
		}
	}
	tells("edges", ".parquet", ".npy", ".npz", ".u32", ".bin", ".u64", ".arrow", ".feather", ".json", "1048576", "65536", "1000")
	for _, names := range [][]string{npz.AdjacencyNames, npz.AttributeNames, npz.LabelNames} {
		for _, name := range names {
			tells("npz", "`"+name)
		}
	}
	for _, key := range table.Keys {
		tells("table", "`"+key+"=")
	}
	for _, name := range table.Names() {
		tells("table", "`"+name+"`")
	}
	tells("table", ".parquet", ".pq", ".arrow", ".feather", ".ipc", ".csv", ".tsv", ".txt", ".jsonl", ".ndjson", ".json", "4096")
	for _, key := range syntheticKeys {
		tells("synthetic", key+"=")
	}
	for _, key := range papersKeys {
		tells("papers100m", key+"=")
	}
}
