package testgraph

import (
	"os"
	"path/filepath"
	"testing"
)

// Published returns the path of a published data set or golden file, such as
// "data/cora" or "golden/karate_lsi.json". It looks in $NDLS_DATA, then in a
// folder "shared" beside the module, or beside one around it. Where neither has it the test fails if
// CI=true and is skipped otherwise.
func Published(t testing.TB, name string) string {
	t.Helper()
	roots := []string{os.Getenv("NDLS_DATA")}
	if dir, err := os.Getwd(); err == nil {
		for ; dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
			if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
				roots = append(roots, filepath.Join(filepath.Dir(dir), "shared"))
			}
		}
	}
	for _, root := range roots {
		if root == "" {
			continue
		}
		path := filepath.Join(root, filepath.FromSlash(name))
		if _, err := os.Stat(path); err == nil {
			return path
		}
	}
	if os.Getenv("CI") == "true" {
		t.Fatalf("%s not found in $NDLS_DATA or ../shared, and CI=true requires it", name)
	}
	t.Skipf("%s not found: set NDLS_DATA to the folder that holds data/ and golden/", name)
	return ""
}

// AllGolden reports whether every golden case is to be computed, which takes minutes: make
// golden sets NDLS_GOLDEN=all. Without it a test computes those that share no option.
func AllGolden() bool { return os.Getenv("NDLS_GOLDEN") == "all" }
