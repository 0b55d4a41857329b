package imports

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"

	"ndls/dataset"
	"ndls/internal/inputid"
	"ndls/internal/mem"
	"ndls/shards"
	"ndls/stage"
	"ndls/tiles"
)

// Rows copies rows of nodes into tiles: the soft labels of another model, or the answers of a dataset.
type Rows struct {
	*stage.Env
	From   string // whose rows, for errors
	Source func(ctx context.Context) (dataset.FeatureReader, error)
	Count  int64
	Node   Finder
	Rules  Rules
	// checked says that every row was checked.
	checked bool
}

// Rules says which rows there are.
type Rules struct {
	// Each says that every node has a row. Otherwise the values of a node without a row are NaN.
	Each bool
	// Others says that rows of nodes that are not in the graph are left out.
	Others bool
	// Negative says that values may be less than 0.
	Negative bool
}

// Finder finds the node of a row by the id that its reader returns.
type Finder interface {
	Of(id int64) (node int64, ok bool)
	Free()
}

// Found is the finder for a reader that returns nodes itself, and other numbers for rows of no node.
type Found struct {
	Table *inputid.Table
	Nodes int64
}

func (f Found) Of(id int64) (int64, bool) { return id, id < f.Nodes }

func (f Found) Free() { f.Table.Free() }

// Commit commits panels [first, last).
func (x *Rows) Commit(ctx context.Context, out *tiles.Matrix, first, last int) error {
	for i := range out.Intervals() {
		lo, hi := out.Bounds(i)
		panels, rows := givenBlock(x.Budget.Free()-(x.Count+shards.TileColumns), last-first, hi-lo)
		for p := first; p < last; p += panels {
			if err := x.tiles(ctx, out, i, p, min(p+panels, last), rows); err != nil {
				return err
			}
		}
	}
	return nil
}

// givenBlock returns the number of panels, and of their rows, that half of the free memory holds: all rows of an interval for up to
// [tiles.Together] panels, or one panel of fewer rows.
func givenBlock(free int64, panels int, rows int64) (int, int64) {
	fit := max(free/2, 1) / int64(shards.TileRowBytes(false))
	if fit < rows {
		return 1, max(fit, 1)
	}
	return int(min(fit/max(rows, 1), int64(panels), tiles.Together)), rows
}

// tiles commits panels [first, last) of an interval, up to `rows` rows at a time.
func (x *Rows) tiles(ctx context.Context, out *tiles.Matrix, interval, first, last int, rows int64) error {
	g, err := out.Create(ctx, interval, first, last)
	if err != nil {
		return err
	}
	defer g.Abort()
	lo, hi := out.Bounds(interval)
	width := (last - first) * shards.TileColumns
	block, err := mem.Alloc[float32](x.Budget, min(rows, hi-lo)*int64(width), "soft labels")
	if err != nil {
		return err
	}
	defer block.Free()
	for ; lo < hi; lo += rows {
		values := block.S[:min(rows, hi-lo)*int64(width)]
		if err := x.fill(ctx, lo, values, first*shards.TileColumns, width); err != nil {
			return err
		}
		for p := first; p < last; p++ {
			if err := g.Put(p, values, width, (p-first)*shards.TileColumns); err != nil {
				return err
			}
		}
	}
	return g.Commit(ctx)
}

// fill fills values with the rows of nodes from lo on, width columns each: the classes from first on, then zeros. The first call checks
// every row of the file.
func (x *Rows) fill(ctx context.Context, lo int64, values []float32, first, width int) (err error) {
	clear(values)
	for i := range values {
		if !x.Rules.Each {
			values[i] = float32(math.NaN())
		}
	}
	hi := lo + int64(len(values)/width)
	r, err := x.Source(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	check, err := x.newCheck()
	if err != nil {
		return err
	}
	defer check.free()
	for row := int64(0); ; row++ {
		f, err := r.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			return err
		}
		at, ok := x.Node.Of(int64(f.ID))
		if err := check.row(row, r, f, at, ok); err != nil {
			return err
		}
		if !ok || at < lo || at >= hi {
			continue
		}
		to := values[(at-lo)*int64(width):][:width]
		copy(to, f.Dense[min(first, len(f.Dense)):])
		for i, c := range f.Indices {
			if at := int(c) - first; 0 <= at && at < width {
				to[at] = f.Values[i]
			}
		}
	}
	return check.finish()
}

// givenCheck checks every row of the file once.
type givenCheck struct {
	*Rows
	seen *mem.Array[bool] // nil if the rows were checked before
	read int64            // rows
}

func (x *Rows) newCheck() (*givenCheck, error) {
	c := &givenCheck{Rows: x}
	if x.checked {
		return c, nil
	}
	var err error
	c.seen, err = mem.Alloc[bool](x.Budget, x.Count, "soft labels seen")
	return c, err
}

func (c *givenCheck) free() { c.seen.Free() }

func (c *givenCheck) row(row int64, r dataset.FeatureReader, f dataset.FeatureRow, node int64, known bool) error {
	if c.seen == nil {
		return nil
	}
	bad := func(format string, a ...any) error {
		return fmt.Errorf("%s row %d: %s", c.From, row, fmt.Sprintf(format, a...))
	}
	switch {
	case !known && c.Rules.Others:
		return nil
	case !known:
		return bad("node %s is not in the graph: give every node of the graph one row, and no other", dataset.NodeName(r, f.ID))
	case c.seen.S[node]:
		return bad("node %s has a second row: give every node of the graph one row", dataset.NodeName(r, f.ID))
	}
	c.seen.S[node] = true
	c.read++
	if c.Rules.Negative {
		return nil
	}
	for class, p := range f.Dense {
		if p < 0 {
			return bad("%g for class %d: probabilities are at least 0", p, class)
		}
	}
	for i, p := range f.Values {
		if p < 0 {
			return bad("%g for class %d: probabilities are at least 0", p, f.Indices[i])
		}
	}
	return nil
}

func (c *givenCheck) finish() error {
	if c.seen == nil {
		return nil
	}
	if c.Rules.Each && c.read != c.Count {
		return fmt.Errorf("%s has %d rows for %d nodes: give every node of the graph one row", c.From, c.read, c.Count)
	}
	c.checked = true
	return nil
}
