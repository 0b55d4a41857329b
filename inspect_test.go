package ndls_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ndls"
)

// TestInspectSeesWhatAnImportFinds compares the inspection of datasets of several kinds with
// the graph that a partition of them commits.
func TestInspectSeesWhatAnImportFinds(t *testing.T) {
	dir := t.TempDir()
	edges := filepath.Join(dir, "edges.csv")
	if err := os.WriteFile(edges, []byte("src,dst\n7,7\n7,9\n9,7\n7,9\n1,7\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	weighted := filepath.Join(dir, "weighted.csv")
	if err := os.WriteFile(weighted, []byte("from,to,amount\na,b,2.5\nb,c,0.25\nc,b,0.25\na,a,9\nd,a,4\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		uri   string
		sized bool // the classes have numbers that are checked below
	}{
		"text ids":    {writeTables(t, func(i int) string { return fmt.Sprintf("user %04d", i) }), true},
		"own numbers": {writeTables(t, func(i int) string { return fmt.Sprint(i) }), true},
		"edges":       {"edges:" + edges, false},
		"weights":     {"table:" + weighted + "?weight=amount", false},
		"octaves":     {"synthetic:nodes=3000,edges=9000,features=0,classes=5,seed=3,weights=8", true},
		"karate":      {"karate:", true},
		"synthetic":   {"synthetic:nodes=3000,edges=9000,features=20,classes=5,seed=3", true},
		"papers100m":  {"papers100m:scale=1/4096,seed=1", true},
	} {
		t.Run(name, func(t *testing.T) {
			scratch := t.TempDir()
			in, err := ndls.Inspect(context.Background(), ndls.InspectConfig{Dataset: c.uri, Resources: ndls.Resources{Memory: 192 << 20, Threads: 2, Scratch: scratch}})
			if err != nil {
				t.Fatal(err)
			}
			if left, _ := os.ReadDir(scratch); len(left) > 0 {
				t.Errorf("the inspection left %v", left)
			}
			run := quick(filepath.Join(t.TempDir(), "run"))
			run.Dataset = c.uri
			d, err := ndls.Run(context.Background(), run, ndls.StagePartition)
			if err != nil {
				t.Fatal(err)
			}
			want, err := d.Graph(context.Background())
			if err != nil {
				t.Fatal(err)
			}
			if got, want := jsonOf(t, in.Graph.Summary), jsonOf(t, want); got != want {
				t.Errorf("inspected\n%s\nimported\n%s", got, want)
			}
			labelled, isolated := int64(0), int64(0)
			for _, n := range in.Graph.ClassSizes {
				labelled += n
			}
			if labelled != want.Labelled || c.sized != (labelled > 0) {
				t.Errorf("classes of %v nodes, and %d labels", in.Graph.ClassSizes, want.Labelled)
			}
			var degrees []int64
			behind := 4 // columns from the degree on
			if want.Weighted {
				behind++
			}
			strengths := ndls.Strengths{Min: math.Inf(1)}
			for _, row := range exported(t, d, "nodes") {
				var degree int64
				_, _ = fmt.Sscan(row[len(row)-behind], &degree)
				degrees = append(degrees, degree)
				if degree == 0 {
					isolated++
				} else if want.Weighted {
					var strength float64
					_, _ = fmt.Sscan(row[len(row)-1], &strength)
					strengths.Min, strengths.Mean, strengths.Max = min(strengths.Min, strength), strengths.Mean+strength, max(strengths.Max, strength)
				}
			}
			strengths.Mean /= float64(want.Nodes - isolated)
			if got := in.Graph.Strengths; (got != nil) != want.Weighted || got != nil && (!near(got.Min, strengths.Min) || !near(got.Max, strengths.Max) || !near(got.Mean, strengths.Mean)) {
				t.Errorf("strengths %+v, not %+v", got, strengths)
			}
			if name == "weights" && (*in.Graph.Strengths != ndls.Strengths{Min: 0.25, Mean: 13.5 / 4, Max: 6.5} || in.Tables[0].Columns[2].Use != "weight") {
				t.Errorf("%+v, %+v", in.Graph.Strengths, in.Tables)
			}
			atMost := func(limit int64) (share float64) {
				for _, d := range degrees {
					if d <= limit {
						share++
					}
				}
				return share / float64(len(degrees))
			}
			g := in.Graph.Degrees
			if g.Isolated != isolated || g.Mean != float64(2*want.Edges)/float64(want.Nodes) {
				t.Errorf("degrees %+v, of %d nodes and %d edges, %d isolated", g, want.Nodes, want.Edges, isolated)
			}
			for share, d := range map[float64]int64{0.5: g.Median, 0.9: g.P90, 0.99: g.P99, 1: g.Max} {
				if atMost(d) < share || d > 0 && atMost(d-1) > share {
					t.Errorf("%v of the nodes have at most degree %d, and not %v", atMost(d), d, share)
				}
			}
		})
	}
}

// near compares with a number that an export has written with seven digits or more.
func near(got, exported float64) bool { return math.Abs(got/exported-1) < 1e-6 }

func jsonOf(t *testing.T, x any) string {
	t.Helper()
	text, err := json.Marshal(x)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestInspectTables shows each column with its type and what it is read as, also of tables that
// are refused later.
func TestInspectTables(t *testing.T) {
	uri := writeTables(t, func(i int) string { return fmt.Sprintf("u%03d", i) })
	inspect := func(uri string) (ndls.Inspection, error) {
		return ndls.Inspect(context.Background(), ndls.InspectConfig{Dataset: uri, Resources: ndls.Resources{Memory: 192 << 20}})
	}
	in, err := inspect(uri)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, table := range in.Tables {
		for _, c := range table.Columns {
			got = append(got, table.What+" "+c.Name+": "+c.Use)
		}
	}
	want := "edges from: source, edges to: destination, nodes key: id, nodes x: feature, nodes y: feature, nodes topic: label, nodes part: split"
	if strings.Join(got, ", ") != want {
		t.Errorf("%v", got)
	}
	if in.Graph.FirstID != `"u000"` || in.Graph.LastID != `"u399"` || len(in.Files) != 2 || in.Files[0].Bytes == 0 {
		t.Errorf("%+v", in)
	}
	nodes := strings.TrimSuffix(in.Files[1].Path, "\n")
	text, err := os.ReadFile(nodes)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(nodes, append(text, "\"u007\",0,0,c1,train\n"...), 0o644); err != nil {
		t.Fatal(err)
	}
	in, err = inspect(uri)
	if !errors.Is(err, ndls.ErrData) || !strings.Contains(err.Error(), "nodes.csv line 402") || !strings.Contains(err.Error(), `"u007"`) {
		t.Errorf("a node that is there twice: %v", err)
	}
	if in.Graph != nil || len(in.Tables) != 2 {
		t.Errorf("of tables that are refused it shows %+v", in)
	}
}

// TestInspectRefusesWeights: weights that an import refuses are refused, with the same message.
func TestInspectRefusesWeights(t *testing.T) {
	for text, want := range map[string]string{
		"src,dst,w\na,b,1\nb,c,0\n":        `line 3: column "w": the weight is 0`,
		"src,dst,w\na,b,1\nb,c,NaN\n":      `line 3: column "w": the weight is NaN`,
		"src,dst,w\na,b,1\nb,a,2\nb,c,1\n": `the edge between nodes "a" and "b"`,
		"src,dst,w\na,b,3e38\na,c,3e38\n":  "add up to more than 3.4e38",
	} {
		file := filepath.Join(t.TempDir(), "edges.csv")
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		c := quick(filepath.Join(t.TempDir(), "run"))
		c.Dataset = "table:" + file + "?weight=w"
		in, err := ndls.Inspect(context.Background(), ndls.InspectConfig{Dataset: c.Dataset, Resources: ndls.Resources{Memory: 192 << 20}})
		if !errors.Is(err, ndls.ErrData) || !strings.Contains(err.Error(), want) || in.Graph != nil {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
		if _, imported := ndls.Run(context.Background(), c, ndls.StagePartition); imported == nil || err == nil || imported.Error() != err.Error() {
			t.Errorf("%q: the inspection says %v, the import %v", text, err, imported)
		}
	}
}
