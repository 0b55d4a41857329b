package features

import (
	"context"

	"ndls/hops"
	"ndls/internal/mem"
	"ndls/internal/packed"
	"ndls/internal/rng"
	"ndls/shards"
	"ndls/smooth"
	"ndls/stage"
)

// Label columns are the labels of training nodes, propagated like features. So that no training node sees its own label, the training nodes
// are divided into parts. Each part has a column for every class: 1 for its nodes of the class, else 0. The columns of all parts make hops.
// When rows are assembled, a training node gets the sum of the columns of the other parts, times parts/(parts−1), and every other node gets
// the sum of all. Each split has columns of its own, which follow those of the split before it. The models of a split read zeros in place
// of the columns of the others ([ofSplit]), because a node that trains in one split may test in another one.

// drawParts identifies the random numbers that divide training nodes.
const drawParts = 0x6c61_6265_6c73

// labelPart returns the part of a training node.
func labelPart(seed uint64, id int64, parts int) int {
	return int(rng.Below(rng.Hash(seed, drawParts, uint64(id)), uint64(parts)))
}

// labelColumns yields the label columns of all splits and parts, one part after the other, beginning at a panel.
type labelColumns struct {
	*stage.Env
	panel int
}

// read reads some of the columns.
func (c labelColumns) read(ctx context.Context, first, columns int, put func(rows []float32) error) error {
	first -= c.panel * packed.PanelColumns
	out := OutputOf(c.Plan, c.Summary)
	buf, err := mem.Alloc[float32](c.Budget, int64(max(hops.BatchValues/columns, 1)*columns), "columns of labels")
	if err != nil {
		return err
	}
	defer buf.Free()
	lo, hi := c.Span(c.Summary.Nodes)
	at := 0 // offset of the next row in buf
	flush := func() error {
		rows := buf.S[:at]
		if at = 0; len(rows) == 0 {
			return nil
		}
		return put(rows)
	}
	// Without a budget for reading ahead, the block of hops keeps its memory.
	beside := shards.Readers{Threads: c.Resources.Threads}
	err = c.Nodes().VisitSplits(ctx, shards.NodeID|shards.NodeLabel, beside,
		func(from int64, b shards.NodeBatch, splits [][]uint8) error {
			for i, label := range b.Label {
				if node := from + int64(i); node < lo || node >= hi {
					continue
				}
				row := buf.S[at : at+columns]
				clear(row)
				for s, split := range splits {
					if !stage.IsTraining(split[i], label) {
						continue
					}
					part := s*out.Parts + labelPart(c.Plan.Seed, b.ID[i], out.Parts)
					if at := part*out.Classes + int(label) - first; at >= 0 && at < columns {
						row[at] = 1
					}
				}
				if at += columns; at == len(buf.S) {
					if err := flush(); err != nil {
						return err
					}
				}
			}
			return nil
		})
	if err != nil {
		return err
	}
	return flush()
}

// partsOfNodes holds the part of each target, in order of node, by split. Nodes in no part of a split have the number of parts.
type partsOfNodes []*mem.Array[uint8]

func (p partsOfNodes) free() {
	for _, x := range p {
		x.Free()
	}
}

// labelParts finds the part of each target in each split.
func (env smoothRun) labelParts(ctx context.Context, targets *smooth.Targets) (parts partsOfNodes, err error) {
	defer func() {
		if err != nil {
			parts.free()
		}
	}()
	for range env.Plan.NumSplits() {
		x, err := mem.Alloc[uint8](env.Budget, targets.Len(), "parts of training nodes")
		if err != nil {
			return parts, err
		}
		parts = append(parts, x)
	}
	n, at := env.Plan.Smooth.LabelColumns, 0
	err = env.Nodes().ReadSplits(ctx, shards.NodeID|shards.NodeLabel, func(first int64, b shards.NodeBatch, splits [][]uint8) {
		for i, label := range b.Label {
			if !targets.Has(first + int64(i)) {
				continue
			}
			for s, split := range splits {
				parts[s].S[at] = uint8(n)
				if stage.IsTraining(split[i], label) {
					parts[s].S[at] = uint8(labelPart(env.Plan.Seed, b.ID[i], n))
				}
			}
			at++
		}
	})
	return parts, err
}

// joined makes rows of features and label columns.
type joined struct {
	// features counts the feature columns; labels is the first label column.
	features, labels int
	classes, parts   int
	of               partsOfNodes // of stored rows
}

// pick makes the values of a stored row.
func (j joined) pick(values []float32, row int64, columns []float32) {
	copy(values[:j.features], columns)
	for s, of := range j.of {
		columns, values := columns[j.labels+s*j.parts*j.classes:], values[j.features+s*j.classes:]
		own, scale := int(of.S[row]), 1.0
		if own < j.parts {
			scale = float64(j.parts) / float64(j.parts-1)
		}
		for c := range j.classes {
			sum := 0.0
			for p := range j.parts {
				if p != own {
					sum += float64(columns[p*j.classes+c])
				}
			}
			values[c] = float32(scale * sum)
		}
	}
}
