package depth

import (
	"reflect"
	"testing"

	"ndls/internal/rng"
	"ndls/lsi"
)

// TestBoundOnThreads compares K with the bound on one thread and on several: the same report, which
// counts each node of the component once.
func TestBoundOnThreads(t *testing.T) {
	const n = 5 * boundedNodesAtATime / 2
	b := boundedNodes{component: make([]uint32, n), number: 1, k: make([]int32, n)}
	b.degree1 = func(i int64) float64 { return 1 + float64(rng.Hash(1, uint64(i))%50) }
	nodes, capped := int64(0), int64(0)
	for i := range n {
		b.component[i] = uint32(i % 3)
		if b.k[i] = int32(rng.Hash(2, uint64(i)) % 40); i%7 == 0 {
			b.k[i] = -1
		}
		switch {
		case b.component[i] != 1:
		case b.k[i] < 0:
			capped++
		default:
			nodes++
		}
		if b.component[i] == 1 {
			b.volume += b.degree1(int64(i))
		}
	}
	found := lsi.Spectrum{Lambda2: 0.7, Error: 1e-5}
	want := b.bound(1, 0.01, found)
	if want.Nodes != nodes || want.Capped != capped || want.Within <= 0 || want.Within >= 1 || want.Slack.Least >= want.Slack.Most {
		t.Errorf("%+v of %d nodes that settled, %d that did not", want, nodes, capped)
	}
	for _, threads := range []int{2, 5} {
		if got := b.bound(threads, 0.01, found); !reflect.DeepEqual(got, want) {
			t.Errorf("%d threads: %+v, on one %+v", threads, got, want)
		}
	}
}
