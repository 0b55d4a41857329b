package catalog

import (
	"math/rand/v2"
	"slices"
)

// Version says up to which change a view follows its owner. It means something as long as that
// owner has the catalogue open. The zero Version is that of a view which follows no owner yet.
type Version struct {
	Owner  uint64 // drawn when the owner opens the catalogue
	Number uint64 // of changes since then
}

// Listing is what has changed since a version of a catalogue, or all that it lists.
type Listing struct {
	Version Version
	// Whole says that Added is all that is listed.
	Whole   bool
	Added   []Entry
	Removed []string
}

// fewestRecent is how many entries changes may have that are kept in any case.
const fewestRecent = 1000

// recent holds the latest changes of an owner's catalogue, in order. Together they have at most as
// many entries as the catalogue lists, or fewestRecent if that is more: for a large catalogue, what
// has changed is never longer than the whole list.
type recent struct {
	version Version
	changes []change
	files   int
}

func newRecent() *recent { return &recent{version: Version{Owner: 1 + rand.Uint64N(1<<63)}} }

// add notes a change, after which the catalogue lists so many files.
func (r *recent) add(x change, listed int) {
	r.version.Number++
	r.changes = append(r.changes, x)
	r.files += x.files()
	for r.files > max(listed, fewestRecent) {
		r.files -= r.changes[0].files()
		r.changes[0] = change{}
		r.changes = r.changes[1:]
	}
}

// since is what the changes after a version come to, if they are all known.
func (r *recent) since(v Version) (x change, ok bool) {
	oldest := r.version.Number - uint64(len(r.changes))
	if v.Owner != r.version.Owner || v.Number < oldest || v.Number > r.version.Number {
		return change{}, false
	}
	return merged(r.changes[v.Number-oldest:]), true
}

// removed holds the paths that the changes have taken off the list.
func (r *recent) removed() map[string]bool {
	gone := map[string]bool{}
	for _, x := range r.changes {
		for _, path := range x.Removed {
			gone[path] = true
		}
	}
	return gone
}

func (x change) files() int { return len(x.Added) + len(x.Removed) }

// Since says what has changed since a version of an owner's catalogue. Where the owner does not
// know that any more, it lists all files.
func (c *Catalog) Since(v Version) Listing {
	c.mu.RLock()
	defer c.mu.RUnlock()
	if x, ok := c.recent.since(v); ok {
		return Listing{Version: c.recent.version, Added: x.Added, Removed: x.Removed}
	}
	all := make([]Entry, 0, len(c.byPath))
	for _, e := range c.byPath {
		all = append(all, e)
	}
	slices.SortFunc(all, compareEntries)
	return Listing{Version: c.recent.version, Whole: true, Added: all}
}

// Update brings a view up to date with a listing since the version that it had. A change that the
// view is making itself is complete before or after that.
func (c *Catalog) Update(l Listing) {
	c.changing.Lock()
	defer c.changing.Unlock()
	if l.Whole {
		c.replace(l.Added)
		return
	}
	c.change(l.Added, l.Removed)
}
