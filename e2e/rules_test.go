package e2e

import "testing"

// TestRulesBytes: the files of a run under a rule whose rows are made of whole hops, up to K of each
// node, depend neither on threads, memory and kernel nor on workers that share intervals.
func TestRulesBytes(t *testing.T) {
	t.Parallel()
	const job = "--dataset synthetic:nodes=36000,edges=90000,features=20,classes=6,seed=9 --runs 1 --epochs 2 --epsilon 0.05 --probes 32 --label-kmax 3 " +
		"--rule nafs --hops 4 --r 0.3 --depth node"
	want := hashesOf(t, job, "--threads 2 --memory 1GiB")
	for _, way := range []string{"--workers 2 --threads 1 --memory 512MiB --parallel intervals", "--threads 5 --memory 160MiB --kernel go"} {
		compare(t, way, hashesOf(t, job, way), want)
	}
}
