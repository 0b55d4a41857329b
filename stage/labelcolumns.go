package stage

import (
	"context"

	"ndls/dataset"
	"ndls/hops"
	"ndls/internal/mem"
	"ndls/internal/packed"
	"ndls/internal/rng"
	"ndls/shards"
	"ndls/smooth"
)

// Label columns are the labels of training nodes, propagated like features. So that no training node sees its own label, the training nodes
// are divided into parts. Each part has a column for every class: 1 for its nodes of the class, else 0. The columns of all parts make hops.
// When rows are assembled, a training node gets the sum of the columns of the other parts, times parts/(parts−1), and every other node gets
// the sum of all.

// drawParts identifies the random numbers that divide training nodes.
const drawParts = 0x6c61_6265_6c73

// labelPart returns the part of a training node.
func labelPart(seed uint64, id int64, parts int) int {
	return int(rng.Below(rng.Hash(seed, drawParts, uint64(id)), uint64(parts)))
}

// labelColumns yields the label columns of all parts, one part after the other, beginning at a panel.
type labelColumns struct {
	*Env
	panel int
}

// Width implements lsi.Columns.
func (c labelColumns) Width() int {
	out := c.output()
	return c.panel*packed.PanelColumns + out.Parts*out.Classes
}

// Rows implements lsi.Columns.
func (c labelColumns) Rows(ctx context.Context, first, columns int, put func(rows []float32) error) error {
	first -= c.panel * packed.PanelColumns
	out := c.output()
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
	err = shards.VisitNodes(ctx, c.Catalog, shards.NodeID|shards.NodeLabel|shards.NodeSplit, beside,
		func(from int64, b shards.NodeBatch) error {
			for i, label := range b.Label {
				if node := from + int64(i); node < lo || node >= hi {
					continue
				}
				row := buf.S[at : at+columns]
				clear(row)
				if isTraining(b.Split[i], label) {
					if at := labelPart(c.Plan.Seed, b.ID[i], out.Parts)*out.Classes + int(label) - first; at >= 0 && at < columns {
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

// isTraining reports whether the label of a node is propagated.
func isTraining(split uint8, label int32) bool {
	return dataset.Split(split) == dataset.Train && label >= 0
}

// labelParts finds the part of each target, in order of node. Nodes in no part get the number of parts.
func (env *Env) labelParts(ctx context.Context, targets *smooth.Targets) (*mem.Array[uint8], error) {
	parts, err := mem.Alloc[uint8](env.Budget, targets.Len(), "parts of training nodes")
	if err != nil {
		return nil, err
	}
	n, at := env.Plan.Smooth.LabelColumns, 0
	err = env.nodeTable().readNodes(ctx, shards.NodeID|shards.NodeLabel|shards.NodeSplit, func(first int64, b shards.NodeBatch) {
		for i, label := range b.Label {
			if !targets.Has(first + int64(i)) {
				continue
			}
			parts.S[at] = uint8(n)
			if isTraining(b.Split[i], label) {
				parts.S[at] = uint8(labelPart(env.Plan.Seed, b.ID[i], n))
			}
			at++
		}
	})
	if err != nil {
		parts.Free()
		return nil, err
	}
	return parts, nil
}

// joined makes rows of features and label columns.
type joined struct {
	// features counts the feature columns; labels is the first label column.
	features, labels int
	classes, parts   int
	part             []uint8 // of each stored row; equals parts for nodes in no part
}

// pick makes the values of a stored row.
func (j joined) pick(values []float32, row int64, columns []float32) {
	copy(values[:j.features], columns)
	own, scale := int(j.part[row]), 1.0
	if own < j.parts {
		scale = float64(j.parts) / float64(j.parts-1)
	}
	for c := range j.classes {
		sum := 0.0
		for p := range j.parts {
			if p != own {
				sum += float64(columns[j.labels+p*j.classes+c])
			}
		}
		values[j.features+c] = float32(scale * sum)
	}
}
