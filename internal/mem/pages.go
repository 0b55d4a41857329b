package mem

import (
	"cmp"
	"fmt"
	"os"
	"slices"
	"unsafe"

	"golang.org/x/sys/unix"

	"ndls/internal/invariants"
)

// pages is a mapping of n bytes, whole pages. One of hugePage bytes and more starts at a multiple of
// hugePage.
type pages struct {
	at unsafe.Pointer
	n  int64
}

// mapPages asks the kernel for new pages. It clears each when it is first written to.
func mapPages(n int64) (pages, error) {
	room := n
	if n >= hugePage {
		room += hugePage
	}
	at, err := unix.MmapPtr(-1, 0, nil, uintptr(room), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		return pages{}, err
	}
	p := pages{at, room}
	if n >= hugePage {
		p.cut(-int64(uintptr(at)) & (hugePage - 1)).unmap()
		page := int64(os.Getpagesize()) // 64 KiB on some kernels for arm64
		rest := p
		p = rest.cut((n + page - 1) &^ (page - 1))
		rest.unmap()
		p.n = n
		// Advice only: without huge pages the results are the same.
		_ = unix.Madvise(p.bytes(), unix.MADV_HUGEPAGE)
	}
	return p, nil
}

// cut takes the first n bytes away from p.
func (p *pages) cut(n int64) pages {
	first := pages{p.at, n}
	p.n -= n
	if p.n > 0 {
		p.at = unsafe.Add(p.at, n)
	}
	return first
}

func (p pages) bytes() []byte { return unsafe.Slice((*byte)(p.at), p.n) }

func (p pages) unmap() {
	if p.n == 0 {
		return
	}
	if err := unix.MunmapPtr(p.at, uintptr(p.n)); err != nil {
		panic(fmt.Sprintf("mem: unmap: %v", err))
	}
}

// moveTo moves the pages to an address; what is mapped there goes.
func (p pages) moveTo(at unsafe.Pointer) error {
	_, err := unix.MremapPtr(p.at, uintptr(p.n), at, uintptr(p.n), unix.MREMAP_MAYMOVE|unix.MREMAP_FIXED)
	return err
}

// mostKept is how many mappings of freed arrays are kept, at most.
const mostKept = 64

// kept has the pages of freed arrays, which arrays of [Uncleared] are made of, largest first.
// Each mapping is a multiple of hugePage. The budget has handed out the bytes to nobody.
type kept struct {
	pages []pages
	bytes int64
}

// add keeps the whole huge pages of p.
func (k *kept) add(p pages) {
	whole := p.cut(p.n &^ (hugePage - 1))
	p.unmap()
	if whole.n == 0 {
		return
	}
	at, _ := slices.BinarySearchFunc(k.pages, whole, func(a, b pages) int { return cmp.Compare(b.n, a.n) })
	k.pages = slices.Insert(k.pages, at, whole)
	k.bytes += whole.n
	if last := len(k.pages) - 1; last == mostKept {
		k.drop(k.pages[last].n)
	}
}

// take takes whole huge pages of at most n bytes.
func (k *kept) take(n int64) (taken []pages) {
	for n &^= hugePage - 1; n > 0 && len(k.pages) > 0; {
		p := k.pages[0]
		k.pages = slices.Delete(k.pages, 0, 1)
		k.bytes -= p.n
		if p.n > n {
			first := p.cut(n)
			k.add(p)
			p = first
		}
		taken = append(taken, p)
		n -= p.n
	}
	return taken
}

// drop gives at least n bytes back to the kernel, if there are so many.
func (k *kept) drop(n int64) {
	for n > 0 && len(k.pages) > 0 {
		last := &k.pages[len(k.pages)-1]
		p := last.cut(max(last.n-(n+hugePage-1)&^(hugePage-1), 0))
		p, *last = *last, p
		p.unmap()
		k.bytes -= p.n
		n -= p.n
		if last.n == 0 {
			k.pages = k.pages[:len(k.pages)-1]
		}
	}
}

// Uncleared is [Alloc] for an array that its user writes before reading it: elements have any
// value at first. An array of 2 MiB and more takes the pages of arrays that were freed, as far as
// there are any. The kernel need not clear these again, and the host of a virtual machine, which
// may have taken back what was freed, need not find others.
func Uncleared[T any](b *Budget, n int64, what string) (*Array[T], error) {
	size := sizeOf[T](n)
	if size < hugePage || b.of != nil {
		return Alloc[T](b, n, what)
	}
	taken, err := b.reuse(size, what)
	if err != nil {
		return nil, err
	}
	p, err := mapPages(size)
	if err != nil {
		b.giveBack(size, taken)
		return nil, fmt.Errorf("mem: map %s for %s: %w", Bytes(size), what, err)
	}
	rest, parts := p, make([]pages, 0, len(taken)+1)
	for i, t := range taken {
		to := rest.cut(t.n)
		if err := t.moveTo(to.at); err != nil {
			p.unmap() // with what was moved there; it may have a hole
			b.giveBack(size, taken[i:])
			return nil, fmt.Errorf("mem: move %s for %s: %w", Bytes(t.n), what, err)
		}
		parts = append(parts, to)
	}
	if rest.n > 0 {
		parts = append(parts, rest)
	}
	a := newArray[T](b, n, p, parts, what)
	if invariants.Enabled {
		some := p.bytes()[:min(size, 64<<20)] // of a large array most may never be touched
		for i := range some {
			some[i] = 0xa5
		}
	}
	return a, nil
}

// reuse charges size bytes and takes kept pages for them.
func (b *Budget) reuse(size int64, what string) ([]pages, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	taken := b.kept.take(size)
	if err := b.reserve(size, what); err != nil {
		for _, p := range taken {
			b.kept.add(p)
		}
		return nil, err
	}
	return taken, nil
}

// giveBack releases size bytes and keeps pages.
func (b *Budget) giveBack(size int64, parts []pages) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.release(size)
	for _, p := range parts {
		if b.closed || b.of != nil || p.n < hugePage {
			p.unmap()
		} else {
			b.kept.add(p)
		}
	}
	if b.used == 0 {
		b.kept.drop(b.kept.bytes) // so that a budget that nobody closes keeps nothing
	}
}
