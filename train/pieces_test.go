package train

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// TestCutStep: pieces follow each other, none is empty, all but the last are whole tiles, and they are as large as they may be.
func TestCutStep(t *testing.T) {
	for _, c := range []struct {
		rows  int64
		count int
	}{{1, 1}, {140, 1}, {192, 1}, {193, 2}, {385, 4}, {4096, 32}, {4097, 32}, {12288, 64}, {12289, 64}, {1 << 40, 64}} {
		p := cutStep(c.rows)
		if p.count != c.count || p.at(0) != 0 || p.at(p.count) != c.rows {
			t.Errorf("%d rows: %d pieces from %d to %d, want %d", c.rows, p.count, p.at(0), p.at(p.count), c.count)
		}
		for i := range p.count {
			n := p.at(i+1) - p.at(i)
			if n < 1 || i < p.count-1 && n%pieceUnit != 0 || n > c.rows/int64(c.count)+pieceUnit {
				t.Errorf("%d rows: piece %d has %d", c.rows, i, n)
			}
		}
	}
}

// TestAdding adds numbers in place of gradients, microbatch by microbatch, by any number of workers: the sum equals that of the tree as it is
// defined, and no worker has more sums at a time than are planned.
func TestAdding(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		p := cutStep(rapid.Int64Range(1, 20_000).Draw(r, "rows"))
		value := func(row int64) float32 { return float32(math.Sin(float64(row))) }
		workers := rapid.IntRange(1, 70).Draw(r, "workers")
		microbatch := rapid.IntRange(1, 900).Draw(r, "microbatch")
		window := rapid.IntRange(1, 5000).Draw(r, "window")
		var nodes []node
		var values []float32
		for w := range workers {
			lo, hi := p.of(w, workers)
			want, most := nodesOf(lo, hi)
			sums := make([]float32, most)
			var a adding
			for a.begin(p, lo); a.row < p.at(hi); {
				n := a.take(min(window, int(p.at(hi)-a.row)), microbatch)
				if n < 1 || n > microbatch {
					r.Fatalf("a microbatch has %d rows of %d", n, microbatch)
				}
				first := a.row
				for _, x := range a.next(n) {
					if x.fresh {
						sums[x.sum] = 0
					}
					for i := x.lo; i < x.hi; i++ {
						sums[x.sum] += value(first + int64(i))
					}
					for k := range x.joins {
						sums[x.sum-k-1] += sums[x.sum-k]
					}
				}
			}
			if !slices.Equal(a.nodes, want) && len(want) > 0 {
				r.Fatalf("worker %d of %d has the nodes %v, want %v", w, workers, a.nodes, want)
			}
			for i, n := range want {
				nodes, values = join(append(nodes, n)), append(values, sums[i])
				for len(values) > len(nodes) {
					values[len(values)-2] += values[len(values)-1]
					values = values[:len(values)-1]
				}
			}
		}
		var tree func(first, count int) float32
		tree = func(first, count int) (sum float32) {
			if count > 1 {
				return tree(first, count/2) + tree(first+count/2, count/2)
			}
			for row := p.at(first); row < p.at(first+1); row++ {
				sum += value(row)
			}
			return sum
		}
		if want := tree(0, p.count); len(values) != 1 || values[0] != want {
			r.Fatalf("%d workers: %v, want %v", workers, values, want)
		}
	})
}

// TestPowersOfTwo: groups of 2, 4, 8 workers and so on send one sum each.
func TestPowersOfTwo(t *testing.T) {
	for workers := 1; workers <= 32; workers *= 2 {
		t.Run(fmt.Sprint(workers), func(t *testing.T) {
			for w := range workers {
				if nodes, _ := nodesOf(cutStep(4096).of(w, workers)); len(nodes) != 1 {
					t.Errorf("worker %d has the nodes %v", w, nodes)
				}
			}
		})
	}
}
