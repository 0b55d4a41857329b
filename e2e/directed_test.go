package e2e

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"ndls/internal/packed"
)

// directedFiles writes a graph of n nodes and edges with directions, with values of the features
// at x, and returns its URI. Some edges come twice, and some lead from a node to itself.
func directedFiles(t *testing.T, n int, edges [][2]int, x []float64) string {
	t.Helper()
	dir := t.TempDir()
	var list, features, labels strings.Builder
	list.WriteString("from,to\n")
	for i, e := range edges {
		for range 1 + i%7/6 {
			fmt.Fprintf(&list, "%d,%d\n", e[0], e[1])
		}
	}
	labels.WriteString("id,label,split\n")
	for i := range n {
		fmt.Fprint(&features, i)
		for _, v := range x[i*len(x)/n : (i+1)*len(x)/n] {
			features.WriteString("," + strconv.FormatFloat(v, 'g', -1, 32))
		}
		features.WriteString("\n")
		fmt.Fprintf(&labels, "%d,c%d,%s\n", i, i%3, []string{"train", "valid", "test"}[i/3%3])
	}
	write(t, filepath.Join(dir, "edges.csv"), list.String())
	write(t, filepath.Join(dir, "features.csv"), features.String())
	write(t, filepath.Join(dir, "nodes.csv"), labels.String())
	return fmt.Sprintf("edges:%[1]s/edges.csv?directed=true&features=%[1]s/features.csv&labels=%[1]s/nodes.csv&splits=%[1]s/nodes.csv&nodes=%[2]d", dir, n)
}

// drawDirected draws edges, most of which end at few nodes, and features.
func drawDirected(n, m, width int) (edges [][2]int, x []float64) {
	rng := rand.New(rand.NewPCG(7, uint64(n)))
	for range m {
		edges = append(edges, [2]int{rng.IntN(n), min(rng.IntN(n), rng.IntN(n), rng.IntN(n))})
	}
	x = make([]float64, n*width)
	for i := range x {
		x[i] = float64(float32(rng.Float64()*4 - 2))
	}
	return edges, x
}

// TestDirectedBytes: the files of a run with directions depend neither on threads, memory and
// kernel, nor on the workers in whichever way they share the run, nor on kills.
func TestDirectedBytes(t *testing.T) {
	whole(t)
	t.Parallel()
	const nodes = packed.StripRows + 4000 // two workers can share them
	edges, x := drawDirected(nodes, 75_000, 37)
	uri := directedFiles(t, nodes, edges, x)
	both := fmt.Sprintf("--dataset %s --direction both --rule gbp --hops 6 --runs 1 --epochs 1", uri)
	compare(t, inGroups, hashesOf(t, both, inGroups), hashesOf(t, both, "--threads 2 --memory 1GiB"))
	for _, direction := range []string{"both"} { // has the rows of each
		job := fmt.Sprintf("--dataset %s --direction %s --rule gbp --hops 6 --keep-hops 0,2 --runs 2 --epochs 2", uri, direction)
		start := time.Now()
		want := hashesOf(t, job, "--threads 2 --memory 1GiB")
		took := time.Since(start)
		for _, way := range []string{
			"--threads 5 --memory 160MiB", "--threads 1 --memory 1GiB --kernel go",
			"--workers 2 --threads 1 --memory 512MiB", "--workers 2 --threads 1 --memory 512MiB --parallel intervals",
		} {
			compare(t, direction+" "+way, hashesOf(t, job, way), want)
		}
		dir := filepath.Join(t.TempDir(), "killed")
		args := strings.Fields(fmt.Sprintf("run --run %s --quiet --threads 2 --memory 160MiB %s", dir, job))
		for i := range 3 {
			cmd := exec.Command(binary, args...)
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			timer := time.AfterFunc(took*time.Duration(2*i+1)/8, func() { _ = cmd.Process.Kill() })
			err := cmd.Wait()
			timer.Stop()
			if s := exitStatus(err); err != nil && s != -1 {
				t.Fatalf("a killed run ended with status %d", s)
			}
		}
		run(t, args...)
		run(t, "verify", "--run", dir, "--quiet")
		run(t, "gc", "--run", dir, "--delete", "--quiet")
		compare(t, direction+" killed", hashes(t, dir), want)
	}
}

// TestDirectionsRefused: what is defined for edges without directions is refused with the reason,
// before anything is imported where that can be known.
func TestDirectionsRefused(t *testing.T) {
	edges, x := drawDirected(60, 120, 4)
	uri := directedFiles(t, 60, edges, x)
	dir := filepath.Join(t.TempDir(), "run")
	refused := func(want string, args ...string) {
		t.Helper()
		out, err := exec.Command(binary, args...).CombinedOutput()
		if exitStatus(err) <= 0 || !bytes.Contains(out, []byte(want)) {
			t.Errorf("%v: %v, without %q\n%s", args, err, want, out)
		}
	}
	for _, rule := range []string{"ndls", "ndls-reference", "nafs", "fastrp"} {
		refused("leave out directed=true", "run", "--run", dir, "--dataset", uri, "--rule", rule)
		refused("leave out directed=true", "plan", "--dataset", uri, "--rule", rule)
	}
	refused("--depth node takes K hops of each node", "run", "--run", dir, "--dataset", uri, "--rule", "gbp", "--depth", "node")
	refused("--direction needs edges with directions", "run", "--run", dir, "--dataset", "karate:", "--rule", "sgc", "--direction", "out")
	refused(`--direction "up" is none of`, "run", "--run", dir, "--dataset", uri, "--rule", "sgc", "--direction", "up")
	if _, err := os.Stat(dir); err == nil {
		t.Error("a run that was refused left a folder")
	}
	run(t, "partition", "--run", dir, "--dataset", uri, "--quiet")
	refused("edges have directions", "lsi", "--run", dir)
	refused("--rule ndls takes K hops", "smooth", "--run", dir)
	run(t, "smooth", "--run", dir, "--rule", "sgc", "--hops", "2", "--quiet")
	run(t, "train", "--run", dir, "--runs", "1", "--epochs", "2", "--quiet")
	refused("edges have directions", "smooth-labels", "--run", dir)
	run(t, "evaluate", "--run", dir, "--quiet")
	if out := run(t, "inspect", "--dataset", uri); !strings.Contains(out, "directions") {
		t.Errorf("inspect does not say that edges have directions:\n%s", out)
	}
	matrix := filepath.Join(t.TempDir(), "m.mtx")
	write(t, matrix, "%%MatrixMarket matrix coordinate pattern symmetric\n3 3 2\n2 1\n3 1\n")
	refused("stands for both directions", "partition", "--run", filepath.Join(t.TempDir(), "mtx"), "--dataset", "mtx:"+matrix+"?directed=true")
}
