package spmv

import (
	"errors"
	"fmt"
	"sync"

	"ndls/group"
	"ndls/internal/direct"
	"ndls/internal/mem"
	"ndls/internal/packed"
)

// Block is a column block: the rows of one hop that this worker has, and space for
// the next hop.
type Block struct {
	layout Layout
	kernel *Kernel
	free   []func()

	// The block has the n rows first, first+1, … of nodes; the other workers of the
	// group have the others.
	group           group.Group
	n, first, nodes int64

	cur, next Rows // in memory
	file      [2]*direct.Scratch
	threads   []*thread
	accs      []float32 // Accumulators strips, if strips are accumulated in groups
	sources   []span    // windows of source rows, in ascending order
	buffers   chan Rows // for windows, those that are free

	// totals are Σ d̃ Z and Σ d̃ |Z| of the first columns, with a d̃ that counts how often the
	// next hop adds a row.
	totals [2 * packed.PanelColumns]float64
	summed bool
	// held says that the place of the next hop holds the rows T_{j−1} Z before the rows T_j Z of the block ([Pass.Recur]). earlier are
	// then their totals.
	held    bool
	earlier [2 * packed.PanelColumns]float64
	// agreed says that the workers of the group have agreed on the way of rows: relays that they pass rows on, rotates that
	// each fetches the rows after its own first, and all before it adds those.
	agreed, relays, rotates bool
}

// thread holds the memory of one goroutine of a pass.
type thread struct {
	acc    []float32
	stage  Rows
	piece  []byte // of a panel
	buf    Decoded
	totals [2 * packed.PanelColumns]float64
	sent   [2 * packed.PanelColumns]float64 // for the next hop, where Pass.Sent is given

	roles  []Role    // of the rows of a strip, where a part of the rows is computed
	least  Role      // of these
	before []float32 // rows before a hop that are not stored as float32

	weights [visitRows]float64 // what divisors or uses gave last
}

// NewBlock maps a block of the rows that a worker of a group has, numbered from the
// first of them, for passes with that many threads. dir is a folder for what does not
// stay in memory.
func NewBlock(budget *mem.Budget, k *Kernel, g group.Group, l Layout, threads int, dir string) (_ *Block, err error) {
	first, last, nodes := g.Range()
	l.Shared = last-first < nodes
	if err := l.check(first, last, nodes); err != nil {
		return nil, err
	}
	b := &Block{layout: l, kernel: k, group: g, n: last - first, first: first, nodes: nodes}
	defer func() {
		if err != nil {
			b.Free()
		}
	}()
	if l.Residency != External {
		if b.cur, err = b.rows(budget, b.n, "rows of a hop"); err != nil {
			return nil, err
		}
	}
	if l.Residency == Resident {
		if b.next, err = b.rows(budget, b.n, "rows of the next hop"); err != nil {
			return nil, err
		}
	}
	for i := range int(l.Residency) {
		if b.file[i], err = direct.NewScratch(dir); err != nil {
			return nil, fmt.Errorf("scratch file for rows: %w", err)
		}
	}
	b.sources = l.windows(first, last, nodes)
	b.buffers = make(chan Rows, l.buffers())
	for range l.buffers() {
		w, err := b.rows(budget, min(l.Window, nodes), "a window of rows")
		if err != nil {
			return nil, err
		}
		b.buffers <- w
	}
	if l.grouped() {
		a, err := mem.Alloc[float32](budget, int64(l.Accumulators)*packed.StripRows*int64(l.Columns), "accumulators")
		if err != nil {
			return nil, err
		}
		b.free, b.accs = append(b.free, a.Free), a.S
	}
	for range max(threads, 1) {
		t, err := b.newThread(budget)
		if err != nil {
			return nil, err
		}
		b.threads = append(b.threads, t)
	}
	return b, nil
}

// check says why there is no block of rows [first, last) of nodes.
func (l Layout) check(first, last, nodes int64) error {
	switch {
	case l.Columns < packed.PanelColumns || l.Columns%packed.PanelColumns != 0:
		return fmt.Errorf("%d columns a block are not a multiple of %d", l.Columns, packed.PanelColumns)
	case first%packed.StripRows != 0 || last%packed.StripRows != 0 && last != nodes || first > last || l.Shared && first == last:
		return fmt.Errorf("rows [%d, %d) of %d are not whole strips of %d", first, last, nodes, packed.StripRows)
	case l.Shared && l.Residency == Spilled:
		return errors.New("rows that other workers read are in memory or external, not spilled")
	case l.buffers() > 0 && (l.Window <= 0 || l.Window%packed.StripRows != 0) || l.grouped() && l.Accumulators <= 0:
		return fmt.Errorf("windows of %d rows and %d accumulators: whole strips of %d and at least one accumulator are needed",
			l.Window, l.Accumulators, packed.StripRows)
	}
	return nil
}

func (b *Block) newThread(budget *mem.Budget) (*thread, error) {
	t := &thread{}
	l, rows := b.layout, min(b.n, packed.StripRows)
	if l.needsAccumulator() {
		a, err := mem.Alloc[float32](budget, rows*int64(l.Columns), "accumulator")
		if err != nil {
			return nil, err
		}
		b.free, t.acc = append(b.free, a.Free), a.S
	}
	var err error
	if l.Residency != Resident {
		t.stage, err = b.rows(budget, rows, "rows of a strip")
	}
	return t, err
}

// rows maps n rows of the block's precision. The mapping ends at a whole page.
func (b *Block) rows(budget *mem.Budget, n int64, what string) (Rows, error) {
	a, err := mem.Alloc[byte](budget, n*b.layout.rowBytes(), what)
	if err != nil {
		return Rows{}, err
	}
	b.free = append(b.free, a.Free)
	r := Rows{Stride: b.layout.Columns}
	if b.layout.Precision == Float16 {
		r.H = mem.View[uint16](a)
	} else {
		r.S = mem.View[float32](a)
	}
	return r, nil
}

// Free returns the memory and the disk space.
func (b *Block) Free() {
	for _, free := range b.free {
		free()
	}
	for _, f := range b.file {
		if f != nil {
			_ = f.Close()
		}
	}
	b.free, b.file = nil, [2]*direct.Scratch{}
}

// Layout is how the block is laid out.
func (b *Block) Layout() Layout { return b.layout }

// NumRows is the number of rows.
func (b *Block) NumRows() int64 { return b.n }

func (b *Block) strips() int { return int(strips(b.n)) }

func (b *Block) bounds(strip int) (lo, hi int64) {
	lo = int64(strip) << packed.StripShift
	return lo, min(lo+packed.StripRows, b.n)
}

// pages are the bytes of rows [0, n) of r, up to a whole page, which the mapping
// behind r has.
func (b *Block) pages(r Rows, n int64) []byte {
	size := direct.RoundUp(n * b.layout.rowBytes())
	if r.H != nil {
		return mem.Extend(mem.AsBytes(r.H), size)
	}
	return mem.Extend(mem.AsBytes(r.S), size)
}

func (b *Block) offset(row int64) int64 { return row * b.layout.rowBytes() }

// read gives the rows of a strip as they are stored.
func (b *Block) read(t *thread, strip int) (Rows, error) {
	lo, hi := b.bounds(strip)
	if b.layout.Residency != External {
		return b.cur.Slice(lo, hi), nil
	}
	r := t.stage.Slice(0, hi-lo)
	return r, b.file[0].ReadAt(b.pages(r, hi-lo), b.offset(lo))
}

// readBefore gives the rows of a strip before those of the block, as they are stored. The place of the next hop holds them.
func (b *Block) readBefore(t *thread, strip int) (Rows, error) {
	lo, hi := b.bounds(strip)
	if b.layout.Residency == Resident {
		return b.next.Slice(lo, hi), nil
	}
	r := t.stage.Slice(0, hi-lo)
	return r, b.file[b.nextFile()].ReadAt(b.pages(r, hi-lo), b.offset(lo))
}

// changed says that the rows are not those that a hop made.
func (b *Block) changed() { b.summed, b.held = false, false }

// write stores rows as those of a strip of the next hop.
func (b *Block) write(t *thread, strip int, rows []float32) error {
	lo, hi := b.bounds(strip)
	if b.layout.Residency == Resident {
		b.kernel.store(b.next.Slice(lo, hi), rows)
		return nil
	}
	return b.writeFile(t, b.file[b.nextFile()], strip, rows)
}

func (b *Block) nextFile() int { return int(b.layout.Residency) - 1 }

func (b *Block) writeFile(t *thread, f *direct.Scratch, strip int, rows []float32) error {
	lo, hi := b.bounds(strip)
	r := t.stage.Slice(0, hi-lo)
	b.kernel.store(r, rows)
	if err := f.WriteAt(b.pages(r, hi-lo), b.offset(lo)); err != nil {
		return fmt.Errorf("rows of the next hop: %w", err)
	}
	return nil
}

// advance makes the next hop the current one. With keep its place holds the rows before it.
func (b *Block) advance(keep bool) error {
	switch b.layout.Residency {
	case Resident:
		b.cur, b.next = b.next, b.cur
	case Spilled:
		return b.parallel(b.strips(), func(t *thread, s int) error {
			lo, hi := b.bounds(s)
			rows := b.cur.Slice(lo, hi)
			if !keep {
				return b.file[0].ReadAt(b.pages(rows, hi-lo), b.offset(lo))
			}
			next := t.stage.Slice(0, hi-lo)
			if err := b.file[0].ReadAt(b.pages(next, hi-lo), b.offset(lo)); err != nil {
				return err
			}
			if err := b.file[0].WriteAt(b.pages(rows, hi-lo), b.offset(lo)); err != nil {
				return fmt.Errorf("rows before a hop: %w", err)
			}
			from, _, _ := next.Bytes()
			to, _, _ := rows.Bytes()
			copy(to, from)
			return nil
		})
	case External:
		b.file[0], b.file[1] = b.file[1], b.file[0]
	}
	return nil
}

// parallel calls work for 0, 1, …, n-1 on all threads, until one fails.
func (b *Block) parallel(n int, work func(t *thread, i int) error) error {
	var mu sync.Mutex
	var failed error
	at := 0
	take := func() (int, bool) {
		mu.Lock()
		defer mu.Unlock()
		at++
		return at - 1, at <= n && failed == nil
	}
	var wg sync.WaitGroup
	for _, t := range b.threads[:min(len(b.threads), n)] {
		wg.Go(func() {
			for i, ok := take(); ok; i, ok = take() {
				if err := work(t, i); err != nil {
					mu.Lock()
					if failed == nil {
						failed = err
					}
					mu.Unlock()
				}
			}
		})
	}
	wg.Wait()
	return failed
}

// Fill replaces the rows: from is called once and puts all rows in ascending
// order, some at a time, Columns values each.
func (b *Block) Fill(from func(put func(rows []float32) error) error) error {
	b.changed()
	at := int64(0)
	t := b.threads[0]
	pending := int64(0) // rows in t.stage, of an external block
	put := func(rows []float32) error {
		for len(rows) > 0 {
			strip := int(at >> packed.StripShift)
			lo, hi := b.bounds(strip)
			n := min(int64(len(rows)/b.layout.Columns), hi-at)
			if n <= 0 {
				return fmt.Errorf("more than %d rows", b.n)
			}
			part := rows[:n*int64(b.layout.Columns)]
			rows = rows[len(part):]
			if b.layout.Residency != External {
				b.storeAll(b.cur.Slice(at, at+n), part)
				at += n
				continue
			}
			b.storeAll(t.stage.Slice(pending, pending+n), part)
			pending, at = pending+n, at+n
			if at == hi {
				if err := b.file[0].WriteAt(b.pages(t.stage.Slice(0, hi-lo), hi-lo), b.offset(lo)); err != nil {
					return fmt.Errorf("rows of hop 0: %w", err)
				}
				pending = 0
			}
		}
		return nil
	}
	if err := from(put); err != nil {
		return err
	}
	if at != b.n {
		return fmt.Errorf("%d rows of %d", at, b.n)
	}
	return nil
}

// storedRows is the number of rows that a thread stores at a time.
const storedRows = 1 << 10

// storeAll rounds rows to the precision of the rows r, on all threads.
func (b *Block) storeAll(r Rows, rows []float32) {
	n := r.Len()
	_ = b.parallel(int((n+storedRows-1)/storedRows), func(_ *thread, i int) error {
		lo := int64(i) * storedRows
		hi := min(lo+storedRows, n)
		b.kernel.store(r.Slice(lo, hi), rows[lo*int64(r.Stride):hi*int64(r.Stride)])
		return nil
	})
}

// Visit shows the rows, as float32, in ascending order, some at a time; they are
// valid during the call.
func (b *Block) Visit(visit func(first int64, rows []float32) error) error {
	t := b.threads[0]
	var buf []float32
	for s := range b.strips() {
		r, err := b.read(t, s)
		if err != nil {
			return err
		}
		lo, _ := b.bounds(s)
		for at := int64(0); at < r.Len(); at += visitRows {
			part := r.Slice(at, min(at+visitRows, r.Len()))
			rows := part.S
			if part.H != nil {
				if buf == nil {
					buf = make([]float32, visitRows*b.layout.Columns)
				}
				rows = buf[:len(part.H)]
				b.kernel.Widen(rows, part.H)
			}
			if err := visit(lo+at, rows); err != nil {
				return err
			}
		}
	}
	return nil
}

// visitRows is the number of rows that are shown at a time.
const visitRows = 256

// Strips shows the rows, as float32, in whole strips on all threads: calls at the
// same time are for different strips.
func (b *Block) Strips(visit func(first int64, rows []float32) error) error {
	return b.parallel(b.strips(), func(t *thread, s int) error {
		r, err := b.read(t, s)
		if err != nil {
			return err
		}
		lo, _ := b.bounds(s)
		rows := r.S
		if r.H != nil {
			rows = t.acc[:r.Len()*int64(r.Stride)]
			b.kernel.Widen(rows, r.H)
		}
		return visit(lo, rows)
	})
}

// Edit lets change alter all rows, on all threads: calls at the same time are for
// different rows.
func (b *Block) Edit(change func(first int64, rows []float32)) error {
	return b.EditStrips(func(_ int64, edit func(change func(first int64, rows []float32))) error {
		edit(change)
		return nil
	})
}

// EditStrips calls visit for each strip, which begins at row lo, on all threads. edit lets change
// alter the rows of the strip, some at a time, in ascending order.
func (b *Block) EditStrips(visit func(lo int64, edit func(change func(first int64, rows []float32))) error) error {
	b.changed()
	return b.parallel(b.strips(), func(t *thread, s int) error {
		r, err := b.read(t, s)
		if err != nil {
			return err
		}
		lo, hi := b.bounds(s)
		if err := visit(lo, func(change func(first int64, rows []float32)) { b.edit(lo, r, change) }); err != nil {
			return err
		}
		if b.layout.Residency == External {
			return b.file[0].WriteAt(b.pages(r, hi-lo), b.offset(lo))
		}
		return nil
	})
}

// edit lets change alter rows, the first of which is lo.
func (b *Block) edit(lo int64, r Rows, change func(first int64, rows []float32)) {
	var buf []float32
	for at := int64(0); at < r.Len(); at += visitRows {
		part := r.Slice(at, min(at+visitRows, r.Len()))
		rows := part.S
		if part.H != nil {
			if len(buf) == 0 {
				buf = make([]float32, visitRows*b.layout.Columns)
			}
			rows = buf[:len(part.H)]
			b.kernel.Widen(rows, part.H)
		}
		change(lo+at, rows)
		b.kernel.store(part, rows)
	}
}
