package table

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"ndls/dataset/graph"
	"ndls/internal/testgraph"
)

// textsOfOthers lists the files of text of others: those of DuckDB, and those below the folders in NDLS_CORPORA.
func textsOfOthers(t *testing.T) (files []string) {
	roots := []string{testgraph.Published(t, "corpora/duckdb/data/csv")}
	if more := os.Getenv("NDLS_CORPORA"); more != "" {
		roots = append(roots, filepath.SplitList(more)...)
	}
	for _, root := range roots {
		must(t, filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			if err == nil && !d.IsDir() && formatOf(path) == csvFormat {
				files = append(files, path)
			}
			return err
		}))
	}
	return files
}

func sizeOf(t *testing.T, path string) int64 {
	info, err := os.Stat(path)
	must(t, err)
	return info.Size()
}

// otherText holds what a file of others was read as.
type otherText struct {
	Path      string     `json:"path"`
	Separator string     `json:"separator"`
	Skip      int64      `json:"skip"`
	Columns   int        `json:"columns"`
	Rows      [][]string `json:"rows"` // the first two fields
}

// readOtherText reads the first two columns of a file as edges, in parts of some length, and the rows that became of them.
func readOtherText(t *testing.T, path string) (f otherText, err error) {
	// The names of a header may be numbers, or be there twice: the columns are read by number, and the first row may be
	// the header.
	p := strings.NewReplacer("%", "%25", ",", "%2C", "?", "%3F").Replace(path)
	g, err := openGraph(t, p+"?header=false&src=1&dst=2")
	if err != nil {
		return f, err
	}
	defer g.Close()
	c, ok := g.edges.files[0].rows.(*csvFile)
	if !ok {
		return f, fmt.Errorf("%s is read as %T", path, g.edges.files[0].rows)
	}
	f = otherText{Path: path, Separator: string(c.separator), Skip: c.skip, Columns: len(c.header)}
	if _, err := readAll(t.Context(), g); err != nil {
		return f, err
	}
	err = g.edges.eachBatch(t.Context(), []string{"1", "2"}, func(b *batch) error {
		for i := range b.n {
			f.Rows = append(f.Rows, []string{string(b.cols[0].text[i]), string(b.cols[1].text[i])})
		}
		return nil
	})
	return f, err
}

// TestTextOfOthers reads the CSV files of others. Each is read, or refused with its name, in bounded memory; the module csv
// of Python finds the same rows in those that are read.
func TestTextOfOthers(t *testing.T) {
	defer func(n int64) { unitBytes = n }(unitBytes)
	var read []otherText
	reasons := map[string]int{}
	lengths := []int64{8 << 20, 100, 4096}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for _, path := range textsOfOthers(t) {
		var first otherText
		var firstErr error
		for i, length := range lengths {
			if testing.Short() && i > 0 && (length == 100) != (sizeOf(t, path) < 4<<10) {
				continue // the shortest parts of short files, and longer ones of long files
			}
			unitBytes = length
			f, err := readOtherText(t, path)
			if i == 0 {
				first, firstErr = f, err
			}
			if (err == nil) != (firstErr == nil) || err == nil && fmt.Sprint(f.Rows) != fmt.Sprint(first.Rows) {
				t.Errorf("%s in parts of %d differs: %v, %v", path, length, err, firstErr)
			}
		}
		switch {
		case firstErr == nil:
			read = append(read, first)
		case !errors.Is(firstErr, graph.ErrData) || !strings.Contains(firstErr.Error(), filepath.Base(path)):
			t.Errorf("%s: %v", path, firstErr)
		default:
			_, reason, _ := strings.Cut(firstErr.Error(), ": ")
			if len(reason) > 60 {
				reason = reason[:60]
			}
			reasons[reason]++
			t.Logf("refused: %v", firstErr)
		}
	}
	runtime.ReadMemStats(&after)
	if grown := int64(after.HeapSys) - int64(before.HeapSys); grown > 256<<20 {
		t.Errorf("the heap grew by %d MiB", grown>>20)
	}
	for reason, n := range reasons {
		t.Logf("%d: %s", n, reason)
	}
	t.Logf("%d files were read", len(read))
	rowsOfPython(t, read)
}

// rowsOfPython reads the same files by the module csv of Python.
func rowsOfPython(t *testing.T, read []otherText) {
	python := os.Getenv("NDLS_PYTHON")
	if python == "" && os.Getenv("CI") == "true" {
		t.Fatal("NDLS_PYTHON is not set, and CI=true requires it")
	}
	if python == "" {
		t.Log("NDLS_PYTHON is not set: the rows are not compared")
		return
	}
	list := put(t, nil, t.TempDir(), "files.json")
	data, err := json.Marshal(read)
	must(t, err)
	must(t, os.WriteFile(list, data, 0o644))
	out, err := exec.Command(python, "testdata/rows.py", list).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if differ := strings.Fields(string(out)); len(differ) > 0 {
		slices.Sort(differ)
		t.Errorf("Python reads other rows:\n%s", out)
	}
}
