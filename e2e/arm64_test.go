package e2e

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// programForArm64 is a program with its symbols. Tests that need it are skipped without it.
func programForArm64(t *testing.T) string {
	t.Helper()
	program := os.Getenv("NDLS_ARM64")
	if program == "" {
		t.Skip("NDLS_ARM64 names no program for arm64: make arm64 builds it")
	}
	return program
}

// jobs are whole runs that together take every stage through its different ways: several
// panels of classes, several record batches, all probabilities and the best alone, depths of
// label smoothing that are chosen and given, both precisions, rules for features and for labels, every
// hop among edges with weights, and hops that are written themselves.
var jobs = map[string]string{
	"chosen depth":       "--dataset synthetic:nodes=34000,edges=70000,features=37,classes=40,seed=9 --runs 2 --epochs 2 --probes 32 --epsilon 0.05",
	"best probability":   "--dataset synthetic:nodes=20000,edges=40000,features=20,classes=33,seed=4 --runs 2 --epochs 2 --probes 48 --epsilon 0.05 --label-depth 3 --probabilities best --precision float16",
	"authors' rules":     "--dataset synthetic:nodes=20000,edges=40000,features=20,classes=18,seed=5 --runs 1 --epochs 4 --rule ndls-reference --label-rule ndls-reference --batch-size 0",
	"every hop, correct": "--dataset synthetic:nodes=34000,edges=70000,features=20,classes=12,seed=6,weights=6 --runs 2 --epochs 2 --probes 32 --epsilon 0.05 --tolerance 0 --label-rule cs",
	"kept hops":          "--dataset synthetic:nodes=20000,edges=40000,features=37,classes=18,seed=8 --runs 1 --epochs 2 --probes 32 --epsilon 0.05 --keep-hops 0,2 --smoothed-precision float16 --label-rule cs-nd",
	"walk, K of nodes":   "--dataset synthetic:nodes=8000,edges=20000,features=20,classes=6,seed=10 --runs 1 --epochs 2 --probes 16 --epsilon 0.05 --rule appnp --depth node --label-depth 2",
	"rows of edges":      "--dataset synthetic:nodes=8000,edges=20000,features=20,classes=6,seed=11 --runs 1 --epochs 2 --probes 16 --epsilon 0.05 --rule fastrp --label-depth 2",
	"hops side by side":  "--dataset synthetic:nodes=8000,edges=20000,features=20,classes=6,seed=12 --runs 1 --epochs 2 --probes 16 --epsilon 0.05 --rule sign --hops 3 --label-depth 2",
	"soft labels as is":  "--dataset papers100m:scale=1/4096,mix=slow --kmax 8 --runs 1 --epochs 1 --probes 16 --label-depth 0 --targets all",
}

// TestArm64 makes whole runs with the program for arm64, which an emulator runs, and with that for
// this processor. All files that a run commits have the same bytes.
func TestArm64(t *testing.T) {
	program := programForArm64(t)
	all := maps.Clone(jobs)
	const graph = "--dataset synthetic:nodes=8000,edges=20000,features=20,classes=6,seed=9 --runs 1 --epochs 2 "
	maps.Copy(all, map[string]string{
		"exponentials and powers": graph + "--rule nafs --hops 4 --r 0.3 --depth node --probes 32 --epsilon 0.05 --metrics auc",
		"exact distances":         graph + "--lsi feature --epsilon 0.05 --rule gbp --hops 5 --alpha 0.15 --normalize l1",
		"best of logs":            strings.Replace(graph, "classes=6", "classes=60", 1) + "--rule ndls-reference --label-rule ndls-reference --label-depth 2 --probabilities best --probes 32 --epsilon 0.05",
		"rows of edges":           graph + "--rule fastrp --degree-power -0.4 --label-depth 2",
	})
	for name, job := range all {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const way = " --quiet --threads 2 --memory 1GiB"
			want := hashesOf(t, job, way)
			dir := filepath.Join(t.TempDir(), "run")
			args := append([]string{program, "run", "--run", dir}, strings.Fields(job+way)...)
			if text, err := exec.Command("qemu-aarch64", args...).CombinedOutput(); err != nil {
				t.Fatalf("%v: %v\n%s", args, err, text)
			}
			compare(t, "arm64", hashes(t, dir), want)
		})
	}
}

// fused are the functions, by the beginnings of their names, in which the compiler may fuse a product
// and a sum, and why.
var fused = map[string]string{
	"ndls/coordinator.":                      "shares work, which does not show in bytes",
	"ndls/dataset.(*papers).dataset.":        "halves, which is exact",
	"ndls/dataset.(*synthetic).":             "halves, which is exact",
	"ndls/estimate.":                         "plans",
	"ndls/infer.(*run).sample":               "multiplies with powers of two, which is exact",
	"ndls/internal/elementary.Exp":           "calls math.FMA",
	"ndls/internal/progress.":                "tells how far a run is",
	"ndls/spmv.(*balance).check":             "compares with a tolerance",
	"ndls/stage/labels.labelsRun.smoothRuns": "tells how far a run is",
	"ndls/stage/depth.spreadOfK":             "reports",
	"ndls/train.(*Model).initialise.":        "doubles, which is exact",
	"ndls/train.EpochFlops":                  "plans",
	"ndls/train/dense.sumGo":                 "multiplies float32 in float64, which is exact",
	"ndls/watch.":                            "shows",
}

// TestNothingIsFusedForArm64 reads the program: a fused product and sum has one rounding, where other
// processors have two.
func TestNothingIsFusedForArm64(t *testing.T) {
	text, err := exec.Command("go", "tool", "objdump", "-s", `^ndls[/.]`, programForArm64(t)).Output()
	if err != nil {
		t.Fatal(err)
	}
	operation := regexp.MustCompile(`\tFN?M(ADD|SUB)[DS] `)
	used := map[string]bool{}
	function := ""
	for line := range strings.Lines(string(text)) {
		if name, ok := strings.CutPrefix(line, "TEXT "); ok {
			function, _, _ = strings.Cut(name, "(SB)")
			continue
		}
		if !operation.MatchString(line) {
			continue
		}
		where := slices.Collect(maps.Keys(fused))
		where = slices.DeleteFunc(where, func(name string) bool { return !strings.HasPrefix(function, name) })
		for _, name := range where {
			used[name] = true
		}
		if len(where) == 0 {
			t.Errorf("%s fuses a product and a sum; convert the product, as in float64(x*y) + z: %s", function, strings.Join(strings.Fields(line), " "))
		}
	}
	for name := range fused {
		if !used[name] {
			t.Errorf("%s needs no exception any more", name)
		}
	}
}
