package ndls_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"ndls"
)

// A dataset whose files have changed since the partition is refused, by their bytes and
// not by their times, until the partition takes them as they are.
func TestChangedInputs(t *testing.T) {
	ctx := context.Background()
	dir := t.TempDir()
	edges := filepath.Join(dir, "graph.tsv")
	later := time.Now()
	write := func(text string) {
		t.Helper()
		later = later.Add(time.Second)
		if err := errors.Join(os.WriteFile(edges, []byte(text), 0o600), os.Chtimes(edges, later, later)); err != nil {
			t.Fatal(err)
		}
	}
	text := "0\t1\n1\t2\n2\t3\n"
	write(text)
	c := quick(filepath.Join(dir, "run"))
	c.Dataset = "edges:" + edges
	begun := func(stages ...ndls.Stage) error {
		t.Helper()
		_, err := ndls.Run(ctx, c, stages...)
		return err
	}
	if err := begun(ndls.StagePartition); err != nil {
		t.Fatal(err)
	}
	record := func() *ndls.Record {
		t.Helper()
		d, err := ndls.Open(ctx, c.Run)
		if err != nil {
			t.Fatal(err)
		}
		return d.Record()
	}
	first := record().Inputs
	if len(first) != 1 || first[0].Path != edges || first[0].Size != int64(len(text)) || !strings.HasPrefix(first[0].Digest, "xxh3-256k:") || !first[0].Modified.Equal(later) {
		t.Fatalf("the record says that the partition has read %+v", first)
	}

	write(text)
	if err := begun(ndls.StagePartition, ndls.StageLSI); err != nil {
		t.Fatalf("another time and the same bytes: %v", err)
	}
	if now := record().Inputs; len(now) != 1 || !now[0].Modified.Equal(later) || now[0].Digest != first[0].Digest {
		t.Errorf("the record keeps %+v, not the new time %v", now, later)
	}

	for name, other := range map[string]string{"a corrected edge": "0\t1\n1\t2\n0\t3\n", "an edge more": text + "0\t3\n"} {
		write(other)
		for _, stages := range [][]ndls.Stage{{ndls.StagePartition}, {ndls.StageLSI}, nil} {
			err := begun(stages...)
			if !errors.Is(err, ndls.ErrPlanMismatch) || !strings.Contains(err.Error(), edges) || !strings.Contains(err.Error(), "--resume=false") {
				t.Errorf("%s, stages %v: %v", name, stages, err)
			}
			if status := ndls.ExitStatus(err); status != 5 {
				t.Errorf("%s: status %d, want 5", name, status)
			}
		}
	}

	c.Dataset = ""
	if err := begun(ndls.StageLSI); err != nil {
		t.Errorf("a stage that does not name the dataset: %v", err)
	}
	c.Dataset = "edges:" + edges
	c.Discard = true
	if err := begun(ndls.StageLSI); !errors.Is(err, ndls.ErrPlanMismatch) {
		t.Errorf("--resume=false with a stage after the partition: %v", err)
	}
	if err := begun(ndls.StagePartition); err != nil {
		t.Fatalf("--resume=false: %v", err)
	}
	if now := record().Inputs; len(now) != 1 || now[0].Digest == first[0].Digest || !now[0].Modified.Equal(later) {
		t.Errorf("after --resume=false the record says %+v", now)
	}
	c.Discard = false
	if err := begun(ndls.StagePartition, ndls.StageLSI); err != nil {
		t.Errorf("after --resume=false: %v", err)
	}
}

// A generated dataset has no files.
func TestGeneratedInputs(t *testing.T) {
	d, err := ndls.Run(context.Background(), quick(filepath.Join(t.TempDir(), "run")), ndls.StagePartition)
	if err != nil || len(d.Record().Inputs) != 0 {
		t.Errorf("inputs %+v, %v", d.Record().Inputs, err)
	}
}

// A run directory that a refused dataset has begun is removed, so that the same command works
// once the dataset is corrected. One that was there before stays.
func TestRefusedDatasetLeavesNothing(t *testing.T) {
	ctx := context.Background()
	dir := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	const edges, nodes = "src,dst,weight\na,b,2\nb,c,3\n", "id,x\na,1\nb,2\nc,3\n"
	for name, bad := range map[string][2]string{
		"a weight of zero":       {"src,dst,weight\na,b,2\nb,c,0\n", nodes},
		"different weights":      {"src,dst,weight\na,b,2\nb,a,3\n", nodes},
		"a node twice":           {edges, nodes + "a,4\n"},
		"a node without a row":   {"src,dst,weight\na,b,2\nb,d,3\n", nodes},
		"a feature that is none": {edges, "id,x\na,1\nb,NaN\nc,3\n"},
	} {
		write("edges.csv", bad[0])
		write("nodes.csv", bad[1])
		c := quick(filepath.Join(dir, "run"))
		c.Dataset = "table:" + dir + "/edges.csv?weight=weight&nodes=" + dir + "/nodes.csv&features=x"
		if _, err := ndls.Run(ctx, c, ndls.StagePartition); !errors.Is(err, ndls.ErrData) {
			t.Errorf("%s: %v", name, err)
		}
		if left, err := os.ReadDir(dir); err != nil || len(left) != 2 {
			t.Errorf("%s leaves %v, %v", name, left, err)
		}
		write("edges.csv", edges)
		write("nodes.csv", nodes)
		if _, err := ndls.Run(ctx, c, ndls.StagePartition); err != nil {
			t.Errorf("%s, corrected: %v", name, err)
		}
		write("edges.csv", bad[0])
		write("nodes.csv", bad[1])
		if _, err := ndls.Run(ctx, c, ndls.StagePartition); err == nil {
			t.Errorf("%s is not noticed in a run directory that holds a graph", name)
		}
		if d, err := ndls.Open(ctx, c.Run); err != nil || !d.Record().Done(ndls.StagePartition) {
			t.Errorf("%s: the graph that was there before is gone: %v", name, err)
		}
		if err := os.RemoveAll(c.Run); err != nil {
			t.Fatal(err)
		}
		if err := os.Mkdir(c.Run, 0o755); err != nil {
			t.Fatal(err)
		}
		if _, err := ndls.Run(ctx, c, ndls.StagePartition); !errors.Is(err, ndls.ErrData) {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := os.Stat(c.Run); err != nil {
			t.Errorf("%s takes a folder away that was there before: %v", name, err)
		}
		if err := os.RemoveAll(c.Run); err != nil {
			t.Fatal(err)
		}
	}
}

// A file that is replaced by one of the same size, with its time restored, is another one, whether the file system tells so by
// the time of the last change or its bytes alone do; a copy is not.
func TestReplacedInputs(t *testing.T) {
	ctx := context.Background()
	dir := t.TempDir()
	edges := filepath.Join(dir, "graph.tsv")
	at := time.Unix(1_000_000_000, 0)
	replace := func(text string) {
		t.Helper()
		other := edges + ".new"
		if err := errors.Join(os.WriteFile(other, []byte(text), 0o600), os.Chtimes(other, at, at), os.Rename(other, edges)); err != nil {
			t.Fatal(err)
		}
	}
	c := quick(filepath.Join(dir, "run"))
	c.Dataset = "edges:" + edges
	begun := func() error {
		_, err := ndls.Run(ctx, c, ndls.StagePartition)
		return err
	}
	replace("0\t1\n1\t2\n2\t3\n")
	for range 2 {
		if err := begun(); err != nil {
			t.Fatal(err)
		}
		replace("0\t1\n1\t2\n2\t3\n")
		if err := begun(); err != nil {
			t.Errorf("a copy: %v", err)
		}
		replace("0\t1\n1\t2\n0\t3\n")
		if err := begun(); !errors.Is(err, ndls.ErrPlanMismatch) || !strings.Contains(err.Error(), edges+" has other bytes") {
			t.Errorf("other bytes of the same size and time: %v", err)
		}
		replace("0\t1\n1\t2\n2\t3\n")
		time.Sleep(2200 * time.Millisecond) // the file has settled
	}
}
