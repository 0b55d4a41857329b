package stage

import (
	"fmt"
	"slices"
	"testing"

	"ndls/hops"
	"ndls/internal/packed"
)

// chunked are rows in chunks of these sizes. The value of a column is its row's number and its own.
type chunked struct {
	width int
	sizes []int64
	reads int
}

func (c *chunked) Width() int     { return c.width }
func (c *chunked) NumChunks() int { return len(c.sizes) }

func (c *chunked) Chunk(i int) (first, rows int64) {
	for _, n := range c.sizes[:i] {
		first += n
	}
	return first, c.sizes[i]
}

func (c *chunked) ReadRows(i int, at, rows int64, space []float32) ([]float32, error) {
	first, n := c.Chunk(i)
	if at < 0 || rows < 1 || at+rows > n || rows*int64(c.width) > int64(len(space)) {
		return nil, fmt.Errorf("rows %d to %d of %d, %d values of space", at, at+rows, n, len(space))
	}
	c.reads++
	for row := range rows {
		for k := range c.width {
			space[row*int64(c.width)+int64(k)] = float32((first+at+row)*1000 + int64(k))
		}
	}
	return space[:rows*int64(c.width)], nil
}

// TestSampledRows: every step-th row is read, each alone where they lie far apart, whatever the
// chunks.
func TestSampledRows(t *testing.T) {
	for _, c := range []struct {
		width int
		step  int64
		sizes []int64
		alone bool
	}{
		{3, 1, []int64{10, 1, 70000}, false},
		{3, 7, []int64{10, 1, 3, 70000, 5}, false},
		{128, 100, []int64{500, 99, 1, 4096}, false},
		{128, 512, []int64{511, 1, 3000, 1, 511, 2}, true},
		{40, 5000, []int64{20000, 3, 9998}, true},
	} {
		t.Run(fmt.Sprintf("width=%d,step=%d", c.width, c.step), func(t *testing.T) {
			rows := &chunked{width: c.width, sizes: c.sizes}
			columns := packed.Panels(c.width) * packed.PanelColumns
			got, err := panelRows(hops.Rows(func(put func(rows []float32) error) error {
				return sampledRows{rows, c.step}.Rows(t.Context(), 0, columns, put)
			}))
			if err != nil {
				t.Fatal(err)
			}
			var want []float32
			n := int64(0)
			for _, size := range c.sizes {
				n += size
			}
			for row := int64(0); row < n; row += c.step {
				for k := range c.width {
					want = append(want, float32(row*1000+int64(k)))
				}
				want = append(want, make([]float32, columns-c.width)...)
			}
			if !slices.Equal(got, want) {
				t.Fatalf("%d values, want %d, or others", len(got), len(want))
			}
			sampled := int((n + c.step - 1) / c.step)
			if c.alone != (rows.reads == sampled) {
				t.Errorf("%d reads of %d rows", rows.reads, sampled)
			}
		})
	}
}
