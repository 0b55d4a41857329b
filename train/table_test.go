package train

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"

	"go.uber.org/goleak"

	"ndls/internal/mem"
	"ndls/internal/rng"
	"ndls/shards"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// testBudget hands out limit bytes, and checks in the end that all of them came
// back.
func testBudget(t testing.TB, limit int64) *mem.Budget {
	t.Helper()
	total := max(mem.Total(limit), mem.MinBudget)
	b, err := mem.NewBudget(total)
	if err != nil {
		t.Fatal(err)
	}
	if err := b.Reserve(b.Limit()-limit, "the rest"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if b.Free() != limit {
			t.Errorf("%d bytes of the budget did not come back", limit-b.Free())
		}
	})
	return b
}

var errBroken = errors.New("broken chunk")

// table is a Source that computes its rows.
type table struct {
	width  int
	chunks []int64 // rows of each
	value  func(row int64, column int) float32
	broken func(chunk int) bool
}

func (s *table) NumRows() int64 {
	first, rows := s.Chunk(len(s.chunks) - 1)
	return first + rows
}
func (s *table) Width() int     { return s.width }
func (s *table) NumChunks() int { return len(s.chunks) }

func (s *table) Chunk(i int) (first, rows int64) {
	for _, n := range s.chunks[:i] {
		first += n
	}
	return first, s.chunks[i]
}

func (s *table) ReadChunk(i int, dst *shards.RowBatch) error {
	if s.broken != nil && s.broken(i) {
		return fmt.Errorf("chunk %d: %w", i, errBroken)
	}
	first, rows := s.Chunk(i)
	dst.First, dst.ID, dst.Label, dst.Values = first, dst.ID[:0], dst.Label[:0], dst.Values[:0]
	for row := first; row < first+rows; row++ {
		dst.ID = append(dst.ID, 1000+row)
		for j := range s.width {
			dst.Values = append(dst.Values, s.value(row, j))
		}
	}
	return nil
}

func (s *table) ReadRows(i int, at, rows int64, space []float32) ([]float32, error) {
	if s.broken != nil && s.broken(i) {
		return nil, fmt.Errorf("chunk %d: %w", i, errBroken)
	}
	first, _ := s.Chunk(i)
	values := space[shards.RowSlack:][:rows*int64(s.width)]
	for k := range values {
		values[k] = s.value(first+at+int64(k/s.width), k%s.width)
	}
	return values, nil
}

// evenly cuts n rows into chunks of size rows.
func evenly(n, size int64) []int64 {
	var chunks []int64
	for ; n > 0; n -= size {
		chunks = append(chunks, min(n, size))
	}
	return chunks
}

// numbers returns n values in [-1, 1), a quarter of them zero.
func numbers(seed uint64, n int) []float32 {
	x := make([]float32, n)
	for i := range x {
		if h := rng.Hash(seed, uint64(i)); h%4 != 0 {
			x[i] = float32(2*rng.Float64(h) - 1)
		}
	}
	return x
}

func sameBits(a, b []float32) bool {
	return slices.EqualFunc(a, b, func(x, y float32) bool {
		return math.Float32bits(x) == math.Float32bits(y) || x != x && y != y
	})
}
