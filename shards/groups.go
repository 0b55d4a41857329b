package shards

import (
	"errors"
	"sync"
	"sync/atomic"

	"github.com/apache/arrow/go/v14/parquet/file"

	"ndls/internal/mem"
	"ndls/internal/seal"
	"ndls/internal/share"
	"ndls/internal/storage"
)

// Readers says on how many threads the row groups of a table are read. Each thread has memory for one row group and its decoded values: the
// first thread on the heap, the others from the budget. The number of threads is at most that of row groups, at most [MostReaders], and at
// most what an eighth of the free budget allows. The zero value means one thread.
type Readers struct {
	Threads int
	Budget  *mem.Budget
}

const (
	// MostReaders is the largest number of threads that read a table. One of them at a time computes the SHA-256 of the file, for which
	// more threads would wait (go test ./shards -run xxx -bench VisitNodes).
	MostReaders = 6
	// readersShare is the part of the free budget that readers may use.
	readersShare = 8
	// codecBytes bounds the memory of the library for decoding the columns of a row group: for each, a page before and after compression,
	// and what it reads ahead.
	codecBytes = 4 << 20
)

// ReaderBytes returns the memory that each further reader takes from the budget. A row of the table has stored bytes in the file and
// decoded bytes in memory.
func ReaderBytes(rows, stored, decoded int64) int64 {
	return min(rows, tableGroupRows)*(stored+decoded) + codecBytes
}

// NumReaders returns the number of threads that read a table of this number of rows, if each further one takes bytes from a budget with
// free bytes.
func NumReaders(threads int, rows, bytes, free int64) int {
	return numReaders(threads, int((rows+tableGroupRows-1)/tableGroupRows), bytes, free)
}

func numReaders(threads, groups int, bytes, free int64) int {
	return max(min(threads, groups, MostReaders, int(1+free/readersShare/bytes)), 1)
}

// A table describes how row groups of a table are decoded.
type table[B any] struct {
	// rowBytes is the memory of a row in a batch.
	rowBytes int64
	// batch allocates a row group of this number of rows.
	batch func(s *slot, rows int) (B, error)
	// decode fills a batch with a row group whose first row is first. group has its columns.
	decode func(s *slot, group *file.RowGroupReader, first int64, b B) error
	// part returns rows [from, to) of a batch.
	part func(b B, from, to int) B
}

// A slot holds what one thread needs to read row groups.
type slot struct {
	*parquetReader
	threads  int         // threads that decode columns side by side
	budget   *mem.Budget // nil: memory is on the heap
	reserved int64
	release  []func()
}

// slotOf returns a slot for row groups of at most `most` bytes, with memory from budget unless that is nil.
func (p *parquetReader) slotOf(budget *mem.Budget, threads int, most int64) (s *slot, err error) {
	s = &slot{parquetReader: p, threads: threads, budget: budget}
	if budget == nil {
		return s, nil
	}
	if s.parquetReader, err = p.another(); err != nil {
		return nil, err
	}
	if err = budget.Reserve(codecBytes, "readers of a table"); err != nil {
		return nil, err
	}
	s.reserved = codecBytes
	if s.src.group, err = slotArray[byte](s, int(most)); err != nil {
		s.free()
		return nil, err
	}
	return s, nil
}

// slotArray allocates n values for a slot to decode.
func slotArray[T any](s *slot, n int) ([]T, error) {
	if s.budget == nil {
		return make([]T, n), nil
	}
	a, err := mem.Alloc[T](s.budget, int64(n), "readers of a table")
	if err != nil {
		return nil, err
	}
	s.release = append(s.release, a.Free)
	return a.S, nil
}

func (s *slot) free() {
	for _, f := range s.release {
		f()
	}
	if s.budget != nil {
		s.budget.Release(s.reserved)
	}
	s.release, s.reserved = nil, 0
}

// turns makes threads take row groups in order, at each of two steps.
type turns struct {
	mu    sync.Mutex
	moved *sync.Cond
	next  [2]int // whose turn it is, by step
	err   error  // of the first row group that failed
}

// The steps at which the order matters.
const (
	summed = iota
	visited
)

func newTurns() *turns {
	t := &turns{}
	t.moved = sync.NewCond(&t.mu)
	return t
}

// wait waits for the turn of a row group, and reports whether none has failed.
func (t *turns) wait(step, group int) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	for t.next[step] != group && t.err == nil {
		t.moved.Wait()
	}
	return t.err == nil
}

// done passes the turn to the next row group, or ends all turns if err is not nil.
func (t *turns) done(step int, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.next[step]++
	if err != nil && t.err == nil {
		t.err = err
	}
	t.moved.Broadcast()
}

// eachGroup decodes the row groups of a table side by side, and calls visit for batches of at most batchRows of their rows, in order and
// one at a time, though on several goroutines. The error belongs to the first row group that cannot be read, or comes from visit; all rows
// in front of it were visited.
func eachGroup[B any](p *parquetReader, by Readers, t table[B], visit func(first int64, b B) error) error {
	first, most, bytes := make([]int64, len(p.marks)+1), 0, int64(0)
	for g, m := range p.marks {
		if m.Rows > tableGroupRows {
			return seal.Corrupt(p.name, "row group %d has %d rows, which is more than %d", g, m.Rows, tableGroupRows)
		}
		first[g+1] = first[g] + int64(m.Rows)
		most, bytes = max(most, int(m.Rows)), max(bytes, m.End-p.groupAt(g))
	}
	slots, batches, err := slotsOf(p, by, t, most, bytes)
	defer func() {
		for _, s := range slots {
			s.free()
		}
	}()
	if err != nil {
		return err
	}
	var taken atomic.Int64
	order := newTurns()
	_ = share.Each(len(slots), len(slots), func(i int) error {
		s, b := slots[i], batches[i]
		for {
			g := int(taken.Add(1)) - 1
			if g >= len(p.marks) {
				return nil
			}
			rows := int(first[g+1] - first[g])
			err := s.fetch(g)
			if !order.wait(summed, g) {
				return nil
			}
			if err == nil {
				err = s.sum()
			}
			order.done(summed, nil)
			if err == nil {
				err = decodeGroup(s, g, first[g], t, t.part(b, 0, rows))
			}
			if !order.wait(visited, g) {
				return nil
			}
			for from := 0; from < rows && err == nil; from += batchRows {
				err = visit(first[g]+int64(from), t.part(b, from, min(from+batchRows, rows)))
			}
			order.done(visited, err)
		}
	})
	return order.err
}

// slotsOf returns a slot and a batch for each thread that reads.
func slotsOf[B any](p *parquetReader, by Readers, t table[B], rows int, bytes int64) (slots []*slot, batches []B, err error) {
	n := 1
	if by.Budget != nil {
		n = numReaders(by.Threads, len(p.marks), int64(rows)*t.rowBytes+bytes+codecBytes, by.Budget.Free())
	}
	for i := range n {
		budget := by.Budget
		if i == 0 {
			budget = nil
		}
		s, err := p.slotOf(budget, max(by.Threads/n, 1), bytes)
		if err == nil {
			var b B
			if b, err = t.batch(s, rows); err == nil {
				slots, batches = append(slots, s), append(batches, b)
				continue
			}
			s.free()
		}
		if i > 0 && errors.Is(err, mem.ErrBudget) {
			break // others have taken the memory since: the threads before this one read
		}
		return slots, batches, err
	}
	return slots, batches, nil
}

// fetch reads row group g into memory.
func (s *slot) fetch(g int) error {
	s.src.group, s.src.first = s.groupIn(s.src.group, g), s.groupAt(g)
	if v, ok := s.src.Reader.(inOrder); ok {
		return seal.ReadFull(fetching{s.src.Reader, v}, s.name, s.src.group, s.src.first)
	}
	return s.readGroup(s.src.group, g)
}

// sum adds the row group of the slot to the checksum of the file, if its reader has one.
func (s *slot) sum() error {
	if v, ok := s.src.Reader.(inOrder); ok {
		return v.Add(s.src.group, s.src.first)
	}
	return nil
}

// inOrder is a reader that sums bytes in the order of the file, and can fetch bytes before their turn.
type inOrder interface {
	Fetch(p []byte, off int64) (int, error)
	Add(p []byte, off int64) error
}

// fetching is such a reader that does not sum bytes when they are read.
type fetching struct {
	storage.Reader
	from inOrder
}

func (f fetching) ReadAt(p []byte, off int64) (int, error) { return f.from.Fetch(p, off) }

// decodeGroup checks row group g, which is in memory, and decodes it.
func decodeGroup[B any](s *slot, g int, first int64, t table[B], b B) (err error) {
	if err := s.checkGroup(s.src.group, g); err != nil {
		return err
	}
	defer s.recovered(&err)
	return t.decode(s, s.file.RowGroup(g), first, b)
}

// columnOf returns a reader of a column of a row group.
func (p *parquetReader) columnOf(group *file.RowGroupReader, column int) (file.ColumnChunkReader, error) {
	c, err := group.Column(column)
	if err != nil {
		return nil, seal.Corrupt(p.name, "column %d of a row group: %v", column, err)
	}
	return c, nil
}

// decodeColumn fills values from a column of a row group.
func decodeColumn[T any](s *slot, group *file.RowGroupReader, column int, values []T) (err error) {
	defer s.recovered(&err)
	c, err := s.columnOf(group, column)
	if err != nil {
		return err
	}
	return readColumn(s.parquetReader, c, values)
}
