package catalog

import "ndls/internal/invariants"

// checkEntries sees that a list of files can be what a run directory holds.
func checkEntries(entries map[string]Entry) {
	for path, e := range entries {
		invariants.Check(path == e.Path, "%s is listed as %s", e.Path, path)
		invariants.Check(e.Kind != "" && !isRecord(path), "%s of kind %q is no file of a stage", path, e.Kind)
		invariants.Check(e.Rows >= 0 && e.Bytes >= 0, "%s has %d rows and %d bytes", path, e.Rows, e.Bytes)
	}
}
