package spmv

import (
	"fmt"

	"ndls/internal/mem"
	"ndls/internal/packed"
)

// Layout says how wide a column block is and where its rows live. The results do
// not depend on where.
type Layout struct {
	// Columns is the width, a multiple of PanelColumns.
	Columns   int
	Precision Precision
	// Residency says where the rows of the hop and of the next one are.
	Residency Residency
	// Window is the number of source rows in memory at a time, and Accumulators the number of
	// strips that are summed at a time, if Residency is External. Window is a multiple of
	// packed.StripRows.
	Window       int64
	Accumulators int
	// Shared is set where others have some of the rows: they come through two
	// windows of Window rows, and Accumulators matter where sums are not taken in
	// the next hop itself.
	Shared bool
	// Windows is the number of windows of others' rows in memory if it is more than two. If rows
	// are listed, it holds all of them: all can be fetched before the first of them is added. Of
	// two workers, each fetches as many ahead while it adds its own rows.
	Windows int
}

// Residency says where the rows of a hop and of the next one are.
type Residency int

const (
	// Resident keeps both in memory.
	Resident Residency = iota
	// Spilled keeps the hop in memory and writes the next to disk, from where
	// it is read back when the pass has ended.
	Spilled
	// External keeps both on disk, and reads the hop window by window for each
	// group of strips that is accumulated in memory.
	External
)

func (p Residency) String() string { return [...]string{"resident", "spilled", "external"}[p] }

// Bytes is the size of an element.
func (p Precision) Bytes() int64 {
	if p == Float16 {
		return 2
	}
	return 4
}

func (l Layout) rowBytes() int64 { return int64(l.Columns) * l.Precision.Bytes() }

func (l Layout) accumulator() int64 { return packed.StripRows * int64(l.Columns) * 4 }

func strips(n int64) int64 { return (n + packed.StripRows - 1) / packed.StripRows }

// perThread returns the memory of each thread of a pass: an accumulator and the stored rows of a
// strip, if they are not those of the next hop.
func (l Layout) perThread(n int64) int64 {
	rows := min(n, packed.StripRows)
	bytes := int64(0)
	if l.needsAccumulator() {
		bytes += rows*int64(l.Columns)*4 + pageBytes
	}
	if l.Residency != Resident {
		bytes += rows*l.rowBytes() + pageBytes
	}
	return bytes
}

// needsAccumulator reports whether a thread sums, or shows, float32 rows elsewhere
// than where rows are stored.
func (l Layout) needsAccumulator() bool { return l.Residency == Spilled || l.Precision == Float16 }

const pageBytes = 4096

// Memory returns the memory of a block of n rows with that many threads, in bytes.
func (l Layout) Memory(n int64, threads int) int64 {
	bytes := int64(threads) * l.perThread(n)
	switch {
	case l.Residency == Resident:
		bytes += 2 * (n*l.rowBytes() + pageBytes)
	case l.Residency == Spilled:
		bytes += n*l.rowBytes() + pageBytes
	}
	window := l.Window
	if !l.Shared {
		window = min(window, n)
	}
	bytes += int64(l.buffers()) * (window*l.rowBytes() + pageBytes)
	if l.grouped() {
		bytes += int64(l.Accumulators) * l.accumulator()
	}
	return bytes
}

// buffers returns the number of windows of source rows in memory beside the rows of the hop: if
// other workers have rows, one that is added and one that is fetched meanwhile, or all.
func (l Layout) buffers() int {
	switch {
	case l.Shared:
		return max(l.Windows, 2)
	case l.Residency == External:
		return 1
	}
	return 0
}

// grouped reports whether strips are accumulated in groups, beside the next hop.
func (l Layout) grouped() bool { return l.Residency == External || l.Shared && l.Precision == Float16 }

// groups returns the number of groups of the strips of n rows.
func (l Layout) groups(n int64) int64 {
	if !l.grouped() {
		return 1
	}
	return (strips(n) + int64(l.Accumulators) - 1) / int64(l.Accumulators)
}

// Relays reports whether each hop of a block of n rows reads the rows of others once, and holds them
// in memory that nothing else takes meanwhile.
func (l Layout) Relays(n int64) bool { return l.Residency == Resident && l.groups(n) == 1 }

// Fetched returns the bytes of rows that each hop of a shared block of n rows reads from the
// workers that have the others of a graph of nodes rows.
func (l Layout) Fetched(n, nodes int64) int64 { return l.groups(n) * (nodes - n) * l.rowBytes() }

// Ahead returns the bytes of others' rows for which there is memory beside the window that is added
// and the one that is fetched meanwhile.
func (l Layout) Ahead() int64 { return int64(max(l.Windows-2, 0)) * l.Window * l.rowBytes() }

// Disk is the size of the scratch files of a block of n rows.
func (l Layout) Disk(n int64) int64 { return int64(l.Residency) * n * l.rowBytes() }

// HopBytes returns the bytes that each hop reads from and writes to those files.
func (l Layout) HopBytes(n int64) (read, written int64) {
	whole := n * l.rowBytes()
	switch l.Residency {
	case Resident:
		return 0, 0
	case Spilled:
		return whole, whole
	default:
		return (l.groups(n) + 1) * whole, whole
	}
}

// RecurBytes is [Layout.HopBytes] for a step of [Pass.Recur], which reads the rows before, too, and keeps those of the step.
func (l Layout) RecurBytes(n int64) (read, written int64) {
	read, written = l.HopBytes(n)
	switch l.Residency {
	case Spilled:
		return 2 * read, 2 * written
	case External:
		read += n * l.rowBytes()
	}
	return read, written
}

// PlanLayout gives the layout of a block of n rows and from least to most columns that fits free
// bytes with that many threads, or [mem.ErrBudget] with the smallest one. It keeps as much in
// memory as it can, and then takes as many columns as fit. beside returns the memory of a block
// beside its rows.
func PlanLayout(n int64, least, most int, p Precision, free int64, threads int, beside func(Layout) int64) (Layout, error) {
	most = packed.Panels(most) * packed.PanelColumns
	least = min(packed.Panels(least)*packed.PanelColumns, most)
	for _, residency := range []Residency{Resident, Spilled} {
		for c := most; c >= least; c -= packed.PanelColumns {
			l := Layout{Columns: c, Precision: p, Residency: residency}
			if l.Memory(n, threads)+beside(l) <= free {
				return l, nil
			}
		}
	}
	var l Layout
	for c := max(min(most, externalColumns), least); c >= least; c -= packed.PanelColumns {
		l = Layout{Columns: c, Precision: p, Residency: External, Window: packed.StripRows, Accumulators: 1}
		left := free - beside(l)
		if l.Memory(n, threads) <= left {
			return l.share(n, left-l.Memory(n, threads)), nil
		}
	}
	return l, fmt.Errorf("a block of %d columns needs %s even with its rows on disk, %s are free: %w",
		l.Columns, mem.Bytes(l.Memory(n, threads)+beside(l)), mem.Bytes(free), mem.ErrBudget)
}

// Others says how the workers that have the other rows of a graph send them.
type Others struct {
	// Listed says that they send the rows alone that are read, Pair that there is one of them alone.
	Listed, Pair bool
}

// PlanShared is [PlanLayout] for a block of exactly so many columns of n rows, which
// shares the rows of a graph with others.
func PlanShared(n, nodes int64, others Others, columns int, p Precision, free int64, threads int,
	beside func(Layout) int64,
) (Layout, error) {
	var l Layout
	for _, residency := range []Residency{Resident, External} {
		l = Layout{Columns: columns, Precision: p, Residency: residency, Window: packed.StripRows, Accumulators: 1, Shared: true}
		if left := free - beside(l) - l.Memory(n, threads); left >= 0 {
			return l.shareOut(n, nodes, others, left), nil
		}
	}
	return l, fmt.Errorf("%d of %d rows of %d columns need %s even on disk, %s are free: %w",
		n, nodes, l.Columns, mem.Bytes(l.Memory(n, threads)+beside(l)), mem.Bytes(free), mem.ErrBudget)
}

// shareOut gives free bytes more to a shared block: to accumulators first, which save
// fetching, where there are any, and then to windows, up to SharedWindow. Where rows are listed
// there are as many windows as all rows of others take, if they fit, and of two workers as many of these as fit.
func (l Layout) shareOut(n, nodes int64, others Others, free int64) Layout {
	if l.grouped() {
		l.Accumulators = int(min(1+free/l.accumulator(), strips(n)))
		free -= int64(l.Accumulators-1) * l.accumulator()
	}
	strip := packed.StripRows * l.rowBytes()
	windows := min(1+free/(int64(l.buffers())*strip), strips(nodes-n), max(SharedWindow/strip, 1))
	l.Window = max(windows, 1) * packed.StripRows
	free -= int64(l.buffers()) * (l.Window - packed.StripRows) * l.rowBytes()
	all := (nodes-n+l.Window-1)/l.Window + 1 // rows before and after those of the block
	fit := free / (l.Window*l.rowBytes() + pageBytes)
	switch {
	case !l.Relays(n):
	case others.Listed && all-2 <= fit:
		l.Windows = max(int(all), 2)
	case others.Pair && fit > 1: // half of what is free is left so
		l.Windows = int(max(min(all, 2+fit/2), 2))
	}
	return l
}

// SharedWindow is the largest useful size of a window of rows that others have, in
// bytes: waiting for the first rows of one is short beside the rest.
const SharedWindow = 64 << 20

// externalColumns bounds the width of an external block: wider ones read the
// edges less often, but take as many columns of scratch space.
const externalColumns = 64

// share gives free bytes more to an external block, a quarter to the window:
// only accumulators save reading.
func (l Layout) share(n, free int64) Layout {
	window := free / 4 / (packed.StripRows * l.rowBytes())
	l.Window = min(1+window, strips(n)) * packed.StripRows
	free -= (l.Window - packed.StripRows) * l.rowBytes()
	l.Accumulators = int(min(1+free/l.accumulator(), strips(n)))
	return l
}
