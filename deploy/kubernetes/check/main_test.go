package check

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// binary is ndls, built by the line of the Dockerfile.
var binary string

func TestMain(m *testing.M) {
	os.Exit(func() int {
		dir, err := os.MkdirTemp("", "ndls-check")
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer os.RemoveAll(dir)
		binary = filepath.Join(dir, "ndls")
		if out, err := build(binary); err != nil {
			fmt.Fprintf(os.Stderr, "%v\n%s", err, out)
			return 1
		}
		return m.Run()
	}())
}

// build runs the Dockerfile's build, from the root of the repository, to path.
func build(path string) (output []byte, err error) {
	dockerfile, err := os.ReadFile("../Dockerfile")
	if err != nil {
		return nil, err
	}
	line := regexp.MustCompile(`(?m)^RUN (CGO_ENABLED=0 go build .*) -o /ndls (\S+)$`).FindStringSubmatch(string(dockerfile))
	if line == nil || !strings.Contains(string(dockerfile), "\nENTRYPOINT [\"/ndls\"]\n") {
		return nil, fmt.Errorf("the Dockerfile does not build and start /ndls")
	}
	cmd := exec.Command("sh", "-c", line[1]+` -o "$0" `+line[2], path)
	cmd.Dir = "../../.."
	return cmd.CombinedOutput()
}

// run executes ndls to its end and returns what it printed.
func run(t testing.TB, args ...string) string {
	t.Helper()
	cmd := exec.Command(binary, args...)
	var errs strings.Builder
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("ndls %s: %v\n%s", strings.Join(args, " "), err, errs.String())
	}
	return string(out)
}
