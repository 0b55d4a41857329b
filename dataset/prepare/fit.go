package prepare

import (
	"context"
	"slices"
	"sync"

	"ndls/dataset/graph"
	"ndls/internal/mem"
)

// MostColumns is the largest number of columns of numbers that are filled or ranked.
const MostColumns = 1 << 12

// Options says what becomes of numbers.
type Options struct {
	// Transform is Log, Quantile or "".
	Transform string
	// Fill says that numbers may be missing: they are NaN.
	Fill bool
	// Neighbours says that neighbours fill them.
	Neighbours bool
}

// Visit takes a row, which where names.
type Visit = func(f graph.FeatureRow, where func() string) error

// Rows visits the rows of the nodes, on any number of goroutines. Each calls visitor once, and what that returns for one row after the
// other.
type Rows func(ctx context.Context, visitor func() Visit) error

// Fit finds how the columns of a dataset become features.
func Fit(ctx context.Context, b *mem.Budget, info graph.Info, o Options, rows Rows) (*Columns, error) {
	c := &Columns{Numbers: info.NumFeatures, Names: info.Columns, Transform: o.Transform, Plain: info.Plain, Neighbours: o.Neighbours}
	if o.Transform == "" {
		c.Plain = nil
	}
	learns := o.Fill || o.Transform == Quantile
	if !learns && len(info.Categories) == 0 || info.NumFeatures+len(info.Categories) == 0 {
		return c, nil
	}
	if learns && c.Numbers > MostColumns {
		return nil, graph.BadData(info.Name, "has %d columns of numbers: --fill and --normalize %s take at most %d", c.Numbers, Quantile, MostColumns)
	}
	all, err := look(ctx, c, o, info.Categories, rows)
	if err != nil {
		return nil, err
	}
	for i, name := range info.Categories {
		c.Categories = append(c.Categories, all.values[i].category(name))
		c.Categories[i].index()
	}
	if len(info.Categories) > 0 && c.Width() > graph.MaxFeatures {
		return nil, graph.BadData(info.Name, "has %d features with its categories: at most %d are read", c.Width(), graph.MaxFeatures)
	}
	if o.Transform == Quantile {
		counts := make([]int64, c.Numbers)
		for i := range counts {
			if !c.isPlain(i) {
				counts[i] = all.sums[i].n
			}
		}
		if c.Ranks, err = rank(ctx, b, counts, rows); err != nil {
			return nil, err
		}
	}
	if !o.Fill {
		return c, nil
	}
	for i, n := range all.missing {
		if n > 0 {
			c.Missing = append(c.Missing, i)
		}
	}
	if o.Transform == Quantile {
		if all, err = look(ctx, c, Options{Fill: true}, nil, rows); err != nil {
			return nil, err
		}
	}
	c.Means = make([]float32, c.Numbers)
	for i := range c.Means {
		c.Means[i] = all.sums[i].mean()
	}
	return c, nil
}

// tally holds what is known of some rows.
type tally struct {
	sums    []sum   // of transformed numbers, by column
	missing []int64 // by column
	values  []values
}

// look reads the rows once.
func look(ctx context.Context, c *Columns, o Options, categories []string, rows Rows) (*tally, error) {
	var mu sync.Mutex
	var parts []*tally
	newTally := func() *tally {
		t := &tally{sums: make([]sum, c.Numbers), missing: make([]int64, c.Numbers), values: make([]values, len(categories))}
		for i := range t.values {
			t.values[i] = values{}
		}
		mu.Lock()
		defer mu.Unlock()
		parts = append(parts, t)
		return t
	}
	err := rows(ctx, func() Visit {
		t := newTally()
		return func(f graph.FeatureRow, where func() string) error {
			if f.Dense == nil && c.Numbers > 0 {
				return sparse(where())
			}
			for i, x := range f.Dense {
				switch {
				case x != x:
					t.missing[i]++
				case o.Transform == Quantile: // quantiles are not known yet
					t.sums[i].n++
				default:
					t.sums[i].add(c.number(i, x))
				}
			}
			for i, name := range categories {
				if err := t.values[i].add(f.Categories[i], where, name); err != nil {
					return err
				}
			}
			return nil
		}
	})
	if err != nil {
		return nil, err
	}
	all := newTally()
	for _, t := range parts {
		all.join(t)
	}
	return all, nil
}

// join adds what is known of other rows.
func (t *tally) join(o *tally) {
	if t == o {
		return
	}
	for i := range t.sums {
		t.sums[i].join(&o.sums[i])
		t.missing[i] += o.missing[i]
	}
	for i, others := range o.values {
		for value := range others {
			t.values[i][value] = true
		}
	}
}

// Index prepares columns that were read from a file for use.
func (c *Columns) Index() *Columns {
	for i := range c.Categories {
		c.Categories[i].index()
	}
	slices.Sort(c.Plain)
	return c
}
