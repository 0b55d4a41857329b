package lsi

import (
	"context"
	"fmt"
	"io"

	"ndls/hops"
	"ndls/internal/direct"
	"ndls/internal/mem"
	"ndls/internal/packed"
	"ndls/internal/progress"
	"ndls/spmv"
)

// Stretch is a range of hops for a range of panels of a probe. Several workers, each with its
// panels, find K together: the squared lengths of rows add over panels, and a [Finder] adds them.
// The workers of a group may share the rows of the panels; all of them then have the same stretch.
// The last stretch may go to Kmax by polynomials: see [Options.Few].
type Stretch struct {
	// First and Last bound the panels.
	First, Last int
	// From is the hop of the rows with which the stretch begins, -1 for the rows of the probe. To
	// is the last hop.
	From, To int
	// Rows lists the files that Save wrote of a panel at hop From, in ascending order of row.
	// Together they hold each row of the graph at least once.
	Rows func(panel int) []Saved
	// Squares receives the squared lengths of the rows of a panel after a hop. It must not keep the
	// slice, whose memory consists of whole pages.
	Squares func(panel, hop int, squares []float64) error
	// Save stores the rows of a panel at hop To, after Squares received all hops of the panel.
	Save func(ctx context.Context, panel int, write func(io.Writer) error) error
	// Open says of which nodes K is unknown, if polynomials make the hops of the stretch; else it is nil. Products then takes the place of
	// Squares, and Save stores a header without rows.
	Open func(i int64) bool
	// Products receives a function that writes the products of a panel, of the nodes in [lo, hi) that are open, in ascending order of node.
	// Strips begin and end there.
	Products func(ctx context.Context, panel int, write func(w io.Writer, lo, hi int64) error) error
}

// Saved describes what Save wrote of a panel: so many rows from First on, counted from the first
// row of the graph that reads them. It may have rows before and after those of the graph.
type Saved struct {
	First, Rows int64
	Open        func() (io.ReadCloser, error)
}

// stretched is the header of the rows of a panel.
type stretched struct {
	Nodes     int64  `json:"nodes"`
	Precision string `json:"precision"`
	Panel     int    `json:"panel"`
	Hop       int    `json:"hop"`
}

// StretchPlan returns o with the layout of the blocks of a stretch that fits c, whose Columns is
// the width of its panels, and the part of c.Free that they use. If nothing fits, that is the
// smallest layout, and the error wraps mem.ErrBudget.
func (o Options) StretchPlan(c hops.Capacity) (Options, int64, error) {
	l, need, err := c.Layout(func(l spmv.Layout) int64 {
		return stretchBytes(c.Nodes, c.Components, l) + o.polynomialBytes(c.Nodes, l.Precision, c.Threads) + o.movingBytes(c, l) + hops.ReadBytes
	})
	o.Layout = l
	return o, need, err
}

// stretchBytes returns the memory of a stretch without a block: squared lengths by panel, and the
// stationary rows.
func stretchBytes(n, components int64, l spmv.Layout) int64 {
	panels := int64(l.Columns / packed.PanelColumns)
	return panels*8*direct.RoundUp(n) + 8*components*int64(l.Columns) + (panels+2)*direct.Align
}

// Run makes the hops, block by block. The probe may be nil unless From is -1.
func (s Stretch) Run(ctx context.Context, g hops.Graph, probe Probe, o Options) (stats Stats, err error) {
	most := o.Layout.Columns / packed.PanelColumns
	passes := s.To - max(s.From, 0)
	if s.Open != nil {
		passes = o.series(s.From).degree // and those that are made before rows are left out
	}
	meter := progress.Start(ctx, "lsi", int64((s.Last-s.First+most-1)/most)*int64(passes)*hops.NumEdges(g.Source), "edges")
	defer meter.Done()
	streams := g.NewStreams((s.Last-s.First+most-1)/most, hops.ReadBytes, nil)
	defer streams.Close()
	var moving *hops.Moving
	if s.Open != nil {
		if moving, stats.Stats, err = g.FindMoving(ctx, o.standing(s.From, s.Open), o.Layout); err != nil {
			return stats, fmt.Errorf("rows that move: %w", err)
		}
		defer moving.Free()
		streams.Restrict(moving)
	}
	rows, err := g.NewBlock(o.Layout)
	if err != nil {
		return stats, err
	}
	defer rows.Free()
	var squares []*mem.Array[float64]
	var few *polynomials
	defer func() {
		for _, x := range squares {
			x.Free()
		}
		few.close()
	}()
	if s.Open != nil {
		if few, err = newPolynomials(g, o.series(s.From), o.Layout, s.Open, moving.After(s.From)-s.From, 0); err != nil {
			return stats, err
		}
	}
	for range most {
		if few != nil {
			break
		}
		x, err := mem.Alloc[float64](g.Budget, direct.RoundUp(g.Source.NumNodes()), "squared distances")
		if err != nil {
			return stats, err
		}
		squares = append(squares, x)
	}
	for first := s.First; first < s.Last; first += most {
		b := stretchBlock{
			Stretch: s, g: g, rows: rows, streams: streams, squares: squares, few: few, moving: moving,
			first: first, last: min(first+most, s.Last),
		}
		err := b.run(ctx, probe, meter)
		stats.Add(b.stats)
		if few != nil {
			stats.Plain, stats.Polynomials = s.From+few.slots, few.degree
			stats.Moving, stats.Share = moving.Rows(), moving.Share()
		}
		if err != nil {
			return stats, fmt.Errorf("panels %d to %d: %w", b.first, b.last, err)
		}
	}
	return stats, nil
}

// stretchBlock is the block under way.
type stretchBlock struct {
	Stretch
	g           hops.Graph
	rows        *spmv.Block
	streams     *hops.Streams
	squares     []*mem.Array[float64] // by panel
	few         *polynomials          // nil if each hop is made
	moving      *hops.Moving          // rows that they compute, nil for all
	first, last int
	stats       hops.Stats
}

func (b *stretchBlock) run(ctx context.Context, probe Probe, meter *progress.Meter) error {
	if b.From < 0 {
		if err := fill(ctx, b.g, b.rows, probe, b.first); err != nil {
			return err
		}
		if err := b.rows.Visit(func(first int64, rows []float32) error { b.observe(first, rows); return nil }); err != nil {
			return err
		}
		if err := b.show(0); err != nil {
			return err
		}
	} else if err := b.load(); err != nil {
		return err
	}
	walk := b.streams.Walk(b.rows, max(b.From, 0))
	defer func() { b.stats.Add(walk.Stats) }()
	if b.few != nil {
		return b.runPolynomials(ctx, walk, meter)
	}
	for hop := max(b.From, 0) + 1; hop <= b.To; hop++ {
		meter.Within(fmt.Sprintf("hop %d of %d", hop, b.To))
		edges, err := walk.Next(ctx, b.To-hop+1, b.observe)
		meter.Add(edges)
		if err != nil {
			return err
		}
		if err := b.show(hop); err != nil {
			return err
		}
	}
	for panel := b.first; panel < b.last; panel++ {
		if err := b.Save(ctx, panel, func(w io.Writer) error { return b.write(w, panel) }); err != nil {
			return err
		}
	}
	return nil
}

// runPolynomials makes the products of the panels, one panel after the other.
func (b *stretchBlock) runPolynomials(ctx context.Context, walk *hops.Walk, meter *progress.Meter) error {
	p := b.few
	p.panels = b.last - b.first
	for i := range p.slots {
		edges, err := p.next(ctx, walk, p.degree+1+i, p.degree+p.slots-i)
		meter.Add(edges)
		if err != nil {
			return fmt.Errorf("hop %d: %w", walk.Hop(), err)
		}
	}
	if err := b.moving.Clear(b.rows); err != nil {
		return err
	}
	if err := p.pass(ctx, b.rows, walk, p.panels, func(j int, edges int64) {
		meter.Within(fmt.Sprintf("pass %d of %d for hops up to %d", p.slots+j, p.slots+p.degree, b.To))
		meter.Add(edges)
	}); err != nil {
		return err
	}
	for panel := b.first; panel < b.last; panel++ {
		if err := p.combine(func(x piece, buf *pieceBuffer) error {
			clear(p.pieceProducts(x, buf))
			if err := p.add(x, panel-b.first, buf); err != nil {
				return err
			}
			return p.storeSums(x, buf)
		}); err != nil {
			return err
		}
		if err := b.Products(ctx, panel, p.writeRange); err != nil {
			return err
		}
		if err := b.Save(ctx, panel, func(w io.Writer) error { return b.writeHeader(w, panel) }); err != nil {
			return err
		}
	}
	return nil
}

// writeHeader writes what write does without rows.
func (b *stretchBlock) writeHeader(w io.Writer, panel int) error {
	out, err := hops.NewStateWriter(w, b.header(0, panel, b.To))
	if err != nil {
		return err
	}
	return out.Close()
}

// observe reads the finished rows of one hop. Concurrent calls are for different strips.
func (b *stretchBlock) observe(first int64, rows []float32) {
	columns := b.rows.Layout().Columns
	buf := panelChunks.Get().(*[chunk * packed.PanelColumns]float32)
	defer panelChunks.Put(buf)
	for len(rows) > 0 {
		n := min(chunk, len(rows)/columns)
		for panel := range b.last - b.first {
			part := rows[:n*columns]
			if columns > packed.PanelColumns {
				for i := range n {
					copy(buf[i*packed.PanelColumns:(i+1)*packed.PanelColumns], rows[i*columns+panel*packed.PanelColumns:])
				}
				part = buf[:n*packed.PanelColumns]
			}
			squares := b.squares[panel].S[first : first+int64(n)]
			clear(squares)
			b.g.Kernel.SquareNorms(squares, part)
		}
		first, rows = first+int64(n), rows[n*columns:]
	}
}

func (b *stretchBlock) show(hop int) error {
	for panel := b.first; panel < b.last; panel++ {
		if err := b.Squares(panel, hop, b.squares[panel-b.first].S); err != nil {
			return err
		}
	}
	return nil
}

func (b *stretchBlock) header(rows int64, panel, hop int) stretched {
	return stretched{rows, b.rows.Layout().Precision.String(), panel, hop}
}

// write writes the rows of a panel at hop To, in the format of package hops.
func (b *stretchBlock) write(w io.Writer, panel int) error {
	out, err := hops.NewStateWriter(w, b.header(b.rows.NumRows(), panel, b.To))
	if err != nil {
		return err
	}
	if err := b.rows.Export(func(_ int64, rows spmv.Rows) error {
		return eachOfPanel(rows, panel-b.first, out.Put)
	}); err != nil {
		return err
	}
	return out.Close()
}

// load sets the rows to those of the panels at hop From.
func (b *stretchBlock) load() (err error) {
	var in []*savedReader
	defer func() {
		for _, r := range in {
			r.close()
		}
	}()
	for panel := b.first; panel < b.last; panel++ {
		in = append(in, &savedReader{stretchBlock: b, panel: panel, files: b.Rows(panel)})
	}
	if err := b.rows.Import(func(_ int64, rows spmv.Rows) error {
		if raw, _, _ := rows.Bytes(); len(in)*packed.PanelColumns < rows.Stride {
			clear(raw)
		}
		for i, r := range in {
			if err := eachOfPanel(rows, i, r.fill); err != nil {
				return err
			}
		}
		return nil
	}); err != nil {
		return err
	}
	for _, r := range in {
		if err := r.end(); err != nil {
			return err
		}
	}
	return nil
}

// savedReader reads the rows of a panel from its files, one after the other.
type savedReader struct {
	*stretchBlock
	panel int
	files []Saved // files that are not opened yet
	at    int64   // the first row that no opened file has
	file  io.ReadCloser
	state *hops.StateReader
	whole bool  // the file has no rows after those of the graph
	left  int64 // bytes of the file still to read
}

// fill reads the next bytes of the rows.
func (r *savedReader) fill(p []byte) error {
	for len(p) > 0 {
		if r.left == 0 {
			if err := r.next(); err != nil {
				return err
			}
		}
		n := min(int64(len(p)), r.left)
		if err := r.state.Fill(p[:n]); err != nil {
			return err
		}
		p, r.left = p[n:], r.left-n
	}
	return nil
}

// next opens the next file if it has the next row.
func (r *savedReader) next() error {
	if err := r.end(); err != nil {
		return err
	}
	for len(r.files) > 0 && r.files[0].First+r.files[0].Rows <= r.at {
		r.files = r.files[1:]
	}
	if len(r.files) == 0 || r.files[0].First > r.at {
		return fmt.Errorf("no file has row %d of panel %d at hop %d: %w", r.at, r.panel, r.From, hops.ErrState)
	}
	f := r.files[0]
	r.files = r.files[1:]
	var err error
	if r.file, err = f.Open(); err != nil {
		return err
	}
	if r.state, err = hops.NewStateReader(r.file); err != nil {
		return err
	}
	var h stretched
	if err := r.state.Header(&h); err != nil {
		return err
	}
	if want := r.header(f.Rows, r.panel, r.From); h != want {
		return fmt.Errorf("the file has rows of %+v, this stretch needs %+v: %w", h, want, hops.ErrState)
	}
	size := packed.PanelColumns * r.rows.Layout().Precision.Bytes()
	if err := r.state.Skip((r.at - f.First) * size); err != nil {
		return err
	}
	end := min(f.First+f.Rows, r.rows.NumRows())
	r.left, r.at, r.whole = (end-r.at)*size, end, end == f.First+f.Rows
	return nil
}

// end closes the file. If all of it was wanted, it checks that the file has nothing else.
func (r *savedReader) end() error {
	if r.file == nil {
		return nil
	}
	if r.whole {
		if err := r.state.End(); err != nil {
			return err
		}
	}
	r.close()
	return nil
}

func (r *savedReader) close() {
	if r.file != nil {
		_ = r.file.Close()
		r.file = nil
	}
}

// eachOfPanel calls do with the bytes of a panel of rows, in as few calls as possible.
func eachOfPanel(rows spmv.Rows, panel int, do func([]byte) error) error {
	raw, stride, size := rows.Bytes()
	if stride == size {
		return do(raw)
	}
	for at := panel * size; at < len(raw); at += stride {
		if err := do(raw[at : at+size]); err != nil {
			return err
		}
	}
	return nil
}
