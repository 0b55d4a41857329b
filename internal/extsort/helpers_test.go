package extsort

import (
	"os"
	"testing"

	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"ndls/internal/mem"
	"ndls/internal/testkit"
)

func TestMain(m *testing.M) {
	testkit.GrowHeap()
	goleak.VerifyTestMain(m)
}

// must stops a test at an error.
func must(t rapid.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// budget has free bytes to give.
func budget(t rapid.TB, free int64) *mem.Budget {
	t.Helper()
	b, err := mem.NewBudget(max(mem.MinBudget, mem.Total(free)))
	must(t, err)
	must(t, b.Reserve(b.Free()-free, "test"))
	return b
}

// scratchFolder checks at the end that nothing was left in it.
func scratchFolder(t testing.TB) string {
	t.Helper()
	dir := t.TempDir()
	t.Cleanup(func() {
		left, err := os.ReadDir(dir)
		must(t, err)
		for _, e := range left {
			t.Errorf("%s was left in the scratch folder", e.Name())
		}
	})
	return dir
}
