package dataset

import (
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ndls/dataset/npy"
)

// answersOf reads the answers of a dataset by node, with its labels, as text.
func answersOf(t *testing.T, d Dataset) string {
	t.Helper()
	if keyed, ok := d.(Keyed); ok {
		keyed.Number(9, func(key []byte) (uint32, bool) { return uint32(key[len(key)-1] - '0'), true })
	}
	a, err := d.(Answered).Answers(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	text := fmt.Sprintf("%v%v ", d.Info().Classes, d.Info().HasLabels)
	for {
		row, err := a.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			return text + err.Error()
		}
		text += fmt.Sprintf("%d%v ", row.ID, row.Dense)
	}
	l, err := d.Labels(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for {
		id, label, err := l.Next()
		if err == io.EOF {
			return text
		}
		if err != nil {
			t.Fatal(err)
		}
		text += fmt.Sprintf("%d:%d ", id, label)
	}
}

// TestAnswers reads several labels, and numbers, from every layout that has them; a node of which nothing is known has no label.
func TestAnswers(t *testing.T) {
	none := float32(math.NaN())
	matrix := npyArray(npy.Float32, []int64{4, 2}, []float32{1, 0, none, none, 0, none, 1, 1})
	dir := t.TempDir()
	for name, text := range map[string]string{
		"edges.csv":  "src,dst\nn0,n1\nn1,n2\n",
		"nodes.csv":  "id,a,b,c\nn0,1,0,7\nn1,,NA,8\nn2,0,,9\nn3,1,1,9\n",
		"nodes.json": `{"id":"n0","y":[1,0.5]}` + "\n" + `{"id":"n1","y":null}` + "\n" + `{"id":"n2","y":[0,2]}` + "\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	const both = "true 0[1 0] 1[NaN NaN] 2[0 NaN] 3[1 1] 0:0 2:0 3:0 "
	for _, c := range []struct {
		uri  string
		kind Answers
		want string
	}{
		{"ogb:" + ogbFolder(t, changed(ogbBinary(), "raw/node-label.npz", ogbLabels(matrix))), Labels, "[0 1]" + both},
		{"ogb:" + ogbFolder(t, changed(ogbText(), "raw/node-label.csv.gz", gzipped("1,0\nnan,\n0.0,nan\n1,1\n"))), Labels, "[0 1]" + both},
		{"table:" + dir + "/edges.csv?nodes=" + dir + "/nodes.csv&id=id&label=a,b", Labels, "[a b]" + both},
		{"table:" + dir + "/edges.csv?labels=" + dir + "/nodes.csv&id=id&label=b,c", Numbers, "[b c]true 0[0 7] 1[NaN 8] 2[NaN 9] 3[1 9] 0:0 1:0 2:0 3:0 "},
		{"table:" + dir + "/edges.csv?nodes=" + dir + "/nodes.json&id=id&label=y", Numbers, "[y[0] y[1]]true 0[1 0.5] 1[NaN NaN] 2[0 2] 0:0 2:0 "},
		{"table:" + dir + "/edges.csv?nodes=" + dir + "/nodes.csv&id=id&label=c", Labels, "[c]true nodes.csv line 2: column c is 7: a label is 0 or 1"},
	} {
		d := open(t, c.uri, Options{Answers: c.kind})
		if got := answersOf(t, d); got != c.want && !strings.Contains(strings.ReplaceAll(got, dir+"/", ""), c.want) {
			t.Errorf("%s: %s, want %s", c.uri, got, c.want)
		}
	}
	for uri, want := range map[string]string{
		"karate:": "one class for each node",
		"table:" + dir + "/edges.csv?nodes=" + dir + "/nodes.csv&id=id&label=a,d": `no column "d"`,
	} {
		if _, err := Open(t.Context(), uri, Options{Answers: Labels}); !errors.Is(err, ErrURI) && !errors.Is(err, ErrData) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", uri, err, want)
		}
	}
	if _, err := Open(t.Context(), "table:"+dir+"/edges.csv?nodes="+dir+"/nodes.csv&id=id&label=a,b", Options{}); err == nil || !strings.Contains(err.Error(), "--task labels") {
		t.Errorf("several columns as a class: %v", err)
	}
}
