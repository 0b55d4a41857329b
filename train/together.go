package train

import (
	"fmt"
	"sort"

	"ndls/shards"
)

// together holds the rows of several sources, one source after the other.
type together struct {
	sources []Source
	rows    []int64 // before each source, and of all
	chunks  []int
}

// Together returns the Source of the rows of several sources, which must have the same width: the
// rows of the first one, then those of the next.
func Together(sources ...Source) (Source, error) {
	t := &together{sources: sources, rows: []int64{0}, chunks: []int{0}}
	for i, s := range sources {
		if s.Width() != sources[0].Width() {
			return nil, fmt.Errorf("rows of %d values and rows of %d values cannot train one model", sources[0].Width(), s.Width())
		}
		t.rows = append(t.rows, t.rows[i]+s.NumRows())
		t.chunks = append(t.chunks, t.chunks[i]+s.NumChunks())
	}
	return t, nil
}

func (t *together) NumRows() int64 { return t.rows[len(t.sources)] }
func (t *together) Width() int     { return t.sources[0].Width() }
func (t *together) NumChunks() int { return t.chunks[len(t.sources)] }

// of finds the source that has chunk i.
func (t *together) of(i int) int {
	return sort.Search(len(t.sources), func(k int) bool { return t.chunks[k+1] > i })
}

// Chunk implements Source.
func (t *together) Chunk(i int) (first, rows int64) {
	k := t.of(i)
	first, rows = t.sources[k].Chunk(i - t.chunks[k])
	return t.rows[k] + first, rows
}

// ReadChunk implements Source.
func (t *together) ReadChunk(i int, dst *shards.RowBatch) error {
	k := t.of(i)
	err := t.sources[k].ReadChunk(i-t.chunks[k], dst)
	dst.First += t.rows[k]
	return err
}

// ReadRows implements Source.
func (t *together) ReadRows(i int, at, rows int64, space []float32) ([]float32, error) {
	k := t.of(i)
	return t.sources[k].ReadRows(i-t.chunks[k], at, rows, space)
}
