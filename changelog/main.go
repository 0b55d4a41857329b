// Command changelog makes the notes of a version from the files of changelog/unreleased. Each file
// is about one change, except INTRODUCTION.md, which comes first if it is there:
//
//	go run ./changelog                          prints the notes of the next version
//	go run ./changelog -release 1.0.0           writes them to changelog/1.0.0.md, and removes the files
//	go run ./changelog -begin 1.1.0-dev         sets the version that is worked on
//
// The last two write the version where programs read it: version.go and the Helm chart.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

const (
	folder     = "changelog" // has the notes of each released version, VERSION.md
	unreleased = folder + "/unreleased"
	template   = "TEMPLATE.md"
	opening    = "INTRODUCTION.md"
)

// kinds lists the kinds of a change, in the order of the notes.
var kinds = []struct{ name, heading string }{
	{"Security", "Security"},
	{"Change", "Changes"},
	{"Feature", "Features"},
	{"Fix", "Fixes"},
}

// places are the files that hold the version, each with what stands around it.
var places = []struct{ file, before, after string }{
	{"version.go", `var Version = "`, `"`},
	{"deploy/helm/ndls/Chart.yaml", "\nversion: ", "\n"},
	{"deploy/helm/ndls/Chart.yaml", "\nappVersion: ", "\n"},
}

// release is the form of a released version, and development that of one that is worked on.
var (
	released    = regexp.MustCompile(`^\d+\.\d+\.\d+$`)
	development = regexp.MustCompile(`^\d+\.\d+\.\d+-dev$`)
)

func main() {
	release := flag.String("release", "", "release this `version`")
	begin := flag.String("begin", "", "work on this `version`")
	flag.Parse()
	var err error
	switch {
	case flag.NArg() > 0:
		err = fmt.Errorf("%q is no option", flag.Arg(0))
	case *release != "":
		err = makeRelease(".", *release)
	case *begin != "":
		err = beginVersion(".", *begin)
	default:
		var n notes
		if n, err = read("."); err == nil {
			fmt.Print(n.render())
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "changelog:", err)
		os.Exit(1)
	}
}

// change is the content of one file.
type change struct {
	kind, sentence string
	body           []string // paragraphs
}

// notes are the notes of the next version.
type notes struct {
	introduction string
	changes      []change // in the order of the names of their files
	paths        []string // all files that they come from
}

// read reads the notes of what has changed since the last release.
func read(root string) (notes, error) {
	var n notes
	paths, err := filepath.Glob(filepath.Join(root, unreleased, "*"))
	if err != nil {
		return n, err
	}
	for _, path := range paths {
		if filepath.Base(path) == template {
			continue
		}
		b, err := os.ReadFile(path)
		if err != nil {
			return n, err
		}
		text := string(b)
		if strings.Contains(text, "](.") {
			return n, fmt.Errorf("%s has a link to a file, which would lead nowhere from the notes of a release: name the file", path)
		}
		n.paths = append(n.paths, path)
		if filepath.Base(path) == opening {
			n.introduction = strings.TrimSpace(text) + "\n\n"
			continue
		}
		c, err := parse(text)
		if err != nil {
			return n, fmt.Errorf("%s: %w; %s is the form", path, err, filepath.Join(unreleased, template))
		}
		n.changes = append(n.changes, c)
	}
	return n, nil
}

// parse reads a kind, a sentence and further paragraphs.
func parse(text string) (change, error) {
	paragraphs := strings.Split(strings.TrimSpace(text), "\n\n")
	kind, ok := strings.CutPrefix(paragraphs[0], "Kind: ")
	if !ok || !slices.ContainsFunc(kinds, func(k struct{ name, heading string }) bool { return k.name == kind }) {
		return change{}, fmt.Errorf("the first line is %q, and must name a kind of change", paragraphs[0])
	}
	if len(paragraphs) < 2 {
		return change{}, errors.New("it says nothing after its kind")
	}
	return change{kind: kind, sentence: strings.ReplaceAll(paragraphs[1], "\n", " "), body: paragraphs[2:]}, nil
}

// render lists changes by their kind.
func (n notes) render() string {
	var b strings.Builder
	b.WriteString(n.introduction)
	for _, k := range kinds {
		first := true
		for _, c := range n.changes {
			if c.kind != k.name {
				continue
			}
			if first {
				fmt.Fprintf(&b, "### %s\n\n", k.heading)
				first = false
			}
			fmt.Fprintf(&b, "- %s\n", c.sentence)
			for _, p := range c.body {
				fmt.Fprintf(&b, "\n  %s\n", strings.ReplaceAll(p, "\n", "\n  "))
			}
			b.WriteString("\n")
		}
	}
	return b.String()
}

// makeRelease writes the notes of a version, and removes the files that they come from.
func makeRelease(root, version string) error {
	if !released.MatchString(version) {
		return fmt.Errorf("a version that is released is three numbers, such as 0.1.0, and not %q", version)
	}
	n, err := read(root)
	if err != nil {
		return err
	}
	if len(n.paths) == 0 {
		return fmt.Errorf("nothing is in %s: there is nothing to release", unreleased)
	}
	path := filepath.Join(root, folder, version+".md")
	if _, err := os.Stat(path); err == nil {
		return fmt.Errorf("%s is there already", path)
	} else if !errors.Is(err, os.ErrNotExist) {
		return err
	}
	// The version first: where a file lacks its place, nothing else has changed.
	if err := setVersion(root, version); err != nil {
		return err
	}
	if err := os.WriteFile(path, []byte(strings.TrimRight(n.render(), "\n")+"\n"), 0o644); err != nil {
		return err
	}
	for _, path := range n.paths {
		if err := os.Remove(path); err != nil {
			return err
		}
	}
	return nil
}

func beginVersion(root, version string) error {
	if !development.MatchString(version) {
		return fmt.Errorf("a version that is worked on is three numbers and -dev, such as 0.2.0-dev, and not %q", version)
	}
	return setVersion(root, version)
}

// setVersion writes the version to all of its places, or to none.
func setVersion(root, version string) error {
	texts := map[string]string{}
	for _, p := range places {
		text, ok := texts[p.file]
		if !ok {
			b, err := os.ReadFile(filepath.Join(root, p.file))
			if err != nil {
				return err
			}
			text = string(b)
		}
		_, end, found := strings.Cut(text, p.before)
		old, _, closed := strings.Cut(end, p.after)
		if !found || !closed {
			return fmt.Errorf("%s has no %q", p.file, p.before)
		}
		texts[p.file] = strings.Replace(text, p.before+old+p.after, p.before+version+p.after, 1)
	}
	for name, text := range texts {
		if err := os.WriteFile(filepath.Join(root, name), []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}
