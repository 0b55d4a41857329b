package depth

import (
	"fmt"
	"testing"

	"ndls/shards"
	"ndls/stage"
)

// TestSample draws the same nodes whatever rows a task has.
func TestSample(t *testing.T) {
	for _, n := range []int64{0, 1, 3, 8, 1000} {
		env := lsiRun{&stage.Env{Summary: shards.Summary{Nodes: n}}}
		all := env.sample(0, n)
		if len(all) != int(min(n, sampledNodes)) {
			t.Errorf("%d of %d nodes", len(all), n)
		}
		var parts []int64
		for _, lo := range []int64{0, n / 3} {
			hi := n / 3
			if lo > 0 || hi == 0 {
				hi = n
			}
			for _, row := range env.sample(lo, hi) {
				parts = append(parts, lo+row)
			}
			if hi == n {
				break
			}
		}
		if fmt.Sprint(parts) != fmt.Sprint(all) {
			t.Errorf("%d nodes: %v in parts, %v as a whole", n, parts, all)
		}
	}
}
