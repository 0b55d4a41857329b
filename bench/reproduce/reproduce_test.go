package reproduce

import (
	"bytes"
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"ndls"
)

func job(runs ...string) Job {
	return Job{Runs: runs, Config: ndls.Config{Resources: ndls.Resources{Memory: 256 << 20, Threads: 1}}}
}

func find(t *testing.T, name string) Experiment {
	t.Helper()
	e, err := Find(name)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// TestKarate makes all figures from one run of the club.
func TestKarate(t *testing.T) {
	ctx := context.Background()
	run := filepath.Join(t.TempDir(), "run")
	club, err := find(t, "karate").Make(ctx, job(run))
	if err != nil {
		t.Fatal(err)
	}
	if len(club.Pictures) != 1 {
		t.Fatalf("%d pictures", len(club.Pictures))
	}
	d, err := ndls.Open(ctx, run)
	if err != nil {
		t.Fatal(err)
	}
	g, err := network(ctx, d)
	if err != nil {
		t.Fatal(err)
	}
	if len(g.K) != 34 || len(g.Edges) != 78 || !slices.Equal(g.Classes, []string{"Mr. Hi", "Officer"}) || g.Class[0] != 0 || g.Class[33] != 1 {
		t.Errorf("%d nodes, %d edges, classes %v, %v", len(g.K), len(g.Edges), g.Classes, g.Class)
	}
	degree := make([]int64, 34)
	for _, e := range g.Edges {
		degree[e[0]]++
		degree[e[1]]++
	}
	report, err := d.Report(ctx)
	if err != nil {
		t.Fatal(err)
	}
	buckets := report.LSI.ByDegree
	for _, b := range buckets {
		var k []int64
		sum := int64(0)
		for i, x := range g.K {
			if b.From <= degree[i] && degree[i] <= b.To {
				k, sum = append(k, x), sum+x
			}
		}
		slices.Sort(k)
		upTo := func(tenths int) int { return int(k[(tenths*len(k)+9)/10-1]) }
		if b.Nodes != int64(len(k)) || b.Mean != float64(sum)/float64(len(k)) || b.Tenth != upTo(1) || b.Median != upTo(5) || b.Ninetieth != upTo(9) {
			t.Errorf("%+v, and K are %v", b, k)
		}
	}
	if first, last := buckets[0], buckets[len(buckets)-1]; first.From != 1 || last.From != 16 {
		t.Errorf("degrees from %d to %d", first.From, last.To)
	}
	twice, err := find(t, "k-degree").Make(ctx, job(run, run))
	if err != nil || len(twice.Tables) != 2 || twice.Tables[0].Name == twice.Tables[1].Name || twice.Pictures[0].Name == twice.Pictures[1].Name {
		t.Errorf("two runs of one graph: %+v, %v", twice.Tables, err)
	}
	for _, name := range []string{"k-cdf", "k-degree"} {
		r, err := find(t, name).Make(ctx, job(run))
		if err != nil {
			t.Fatal(err)
		}
		var svg bytes.Buffer
		if err := r.Pictures[0].Write(&svg, "svg"); err != nil || !strings.Contains(svg.String(), "karate") {
			t.Errorf("%s: %v, or no name of the graph", name, err)
		}
		for _, table := range r.Tables {
			var text bytes.Buffer
			if err := table.Write(&text); err != nil || !strings.Contains(text.String(), "| 16 to 31 | 2 |") {
				t.Errorf("%s: %v\n%s", name, err, text.String())
			}
		}
	}
}

// TestBound sets exact K beside the bound, which holds for each node, and asks for it where no
// eigenvalue is known.
func TestBound(t *testing.T) {
	ctx := context.Background()
	run := filepath.Join(t.TempDir(), "run")
	e := find(t, "theorem-3.1")
	c := job().Config
	c.Run, c.Dataset = run, "synthetic:nodes=200,edges=800,classes=2,features=4,seed=3"
	c.Options = func(o *ndls.Options) { o.LSI.Mode, o.LSI.R = "influence-exact", 0 }
	if _, err := ndls.Run(ctx, c, ndls.StagePartition, ndls.StageLSI); err != nil {
		t.Fatal(err)
	}
	if _, err := e.Make(ctx, job(run)); !errors.Is(err, ndls.ErrOption) || !strings.Contains(err.Error(), "ndls spectrum --run") {
		t.Fatalf("without an eigenvalue: %v", err)
	}
	d, err := ndls.Run(ctx, c, ndls.StageSpectrum)
	if err != nil {
		t.Fatal(err)
	}
	report, err := d.Report(ctx)
	if err != nil {
		t.Fatal(err)
	}
	got, err := e.Make(ctx, job(run, run))
	if err != nil {
		t.Fatal(err)
	}
	if len(got.Tables) != 1 || len(got.Tables[0].Rows) != 2 || len(got.Notes) != 0 {
		t.Fatalf("%+v", got)
	}
	row := got.Tables[0].Rows[0]
	if len(row) != len(got.Tables[0].Header) || row[2] != strconv.FormatInt(report.Spectrum.Component, 10) || row[6] != "100.00" {
		t.Errorf("%q", row)
	}
	if !strings.HasPrefix(row[3], "0.") || row[5] == "0" {
		t.Errorf("|λ₂| %s, %s nodes settled", row[3], row[5])
	}
}

// TestMissing asks for experiments without their data.
func TestMissing(t *testing.T) {
	for _, e := range All {
		if e.Needs == "" {
			continue
		}
		j := job()
		j.Data, j.Out = t.TempDir(), t.TempDir()
		want := "ndls reproduce " + e.Name
		if len(e.Sets) > 0 {
			j.Sets = e.Sets[:1]
			want += " --sets " + e.Sets[0] + " --data DATA"
		}
		_, err := e.Make(context.Background(), j)
		if !errors.Is(err, ndls.ErrOption) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", e.Name, err)
		}
	}
	if _, err := Find("everything"); err == nil || !strings.Contains(err.Error(), "karate") {
		t.Error(err)
	}
	if !slices.IsSortedFunc(All, func(a, b Experiment) int { return strings.Compare(a.Name, b.Name) }) {
		t.Error("experiments are not in alphabetical order")
	}
}
