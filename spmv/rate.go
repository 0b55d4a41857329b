package spmv

import (
	"fmt"
	"sync"
	"time"

	"ndls/internal/direct"
	"ndls/internal/mem"
	"ndls/internal/packed"
)

const (
	// ratedRows is how many rows the edges of a measurement come from: more than caches hold.
	ratedRows = 1 << 18
	// ratedEdges is how many edges a thread adds at a time.
	ratedEdges = 1 << 18
)

// EdgeRate measures how many edges threads together add to rows of one panel in a second, for so
// long: what a pass does most. It takes 20 MiB of the budget, and 3 MiB more for each thread.
func EdgeRate(b *mem.Budget, k *Kernel, threads int, lasting time.Duration) (float64, error) {
	rows, err := mem.Alloc[float32](b, ratedRows*packed.PanelColumns, "measured rows")
	if err != nil {
		return 0, err
	}
	defer rows.Free()
	sums, err := mem.Alloc[float32](b, int64(threads)*packed.StripRows*packed.PanelColumns, "measured sums")
	if err != nil {
		return 0, err
	}
	defer sums.Free()
	var frames []packed.Frame
	var bytes [][]byte
	encoder := packed.NewEncoder(func(_ packed.Frame, frame []byte) error {
		copied := direct.AlignedBytes(len(frame))
		copy(copied, frame)
		bytes = append(bytes, copied)
		return nil
	})
	for i := range uint64(ratedEdges) {
		if err := encoder.Add(uint32(i*ratedRows/ratedEdges), uint32(i*2654435761>>9%packed.StripRows)); err != nil {
			return 0, fmt.Errorf("measuring: %w", err)
		}
	}
	if err := encoder.Flush(); err != nil {
		return 0, fmt.Errorf("measuring: %w", err)
	}
	for _, raw := range bytes {
		f, _, err := packed.Decode(raw)
		if err != nil {
			return 0, fmt.Errorf("measuring: %w", err)
		}
		frames = append(frames, f)
	}
	source := Rows{Stride: packed.PanelColumns, S: rows.S}
	edges := make([]int64, threads)
	begun := time.Now()
	var all sync.WaitGroup
	for t := range threads {
		all.Go(func() {
			size := packed.StripRows * packed.PanelColumns
			var buf Decoded
			to := Addition{Acc: sums.S[t*size : (t+1)*size], Cols: packed.PanelColumns, Rows: source}
			for edges[t] == 0 || time.Since(begun) < lasting {
				for _, f := range frames {
					k.Add(to, f, &buf)
					edges[t] += int64(f.Edges)
				}
			}
		})
	}
	all.Wait()
	total := int64(0)
	for _, n := range edges {
		total += n
	}
	return float64(total) / time.Since(begun).Seconds(), nil
}
