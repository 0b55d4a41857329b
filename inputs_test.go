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
	if len(first) != 1 || first[0].Path != edges || first[0].Size != int64(len(text)) || len(first[0].SHA256) != 64 || !first[0].Modified.Equal(later) {
		t.Fatalf("the record says that the partition has read %+v", first)
	}

	write(text)
	if err := begun(ndls.StagePartition, ndls.StageLSI); err != nil {
		t.Fatalf("another time and the same bytes: %v", err)
	}
	if now := record().Inputs; len(now) != 1 || !now[0].Modified.Equal(later) || now[0].SHA256 != first[0].SHA256 {
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
	if now := record().Inputs; len(now) != 1 || now[0].SHA256 == first[0].SHA256 || !now[0].Modified.Equal(later) {
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
