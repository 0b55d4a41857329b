package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"ndls/internal/testgraph"
)

// tool returns what an environment variable names, or skips; with CI=true Python
// is required, JavaScript where npm is. `.ci/run` installs both.
func tool(t *testing.T, variable, what string) string {
	t.Helper()
	v := os.Getenv(variable)
	if v == "" {
		if variable == "NDLS_PYTHON" && os.Getenv("CI") == "true" {
			t.Fatalf("%s is not set, and CI=true requires it: it names %s", variable, what)
		}
		t.Skipf("%s is not set: it names %s", variable, what)
	}
	return v
}

// TestOtherReaders lets pyarrow, DuckDB and hyparquet open every Parquet and
// Arrow file of a run of Cora, and compares counts and sums with what ndls
// export gives.
func TestOtherReaders(t *testing.T) {
	t.Parallel()
	python := tool(t, "NDLS_PYTHON", "a python with pyarrow, duckdb and numpy")
	dir := filepath.Join(t.TempDir(), "run")
	run(t, "run", "--dataset", "planetoid:"+testgraph.Published(t, "data/cora")+"/cora", "--run", dir,
		"--probes", "64", "--runs", "2", "--epochs", "5", "--keep-hops", "0..1,3", "--quiet")
	out := t.TempDir()
	for _, what := range []string{"lsi", "features", "smoothed", "soft-labels", "predictions", "edges", "nodes"} {
		for _, format := range []string{"csv", "npy", "parquet", "arrow"} {
			run(t, "export", "--run", dir, "--what", what, "--format", format, "--out", filepath.Join(out, what+"."+format), "--quiet")
		}
	}
	for _, format := range []string{"npy", "parquet", "arrow"} {
		run(t, "export", "--run", dir, "--what", "hops", "--format", format, "--out", filepath.Join(out, "hops."+format), "--quiet")
	}
	if b, err := exec.Command(python, "readers.py", dir, out).CombinedOutput(); err != nil {
		t.Errorf("pyarrow and DuckDB: %v\n%s", err, b)
	} else {
		t.Logf("%s", b)
	}

	t.Run("hyparquet", func(t *testing.T) {
		modules := tool(t, "NDLS_JS", "a folder with hyparquet in its node_modules")
		cmd := exec.Command("node", "readers.mjs", dir, out)
		cmd.Env = append(os.Environ(), "NDLS_JS="+modules)
		if b, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("hyparquet: %v\n%s", err, b)
		} else {
			t.Logf("%s", b)
		}
	})
}

// TestOtherReadersOfTextIDs imports tables with text ids as pyarrow writes them, and lets
// pyarrow, DuckDB and NumPy compare every export, and the files of the run, with those tables.
func TestOtherReadersOfTextIDs(t *testing.T) {
	t.Parallel()
	python := tool(t, "NDLS_PYTHON", "a python with pyarrow, duckdb and numpy")
	script := func(args ...string) {
		t.Helper()
		b, err := exec.Command(python, append([]string{"tables.py"}, args...)...).CombinedOutput()
		if err != nil {
			t.Fatalf("tables.py %s: %v\n%s", args[0], err, b)
		}
		t.Logf("%s", b)
	}
	folder, out := filepath.Join(t.TempDir(), "tables"), t.TempDir()
	dir := filepath.Join(t.TempDir(), "run")
	script("write", folder)
	run(t, "run", "--dataset", "table:"+folder+"/edges?src=from&dst=to&nodes="+folder+"/nodes.arrow&id=key&features=x&labels="+folder+"/labels.csv&label=topic",
		"--run", dir, "--split", "random:20,50", "--runs", "1", "--epochs", "3", "--memory", "512MiB", "--quiet")
	for _, what := range []string{"lsi", "features", "smoothed", "soft-labels", "predictions", "edges", "nodes"} {
		for _, format := range []string{"csv", "npy", "parquet", "arrow"} {
			run(t, "export", "--run", dir, "--what", what, "--format", format, "--out", filepath.Join(out, what+"."+format), "--quiet")
		}
	}
	script("check", folder, dir, out)
}
