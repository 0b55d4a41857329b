package rundir

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestDiscard removes what is made and the folders that it leaves empty, and nothing else.
func TestDiscard(t *testing.T) {
	made := func(name string) bool { return strings.HasPrefix(name, "journal/") || name == "run.json" }
	for _, c := range []struct{ files, left []string }{
		{[]string{"run.json", "journal/1", "journal/deep/2"}, nil},
		{nil, nil},
		{[]string{"run.json", "notes.txt", "mine/run.json", "journal/1"}, []string{"mine/run.json", "notes.txt"}},
	} {
		dir := filepath.Join(t.TempDir(), "run")
		for _, folder := range []string{"journal/deep", "mine"} {
			if err := os.MkdirAll(filepath.Join(dir, folder), 0o755); err != nil {
				t.Fatal(err)
			}
		}
		for _, name := range c.files {
			if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if err := Discard(dir, made); err != nil {
			t.Fatal(err)
		}
		var left []string
		_ = filepath.WalkDir(filepath.Dir(dir), func(path string, e os.DirEntry, err error) error {
			if err != nil {
				return err
			}
			if name, inside := strings.CutPrefix(path, dir+"/"); inside && !e.IsDir() {
				left = append(left, name)
			} else if path == dir && c.left == nil {
				t.Errorf("%v: the directory is left", c.files)
			}
			return nil
		})
		if !slices.Equal(left, c.left) {
			t.Errorf("%v leaves %v, not %v", c.files, left, c.left)
		}
	}
}
