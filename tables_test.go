package ndls_test

import (
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"ndls"
	"ndls/internal/storage/storagetest"
)

// writeTables writes a community graph as CSV tables with the ids that name gives, and returns
// its URI.
func writeTables(t *testing.T, name func(i int) string) string {
	t.Helper()
	const n, classes = 400, 4
	dir, random := t.TempDir(), rand.New(rand.NewPCG(1, 2))
	var edges, nodes strings.Builder
	edges.WriteString("from,to\n")
	nodes.WriteString("key,x,y,topic,part\n")
	for i := range n {
		for range 4 {
			j := random.IntN(n)
			if random.IntN(5) > 0 {
				j = j/classes*classes + i%classes
			}
			fmt.Fprintf(&edges, "%s,%s\n", field(name(i)), field(name(j)))
		}
		fmt.Fprintf(&nodes, "%s,%g,%g,c%d,%s\n", field(name(i)), float64(i%classes)+random.NormFloat64(), float64(i%2)+random.NormFloat64(), i%classes, []string{"train", "valid", "test"}[i%3])
	}
	for file, text := range map[string]string{"edges.csv": edges.String(), "nodes.csv": nodes.String()} {
		if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return "table:" + dir + "/edges.csv?src=from&dst=to&nodes=" + dir + "/nodes.csv&id=key&features=x,y&label=topic&split=part"
}

// field is a field of CSV in quotes.
func field(text string) string { return `"` + strings.ReplaceAll(text, `"`, `""`) + `"` }

// exported is an artifact as rows of CSV.
func exported(t *testing.T, d *ndls.Directory, what string) [][]string {
	t.Helper()
	out := filepath.Join(t.TempDir(), what+".csv")
	if _, err := d.Export(context.Background(), ndls.ExportOptions{What: what, Format: "csv", Out: out}); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(out)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	rows, err := csv.NewReader(f).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	return rows[1:]
}

// TestTablesOfAnyIDs takes a graph with text and with large numbers for ids through the whole
// job, and compares every export with that of the same graph whose ids are small numbers.
func TestTablesOfAnyIDs(t *testing.T) {
	job := func(uri string) ndls.Config {
		c := quick(filepath.Join(t.TempDir(), "run"))
		c.Dataset = uri
		return c
	}
	run := func(c ndls.Config) *ndls.Directory {
		t.Helper()
		d, err := ndls.Run(context.Background(), c)
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	plain := run(job(writeTables(t, func(i int) string { return fmt.Sprint(i) })))
	for kind, name := range map[string]func(i int) string{
		"text":  func(i int) string { return fmt.Sprintf("user %04d, \"ü\"", i) },
		"large": func(i int) string { return fmt.Sprint(uint64(1)<<63 + uint64(i)*1000) },
	} {
		uri := writeTables(t, name)
		d := run(job(uri))
		for _, what := range []string{"lsi", "features", "smoothed", "soft-labels", "predictions", "nodes", "edges"} {
			want, got := exported(t, plain, what), exported(t, d, what)
			ids := 1
			if what == "edges" {
				ids = 2
			}
			for _, row := range want {
				for i := range ids {
					var number int
					_, _ = fmt.Sscan(row[i], &number)
					row[i] = name(number)
				}
			}
			if !slices.EqualFunc(got, want, slices.Equal[[]string]) {
				t.Errorf("%s: %s differs: %v, want %v", kind, what, got[:2], want[:2])
			}
		}

		// The soft labels of this run, given to another one, in every form.
		want := exported(t, d, "predictions")
		for _, format := range []string{"csv", "parquet", "arrow", "npy"} {
			soft := filepath.Join(t.TempDir(), "soft."+format)
			if _, err := d.Export(context.Background(), ndls.ExportOptions{What: "soft-labels", Format: format, Out: soft}); err != nil {
				t.Fatal(err)
			}
			c := job(uri)
			c.SoftLabels = soft
			c.Options = func(o *ndls.Options) { o.Train.Epochs, o.Train.Runs = 10, 1 }
			if got := exported(t, run(c), "predictions"); !slices.EqualFunc(got, want, slices.Equal[[]string]) {
				t.Errorf("%s: predictions from soft labels in %s differ: %v, want %v", kind, format, got[:2], want[:2])
			}
		}

		// Some rows alone.
		targets := filepath.Join(t.TempDir(), "targets.csv")
		var list strings.Builder
		list.WriteString("id\n")
		for _, i := range []int{3, 399, 17} {
			list.WriteString(field(name(i)) + "\n")
		}
		if err := os.WriteFile(targets, []byte(list.String()), 0o644); err != nil {
			t.Fatal(err)
		}
		c := job(uri)
		c.Options = func(o *ndls.Options) { o.Smooth.Targets = targets }
		some, err := ndls.Run(context.Background(), c, ndls.StagePartition, ndls.StageLSI, ndls.StageSmooth)
		if err != nil {
			t.Fatal(err)
		}
		all := exported(t, d, "smoothed")
		if got := exported(t, some, "smoothed"); !slices.EqualFunc(got, [][]string{all[3], all[17], all[399]}, slices.Equal[[]string]) {
			t.Errorf("%s: target rows %v", kind, got)
		}
		if err := os.WriteFile(targets, []byte("id\nnobody\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		c = job(uri)
		c.Options = func(o *ndls.Options) { o.Smooth.Targets = targets }
		if _, err := ndls.Run(context.Background(), c, ndls.StagePartition, ndls.StageLSI, ndls.StageSmooth); err == nil || !strings.Contains(err.Error(), "targets.csv line 2") {
			t.Errorf("%s: a target that is no node: %v", kind, err)
		}
	}
}

// TestTablesOfABucketThatChange imports tables of a bucket, and refuses to go on with a run
// once an object is another one.
func TestTablesOfABucketThatChange(t *testing.T) {
	server := storagetest.StartServer(t)
	for _, pair := range server.Environment {
		key, value, _ := strings.Cut(pair, "=")
		t.Setenv(key, value)
	}
	local := writeTables(t, func(i int) string { return fmt.Sprintf("user %04d", i) })
	edges, nodes, _ := strings.Cut(strings.TrimPrefix(local, "table:"), "?src=from&dst=to&nodes=")
	nodes, rest, _ := strings.Cut(nodes, "&")
	object := func(path string) string {
		uri := storagetest.BucketURI(server.URL, storagetest.Bucket, filepath.Base(path))
		return strings.NewReplacer("%", "%25", "?", "%3F", "&", "%26").Replace(uri)
	}
	// The server tells when an object was written, in seconds, where its folder has no ETag.
	written := time.Now().Add(-time.Hour)
	upload := func(path string, more string) {
		t.Helper()
		to := filepath.Join(server.Folder, filepath.Base(path))
		written = written.Add(time.Minute)
		data, err := os.ReadFile(path)
		if err == nil {
			err = errors.Join(os.WriteFile(to, append(data, more...), 0o644), os.Chtimes(to, written, written))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	upload(edges, "")
	upload(nodes, "")
	c := quick(filepath.Join(t.TempDir(), "run"))
	c.Dataset = "table:" + object(edges) + "?src=from&dst=to&nodes=" + object(nodes) + "&" + rest
	d, err := ndls.Run(context.Background(), c, ndls.StagePartition)
	if err != nil {
		t.Fatal(err)
	}
	here := quick(filepath.Join(t.TempDir(), "run"))
	here.Dataset = local
	want, err := ndls.Run(context.Background(), here, ndls.StagePartition)
	if err != nil {
		t.Fatal(err)
	}
	for _, what := range []string{"nodes", "edges", "features"} {
		if !slices.EqualFunc(exported(t, d, what), exported(t, want, what), slices.Equal[[]string]) {
			t.Errorf("%s of a bucket differ", what)
		}
	}
	if _, err := ndls.Run(context.Background(), c, ndls.StageLSI); err != nil {
		t.Errorf("objects that are as they were: %v", err)
	}
	upload(nodes, "nobody,0,0,c1,train\n")
	_, err = ndls.Run(context.Background(), c, ndls.StageSmooth)
	if !errors.Is(err, ndls.ErrPlanMismatch) || !strings.Contains(err.Error(), "nodes.csv has") {
		t.Errorf("an object with a row more: %v", err)
	}
	upload(nodes, "")
	text, err := os.ReadFile(nodes)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(nodes, []byte(strings.Replace(string(text), ",c1,", ",c2,", 1)), 0o644); err != nil {
		t.Fatal(err)
	}
	upload(nodes, "")
	_, err = ndls.Run(context.Background(), c, ndls.StageSmooth)
	if !errors.Is(err, ndls.ErrPlanMismatch) || !strings.Contains(err.Error(), "nodes.csv was written again") {
		t.Errorf("an object of another version: %v", err)
	}
}

// TestMessagesNameIDs has the id of a node, not its number, in errors about rows of nodes.
func TestMessagesNameIDs(t *testing.T) {
	name := func(i int) string { return fmt.Sprintf("user %04d", i) }
	uri := writeTables(t, name)
	dir := t.TempDir()
	file := func(base, text string) string {
		t.Helper()
		path := filepath.Join(dir, base)
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return path
	}
	fails := func(want string, change func(c *ndls.Config), stages ...ndls.Stage) {
		t.Helper()
		c := quick(filepath.Join(t.TempDir(), "run"))
		c.Dataset = uri
		change(&c)
		_, err := ndls.Run(context.Background(), c, append([]ndls.Stage{ndls.StagePartition, ndls.StageLSI}, stages...)...)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the error lacks %s: %v", want, err)
		}
	}
	rows := "id,a,b,c,d\n"
	for i := range 400 {
		rows += name(i) + ",0.25,0.25,0.25,0.25\n"
	}
	soft := func(path string) func(*ndls.Config) { return func(c *ndls.Config) { c.SoftLabels = path } }
	twice, unknown := file("twice.csv", rows+name(7)+",1,0,0,0\n"), file("unknown.csv", rows+"nobody,1,0,0,0\n")
	fails(`"user 0007" has a second row`, soft(twice), ndls.StageLabelDepth, ndls.StageSmoothLabels)
	fails(`"nobody"`, soft(unknown), ndls.StageLabelDepth, ndls.StageSmoothLabels)

	// The training needs others than three target rows.
	targets := file("targets.csv", "id\n"+name(0)+"\n"+name(3)+"\n"+name(6)+"\n")
	fails(`node "user `, func(c *ndls.Config) {
		c.Options = func(o *ndls.Options) { o.Smooth.Targets, o.Train.Epochs, o.Train.Runs = targets, 1, 1 }
	}, ndls.StageSmooth, ndls.StageTrain)
}
