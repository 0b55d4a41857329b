package ndls

import (
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"ndls/internal/testprogram"
)

// Two programs of one version are told apart by their commits, and by what they hold where
// a commit does not say that.
func TestBuildsAreToldApart(t *testing.T) {
	const a, b = "0123456789abcdef0123", "0123456789acbdef0123"
	for _, tc := range []struct {
		versions map[string]string
		holds    string
		want     string
	}{
		{map[string]string{"ndls": "1.0"}, "c0ffee", "1.0, program c0ffee"},
		{map[string]string{"ndls": "1.0", "commit": a}, "c0ffee", "1.0, commit 0123456789ab"},
		{map[string]string{"ndls": "1.0", "commit": b, "modified": "false"}, "c0ffee", "1.0, commit 0123456789ac"},
		{map[string]string{"ndls": "1.0", "commit": b, "modified": "true"}, "c0ffee", "1.0, commit 0123456789ac with changes, program c0ffee"},
		{map[string]string{"ndls": "1.0", "commit": b, "modified": "true"}, "decade", "1.0, commit 0123456789ac with changes, program decade"},
	} {
		if got := buildOf(tc.versions, func() string { return tc.holds }); got != tc.want {
			t.Errorf("%v: %q, want %q", tc.versions, got, tc.want)
		}
	}
	if got := contents(); !regexp.MustCompile("^[0-9a-zA-Z_-]{12}$").MatchString(got) || got != contents() {
		t.Errorf("this program is called %q, then %q", got, contents())
	}
}

// A program is named by the build ID that the go command shows, and by its hash where it has none.
func TestBuildID(t *testing.T) {
	program, err := testprogram.Build()
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(program)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	shown, err := exec.Command("go", "tool", "buildid", program).Output()
	if err != nil {
		t.Fatal(err)
	}
	parts := strings.Split(strings.TrimSpace(string(shown)), "/")
	if want := parts[len(parts)-1][:contentsLength]; buildID(f) != want {
		t.Errorf("build ID %q, want %q of %s", buildID(f), want, shown)
	}
	if id := buildID(strings.NewReader("no program")); id != "" {
		t.Errorf("a text has the build ID %q", id)
	}
}
