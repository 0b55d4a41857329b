package depth

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"ndls/catalog"
	"ndls/estimate"
	"ndls/internal/mem"
	"ndls/internal/seal"
	"ndls/internal/storage"
	"ndls/lsi"
	"ndls/plan"
	"ndls/shards"
	"ndls/stage"
	"ndls/tiles"
)

func countLSI(r storage.Reader, name string) (n int64, err error) {
	err = shards.ReadLSI(r, name, shards.Readers{}, func(_ int64, b shards.LSIBatch) error { n += int64(len(b.ID)); return nil })
	return n, err
}

// lsiFolder is the folder of the K table.
const lsiFolder = "lsi/"

// commitTables commits the K tables of all nodes, one for each ε, and the distances of the sampled nodes.
func (env lsiRun) commitTables(ctx context.Context, ids []uint32, epsilons []float64, table *lsi.Table) error {
	s := env.Summary
	files := env.Catalog.Batch()
	defer files.Abort()
	for column, k := range table.Columns() {
		for i := range stage.Intervals(s) {
			lo := int64(i) * s.IntervalRows
			hi := min(lo+s.IntervalRows, s.Nodes)
			if err := env.writeInterval(ctx, files, epsilons[column], i, ids[lo:hi], k[lo:hi]); err != nil {
				return err
			}
		}
	}
	list := env.sampledOf(table, 0, s.Nodes)
	if err := files.Write(ctx, fileOfSample(list), stage.WriteJSON(list)); err != nil {
		return err
	}
	return files.Commit(ctx)
}

// writeInterval writes an interval of the K table for an ε. k has stored values.
func (env lsiRun) writeInterval(ctx context.Context, files *catalog.Batch, epsilon float64, interval int, ids []uint32, k []uint16) error {
	kind, folder := catalog.KindLSI, lsiFolder
	if epsilon != env.Plan.LSI.Epsilon {
		kind, folder = catalog.KindLabelLSI, labelTable(epsilon)
	}
	lo := int64(interval) * env.Summary.IntervalRows
	e := catalog.Describe(kind, fmt.Sprintf("%spart-%05d.parquet", folder, interval)).In(interval).Counting(int64(len(ids)))
	return files.Write(ctx, e, func(f *catalog.File) error {
		names, closeNames, err := env.Nodes().Names(ctx, lo)
		if err != nil {
			return err
		}
		defer closeNames()
		return shards.WriteLSI(f, int64(len(ids)), names, env.Resources.Threads, func(first int64, b shards.LSIBatch) error {
			for r := range b.ID {
				i := first + int64(r)
				hops, capped := lsi.Entry(k[i])
				b.ID[r], b.K[r], b.Capped[r] = int64(ids[i]), int32(hops), capped
			}
			return nil
		})
	})
}

// joinTable writes the K table for an ε from files with K of its nodes.
func (env lsiRun) joinTable(ctx context.Context, files *catalog.Batch, epsilon float64, found []catalog.Entry) error {
	s := env.Summary
	for _, e := range found {
		// Intervals are written before the ends of their sources are read, so check the sources first.
		if err := env.Catalog.Verify(ctx, e); err != nil {
			return err
		}
	}
	rows, err := tiles.OpenParts(ctx, env.Catalog, found, 2)
	if err != nil {
		return err
	}
	defer rows.Close()
	most := min(s.IntervalRows, s.Nodes)
	ids, err := mem.Alloc[uint32](env.Budget, most, "input ids")
	if err != nil {
		return err
	}
	defer ids.Free()
	k, err := mem.Alloc[uint16](env.Budget, most, "K table")
	if err != nil {
		return err
	}
	defer k.Free()
	var failed error
	err = env.Nodes().Read(ctx, shards.NodeID, func(first int64, b shards.NodeBatch) {
		for i, id := range b.ID {
			node := first + int64(i)
			interval := node / s.IntervalRows
			lo, hi := interval*s.IntervalRows, min((interval+1)*s.IntervalRows, s.Nodes)
			ids.S[node-lo] = uint32(id)
			if node != hi-1 || failed != nil {
				continue
			}
			if failed = rows.Read(mem.AsBytes(k.S[:hi-lo]), lo); failed == nil {
				failed = env.writeInterval(ctx, files, epsilon, int(interval), ids.S[:hi-lo], k.S)
			}
		}
	})
	return errors.Join(failed, err)
}

// labelTable returns the folder of the K table for an ε of label smoothing.
func labelTable(epsilon float64) string {
	return "lsi/epsilon-" + strconv.FormatFloat(epsilon, 'g', -1, 64) + "/"
}

// LooserEpsilon returns the ε of label smoothing if K for it is found on the way to the K table, else 0.
func LooserEpsilon(p plan.Options) float64 {
	if p.Labels.TakesK() && p.Labels.Epsilon > p.LSI.Epsilon {
		return p.Labels.Epsilon
	}
	return 0
}

// Tables finds and reads the tables of K.
type Tables struct{ *stage.Env }

// TablesOf returns the tables of the run of env.
func TablesOf(env *stage.Env) Tables { return Tables{env} }

// looserEpsilons returns the ε for which the LSI stage finds K on the way, in ascending order: the ε of label smoothing, and those for
// which the inputs ask.
func (env Tables) looserEpsilons() (list []float64) {
	return loosersOf(env.Plan, stage.FactsOf(env.Summary), env.Inputs.LabelEpsilons)
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

// KeptHops returns the number of hops of each node. It calls find unless the session keeps a table with this key.
func KeptHops(x *stage.Session, key int, find func() (*mem.Array[uint16], error)) ([]uint16, error) {
	k, err := stage.Keep(x, "hops", key, find)
	if err != nil {
		return nil, err
	}
	return k.S, nil
}

// HasK reports whether the run directory has the K table for an ε.
func HasK(cat *catalog.Catalog, p plan.Options, s shards.Summary, epsilon float64) bool {
	_, ok := Tables{&stage.Env{Catalog: cat, Plan: p, Summary: s}}.Files(epsilon)
	return ok
}

// Files returns the files of the K table for an ε, in order of interval, and whether all exist.
func (env Tables) Files(epsilon float64) ([]catalog.Entry, bool) {
	if epsilon != env.Plan.LSI.Epsilon {
		return env.Looser(epsilon)
	}
	all := env.Catalog.Entries(catalog.KindLSI)
	return all, len(all) == stage.Intervals(env.Summary)
}

// labelTableEpsilon returns LooserEpsilon if the graph has what label smoothing needs, else 0.
func labelTableEpsilon(p plan.Options, f estimate.Facts) float64 {
	if stage.LacksSmoothing(p, f) != "" {
		return 0
	}
	return LooserEpsilon(p)
}

// Looser returns the files of the K table for this ε, in order of interval, and whether all exist.
func (env Tables) Looser(epsilon float64) ([]catalog.Entry, bool) {
	all := slices.DeleteFunc(env.Catalog.Entries(catalog.KindLabelLSI), func(e catalog.Entry) bool {
		return !strings.HasPrefix(e.Path, labelTable(epsilon))
	})
	return all, len(all) == stage.Intervals(env.Summary)
}

// readLSI visits the K table in order of node.
func (env Tables) readLSI(ctx context.Context, visit func(node int64, k int32, capped bool)) error {
	return shards.VisitK(ctx, env.Catalog, env.Catalog.Entries(catalog.KindLSI), env.Nodes().Readers(), visit)
}

// K loads K of the task's nodes. Values above most become most, as they would be with this Kmax.
func (env Tables) K(ctx context.Context, most int) (*mem.Array[uint16], error) {
	return env.Load(ctx, env.Catalog.Entries(catalog.KindLSI), most)
}

// Load loads K like K, from these files.
func (env Tables) Load(ctx context.Context, files []catalog.Entry, most int) (*mem.Array[uint16], error) {
	n := env.Summary.Nodes
	lo, hi := env.Span(n)
	a, err := mem.Alloc[uint16](env.Budget, hi-lo, "K table")
	if err != nil {
		return nil, err
	}
	rows := int64(0)
	err = shards.VisitK(ctx, env.Catalog, files, env.Nodes().Readers(), func(node int64, k int32, _ bool) {
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
