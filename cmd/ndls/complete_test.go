package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// completed are the values that the shells offer at the end of a command line.
func completed(t *testing.T, args ...string) (list []string, directive string) {
	t.Helper()
	r := command(t, append([]string{"__complete"}, args...)...)
	if r.code != 0 {
		t.Fatalf("status %d: %s", r.code, r.stderr)
	}
	for _, l := range strings.Split(strings.TrimSpace(r.stdout), "\n") {
		if strings.HasPrefix(l, ":") {
			return list, l
		}
		word, _, _ := strings.Cut(l, "\t")
		list = append(list, word)
	}
	t.Fatalf("no directive in %q", r.stdout)
	return nil, ""
}

func TestCompletion(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	write(t, filepath.Join(dir, "cites.parquet"), "")
	if err := os.Mkdir(filepath.Join(dir, "cora"), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("NDLS_RESULT", filepath.Join(dir, "result.json"))
	const (
		nothingElse = ":4" // no files
		open        = ":6" // no files, and no space behind it
	)
	for _, c := range []struct {
		line      string
		want      []string
		directive string
	}{
		{"run --rule ", []string{"appnp", "fastrp", "gbp", "nafs", "ndls", "ndls-reference", "s2gc", "sgc", "sign"}, nothingElse},
		{"run --rule s", []string{"s2gc", "sgc", "sign"}, nothingElse},
		{"run --label-rule c", []string{"cs", "cs-nd"}, nothingElse},
		{"run --lsi f", []string{"feature", "feature-sketch"}, nothingElse},
		{"run --precision ", []string{"float16", "float32"}, nothingElse},
		{"run --epochs ", nil, nothingElse},
		{"run --kernel a", []string{"auto", "avx2", "avx512"}, nothingElse},
		{"run --split ", []string{"random:", "share:"}, open},
		{"run --targets ", []string{"all", "labelled"}, ":0"},
		{"run --run ", nil, ":16"},
		{"run --config ", []string{"yaml", "yml"}, ":8"},
		{"run --dataset pl", []string{"planetoid:"}, open},
		{"run --dataset planetoid:c", []string{"planetoid:cites.parquet", "planetoid:cora/"}, open},
		{"run --dataset planetoid:co", []string{"planetoid:cora/"}, open},
		{"export --what s", []string{"smoothed", "soft-labels"}, nothingElse},
		{"export --format ", []string{"arrow", "csv", "npy", "npz", "parquet"}, nothingElse},
		{"tune --try ru", []string{"rule="}, open},
		{"tune --try rule=a", []string{"rule=appnp"}, open},
	} {
		list, directive := completed(t, strings.Split(c.line, " ")...)
		slices.Sort(list)
		if c.directive == "" {
			if len(list) == 0 {
				t.Errorf("%s: nothing", c.line)
			}
			continue
		}
		if !slices.Equal(list, c.want) || directive != c.directive {
			t.Errorf("%s: %q %s, want %q %s", c.line, list, directive, c.want, c.directive)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "result.json")); err == nil {
		t.Error("completion has written a result")
	}
}

// TestCompletionScripts: bash accepts the script, and it offers values.
func TestCompletionScripts(t *testing.T) {
	for _, shell := range []string{"bash", "zsh", "fish"} {
		script := expect(t, 0, "ndls", "completion", shell).stdout
		path, err := exec.LookPath(shell)
		if err != nil {
			continue
		}
		cmd := exec.Command(path, "-n", write(t, filepath.Join(t.TempDir(), shell), script))
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", shell, err, out)
		}
	}
}

// TestManualPages: each verb has a page with its options, and groff has nothing to say of any.
func TestManualPages(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "man")
	expect(t, 0, "pages", "man", "--out", dir)
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	for _, want := range []string{"ndls.1", "ndls-run.1", "ndls-bench.1", "ndls-explain.1", "ndls-datasets.7"} {
		if !slices.Contains(names, want) {
			t.Errorf("no page %s among %v", want, names)
		}
	}
	text, err := os.ReadFile(filepath.Join(dir, "ndls-run.1"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{".SH NAME\nndls\\-run", ".SH USAGE", ".SH DATASET URIS", `\fB\-\-epsilon\fR float`, "(default 0.03)", ".SH ENVIRONMENT", ".SH EXIT STATUS", "ndls\\-datasets(7)"} {
		if !strings.Contains(string(text), want) {
			t.Errorf("ndls-run.1 has no %q", want)
		}
	}
	for _, name := range names {
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		headings := map[string]bool{}
		for line := range strings.Lines(string(text)) {
			if heading, ok := strings.CutPrefix(line, ".S"); ok {
				if headings[heading[1:]] {
					t.Errorf("%s has the heading%s twice", name, strings.TrimRight(heading[1:], "\n"))
				}
				headings[heading[1:]] = true
			}
		}
	}
	groff, err := exec.LookPath("groff")
	if err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal("groff is not installed, and CI=true requires it")
		}
		t.Skip("groff is not installed")
	}
	for _, name := range names {
		cmd := exec.Command(groff, "-K", "utf8", "-T", "utf8", "-man", "-ww", filepath.Join(dir, name))
		var out, errs strings.Builder
		cmd.Stdout, cmd.Stderr = &out, &errs
		if err := cmd.Run(); err != nil || errs.String() != "" {
			t.Errorf("%s: %v\n%s", name, err, errs.String())
		}
		if out.Len() < 500 {
			t.Errorf("%s has %d characters", name, out.Len())
		}
	}
}
