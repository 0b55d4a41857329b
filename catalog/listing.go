package catalog

import (
	"math/rand/v2"
	"slices"
)

// Version says up to which change a view follows its owner. It is valid while that owner has the catalogue open. The zero Version belongs
// to a view that follows no owner yet.
type Version struct {
	Owner  uint64 // drawn when the owner opens the catalogue
	Number uint64 // of changes since then
}

// Listing holds the changes since a version of a catalogue, or its whole list.
type Listing struct {
	Version Version
	// Whole says that Added is the whole list.
	Whole   bool
	Added   []Entry
	Removed []string
}

// fewestRecent is the number of entries up to which changes are always kept.
const fewestRecent = 1000

// recent holds the latest changes of an owner's catalogue, in order. Together they have at most as many entries as the catalogue lists, or
// fewestRecent if that is more: for a large catalogue, the changes are never longer than the whole list.
type recent struct {
	version Version
	changes []change
	files   int
}

func newRecent() *recent { return &recent{version: Version{Owner: 1 + rand.Uint64N(1<<63)}} }

// add adds a change, after which the catalogue lists this number of files.
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

// since returns the changes after a version merged into one, if all of them are known.
func (r *recent) since(v Version) (x change, ok bool) {
	oldest := r.version.Number - uint64(len(r.changes))
	if v.Owner != r.version.Owner || v.Number < oldest || v.Number > r.version.Number {
		return change{}, false
	}
	return merged(r.changes[v.Number-oldest:]), true
}

// removed returns the paths that the changes removed from the list.
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

// Since returns the changes since a version of an owner's catalogue. If the owner no longer knows them, it lists all files.
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

// Update brings a view up to date with a listing since its version. A change that the view itself is making completes before or after it.
func (c *Catalog) Update(l Listing) {
	c.changing.Lock()
	defer c.changing.Unlock()
	if l.Whole {
		c.replace(l.Added)
		return
	}
	c.change(l.Added, l.Removed)
}
