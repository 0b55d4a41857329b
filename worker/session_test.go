package worker

import (
	"context"
	"errors"
	"testing"

	"ndls/catalog"
	"ndls/internal/control"
	"ndls/internal/mem"
	"ndls/internal/storage"
	"ndls/internal/storage/storagetest"
	"ndls/stage/stagetest"
)

// boundStore is a store whose files are read under the context in which they were opened, as those
// of an object store are.
type boundStore struct{ storage.Store }

func (s boundStore) Open(ctx context.Context, name string) (storage.Reader, error) {
	r, err := s.Store.Open(ctx, name)
	return boundReader{r, ctx}, err
}

type boundReader struct {
	storage.Reader
	ctx context.Context
}

func (r boundReader) ReadAt(p []byte, off int64) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	return r.Reader.ReadAt(p, off)
}

// TestTasksReadUnderTheirOwnContext has a worker smooth one panel and then another one. Edges do not
// stay in memory, and the graph stays open; the context of the first task has ended.
func TestTasksReadUnderTheirOwnContext(t *testing.T) {
	plan, m := stagetest.SmallPlan(), stagetest.On(t, "synthetic:nodes=30000,edges=3000000,features=32,classes=4,seed=1")
	plan.Partition.Dataset, plan.LSI.Kmax = m.Dataset, 2
	store := storagetest.NewMem()
	stagetest.Run(t, store, plan, m, control.Partition, control.LSI)

	m.Memory = mem.MinBudget
	counting := storage.NewCounting(boundStore{store})
	cat, err := catalog.Open(t.Context(), counting)
	if err != nil {
		t.Fatal(err)
	}
	w := New(counting, cat)
	defer w.Close()
	for panel := range 2 {
		task := m.Task(control.Smooth, plan)
		task.Part, task.First, task.Last = control.Columns, panel, panel+1
		ctx, cancel := context.WithCancel(t.Context())
		read := counting.BytesRead()
		_, err := w.Execute(ctx, task)
		cancel()
		if err != nil {
			t.Fatalf("panel %d: %v", panel, err)
		}
		if edges := counting.BytesRead() - read; edges < 10<<20 {
			t.Errorf("panel %d: %d bytes were read, fewer than edges take", panel, edges)
		}
	}
	task := m.Task(control.Smooth, plan)
	task.Part, task.Last = control.Columns, 1
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := w.Execute(ctx, task); err != nil && !errors.Is(err, context.Canceled) {
		t.Errorf("a task that has ended before: %v", err)
	}
}
