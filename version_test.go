package ndls

import (
	"regexp"
	"testing"
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
	if got := contents(); !regexp.MustCompile("^[0-9a-f]{12}$").MatchString(got) || got != contents() {
		t.Errorf("this program is called %q, then %q", got, contents())
	}
}
