// Command mutants shows that tests notice mistakes. It makes one small mistake after the other in a copy
// of a source file, and runs the tests of the packages that the list names for it.
//
//	go run -C bench ./mutants                 # all mutations, as a table
//	go run -C bench ./mutants -list           # what there is; runs nothing
//	go run -C bench ./mutants -only 'lease'
//
// A mutation is caught if a test fails, or if the run of the tests ends by a panic or its timeout. The exit
// status is 1 if a mutation survives and the list gives no reason for that, or if the list is wrong: a text
// that does not occur exactly once, a test that there is not, a mutation that does not compile.
//
// No source file changes: the go command reads the copy through -overlay.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"go/parser"
	"go/token"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"
)

// mutant is one mistake.
type mutant struct {
	area, file string // the file from the root of the repository
	what       string // the mistake in words
	from, to   string // from occurs exactly once in the file
	// tests are the packages that are expected to notice it, that of the file first, or the nearest one.
	// Test names behind the package limit it to these.
	tests []string
	// survives says why no test notices it; it is empty where one has to.
	survives string
}

func main() {
	only := flag.String("only", "", "regular expression: mutations whose area, file or text matches")
	list := flag.Bool("list", false, "print the mutations and check that their texts occur once; run nothing")
	all := flag.Bool("all", false, "try what survives on the tests of all packages")
	timeout := flag.Duration("timeout", 3*time.Minute, "time for the tests of one package")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	ok, err := run(ctx, *only, *list, *all, *timeout)
	if err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
	}
	if err != nil || !ok {
		os.Exit(1)
	}
}

func run(ctx context.Context, only string, list, all bool, timeout time.Duration) (ok bool, err error) {
	pattern, err := regexp.Compile(only)
	if err != nil {
		return false, err
	}
	root, err := findRoot()
	if err != nil {
		return false, err
	}
	if err := check(root, mutants); err != nil {
		return false, err
	}
	chosen := slices.DeleteFunc(slices.Clone(mutants), func(m mutant) bool {
		return !pattern.MatchString(m.area + " " + m.file + " " + m.what)
	})
	if list {
		for _, m := range chosen {
			fmt.Printf("%s: %s: %s (%s)\n", m.area, m.file, m.what, strings.Join(m.tests, "; "))
		}
		return true, nil
	}
	folder, err := os.MkdirTemp("", "mutants")
	if err != nil {
		return false, err
	}
	defer os.RemoveAll(folder)
	r := runner{root: root, folder: folder, timeout: timeout, all: all}
	return r.table(ctx, os.Stdout, chosen)
}

// findRoot returns the root of the repository, in whichever folder of it the command runs.
func findRoot() (string, error) {
	if out, err := exec.Command("git", "rev-parse", "--show-toplevel").Output(); err == nil {
		return strings.TrimSpace(string(out)), nil
	}
	at, err := os.Getwd()
	for ; err == nil && at != filepath.Dir(at); at = filepath.Dir(at) {
		if text, err := os.ReadFile(filepath.Join(at, "go.mod")); err == nil && bytes.HasPrefix(text, []byte("module ndls\n")) {
			return at, nil
		}
	}
	return "", errors.Join(errors.New("no folder above this one has the module ndls"), err)
}

// check reports every entry of the list that does not fit the source files.
func check(root string, list []mutant) error {
	var errs []error
	for _, m := range list {
		wrong := func(format string, a ...any) {
			errs = append(errs, fmt.Errorf("%s: %s: %s", m.file, m.what, fmt.Sprintf(format, a...)))
		}
		text, err := os.ReadFile(filepath.Join(root, m.file))
		if err != nil {
			errs = append(errs, err)
			continue
		}
		if n := strings.Count(string(text), m.from); n != 1 {
			wrong("its text occurs %d times", n)
		} else if _, err := parser.ParseFile(token.NewFileSet(), m.file, m.mutated(text), parser.SkipObjectResolution); err != nil {
			wrong("%v", err)
		}
		if len(m.tests) == 0 {
			wrong("no package is expected to notice it")
		}
		for _, t := range m.tests {
			pkg, names, _ := strings.Cut(t, " ")
			there, err := testsOf(filepath.Join(root, pkg))
			if err != nil {
				errs = append(errs, err)
			}
			for _, name := range strings.Fields(names) {
				if !slices.Contains(there, name) {
					wrong("%s has no test %s", pkg, name)
				}
			}
		}
	}
	return errors.Join(errs...)
}

var testFunc = regexp.MustCompile(`(?m)^func (Test\w+)\(`)

// testsOf lists the tests of a folder.
func testsOf(folder string) (names []string, err error) {
	files, err := filepath.Glob(filepath.Join(folder, "*_test.go"))
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		for _, match := range testFunc.FindAllSubmatch(text, -1) {
			names = append(names, string(match[1]))
		}
	}
	return names, err
}

func (m mutant) mutated(text []byte) []byte {
	return bytes.Replace(text, []byte(m.from), []byte(m.to), 1)
}

// runner tries mutants, one at a time.
type runner struct {
	root, folder string
	timeout      time.Duration
	all          bool // what survives is tried on all packages
}

// table tries the mutants and writes a line of a Markdown table for each, and then the numbers of each
// area. It reports whether all went as the list says; what it could not try is in the error.
func (r *runner) table(ctx context.Context, w io.Writer, list []mutant) (ok bool, err error) {
	ok = true
	var areas []string
	caught, number := map[string]int{}, map[string]int{}
	begun := time.Now()
	fmt.Fprintln(w, "| area | file | mutation | caught by | s |")
	fmt.Fprintln(w, "|---|---|---|---|---:|")
	for _, m := range list {
		start := time.Now()
		by, failed := r.try(ctx, m)
		if ctx.Err() != nil {
			return false, context.Cause(ctx)
		}
		if failed != nil {
			err = errors.Join(err, fmt.Errorf("%s: %s: %w", m.file, m.what, failed))
			continue
		}
		if !slices.Contains(areas, m.area) {
			areas = append(areas, m.area)
		}
		number[m.area]++
		switch {
		case by == "" && m.survives == "":
			by, ok = "**survives**", false
		case by == "":
			by = "survives: " + m.survives
		case m.survives != "":
			by, ok = by+", though the list says that it survives", false
			caught[m.area]++
		default:
			caught[m.area]++
		}
		fmt.Fprintf(w, "| %s | `%s` | %s | %s | %.0f |\n", m.area, m.file, m.what, by, time.Since(start).Seconds())
	}
	fmt.Fprint(w, "\n| area | mutations | caught |\n|---|---:|---:|\n")
	total := 0
	for _, area := range areas {
		fmt.Fprintf(w, "| %s | %d | %d |\n", area, number[area], caught[area])
		total += caught[area]
	}
	fmt.Fprintf(w, "| all, in %.0f s | %d | %d |\n", time.Since(begun).Seconds(), len(list), total)
	return ok, err
}

// try returns the package and the test that notice the mutant, or "" if none does.
func (r *runner) try(ctx context.Context, m mutant) (by string, err error) {
	text, err := os.ReadFile(filepath.Join(r.root, m.file))
	if err != nil {
		return "", err
	}
	file, overlay := filepath.Join(r.folder, filepath.Base(m.file)), filepath.Join(r.folder, "overlay.json")
	if err := os.WriteFile(file, m.mutated(text), 0o600); err != nil {
		return "", err
	}
	replace, err := json.Marshal(map[string]any{"Replace": map[string]string{filepath.Join(r.root, m.file): file}})
	if err == nil {
		err = os.WriteFile(overlay, replace, 0o600)
	}
	if err != nil {
		return "", err
	}
	for _, t := range m.tests {
		pkg, names, some := strings.Cut(t, " ")
		var args []string
		if some {
			args = append(args, "-run=^("+strings.Join(strings.Fields(names), "|")+")$")
		}
		draws, err := r.draws(pkg)
		if err == nil {
			by, err = r.test(ctx, overlay, []string{pkg}, draws, args...)
		}
		if by != "" || err != nil {
			return by, err
		}
	}
	if !r.all {
		return "", nil
	}
	plain, drawing, err := r.packages()
	if err == nil {
		by, err = r.test(ctx, overlay, plain, false)
	}
	if by != "" || err != nil {
		return by, err
	}
	return r.test(ctx, overlay, drawing, true)
}

// draws reports whether tests of a package draw their cases by rapid, which would keep those that fail in the
// folder of the package.
func (r *runner) draws(pkg string) (bool, error) {
	files, err := filepath.Glob(filepath.Join(r.root, pkg, "*_test.go"))
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil || bytes.Contains(text, []byte("pgregory.net/rapid")) {
			return err == nil, err
		}
	}
	return false, err
}

// packages lists the packages of the program that have tests, those apart that draw their cases.
func (r *runner) packages() (plain, drawing []string, err error) {
	list := exec.Command("go", "list", "-f", "{{if or .TestGoFiles .XTestGoFiles}}{{.Dir}}{{end}}", "./...")
	list.Dir = r.root
	out, err := list.Output()
	for _, folder := range strings.Fields(string(out)) {
		pkg, _ := filepath.Rel(r.root, folder)
		draws, err := r.draws(pkg)
		switch {
		case err != nil:
			return nil, nil, err
		case draws:
			drawing = append(drawing, pkg)
		default:
			plain = append(plain, pkg)
		}
	}
	return plain, drawing, err
}

// test runs go test on packages with the overlay. draws says that all of them draw their cases.
func (r *runner) test(ctx context.Context, overlay string, packages []string, draws bool, args ...string) (by string, err error) {
	args = append([]string{
		"test", "-json", "-overlay=" + overlay, "-tags=small", "-short", "-vet=off", "-count=1", "-failfast", "-timeout=" + r.timeout.String(),
	}, args...)
	for _, pkg := range packages {
		args = append(args, "./"+pkg)
	}
	if draws {
		args = append(args, "-args", "-rapid.nofailfile")
	}
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir, cmd.Env = r.root, append(os.Environ(), "CGO_ENABLED=0")
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, failed := cmd.Output()
	if ctx.Err() != nil {
		return "", context.Cause(ctx)
	}
	by, err = outcome(out)
	if err == nil && (by == "") != (failed == nil) {
		err = fmt.Errorf("go test: %w: %s", failed, errs.String())
	}
	return by, err
}

// event is a line of go test -json.
type event struct{ Action, Package, Test, Output, FailedBuild string }

// outcome returns the package and the test that fail first, or "" if all tests pass.
func outcome(out []byte) (by string, err error) {
	ran, ended := false, ""
	var built strings.Builder
	for dec := json.NewDecoder(bytes.NewReader(out)); ; {
		var e event
		if err := dec.Decode(&e); err == io.EOF {
			break
		} else if err != nil {
			return "", fmt.Errorf("go test -json: %w", err)
		}
		pkg := strings.TrimPrefix(e.Package, "ndls/")
		switch {
		case e.Action == "build-output":
			built.WriteString(e.Output)
		case e.Action == "build-fail" || e.FailedBuild != "":
			return "", fmt.Errorf("it is not built:\n%s", built.String())
		case e.Action == "run":
			ran = true
		case e.Action == "output" && strings.HasPrefix(e.Output, "panic: test timed out"):
			ended = " (timeout)"
		case e.Action == "output" && ended == "" && (strings.HasPrefix(e.Output, "panic: ") || strings.HasPrefix(e.Output, "fatal error: ")):
			ended = " (panic)"
		case e.Action == "fail" && by == "" && e.Test != "":
			by = pkg + " " + e.Test
		case e.Action == "fail" && by == "":
			by = pkg
		}
	}
	if by != "" {
		return by + ended, nil
	}
	if !ran {
		return "", errors.New("no test ran")
	}
	return "", nil
}
