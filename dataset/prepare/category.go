package prepare

import (
	"hash/fnv"
	"maps"
	"slices"

	"ndls/dataset/column"
	"ndls/dataset/graph"
	"ndls/internal/rng"
)

const (
	// MostValues is the largest number of values of a category that have a column each; of more values there are Buckets columns.
	MostValues = 256
	Buckets    = 256
	// mostBytes is the largest length of a value.
	mostBytes = 1 << 12
)

// Category says which columns the values of a category have.
type Category struct {
	Name string `json:"name"`
	// Values lists the values that have columns, in order; Buckets is the number of columns without them.
	Values  []string `json:"values,omitempty"`
	Buckets int      `json:"buckets,omitempty"`

	at map[string]int // of Values; nil until it is needed
}

func (c *Category) width() int { return max(len(c.Values), c.Buckets) }

// of returns the column of a value among those of the category, -1 for none.
func (c *Category) of(value []byte) int {
	switch {
	case len(value) == 0:
		return -1
	case c.Buckets > 0:
		h := fnv.New64a()
		_, _ = h.Write(value)
		return int(rng.Below(rng.Hash(h.Sum64()), uint64(c.Buckets)))
	}
	if at, found := c.at[string(value)]; found {
		return at
	}
	return -1
}

// index prepares of, which several goroutines may call then.
func (c *Category) index() {
	c.at = make(map[string]int, len(c.Values))
	for i, value := range c.Values {
		c.at[value] = i
	}
}

// values collects the values of a category, up to one more than have columns.
type values map[string]bool

func (v values) add(value []byte, where func() string, name string) error {
	switch {
	case len(value) == 0 || len(v) > MostValues || v[string(value)]:
		return nil
	case len(value) > mostBytes:
		return graph.BadData(where(), "column %q has %d bytes: values of categories have at most %d", name, len(value), mostBytes)
	}
	v[string(value)] = true
	return nil
}

// category returns the category of all values.
func (v values) category(name string) Category {
	if len(v) > MostValues {
		return Category{Name: name, Buckets: Buckets}
	}
	all := slices.Collect(maps.Keys(v))
	column.SortClasses(all)
	return Category{Name: name, Values: all}
}
