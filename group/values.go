package group

import "context"

// Totals replaces each value by the sum of those of all workers, added in the order of the
// workers.
func Totals(ctx context.Context, g Group, values []float64) error {
	return combine(ctx, g, values, func(a, b float64) float64 { return a + b })
}

// Largest replaces each value by the largest of those of all workers.
func Largest(ctx context.Context, g Group, values []float64) error {
	return combine(ctx, g, values, func(a, b float64) float64 { return max(a, b) })
}

func combine(ctx context.Context, g Group, values []float64, both func(a, b float64) float64) error {
	all, err := g.AllGather(ctx, values)
	if err != nil {
		return err
	}
	copy(values, all[0])
	for _, theirs := range all[1:] {
		for i, x := range theirs {
			values[i] = both(values[i], x)
		}
	}
	return nil
}

// unionWords is the number of words of bits that workers exchange at a time.
const unionWords = 1 << 16

// Union sets each bit that a worker has set, with all workers.
func Union(ctx context.Context, g Group, bits []uint32) error {
	if g.Size() == 1 {
		return nil
	}
	values := make([]float64, min(len(bits), unionWords))
	for len(bits) > 0 {
		part := bits[:min(len(bits), unionWords)]
		for i, word := range part {
			values[i] = float64(word)
		}
		all, err := g.AllGather(ctx, values[:len(part)])
		if err != nil {
			return err
		}
		for _, theirs := range all {
			for i, word := range theirs {
				part[i] |= uint32(word)
			}
		}
		bits = bits[len(part):]
	}
	return nil
}
