package partition

import (
	"slices"
	"testing"

	"golang.org/x/sync/errgroup"
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
		count, largest := f.number(nodeOf, component)
		want := naiveComponents(byNode)
		if !slices.Equal(component, want) {
			t.Fatalf("components %d, want %d", component, want)
		}
		sizes := make([]int64, n)
		for _, c := range want {
			sizes[c]++
		}
		if count != int64(slices.Max(want))+1 || largest != slices.Max(sizes) {
			t.Fatalf("%d components, the largest has %d nodes; they have %d", count, largest, sizes)
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

// TestForestIsShared joins the edges of a long path and of a star, and a graph with many
// components, on several threads: the numbers equal those of one thread.
func TestForestIsShared(t *testing.T) {
	const n, threads = 30_000, 8
	var edges [][2]uint32
	for i := range uint32(n / 3) {
		edges = append(edges, [2]uint32{i, i + 1}, [2]uint32{n / 2, n/2 + i%(n/6)})
	}
	for i := range uint64(n / 6) {
		h := rng.Hash(1, i)
		edges = append(edges, [2]uint32{uint32(n - 1 - h%(n/4)), uint32(n - 1 - h>>32%(n/4))})
	}
	s := rng.New(3)
	s.Shuffle(len(edges), func(i, j int) { edges[i], edges[j] = edges[j], edges[i] })
	nodeOf := make([]uint32, n)
	for i := range nodeOf {
		nodeOf[i] = uint32(i)
	}
	number := func(threads int) []uint32 {
		f := newForest(make([]uint32, n))
		var joining errgroup.Group
		for i := range threads {
			joining.Go(func() error {
				for k := i; k < len(edges); k += threads {
					f.join(edges[k][0], edges[k][1])
				}
				return nil
			})
		}
		must(t, joining.Wait())
		component := make([]uint32, n)
		f.number(nodeOf, component)
		return component
	}
	want := number(1)
	for range 10 {
		if got := number(threads); !slices.Equal(got, want) {
			t.Fatal("the components on several threads are others than on one")
		}
	}
}
