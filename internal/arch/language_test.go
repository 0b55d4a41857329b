package arch

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// words lists the patterns that comments leave out: they hide the unit, or who acts. Each entry
// says what to write instead.
var words = []struct {
	pattern *regexp.Regexp
	instead string
}{
	{
		regexp.MustCompile(`\b(is|are|was|were) ((after|for|into|in|at|by|up to) )?how (many|much|long|often|large|far|fast|near)\b`),
		"the unit: \"is the number of …\", \"is the time for which …\", \"returns the bytes of …\"",
	},
	{
		regexp.MustCompile(`\b(is|are) what\b`),
		"a verb that acts: \"holds\", \"returns\", \"lists\", or the name of the thing",
	},
	{
		regexp.MustCompile(`\b(is|are) (that|those) of\b`),
		"the noun once more: \"is the size of …\"; or \"equals\", \"comes from\", \"belongs to\"",
	},
	{
		regexp.MustCompile(`^\w+ (is|are) (when|where|why|by what)\b`),
		"the noun: \"is the time at which\", \"is the place of\", \"is the reason for\"",
	},
	{
		regexp.MustCompile(`\bsays? whether\b`),
		"\"reports whether\"",
	},
	{
		regexp.MustCompile(`\b(does|do) not do\b`),
		"what is missing: \"is too small\", \"has too little memory\"",
	},
	{
		regexp.MustCompile(`\b(has|have) (its|their|a) say\b`),
		"who decides: \"decides\", \"may decide\"",
	},
}

// TestComments finds patterns in comments that hide who acts.
func TestComments(t *testing.T) {
	const root = "../.."
	files := 0
	err := walk(root, func(path string, d fs.DirEntry) error {
		if name := d.Name(); d.IsDir() && path != root && (strings.HasPrefix(name, ".") || name == "build" || name == "testdata") {
			return filepath.SkipDir
		}
		if d.IsDir() || !strings.HasSuffix(path, ".go") {
			return nil
		}
		set := token.NewFileSet()
		file, err := parser.ParseFile(set, path, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil || ast.IsGenerated(file) {
			return err
		}
		files++
		rel, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		rel = filepath.ToSlash(rel)
		for _, group := range file.Comments {
			text, lines := joined(set, group)
			if strings.HasPrefix(text, "Output:") || strings.HasPrefix(text, "Unordered output:") {
				continue
			}
			for _, w := range words {
				for _, at := range w.pattern.FindAllStringIndex(text, -1) {
					t.Errorf("%s:%d: %q in a comment: write %s", rel, lines[at[0]], text[at[0]:at[1]], w.instead)
				}
			}
		}
		return nil
	})
	if err != nil || files < 500 {
		t.Fatalf("%d files, %v", files, err)
	}
}

// joined returns the text of a comment with single blanks in place of line ends, and the line of
// each of its bytes.
func joined(set *token.FileSet, group *ast.CommentGroup) (text string, lines []int) {
	var b strings.Builder
	for _, c := range group.List {
		line := set.Position(c.Slash).Line
		for i, part := range strings.Split(c.Text, "\n") {
			for _, word := range strings.Fields(strings.Trim(part, "/*")) {
				if b.Len() > 0 {
					word = " " + word
				}
				b.WriteString(word)
				for range len(word) {
					lines = append(lines, line+i)
				}
			}
		}
	}
	return b.String(), lines
}
