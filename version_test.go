package ndls

import "testing"

// Two programs of one version are told apart by their commits.
func TestBuildsAreToldApart(t *testing.T) {
	const a, b = "0123456789abcdef0123", "0123456789acbdef0123"
	for _, tc := range []struct {
		versions map[string]string
		want     string
	}{
		{map[string]string{"ndls": "1.0"}, "1.0"},
		{map[string]string{"ndls": "1.0", "commit": a}, "1.0, commit 0123456789ab"},
		{map[string]string{"ndls": "1.0", "commit": b, "modified": "false"}, "1.0, commit 0123456789ac"},
		{map[string]string{"ndls": "1.0", "commit": b, "modified": "true"}, "1.0, commit 0123456789ac with changes"},
	} {
		if got := buildOf(tc.versions); got != tc.want {
			t.Errorf("%v: %q, want %q", tc.versions, got, tc.want)
		}
	}
}
