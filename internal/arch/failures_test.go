package arch

import (
	"io/fs"
	"os"
	"regexp"
	"strings"
	"testing"
)

// TestFailuresNameTests holds the table of docs/cluster.md to the tests that there are.
func TestFailuresNameTests(t *testing.T) {
	text, err := os.ReadFile("../../docs/cluster.md")
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]bool{}
	declared := regexp.MustCompile(`(?m)^func (Test\w+)\(`)
	err = walk("../..", func(path string, d fs.DirEntry) error {
		if d.IsDir() && strings.HasPrefix(d.Name(), ".") && d.Name() != ".." {
			return fs.SkipDir
		}
		if !strings.HasSuffix(path, "_test.go") {
			return nil
		}
		source, err := os.ReadFile(path)
		for _, m := range declared.FindAllSubmatch(source, -1) {
			found[string(m[1])] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	named := regexp.MustCompile(`\bTest\w+`).FindAllString(string(text), -1)
	if len(named) < 40 {
		t.Errorf("it names %d tests", len(named))
	}
	for _, name := range named {
		if !found[name] {
			t.Errorf("docs/cluster.md names %s, which is no test", name)
		}
	}
}
