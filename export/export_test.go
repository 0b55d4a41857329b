package export

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"ndls/catalog"
	"ndls/internal/seal"

	"github.com/apache/arrow/go/v14/arrow"
	"github.com/apache/arrow/go/v14/arrow/array"
	"github.com/apache/arrow/go/v14/arrow/ipc"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"go.uber.org/goleak"

	"ndls/dataset/parquettest"
	"ndls/internal/mem"
	"ndls/internal/storage"
	"ndls/internal/storage/storagetest"
	"ndls/internal/testkit"
	"ndls/shards"
	"ndls/tiles"
)

func TestMain(m *testing.M) {
	testkit.GrowHeap()
	goleak.VerifyTestMain(m)
}

const (
	nodes    = 53
	features = 21
	classes  = 3
	interval = 20
)

// fixture is a run directory with every artifact, and what the exports of it are.
type fixture struct {
	cat  *catalog.Catalog
	want map[string][]string // lines of csv without the header
}

// must stops the test on an error.
func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func newFixture(t *testing.T) *fixture { return newFixtureIn(t, storagetest.NewMem()) }

func newFixtureIn(t *testing.T, store storage.Store) *fixture {
	t.Helper()
	ctx := context.Background()
	cat, err := catalog.Open(ctx, store)
	must(t, err)
	f := &fixture{cat, map[string][]string{}}
	rng := rand.New(rand.NewPCG(1, 2))
	ids := rng.Perm(3 * nodes)[:nodes]
	ids[7] = 1<<32 - 2
	add := func(kind, path string, interval int, rows int64, write func(*catalog.File) error) {
		t.Helper()
		file, err := cat.Create(ctx, catalog.Describe(kind, path).In(interval))
		must(t, err)
		must(t, write(file))
		file.Rows = rows
		must(t, cat.Commit(ctx, file))
	}
	lines := make(map[string]map[int]string)
	line := func(what string, id int, cells ...any) {
		if lines[what] == nil {
			lines[what] = map[int]string{}
		}
		text := fmt.Sprint(id)
		for _, c := range cells {
			text += fmt.Sprintf(",%v", c)
		}
		lines[what][id] = text
	}

	summary := shards.Summary{Name: "fixture", Nodes: nodes, Features: features, Classes: []string{"a", "b", "c"}, IntervalRows: interval}
	must(t, shards.WriteSummary(ctx, cat, summary))
	matrix := tiles.Open(cat, budget(t, 1<<20), tiles.Features(summary))
	add(catalog.KindNodes, "graph/nodes.parquet", -1, nodes, func(w *catalog.File) error {
		return shards.WriteNodes(w, 0, nodes, shards.IDs{}, 0, 1, func(first int64, b shards.NodeBatch) error {
			for i := range b.ID {
				node := int(first) + i
				b.ID[i], b.Degree[i], b.Component[i], b.Label[i], b.Split[i] = int64(ids[node]), uint32(node*2), uint32(node%5), int32(node%4)-1, uint8(node%4)
				line("nodes", ids[node], b.Degree[i], b.Component[i], b.Label[i], splitNames[b.Split[i]])
			}
			return nil
		})
	})

	// Edges: a sparse random graph, both directions, by destination.
	var pairs [][2]uint32
	type edge struct{ u, v int }
	var undirected []edge
	for u := range nodes {
		for v := range u {
			if rng.IntN(6) == 0 {
				pairs = append(pairs, [2]uint32{uint32(u), uint32(v)}, [2]uint32{uint32(v), uint32(u)})
				undirected = append(undirected, edge{min(ids[u], ids[v]), max(ids[u], ids[v])})
			}
		}
	}
	slices.SortFunc(pairs, func(a, b [2]uint32) int { return slices.Compare(a[:], b[:]) })
	add(catalog.KindEdges, "graph/edges/part-00000.parquet", 0, int64(len(pairs)), func(w *catalog.File) error {
		m := shards.EdgeMeta{Hi: nodes, NumNodes: nodes, BlockRows: 1 << 20}
		ew, err := shards.NewEdgeWriter(w, m)
		must(t, err)
		page := shards.NewEdgePage()
		for _, p := range pairs {
			page.Src, page.Dst = append(page.Src, p[0]), append(page.Dst, p[1])
		}
		must(t, page.Encode(m))
		must(t, ew.WritePage(&page))
		_, err = ew.Close()
		return err
	})
	slices.SortFunc(undirected, func(a, b edge) int { return slices.Compare([]int{a.u, a.v}, []int{b.u, b.v}) })
	for _, e := range undirected {
		f.want["edges"] = append(f.want["edges"], fmt.Sprintf("%d,%d", e.u, e.v))
	}

	value := func(node, c int) float32 { return float32(node) - float32(c)/3 }
	for lo, i := 0, 0; lo < nodes; lo, i = lo+interval, i+1 {
		hi := min(lo+interval, nodes)
		add(catalog.KindLSI, fmt.Sprintf("lsi/part-%05d.parquet", i), i, int64(hi-lo), func(w *catalog.File) error {
			return shards.WriteLSI(w, int64(hi-lo), nil, 1, func(first int64, b shards.LSIBatch) error {
				for k := range b.ID {
					node := lo + int(first) + k
					b.ID[k], b.K[k], b.Capped[k] = int64(ids[node]), int32(node), node%3 == 0
					line("lsi", ids[node], node, node%3 == 0)
				}
				return nil
			})
		})
		for g := range matrix.Panels() {
			group, err := matrix.Create(ctx, i, g, g+1)
			must(t, err)
			var rows []float32
			for node := lo; node < hi; node++ {
				for c := range features {
					rows = append(rows, value(node, c))
				}
			}
			must(t, group.Put(g, rows, features, g*shards.TileColumns))
			must(t, group.Commit(ctx))
		}
		rows := func(what, kind, path string, s shards.RowSchema) {
			add(kind, path, i, int64(hi-lo), func(w *catalog.File) error {
				rw, err := shards.NewRowWriter(w, s, nil)
				must(t, err)
				var id []int64
				var label []int32
				var values []float32
				for node := lo; node < hi; node++ {
					id = append(id, int64(ids[node]))
					var cells []any
					if s.Label {
						label = append(label, int32(node%classes))
						cells = append(cells, node%classes)
					}
					for c := range s.Values() {
						cells = append(cells, value(node, c))
					}
					line(what, ids[node], cells...)
				}
				for list := range s.Lists() {
					for node := lo; node < hi; node++ {
						for c := range s.Width {
							values = append(values, value(node, list*s.Width+c))
						}
					}
				}
				must(t, rw.Write(id, label, values))
				_, err = rw.Close()
				return err
			})
		}
		rows("smoothed", catalog.KindSmoothed, fmt.Sprintf("smoothed/part-%05d.arrow", i), shards.RowSchema{Column: "feature", Width: features})
		rows("hops", catalog.KindKeptHops, fmt.Sprintf("hops/part-%05d.arrow", i), shards.HopSchema([]int{0, 1, 4}, features, false))
		rows("soft-labels", catalog.KindSoftLabels, fmt.Sprintf("soft_labels/part-%05d.arrow", i), shards.RowSchema{Column: "probability", Width: classes})
		rows("predictions", catalog.KindPredictions, fmt.Sprintf("predictions/part-%05d.arrow", i), shards.RowSchema{Column: "probability", Width: classes, Label: true})
	}
	lines["features"] = lines["smoothed"]
	slices.Sort(ids)
	for what := range lines {
		for _, id := range ids {
			f.want[what] = append(f.want[what], lines[what][id])
		}
	}
	return f
}

// budget is one in which only free bytes are left.
func budget(t *testing.T, free int64) *mem.Budget {
	t.Helper()
	b, err := mem.NewBudget(mem.MinBudget)
	must(t, err)
	must(t, b.Reserve(b.Free()-free, "test"))
	return b
}

func TestEveryArtifactInEveryFormat(t *testing.T) {
	f := newFixture(t)
	for _, what := range Artifacts {
		for _, format := range Formats {
			var first []byte
			// The smaller budgets hold the order and a few rows or one.
			for _, free := range []int64{16 << 20, 12 * 4096, 6 * 4096} {
				t.Run(fmt.Sprintf("%s/%s/%d", what, format, free), func(t *testing.T) {
					out := filepath.Join(t.TempDir(), "out")
					if what == "features" || what == "edges" {
						// Ids and ranks of nodes come on top.
						free += 3 * 4096
					}
					if what == "smoothed" || what == "hops" || what == "soft-labels" || what == "predictions" {
						// A record batch comes on top.
						free += 3 * 4096
					}
					b := budget(t, free)
					rows, err := Run(context.Background(), f.cat, Options{What: what, Format: format, Out: out, Budget: b})
					must(t, err)
					text, err := os.ReadFile(out)
					must(t, err)
					if b.Free() != free {
						t.Errorf("%d bytes of the budget were not given back", free-b.Free())
					}
					if rows != int64(len(f.want[what])) {
						t.Errorf("%d rows, want %d", rows, len(f.want[what]))
					}
					if first == nil {
						first = text
						want := f.want[what]
						if format == "npy" && (what == "features" || what == "smoothed" || what == "hops" || what == "soft-labels") {
							// A matrix has no column of ids.
							want = withoutFirst(want)
						}
						if got := decode(t, format, text); !slices.Equal(got, want) {
							t.Errorf("rows\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
						}
					} else if !bytes.Equal(first, text) {
						t.Error("the bytes depend on the budget")
					}
				})
			}
		}
	}
}

func withoutFirst(lines []string) []string {
	var out []string
	for _, l := range lines {
		_, rest, _ := strings.Cut(l, ",")
		out = append(out, rest)
	}
	return out
}

// decode turns a file back into the lines of csv.
func decode(t *testing.T, format string, text []byte) []string {
	t.Helper()
	switch format {
	case "csv":
		lines := strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
		return lines[1:]
	case "npy":
		return decodeNPY(t, text)
	case "parquet":
		rows, err := parquettest.Rows(text)
		must(t, err)
		var lines []string
		for _, cells := range rows {
			lines = append(lines, strings.Join(cells, ","))
		}
		return lines
	}
	r, err := ipc.NewFileReader(bytes.NewReader(text))
	must(t, err)
	defer r.Close()
	var lines []string
	for i := range r.NumRecords() {
		rec, err := r.Record(i)
		must(t, err)
		lines = append(lines, decodeRecord(rec)...)
	}
	return lines
}

func decodeRecord(rec arrow.Record) []string {
	lines := make([]string, rec.NumRows())
	for i := range lines {
		var cells []string
		for _, col := range rec.Columns() {
			if list, ok := col.(array.ListLike); ok {
				from, to := list.ValueOffsets(i)
				for k := from; k < to; k++ {
					cells = append(cells, fmt.Sprint(list.ListValues().(*array.Float32).Value(int(k))))
				}
				continue
			}
			cells = append(cells, col.ValueStr(i))
		}
		lines[i] = strings.Join(cells, ",")
	}
	return lines
}

// decodeNPY reads the fields by the names in the header.
func decodeNPY(t *testing.T, text []byte) []string {
	t.Helper()
	size := int(binary.LittleEndian.Uint16(text[8:]))
	head, data := string(text[10:10+size]), text[10+size:]
	if (10+size)%64 != 0 || !strings.HasSuffix(head, "\n") {
		t.Errorf("header of %d bytes ends %q", 10+size, head[len(head)-2:])
	}
	types := strings.Split(head, "'")
	var lines []string
	for len(data) > 0 {
		var cells []string
		take := func(n int) []byte {
			b := data[:n]
			data = data[n:]
			return b
		}
		for i, s := range types {
			count := 1
			if i+1 < len(types) && strings.HasPrefix(types[i+1], ", (") {
				if _, err := fmt.Sscanf(types[i+1], ", (%d,)", &count); err != nil && !strings.Contains(types[i+1], ",)") {
					count = 1
				}
			}
			if s == "<i8" || s == "<f4" {
				// A matrix: as many to a row as its shape says.
				_, shape, _ := strings.Cut(head, "'shape': (")
				shape, _, _ = strings.Cut(shape, ")")
				for _, size := range strings.Split(shape, ", ")[1:] {
					n, err := strconv.Atoi(size)
					must(t, err)
					count *= n
				}
			}
			for range count {
				switch s {
				case "<i8":
					cells = append(cells, fmt.Sprint(int64(binary.LittleEndian.Uint64(take(8)))))
				case "<i4":
					cells = append(cells, fmt.Sprint(int32(binary.LittleEndian.Uint32(take(4)))))
				case "<u4":
					cells = append(cells, fmt.Sprint(binary.LittleEndian.Uint32(take(4))))
				case "|b1":
					cells = append(cells, fmt.Sprint(take(1)[0] != 0))
				case "|S1":
					cells = append(cells, strings.TrimRight(string(take(1)), "\x00"))
				case "|S5":
					cells = append(cells, strings.TrimRight(string(take(5)), "\x00"))
				case "<f4":
					cells = append(cells, fmt.Sprint(view[float32](take(4))[0]))
				}
			}
		}
		lines = append(lines, strings.Join(cells, ","))
	}
	return lines
}

func TestNPYHeader(t *testing.T) {
	f := newFixture(t)
	for what, want := range map[string]string{
		"edges":       "{'descr': '<i8', 'fortran_order': False, 'shape': (%d, 2), }",
		"soft-labels": "{'descr': '<f4', 'fortran_order': False, 'shape': (%d, 3), }",
		"predictions": "{'descr': [('id', '<i8'), ('label', '<i4'), ('probability', '<f4', (3,))], 'fortran_order': False, 'shape': (%d,), }",
		"nodes":       "{'descr': [('id', '<i8'), ('degree', '<u4'), ('component', '<u4'), ('label', '<i4'), ('split', '|S5')], 'fortran_order': False, 'shape': (%d,), }",
	} {
		out := filepath.Join(t.TempDir(), "out.npy")
		rows, err := Run(context.Background(), f.cat, Options{What: what, Format: "npy", Out: out, Budget: budget(t, 1<<20)})
		must(t, err)
		text, err := os.ReadFile(out)
		must(t, err)
		if want := fmt.Sprintf(want, rows); !bytes.HasPrefix(text[10:], []byte(want)) {
			t.Errorf("%s: header %q, want %q", what, text[10:138], want)
		}
	}
}

func TestRefusals(t *testing.T) {
	f := newFixture(t)
	empty, err := catalog.Open(context.Background(), storagetest.NewMem())
	must(t, err)
	dir := t.TempDir()
	taken := filepath.Join(dir, "taken.csv")
	must(t, os.WriteFile(taken, []byte("mine"), 0o644))
	out := filepath.Join(dir, "out.csv")
	for _, tc := range []struct {
		name   string
		cat    *catalog.Catalog
		o      Options
		target error
		want   string
	}{
		{"artifact", f.cat, Options{What: "weights", Format: "csv", Out: out}, ErrOption, `"weights"`},
		{"format", f.cat, Options{What: "lsi", Format: "xls", Out: out}, ErrOption, `"xls"`},
		{"existing file", f.cat, Options{What: "lsi", Format: "csv", Out: taken}, ErrExists, "--force"},
		{"submission as a table", f.cat, Options{What: Submission, Format: "csv", Out: out}, ErrOption, "npz"},
		{"table as a submission", f.cat, Options{What: "lsi", Format: SubmissionFormat, Out: out}, ErrOption, "npz"},
		{"true labels of nothing", f.cat, Options{What: "lsi", Format: "csv", TrueLabels: true, Out: out}, ErrOption, "predictions alone"},
		{"missing stage", empty, Options{What: "soft-labels", Format: "csv", Out: out}, nil, "run this first: ndls train --run "},
		{"order does not fit", f.cat, Options{What: "lsi", Format: "csv", Out: out, Budget: budget(t, 4096)}, mem.ErrBudget, "lsi"},
		{"rows do not fit", f.cat, Options{What: "smoothed", Format: "csv", Out: out, Budget: budget(t, 4*4096)}, mem.ErrBudget, "record batch"},
		{"missing folder", f.cat, Options{What: "lsi", Format: "csv", Out: filepath.Join(dir, "no", "out.csv"), Budget: budget(t, 1<<20)}, os.ErrNotExist, "no"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := Run(context.Background(), tc.cat, tc.o)
			if err == nil || tc.target != nil && !errors.Is(err, tc.target) || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v, want %v with %q", err, tc.target, tc.want)
			}
		})
	}
	left, err := os.ReadDir(dir)
	must(t, err)
	if text, err := os.ReadFile(taken); len(left) != 1 || err != nil || string(text) != "mine" {
		t.Errorf("files left: %v; the existing one holds %q", left, text)
	}
	_, err = Run(context.Background(), f.cat, Options{What: "lsi", Format: "csv", Out: taken, Force: true, Budget: budget(t, 1<<20)})
	must(t, err)
	if text, err := os.ReadFile(taken); err != nil || !bytes.HasPrefix(text, []byte("id,k,capped\n")) {
		t.Errorf("--force left %.40q, %v", text, err)
	}
}

func TestDamageIsFound(t *testing.T) {
	f := newFixture(t)
	e := f.cat.Entries(catalog.KindSmoothed)[1]
	w, err := f.cat.Store().Create(context.Background(), e.Path)
	must(t, err)
	_, err = w.Write(make([]byte, e.Bytes))
	must(t, err)
	_, err = w.Commit(context.Background())
	must(t, err)
	out := filepath.Join(t.TempDir(), "out.csv")
	_, err = Run(context.Background(), f.cat, Options{What: "smoothed", Format: "csv", Out: out, Budget: budget(t, 1<<20)})
	if !errors.Is(err, seal.ErrCorrupt) || !strings.Contains(err.Error(), e.Path) {
		t.Errorf("error %v, want ErrCorrupt naming %s", err, e.Path)
	}
	if _, err := os.Stat(out); err == nil {
		t.Error("a damaged artifact left an output file")
	}
}

// TestPlaces finds the places of rows in order of id, and refuses rows that are not those of the catalogue.
func TestPlaces(t *testing.T) {
	b := budget(t, 1<<20)
	for _, c := range []struct {
		rows    int64
		ids     []int64
		want    []uint32
		refused string
	}{
		{3, []int64{5, 1, 3}, []uint32{2, 0, 1}, ""},
		{3, []int64{5, 1}, nil, "2 rows"},
		{2, []int64{5, 1, 3}, nil, "rows 0 to 3"},
		{3, []int64{1, 5, 1}, nil, "id 1 has two rows"},
		{2, []int64{5, 5}, nil, "id 5 has two rows"},
		{1, []int64{-1}, nil, "impossible id -1"},
		{1, []int64{1 << 32}, nil, "impossible id"},
	} {
		place, err := places(t.Context(), &source{rows: c.rows, ids: func(_ context.Context, visit func(int64, []int64) error) error { return visit(0, c.ids) }}, b)
		if c.refused != "" {
			if !errors.Is(err, seal.ErrCorrupt) || !strings.Contains(err.Error(), c.refused) {
				t.Errorf("ids %d of %d: %v, want %q", c.ids, c.rows, err, c.refused)
			}
			continue
		}
		must(t, err)
		if !slices.Equal(place.S, c.want) {
			t.Errorf("ids %d: places %d, want %d", c.ids, place.S, c.want)
		}
		place.Free()
	}
	if b.Free() != 1<<20 {
		t.Errorf("%d bytes of the budget were not given back", 1<<20-b.Free())
	}
}

// byName counts the bytes that are read of each file.
type byName struct {
	storage.Store
	mu   sync.Mutex
	read map[string]int64
}

type countedReader struct {
	storage.Reader
	count func(n int)
}

func (s *byName) Open(ctx context.Context, name string) (storage.Reader, error) {
	r, err := s.Store.Open(ctx, name)
	if err != nil {
		return nil, err
	}
	return countedReader{r, func(n int) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.read[name] += int64(n)
	}}, nil
}

func (r countedReader) ReadAt(p []byte, off int64) (int, error) {
	n, err := r.Reader.ReadAt(p, off)
	r.count(n)
	return n, err
}

// Where all rows fit the budget, each feature tile is read once, also to verify it.
func TestTilesAreReadOnce(t *testing.T) {
	store := &byName{Store: storagetest.NewMem(), read: map[string]int64{}}
	f := newFixtureIn(t, store)
	clear(store.read)
	_, err := Run(context.Background(), f.cat, Options{What: "features", Format: "csv", To: io.Discard, Budget: budget(t, 1<<20)})
	must(t, err)
	tiles := f.cat.Entries(catalog.KindFeatures)
	if len(tiles) != 6 {
		t.Errorf("%d tiles", len(tiles))
	}
	for _, e := range tiles {
		if store.read[e.Path] != e.Bytes {
			t.Errorf("%d bytes were read of %s, which has %d", store.read[e.Path], e.Path, e.Bytes)
		}
	}
}

// A changed byte of any tile is found, whatever the budget, and no output is left; so is a
// tile that is missing.
func TestDamagedTilesAreFound(t *testing.T) {
	out := filepath.Join(t.TempDir(), "out.npy")
	refused := func(f *fixture, free int64, name string) {
		t.Helper()
		_, err := Run(context.Background(), f.cat, Options{What: "features", Format: "npy", Out: out, Budget: budget(t, free)})
		if !errors.Is(err, seal.ErrCorrupt) || !strings.Contains(err.Error(), name) {
			t.Errorf("error %v, want ErrCorrupt naming %s", err, name)
		}
		if _, err := os.Stat(out); err == nil {
			t.Error("a damaged artifact left an output file")
		}
	}
	store := storagetest.NewMem()
	f := newFixtureIn(t, store)
	for _, e := range f.cat.Entries(catalog.KindFeatures) {
		for _, free := range []int64{1 << 20, 9 * 4096} {
			must(t, store.FlipByte(e.Path, e.Bytes-1))
			refused(f, free, e.Path)
			err := Records(context.Background(), f.cat, "features", budget(t, free), func(arrow.Record) error {
				t.Error("rows were given")
				return nil
			})
			if !errors.Is(err, seal.ErrCorrupt) {
				t.Errorf("records: %v, want ErrCorrupt", err)
			}
			must(t, store.FlipByte(e.Path, e.Bytes-1))
		}
	}
	gone := f.cat.Entries(catalog.KindFeatures)[3].Path
	must(t, f.cat.Remove(context.Background(), func(e catalog.Entry) bool { return e.Path == gone }))
	refused(f, 1<<20, gone)
}

func TestNeverIntoARunDirectory(t *testing.T) {
	f := newFixture(t)
	run, elsewhere := t.TempDir(), t.TempDir()
	must(t, os.WriteFile(filepath.Join(run, "run.json"), []byte(`{"plan_hash": "sha256:0"}`), 0o644))
	must(t, os.Mkdir(filepath.Join(run, "graph"), 0o755))
	nodes := filepath.Join(run, "graph", "nodes.parquet")
	must(t, os.WriteFile(nodes, []byte("committed"), 0o644))
	link := filepath.Join(elsewhere, "link")
	must(t, os.Symlink(run, link))
	for _, out := range []string{nodes, filepath.Join(run, "new.csv"), filepath.Join(run, "new", "x.csv"), filepath.Join(link, "graph", "x.csv"), filepath.Join(elsewhere, "..", filepath.Base(run), "x.csv")} {
		_, err := Run(context.Background(), f.cat, Options{What: "nodes", Format: "csv", Out: out, Force: true, Budget: budget(t, 1<<20)})
		if !errors.Is(err, ErrOption) || !strings.Contains(err.Error(), "inside the run directory") {
			t.Errorf("--out %s: %v", out, err)
		}
	}
	if text, err := os.ReadFile(nodes); err != nil || string(text) != "committed" {
		t.Errorf("the committed file holds %q, %v", text, err)
	}
}

func TestCompressedBySuffix(t *testing.T) {
	f := newFixture(t)
	dir := t.TempDir()
	export := func(format, name string) string {
		t.Helper()
		out := filepath.Join(dir, name)
		_, err := Run(context.Background(), f.cat, Options{What: "nodes", Format: format, Out: out, Budget: budget(t, 1<<20)})
		must(t, err)
		return out
	}
	for _, format := range []string{"csv", "npy", "arrow"} {
		plain, err := os.ReadFile(export(format, "plain."+format))
		must(t, err)
		for suffix, open := range map[string]func(io.Reader) (io.Reader, error){
			".gz":  func(r io.Reader) (io.Reader, error) { return gzip.NewReader(r) },
			".zst": func(r io.Reader) (io.Reader, error) { return zstd.NewReader(r, zstd.WithDecoderConcurrency(1)) },
		} {
			file, err := os.Open(export(format, "out."+format+suffix))
			must(t, err)
			r, err := open(file)
			must(t, err)
			got, err := io.ReadAll(r)
			must(t, err)
			must(t, file.Close())
			if !bytes.Equal(got, plain) {
				t.Errorf("%s%s holds other bytes than the plain file", format, suffix)
			}
		}
	}
	_, err := Run(context.Background(), f.cat, Options{What: "nodes", Format: "parquet", Out: filepath.Join(dir, "x.parquet.gz"), Budget: budget(t, 1<<20)})
	if !errors.Is(err, ErrOption) {
		t.Errorf("parquet.gz: %v", err)
	}
}

func TestStreams(t *testing.T) {
	f := newFixture(t)
	dir := t.TempDir()
	for _, format := range Formats {
		plain := filepath.Join(dir, "plain."+format)
		_, err := Run(context.Background(), f.cat, Options{What: "predictions", Format: format, Out: plain, Budget: budget(t, 1<<20)})
		must(t, err)
		want, err := os.ReadFile(plain)
		must(t, err)
		var stream bytes.Buffer
		_, err = Run(context.Background(), f.cat, Options{What: "predictions", Format: format, To: &stream, Budget: budget(t, 1<<20)})
		must(t, err)
		if !bytes.Equal(stream.Bytes(), want) {
			t.Errorf("%s: a stream has other bytes than a file", format)
		}
		pipe := filepath.Join(dir, "pipe."+format)
		must(t, syscall.Mkfifo(pipe, 0o600))
		read := make(chan []byte)
		go func() {
			got, _ := os.ReadFile(pipe)
			read <- got
		}()
		_, err = Run(context.Background(), f.cat, Options{What: "predictions", Format: format, Out: pipe, Budget: budget(t, 1<<20)})
		must(t, err)
		if !bytes.Equal(<-read, want) {
			t.Errorf("%s: a pipe got other bytes than a file", format)
		}
		if st, err := os.Lstat(pipe); err != nil || st.Mode()&os.ModeNamedPipe == 0 {
			t.Errorf("the pipe was replaced: %v, %v", st, err)
		}
	}
}

// TestHopsAsAnArray: hops have an axis of their own in NumPy's format, also where there is one.
func TestHopsAsAnArray(t *testing.T) {
	for _, c := range []struct {
		lists []string
		want  string
	}{
		{[]string{"hop_0", "hop_3", "hop_4"}, "'shape': (2, 3, 5), "},
		{[]string{"hop_3"}, "'shape': (2, 1, 5), "},
		{[]string{"feature"}, "'shape': (2, 5), "},
	} {
		columns := []column{idColumn}
		for _, name := range c.lists {
			columns = append(columns, column{name, float32Kind, 5})
		}
		var out bytes.Buffer
		w, err := newNPY(&out, columns, 2, &names{})
		must(t, err)
		must(t, w.close())
		if !strings.Contains(out.String(), c.want) || !strings.Contains(out.String(), "'descr': '<f4'") {
			t.Errorf("%v: header %q, want %q", c.lists, out.String(), c.want)
		}
	}
}
