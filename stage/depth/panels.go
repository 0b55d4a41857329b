package depth

import (
	"context"
	"errors"
	"fmt"
	"io"

	"ndls/catalog"
	"ndls/hops"
	"ndls/internal/direct"
	"ndls/internal/packed"
	"ndls/lsi"
	"ndls/plan"
	"ndls/spmv"
	"ndls/stage/graph"
)

// stretch makes the hops of panels [first, last) in the next stretch.
func (env lsiRun) stretch(ctx context.Context, first, last int) error {
	x, err := lsiProgressOf(env.Plan, env.Summary, env.Catalog).agreed(ctx, env.Group)
	if err != nil {
		return err
	}
	for ; first < last; first++ { // adjacent panels may differ in progress
		if x.at[first] >= x.to {
			continue
		}
		end := first + 1
		for end < last && x.at[end] == x.at[first] {
			end++
		}
		if err := env.stretchPanels(ctx, x, first, end); err != nil {
			return err
		}
		first = end - 1
	}
	return nil
}

// stretchPanels makes the hops of panels that are at the same hop.
func (env lsiRun) stretchPanels(ctx context.Context, x lsiProgress, first, last int) (err error) {
	if x.at[first] != x.from {
		return nil // another attempt has already gone further
	}
	g, err := graph.Open(ctx, env.Env)
	if err != nil {
		return err
	}
	var probe lsi.Probe
	if x.from < 0 {
		ids, err := env.Nodes().IDs(ctx)
		if err != nil {
			return err
		}
		defer ids.Free()
		var free func()
		if probe, free, err = Probe(ctx, g, ids.S); err != nil {
			return err
		}
		defer free()
	}
	state, err := g.State(ctx)
	if err != nil {
		return err
	}
	defer state.Free()
	scratch, err := direct.NewScratch(env.Resources.Scratch)
	if err != nil {
		return fmt.Errorf("scratch file: %w", err)
	}
	defer func() { err = errors.Join(err, scratch.Close()) }()
	f, err := env.newSquares(ctx, x, g.Lo, g.Hi, scratch)
	if err != nil {
		return err
	}
	defer f.free()
	free := g.Capacity((last - first) * packed.PanelColumns)
	free.Precision = env.precisionOfK()
	fits, err := g.Agree(ctx, free, func(c hops.Capacity) (spmv.Layout, error) {
		o, _, err := optionsOfStretch(env.Plan, x.few).StretchPlan(c)
		return o.Layout, err
	})
	if err != nil {
		return err
	}
	options, need, err := optionsOfStretch(env.Plan, x.few).StretchPlan(fits)
	if err != nil {
		return g.Refused("lsi", need, err)
	}
	f.first, f.block = first, options.Layout.Columns/packed.PanelColumns
	s := lsi.Stretch{
		First: first, Last: last, From: x.from, To: x.to,
		Rows:    func(panel int) []lsi.Saved { return env.savedRows(ctx, panel, x.from, g.Lo) },
		Squares: f.put,
		Save: func(ctx context.Context, panel int, write func(io.Writer) error) error {
			if !x.few {
				if err := f.commit(ctx, panel); err != nil {
					return err
				}
			}
			return env.commitRowsOf(ctx, panel, x.to, g.Lo, g.Hi, write)
		},
	}
	if x.few {
		s.Open, s.Products = f.has, f.writeProducts
	}
	stats, err := s.Run(ctx, g.Hops(state), probe, options)
	g.Passed(stats.Stats, options.Layout)
	replaced(env.Env, options, stats)
	return err
}

// optionsOfStretch returns them for a stretch, with none if it makes each hop.
func optionsOfStretch(p plan.Options, few bool) lsi.Options {
	if !few {
		return lsi.Options{}
	}
	return optionsOfK(p)
}

// savedRows lists the files with the rows of a panel after a hop. Rows count from row lo of the graph.
func (env lsiRun) savedRows(ctx context.Context, panel, hop int, lo int64) (files []lsi.Saved) {
	list, _ := catalog.Cover(rowsOf(env.Catalog, panel, hop), 0, env.Summary.Nodes)
	for _, e := range list {
		files = append(files, lsi.Saved{
			First: e.Lo - lo, Rows: e.Hi - e.Lo,
			Open: func() (io.ReadCloser, error) { return env.Catalog.Stream(ctx, e) },
		})
	}
	return files
}

// commitRowsOf commits rows [lo, hi) of a panel after a hop. The panel has ended its stretch once all rows are committed.
func (env lsiRun) commitRowsOf(ctx context.Context, panel, hop int, lo, hi int64, write func(io.Writer) error) error {
	path := fmt.Sprintf("lsi/rows/%05d-%05d%s", panel, hop, env.ofShare(lo, hi))
	return env.Catalog.Write(ctx, catalog.Describe(catalog.KindLSIRows, path).Holding(lo, hi).Panels(panel, panel+1).AtHop(hop),
		func(w *catalog.File) error {
			defer env.Disk.Look()
			return write(w)
		})
}
