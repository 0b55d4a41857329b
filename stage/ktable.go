package stage

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"ndls/catalog"
	"ndls/estimate"
	"ndls/internal/mem"
	"ndls/internal/seal"
	"ndls/plan"
	"ndls/shards"
)

// labelTable returns the folder of the K table for an ε of label smoothing.
func labelTable(epsilon float64) string {
	return "lsi/epsilon-" + strconv.FormatFloat(epsilon, 'g', -1, 64) + "/"
}

// looserEpsilon returns the ε of label smoothing if K for it is found on the way to the K table, else 0.
func looserEpsilon(p plan.Options) float64 {
	if p.Labels.TakesK() && p.Labels.Epsilon > p.LSI.Epsilon {
		return p.Labels.Epsilon
	}
	return 0
}

// tablesOfK finds and reads the tables of K.
type tablesOfK struct{ *Env }

func (env *Env) tablesOfK() tablesOfK { return tablesOfK{env} }

// looserEpsilons returns the ε for which the LSI stage finds K on the way, in ascending order: the ε of label smoothing, and those for
// which the inputs ask.
func (env tablesOfK) looserEpsilons() (list []float64) {
	return loosersOf(env.Plan, FactsOf(env.Summary), env.Inputs.LabelEpsilons)
}

// loosersOf returns these ε under a plan for a graph; asked lists the ε of the inputs.
func loosersOf(p plan.Options, f estimate.Facts, asked string) (list []float64) {
	if epsilon := labelTableEpsilon(p, f); epsilon > 0 {
		list = append(list, epsilon)
	}
	for _, text := range strings.Split(asked, ",") {
		if epsilon, err := strconv.ParseFloat(text, 64); err == nil && epsilon > p.LSI.Epsilon {
			list = append(list, epsilon)
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// HasK reports whether the run directory has the K table for an ε.
func HasK(cat *catalog.Catalog, p plan.Options, s shards.Summary, epsilon float64) bool {
	_, ok := (&Env{Catalog: cat, Plan: p, Summary: s}).tablesOfK().filesOfK(epsilon)
	return ok
}

// filesOfK returns the files of the K table for an ε, in order of interval, and whether all exist.
func (env tablesOfK) filesOfK(epsilon float64) ([]catalog.Entry, bool) {
	if epsilon != env.Plan.LSI.Epsilon {
		return env.labelLSI(epsilon)
	}
	all := env.Catalog.Entries(catalog.KindLSI)
	return all, len(all) == intervals(env.Summary)
}

// labelTableEpsilon returns looserEpsilon if the graph has what label smoothing needs, else 0.
func labelTableEpsilon(p plan.Options, f estimate.Facts) float64 {
	if (smoothLabelsStage{}).Lacks(p, f) != "" {
		return 0
	}
	return looserEpsilon(p)
}

// labelLSI returns the files of the K table for this ε, in order of interval, and whether all exist.
func (env tablesOfK) labelLSI(epsilon float64) ([]catalog.Entry, bool) {
	all := slices.DeleteFunc(env.Catalog.Entries(catalog.KindLabelLSI), func(e catalog.Entry) bool {
		return !strings.HasPrefix(e.Path, labelTable(epsilon))
	})
	return all, len(all) == intervals(env.Summary)
}

// readLSI visits the K table in order of node.
func (env tablesOfK) readLSI(ctx context.Context, visit func(node int64, k int32, capped bool)) error {
	return shards.VisitK(ctx, env.Catalog, env.Catalog.Entries(catalog.KindLSI), env.nodeTable().readers(), visit)
}

// kTable loads K of the task's nodes, of n in all. Values above most become most, as they would be with this Kmax.
func (env tablesOfK) kTable(ctx context.Context, n int64, most int) (*mem.Array[uint16], error) {
	return env.loadK(ctx, env.Catalog.Entries(catalog.KindLSI), n, most)
}

// loadK loads K like kTable, from these files.
func (env tablesOfK) loadK(ctx context.Context, files []catalog.Entry, n int64, most int) (*mem.Array[uint16], error) {
	lo, hi := env.Span(n)
	a, err := mem.Alloc[uint16](env.Budget, hi-lo, "K table")
	if err != nil {
		return nil, err
	}
	rows := int64(0)
	err = shards.VisitK(ctx, env.Catalog, files, env.nodeTable().readers(), func(node int64, k int32, _ bool) {
		if lo <= node && node < hi {
			a.S[node-lo] = uint16(min(int(k), most))
		}
		rows++
	})
	if err == nil && rows != n {
		err = fmt.Errorf("the K table has %d rows for %d nodes: run `ndls lsi` again: %w", rows, n, seal.ErrCorrupt)
	}
	if err != nil {
		a.Free()
		return nil, err
	}
	return a, nil
}
