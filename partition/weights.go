package partition

import (
	"cmp"
	"context"
	"errors"
	"math"
	"slices"
	"strconv"

	"ndls/catalog"
	"ndls/dataset"
	"ndls/internal/extsort"
	"ndls/internal/inorder"
	"ndls/internal/inputid"
	"ndls/internal/mem"
	"ndls/internal/share"
	"ndls/shards"
	"ndls/steps"
)

// orderBytes returns enough memory for one worker to order the nodes of a graph with weights. If nodes is negative, it assumes as many
// nodes as the pairs can have.
func orderBytes(nodes, pairs int64) int64 {
	if nodes < 0 {
		nodes = 2 * pairs
	}
	return (17+8)*nodes + 4*pairs + 1<<20
}

// visits calls visit for items in ascending order.
type visits[T extsort.Item] func(visit func([]T) error) error

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

// allocStrength allocates strengths by rank, in a graph with weights.
func (j counting) allocStrength() (err error) {
	if j.info.Weighted {
		j.strength, err = mem.Alloc[float64](j.o.Budget, j.ids.n, "strengths")
	}
	return err
}

// addStrengths adds the weights of pairs of ranks to the strengths of both ends.
func addStrengths[T extsort.Item](strength []float64, pairs []T) {
	for i := range pairs {
		u, v := pairOfKey(extsort.Key(&pairs[i]))
		weight := float64(extsort.Value(&pairs[i]))
		strength[u] += weight
		strength[v] += weight
	}
}

// strengths writes the strengths of nodes with these input ids to `to`.
func (j nodeTable) strengths(ids []int64, to []float64) error {
	for i := range to {
		rank, _ := j.ids.rank(uint32(ids[i]))
		to[i] = j.strength.S[rank]
		if err := j.checkStrength(to[i]); err != nil {
			return err
		}
	}
	return nil
}

func (j nodeTable) checkStrength(x float64) error {
	if x+1 > math.MaxFloat32 {
		return badData("%s: the weights of the edges of one node add up to more than 3.4e38, the largest float32: scale all weights down before the import", j.info.Name)
	}
	return nil
}

// Several workers add strengths up by ranges of ids. A strength is the sum of the weights of a node's edges in ascending order of their
// other ends, the order in which one worker visits all pairs. Edges to larger ends are the node's own pairs. Edges to smaller ends come
// first; they are found among the turned pairs. So a piece of Count leaves its pairs turned and sorted. A piece of Gather reads, for its
// range, what all pieces of Count left, one after the other, and then the pairs.

// turnPairs adds to files the edges of a piece of Count by their second end, in a graph with weights.
func (j *sortedEdges[T]) turnPairs(ctx context.Context, p steps.Piece, pairs pairSource[T], files *catalog.Batch) error {
	if !j.info.Weighted {
		return nil
	}
	s, err := extsort.NewSorter[T](ctx, j.o.Budget, j.scratch, sortOptions(max(pairs.keys(), 1), j.o.Threads, false))
	if err != nil {
		return err
	}
	defer s.Close()
	edges := j.edgesOf(func(edges []T) error {
		for i := range edges {
			lo, hi := pairOfKey(extsort.Key(&edges[i]))
			extsort.SetKey(&edges[i], pairKey(hi, lo))
		}
		return s.Add(edges)
	})
	if err := pairs.each(ctx, j.o.Threads, edges); err != nil {
		return err
	}
	if err := s.Finish(); err != nil {
		return err
	}
	return catalogKeys[T]{j.job}.add(ctx, files, Count+tallyTurned, p, s.Keys(), s.InOrder, [2]int64{})
}

// edgesOf returns a function that calls visit with unique pairs, without self-loops and dropped edges.
func (j *sortedEdges[T]) edgesOf(visit func(edges []T) error) func(pairs []T) error {
	draw := j.o.edgeDraw()
	return func(pairs []T) error {
		if j.o.DropEdges > 0 {
			pairs = left(draw, pairs)
		}
		n := 0
		for i := range pairs {
			if lo, hi := pairOfKey(extsort.Key(&pairs[i])); lo != hi {
				pairs[n] = pairs[i]
				n++
			}
		}
		return visit(pairs[:n])
	}
}

// strengthRanges is the number of ranges of ids that a thread takes, one after the other, when strengths are added up.
const strengthRanges = 4

// addStrengthsOf adds up the strengths of a range of ids, which are in j.ids, in a graph with weights.
func (j *sortedEdges[T]) addStrengthsOf(ctx context.Context, r idRange) error {
	if err := j.counting().allocStrength(); err != nil || !j.info.Weighted {
		return err
	}
	keys := catalogKeys[T]{j.job}
	turned, err := keys.open(ctx, Count+tallyTurned, allSlices, false)
	if err != nil {
		return err
	}
	defer turned.Close()
	pairs, err := keys.open(ctx, Merge, allSlices, false)
	if err != nil {
		return err
	}
	defer pairs.Close()
	add := func(edges []T) error { //nolint:unparam // as its callers take it
		for i := range edges {
			id, _ := pairOfKey(extsort.Key(&edges[i]))
			rank, _ := j.ids.rank(id)
			j.strength.S[rank] += float64(extsort.Value(&edges[i]))
		}
		return nil
	}
	edges := j.edgesOf(add)
	threads := max(j.o.Threads, 1)
	parts := strengthRanges * threads
	if err := share.Each(threads, parts, func(i int) error {
		lo, hi := share.Part{I: i + 1, N: parts}.Range(r.hi - r.lo)
		first, end := idRange{lo: r.lo + lo, hi: r.lo + hi}.keys()
		if err := turned.InOrderWithin(ctx, 1, first, end, add); err != nil {
			return err
		}
		return pairs.InOrderWithin(ctx, 1, first, end, edges)
	}); err != nil {
		return err
	}
	for _, x := range j.strength.S {
		if err := j.nodeTable().checkStrength(x); err != nil {
			return err
		}
	}
	return nil
}

// strengthFiles returns the files of the strengths of a range, none without weights.
func (j counting) strengthFiles(r idRange) []tallyFile {
	if !j.info.Weighted {
		return nil
	}
	half := func(kind string, shift uint) tallyFile {
		return tallyFile{kind: kind, all: j.pairsOfIDs(func(rank, id uint32) (uint32, bool) {
			x := j.strength.S[rank]
			return uint32(math.Float64bits(x) >> shift), x != 0 && r.has(id)
		})}
	}
	return []tallyFile{half(tallyHigh, 32), half(tallyLow, 0)}
}

// newPage returns an empty page of a shard.
func newPage(m shards.EdgeMeta) shards.EdgePage {
	p := shards.NewEdgePage()
	if m.Weighted {
		p.Weights = make([]float32, 0, shards.EdgePageRows)
	}
	return p
}
