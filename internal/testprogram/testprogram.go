// Package testprogram builds ndls for the tests that start it as a process.
//
// All test programs of one build use one file, build/test/ndls or build/test/ndls-small:
// the first links it, and the others find it up to date. It has the points at which tests stop
// a process (tag "hooks"), and the geometry of the test program that asks for it (tag "small").
package testprogram

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"

	"ndls/internal/packed"
)

// Small reports whether this is the geometry for tests: strips and blocks of fewer rows than
// those of users.
const Small = packed.StripShift < packed.RowBits

// Build returns the path of the program. It builds the program if the source has changed, while
// other test programs wait.
func Build() (string, error) {
	_, file, _, _ := runtime.Caller(0)
	root := filepath.Join(filepath.Dir(file), "..", "..")
	name, tags := "ndls", "grpcnotrace,tinygo,hooks"
	if Small {
		name, tags = name+"-small", tags+",small"
	}
	path := filepath.Join(root, "build", "test", name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return "", err
	}
	lock, err := os.OpenFile(path+".lock", os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return "", err
	}
	defer lock.Close() // which ends the lock
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		return "", err
	}
	cmd := exec.Command("go", "build", "-tags="+tags, "-buildvcs=false", "-ldflags=-s -w", "-o", path, "./cmd/ndls")
	cmd.Dir, cmd.Env = root, append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%s: %w\n%s", strings.Join(cmd.Args, " "), err, out)
	}
	return path, nil
}
