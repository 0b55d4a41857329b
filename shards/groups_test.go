package shards

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"ndls/catalog"
	"ndls/internal/inputid"
	"ndls/internal/mem"
	"ndls/internal/rng"
	"ndls/internal/seal"
	"ndls/internal/storage/storagetest"
)

// budgetOf is a budget of so many bytes.
func budgetOf(t testing.TB, n int64) *mem.Budget {
	t.Helper()
	b, err := mem.NewBudget(mem.Total(max(n, mem.Usable(mem.MinBudget))))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Close)
	part, err := b.Part(n, "test")
	if err != nil {
		t.Fatal(err)
	}
	return part
}

// tableOfGroups is a node table of so many whole row groups and 5 rows.
func tableOfGroups(t testing.TB, ids IDs, groups int64, fill func(first int64, b NodeBatch) error) []byte {
	t.Helper()
	var out bytes.Buffer
	if err := WriteNodes(&out, 0, groups*ids.GroupRows()+5, ids, 0, 2, fill); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// committed is a catalogue with a node table.
func committed(t testing.TB, table []byte) *catalog.Catalog {
	t.Helper()
	c, err := catalog.Open(t.Context(), storagetest.NewMem())
	if err != nil {
		t.Fatal(err)
	}
	f, err := c.Create(t.Context(), catalog.Describe(catalog.KindNodes, "graph/nodes.parquet"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err = f.Write(table); err == nil {
		err = c.Commit(t.Context(), f)
	}
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestReaders reads a table on some threads with some memory: batches come in order, one at a time, and the memory is
// given back.
func TestReaders(t *testing.T) {
	table := tableOfGroups(t, IDs{}, 2, fillNodes)
	c := committed(t, table)
	var want NodeBatch
	if err := ReadNodes(storagetest.NewBytesReader(table), "nodes", Readers{}, func(_ int64, b NodeBatch) error {
		appendNodes(&want, b)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	for _, threads := range []int{1, 2, 20} {
		for _, free := range []int64{0, 1 << 20, 100 << 20, 1 << 30} {
			t.Run(fmt.Sprintf("%d threads, %d MiB", threads, free>>20), func(t *testing.T) {
				budget := budgetOf(t, free)
				var got NodeBatch
				var visiting atomic.Int32
				if err := VisitNodes(t.Context(), c, AllNodeColumns, Readers{Threads: threads, Budget: budget}, func(first int64, b NodeBatch) error {
					if visiting.Add(1) > 1 {
						t.Error("two batches are visited at the same time")
					}
					defer visiting.Add(-1)
					if first != int64(len(got.ID)) || len(b.ID) > batchRows {
						t.Fatalf("%d rows from %d after %d", len(b.ID), first, len(got.ID))
					}
					appendNodes(&got, b)
					return nil
				}); err != nil {
					t.Fatal(err)
				}
				if !reflect.DeepEqual(got, want) {
					t.Error("other rows than on one thread")
				}
				if budget.Free() != free || budget.Peak() > free/readersShare {
					t.Errorf("%d of %d bytes are free, at most %d were taken", budget.Free(), free, budget.Peak())
				}
				if several := threads > 1 && free >= 1<<30; several != (budget.Peak() > 0) && free != 100<<20 {
					t.Errorf("%d bytes were taken", budget.Peak())
				}
			})
		}
	}
}

// TestReadersFail: the first row group that cannot be read ends it, and all rows before were visited, whatever the threads.
func TestReadersFail(t *testing.T) {
	ids := IDs{Type: inputid.String, Longest: 1000} // few rows in a row group
	group := ids.GroupRows()
	table := tableOfGroups(t, ids, 4, func(first int64, b NodeBatch) error {
		for i := range b.Key {
			b.Key[i] = fmt.Appendf(nil, "%08d", first+int64(i))
		}
		return fillNodes(first, b)
	})
	p, err := openSealed(storagetest.NewBytesReader(table), "nodes")
	if err != nil {
		t.Fatal(err)
	}
	mine := errors.New("mine")
	for _, threads := range []int{1, 2, 5} {
		for bad := range p.marks {
			by := Readers{Threads: threads, Budget: budgetOf(t, 1<<30)}
			damaged := bytes.Clone(table)
			for g := bad; g < len(p.marks); g += 2 {
				damaged[p.groupAt(g)+100] ^= 1
			}
			rows := int64(0)
			err := ReadNodes(storagetest.NewBytesReader(damaged), "nodes", by, func(_ int64, b NodeBatch) error {
				rows += int64(len(b.ID))
				return nil
			})
			if want := fmt.Sprintf("row group %d is damaged", bad); !errors.Is(err, seal.ErrCorrupt) || !strings.Contains(err.Error(), want) {
				t.Errorf("%d threads: %v, want that %s", threads, err, want)
			}
			if rows != int64(bad)*group {
				t.Errorf("%d threads: %d rows are visited before row group %d", threads, rows, bad)
			}
			rows = 0
			err = ReadNodes(storagetest.NewBytesReader(table), "nodes", by, func(first int64, b NodeBatch) error {
				if rows++; first == int64(bad)*group {
					return mine
				}
				return nil
			})
			if !errors.Is(err, mine) || rows != 1+int64(bad) {
				t.Errorf("%d threads: %v after %d batches, want mine at row group %d", threads, err, rows, bad)
			}
			if free := by.Budget.Free(); free != 1<<30 {
				t.Errorf("%d threads: %d bytes are free", threads, free)
			}
		}
	}
}

// processorTime is the time that the process has computed.
func processorTime(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// fillPapers gives nodes what those of a large graph have: descending degrees, one component, and few labels.
func fillPapers(first int64, b NodeBatch) error {
	for i := range b.ID {
		n := first + int64(i)
		b.ID[i], b.Degree[i], b.Component[i] = int64(rng.Hash(1, uint64(n))%111e6), uint32(1e8/(n+1000)), 0
		b.Label[i], b.Split[i] = -1, 0
		if rng.Hash(2, uint64(n))%70 == 0 {
			b.Label[i], b.Split[i] = int32(n%172), uint8(1+n%3)
		}
	}
	return nil
}

// BenchmarkVisitNodes reads a node table of 4 M rows of a catalogue: rows a second, and the processor time of a row.
func BenchmarkVisitNodes(b *testing.B) {
	c := committed(b, tableOfGroups(b, IDs{}, 16, fillPapers))
	for _, columns := range []struct {
		name string
		want NodeColumns
	}{{"labels", NodeID | NodeLabel | NodeSplit}, {"degrees", NodeDegree | NodeComponent}} {
		for _, threads := range []int{1, 2, 4, MostReaders} {
			b.Run(fmt.Sprintf("%s/threads=%d", columns.name, threads), func(b *testing.B) {
				by := Readers{Threads: threads, Budget: budgetOf(b, 1<<30)}
				used := processorTime(b)
				for b.Loop() {
					if err := VisitNodes(b.Context(), c, columns.want, by, func(int64, NodeBatch) error { return nil }); err != nil {
						b.Fatal(err)
					}
				}
				rows := float64(16*tableGroupRows) * float64(b.N)
				b.ReportMetric(rows/b.Elapsed().Seconds()/1e6, "Mrows/s")
				b.ReportMetric(float64(processorTime(b)-used)/rows, "cpu-ns/row")
			})
		}
	}
}
