//go:build !hooks

package main

import (
	"bytes"
	"os"
	"testing"

	"ndls/internal/hook"
)

// TestProgramHasNoHooks looks into the program as users build it: the variable that lets
// tests stop a process means nothing to it.
func TestProgramHasNoHooks(t *testing.T) {
	program, err := os.ReadFile(binary)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Contains(program, []byte("NDLS_TOKEN")) {
		t.Fatal("the program does not name a variable that it has: this test finds nothing")
	}
	if bytes.Contains(program, []byte(hook.Variable)) {
		t.Errorf("the program knows %s", hook.Variable)
	}
	if bytes.Contains(program, []byte("ndls/internal/hook")) {
		t.Error("the program contains package hook")
	}
}
