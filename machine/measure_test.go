package machine

import (
	"context"
	"errors"
	"os"
	"testing"
	"time"

	"ndls/internal/mem"
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
