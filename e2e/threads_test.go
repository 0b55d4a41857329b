package e2e

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/cpu"
)

// jobs are whole runs that together take every stage through its different ways: several
// panels of classes, several record batches, all probabilities and the best alone, depths of
// label smoothing that are chosen and given, both precisions, rules for features and for labels, rows
// that settle among edges with weights, and hops that are written themselves.
var jobs = map[string]string{
	"chosen depth":      "--dataset synthetic:nodes=34000,edges=70000,features=37,classes=40,seed=9 --runs 2 --epochs 2 --probes 32 --epsilon 0.05",
	"best probability":  "--dataset synthetic:nodes=20000,edges=40000,features=20,classes=33,seed=4 --runs 2 --epochs 2 --probes 48 --epsilon 0.05 --label-depth 3 --probabilities best --precision float16",
	"authors' rules":    "--dataset synthetic:nodes=20000,edges=40000,features=20,classes=18,seed=5 --runs 1 --epochs 4 --rule ndls-reference --label-rule ndls-reference --batch-size 0",
	"settled, correct":  "--dataset synthetic:nodes=34000,edges=70000,features=20,classes=12,seed=6,weights=6 --runs 2 --epochs 2 --probes 32 --epsilon 0.05 --active settled --label-rule cs",
	"kept hops":         "--dataset synthetic:nodes=20000,edges=40000,features=37,classes=18,seed=8 --runs 1 --epochs 2 --probes 32 --epsilon 0.05 --keep-hops 0,2 --smoothed-precision float16 --label-rule cs-nd",
	"walk, K of nodes":  "--dataset synthetic:nodes=8000,edges=20000,features=20,classes=6,seed=10 --runs 1 --epochs 2 --probes 16 --epsilon 0.05 --rule appnp --depth node --label-depth 2",
	"rows of edges":     "--dataset synthetic:nodes=8000,edges=20000,features=20,classes=6,seed=11 --runs 1 --epochs 2 --probes 16 --epsilon 0.05 --rule fastrp --label-depth 2",
	"hops side by side": "--dataset synthetic:nodes=8000,edges=20000,features=20,classes=6,seed=12 --runs 1 --epochs 2 --probes 16 --epsilon 0.05 --rule sign --hops 3 --label-depth 2",
	"soft labels as is": "--dataset papers100m:scale=1/4096 --runs 1 --epochs 1 --probes 16 --label-depth 0 --targets all",
}

// TestSameBytesOnAllThreads makes whole runs with 1, 2, 5 and 16 threads, which are more than
// there are cores, in assembly for both instruction sets and in Go, with much memory and with
// little. All files that a run commits have the same bytes, those of every stage. Each way is
// another in all of these at once: any of them that shows makes a difference.
func TestSameBytesOnAllThreads(t *testing.T) {
	t.Parallel()
	ways := []string{"--threads 5 --memory 160MiB", "--threads 16 --memory 1GiB --kernel go"}
	if cpu.X86.HasAVX2 && cpu.X86.HasFMA {
		ways = append(ways, "--threads 2 --memory 1GiB --kernel avx2")
	}
	for name, job := range jobs {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			want := hashesOf(t, job, "--threads 1 --memory 1GiB")
			for _, stage := range []string{"graph/", "lsi/", "smoothed/", "model/", "soft_labels/", "predictions/"} {
				if stage == "smoothed/" && strings.Contains(job, "--rule sign") {
					stage = "hops/"
				}
				if !slices.ContainsFunc(slices.Collect(maps.Keys(want)), func(file string) bool { return strings.HasPrefix(file, stage) }) {
					t.Errorf("there is no file %s…", stage)
				}
			}
			for _, way := range ways {
				compare(t, way, hashesOf(t, job, way), want)
			}
		})
	}
}

// TestSameExportsOnAllThreads writes everything that can be exported with 1, 5 and 16 threads, with
// much memory and with little: the same bytes.
func TestSameExportsOnAllThreads(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	made := filepath.Join(dir, "run")
	run(t, strings.Fields("run --run "+made+" --quiet "+jobs["kept hops"])...)
	for what, formats := range map[string]string{
		"lsi": "csv", "features": "arrow", "smoothed": "npy parquet", "hops": "npy",
		"soft-labels": "parquet", "predictions": "csv", "edges": "csv", "nodes": "parquet",
	} {
		for _, format := range strings.Fields(formats) {
			var want []byte
			for i, way := range []string{"--threads 1 --memory 1GiB", "--threads 5 --memory 160MiB", "--threads 16 --memory 1GiB"} {
				file := filepath.Join(dir, fmt.Sprint(what, i, ".", format))
				run(t, strings.Fields(fmt.Sprintf("export --run %s --quiet --what %s --format %s --out %s %s", made, what, format, file, way))...)
				got, err := os.ReadFile(file)
				if err != nil {
					t.Fatal(err)
				}
				if want == nil {
					want = got
				}
				if !bytes.Equal(got, want) {
					t.Errorf("%s as %s has other bytes with %s", what, format, way)
				}
			}
		}
	}
}

// hashesOf makes a run and returns the hashes of its files.
func hashesOf(t *testing.T, job, way string) map[string]string {
	dir := filepath.Join(t.TempDir(), "run")
	run(t, strings.Fields(fmt.Sprintf("run --run %s --quiet %s %s", dir, job, way))...)
	return hashes(t, dir)
}
