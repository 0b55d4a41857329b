package partition

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strconv"

	"ndls/dataset"
	"ndls/internal/extsort"
	"ndls/internal/inorder"
	"ndls/internal/inputid"
)

// united visits each of the pairs of input ids that all visits once. Pairs without weights are unique already. The rows of a pair with
// weights, in both directions, must have the same weight, or are added up in ascending order if the dataset asks for the sum. Threads unite
// the rows of the next batches while one goroutine at a time calls visit.
func united[T extsort.Item](ctx context.Context, j *job, all visits[T]) visits[T] {
	if !j.info.Weighted {
		return all
	}
	return func(visit func([]T) error) error {
		u := &uniting[T]{ctx: ctx, j: j}
		threads := max(j.o.Threads, 1)
		line := inorder.New(threads, make([]pairBatch[T], threads+2), func(b *pairBatch[T]) error {
			b.unite(j.info.AddRepeated)
			return nil
		}, func(b *pairBatch[T]) error {
			if err := u.take(b); err != nil || len(u.out) == 0 {
				return err
			}
			return visit(u.out)
		})
		err := all(func(rows []T) error {
			for part := range slices.Chunk(rows, unitedRows) {
				b, err := line.Next()
				if err != nil {
					return err
				}
				b.rows = append(b.rows[:0], part...)
				line.Put()
			}
			return nil
		})
		if err = cmp.Or(line.Close(), err); err != nil {
			return err
		}
		u.out = u.out[:0]
		if err = u.end(); err == nil && len(u.out) > 0 {
			err = visit(u.out)
		}
		return err
	}
}

// unitedRows is the number of rows of pairs that a thread unites at a time.
const unitedRows = 1 << 12

// pairRows holds rows of one pair of input ids.
type pairRows[T extsort.Item] struct {
	key   uint64
	least float32 // weight
	rows  dataset.EdgeRows
}

// add adds rows of the pair, in ascending order of weight.
func (p *pairRows[T]) add(rows []T) {
	for i := range rows {
		weight := extsort.Value(&rows[i])
		if p.rows.N == 0 {
			p.key, p.least = extsort.Key(&rows[i]), weight
		}
		for range 1 + extsort.Repeated(&rows[i]) {
			p.rows.Add(weight)
		}
	}
}

// unite makes one pair from the rows. problem describes bad weights; it is "" if there are none.
func (p *pairRows[T]) unite(sum bool) (pair T, problem string) {
	weight, problem := p.rows.Weight(sum)
	if lo, hi := pairOfKey(p.key); lo == hi {
		weight, problem = p.least, "" // unused: a self-loop only names a node
	}
	extsort.Set(&pair, p.key, weight)
	return pair, problem
}

// pairBatch holds some rows of pairs in order. The rows of its first and of its last pair may continue in other batches.
type pairBatch[T extsort.Item] struct {
	rows []T
	// The rows of the first pair end at head. The united pairs after it end at pairs. The rows of the last pair, if it is not the first,
	// begin at tail.
	head, pairs, tail int
	// problem describes the bad weights of the first bad one of the united pairs.
	problem string
	bad     uint64
}

// unite unites the rows of all pairs but the first and the last.
func (b *pairBatch[T]) unite(sum bool) {
	n := len(b.rows)
	b.head, b.problem = b.end(0, n), ""
	b.pairs, b.tail = b.head, n
	for b.tail > b.head && extsort.Key(&b.rows[b.tail-1]) == extsort.Key(&b.rows[n-1]) {
		b.tail--
	}
	for at := b.head; at < b.tail; {
		var p pairRows[T]
		end := b.end(at, b.tail)
		p.add(b.rows[at:end])
		pair, problem := p.unite(sum)
		if problem != "" {
			b.problem, b.bad = problem, p.key
			return
		}
		b.rows[b.pairs] = pair
		b.pairs++
		at = end
	}
}

// end returns where the rows of the pair end that begin at row at; at most last.
func (b *pairBatch[T]) end(at, last int) int {
	key := extsort.Key(&b.rows[at])
	for at++; at < last && extsort.Key(&b.rows[at]) == key; at++ {
	}
	return at
}

// uniting joins batches.
type uniting[T extsort.Item] struct {
	ctx  context.Context
	j    *job
	open pairRows[T] // of the last pair
	out  []T
}

// take appends to out the pairs that the next batch completes.
func (u *uniting[T]) take(b *pairBatch[T]) error {
	u.out = u.out[:0]
	if u.open.key != extsort.Key(&b.rows[0]) {
		if err := u.end(); err != nil {
			return err
		}
	}
	u.open.add(b.rows[:b.head])
	if b.head == len(b.rows) {
		return nil
	}
	if err := u.end(); err != nil {
		return err
	}
	if b.problem != "" {
		return u.refused(b.bad, b.problem)
	}
	u.out = append(u.out, b.rows[b.head:b.pairs]...)
	u.open.add(b.rows[b.tail:])
	return nil
}

// end appends the open pair, if there is one, to out.
func (u *uniting[T]) end() error {
	if u.open.rows.N == 0 {
		return nil
	}
	pair, problem := u.open.unite(u.j.info.AddRepeated)
	if problem != "" {
		return u.refused(u.open.key, problem)
	}
	u.out, u.open = append(u.out, pair), pairRows[T]{}
	return nil
}

func (u *uniting[T]) refused(key uint64, problem string) error {
	lo, hi := pairOfKey(key)
	return numbering{u.j}.badEdge(u.ctx, lo, hi, problem)
}

// badEdge returns the error for an edge.
func (j numbering) badEdge(ctx context.Context, lo, hi uint32, problem string) error {
	u, err := j.nameOf(ctx, lo)
	if err != nil {
		return err
	}
	v, err := j.nameOf(ctx, hi)
	if err != nil {
		return err
	}
	return badData("%s: the edge between nodes %s and %s: %s", j.info.Name, u, v, problem)
}

// nameOf returns the input id behind a number, as messages spell it.
func (j numbering) nameOf(ctx context.Context, id uint32) (name string, err error) {
	if j.named.Type == inputid.Number {
		return strconv.FormatUint(uint64(id), 10), nil
	}
	t, closeFile, err := j.openIDs(ctx)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, closeFile()) }()
	err = t.Each(func(first int64, keys [][]byte) error {
		if at := int64(id) - first; at >= 0 && at < int64(len(keys)) {
			name = t.IDs().Type.Quote(keys[at])
		}
		return ctx.Err()
	})
	return name, err
}
