package stage

import "ndls/catalog"

// Part is an entry with the rows [Lo, Hi) that are read from it.
type Part struct {
	catalog.Entry
	Lo, Hi int64
}

// holds returns the rows in the file of an entry: [0, n) if the entry names none.
func holds(e catalog.Entry, n int64) (lo, hi int64) {
	if e.Hi == 0 {
		return 0, n
	}
	return e.Lo, e.Hi
}

// Cover takes each of n rows from one of the entries that hold it, in ascending order, and reports whether the entries cover all rows.
func Cover(entries []catalog.Entry, n int64) (parts []Part, whole bool) {
	for at := int64(0); at < n; at = parts[len(parts)-1].Hi {
		next := Part{Lo: at, Hi: at}
		for _, e := range entries {
			if lo, hi := holds(e, n); lo <= at && hi > next.Hi && hi <= n {
				next.Entry, next.Hi = e, hi
			}
		}
		if next.Hi == at {
			return parts, false
		}
		parts = append(parts, next)
	}
	return parts, true
}
