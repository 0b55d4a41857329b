package machine

import (
	"context"
	"errors"
	"os"
	"testing"
	"time"

	"ndls/internal/mem"
	"ndls/internal/packed"
)

func TestMeasure(t *testing.T) {
	b, err := mem.NewBudget(1 << 30)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	dir := t.TempDir()
	begin := time.Now()
	s, err := Measure(context.Background(), b, Options{Folder: dir, Threads: 2, Kernel: "auto"})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%+v in %v", s, time.Since(begin))
	for name, rate := range map[string]float64{"edges": s.Edges, "flops": s.Flops, "values": s.Values, "write": s.Write, "read": s.Read} {
		// Any machine does a million, none a hundred million million.
		if rate < 1e5 || rate > 1e14 {
			t.Errorf("%s: %g a second", name, rate)
		}
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("%d files are left, %v", len(left), err)
	}
	if b.Free() != b.Limit() {
		t.Errorf("%d bytes of the budget are not free", b.Limit()-b.Free())
	}
}

func TestMeasureFails(t *testing.T) {
	b, err := mem.NewBudget(mem.MinBudget)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	if err := b.Reserve(b.Free(), "all"); err != nil {
		t.Fatal(err)
	}
	if _, err := Measure(context.Background(), b, Options{Folder: t.TempDir(), Threads: 1, Kernel: "go"}); !errors.Is(err, mem.ErrBudget) {
		t.Errorf("without memory: %v", err)
	}
	b.Release(b.Limit())
	if _, err := Measure(context.Background(), b, Options{Folder: t.TempDir() + "/none", Threads: 1, Kernel: "go"}); err == nil {
		t.Error("without a folder it was measured")
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := Measure(ctx, b, Options{Folder: t.TempDir(), Threads: 1, Kernel: "go"}); !errors.Is(err, context.Canceled) {
		t.Errorf("canceled: %v", err)
	}
}

// Edges that are measured read most of the rows, so that no cache has them when they are read again.
func TestDraw(t *testing.T) {
	const n = 1 << 18
	words := make([]byte, n*packed.Wide+1)
	frames, err := draw(words, n)
	if err != nil {
		t.Fatal(err)
	}
	read, edges := make([]bool, n), 0
	for _, f := range frames {
		f.Visit(func(src, row uint32) {
			if src >= n || row >= packed.StripRows {
				t.Fatalf("an edge from row %d to row %d of a strip", src, row)
			}
			read[src] = true
			edges++
		})
	}
	rows := 0
	for _, r := range read {
		if r {
			rows++
		}
	}
	if edges != n || rows < n/2 {
		t.Errorf("%d edges read %d of %d rows", edges, rows, n)
	}
}
