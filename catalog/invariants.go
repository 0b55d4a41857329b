package catalog

import "ndls/internal/invariants"

// checkedEntries is the largest catalogue that is checked after each change.
const checkedEntries = 1000

// checkLists checks that the two lists of the catalogue hold the same entries, and that the entries are possible in a run directory; mu is
// held.
func (c *Catalog) checkLists() {
	listed := 0
	for kind, entries := range c.byKind {
		for path, e := range entries {
			invariants.Check(e.Kind == kind && e.Path == path, "%s of kind %q is listed as %s of kind %q", e.Path, e.Kind, path, kind)
			invariants.Check(c.byPath[path] == e, "%s is %+v by kind, %+v by path", path, e, c.byPath[path])
			invariants.Check(e.Rows >= 0 && e.Bytes >= 0, "%s has %d rows and %d bytes", path, e.Rows, e.Bytes)
			listed++
		}
	}
	invariants.Check(listed == len(c.byPath), "%d entries by kind, %d by path", listed, len(c.byPath))
}
