package table

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"ndls/dataset/graph"
)

// describe is a description with nodes of two types and two relations.
const describe = `{"version": "gsprocessing-v0.3.1", "graph": {
  "nodes": [
    {"data": {"format": "csv", "files": ["nodes/author.csv"]}, "type": "author", "column": "id"},
    {"data": {"format": "csv", "separator": ",", "files": ["nodes/p0.csv", "nodes/p1.csv"]}, "type": "paper", "column": "nid",
     "features": [{"column": "x", "transformation": {"name": "no-op"}}, {"column": "y", "name": "why"}],
     "labels": [{"column": "venue", "type": "classification", "split_rate": {"train": 0.8, "val": 0.1, "test": 0.1}}]}],
  "edges": [
    {"data": {"format": "csv", "files": ["edges/cites.csv"]}, "source": {"column": "a", "type": "paper"}, "relation": {"type": "cites"}, "dest": {"column": "b", "type": "paper"}},
    {"data": {"format": "csv", "files": ["edges/writes.csv"]}, "source": {"column": "a", "type": "author"}, "relation": {"type": "writes"}, "dest": {"column": "b", "type": "paper"}}]}}`

func TestGraphStorm(t *testing.T) {
	dir := t.TempDir()
	put(t, []byte("nid,x,y,venue\np1,1,2,KDD\np2,3,4,\n"), dir, "nodes", "p0.csv")
	put(t, []byte("nid,x,y,venue\np3,5,6,WWW\n"), dir, "nodes", "p1.csv")
	put(t, []byte("a,b\np1,p2\np3,p1\n"), dir, "edges", "cites.csv")
	config := put(t, []byte(describe), dir, "config.json")
	g, err := openGraph(t, config+"?relation=cites")
	must(t, err)
	c, err := readAll(t.Context(), g)
	must(t, err)
	got := fmt.Sprint(c.ids, c.edges, c.labels, c.features)
	if want := "[p1 p2 p3] [p1 p2 p3 p1] map[p1:KDD p3:WWW] map[p1:[1 2] p2:[3 4] p3:[5 6]]"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if notes := fmt.Sprint(g.Notes()); !strings.Contains(notes, "split") {
		t.Errorf("notes %s", notes)
	}
	if id := g.Info().Identity; id != "table:config.json?relation=cites" {
		t.Errorf("identity %s", id)
	}
	for name, x := range map[string][3]string{ // query, what replaces what, message
		"several relations":  {"", "", "choose one with relation="},
		"no such relation":   {"?relation=likes", "", "it has cites (paper to paper)"},
		"two types":          {"?relation=writes", "", `type "author"`},
		"columns in the URI": {"?relation=cites&src=a&dst=b", "", "leave src="},
		"transformation":     {"?relation=cites", `"no-op"|"bucket-numerical"`, "bucket-numerical"},
		"regression":         {"?relation=cites", `"classification"|"regression"`, "regression"},
		"format":             {"?relation=cites", `"format": "csv"|"format": "hdf5"`, "hdf5"},
		"not a description":  {"?relation=cites", `"nodes": [|"nodes": {`, "config"},
	} {
		text := describe
		if old, replacement, ok := strings.Cut(x[1], "|"); ok {
			text = strings.ReplaceAll(text, old, replacement)
		}
		bad := put(t, []byte(text), dir, "config-"+strings.ReplaceAll(name, " ", "-")+".json")
		_, err := openGraph(t, bad+x[0])
		if err == nil || !strings.Contains(err.Error(), x[2]) || !errors.Is(err, graph.ErrData) && !errors.Is(err, graph.ErrURI) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
