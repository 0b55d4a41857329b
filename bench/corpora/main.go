// Command corpora brings inputs that fuzzing has found into the testdata of the packages that they test: of each target the
// smallest ones that reach code which its other inputs do not.
//
//	corpora [-only PATTERN] FOLDER
//
// FOLDER has a folder for each package, and in it one for each target, as make fuzz leaves them. Inputs that fail are named, and
// are kept: mend what they show.
package main

import (
	"cmp"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

const (
	// most is the number of inputs that are added to a target, each of at most longest bytes. tried
	// is the number of inputs that are tried.
	most    = 20
	longest = 2048
	tried   = 300
)

func main() {
	only := flag.String("only", ".", "a pattern of targets")
	flag.Parse()
	if err := run(flag.Arg(0), *only); err != nil {
		fmt.Fprintln(os.Stderr, "corpora:", err)
		os.Exit(1)
	}
}

func run(folder, only string) error {
	pattern, err := regexp.Compile(only)
	if err != nil {
		return err
	}
	found := map[string][]string{} // inputs by the folder of their target
	if err := filepath.WalkDir(folder, func(path string, e fs.DirEntry, err error) error {
		if err == nil && e.Type().IsRegular() && pattern.MatchString(filepath.Base(filepath.Dir(path))) {
			found[filepath.Dir(path)] = append(found[filepath.Dir(path)], path)
		}
		return err
	}); err != nil {
		return err
	}
	for dir, inputs := range found {
		// FOLDER/PACKAGE/TARGET/TARGET: the fuzzer adds the last part.
		pkg, err := filepath.Rel(folder, filepath.Dir(filepath.Dir(dir)))
		if err != nil {
			return err
		}
		kept, err := keep(pkg, filepath.Base(dir), inputs)
		if err != nil {
			return fmt.Errorf("%s: %w", dir, err)
		}
		fmt.Printf("%s %s: %d of %d inputs\n", pkg, filepath.Base(dir), kept, len(inputs))
	}
	return nil
}

// keep copies inputs of a target into the testdata of a package, and returns how many.
func keep(pkg, target string, inputs []string) (kept int, err error) {
	work, err := os.MkdirTemp("", "corpora-")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(work)
	program := filepath.Join(work, "test")
	if out, err := exec.Command("go", "test", "-c", "-cover", "-coverpkg=./"+strings.Split(pkg, "/")[0]+"/...", "-o", program, "./"+pkg).CombinedOutput(); err != nil {
		return 0, fmt.Errorf("%w\n%s", err, out)
	}
	reached := map[string]bool{}
	// reach runs the target, or one input of it, and reports whether that reaches more.
	reach := func(test string) (more, failed bool, err error) {
		profile := filepath.Join(work, "profile")
		cmd := exec.Command(program, "-test.run", test, "-test.coverprofile", profile)
		cmd.Dir = pkg
		if err := cmd.Run(); err != nil {
			return true, true, nil
		}
		text, err := os.ReadFile(profile)
		for line := range strings.Lines(string(text)) {
			if block, count, ok := strings.Cut(strings.TrimSpace(line), " "); ok && !strings.HasSuffix(count, " 0") && !reached[block] {
				reached[block], more = true, true
			}
		}
		return more, false, err
	}
	if _, failed, err := reach("^" + target + "$"); err != nil || failed {
		return 0, fmt.Errorf("the inputs that are there fail: %w", cmp.Or(err, fs.ErrInvalid))
	}
	sizes := map[string]int64{}
	for _, path := range inputs {
		if info, err := os.Stat(path); err == nil && info.Size() <= longest {
			sizes[path] = info.Size()
		}
	}
	inputs = slices.DeleteFunc(inputs, func(path string) bool { return sizes[path] == 0 })
	slices.SortFunc(inputs, func(a, b string) int { return cmp.Or(cmp.Compare(sizes[a], sizes[b]), strings.Compare(a, b)) })
	to := filepath.Join(pkg, "testdata", "fuzz", target)
	if err := os.MkdirAll(to, 0o755); err != nil {
		return 0, err
	}
	for _, path := range inputs[:min(len(inputs), tried)] {
		if kept == most {
			break
		}
		name := filepath.Base(path)
		text, err := os.ReadFile(path)
		if err == nil {
			err = os.WriteFile(filepath.Join(to, name), text, 0o644)
		}
		if err != nil {
			return kept, err
		}
		more, failed, err := reach("^" + target + "$/^" + name + "$")
		switch {
		case err != nil:
			return kept, err
		case failed:
			fmt.Printf("%s %s: the input %s fails\n", pkg, target, name)
		}
		if !more {
			if err := os.Remove(filepath.Join(to, name)); err != nil {
				return kept, err
			}
			continue
		}
		kept++
	}
	_ = os.Remove(to) // where it is empty
	return kept, nil
}
