package export

import (
	"archive/zip"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// predicted are the lines of predictions, and those of the node table, by id.
func predicted(t *testing.T, f *fixture) (lines [][]string, node map[string][]string) {
	t.Helper()
	node = map[string][]string{}
	for _, line := range f.want["nodes"] {
		cells := strings.Split(line, ",")
		node[cells[0]] = cells
	}
	for _, line := range f.want["predictions"] {
		lines = append(lines, strings.Split(line, ","))
	}
	return lines, node
}

// TestTrueLabels compares predictions with true labels with predictions and the node table.
func TestTrueLabels(t *testing.T) {
	f := newFixture(t)
	names := map[string]string{"-1": "", "0": "a", "1": "b", "2": "c"}
	var want []string
	lines, node := predicted(t, f)
	for _, cells := range lines {
		n := node[cells[0]]
		label, split := n[3], n[4]
		want = append(want, strings.Join(append([]string{cells[0], cells[1], names[cells[1]], label, names[label], split}, cells[2:]...), ","))
	}
	for _, format := range []string{"csv", "npy", "parquet", "arrow"} {
		out := filepath.Join(t.TempDir(), "out")
		b := budget(t, 1<<20)
		rows, err := Run(context.Background(), f.cat, Options{What: "predictions", TrueLabels: true, Format: format, Out: out, Budget: b})
		must(t, err)
		text, err := os.ReadFile(out)
		must(t, err)
		if got := decode(t, format, text); rows != nodes || !slices.Equal(got, want) {
			t.Errorf("%s: %d rows\n%s\nwant\n%s", format, rows, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
		if b.Free() != 1<<20 {
			t.Errorf("%s: %d bytes of the budget were not given back", format, 1<<20-b.Free())
		}
	}
}

// TestClassNamesInCSV quotes names that a comma or a quote would divide.
func TestClassNamesInCSV(t *testing.T) {
	n := &names{classes: []string{"plain", `a "b", c`, " d", "e\rf"}}
	line := []byte{}
	for class := int32(-1); class < 4; class++ {
		line = n.appendText(line, column{"label_name", classKind, 0}, binary.LittleEndian.AppendUint32(nil, uint32(class)))
	}
	if want := ",plain,\"a \"\"b\"\", c\",\" d\",\"e\rf\","; string(line) != want {
		t.Errorf("%s, want %s", line, want)
	}
}

// TestSubmission reads the archive that an evaluator would take.
func TestSubmission(t *testing.T) {
	f := newFixture(t)
	lines, node := predicted(t, f)
	type row struct{ id, class int }
	var want []row
	for _, cells := range lines {
		if node[cells[0]][4] == "test" {
			id, err := strconv.Atoi(cells[0])
			must(t, err)
			class, err := strconv.Atoi(cells[1])
			must(t, err)
			want = append(want, row{id, class})
		}
	}
	slices.SortFunc(want, func(a, b row) int { return a.id - b.id })
	out := filepath.Join(t.TempDir(), "y_pred.npz")
	b := budget(t, 1<<20)
	rows, err := Run(context.Background(), f.cat, Options{What: Submission, Format: SubmissionFormat, Out: out, Budget: b})
	must(t, err)
	archive, err := zip.OpenReader(out)
	must(t, err)
	defer archive.Close()
	if len(archive.File) != 1 || archive.File[0].Name != "y_pred.npy" {
		t.Fatalf("%d files, %s", len(archive.File), archive.File[0].Name)
	}
	r, err := archive.File[0].Open()
	must(t, err)
	text, err := io.ReadAll(r)
	must(t, err)
	size := 10 + int(binary.LittleEndian.Uint16(text[8:]))
	if head := string(text[:size]); size%64 != 0 || !strings.Contains(head, fmt.Sprintf("{'descr': '<i2', 'fortran_order': False, 'shape': (%d,), }", len(want))) {
		t.Errorf("header %q", head)
	}
	var got []int
	for at := size; at < len(text); at += 2 {
		got = append(got, int(binary.LittleEndian.Uint16(text[at:])))
	}
	if rows != int64(len(want)) || len(want) == 0 || !slices.EqualFunc(got, want, func(g int, w row) bool { return g == w.class }) {
		t.Errorf("%d rows, %v, want %v", rows, got, want)
	}
	if b.Free() != 1<<20 {
		t.Errorf("%d bytes of the budget were not given back", 1<<20-b.Free())
	}
}
