package dataset

import (
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestPipes finds the pipes that a URI names, and puts files in their place.
func TestPipes(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"a", "b,c.csv"} {
		if err := syscall.Mkfifo(filepath.Join(dir, name), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for uri, want := range map[string]string{
		"edges:%s/a":                        "edges:/t/0%25",
		"edges:%s/b,c.csv?labels=%s/a#y":    "edges:/t/0%25?labels=/t/1%25#y",
		"table:x.csv,%s/a?nodes=%s/a,y.csv": "table:x.csv,/t/0%25?nodes=/t/0%25,y.csv",
		"edges:x.csv?features=%s/a&nodes=7": "edges:x.csv?features=/t/0%25&nodes=7",
		"npz:%s/a?split=1":                  "npz:/t/0%25?split=1",
		"table:x.csv?features=%s/a":         "table:x.csv?features=%s/a", // a column
		"edges:x.csv?src=%s/a&dst=b":        "edges:x.csv?src=%s/a&dst=b",
		"pyg:%s/a":                          "pyg:%s/a",
		"edges:%s":                          "edges:%s",
		"karate:":                           "karate:",
	} {
		uri, want := strings.ReplaceAll(uri, "%s", dir), strings.ReplaceAll(want, "%s", dir)
		files := map[Pipe]string{}
		for i, p := range Pipes(uri) {
			files[p] = "/t/" + string(rune('0'+i)) + "%"
		}
		if got := WithCopies(uri, files); got != want {
			t.Errorf("%s is %s, want %s", uri, got, want)
		}
	}
}
