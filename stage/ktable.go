package stage

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"ndls/catalog"
	"ndls/estimate"
	"ndls/internal/control"
	"ndls/internal/mem"
	"ndls/internal/seal"
	"ndls/shards"
)

// labelTable is the folder of the K table for an ε of label smoothing.
func labelTable(epsilon float64) string {
	return "lsi/epsilon-" + strconv.FormatFloat(epsilon, 'g', -1, 64) + "/"
}

// looserEpsilon is the ε of label smoothing, if K for it is found on the way to the K table,
// else 0. Rows that settle would make K depend on the other ε.
func looserEpsilon(p control.Plan) float64 {
	if p.Labels.TakesK() && p.Labels.Epsilon > p.LSI.Epsilon && !p.SlackSettles() {
		return p.Labels.Epsilon
	}
	return 0
}

// looserEpsilons are the ε for which the LSI stage finds K on the way, in ascending order: that of
// label smoothing, and those for which others may ask it later.
func (env *Env) looserEpsilons() (list []float64) {
	return loosersOf(env.Plan, FactsOf(env.Summary), env.Inputs.LabelEpsilons)
}

// loosersOf are those ε under a plan for a graph, with a list of those that others may ask for.
func loosersOf(p control.Plan, f estimate.Facts, asked string) (list []float64) {
	if p.SlackSettles() {
		return nil
	}
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

// HasK says whether the run directory has the K table for an ε, where the plan's own is found.
func HasK(cat *catalog.Catalog, p control.Plan, s shards.Summary, epsilon float64) bool {
	_, ok := (&Env{Catalog: cat, Plan: p, Summary: s}).filesOfK(epsilon)
	return ok
}

// filesOfK are the files of the K table for an ε, in order of interval, if they are all there.
func (env *Env) filesOfK(epsilon float64) ([]catalog.Entry, bool) {
	if epsilon != env.Plan.LSI.Epsilon {
		return env.labelLSI(epsilon)
	}
	all := env.Catalog.Entries(catalog.KindLSI)
	return all, len(all) == intervals(env.Summary)
}

// labelTableEpsilon is looserEpsilon where the graph has what label smoothing needs, else 0.
func labelTableEpsilon(p control.Plan, f estimate.Facts) float64 {
	if (smoothLabelsStage{}).Lacks(p, f) != "" {
		return 0
	}
	return looserEpsilon(p)
}

// labelLSI are the files of the K table for that ε, in order of interval, if they are all there.
func (env *Env) labelLSI(epsilon float64) ([]catalog.Entry, bool) {
	all := slices.DeleteFunc(env.Catalog.Entries(catalog.KindLabelLSI), func(e catalog.Entry) bool {
		return !strings.HasPrefix(e.Path, labelTable(epsilon))
	})
	return all, len(all) == intervals(env.Summary)
}

// readLSI visits the K table in order of node.
func (env *Env) readLSI(ctx context.Context, visit func(node int64, k int32, capped bool)) error {
	return shards.VisitK(ctx, env.Catalog, env.Catalog.Entries(catalog.KindLSI), env.readers(), visit)
}

// kTable loads K by node, of the task's rows of n; values above most become most, as they would be with
// that Kmax.
func (env *Env) kTable(ctx context.Context, n int64, most int) (*mem.Array[uint16], error) {
	return env.loadK(ctx, env.Catalog.Entries(catalog.KindLSI), n, most)
}

// loadK is kTable for a K table in these files.
func (env *Env) loadK(ctx context.Context, files []catalog.Entry, n int64, most int) (*mem.Array[uint16], error) {
	lo, hi := env.Span(n)
	a, err := mem.Alloc[uint16](env.Budget, hi-lo, "K table")
	if err != nil {
		return nil, err
	}
	rows := int64(0)
	err = shards.VisitK(ctx, env.Catalog, files, env.readers(), func(node int64, k int32, _ bool) {
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
