package partition

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"ndls/internal/rng"
)

func TestForest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 60).Draw(t, "nodes")
		f := newForest(make([]uint32, n))
		neighbours := make([][]int, n)
		for range rapid.IntRange(0, 80).Draw(t, "edges") {
			u, v := rapid.IntRange(0, n-1).Draw(t, "u"), rapid.IntRange(0, n-1).Draw(t, "v")
			f.join(uint32(u), uint32(v))
			neighbours[u] = append(neighbours[u], v)
			neighbours[v] = append(neighbours[v], u)
		}
		nodeOf := make([]uint32, n)
		for rank, node := range rng.New(uint64(n)).Perm(n) {
			nodeOf[rank] = uint32(node)
		}
		byNode := make([][]int, n)
		for rank, others := range neighbours {
			for _, other := range others {
				byNode[nodeOf[rank]] = append(byNode[nodeOf[rank]], int(nodeOf[other]))
			}
		}
		component := make([]uint32, n)
		f.number(nodeOf, component)
		if want := naiveComponents(byNode); !slices.Equal(component, want) {
			t.Fatalf("components %d, want %d", component, want)
		}
	})
}

// naiveComponents numbers components by their smallest node.
func naiveComponents(neighbours [][]int) []uint32 {
	component := make([]uint32, len(neighbours))
	seen := make([]bool, len(neighbours))
	next := uint32(0)
	for v := range neighbours {
		if seen[v] {
			continue
		}
		seen[v] = true
		for queue := []int{v}; len(queue) > 0; queue = queue[1:] {
			component[queue[0]] = next
			for _, w := range neighbours[queue[0]] {
				if !seen[w] {
					seen[w] = true
					queue = append(queue, w)
				}
			}
		}
		next++
	}
	return component
}
