package dataset

import (
	"cmp"
	"context"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ndls/internal/testgraph"
	"ndls/internal/testkit"
)

// open opens a dataset and closes it at the end of the test.
func open(t testing.TB, uri string, o Options) Dataset {
	t.Helper()
	d, err := Open(t.Context(), uri, o)
	if err != nil {
		t.Fatalf("open %s: %v", uri, err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Errorf("close %s: %v", uri, err)
		}
	})
	return d
}

// readEdges collects all edges with batches of an odd size.
func readEdges(d Dataset, batch int) ([]Edge, error) {
	r, err := d.Edges(context.Background(), Whole)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	var all []Edge
	buf := make([]Edge, batch)
	for {
		n, err := r.Read(buf, nil)
		if err == io.EOF {
			return all, nil
		}
		if err != nil {
			return all, err
		}
		all = append(all, buf[:n]...)
	}
}

// row is a copy of a feature row in sparse form.
type row struct {
	id      uint32
	indices []uint32
	values  []float32
}

func readFeatures(d Dataset) ([]row, error) {
	r, err := d.Features(context.Background(), Whole)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	var all []row
	for {
		f, err := r.Next()
		if err == io.EOF {
			return all, nil
		}
		if err != nil {
			return all, err
		}
		c := row{id: f.ID, indices: slices.Clone(f.Indices), values: slices.Clone(f.Values)}
		for i, v := range f.Dense {
			if v != 0 {
				c.indices, c.values = append(c.indices, uint32(i)), append(c.values, v)
			}
		}
		all = append(all, c)
	}
}

func readLabels(d Dataset) (map[uint32]int32, error) {
	r, err := d.Labels(context.Background())
	if err != nil {
		return nil, err
	}
	defer r.Close()
	all := map[uint32]int32{}
	for {
		id, label, err := r.Next()
		if err == io.EOF {
			return all, nil
		}
		if err != nil {
			return all, err
		}
		all[id] = label
	}
}

func readSplits(d Dataset) (map[uint32]Split, error) {
	r, err := d.Splits(context.Background(), 0)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	all := map[uint32]Split{}
	for {
		id, split, err := r.Next()
		if err == io.EOF {
			return all, nil
		}
		if err != nil {
			return all, err
		}
		all[id] = split
	}
}

// shape holds what the descriptions of the published sets state about a graph.
type shape struct {
	rows, distinct, loops, undirected, maxDegree, isolated int
}

func shapeOf(edges []Edge, nodes int) shape {
	s := shape{rows: len(edges)}
	directed := slices.Clone(edges)
	order := func(a, b Edge) int { return cmp.Or(cmp.Compare(a.U, b.U), cmp.Compare(a.V, b.V)) }
	slices.SortFunc(directed, order)
	directed = slices.Compact(directed)
	s.distinct = len(directed)
	var pairs []Edge
	for _, e := range directed {
		if e.U == e.V {
			s.loops++
			continue
		}
		pairs = append(pairs, Edge{U: min(e.U, e.V), V: max(e.U, e.V)})
	}
	slices.SortFunc(pairs, order)
	pairs = slices.Compact(pairs)
	s.undirected = len(pairs)
	degree := make([]int, nodes)
	for _, e := range pairs {
		degree[e.U]++
		degree[e.V]++
	}
	for _, d := range degree {
		s.maxDegree = max(s.maxDegree, d)
		if d == 0 {
			s.isolated++
		}
	}
	return s
}

func histogram(labels map[uint32]int32, classes int) []int {
	h := make([]int, classes)
	for _, l := range labels {
		h[l]++
	}
	return h
}

// TestPublished compares every published set with the figures of its description.
func TestPublished(t *testing.T) {
	for _, c := range []struct {
		name, folder, uri string // %s in uri is the folder
		options           Options
		nodes             int
		stated            bool // Info states the number of nodes
		graph             shape
		features, values  int
		sparse            bool
		classes           []int
		splits            [4]int
	}{
		{
			name: "karate built in", uri: "karate:", nodes: 34, stated: true,
			graph: shape{78, 78, 0, 78, 17, 0}, classes: []int{17, 17},
		},
		{
			name: "karate npz", folder: "karate", uri: "npz:%s/karate_club.npz", nodes: 34, stated: true,
			graph: shape{156, 156, 0, 78, 17, 0}, classes: []int{12, 5, 11, 6},
		},
		{
			name: "karate text", folder: "karate", uri: "edges:%s/karate.edges.txt?labels=%s/karate.labels.csv#faction", nodes: 34,
			graph: shape{78, 78, 0, 78, 17, 0}, classes: []int{17, 17},
		},
		{
			name: "cora", folder: "cora", uri: "planetoid:%s/cora", nodes: 2708, stated: true,
			graph:    shape{10858, 10556, 0, 5278, 168, 0},
			features: 1433, values: 49216, sparse: true,
			classes: []int{351, 217, 418, 818, 426, 298, 180}, splits: [4]int{0, 140, 500, 1000},
		},
		{
			name: "citeseer", folder: "citeseer", uri: "planetoid:%s/citeseer", nodes: 3327, stated: true,
			graph:    shape{9464, 9228, 124, 4552, 99, 48},
			features: 3703, values: 105165, sparse: true,
			classes: []int{249, 590, 668, 701, 596, 508}, splits: [4]int{0, 120, 500, 1000},
		},
		{
			name: "pubmed", folder: "pubmed", uri: "planetoid:%s/pubmed", options: Options{NoFeatures: true}, nodes: 19717, stated: true,
			graph: shape{88676, 88651, 3, 44324, 171, 0}, classes: []int{4103, 7739, 7875}, splits: [4]int{0, 60, 500, 1000},
		},
		{
			name: "coauthor pickled", folder: "coauthor_cs", uri: "npz:%s/coauthor_cs.npz", nodes: 18333, stated: true,
			graph:    shape{163788, 163788, 0, 81894, 136, 0},
			features: 6805, values: 1092079, sparse: true,
			classes: []int{708, 462, 2050, 429, 1394, 2193, 371, 924, 775, 118, 1444, 2033, 420, 4136, 876},
		},
		{
			name: "cora_ml", folder: "cora_ml", uri: "npz:%s/cora_ml.npz", nodes: 2995, stated: true,
			graph:    shape{8416, 8416, 0, 8158, 246, 0},
			features: 2879, values: 151171, sparse: true, classes: make([]int, 7),
		},
		{
			name: "facebook", folder: "facebook",
			uri:   "edges:%s/facebook_edges.csv?features=%s/facebook.json&labels=%s/facebook_target.csv#page_type",
			nodes: 22470, graph: shape{171002, 171002, 179, 170823, 709, 0},
			features: 4714, values: 314583, sparse: true, classes: []int{6495, 6880, 5768, 3327},
		},
		{
			name: "web-NotreDame", folder: "web_notredame", uri: "edges:%s/web-NotreDame.txt.gz?directed=true", nodes: 325729,
			graph: shape{1497134, 1497134, 27455, 1090108, 10721, 0},
		},
		{
			name: "twitter", folder: "twitter_ego", uri: "edges:%s/edgeListTwitterTEstDinix.zip?nodes=81306", nodes: 81306, stated: true,
			graph: shape{1342310, 1342310, 14, 1342296, 3383, 0},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			uri := c.uri
			if c.folder != "" {
				uri = strings.ReplaceAll(uri, "%s", testgraph.Published(t, "data/"+c.folder))
			}
			d := open(t, uri, c.options)
			info := d.Info()
			if want := int64(c.nodes); c.stated && info.NumNodes != want || !c.stated && info.NumNodes != -1 {
				t.Errorf("%d nodes stated, the set has %d", info.NumNodes, want)
			}
			if strings.Contains(info.Identity, "/") {
				t.Errorf("identity %s holds a path", info.Identity)
			}
			edges, err := readEdges(d, 1000)
			if err != nil {
				t.Fatal(err)
			}
			if got := shapeOf(edges, c.nodes); got != c.graph {
				t.Errorf("graph is %+v, want %+v", got, c.graph)
			}
			if info.NumFeatures != c.features || info.SparseFeatures != c.sparse {
				t.Errorf("%d features, sparse %v, want %d, %v", info.NumFeatures, info.SparseFeatures, c.features, c.sparse)
			}
			if c.features > 0 {
				checkFeatures(t, d, c.nodes, c.values)
			}
			if info.HasLabels != (c.classes != nil) || len(info.Classes) != len(c.classes) {
				t.Fatalf("classes are %v, want %d", info.Classes, len(c.classes))
			}
			if c.classes != nil {
				labels, err := readLabels(d)
				if err != nil {
					t.Fatal(err)
				}
				if got := histogram(labels, len(c.classes)); c.classes[0] != 0 && !slices.Equal(got, c.classes) {
					t.Errorf("class sizes are %v, want %v", got, c.classes)
				}
			}
			if info.HasSplits != (c.splits != [4]int{}) {
				t.Fatalf("HasSplits is %v", info.HasSplits)
			}
			if info.HasSplits {
				checkSplits(t, d, c.splits)
			}
		})
	}
}

// checkFeatures checks that every node has one row, and counts the values.
func checkFeatures(t *testing.T, d Dataset, nodes, values int) {
	t.Helper()
	rows, err := readFeatures(d)
	if err != nil {
		t.Fatal(err)
	}
	seen, total := make([]bool, nodes), 0
	for _, r := range rows {
		if seen[r.id] {
			t.Fatalf("node %d has two rows", r.id)
		}
		seen[r.id] = true
		total += len(r.indices)
		if !slices.IsSorted(r.indices) {
			t.Fatalf("row of node %d is not sorted", r.id)
		}
	}
	if len(rows) != nodes || total != values {
		t.Errorf("%d rows with %d values, want %d and %d", len(rows), total, nodes, values)
	}
}

func checkSplits(t *testing.T, d Dataset, want [4]int) {
	t.Helper()
	splits, err := readSplits(d)
	if err != nil {
		t.Fatal(err)
	}
	var got [4]int
	for _, s := range splits {
		got[s]++
	}
	if got != want {
		t.Errorf("splits are %v, want %v", got, want)
	}
}

// TestKarateCopies compares the built-in club with the three published forms.
func TestKarateCopies(t *testing.T) {
	folder := testgraph.Published(t, "data/karate")
	want, err := readEdges(open(t, "karate:", Options{}), 7)
	if err != nil {
		t.Fatal(err)
	}
	text := open(t, "edges:"+folder+"/karate.edges.txt?labels="+folder+"/karate.labels.csv#faction", Options{})
	got, err := readEdges(text, 7)
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("karate.edges.txt differs: %v, %v", got, err)
	}
	pickled, err := readEdges(open(t, "npz:"+folder+"/karate_club.npz", Options{}), 7)
	pickled = slices.DeleteFunc(pickled, func(e Edge) bool { return e.U > e.V })
	slices.SortFunc(pickled, func(a, b Edge) int { return cmp.Or(cmp.Compare(a.U, b.U), cmp.Compare(a.V, b.V)) })
	if err != nil || !slices.Equal(pickled, want) {
		t.Errorf("karate_club.npz differs: %v, %v", pickled, err)
	}
	factions, err := readLabels(text)
	if err != nil {
		t.Fatal(err)
	}
	builtIn, err := readLabels(open(t, "karate:", Options{}))
	if err != nil {
		t.Fatal(err)
	}
	for id, l := range builtIn {
		if factions[id] != l {
			t.Errorf("node %d is of faction %d, built in %d", id, factions[id], l)
		}
	}
	if len(factions) != 34 || factions[33] != 1 || factions[0] != 0 {
		t.Errorf("factions are %v", factions)
	}
}

// TestCoauthorLayouts reads the same set from pickled and from plain arrays.
func TestCoauthorLayouts(t *testing.T) {
	folder := testgraph.Published(t, "data/coauthor_cs")
	a, b := open(t, "npz:"+folder+"/coauthor_cs.npz", Options{}), open(t, "npz:"+folder+"/coauthor_cs.gnnbench.npz", Options{})
	ae, err1 := readEdges(a, 4096)
	be, err2 := readEdges(b, 1000)
	if err1 != nil || err2 != nil || !slices.Equal(ae, be) {
		t.Errorf("edges differ: %v, %v", err1, err2)
	}
	af, err1 := readFeatures(a)
	bf, err2 := readFeatures(b)
	if err1 != nil || err2 != nil || !slices.EqualFunc(af, bf, equalRows) {
		t.Errorf("features differ: %v, %v", err1, err2)
	}
	top := float32(0)
	for _, r := range af {
		top = max(top, slices.Max(r.values))
	}
	if top != 105 {
		t.Errorf("the largest count is %v, want 105", top)
	}
	al, err1 := readLabels(a)
	bl, err2 := readLabels(b)
	if err1 != nil || err2 != nil || !slices.Equal(histogram(al, 15), histogram(bl, 15)) || al[100] != bl[100] {
		t.Errorf("labels differ: %v, %v", err1, err2)
	}
}

func equalRows(a, b row) bool {
	return a.id == b.id && slices.Equal(a.indices, b.indices) && slices.Equal(a.values, b.values)
}

// TestCiteseerMissing pins the nodes that test.index leaves out.
func TestCiteseerMissing(t *testing.T) {
	d := open(t, "planetoid:"+testgraph.Published(t, "data/citeseer")+"/citeseer", Options{})
	rows, err := readFeatures(d)
	if err != nil {
		t.Fatal(err)
	}
	labels, err := readLabels(d)
	if err != nil {
		t.Fatal(err)
	}
	splits, err := readSplits(d)
	if err != nil {
		t.Fatal(err)
	}
	missing := rows[len(rows)-15:]
	for _, r := range missing {
		_, labelled := labels[r.id]
		_, split := splits[r.id]
		if len(r.indices) != 0 || labelled || split || r.id < 2312 {
			t.Errorf("node %d: %d values, labelled %v, in a split %v", r.id, len(r.indices), labelled, split)
		}
	}
	if len(labels) != 3327-15 {
		t.Errorf("%d nodes have a label", len(labels))
	}
}

// TestPubmedNeedsFeatures wants the missing file named, and the way out.
func TestPubmedNeedsFeatures(t *testing.T) {
	_, err := Open(t.Context(), "planetoid:"+testgraph.Published(t, "data/pubmed")+"/pubmed", Options{})
	if err == nil || !strings.Contains(err.Error(), "ind.pubmed.allx") || !strings.Contains(err.Error(), "--features none") {
		t.Errorf("error is %v", err)
	}
}

// TestTwitterAttributes streams 164 MB of text out of a zip archive.
func TestTwitterAttributes(t *testing.T) {
	testkit.Slow(t, "164 MB of text")
	folder := testgraph.Published(t, "data/twitter_ego")
	d := open(t, "edges:"+filepath.Join(folder, "edgeListTwitterTEstDinix.zip")+"?features="+filepath.Join(folder, "attributesTwitterTestDinix.zip"), Options{})
	if n := d.Info().NumFeatures; n != 1007 {
		t.Fatalf("%d features", n)
	}
	r, err := d.Features(t.Context(), Whole)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	var rows, values int
	for ; ; rows++ {
		f, err := r.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if f.ID != uint32(rows) {
			t.Fatalf("row %d is of node %d", rows, f.ID)
		}
		for _, v := range f.Dense {
			if v != 0 {
				values++
			}
		}
	}
	if rows != 81306 || values != 192641 {
		t.Errorf("%d rows with %d values, want 81306 with 192641", rows, values)
	}
}
