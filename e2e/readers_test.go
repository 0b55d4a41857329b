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
	python := tool(t, "NDLS_PYTHON", "a python with pyarrow, duckdb and numpy")
	dir := filepath.Join(t.TempDir(), "run")
	run(t, "run", "--dataset", "planetoid:"+testgraph.Published(t, "data/cora")+"/cora", "--run", dir,
		"--runs", "2", "--epochs", "5", "--quiet")
	out := t.TempDir()
	for _, what := range []string{"lsi", "features", "smoothed", "soft-labels", "predictions", "edges", "nodes"} {
		for _, format := range []string{"csv", "npy", "parquet", "arrow"} {
			run(t, "export", "--run", dir, "--what", what, "--format", format, "--out", filepath.Join(out, what+"."+format), "--quiet")
		}
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
