package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestVulnerabilities runs the check of a release with a database of one vulnerability, in a program that calls what has it and in one
// that does not, and where the database cannot be reached.
func TestVulnerabilities(t *testing.T) {
	tool, err := filepath.Abs("../.tools/bin/govulncheck")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(tool); err != nil {
		t.Skip("govulncheck is not there: make vulnerabilities fetches it")
	}
	script, err := filepath.Abs("../deploy/vulnerabilities.sh")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	const modified = `"modified": "2026-01-01T00:00:00Z"`
	for name, text := range map[string]string{
		"db/index/db.json":      `{` + modified + `}`,
		"db/index/modules.json": `[{"path": "stdlib", "vulns": [{"id": "GO-2026-0001", ` + modified + `}]}]`,
		"db/index/vulns.json":   `[{"id": "GO-2026-0001", ` + modified + `}]`,
		"db/ID/GO-2026-0001.json": `{"schema_version": "1.3.1", "id": "GO-2026-0001", ` + modified + `, "published": "2026-01-01T00:00:00Z", "summary": "for a test",
			"affected": [{"package": {"name": "stdlib", "ecosystem": "Go"}, "ranges": [{"type": "SEMVER", "events": [{"introduced": "0"}]}],
			"ecosystem_specific": {"imports": [{"path": "os", "symbols": ["Exit"]}]}}]}`,
		"calls/go.mod":   "module example.org/calls\n\ngo 1.26\n",
		"calls/main.go":  "package main\n\nimport \"os\"\n\nfunc main() { os.Exit(0) }\n",
		"spares/go.mod":  "module example.org/spares\n\ngo 1.26\n",
		"spares/main.go": "package main\n\nfunc main() {}\n",
	} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		program, database string
		fails             bool
		says              string
	}{
		{"calls", filepath.Join(dir, "db"), true, "GO-2026-0001"},
		{"spares", filepath.Join(dir, "db"), false, "no known vulnerability is in code that is called"},
		{"spares", "http://127.0.0.1:1", true, "NOT CHECKED: the database of vulnerabilities, http://127.0.0.1:1, cannot be read"},
		{"spares", filepath.Join(dir, "calls"), true, "NOT CHECKED: the database"}, // a folder that is no database
		{"spares", "unchecked", false, "NOT CHECKED: known vulnerabilities"},
	} {
		cmd := exec.Command(script, tool)
		cmd.Dir = filepath.Join(dir, c.program)
		cmd.Env = append(os.Environ(), "VULNERABILITIES="+c.database)
		text, err := cmd.CombinedOutput()
		if (err != nil) != c.fails || !strings.Contains(string(text), c.says) {
			t.Errorf("%s with %s: %v\n%s", c.program, c.database, err, text)
		}
	}
}
