package group_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"ndls/group"
)

// gathered is a group whose other workers' values are known.
type gathered struct {
	group.Group
	others [][]float64
}

func (g *gathered) AllGather(_ context.Context, values []float64) ([][]float64, error) {
	return append([][]float64{values}, g.others...), nil
}

func TestSolo(t *testing.T) {
	g := group.Solo(77)
	if first, last, n := g.Range(); g.Size() != 1 || first != 0 || last != 77 || n != 77 {
		t.Errorf("%d workers, of which this one has rows [%d, %d) of %d", g.Size(), first, last, n)
	}
	values := []float64{3, 4}
	all, err := g.AllGather(t.Context(), values)
	if err != nil || len(all) != 1 || !slices.Equal(all[0], values) {
		t.Errorf("an all-gather gave %v, %v", all, err)
	}
	if err := g.OrderedSum(t.Context(), values, func() error { values[1] += 5; return nil }); err != nil || !slices.Equal(values, []float64{0, 5}) {
		t.Errorf("a sum gave %v, %v", values, err)
	}
	failed := errors.New("failed")
	if err := g.OrderedSum(t.Context(), values, func() error { return failed }); !errors.Is(err, failed) {
		t.Errorf("a sum that fails gave %v", err)
	}
	if err := g.Fetch(t.Context(), group.Format{}, 0, 1, nil); err == nil {
		t.Error("rows came from a worker that there is not")
	}
}

func TestLargestAndSmallest(t *testing.T) {
	for _, others := range [][][]float64{nil, {{-3}}, {{9}, {2}}} {
		want := []int{5}
		for _, o := range others {
			want = append(want, int(o[0]))
		}
		if x, err := group.Max(t.Context(), &gathered{others: others}, 5); err != nil || x != slices.Max(want) {
			t.Errorf("the largest of %v is %d, %v", want, x, err)
		}
		negative := [][]float64{}
		for _, o := range others {
			negative = append(negative, []float64{-o[0]})
		}
		if x, err := group.Min(t.Context(), &gathered{others: negative}, 5); err != nil || x != slices.Min(want) {
			t.Errorf("the smallest of %v is %d, %v", want, x, err)
		}
	}
}

// TestSame compares numbers of which the checksums, as float64 values, once decided.
func TestSame(t *testing.T) {
	mine := []int{1 << 40, -1, 7}
	// Values of other workers: the length, twice, of which the second is negative, then
	// the numbers.
	of := func(numbers ...float64) []float64 {
		n := float64(len(numbers))
		return append([]float64{n, -n}, numbers...)
	}
	for name, c := range map[string]struct {
		other []float64
		same  bool
	}{
		"the same":    {of(1<<40, -1, 7), true},
		"another":     {of(1<<40, -1, 8), false},
		"shorter":     {of(1<<40, -1), false},
		"none":        {of(), false},
		"in disorder": {of(-1, 1<<40, 7), false},
	} {
		g := &steps{other: c.other}
		if same, err := group.Same(t.Context(), g, mine); err != nil || same != c.same {
			t.Errorf("%s: %v, %v", name, same, err)
		}
	}
	solo := group.Solo(1)
	for _, c := range []struct {
		numbers []int
		same    bool
	}{{nil, false}, {[]int{0}, true}} {
		if same, err := group.Same(t.Context(), solo, c.numbers); err != nil || same != c.same {
			t.Errorf("%v alone: %v, %v", c.numbers, same, err)
		}
	}
}

// steps is a group of two of which the other worker gives its values one call after
// the other: one, one, then all that are left.
type steps struct {
	group.Group
	other []float64
	call  int
}

func (g *steps) AllGather(_ context.Context, values []float64) ([][]float64, error) {
	theirs := g.other[min(g.call, 2):]
	if g.call < 2 {
		theirs = theirs[:1]
	}
	g.call++
	if len(theirs) != len(values) {
		return nil, fmt.Errorf("%d values where the other worker gives %d", len(values), len(theirs))
	}
	return [][]float64{values, theirs}, nil
}
