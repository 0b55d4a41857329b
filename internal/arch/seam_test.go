package arch

import (
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// fileOperations are the functions, by package, that go to the operating system's files
// past the seam of package vfs.
var fileOperations = map[string][]string{
	"os": {
		"Open", "OpenFile", "OpenRoot", "OpenInRoot", "Create", "CreateTemp", "Mkdir", "MkdirAll", "MkdirTemp", "Rename", "Remove", "RemoveAll",
		"Link", "Symlink", "Readlink", "Stat", "Lstat", "ReadFile", "WriteFile", "ReadDir", "Truncate", "Chtimes", "Chmod", "Chown", "DirFS", "CopyFS",
	},
	"path/filepath": {"Walk", "WalkDir", "Glob", "EvalSymlinks"},
	"syscall": {
		"Open", "Openat", "Creat", "Stat", "Lstat", "Fstat", "Statfs", "Fstatfs", "Fallocate", "Fadvise", "SyncFileRange", "Fsync", "Fdatasync", "Flock",
		"Truncate", "Ftruncate", "Rename", "Renameat", "Renameat2", "Link", "Linkat", "Unlink", "Unlinkat", "Mkdir", "Mkdirat", "Rmdir",
		"Read", "Pread", "Preadv", "Write", "Pwrite", "Pwritev",
	},
}

// besideSeam are the folders and files that may use them, and why.
var besideSeam = map[string]string{
	"internal/vfs":                 "is the seam",
	"dataset":                      "reads and generates datasets of users",
	"cmd":                          "reads configuration, /proc and keys",
	"changelog":                    "edits the repository",
	"internal/cgroup":              "reads /proc and /sys",
	"internal/control/rpc":         "reads and makes keys",
	"export/output.go":             "writes to pipes and devices",
	"internal/rundir":              "follows links of the path that a user names",
	"internal/testgraph":           "serves tests",
	"internal/testkit":             "serves tests",
	"internal/storage/storagetest": "serves tests",
	"internal/testprogram":         "serves tests",
	"internal/tracing":             "reads certificates",
	"worker/disk.go":               "asks the kernel which files are open",
}

// TestFilesGoThroughTheSeam finds operations on files that no test could fail.
func TestFilesGoThroughTheSeam(t *testing.T) {
	used := map[string]bool{}
	eachFile(t, func(path string, file *ast.File, set *token.FileSet) {
		for call, name := range calls(file) {
			pkg, function, _ := strings.Cut(name, ":")
			if pkg == "golang.org/x/sys/unix" {
				pkg = "syscall"
			}
			if pkg == module+"internal/vfs" && function == "Mount" && !within(path, "internal/vfs/vfstest") {
				t.Errorf("%s: vfs.Mount is for tests", set.Position(call.Pos()))
			}
			if !slices.Contains(fileOperations[pkg], function) || ofKernel(call) {
				continue
			}
			allowed := false
			for place := range besideSeam {
				if within(path, place) {
					allowed, used[place] = true, true
				}
			}
			if !allowed {
				t.Errorf("%s: %s.%s; call package vfs, so that tests can fail it", set.Position(call.Pos()), pkg, function)
			}
		}
	})
	for place := range besideSeam {
		if !used[place] {
			t.Errorf("%s needs no exception any more", place)
		}
	}
}

// walk visits the files and folders of the repository. Tests of other packages, which run meanwhile, make folders in theirs and remove them.
func walk(root string, visit func(path string, d fs.DirEntry) error) error {
	return filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist) && path != root:
			return nil
		case err != nil:
			return err
		}
		return visit(path, d)
	})
}

// eachFile parses the files of this module that are no tests and not generators.
func eachFile(t *testing.T, visit func(path string, file *ast.File, set *token.FileSet)) {
	t.Helper()
	const root = "../.."
	files := 0
	err := walk(root, func(path string, d fs.DirEntry) error {
		if name := d.Name(); d.IsDir() && path != root && (strings.HasPrefix(name, ".") || strings.HasPrefix(name, "_") || name == "build") {
			return filepath.SkipDir
		}
		if _, err := os.Stat(filepath.Join(path, "go.mod")); err == nil && path != root {
			return filepath.SkipDir // another module
		}
		if d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		set := token.NewFileSet()
		file, err := parser.ParseFile(set, path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		files++
		visit(filepath.ToSlash(rel), file, set)
		return nil
	})
	if err != nil || files < 100 {
		t.Fatalf("%d files, %v", files, err)
	}
}

// calls returns the uses of functions of other packages, as "import path:name", whether
// they are called or passed on. The node is the call where there is one.
func calls(file *ast.File) map[ast.Node]string {
	imports := map[string]string{}
	for _, i := range file.Imports {
		path, _ := strconv.Unquote(i.Path.Value)
		name := path[strings.LastIndex(path, "/")+1:]
		if i.Name != nil {
			name = i.Name.Name
		}
		imports[name] = path
	}
	found := map[ast.Node]string{}
	called := map[ast.Node]bool{}
	ast.Inspect(file, func(n ast.Node) bool {
		at := n
		if c, ok := n.(*ast.CallExpr); ok {
			n = c.Fun
			called[n] = true
		} else if called[n] {
			return true
		}
		if s, ok := n.(*ast.SelectorExpr); ok {
			if x, ok := s.X.(*ast.Ident); ok && imports[x.Name] != "" {
				found[at] = imports[x.Name] + ":" + s.Sel.Name
			}
		}
		return true
	})
	return found
}

// ofKernel reports whether a call names a file of /proc, which is on no disk.
func ofKernel(n ast.Node) bool {
	c, ok := n.(*ast.CallExpr)
	if !ok || len(c.Args) == 0 {
		return false
	}
	literal, ok := c.Args[0].(*ast.BasicLit)
	return ok && strings.HasPrefix(literal.Value, `"/proc/`)
}
