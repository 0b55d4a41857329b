package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ndls"
)

// TestBadTables gives the program tables with one thing wrong: partition and inspect refuse each
// with the status for data, and name file, row and the way out.
func TestBadTables(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string) string {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		return write(t, path, text)
	}
	edges := file("edges.csv", "src,dst,year\nann,bob,1990\nbob,eve,1991\n")
	nodes := "&nodes=" + file("nodes.csv", "id,age,class\nann,30,a\nbob,31,b\neve,32,a\n") + "&id=id"
	if err := os.Mkdir(filepath.Join(dir, "empty"), 0o755); err != nil {
		t.Fatal(err)
	}
	file("mixed/a.jsonl", `{"src":1,"dst":2}`+"\n")
	file("mixed/b.jsonl", `{"src":"1","dst":2}`+"\n")
	for name, c := range map[string]struct {
		uri  string
		want []string
	}{
		"null id":                 {file("null.jsonl", "{\"src\":1,\"dst\":2}\n{\"src\":null,\"dst\":2}\n") + "?src=src&dst=dst", []string{"null.jsonl line 2", `"src"`, "null", "remove the row"}},
		"empty id":                {file("empty.csv", "src,dst\nann,bob\n,eve\n") + "?src=src&dst=dst", []string{"empty.csv line 3", "empty", "remove the row"}},
		"missing column":          {edges + "?src=from&dst=dst", []string{"edges.csv", `"from"`, "src, dst, year"}},
		"missing feature":         {edges + "?src=src&dst=dst" + nodes + "&features=height", []string{"nodes.csv", `"height"`, "id, age, class"}},
		"type changes":            {dir + "/mixed?src=src&dst=dst", []string{"b.jsonl", `"src"`, "string", "a.jsonl", "one type"}},
		"id in edges alone":       {file("more.csv", "src,dst\nann,bob\nbob,zoe\n") + "?src=src&dst=dst" + nodes, []string{"more.csv line 3", `"zoe"`, "nodes.csv", "add the node"}},
		"label of no node":        {edges + "?src=src&dst=dst" + nodes + "&labels=" + file("labels.csv", "id,label\nann,1\nzoe,2\n"), []string{"labels.csv line 3", `"zoe"`}},
		"duplicate id":            {edges + "?src=src&dst=dst&nodes=" + file("twice.csv", "id\nann\nbob\neve\nbob\n"), []string{"twice.csv line 5", `"bob"`, "line 3", "keep one"}},
		"two labels":              {edges + "?src=src&dst=dst" + nodes + "&labels=" + file("two.csv", "id,label\nann,1\nbob,2\nann,3\n"), []string{"two.csv line 4", `"ann"`, "line 2", "keep one"}},
		"empty folder":            {dir + "/empty?src=src&dst=dst", []string{"empty", "no file of a table"}},
		"header without rows":     {file("head.csv", "src,dst\n") + "?src=src&dst=dst", []string{"head.csv", "has no rows"}},
		"feature that is no text": {edges + "?src=src&dst=dst&nodes=" + file("nan.csv", "id,age\nann,1\nbob,NaN\neve,2\n") + "&features=age", []string{"nan.csv line 3", "NaN", "--fill mean"}},
	} {
		t.Run(name, func(t *testing.T) {
			run := filepath.Join(t.TempDir(), "run")
			for _, args := range [][]string{{"partition", "--run", run}, {"inspect"}} {
				r := command(t, append(args, "--dataset", "table:"+c.uri, "--memory", "192MiB", "--quiet")...)
				if r.code != ndls.ExitCorrupt {
					t.Errorf("%s: status %d\n%s", args[0], r.code, r.stderr)
				}
				for _, want := range c.want {
					if !strings.Contains(r.stderr, want) {
						t.Errorf("%s lacks %q:\n%s", args[0], want, r.stderr)
					}
				}
			}
			if r := command(t, "inspect", "--run", run); strings.Contains(r.stdout, "COMPLETE") {
				t.Errorf("the run looks complete:\n%s", r.stdout)
			}
		})
	}
}

// TestNodesWithoutEdges counts the nodes of a table of nodes that no edge has.
func TestNodesWithoutEdges(t *testing.T) {
	dir := t.TempDir()
	edges := write(t, filepath.Join(dir, "edges.csv"), "src,dst\nann,bob\nbob,ann\nbob,bob\n")
	nodes := write(t, filepath.Join(dir, "nodes.csv"), "id,x\nann,1\nbob,2\neve,3\nzoe,4\n")
	uri := "table:" + edges + "?nodes=" + nodes + "&features=x"
	text := expect(t, 0, "2 of 4 nodes have no edge", "inspect", "--dataset", uri, "--memory", "192MiB").stdout
	for _, want := range []string{
		"read as", "src     text fields  source", "x       text fields  feature", `4, ids of type string from "ann" to "zoe"`,
		"1, of 3 rows: 1 self-loop, 1 repetition", "mean 0.5, median 0", "2 nodes without edges", "3, the largest has 2 nodes", "kept as float16", "labels      none",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing:\n%s", want, text)
		}
	}
	var in ndls.Inspection
	if err := json.Unmarshal([]byte(expect(t, 0, "", "inspect", "--dataset", uri, "--json", "--quiet").stdout), &in); err != nil {
		t.Fatal(err)
	}
	if in.Graph.Nodes != 4 || in.Graph.Degrees.Isolated != 2 || in.Graph.LastID != `"zoe"` || len(in.Tables) != 2 || in.Tables[1].Columns[1].Use != "feature" {
		t.Errorf("%+v", in)
	}
	expect(t, ndls.ExitUsage, "[run dataset]", "inspect")
	expect(t, ndls.ExitUsage, "run", "inspect", "--dataset", uri, "--run", dir)
	expect(t, 0, "partition", "plan", "--dataset", uri, "--memory", "192MiB", "--quiet")
}

// TestDoubtfulText warns of ids that may stand for a missing value or be a header, and of labels of one class, for which
// nothing is trained.
func TestDoubtfulText(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return path
	}
	edges := file("edges.csv", "ann,bob\nbob,NA\neve,NA\neve,ann\n")
	for _, args := range [][]string{{"partition", "--run", filepath.Join(dir, "run")}, {"inspect"}} {
		r := command(t, append(args, "--dataset", "table:"+edges, "--memory", "192MiB")...)
		if r.code != 0 {
			t.Fatalf("%s: status %d\n%s", args[0], r.code, r.stderr)
		}
		for _, want := range []string{`2 ids are "NA"`, "missing=NA", `"ann" is the name of a column of edges.csv`, "header=false"} {
			if text := strings.ReplaceAll(r.stdout+r.stderr, `\"`, `"`); !strings.Contains(text, want) {
				t.Errorf("%s lacks %q:\n%s", args[0], want, text)
			}
		}
	}
	nodes := file("nodes.csv", "id,x,y,part\nann,1,a,train\nbob,2,a,valid\neve,3,a,test\n")
	r := command(t, "run", "--dataset", "table:"+file("more.csv", "src,dst\nann,bob\nbob,eve\n")+"?nodes="+nodes+"&features=x&label=y&split=part", "--run", filepath.Join(dir, "one"), "--memory", "192MiB")
	if r.code != 0 || !strings.Contains(r.stdout+r.stderr, "all labels are the same") {
		t.Errorf("one class: status %d\n%s%s", r.code, r.stdout, r.stderr)
	}
}
