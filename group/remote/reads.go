package remote

import (
	"context"
	"fmt"
	"math/bits"
	"slices"
	"strconv"
	"strings"

	"ndls/group"
	"ndls/internal/control"
	"ndls/internal/control/blocks"
	"ndls/internal/direct"
	"ndls/internal/packed"
)

const (
	// readStage follows the group's name in tickets for the rows that a worker reads, and its number
	// follows that. Rows of such tickets are numbered without those that it does not read.
	readStage = "/read/"
	// listWords is the number of words of lists that workers exchange at a time.
	listWords = 1 << 14
	// packedRows is the number of rows that an owner packs together.
	packedRows = 8 * group.PageRows
)

// list is the rows that a worker reads: a bit for each, and how many there are before each strip.
type list struct {
	bits   []uint32
	before []int64
}

const stripWords = packed.StripRows / 32

func newList(of []uint32) list {
	l := list{bits: of}
	n := int64(0)
	for i, word := range of {
		if i%stripWords == 0 {
			l.before = append(l.before, n)
		}
		n += int64(bits.OnesCount32(word))
	}
	l.before = append(l.before, n)
	return l
}

// count returns the number of rows of a list.
func (l list) count() int64 { return l.before[len(l.before)-1] }

// rank counts the rows of a list before a row.
func (l list) rank(row int64) int64 {
	strip := row >> packed.StripShift
	n := l.before[min(strip, int64(len(l.before)-1))]
	for i := strip * stripWords; i < row/32; i++ {
		n += int64(bits.OnesCount32(l.bits[i]))
	}
	if rest := row % 32; rest > 0 {
		n += int64(bits.OnesCount32(l.bits[row/32] & (1<<rest - 1)))
	}
	return n
}

// find is the row of a list that so many come before.
func (l list) find(rank int64) int64 {
	strip, found := slices.BinarySearch(l.before, rank)
	for ; found && strip+1 < len(l.before) && l.before[strip+1] == rank; strip++ {
	}
	if !found {
		strip--
	}
	n := l.before[strip]
	for i := strip * stripWords; i < len(l.bits); i++ {
		count := int64(bits.OnesCount32(l.bits[i]))
		if n+count > rank {
			word := l.bits[i]
			for ; n < rank; n++ {
				word &= word - 1
			}
			return int64(i)*32 + int64(bits.TrailingZeros32(word))
		}
		n += count
	}
	return int64(len(l.bits)) * 32
}

// next is the first row of a list from a row on.
func (l list) next(row int64) int64 {
	for i := row / 32; i < int64(len(l.bits)); i++ {
		word := l.bits[i]
		if i == row/32 {
			word &^= 1<<(row%32) - 1
		}
		if word != 0 {
			return i*32 + int64(bits.TrailingZeros32(word))
		}
	}
	return int64(len(l.bits)) * 32
}

// Reads implements group.Group.
func (m *Member) Reads(ctx context.Context, mine, theirs []uint32) error {
	first, last, n := m.Range()
	from, to := first/32, (last+31)/32
	words := (n + 31) / 32
	if int64(len(mine)) != words || int64(len(theirs)) != int64(m.Size())*(to-from) {
		return fmt.Errorf("lists of %d and %d words for %d rows, %d of which are this worker's", len(mine), len(theirs), n, last-first)
	}
	var values [listWords]float64
	for at := int64(0); at < words; at += listWords {
		part := mine[at:min(at+listWords, words)]
		for i, word := range part {
			values[i] = float64(word)
		}
		all, err := m.AllGather(ctx, values[:len(part)])
		if err != nil {
			return fmt.Errorf("rows that other workers read: %w", err)
		}
		for w, list := range all {
			for i, word := range list {
				if word := uint32(word); from <= at+int64(i) && at+int64(i) < to {
					theirs[int64(w)*(to-from)+at+int64(i)-from] = word
				}
			}
		}
	}
	own, others := newList(mine), make([]list, m.Size())
	for w := range others {
		others[w] = newList(theirs[int64(w)*(to-from) : int64(w+1)*(to-from)])
	}
	m.change(func() { m.own, m.others = &own, others })
	return nil
}

// Listed implements group.Group.
func (m *Member) Listed() bool {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.own != nil
}

// fetchRead fetches those of rows [lo, hi) of an owner that this worker reads.
func (m *Member) fetchRead(ctx context.Context, f group.Format, number, owner int, lo, hi int64, into []byte) error {
	skipped := m.own.rank(m.o.Borders[owner])
	from, to := m.own.rank(lo)-skipped, m.own.rank(hi)-skipped
	if from == to {
		return nil
	}
	size := int64(len(into)) / (hi - lo)
	t := m.ticket(f, m.o.Name+readStage+control.Stage(strconv.Itoa(m.o.Self)), number, from, to)
	row := lo
	if err := m.o.Peers[owner].Fetch(ctx, t, func(_ int64, rows []byte) error {
		for ; len(rows) > 0; rows = rows[size:] {
			if row = m.own.next(row); row >= hi {
				return fmt.Errorf("more rows than this worker reads: %w", blocks.ErrRetry)
			}
			copy(into[(row-lo)*size:(row-lo+1)*size], rows)
			row++
		}
		return nil
	}); err != nil {
		return fmt.Errorf("rows of worker %d: %w", owner, err)
	}
	return nil
}

// sendRead answers a ticket for rows that another worker reads.
func (m *Member) sendRead(ctx context.Context, t blocks.Ticket, send func(first int64, rows []byte) error) error {
	_, number, _ := strings.Cut(string(t.Stage), string(m.o.Name)+readStage)
	w, err := strconv.Atoi(number)
	x, errWait := m.wait(ctx, t)
	if errWait != nil {
		return errWait
	}
	if err != nil || w < 0 || w >= m.Size() || t.Columns != x.format.Columns || t.Precision != x.format.Precision {
		return fmt.Errorf("this worker has no such rows for %s: %w", t.Stage, blocks.ErrNotHeld)
	}
	size := int64(t.RowBytes())
	p := packing{Member: m, x: x, worker: w, size: size, row: -1, left: t.Rows, page: direct.AlignedBytes(int(packedRows * size))}
	for sent := t.Row; p.left > 0 || len(p.out) > 0; {
		if p.left > 0 && int64(len(p.out)) < pieceBytes {
			if err := p.more(t); err != nil {
				return err
			}
			continue
		}
		n := min(int64(len(p.out)), max(pieceBytes/size, 1)*size)
		if err := send(sent, p.out[:n]); err != nil {
			return err
		}
		sent, p.out = sent+n/size, append(p.out[:0], p.out[n:]...)
	}
	return nil
}

// packing packs the rows that a worker reads together.
type packing struct {
	*Member
	x         *exposed
	worker    int
	size      int64
	row, left int64 // the next row; rows that have not been packed
	page, out []byte
}

// more packs the rows of the next page, unless they were withdrawn. It holds the lock meanwhile, because the engine may free the lists once
// the member is closed.
func (p *packing) more(t blocks.Ticket) error {
	p.mu.RLock()
	defer p.mu.RUnlock()
	if err := p.gone(p.x); err != nil {
		return err
	}
	if p.worker >= len(p.others) || t.Row+t.Rows > p.others[p.worker].count() {
		return fmt.Errorf("this worker has no such rows for %s: %w", t.Stage, blocks.ErrNotHeld)
	}
	l := p.others[p.worker]
	if p.row < 0 {
		p.row = l.find(t.Row)
	}
	lo := p.row - p.row%group.PageRows
	hi := min(lo+packedRows, p.x.last-p.x.first)
	if err := p.x.read(p.page, p.x.first+lo, hi-lo); err != nil {
		return err
	}
	for ; p.row < hi && p.left > 0; p.row = l.next(p.row + 1) {
		p.out = append(p.out, p.page[(p.row-lo)*p.size:(p.row-lo+1)*p.size]...)
		p.left--
	}
	return nil
}
