package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ndls"
)

// Every file of the repository has the form of the template, and the places of the version
// are where they are looked for and agree.
func TestRepository(t *testing.T) {
	n, err := read("..")
	if err != nil {
		t.Fatal(err)
	}
	text := strings.TrimPrefix(n.render(), n.introduction)
	if got := strings.Count("\n"+text, "\n- "); got != len(n.changes) {
		t.Errorf("%d changes are listed, and there are %d", got, len(n.changes))
	}
	for _, p := range places {
		text, err := os.ReadFile(filepath.Join("..", p.file))
		if err != nil {
			t.Fatal(err)
		}
		if want := p.before + ndls.Version + p.after; !strings.Contains(string(text), want) {
			t.Errorf("%s has no %q", p.file, want)
		}
	}
}

func TestParse(t *testing.T) {
	c, err := parse("Kind: Fix\n\nIt works\nagain.\n\nIt did not.\n\n    ndls run\n")
	if err != nil {
		t.Fatal(err)
	}
	const want = "### Fixes\n\n- It works again.\n\n  It did not.\n\n      ndls run\n\n"
	if got := (notes{changes: []change{c}}).render(); got != want {
		t.Errorf("%q, want %q", got, want)
	}
	for text, want := range map[string]string{
		"It works.\n":                   "must name a kind",
		"Kind: Enhancement\n\nFaster\n": "must name a kind",
		"Kind: Fix\n":                   "says nothing",
		"":                              "must name a kind",
	} {
		if _, err := parse(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

func TestLinks(t *testing.T) {
	for _, name := range []string{"a.md", opening} {
		root := repository(t, map[string]string{name: "Kind: Fix\n\nSee [a](../a.md).\n"})
		if _, err := read(root); err == nil || !strings.Contains(err.Error(), name+" has a link to a file") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// repository is one with all places of the version and these files of changes.
func repository(t *testing.T, changes map[string]string) string {
	t.Helper()
	root := t.TempDir()
	files := map[string]string{unreleased + "/" + template: "Kind: one of all\n"}
	for _, p := range places {
		files[p.file] += p.before + "0.1.0-dev" + p.after
	}
	for name, text := range changes {
		files[unreleased+"/"+name] = text
	}
	for name, text := range files {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

func content(t *testing.T, elements ...string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(elements...))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestRelease(t *testing.T) {
	root := repository(t, map[string]string{"b.md": "Kind: Fix\n\nTwo.\n", "a.md": "Kind: Fix\n\nOne.\n\nMore.\n", "c.md": "Kind: Feature\n\nThree.\n", opening: "The first one.\n"})
	if err := makeRelease(root, "0.1.0"); err != nil {
		t.Fatal(err)
	}
	const first = "The first one.\n\n### Features\n\n- Three.\n\n### Fixes\n\n- One.\n\n  More.\n\n- Two.\n"
	if got := content(t, root, folder, "0.1.0.md"); got != first {
		t.Errorf("%q", got)
	}
	if left, _ := filepath.Glob(filepath.Join(root, unreleased, "*")); len(left) != 1 {
		t.Errorf("left are %q", left)
	}
	for _, p := range places {
		if !strings.Contains(content(t, root, p.file), p.before+"0.1.0"+p.after) {
			t.Errorf("%s has not the version", p.file)
		}
	}
	if err := makeRelease(root, "0.1.1"); err == nil || !strings.Contains(err.Error(), "nothing to release") {
		t.Errorf("a release without changes: %v", err)
	}
	if err := beginVersion(root, "0.2.0-dev"); err != nil {
		t.Fatal(err)
	}

	if err := os.WriteFile(filepath.Join(root, unreleased, "d.md"), []byte("Kind: Security\n\nFour.\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := makeRelease(root, "0.1.0"); err == nil || !strings.Contains(err.Error(), "already") {
		t.Errorf("the same release twice: %v", err)
	}
	if err := makeRelease(root, "0.2.0"); err != nil {
		t.Fatal(err)
	}
	for version, want := range map[string]string{"0.2.0": "### Security\n\n- Four.\n", "0.1.0": first} {
		if got := content(t, root, folder, version+".md"); got != want {
			t.Errorf("notes of %s are %q, want %q", version, got, want)
		}
	}
}

// A first release may have an introduction alone.
func TestReleaseOfAnIntroduction(t *testing.T) {
	root := repository(t, map[string]string{opening: "The first one.\n\n- It works.\n"})
	if err := makeRelease(root, "1.0.0"); err != nil {
		t.Fatal(err)
	}
	if got, want := content(t, root, folder, "1.0.0.md"), "The first one.\n\n- It works.\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestVersionsThatAreNone(t *testing.T) {
	root := repository(t, map[string]string{"a.md": "Kind: Fix\n\nOne.\n"})
	for _, version := range []string{"v0.1.0", "0.1", "0.1.0-dev", "one"} {
		if err := makeRelease(root, version); err == nil {
			t.Errorf("%s is released", version)
		}
	}
	if err := beginVersion(root, "0.2.0"); err == nil {
		t.Error("0.2.0 is worked on")
	}
	if got := content(t, root, "version.go"); !strings.Contains(got, "0.1.0-dev") {
		t.Errorf("version.go is %q", got)
	}
}

// Where a place is missing, nothing is written.
func TestVersionHasNoPlace(t *testing.T) {
	root := repository(t, map[string]string{"a.md": "Kind: Fix\n\nOne.\n"})
	chart := filepath.Join(root, places[len(places)-1].file)
	if err := os.WriteFile(chart, []byte("name: ndls\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := makeRelease(root, "0.1.0"); err == nil || !strings.Contains(err.Error(), "Chart.yaml") {
		t.Errorf("%v", err)
	}
	if got := content(t, root, "version.go"); !strings.Contains(got, "0.1.0-dev") {
		t.Errorf("version.go is %q", got)
	}
	if _, err := os.Stat(filepath.Join(root, folder, "0.1.0.md")); err == nil {
		t.Error("there are notes")
	}
}
