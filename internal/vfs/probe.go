package vfs

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Abilities holds what [Probe] finds out about the file system of a folder. An error says why the
// file system does without a call.
type Abilities struct {
	// Direct is nil where transfers by O_DIRECT work, Sync where the names in a folder
	// can be made durable, Lock where the folder can be locked.
	Direct, Sync, Lock error
	// Markers says that there are neither links nor renames that do not replace: see [PublishNew].
	Markers bool
	lacks   lacks
}

// lacks holds the missing abilities that steer this package.
type lacks struct {
	links, renames, direct bool
}

// way is how names that must be free are given.
func (l lacks) way() way {
	switch {
	case !l.links:
		return byLink
	case !l.renames:
		return byRename
	}
	return byMarker
}

// lacking holds the folders that were probed and lack something: nil in most programs.
var (
	lacking  atomic.Pointer[map[string]lacks]
	learning sync.Mutex
)

// lackingAt returns the known lacks at path: those of the nearest folder above that was probed.
func lackingAt(path string) lacks {
	known := lacking.Load()
	if known == nil {
		return lacks{}
	}
	abs, err := filepath.Abs(path)
	if err != nil {
		return lacks{}
	}
	return nearest(*known, abs)
}

// nearest returns what is known of the folder, or of the nearest one above.
func nearest(known map[string]lacks, dir string) lacks {
	for ; ; dir = filepath.Dir(dir) {
		if l, ok := known[dir]; ok || dir == filepath.Dir(dir) {
			return l
		}
	}
}

// learn notes what was found out about a folder. A folder that lacks nothing is noted where one
// above it lacks something.
func learn(dir string, l lacks) {
	learning.Lock()
	defer learning.Unlock()
	next := map[string]lacks{}
	if known := lacking.Load(); known != nil {
		next = maps.Clone(*known)
	}
	if delete(next, dir); nearest(next, dir) != l {
		next[dir] = l
	}
	if len(next) == 0 {
		lacking.Store(nil)
		return
	}
	lacking.Store(&next)
}

const (
	// probeSize is the size of a transfer of a probe, and its alignment.
	probeSize = 4096
	// probeTries is the number of times that a probe begins anew: another process that tidies up
	// may take its files away.
	probeTries = 3
)

// Probe finds out what the file system can do in the folder in which path is, or would be, and
// steers [PublishNew] and [OpenFile] by it from then on. It tries each call on small files with
// names of attempts at path, path.<16 hex digits>.tmp, and removes them. A call that nothing stands
// in for is a [MissingCall]; other errors come from the disk.
func Probe(path string) (a Abilities, err error) {
	for range probeTries {
		p := probe{dir: filepath.Dir(path), path: path}
		a, err = p.run()
		p.tidy()
		if !errors.Is(err, fs.ErrNotExist) {
			break
		}
	}
	if err != nil {
		return a, err
	}
	dir, err := filepath.Abs(filepath.Dir(path))
	if err != nil {
		return a, err
	}
	learn(dir, a.lacks)
	return a, nil
}

// probe is one probe under way.
type probe struct {
	dir, path string
	made      []string
}

// name is a new name of an attempt.
func (p *probe) name() string {
	name := fmt.Sprintf("%s.%016x.tmp", p.path, rand.Uint64())
	p.made = append(p.made, name)
	return name
}

func (p *probe) tidy() {
	for _, name := range p.made {
		_ = Remove(name)
	}
}

// missing is err, as a [MissingCall] unless the disk or another process is why.
func (p *probe) missing(call string, err error) error {
	switch {
	case err == nil || errors.Is(err, fs.ErrNotExist) || errors.Is(err, ErrDisk):
		return err
	case Unsupported(err):
		return &MissingCall{call, p.dir, reason(err)}
	}
	return err
}

// reason returns the text of the system.
func reason(err error) error {
	var errno unix.Errno
	if errors.As(err, &errno) {
		return errno
	}
	return err
}

// optional sorts the error of a call that a run can do without: into that of a file system that
// lacks it, or of a disk that fails.
func optional(err error) (lacks, failed error) {
	if err == nil || errors.Is(err, fs.ErrNotExist) || errors.Is(err, ErrDisk) {
		return nil, err
	}
	return reason(err), nil
}

func (p *probe) run() (a Abilities, err error) {
	if a.Sync, a.Lock, err = p.folder(); err != nil {
		return a, err
	}
	page := alignedPage()
	first, second := p.name(), p.name()
	for i, name := range []string{first, second} {
		fill(page, byte(i+1))
		if err := p.write(name, page); err != nil {
			return a, err
		}
	}
	if a.Direct, err = optional(p.direct(first, page)); err != nil {
		return a, err
	}
	a.lacks.direct = a.Direct != nil
	if a.lacks.links, err = p.replaces(Link, first, second); err != nil {
		return a, err
	}
	if a.lacks.links {
		if a.lacks.renames, err = p.replaces(RenameNew, first, second); err != nil {
			return a, err
		}
		a.Markers = a.lacks.renames
	}
	third := p.name()
	fill(page, 3)
	if err := p.write(third, page); err != nil {
		return a, err
	}
	if err := p.missing("rename", Rename(third, second)); err != nil {
		return a, err
	}
	same, err := p.holds(second, 3)
	if err == nil {
		err = unlessSame(same)
	}
	if err != nil {
		return a, fmt.Errorf("renaming a file in %s: %w", p.dir, err)
	}
	if err := Remove(second); err != nil && !errors.Is(err, unix.EBUSY) {
		return a, p.missing("unlink", err)
	}
	return a, nil
}

// folder tries what is done with the folder itself.
func (p *probe) folder() (noSync, noLock, err error) {
	d, err := OpenFile(p.dir, os.O_RDONLY, 0)
	if err != nil {
		return nil, nil, err
	}
	noSync, err = optional(d.Sync())
	if err == nil {
		lock := d.Lock()
		if errors.Is(lock, unix.EWOULDBLOCK) { // somebody has it
			lock = nil
		}
		noLock, err = optional(lock)
	}
	return noSync, noLock, errors.Join(err, d.Close())
}

// write makes a file of one page.
func (p *probe) write(name string, page []byte) error {
	f, err := OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		if errors.Is(err, fs.ErrPermission) {
			return err // the user's, and not the file system's
		}
		return p.missing("open(O_CREAT|O_EXCL)", err)
	}
	_, err = f.WriteAt(page, 0)
	return errors.Join(p.missing("write", err), f.Close())
}

// direct writes a page by direct I/O behind the first one, reads both, and cuts the file.
func (p *probe) direct(name string, page []byte) error {
	f, err := of(name).OpenFile(name, os.O_RDWR|unix.O_DIRECT, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	if _, err := f.WriteAt(page, probeSize); err != nil {
		return err
	}
	back := alignedPage()
	if n, err := f.ReadAt(back, probeSize); n < len(back) {
		return errors.Join(err, unlessSame(false))
	}
	if !bytes.Equal(back, page) {
		return unlessSame(false)
	}
	return f.Truncate(probeSize)
}

// replaces reports whether a call that is to give a file a new name lacks: it is refused, or takes
// a name that is not free.
func (p *probe) replaces(call func(from, to string) error, from, taken string) (bool, error) {
	err := call(from, taken)
	if !errors.Is(err, fs.ErrExist) {
		why, failed := optional(err)
		if why == nil && failed == nil { // it replaced what was there
			return true, p.again(from, taken)
		}
		return why != nil, failed
	}
	if same, err := p.holds(taken, 2); err != nil || !same {
		return true, errors.Join(err, p.again(from, taken))
	}
	name := p.name()
	if why, failed := optional(call(from, name)); why != nil || failed != nil {
		return why != nil, failed
	}
	// A rename has taken the name of the first file away; of two names of a file both stay.
	return false, p.missing("rename", ignoreMissing(Rename(name, from)))
}

// again writes the first and second file anew.
func (p *probe) again(names ...string) error {
	page := alignedPage()
	for i, name := range names {
		if err := ignoreMissing(Remove(name)); err != nil {
			return p.missing("unlink", err)
		}
		fill(page, byte(i+1))
		if err := p.write(name, page); err != nil {
			return err
		}
	}
	return nil
}

// holds reports whether a file begins with a page of such bytes.
func (p *probe) holds(name string, b byte) (bool, error) {
	f, err := OpenFile(name, os.O_RDONLY, 0)
	if err != nil {
		return false, err
	}
	defer f.Close()
	page, want := alignedPage(), alignedPage()
	fill(want, b)
	n, err := f.ReadAt(page, 0)
	if n < len(page) && !errors.Is(err, io.EOF) {
		return false, err
	}
	return n == len(page) && bytes.Equal(page, want), nil
}

var errOtherBytes = errors.New("other bytes are there than were written")

func unlessSame(same bool) error {
	if same {
		return nil
	}
	return errOtherBytes
}

func fill(page []byte, b byte) {
	for i := range page {
		page[i] = b
	}
}

// alignedPage is memory for direct I/O.
func alignedPage() []byte {
	b := make([]byte, 2*probeSize)
	skip := -int(uintptr(unsafe.Pointer(&b[0]))) & (probeSize - 1)
	return b[skip : skip+probeSize : skip+probeSize]
}
