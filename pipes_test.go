package ndls_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"ndls"
)

// TestPipesAreDatasets imports a graph from a pipe, and continues with the same bytes alone.
func TestPipesAreDatasets(t *testing.T) {
	dir := t.TempDir()
	pipe, scratch := filepath.Join(dir, "pipe"), filepath.Join(dir, "scratch")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	write := func(text string) {
		go func() {
			if err := os.WriteFile(pipe, []byte(text), 0); err != nil {
				t.Error(err)
			}
		}()
	}
	const graph = "0 1\n1 2\n2 3\n"
	write(graph)
	in, err := ndls.Inspect(context.Background(), ndls.InspectConfig{Dataset: "edges:" + pipe, Resources: ndls.Resources{Memory: 192 << 20, Scratch: scratch}})
	if err != nil || in.Graph.Nodes != 4 || len(in.Notes) != 1 || !strings.Contains(in.Notes[0].Text, "12 bytes were copied") {
		t.Fatalf("%+v, %v", in, err)
	}
	run := quick(filepath.Join(dir, "run"))
	run.Resources.Scratch = scratch
	run.Dataset = "edges:" + pipe
	for _, text := range []string{graph, graph} {
		write(text)
		if _, err := ndls.Run(context.Background(), run, ndls.StagePartition); err != nil {
			t.Fatal(err)
		}
	}
	write("0 1\n")
	if _, err := ndls.Run(context.Background(), run, ndls.StagePartition); !errors.Is(err, ndls.ErrPlanMismatch) {
		t.Errorf("other bytes: %v", err)
	}
	run.Dataset = ""
	d, err := ndls.Run(context.Background(), run, ndls.StageDegrees)
	if err != nil {
		t.Fatalf("without the pipe: %v", err)
	}
	g, err := d.Graph(context.Background())
	if err != nil || g.Nodes != 4 || g.Edges != 3 {
		t.Errorf("%+v, %v", g, err)
	}
	if left, err := os.ReadDir(scratch); err != nil || len(left) > 0 {
		t.Errorf("%v is left, %v", left, err)
	}
}
