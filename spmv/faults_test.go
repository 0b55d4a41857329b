package spmv

import (
	"context"
	"errors"
	"slices"
	"syscall"
	"testing"

	"ndls/group"
	"ndls/internal/direct"
	"ndls/internal/mem"
	"ndls/internal/testgraph"
	"ndls/internal/vfs"
	"ndls/internal/vfs/vfstest"
)

// TestEveryScratchOperation fails each operation on the scratch files of a block once,
// from its making to the last of two hops: the error comes back to the caller, with the
// memory, and no wrong rows do.
func TestEveryScratchOperation(t *testing.T) {
	const disk, columns = "/disks/spmv", 16
	g := testgraph.Random(3000, 9000, 2)
	k := available()[0]
	x := rows(len(g.Adj), columns, 5)
	for _, l := range layouts(Float32)[1:4] {
		l.Columns = columns
		try := func(plan vfstest.Plan) (faults *vfstest.Faults, got []float32, err error) {
			faults = vfstest.NewFaults(vfstest.NewMem(disk), plan)
			defer vfs.Mount(disk, faults)()
			budget, err := mem.NewBudget(1 << 30)
			if err != nil {
				t.Fatal(err)
			}
			got, err = twoHops(budget, g, k, x, l, disk)
			if budget.Free() != budget.Limit() {
				t.Errorf("%s, %s: memory is not given back", l.Residency, faults.Felt())
			}
			return faults, got, err
		}
		clean, want, err := try(vfstest.Plan{})
		if err != nil || clean.Kinds()[vfstest.Write] < 2 || clean.Kinds()[vfstest.Read] < 2 {
			t.Fatalf("%s: %v, %v", l.Residency, clean.Kinds(), err)
		}
		for at := 1; at <= clean.Ops(); at++ {
			faults, got, err := try(vfstest.Plan{At: at, Errno: syscall.ENOSPC})
			if err == nil && !slices.Equal(got, want) || err != nil && !errors.Is(err, vfs.ErrNoSpace) {
				t.Errorf("%s, %s: %v", l.Residency, faults.Felt(), err)
			}
		}
	}
}

// twoHops makes a block, keeps its rows and brings them back, and runs two passes.
func twoHops(budget *mem.Budget, g testgraph.Graph, k *Kernel, x Rows, l Layout, dir string) (got []float32, err error) {
	b, err := NewBlock(budget, k, group.Solo(x.Len()), l, 2, dir)
	if err != nil {
		return nil, err
	}
	defer b.Free()
	if err := b.Fill(func(put func([]float32) error) error { return put(x.S) }); err != nil {
		return nil, err
	}
	f, err := direct.NewScratch(dir)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if err := b.Save(f, 0, 1); err != nil {
		return nil, err
	}
	if err := b.Load(f, 0, 1); err != nil {
		return nil, err
	}
	p := &Pass{Source: g.Source(), Degree: g.Degree(), Kernel: k}
	for range 2 {
		if _, err := p.Run(context.Background(), b, nil, nil); err != nil {
			return nil, err
		}
	}
	err = b.Visit(func(_ int64, rows []float32) error {
		got = append(got, rows...)
		return nil
	})
	return got, err
}
