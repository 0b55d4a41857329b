package stage

import (
	"bufio"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"math"

	"ndls/catalog"
	"ndls/group"
	"ndls/internal/direct"
	"ndls/internal/mem"
	"ndls/lsi"
)

// squaresFile holds the squared lengths of a block's panels after each hop of a stretch, until
// these are committed panel by panel.
type squaresFile struct {
	lsiRun
	lsiProgress
	file *direct.Scratch
	page []float64
	k    []uint16
	// first is the first panel of the task, block how many panels a block has.
	first, block int
}

// hops is how many hops the stretch shows.
func (f *squaresFile) hops() int { return f.to - f.from }

// offset is where the squared lengths of a panel after a hop are. Those of the next block take their
// place.
func (f *squaresFile) offset(panel, hop int) int64 {
	row := 8 * direct.RoundUp(f.nodes)
	return (int64((panel-f.first)%f.block)*int64(f.hops()) + int64(hop-f.from-1)) * row
}

func (f *squaresFile) put(panel, hop int, squares []float64) error {
	return f.file.WriteAt(mem.AsBytes(squares), f.offset(panel, hop))
}

// commit commits those of a panel, piece by piece.
func (f *squaresFile) commit(ctx context.Context, panel int) error {
	for _, p := range f.missing(f.known, f.from) {
		if err := f.commitPiece(ctx, p.First, panel); err != nil {
			return err
		}
	}
	return nil
}

func (f *squaresFile) commitPiece(ctx context.Context, piece, panel int) error {
	lo, hi := f.bounds(piece)
	k := f.k[:hi-lo]
	if err := f.readFound(ctx, f.lsiProgress, piece, 0, k); err != nil {
		return err
	}
	out, err := f.Catalog.Create(ctx, catalog.Describe(catalog.KindLSISquares, squaresPath(piece, panel, f.to)).In(piece).Panels(panel, panel+1).AtHop(f.to))
	if err != nil {
		return err
	}
	defer out.Abort()
	w := bufio.NewWriterSize(out, 1<<16)
	var text [8]byte
	for hop := f.from + 1; hop <= f.to; hop++ {
		page := f.page[:direct.RoundUp(hi-lo)]
		if err := f.file.ReadAt(mem.AsBytes(page), f.offset(panel, hop)+8*lo); err != nil {
			return fmt.Errorf("squared distances: %w", err)
		}
		for i, x := range page[:hi-lo] {
			if lsi.Unsettled(k[i]) {
				binary.LittleEndian.PutUint64(text[:], math.Float64bits(x))
				_, _ = w.Write(text[:]) // Flush has the error
			}
		}
	}
	if err := w.Flush(); err != nil {
		return err
	}
	out.Rows = 1
	return f.Catalog.Commit(ctx, out)
}

func squaresPath(piece, panel, hop int) string {
	return fmt.Sprintf("lsi/squares/%05d-%05d-%05d", piece, panel, hop)
}

func foundPath(piece, column, hop int) string {
	return fmt.Sprintf("lsi/found/%05d-%02d-%05d", piece, column, hop)
}

// readFound reads a column of K of a piece, as it is known at the beginning of the stretch.
func (env lsiRun) readFound(ctx context.Context, x lsiProgress, piece, column int, k []uint16) (err error) {
	if x.known[piece] < 0 {
		for i := range k {
			k[i] = math.MaxUint16
		}
		return nil
	}
	path := foundPath(piece, column, x.known[piece])
	return readFile(ctx, env.Catalog, path, func(r io.Reader) error {
		if _, err := io.ReadFull(r, mem.AsBytes(k)); err != nil {
			return noSense(path, err)
		}
		_, err := io.Copy(io.Discard, r) // the checksum is compared at the end
		return err
	})
}

// find finds K of pieces [first, last) in the hops of the stretch.
func (env lsiRun) find(ctx context.Context, first, last int) (err error) {
	x := lsiProgressOf(env.Plan, env.Summary, env.Catalog)
	if len(x.missing(x.at, x.to-1)) > 0 {
		return nil // this attempt comes after another one has gone on
	}
	if env.opened == nil {
		if env.opened, err = env.openNodes(ctx); err != nil {
			return err
		}
	}
	state, err := env.stationaryOf(ctx, env.opened, group.Solo(env.Summary.Nodes), env.Plan.LSI.R)
	if err != nil {
		return err
	}
	defer state.Free()
	for piece := first; piece < last; piece++ {
		if x.known[piece] > x.from {
			continue
		}
		lo, hi := x.bounds(piece)
		o := lsi.Options{Epsilon: env.Plan.LSI.Epsilon, Kmax: x.kmax, Looser: env.looserEpsilons(), Sample: env.sample(lo, hi)}
		f, err := lsi.NewFinder(env.Budget, state, sketches(env.lsiOptions()), o, lo, hi-lo)
		if err != nil {
			return err
		}
		err = env.findPiece(ctx, x, piece, f)
		f.Free()
		if err != nil {
			return err
		}
	}
	return nil
}

// findPiece finds K of a piece, and commits it.
func (env lsiRun) findPiece(ctx context.Context, x lsiProgress, piece int, f *lsi.Finder) (err error) {
	for column, k := range f.Columns() {
		if err := env.readFound(ctx, x, piece, column, k); err != nil {
			return err
		}
	}
	lo, hi := x.bounds(piece)
	if x.from >= 0 {
		var list []sampledRow
		if err := readJSON(ctx, env.Catalog, samplePath(piece, x.from), &list); err != nil {
			return err
		}
		for i, r := range list {
			f.Distances()[i] = r.Distance
		}
	}
	before := make([]uint64, (hi-lo+63)/64) // of which nodes K was not known
	for i, k := range f.Columns()[0] {
		if lsi.Unsettled(k) {
			before[i/64] |= 1 << (i % 64)
		}
	}
	var files []*bufio.Reader
	for panel := range x.at {
		path := squaresPath(piece, panel, x.to)
		e, ok := env.Catalog.Lookup(path)
		if !ok {
			return fmt.Errorf("%s is not in the catalogue", path)
		}
		r, err := env.Catalog.Stream(ctx, e)
		if err != nil {
			return err
		}
		defer r.Close()
		files = append(files, bufio.NewReaderSize(r, 1<<16))
	}
	for hop := x.from + 1; hop <= x.to; hop++ {
		if err := f.Hop(hop, len(files), func(panel int, squares []float64) error {
			var text [8]byte
			for i := range squares {
				if before[i/64]&(1<<(i%64)) == 0 {
					continue
				}
				if _, err := io.ReadFull(files[panel], text[:]); err != nil {
					return err
				}
				squares[i] = math.Float64frombits(binary.LittleEndian.Uint64(text[:]))
			}
			return nil
		}); err != nil {
			return err
		}
	}
	for panel, r := range files {
		if n, err := io.Copy(io.Discard, r); err != nil {
			return err
		} else if n > 0 {
			return fmt.Errorf("%s is longer than there are nodes", squaresPath(piece, panel, x.to))
		}
	}
	to := x.to
	if f.Left() == 0 {
		to = x.kmax
	}
	if to == x.kmax {
		f.End()
	}
	return env.commitFound(ctx, piece, to, lo, hi, f)
}

// commitFound commits K of a piece as far as it is known after a hop, and the distances of the sample.
func (env lsiRun) commitFound(ctx context.Context, piece, hop int, lo, hi int64, f *lsi.Finder) (err error) {
	var files []*catalog.File
	defer func() {
		for _, file := range files {
			file.Abort()
		}
	}()
	for column, k := range f.Columns() {
		file, err := env.Catalog.Create(ctx, catalog.Describe(catalog.KindLSIFound, foundPath(piece, column, hop)).In(piece).Holding(lo, hi).AtHop(hop).OfRun(column))
		if err != nil {
			return err
		}
		files = append(files, file)
		if _, err := file.Write(mem.AsBytes(k)); err != nil {
			return err
		}
		file.Rows = hi - lo
	}
	list := []sampledRow{}
	for number, row := range env.sample(lo, hi) {
		list = append(list, sampledRow{lo + row, f.Distances()[number]})
	}
	file, err := env.Catalog.Create(ctx, catalog.Describe(catalog.KindLSIFound, samplePath(piece, hop)).In(piece).AtHop(hop))
	if err != nil {
		return err
	}
	files = append(files, file)
	if err := writeJSON(list)(file); err != nil {
		return err
	}
	file.Rows = int64(len(list))
	return env.Catalog.Commit(ctx, files...)
}

func samplePath(piece, hop int) string { return fmt.Sprintf("lsi/found/%05d-sample-%05d", piece, hop) }

// found are the files of a column of K of all pieces, if K of all nodes is known.
func (env lsiRun) found(column int) ([]catalog.Entry, bool) {
	x := lsiProgressOf(env.Plan, env.Summary, env.Catalog)
	if len(x.known) == 0 || x.from < x.kmax {
		return nil, false
	}
	var all []catalog.Entry
	for _, e := range env.Catalog.Entries(catalog.KindLSIFound) {
		if int(e.Run) == column && int(e.Hop) == x.kmax {
			all = append(all, e)
		}
	}
	return all, len(all) == len(x.known)
}

// joinFound commits the K tables that were found piece by piece, that of the run itself last.
func (env lsiRun) joinFound(ctx context.Context, pieces []catalog.Entry) error {
	for number, epsilon := range env.looserEpsilons() {
		looser, ok := env.found(1 + number)
		if !ok {
			return fmt.Errorf("K for ε %g was not found beside that for ε %g", epsilon, env.Plan.LSI.Epsilon)
		}
		if err := env.joinLSI(ctx, catalog.KindLabelLSI, labelTable(epsilon), looser); err != nil {
			return err
		}
	}
	var all []sampledRow
	for _, e := range pieces {
		var list []sampledRow
		if err := readJSON(ctx, env.Catalog, samplePath(int(e.Interval), int(e.Hop)), &list); err != nil {
			return err
		}
		all = append(all, list...)
	}
	f, err := env.createSampleOf(ctx, 0, all)
	if err != nil {
		return err
	}
	defer f.Abort()
	if err := env.Catalog.Commit(ctx, f); err != nil {
		return err
	}
	return env.joinLSI(ctx, catalog.KindLSI, lsiFolder, pieces)
}
