package depth

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"math/bits"
	"slices"

	"ndls/catalog"
	"ndls/group"
	"ndls/internal/direct"
	"ndls/internal/mem"
	"ndls/lsi"
	"ndls/stage"
	"ndls/stage/graph"
)

// squaresFile buffers, per panel and hop, the squared row lengths of nodes in [lo, hi) whose K was unknown when the stretch began, until
// they are committed panel by panel.
type squaresFile struct {
	lsiRun
	lsiProgress
	lo, hi int64
	file   *direct.Scratch
	page   *mem.Array[float64]
	// left has a bit for each node in [lo, hi) that is set if its K is unknown; it is nil if K is unknown for all. starts counts the nodes
	// with unknown K before each piece, and in all.
	left   *mem.Array[uint64]
	starts []int64
	// first is the first panel of the task; block is the number of panels in a block.
	first, block int
}

// newSquares reads which nodes in [lo, hi) have unknown K, and prepares the buffers.
func (env lsiRun) newSquares(ctx context.Context, x lsiProgress, lo, hi int64, file *direct.Scratch) (_ *squaresFile, err error) {
	f := &squaresFile{lsiRun: env, lsiProgress: x, lo: lo, hi: hi, file: file, starts: make([]int64, len(x.known)+1)}
	defer func() {
		if err != nil {
			f.free()
		}
	}()
	if f.page, err = mem.Alloc[float64](env.Budget, direct.RoundUp(min(piecesOfLSI, x.nodes)+2*direct.Align),
		"squared distances of a piece"); err != nil {
		return nil, err
	}
	if x.from < 0 {
		for piece := range x.known {
			from, to := f.within(piece)
			f.starts[piece+1] = f.starts[piece] + to - from
		}
		return f, nil
	}
	if f.left, err = mem.Alloc[uint64](env.Budget, (hi-lo+63)/64, "nodes of which K is not known"); err != nil {
		return nil, err
	}
	k, err := mem.Alloc[uint16](env.Budget, min(piecesOfLSI, x.nodes), "K of a piece")
	if err != nil {
		return nil, err
	}
	defer k.Free()
	for piece := range x.known {
		f.starts[piece+1] = f.starts[piece]
		from, to := f.within(piece)
		if x.known[piece] > x.from || from == to {
			continue
		}
		first, end := x.bounds(piece)
		if err := env.readFound(ctx, x, piece, env.Plan.LSI.Epsilon, k.S[:end-first]); err != nil {
			return nil, err
		}
		for node := from; node < to; node++ {
			if lsi.Unsettled(k.S[node-first]) {
				f.left.S[(node-lo)/64] |= 1 << ((node - lo) % 64)
				f.starts[piece+1]++
			}
		}
	}
	return f, nil
}

// within returns the nodes of a piece that the file covers.
func (f *squaresFile) within(piece int) (from, to int64) {
	from, to = f.bounds(piece)
	from = min(max(from, f.lo), f.hi)
	return from, max(min(to, f.hi), from)
}

func (f *squaresFile) free() {
	f.page.Free()
	f.left.Free()
}

// offset returns the place of the squared lengths of a panel after a hop. The next block overwrites it.
func (f *squaresFile) offset(panel, hop int) int64 {
	row := 8 * direct.RoundUp(f.starts[len(f.known)])
	return (int64((panel-f.first)%f.block)*int64(f.to-f.from) + int64(hop-f.from-1)) * row
}

// put writes the squared lengths of a panel after a hop. It first moves those of nodes with unknown K to the front of squares.
func (f *squaresFile) put(panel, hop int, squares []float64) error {
	n := 0
	if f.left == nil {
		n = len(squares)
	} else {
		for word, bits64 := range f.left.S {
			for ; bits64 != 0; bits64 &= bits64 - 1 {
				squares[n] = squares[64*word+bits.TrailingZeros64(bits64)]
				n++
			}
		}
		n = int(direct.RoundUp(int64(n)))
	}
	return f.file.WriteAt(mem.AsBytes(squares[:n]), f.offset(panel, hop))
}

// has reports whether K of a node, counted from lo, is unknown.
func (f *squaresFile) has(i int64) bool { return f.left.S[i/64]>>(i%64)&1 == 1 }

// commit commits the squared lengths of a panel, piece by piece.
func (f *squaresFile) commit(ctx context.Context, panel int) error {
	return f.commitWith(ctx, panel, func(w io.Writer, piece int) error { return f.writePiece(w, piece, panel) })
}

// writeProducts commits the products of a panel, piece by piece. write writes those of the nodes in [lo, hi), counted from f.lo.
func (f *squaresFile) writeProducts(ctx context.Context, panel int, write func(w io.Writer, lo, hi int64) error) error {
	return f.commitWith(ctx, panel, func(w io.Writer, piece int) error {
		first, end := f.within(piece)
		return write(w, first-f.lo, end-f.lo)
	})
}

// commitWith commits a file of a panel for each piece.
func (f *squaresFile) commitWith(ctx context.Context, panel int, write func(w io.Writer, piece int) error) error {
	for _, p := range f.missing(f.known, f.from) {
		if err := f.commitPiece(ctx, p.First, panel, write); err != nil {
			return err
		}
	}
	return nil
}

func (f *squaresFile) commitPiece(ctx context.Context, piece, panel int, write func(w io.Writer, piece int) error) error {
	first, end := f.within(piece)
	if first == end {
		return nil
	}
	path := fmt.Sprintf("lsi/squares/%05d-%05d-%05d%s", piece, panel, f.to, f.ofShare(first, end))
	e := catalog.Describe(catalog.KindLSISquares, path).In(piece).Holding(first, end).Panels(panel, panel+1).AtHop(f.to)
	return f.Catalog.Write(ctx, e, func(w *catalog.File) error { return write(w, piece) })
}

// writePiece writes the squared lengths of a piece and panel, hop by hop.
func (f *squaresFile) writePiece(out io.Writer, piece, panel int) error {
	lo, hi := 8*f.starts[piece], 8*f.starts[piece+1]
	from := lo / direct.Align * direct.Align
	for hop := f.from + 1; hop <= f.to; hop++ {
		page := mem.AsBytes(f.page.S)[:direct.RoundUp(hi-from)]
		if err := f.file.ReadAt(page, f.offset(panel, hop)+from); err != nil {
			return fmt.Errorf("squared distances: %w", err)
		}
		if _, err := out.Write(page[lo-from : hi-from]); err != nil {
			return err
		}
	}
	return nil
}

// foundPath names the file with K for an ε of nodes [lo, hi), as far as it is known after a hop.
func foundPath(lo, hi int64, epsilon float64, hop int) string {
	return fmt.Sprintf("lsi/found/%d-%d-%g-%05d", lo, hi, epsilon, hop)
}

func sampledPath(lo, hi int64, hop int) string {
	return fmt.Sprintf("lsi/found/%d-%d-sample-%05d", lo, hi, hop)
}

// holdsK reports whether a file of [catalog.KindLSIFound] has K for an ε.
func holdsK(e catalog.Entry, epsilon float64) bool {
	return e.Path == foundPath(e.Lo, e.Hi, epsilon, int(e.Hop))
}

// readFound reads K for an ε of a piece, as known at the beginning of the stretch.
func (env lsiRun) readFound(ctx context.Context, x lsiProgress, piece int, epsilon float64, k []uint16) (err error) {
	if x.known[piece] < 0 {
		for i := range k {
			k[i] = math.MaxUint16
		}
		return nil
	}
	lo, hi := x.bounds(piece)
	path := foundPath(lo, hi, epsilon, x.known[piece])
	return stage.ReadFile(ctx, env.Catalog, path, func(r io.Reader) error {
		if _, err := io.ReadFull(r, mem.AsBytes(k)); err != nil {
			return stage.NoSense(path, err)
		}
		_, err := io.Copy(io.Discard, r) // the checksum is checked at the end
		return err
	})
}

// find finds K of pieces [first, last) from the hops of the stretch.
func (env lsiRun) find(ctx context.Context, first, last int) (err error) {
	x := lsiProgressOf(env.Plan, env.Summary, env.Catalog)
	if len(x.missing(x.at, x.to-1)) > 0 {
		return nil // another attempt has already gone further
	}
	nodes, err := graph.OpenNodes(ctx, env.Env)
	if err != nil {
		return err
	}
	state, err := graph.Stationary(ctx, env.Env, nodes, group.Solo(env.Summary.Nodes), env.Plan.LSI.R)
	if err != nil {
		return err
	}
	defer state.Free()
	for piece := first; piece < last; piece++ {
		if x.known[piece] > x.from {
			continue
		}
		lo, hi := x.bounds(piece)
		o := optionsOfK(env.Plan)
		o.Epsilon, o.Sample = env.Plan.LSI.Epsilon, env.sample(lo, hi)
		o.Looser = slices.DeleteFunc(Tables(env).looserEpsilons(), func(epsilon float64) bool { // for which nobody has asked before
			_, sought := env.Catalog.Lookup(foundPath(lo, hi, epsilon, x.known[piece]))
			return x.known[piece] >= 0 && !sought
		})
		f, err := lsi.NewFinder(env.Budget, state, sketches(LSIOptions(env.Plan, env.Summary)), o, lo, hi-lo)
		if err != nil {
			return err
		}
		err = env.findPiece(ctx, x, piece, f, o.Epsilons())
		f.Free()
		if err != nil {
			return err
		}
	}
	return nil
}

// findPiece finds K of a piece for each of some ε, and commits it.
func (env lsiRun) findPiece(ctx context.Context, x lsiProgress, piece int, f *lsi.Finder, epsilons []float64) (err error) {
	for column, k := range f.Columns() {
		if err := env.readFound(ctx, x, piece, epsilons[column], k); err != nil {
			return err
		}
	}
	lo, hi := x.bounds(piece)
	if x.from >= 0 {
		var before sampled
		if err := stage.ReadJSON(ctx, env.Catalog, sampledPath(lo, hi, x.from), &before); err != nil {
			return err
		}
		for i, r := range before.Nodes {
			f.Distances()[i] = r.Distance
		}
	}
	var left []int32 // nodes whose K was unknown
	for i, k := range f.Columns()[0] {
		if lsi.Unsettled(k) {
			left = append(left, int32(i))
		}
	}
	each := 1 // values of a node that lie together
	if x.few {
		each = optionsOfK(env.Plan).Products(x.from)
	}
	var files []squaresReader // by panel
	defer func() {
		for _, r := range files {
			r.close()
		}
	}()
	for panel := range x.at {
		r, err := env.openSquares(ctx, x, piece, panel, left, each)
		files = append(files, r)
		if err != nil {
			return err
		}
	}
	if x.few {
		for _, r := range files {
			if err := r.begin(); err != nil {
				return err
			}
		}
		if err := f.Few(ctx, env.Budget, group.Solo(x.nodes), x.from, len(files), env.precisionOfK(), func(panel int, products []float64) error {
			return files[panel].read(products)
		}); err != nil {
			return err
		}
	}
	for hop := x.from + 1; hop <= x.to && !x.few; hop++ {
		if err := f.Hop(hop, len(files), func(panel int, squares []float64) error {
			if err := errors.Join(files[panel].begin(), files[panel].read(squares[:len(left)])); err != nil {
				return err
			}
			for j, i := range slices.Backward(left) {
				squares[i] = squares[j]
			}
			return nil
		}); err != nil {
			return err
		}
	}
	for _, r := range files {
		if err := r.end(); err != nil {
			return err
		}
	}
	to := x.to
	if f.Left() == 0 {
		to = x.kmax
	}
	if to == x.kmax {
		f.End()
	}
	k := catalog.Describe(catalog.KindLSIFound, "").In(piece).Holding(lo, hi).AtHop(to).Awaits(f.Left(), x.to)
	return env.commitFound(ctx, k, catalog.Describe(catalog.KindLSISampled, "").In(piece).Awaits(f.Before(), x.to), epsilons, f.Table)
}

// squaresReader reads the squared lengths of a panel for the rows of a piece, hop by hop, from one file or several.
type squaresReader []squaresPart

// squaresPart is one of these files. For each hop, it skips values that another file also has, then reads n values.
type squaresPart struct {
	path    string
	file    io.Closer
	from    *bufio.Reader
	skip, n int
	at      int // values that were read
}

// squaresBuffer is the memory of a squaresReader.
const squaresBuffer = 1 << 16

// openSquares opens the files with the squared lengths of a panel for these nodes of a piece, or with so many products of each. The
// caller closes the result, after an error as well.
func (env lsiRun) openSquares(ctx context.Context, x lsiProgress, piece, panel int, left []int32, each int) (r squaresReader, err error) {
	lo, hi := x.bounds(piece)
	var all []catalog.Entry
	for _, e := range env.Catalog.Entries(catalog.KindLSISquares) {
		if int(e.Interval) == piece && int(e.Block) == panel && int(e.Hop) == x.to {
			all = append(all, e)
		}
	}
	list, whole := catalog.Cover(all, lo, hi)
	if !whole {
		return nil, fmt.Errorf("files of squared distances of panel %d after hop %d lack nodes from %d to %d", panel, x.to, lo, hi)
	}
	before := func(node int64) int { // nodes of left before it
		n, _ := slices.BinarySearch(left, int32(node-lo))
		return n
	}
	at := lo
	for _, e := range list {
		file, err := env.Catalog.Stream(ctx, e)
		if err != nil {
			return r, err
		}
		r = append(r, squaresPart{
			path: e.Path, file: file, from: bufio.NewReaderSize(file, max(squaresBuffer/len(list), 1<<12)),
			skip: 8 * each * (before(at) - before(e.Lo)), n: each * (before(e.Hi) - before(at)),
		})
		at = e.Hi
	}
	return r, nil
}

// begin skips the values of the next hop, or all products, that another file also has.
func (r squaresReader) begin() error {
	for i := range r {
		r[i].at = 0
		if _, err := r[i].from.Discard(r[i].skip); err != nil {
			return fmt.Errorf("%s: %w", r[i].path, err)
		}
	}
	return nil
}

// read reads the next values.
func (r squaresReader) read(values []float64) error {
	for i := range r {
		part := &r[i]
		n := min(len(values), part.n-part.at)
		if n == 0 {
			continue
		}
		if _, err := io.ReadFull(part.from, mem.AsBytes(values[:n])); err != nil {
			return fmt.Errorf("%s: %w", part.path, err)
		}
		part.at, values = part.at+n, values[n:]
	}
	if len(values) > 0 {
		return fmt.Errorf("%d values are missing: %w", len(values), io.ErrUnexpectedEOF)
	}
	return nil
}

// end checks that the files end here. The checksums are checked there.
func (r squaresReader) end() error {
	for _, part := range r {
		if n, err := io.Copy(io.Discard, part.from); err != nil {
			return err
		} else if n > 0 {
			return fmt.Errorf("%s holds more values than the piece has nodes", part.path)
		}
	}
	return nil
}

func (r squaresReader) close() {
	for _, part := range r {
		_ = part.file.Close()
	}
}

// commitFound commits K of some rows for each ε as far as it is known after a hop, and the distances of the sampled nodes among them. k and
// distances describe the files without their paths.
func (env lsiRun) commitFound(ctx context.Context, k, distances catalog.Entry, epsilons []float64, table *lsi.Table) error {
	files := env.Catalog.Batch()
	defer files.Abort()
	hop := int(k.Hop)
	for column, values := range table.Columns() {
		k.Path = foundPath(k.Lo, k.Hi, epsilons[column], hop)
		if err := files.Write(ctx, k, func(file *catalog.File) error {
			_, err := file.Write(mem.AsBytes(values))
			return err
		}); err != nil {
			return err
		}
	}
	list := env.sampledOf(table, k.Lo, k.Hi)
	distances.Path = sampledPath(k.Lo, k.Hi, hop)
	if err := files.Write(ctx, distances.AtHop(hop).Counting(int64(len(list.Nodes))), stage.WriteJSON(list)); err != nil {
		return err
	}
	return files.Commit(ctx)
}

// foundAll returns files with K for an ε of all of n nodes after hop kmax, and whether K of all is known.
func foundAll(cat *catalog.Catalog, n int64, kmax int, epsilon float64) ([]catalog.Entry, bool) {
	all := slices.DeleteFunc(cat.Entries(catalog.KindLSIFound),
		func(e catalog.Entry) bool { return int(e.Hop) != kmax || !holdsK(e, epsilon) })
	return catalog.Cover(all, 0, n)
}

// joinFound commits the K tables that were found by rows. Tables for an ε that was not sought from the beginning are left out.
func (env lsiRun) joinFound(ctx context.Context) error {
	defer env.Release()
	n, o := env.Summary.Nodes, env.Plan.LSI
	files := env.Catalog.Batch()
	defer files.Abort()
	for _, epsilon := range append(Tables(env).looserEpsilons(), o.Epsilon) {
		if found, ok := foundAll(env.Catalog, n, o.Kmax, epsilon); ok {
			if err := env.joinTable(ctx, files, epsilon, found); err != nil {
				return err
			}
		}
	}
	var all sampled
	found, _ := foundAll(env.Catalog, n, o.Kmax, o.Epsilon)
	for _, e := range found {
		var list sampled
		if err := stage.ReadJSON(ctx, env.Catalog, sampledPath(e.Lo, e.Hi, int(e.Hop)), &list); err != nil {
			return err
		}
		all.add(list)
	}
	if err := files.Write(ctx, fileOfSample(all), stage.WriteJSON(all)); err != nil {
		return err
	}
	return files.Commit(ctx)
}
