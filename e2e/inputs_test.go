package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"ndls/internal/testgraph"
)

// TestInputs lets pyarrow, pandas, Polars, DuckDB, NumPy, SciPy and NetworkX write inputs of
// some hundred kinds, and compares what inspect and partition make of each with what the
// library says that it has written.
func TestInputs(t *testing.T) {
	whole(t)
	t.Parallel()
	python := tool(t, "NDLS_PYTHON", "a python with pyarrow, pandas, polars, duckdb, numpy, scipy and networkx")
	judge(t, python, "run.py", binary)
}

// TestCorpora reads the columns of Parquet, Arrow and CSV files of others, which are in the
// folder corpora beside the published data sets and in those that NDLS_CORPORA lists, and
// compares with pyarrow and DuckDB. NDLS_COLUMNS=24 reads more columns of each file.
func TestCorpora(t *testing.T) {
	whole(t)
	t.Parallel()
	python := tool(t, "NDLS_PYTHON", "a python with pyarrow and duckdb")
	folders := append([]string{testgraph.Published(t, "corpora")}, filepath.SplitList(os.Getenv("NDLS_CORPORA"))...)
	columns := os.Getenv("NDLS_COLUMNS")
	if columns == "" {
		columns = "2"
	}
	judge(t, python, append([]string{"corpora.py", binary, "--columns", columns, "--refused"}, folders...)...)
}

// judge runs a script of the folder inputs and shows what it prints.
func judge(t *testing.T, python string, args ...string) {
	t.Helper()
	cmd := exec.Command(python, args...)
	cmd.Dir = "inputs"
	b, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("%s: %v\n%s", args[0], err, b)
		return
	}
	t.Logf("%s", b)
}
