package table

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ndls/dataset/graph"
	"ndls/internal/storage"
	"ndls/internal/storage/storagetest"
)

// bucketPath is a prefix of a server's bucket as a table: URI names it.
func bucketPath(s *storagetest.Server, prefix string) string {
	return strings.ReplaceAll(graph.EscapePath(storagetest.BucketURI(s.URL, storagetest.Bucket, prefix)), ",", "%2C")
}

// TestTablesInABucket reads tables of all formats, in several objects below a prefix, and
// compares them with the same tables on a disk.
func TestTablesInABucket(t *testing.T) {
	server := storagetest.StartServer(t)
	for _, pair := range server.Environment {
		key, value, _ := strings.Cut(pair, "=")
		t.Setenv(key, value)
	}
	const n = 5000
	var us, vs, ids, labels []string
	var x []float64
	for i := range n {
		ids, x = append(ids, fmt.Sprintf("node %05d", i*7%n)), append(x, float64(i))
		us, vs = append(us, ids[i]), append(vs, ids[i*i%len(ids)])
		labels = append(labels, []string{"a", "b", ""}[i%3])
	}
	edges, nodes := []col{{"src", us}, {"dst", vs}}, []col{{"id", ids}, {"x", x}, {"y", labels}}
	for end, form := range forms {
		t.Run(end, func(t *testing.T) {
			local := t.TempDir()
			folder := filepath.Join(server.Folder, end)
			for i := range 3 {
				lo, hi := n*i/3, n*(i+1)/3
				for name, cols := range map[string][]col{"edges": edges, "nodes": nodes} {
					data, file := form(t, cut(cols, lo, hi)), fmt.Sprintf("part-%d.%s", i, end)
					put(t, data, local, name, file)
					put(t, data, folder, name, file)
				}
			}
			put(t, nil, folder, "edges", "_SUCCESS")
			put(t, []byte("no table"), folder, "edgesOther", "README.md")
			read := func(edges, nodes string) content {
				t.Helper()
				g, err := openGraph(t, edges+"?nodes="+nodes+"&features=x&label=y")
				must(t, err)
				c, err := readAll(t.Context(), g)
				must(t, err)
				must(t, g.Close())
				return c
			}
			want := read(local+"/edges", local+"/nodes")
			got := read(bucketPath(server, end+"/edges"), bucketPath(server, end+"/nodes"))
			if len(want.edges) != n || fmt.Sprint(got) != fmt.Sprint(want) {
				t.Errorf("%d ids and %d edges, want %d and %d", len(got.ids), len(got.edges), len(want.ids), len(want.edges))
			}
			one := read(bucketPath(server, end+"/edges/part-0."+end), bucketPath(server, end+"/nodes"))
			if !slices.Equal(one.edges, want.edges[:n/3]) {
				t.Errorf("of one object %d edges", len(one.edges))
			}
		})
	}
	if _, err := openGraph(t, bucketPath(server, "csv/nothing")); err == nil || !strings.Contains(err.Error(), "csv/nothing") || !strings.Contains(err.Error(), "no file") {
		t.Errorf("a prefix of nothing: %v", err)
	}
	if _, err := openGraph(t, bucketPath(server, "csv/edgesOther")); err == nil || !strings.Contains(err.Error(), "README.md") {
		t.Errorf("a foreign object: %v", err)
	}
}

// TestObjectsThatChange replaces an object: an open dataset does not go on with other bytes, and
// one that is opened later lists another version.
func TestObjectsThatChange(t *testing.T) {
	server := storagetest.StartServer(t)
	for _, pair := range server.Environment {
		key, value, _ := strings.Cut(pair, "=")
		t.Setenv(key, value)
	}
	store, err := storage.OpenBucket(t.Context(), storagetest.BucketURI(server.URL, storagetest.Bucket, "in"))
	must(t, err)
	defer store.Close()
	before := "src,dst\n" + strings.Repeat("1234567,7654321\n", 800_000) // more than is kept of it
	storagetest.Write(t, store, "e.csv", []byte(before))
	open := func() *Graph {
		g, err := openGraph(t, bucketPath(server, "in/e.csv"))
		must(t, err)
		return g
	}
	g := open()
	was, err := g.Inputs()
	must(t, err)
	again, err := open().Inputs()
	must(t, err)
	if !slices.Equal(was, again) || len(was) != 1 || was[0].Version == "" || was[0].Size != int64(len(before)) || !strings.HasSuffix(was[0].Path, "/in/e.csv") {
		t.Errorf("%+v and %+v", was, again)
	}
	storagetest.Write(t, store, "e.csv", []byte(strings.Replace(before, "1234567", "1234568", 1)))
	if _, err := readAll(t.Context(), g); err == nil || err == io.EOF || !strings.Contains(err.Error(), "replaced") {
		t.Errorf("an object that was replaced: %v", err)
	}
	now, err := open().Inputs()
	must(t, err)
	if now[0].Version == was[0].Version || now[0].Size != was[0].Size {
		t.Errorf("%+v became %+v", was, now)
	}
	must(t, os.RemoveAll(filepath.Join(server.Folder, "in")))
}
