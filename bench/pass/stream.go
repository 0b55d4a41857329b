package pass

import (
	"context"
	"time"

	"ndls/group"
	"ndls/internal/mem"
	"ndls/internal/packed"
	"ndls/spmv"
)

// StreamRound holds the seconds of each way through the edges.
type StreamRound struct {
	Read     float64 // reading the frames and nothing else
	Resident float64 // a pass with the edges in memory
	Disk     float64 // a pass that reads them
}

// Streams times, in turn, read, a pass over resident and a pass over disk,
// which hold the same edges; rounds times after one round that does not count.
// Rows are random and the edges need not be symmetric.
func Streams(ctx context.Context, k *spmv.Kernel, b *mem.Budget, disk, resident packed.Source, l spmv.Layout, threads, rounds int, read func() error) ([]StreamRound, error) {
	n := disk.NumNodes()
	degree, err := mem.Alloc[uint32](b, n, "degrees")
	if err != nil {
		return nil, err
	}
	defer degree.Free()
	block, err := spmv.NewBlock(b, k, group.Solo(n), l, threads, "")
	if err != nil {
		return nil, err
	}
	defer block.Free()
	for i := range degree.S {
		degree.S[i] = Density - 1 // keeps the rows in range, round after round
	}
	rows := make([]float32, measuredRows*l.Columns)
	for i := range rows {
		rows[i] = float32(i&1023) - 511.5
	}
	err = block.Fill(func(put func([]float32) error) error {
		for at := int64(0); at < n; at += measuredRows {
			if err := put(rows[:min(measuredRows, n-at)*int64(l.Columns)]); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	pass := func(s packed.Source) error {
		_, err := (&spmv.Pass{Source: s, Degree: degree.S, Kernel: k}).Run(ctx, block, nil, unchecked)
		return err
	}
	var result []StreamRound
	for round := -1; round < rounds; round++ {
		var t [3]float64
		for i, run := range []func() error{
			read,
			func() error { return pass(resident) },
			func() error { return pass(disk) },
		} {
			start := time.Now()
			if err := run(); err != nil {
				return nil, err
			}
			t[i] = time.Since(start).Seconds()
		}
		if round >= 0 {
			result = append(result, StreamRound{Read: t[0], Resident: t[1], Disk: t[2]})
		}
	}
	return result, nil
}

// unchecked computes all rows. A pass that is told which rows it computes does not check conservation, which random
// directed edges violate.
func unchecked(_ int64, roles []spmv.Role) (least, most spmv.Role) {
	for i := range roles {
		roles[i] = spmv.Computed
	}
	return spmv.Computed, spmv.Computed
}
