package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"ndls"
)

// TestLab starts a script in place of the other program: it gets the arguments, and the verb has
// its status. Without that program, the error says how to build it.
func TestLab(t *testing.T) {
	t.Setenv("PATH", "/usr/bin:/bin")
	if path, err := exec.LookPath(labProgram); err == nil {
		t.Skip(path + " is installed")
	}
	for _, verb := range []string{"bench", "reproduce"} {
		expect(t, ndls.ExitUsage, "make lab", verb, "karate", "--out", "x")
	}
	dir := t.TempDir()
	script := write(t, filepath.Join(dir, labProgram), "#!/bin/sh\nprintf '<%s>' \"$@\"\nexit 5\n")
	if err := os.Chmod(script, 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+":/usr/bin:/bin")
	expect(t, 5, "<bench><kernel><--json><--threads><2>", "bench", "kernel", "--json", "--threads", "2")
	expect(t, 5, "<reproduce><--help>", "reproduce", "--help")
}
