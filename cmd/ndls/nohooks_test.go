package main

import (
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// TestProgramHasNoHooks lists the packages of the program as users build it: none lets a test stop
// a process, or belongs to tests otherwise.
func TestProgramHasNoHooks(t *testing.T) {
	list := exec.Command("go", "list", "-deps", ".")
	list.Env = append(os.Environ(), "GOFLAGS=")
	out, err := list.Output()
	if err != nil {
		t.Fatal(err)
	}
	packages := strings.Fields(string(out))
	if !slices.Contains(packages, "ndls/internal/vfs") {
		t.Fatal("the program lacks a package that it has: this test finds nothing")
	}
	for _, p := range packages {
		if p == "ndls/internal/hook" || strings.HasPrefix(p, "ndls/") && (strings.HasSuffix(p, "test") || strings.HasSuffix(p, "testprogram")) {
			t.Errorf("the program contains package %s", p)
		}
	}
}
