package arch

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// rule is one row of the table.
type rule struct {
	pkg     string
	imports []string
}

// rules says which packages of this module a package may import. A pattern
// matches a package and what lies in its folder, with = before it the package
// alone; the first rule that matches the importing package holds.
var rules = []rule{
	{"ndls", []string{"plan", "coordinator", "placement", "machine", "report", "watch", "explain", "infer", "stage", "worker", "export", "estimate", "dataset", "partition", "group/remote", "spmv", "catalog", "shards", "internal"}},
	{"cmd/ndls", []string{"."}},
	{"changelog", []string{}},
	{"e2e", []string{}},
	{"coordinator", []string{"plan", "report", "placement", "=stage", "stage/registry", "estimate", "internal/control", "internal/failure", "internal/mem", "internal/packed", "internal/progress", "internal/seal", "internal/share", "internal/storage", "internal/tracing", "internal/vfs", "catalog", "shards"}},
	{"placement", []string{"plan", "=stage", "estimate", "steps", "internal/control", "internal/failure", "internal/mem", "internal/packed", "catalog"}},
	{"estimate", []string{"plan", "tiles", "partition", "lsi", "smooth", "fastrp", "train", "hops", "group", "spmv", "catalog", "shards", "internal"}},
	{"worker", []string{"plan", "=stage", "stage/registry", "hops", "group", "machine", "spmv", "catalog", "internal"}},
	{"tiles", []string{"catalog", "shards", "internal"}},
	{"stage/stagetest", []string{"plan", "=stage", "stage/registry", "spmv", "catalog", "shards", "internal"}},
	{"stage/trial", []string{"plan", "estimate", "=stage", "stage/graph", "stage/depth", "stage/features", "stage/measures", "stage/models", "stage/labels", "stage/evaluate", "stage/registry", "smooth", "train", "tiles", "catalog", "shards", "internal"}},
	{"stage/registry", []string{"plan", "estimate", "=stage", "stage/imports", "stage/depth", "stage/features", "stage/models", "stage/labels", "stage/evaluate", "partition", "tiles", "catalog", "shards", "internal"}},
	{"stage/evaluate", []string{"plan", "estimate", "=stage", "stage/measures", "stage/models", "stage/labels", "partition", "train", "tiles", "catalog", "shards", "internal"}},
	{"stage/labels", []string{"plan", "estimate", "=stage", "stage/graph", "stage/imports", "stage/depth", "stage/features", "stage/measures", "stage/models", "dataset", "lsi", "smooth", "train", "hops", "tiles", "catalog", "shards", "internal"}},
	{"stage/models", []string{"plan", "estimate", "steps", "=stage", "stage/features", "stage/measures", "dataset", "train", "group", "catalog", "shards", "internal"}},
	{"stage/measures", []string{"plan", "estimate", "=stage", "stage/imports", "dataset", "train", "tiles", "catalog", "shards", "internal"}},
	{"stage/features", []string{"plan", "estimate", "=stage", "stage/graph", "stage/depth", "dataset", "smooth", "fastrp", "train", "hops", "group", "tiles", "catalog", "shards", "internal"}},
	{"stage/depth", []string{"plan", "estimate", "steps", "=stage", "stage/graph", "partition", "lsi", "smooth", "hops", "group", "spmv", "tiles", "catalog", "shards", "internal"}},
	{"stage/imports", []string{"plan", "estimate", "steps", "=stage", "stage/graph", "partition", "dataset", "smooth", "tiles", "catalog", "shards", "internal"}},
	{"stage/graph", []string{"plan", "=stage", "partition", "lsi", "smooth", "hops", "group", "spmv", "tiles", "catalog", "shards", "internal"}},
	{"stage", []string{"plan", "estimate", "steps", "tiles", "dataset", "partition", "smooth", "train", "hops", "group", "catalog", "shards", "internal"}},
	{"export", []string{"tiles", "catalog", "shards", "internal"}},
	{"partition", []string{"steps", "tiles", "dataset", "catalog", "shards", "internal"}},
	{"steps", []string{"catalog"}},
	{"lsi", []string{"hops", "spmv", "internal"}},
	{"examples/trees", []string{}},
	{"tune", []string{"plan", "ndls", "internal"}},
	{"report", []string{"plan", "internal/byhop", "internal/control", "internal/mem", "internal/page"}},
	{"watch", []string{"coordinator", "internal/control", "internal/failure", "internal/mem", "internal/page", "internal/progress"}},
	{"machine", []string{"spmv", "train/dense", "internal"}},
	{"explain", []string{"tiles", "catalog", "shards", "internal"}},
	{"infer", []string{"plan", "stage", "partition", "dataset", "smooth", "train", "tiles", "catalog", "shards", "internal"}},
	{"plan", []string{"smooth", "internal/failure", "internal/meant", "internal/packed"}},
	{"fastrp", []string{"internal/elementary", "internal/packed", "internal/rng"}},
	{"smooth", []string{"group", "hops", "spmv", "internal"}},
	{"train/dense", []string{"internal/elementary", "internal/kernels", "internal/rng"}},
	{"train", []string{"train/dense", "group", "catalog", "shards", "internal"}},
	{"hops", []string{"group", "spmv", "internal"}},
	{"group/remote", []string{"group", "internal"}},
	{"group", []string{"internal/direct", "internal/packed"}},
	{"dataset/layout", []string{"dataset/layout", "dataset/table", "dataset/torch", "dataset/column", "dataset/array", "dataset/source", "dataset/graph", "dataset/npy", "dataset/pickle"}},
	{"dataset/torch", []string{"dataset/array", "dataset/source", "dataset/graph", "dataset/npy", "dataset/pickle"}},
	{"dataset/prepare", []string{"dataset/column", "dataset/graph", "internal/elementary", "internal/mem", "internal/rng"}},
	{"dataset/column", []string{"dataset/array", "dataset/source", "dataset/graph", "dataset/npy", "internal/meant"}},
	{"dataset/array", []string{"dataset/source", "dataset/graph", "dataset/npy", "dataset/pickle", "internal/direct"}},
	{"dataset/table", []string{"dataset/column", "dataset/columnar", "dataset/source", "dataset/graph", "internal/failure", "internal/inputid", "internal/meant", "internal/mem", "internal/storage"}},
	{"dataset/columnar", []string{"dataset/columnar", "dataset/source", "dataset/graph", "internal/half", "internal/mem"}},
	{"dataset/source", []string{"dataset/graph", "internal/direct"}},
	{"dataset/graph", []string{"internal/failure", "internal/inputid", "internal/meant"}},
	{"dataset/npy", []string{"internal/half", "internal/mem"}},
	{"dataset/pickle", []string{}},
	{"dataset", []string{"dataset", "internal"}},
	{"shards", []string{"catalog", "internal"}},
	{"catalog", []string{"internal"}},
	{"spmv", []string{"group", "internal/direct", "internal/failure", "internal/half", "internal/invariants", "internal/kernels", "internal/mem", "internal/packed"}},
	{"internal/stationary", []string{"internal/elementary", "internal/mem"}},
	{"internal/control", []string{"plan", "catalog", "internal"}},
	{"internal/ahead", []string{}},
	{"internal/elementary", []string{}},
	{"internal/inputid", []string{"internal/mem"}},
	{"internal/keysort", []string{"internal/extsort", "internal/mem", "internal/seal"}},
	{"internal/inorder", []string{}},
	{"internal/meant", []string{}},
	{"internal/share", []string{}},
	{"internal/extsort", []string{"internal/direct", "internal/failure", "internal/inorder", "internal/invariants", "internal/mem", "internal/seal", "internal/storage", "internal/vfs"}},
	{"internal", []string{"internal"}},
}

// exclusive says which packages alone may use a library.
var exclusive = map[string][]string{
	"github.com/apache/arrow/go/v14":    {"ndls", "shards", "dataset", "partition", "train", "export", "internal/control"},
	"github.com/xitongsys/parquet-go":   {"catalog"},
	"github.com/hashicorp/memberlist":   {"internal/control"},
	"google.golang.org/grpc":            {"internal/control"},
	"github.com/aws":                    {"internal/storage"},
	"github.com/spf13/cobra":            {"cmd/ndls"},
	"go.yaml.in/yaml/v3":                {"cmd/ndls", "dataset/layout/graphbolt", "dataset/layout/graphland"},
	"html/template":                     {"internal/page/pagetest"}, // it and text/template keep all exported methods in the program
	"text/template":                     {"internal/page"},
	"log/slog":                          {"ndls", "cmd/ndls", "coordinator", "worker", "internal/control"},
	"testing":                           {"internal/testgraph", "internal/testkit", "internal/page/pagetest", "internal/storage/storagetest", "stage/stagetest"},
	"ndls/internal/testgraph":           {},
	"ndls/internal/storage/storagetest": {},
	"ndls/internal/seal/sealtest":       {},
	"ndls/internal/vfs/vfstest":         {},
	"ndls/internal/page/pagetest":       {},
	"ndls/stage/stagetest":              {},
	"ndls/internal/hook":                {}, // without the tag hooks
	"ndls/internal/control":             {"ndls", "cmd/ndls", "coordinator", "estimate", "infer", "placement", "report", "stage", "watch", "worker", "machine", "internal/control", "group/remote"},
	"github.com/apache/arrow/go/arrow":  {},
}

const module = "ndls/"

// path is the path of a package in this module; the root package is "ndls".
func path(importPath string) (string, bool) {
	if importPath == "ndls" {
		return importPath, true
	}
	return strings.CutPrefix(importPath, module)
}

// within reports whether pkg is pattern or lies below it; "." has everything.
func within(pkg, pattern string) bool {
	return pattern == "." || pkg == pattern || strings.HasPrefix(pkg, pattern+"/")
}

func allowed(pkg string, patterns []string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool {
		exact, is := strings.CutPrefix(p, "=")
		return is && pkg == exact || !is && within(pkg, p)
	})
}

type listed struct {
	ImportPath string
	Imports    []string
}

func list(t *testing.T) []listed {
	t.Helper()
	cmd := exec.Command("go", "list", "-deps", "-json=ImportPath,Imports", "./...")
	cmd.Dir = "../.."
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v\n%s", err, errs.String())
	}
	var all []listed
	for dec := json.NewDecoder(bytes.NewReader(out)); ; {
		var p listed
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		if _, ours := path(p.ImportPath); ours {
			all = append(all, p)
		}
	}
	if len(all) < 15 {
		t.Fatalf("go list found %d packages", len(all))
	}
	return all
}

func TestImportsPointDown(t *testing.T) {
	for _, p := range list(t) {
		pkg, _ := path(p.ImportPath)
		i := slices.IndexFunc(rules, func(r rule) bool { return within(pkg, r.pkg) })
		if i < 0 {
			t.Errorf("%s is in no row of the table", pkg)
			continue
		}
		for _, imported := range p.Imports {
			if below, ours := path(imported); ours && !allowed(below, rules[i].imports) {
				t.Errorf("%s imports %s; it may import %s", pkg, below, strings.Join(rules[i].imports, ", "))
			}
		}
	}
}

func TestLibrariesStayBehindTheirPackages(t *testing.T) {
	for _, p := range list(t) {
		pkg, _ := path(p.ImportPath)
		for _, imported := range p.Imports {
			for library, users := range exclusive {
				if within(imported, library) && !allowed(pkg, users) {
					t.Errorf("%s imports %s, which is for %s", pkg, imported, strings.Join(users, ", "))
				}
			}
		}
	}
}
