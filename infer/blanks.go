package infer

// blank is a missing number of a new node: its column, and what neighbours have of it, by the weights of edges.
type blank struct {
	column      int32
	sum, weight float64
}

// findBlanks lists the missing numbers.
func (b *batch) findBlanks() {
	if fill := b.e.fill; fill == nil || !fill.Neighbours {
		return
	}
	for i := range b.nodes {
		b.starts = append(b.starts, len(b.blanks))
		for c, x := range b.row(i, 0)[:b.e.fill.Numbers] {
			if x != x {
				b.blanks = append(b.blanks, blank{column: int32(c)})
			}
		}
	}
	b.starts = append(b.starts, len(b.blanks))
}

// addKnown adds the features of a neighbour, of the run or new, to the missing numbers of the i-th node.
func (b *batch) addKnown(i int, weight float32, row []float32, old bool) {
	if b.starts == nil {
		return
	}
	of := b.blanks[b.starts[i]:b.starts[i+1]]
	for k := range of {
		if c := int(of[k].column); old && b.e.fill.Known(row, c) || !old && row[c] == row[c] {
			of[k].sum += float64(float64(weight) * float64(row[c]))
			of[k].weight += float64(weight)
		}
	}
}

// fillBlanks adds the features of new neighbours, and then fills missing numbers.
func (b *batch) fillBlanks() {
	if b.starts == nil {
		return
	}
	for i, v := range b.nodes {
		fresh, _ := b.e.list(v)
		for k, u := range fresh.node {
			b.addKnown(i, fresh.weight[k], b.row(int(b.at[u]), 0), false)
		}
	}
	for i := range b.nodes {
		for _, x := range b.blanks[b.starts[i]:b.starts[i+1]] {
			value := b.e.fill.Means[x.column]
			if x.weight > 0 {
				value = float32(x.sum / x.weight)
			}
			b.row(i, 0)[x.column] = value
		}
	}
}
