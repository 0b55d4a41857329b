package prepare

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"ndls/dataset/graph"
	"ndls/internal/mem"
)

var nan = float32(math.NaN())

// memory has rows of numbers and categories.
type memory struct {
	numbers    [][]float32
	categories [][]string
	at         int
}

func (m *memory) Next() (graph.FeatureRow, error) {
	if m.at == len(m.numbers) {
		return graph.FeatureRow{}, io.EOF
	}
	f := graph.FeatureRow{ID: uint32(m.at), Dense: m.numbers[m.at]}
	if m.categories != nil {
		for _, value := range m.categories[m.at] {
			f.Categories = append(f.Categories, []byte(value))
		}
	}
	m.at++
	return f, nil
}

func (m *memory) Close() error     { return nil }
func (m *memory) Position() string { return fmt.Sprintf("nodes.csv line %d", m.at) }

// rows visits the rows on some goroutines, which share them by order of place.
func (m *memory) rows(order []int, threads int) Rows {
	return func(_ context.Context, visitor func() Visit) error {
		var all sync.WaitGroup
		failures := make([]error, threads)
		for thread := range threads {
			all.Go(func() {
				visit := visitor()
				for i := thread; i < len(order); i += threads {
					one := memory{numbers: m.numbers, categories: m.categories, at: order[i]}
					f, _ := one.Next()
					if err := visit(f, one.Position); err != nil {
						failures[thread] = err
					}
				}
			})
		}
		all.Wait()
		return errors.Join(failures...)
	}
}

func (m *memory) fit(t *testing.T, o Options, threads int, bytes int64, categories ...string) (*Columns, error) {
	t.Helper()
	budget, err := mem.NewBudget(256 << 20)
	if err == nil {
		err = budget.Reserve(budget.Free()-bytes, "others")
	}
	if err != nil {
		t.Fatal(err)
	}
	defer budget.Close()
	info := graph.Info{Name: "nodes", NumFeatures: len(m.numbers[0]), Categories: categories}
	return Fit(t.Context(), budget, info, o, m.rows(rand.New(rand.NewPCG(uint64(threads), 1)).Perm(len(m.numbers)), threads))
}

// all reads the features of all rows.
func (m *memory) all(t *testing.T, c *Columns) (all [][]float32) {
	t.Helper()
	for r := c.Read(&memory{numbers: m.numbers, categories: m.categories}); ; {
		f, err := r.Next()
		if err == io.EOF {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, slices.Clone(f.Dense))
	}
}

// TestColumns compares features with values that Python's math, and NormalDist.inv_cdf of its statistics, gave for the same numbers.
func TestColumns(t *testing.T) {
	table := &memory{categories: [][]string{{"b"}, {"a"}, {""}, {"b"}, {"10"}, {"9"}, {"a"}, {"a"}}}
	for _, x := range []float32{3, nan, -1, 3, 10, 0.5, nan, 3} {
		table.numbers = append(table.numbers, []float32{x})
	}
	for transform, want := range map[string][]float64{
		"":       {3, 18.5 / 6, -1, 3, 10, 0.5, 18.5 / 6, 3},
		Log:      {1.386294, 1.044849, -0.693147, 1.386294, 2.397895, 0.405465, 1.044849, 1.386294},
		Quantile: {0.253347, -0.013597, -5.199338, 0.253347, 5.199338, -0.841621, -0.013597, 0.253347},
	} {
		c, err := table.fit(t, Options{Transform: transform, Fill: true}, 3, 16<<20, "kind")
		if err != nil {
			t.Fatal(err)
		}
		text, err := json.Marshal(c)
		if err != nil {
			t.Fatal(err)
		}
		again := &Columns{}
		if err := json.Unmarshal(text, again); err != nil {
			t.Fatal(err)
		}
		// Values of the category are sorted as text, since some are no numbers: 10, 9, a, b.
		kinds := []int{3, 2, -1, 3, 0, 1, 2, 2}
		for i, row := range table.all(t, again.Index()) {
			coded := make([]float32, 6)
			coded[0] = row[0]
			if kinds[i] >= 0 {
				coded[1+kinds[i]] = 1
			}
			if i == 1 || i == 6 {
				coded[5] = 1
			}
			if math.Abs(float64(row[0])-want[i]) > 1e-6 || !slices.Equal(row, coded) {
				t.Errorf("%s row %d: %v, not %v with %g", transform, i, row, coded, want[i])
			}
		}
		later := &memory{numbers: [][]float32{{5}, {-7}, {70}, {nan}}, categories: [][]string{{"a"}, {"c"}, {"b"}, {"9"}}}
		got := later.all(t, again)
		if transform == Quantile && (math.Abs(float64(got[0][0])-1.067571) > 1e-6 || got[1][0] != -got[2][0] || got[3][0] != c.Means[0]) {
			t.Errorf("new nodes have %v", got)
		}
		if !slices.Equal(got[1][1:], make([]float32, 5)) {
			t.Errorf("a value that no node has is coded as %v", got[1])
		}
	}
}

// TestSameColumns fits rows in other orders, on other numbers of goroutines and in little memory.
func TestSameColumns(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	table := &memory{}
	for range 5000 {
		row := []float32{float32(r.NormFloat64() * 1e30), float32(r.IntN(30)), float32(r.NormFloat64()), float32(math.Exp(20 * r.NormFloat64())), 0}
		row[r.IntN(4)] = nan
		table.numbers = append(table.numbers, row)
		table.categories = append(table.categories, []string{fmt.Sprint(r.IntN(20)), fmt.Sprint(r.IntN(1000))})
	}
	for _, transform := range []string{"", Log, Quantile} {
		o := Options{Transform: transform, Fill: true}
		want, err := table.fit(t, o, 1, 64<<20, "few", "many")
		if err != nil {
			t.Fatal(err)
		}
		for _, threads := range []int{2, 7} {
			got, err := table.fit(t, o, threads, 4<<20, "few", "many")
			if err != nil || !reflect.DeepEqual(got, want) {
				t.Errorf("%s on %d goroutines: other columns, %v", transform, threads, err)
			}
		}
		if len(want.Missing) != 4 || len(want.Categories[0].Values) != 20 || want.Categories[1].Buckets != Buckets {
			t.Errorf("%s: missing %v, categories %+v", transform, want.Missing, want.Categories)
		}
		if first := want.Categories[0].Values; first[1] != "1" || first[10] != "10" {
			t.Errorf("whole numbers are in order %v", first)
		}
		if transform != Quantile {
			continue
		}
		// Ranks are within their bound.
		var column []float32
		for _, row := range table.numbers {
			if row[0] == row[0] {
				column = append(column, row[0])
			}
		}
		slices.Sort(column)
		for i, x := range column {
			if exact := float64(i) / float64(len(column)-1); math.Abs(want.Ranks[0].share(x)-exact) > 1.0/(MostPoints-1) {
				t.Fatalf("share %g of rank %d of %d", want.Ranks[0].share(x), i, len(column))
			}
		}
	}
}

// TestSum adds numbers whose sum in float64 depends on their order.
func TestSum(t *testing.T) {
	var a, b sum
	for _, x := range []float32{math.MaxFloat32, 1, -math.MaxFloat32, 0x1p-149} {
		a.add(x)
	}
	for _, x := range []float32{1.5, -0.25} {
		b.add(x)
	}
	if got := b.mean(); got != 0.625 {
		t.Errorf("mean %g", got)
	}
	if got := a.mean(); got != 0.25 {
		t.Errorf("mean %g", got)
	}
	a.join(&b)
	if got := a.mean(); got != 0.375 {
		t.Errorf("mean %g of both", got)
	}
}

// TestNormal compares with Python's statistics.NormalDist().inv_cdf.
func TestNormal(t *testing.T) {
	for share, want := range map[float64]float64{
		0.5:       0.0,
		0.25:      -0.6744897501960817,
		0.9:       1.2815515655446008,
		0.001:     -3.090232306167813,
		1e-07:     -5.199337582192817,
		0.9999999: 5.199337582290662,
		0.42:      -0.2018934791418509,
		0.07:      -1.4757910281791702,
	} {
		if got := normal(share); math.Abs(got-want) > 1e-12 {
			t.Errorf("Φ⁻¹(%g) = %.17g, not %.17g", share, got, want)
		}
	}
}

// TestRefusals names the row, the column and the way out.
func TestRefusals(t *testing.T) {
	table := &memory{numbers: [][]float32{{1}}, categories: [][]string{{strings.Repeat("x", 5000)}}}
	if _, err := table.fit(t, Options{}, 1, 1<<20, "kind"); err == nil || !strings.Contains(err.Error(), `nodes.csv line 1: column "kind" has 5000 bytes`) {
		t.Error(err)
	}
	wide := &memory{numbers: [][]float32{make([]float32, MostColumns+1)}}
	if _, err := wide.fit(t, Options{Fill: true}, 1, 1<<20); err == nil || !strings.Contains(err.Error(), "take at most 4096") {
		t.Error(err)
	}
	c, err := (&memory{numbers: [][]float32{{1}}}).fit(t, Options{Transform: Log}, 1, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Check(graph.Info{Name: "new.csv", NumFeatures: 2}); err == nil || !strings.Contains(err.Error(), "name the same columns") {
		t.Error(err)
	}
}
