package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// recipes are the files that build or install the program elsewhere, each with what finds the names
// in it that are files of the repository.
var recipes = []struct {
	file  string
	names *regexp.Regexp
	least int // as many names
}{
	{".goreleaser.yaml", regexp.MustCompile(`(?m)(?:main: \./|src: )([A-Za-z][\w./]*)$`), 3},
	{"deploy/kubernetes/Dockerfile", regexp.MustCompile(`(?:-f |\./|RUN |cp |\s)((?:deploy|cmd)/[\w./]+\w|LICENSE|go\.mod|go\.sum)`), 4},
	{"deploy/image.sh", regexp.MustCompile(`(?:--file |cp )((?:deploy/[\w./]+)|LICENSE)`), 2},
	{"deploy/apptainer/ndls.def", regexp.MustCompile(`(?:\./|cp |\s)((?:deploy|cmd)/[\w./]+|LICENSE)`), 4},
	{"deploy/spack/spack_repo/ndls/packages/ndls/package.py", regexp.MustCompile(`add (deploy/[\w/]+)`), 1},
	{"Makefile", regexp.MustCompile(`(?:\s)(deploy/[\w./-]+)`), 4},
	{"docs/install.md", regexp.MustCompile(`(deploy/[\w./-]*\w)`), 5},
	{"CONTRIBUTING.md", regexp.MustCompile("`(\\.goreleaser\\.yaml|version\\.go|changelog/\\w+)`"), 3},
}

// Files that recipes name exist, and targets of make that they and the documents name.
func TestRecipesNameWhatIsThere(t *testing.T) {
	makefile := content(t, "..", "Makefile")
	for _, r := range recipes {
		text := content(t, "..", r.file)
		found := r.names.FindAllStringSubmatch(text, -1)
		if len(found) < r.least {
			t.Errorf("%s names %d files: %q", r.file, len(found), found)
		}
		for _, m := range found {
			if _, err := os.Stat(filepath.Join("..", m[1])); err != nil {
				t.Errorf("%s: %v", r.file, err)
			}
		}
		for _, m := range regexp.MustCompile("`make ([a-z0-9-]+)").FindAllStringSubmatch(text, -1) {
			if !strings.Contains(makefile, "\n"+m[1]+": ") {
				t.Errorf("%s: make has no target %s", r.file, m[1])
			}
		}
	}
}

// The version of Go that recipes take equals that of the module.
func TestRecipesTakeTheGoOfTheModule(t *testing.T) {
	want := regexp.MustCompile(`(?m)^go (\d+\.\d+)`).FindStringSubmatch(content(t, "..", "go.mod"))[1]
	for file, before := range map[string]string{
		"deploy/kubernetes/Dockerfile":                          "FROM golang:",
		"deploy/apptainer/ndls.def":                             "From: golang:",
		"deploy/spack/spack_repo/ndls/packages/ndls/package.py": `"go@`,
		"docs/install.md":                                       "\nGo ",
	} {
		if !strings.Contains(content(t, "..", file), before+want) {
			t.Errorf("%s has no %q", file, before+want)
		}
	}
}
