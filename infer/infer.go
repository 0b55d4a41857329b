package infer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"ndls/catalog"
	"ndls/dataset"
	"ndls/dataset/prepare"
	"ndls/internal/failure"
	"ndls/internal/inputid"
	"ndls/internal/mem"
	"ndls/internal/progress"
	"ndls/internal/vfs"
	"ndls/partition"
	"ndls/plan"
	"ndls/shards"
	"ndls/stage/features"
	"ndls/stage/labels"
	"ndls/train"
)

// ReportPath is the file of the report. It is written last, when the output is complete.
const ReportPath = "infer.json"

// kindReport is the kind of the report in the catalogue of the output.
const kindReport = "inference"

// Options say what to compute, and with what.
type Options struct {
	// Epsilon is the distance in feature space below which a node has settled; 0 takes the
	// one that fits the run.
	Epsilon float64
	Budget  *mem.Budget
	Threads int
	// Kernel is the implementation of products, Scratch a folder for temporary files.
	Kernel, Scratch string
}

// Report says what was found.
type Report struct {
	// Nodes and Edges are the new nodes, and their edges; OldNodes are the nodes of the run
	// with an edge to a new one.
	Nodes    int64 `json:"nodes"`
	Edges    int64 `json:"edges"`
	OldNodes int64 `json:"old_nodes"`
	// SelfLoops, Repeated and OldEdges were left out: edges from a node to itself, edges that
	// were named before, and edges between two nodes of the run.
	SelfLoops int64 `json:"self_loops"`
	Repeated  int64 `json:"repeated"`
	OldEdges  int64 `json:"old_edges"`
	// Hops is the last hop, Epsilon the distance below which a node has settled, MeanK and
	// Capped the mean K and the number of nodes that have not settled at the last hop.
	Hops    int     `json:"hops"`
	Epsilon float64 `json:"epsilon"`
	MeanK   float64 `json:"mean_k"`
	Capped  int64   `json:"capped"`
	// Predicted reports whether there are predictions.
	Predicted bool `json:"predicted"`
	// Models are the numbers of the models that made them, of several the mean: those whose predictions the run has written.
	Models []int `json:"models,omitempty"`
}

// Run computes K, smoothed rows and predictions of the nodes of ds that a run does not have,
// and commits them in out, which should be empty.
func Run(ctx context.Context, cat *catalog.Catalog, opts plan.Options, ds dataset.Dataset, out *catalog.Catalog,
	o Options,
) (_ *Report, err error) {
	if _, done := out.Lookup(ReportPath); done {
		return nil, failure.Of(failure.ErrOption, "--out holds the output of ndls infer already: give another folder")
	}
	keyed, ok := ds.(dataset.Keyed)
	if !ok || !keyed.OwnNodes() {
		return nil, failure.Of(failure.ErrOption, "new nodes come as tables, one of edges and one of the new nodes: --dataset table:EDGES?src=COLUMN&dst=COLUMN&nodes=NODES&id=COLUMN&features=COLUMN")
	}
	switch weighted := dataset.IsWeighted(opts.Partition.Dataset); {
	case weighted && !ds.Info().Weighted:
		return nil, failure.Of(failure.ErrOption, "the edges of the run have weights, and those of the dataset have none: name the column with their weights, weight=COLUMN")
	case !weighted && ds.Info().Weighted:
		return nil, failure.Of(failure.ErrOption, "the edges of the dataset have weights, and those of the run have none: leave weight= out, or make a run with weights")
	case dataset.IsDirected(opts.Partition.Dataset) || ds.Info().Directed:
		return nil, failure.Of(failure.ErrOption, "edges have directions, and new nodes get K hops, which are defined for edges without directions: use a run without directed=true, and leave it out here")
	case opts.Embeds():
		return nil, failure.Of(failure.ErrOption, "the rows of this run are made by --rule %s, and a run does not keep the hops of its random rows, which new nodes would need: make a run that has the new nodes", opts.Smooth.Rule)
	case opts.Smooth.LabelColumns > 0:
		return nil, failure.Of(failure.ErrOption, "the run has --label-columns, and keeps the hops of its training nodes without their own labels, which new nodes beside them would need: make a run without --label-columns")
	}
	rule, err := features.RuleOf(opts)
	switch {
	case err != nil:
		return nil, err
	case rule.Weighs():
		return nil, failure.Of(failure.ErrOption, "the rows of this run are made by --rule %s, whose hops go once rows are made of them, and new nodes would need the hops of their neighbours: make a run that has the new nodes", opts.Smooth.Rule)
	case rule.Repeats():
		return nil, failure.Of(failure.ErrOption, "the run has --rule %s with --depth %s, whose lists repeat the last hop of a node, and new nodes would need every hop of their neighbours: make a run without --depth", opts.Smooth.Rule, opts.Smooth.Depth)
	}
	r, err := openRun(ctx, cat, opts, rule, o.Budget, o.Threads)
	if err != nil {
		return nil, err
	}
	defer r.free()
	columns, err := partition.ReadColumns(ctx, cat)
	if err == nil && columns != nil {
		err = columns.Check(ds.Info())
	}
	if err != nil {
		return nil, err
	}
	if width := ds.Info().NumFeatures; columns == nil && width != r.summary.Features {
		return nil, failure.Of(failure.ErrData, "the new nodes have %d features, the nodes of the run %d: give them the same columns", width, r.summary.Features)
	}
	j := &job{run: r, ds: keyed, columns: columns, out: out, o: o}
	defer j.free()
	return j.do(ctx)
}

// job is one call of Run.
type job struct {
	*run
	ds dataset.Keyed
	// columns says how the columns of ds become features; nil if they are features.
	columns *prepare.Columns
	out     *catalog.Catalog
	o       Options

	ids    *ids
	joined *joined
	means  *means
	// features and smoothed have a row for each new node, in order of number.
	features, smoothed vfs.File
	k                  *mem.Array[uint16]
	capped             *mem.Array[bool]
	report             Report
}

func (j *job) free() {
	if j.ids != nil {
		j.ids.free()
	}
	if j.joined != nil {
		j.joined.free()
	}
	if j.means != nil {
		j.means.free()
	}
	j.k.Free()
	j.capped.Free()
	for _, f := range []vfs.File{j.features, j.smoothed} {
		if f != nil {
			_ = f.Close()
		}
	}
}

func (j *job) do(ctx context.Context) (*Report, error) {
	if err := j.readEdges(ctx); err != nil {
		return nil, err
	}
	if err := j.readFeatures(ctx); err != nil {
		return nil, err
	}
	if err := j.compute(ctx); err != nil {
		return nil, err
	}
	if err := j.writeK(ctx); err != nil {
		return nil, err
	}
	if err := j.writeRows(ctx); err != nil {
		return nil, err
	}
	if err := j.predict(ctx); err != nil {
		return nil, err
	}
	return &j.report, j.writeReport(ctx)
}

// readEdges numbers the new nodes and reads their edges.
func (j *job) readEdges(ctx context.Context) (err error) {
	if j.ids, err = openIDs(ctx, j.out, j.ds, j.run.ids, j.o.Budget, j.o.Scratch); err != nil {
		return err
	}
	rows, err := j.ids.collect(ctx, j.o.Budget)
	if err != nil {
		return err
	}
	nodes, err := mem.Alloc[uint32](j.o.Budget, int64(j.ids.others), "old nodes beside new ones")
	if err != nil {
		return err
	}
	defer nodes.Free()
	if err := j.ids.resolve(ctx, j.run, nodes.S); err != nil {
		return err
	}
	if j.joined, err = join(ctx, j.o.Budget, j.ids, nodes.S, rows, j.o.Threads); err != nil {
		return j.nameEdge(ctx, err)
	}
	x := j.joined
	j.report.Nodes, j.report.Edges, j.report.OldNodes = int64(x.m), x.edges, int64(len(x.node.S))
	j.report.SelfLoops, j.report.Repeated, j.report.OldEdges = x.loops, x.repeated, x.old
	return nil
}

// nameEdge gives an error about an edge the ids of its ends.
func (j *job) nameEdge(ctx context.Context, err error) error {
	var bad *badEdge
	if !errors.As(err, &bad) {
		return err
	}
	fresh, other, err := j.endsOf(ctx, bad)
	if err != nil {
		return err
	}
	return failure.Of(failure.ErrData, "%s: the edge between nodes %s and %s: %s", j.ds.Info().Name, fresh, other, bad.problem)
}

// endsOf are the ids of the ends of an edge.
func (j *job) endsOf(ctx context.Context, bad *badEdge) (fresh, other string, err error) {
	names, closeNames, err := j.names(ctx)
	if err != nil {
		return "", "", err
	}
	defer closeNames()
	number, t := uint32(0), names.IDs().Type
	if err := names.Each(func(_ int64, keys [][]byte) error {
		for _, key := range keys {
			if number == bad.fresh {
				fresh = t.Quote(key)
			}
			if number == bad.other {
				other = t.Quote(key)
			}
			number++
		}
		return ctx.Err()
	}); err != nil || !bad.old {
		return fresh, other, err
	}
	err = j.eachKey(ctx, func(node uint32, t inputid.Type, key []byte) error {
		if node == bad.other {
			other = t.Quote(key)
		}
		return nil
	})
	return fresh, other, err
}

// temp is a temporary file that has no name any more.
func (j *job) temp() (vfs.File, error) {
	f, err := vfs.CreateTemp(j.o.Scratch, "ndls-infer-*")
	if err != nil {
		return nil, fmt.Errorf("scratch file: %w", err)
	}
	if f, err = vfs.Nameless(f); err != nil {
		return nil, fmt.Errorf("scratch file: %w", err)
	}
	return f, nil
}

// readFeatures writes the features of the new nodes in order of number.
func (j *job) readFeatures(ctx context.Context) (err error) {
	if j.features, err = j.temp(); err != nil {
		return err
	}
	in, err := j.ds.Features(ctx, dataset.Whole)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, in.Close()) }()
	if j.columns != nil {
		in = j.columns.ReadBlank(in)
	}
	w, n := j.summary.Features, 0
	full := make([]float32, w)
	meter := progress.Start(ctx, "reading features", int64(j.ids.m), "rows")
	defer meter.Done()
	for {
		row, err := in.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			return err
		}
		values := row.Dense
		if values == nil {
			clear(full)
			for i, c := range row.Indices {
				full[c] = row.Values[i]
			}
			values = full
		}
		if j.summary.Normalized {
			partition.NormalizeRow(values)
		}
		if _, err := j.features.WriteAt(mem.AsBytes(values), int64(row.ID)*int64(w)*4); err != nil {
			return fmt.Errorf("features of new nodes: %w", err)
		}
		n++
		meter.Add(1)
		if n%1024 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
	}
	if n != j.ids.m {
		return failure.Of(failure.ErrData, "the dataset has %d feature rows for %d new nodes", n, j.ids.m)
	}
	return nil
}

// compute finds K and the smoothed rows.
func (j *job) compute(ctx context.Context) (err error) {
	var sample []uint32
	epsilon := j.o.Epsilon
	if epsilon == 0 && !j.sameMeasure() {
		if sample, err = j.sample(ctx); err != nil {
			return err
		}
	}
	if j.means, err = j.findMeans(ctx, j.joined.node.S, sample); err != nil {
		return err
	}
	if epsilon == 0 {
		if epsilon, err = j.threshold(ctx, sample, j.means); err != nil {
			return err
		}
	}
	m := int64(j.ids.m)
	if j.k, err = mem.Alloc[uint16](j.o.Budget, m, "K of new nodes"); err != nil {
		return err
	}
	if j.capped, err = mem.Alloc[bool](j.o.Budget, m, "K of new nodes"); err != nil {
		return err
	}
	if j.smoothed, err = j.temp(); err != nil {
		return err
	}
	old := int64(len(j.joined.node.S))
	mean, err := mem.Alloc[uint32](j.o.Budget, old, "old nodes beside new ones")
	if err != nil {
		return err
	}
	defer mean.Free()
	degree1, err := mem.Alloc[float64](j.o.Budget, old, "old nodes beside new ones")
	if err != nil {
		return err
	}
	defer degree1.Free()
	e := &engine{
		neighbours: j.joined.neighbours, kept: j.hops, r: j.plan.LSI.R, node: j.joined.node.S, degree1: degree1.S, mean: mean.S,
		fill: j.columns, means: j.means.rows.S, alone: !j.global(), rule: j.rule, epsilon: epsilon, threads: j.o.Threads,
	}
	for i, v := range e.node {
		e.degree1[i], e.mean[i] = j.degree1(v), j.means.of(j.run, v)
	}
	j.report.Hops, j.report.Epsilon = j.hops.last(), epsilon
	w, outWidth := j.hops.width(), j.outWidth()
	meter := progress.Start(ctx, "new nodes", m, "rows")
	defer meter.Done()
	sum := 0
	row := make([]float32, w)
	err = e.run(ctx, j.o.Budget, func(nodes []uint32, put func(i int, row []float32)) error {
		for i, v := range nodes {
			if _, err := j.features.ReadAt(mem.AsBytes(row), int64(v)*int64(w)*4); err != nil {
				return fmt.Errorf("features of new nodes: %w", err)
			}
			put(i, row)
		}
		return nil
	}, func(b *batch) error {
		for i, v := range b.nodes {
			j.k.S[v], j.capped.S[v] = b.k[i], b.capped[i]
			sum += int(b.k[i])
			if b.capped[i] {
				j.report.Capped++
			}
			if _, err := j.smoothed.WriteAt(mem.AsBytes(b.out[i*outWidth:(i+1)*outWidth]), int64(v)*int64(outWidth)*4); err != nil {
				return fmt.Errorf("rows of new nodes: %w", err)
			}
		}
		meter.Add(int64(len(b.nodes)))
		return nil
	})
	j.report.MeanK = float64(sum) / float64(m)
	return err
}

// names opens the ids of the new nodes.
func (j *job) names(ctx context.Context) (*shards.IDReader, func(), error) {
	e, _ := j.out.Lookup(idsPath)
	f, err := j.out.Open(ctx, e)
	if err != nil {
		return nil, nil, err
	}
	t, err := shards.OpenIDs(f, e.Path)
	if err != nil {
		return nil, nil, errors.Join(err, f.Close())
	}
	return t, func() { _ = f.Close() }, nil
}

// create begins a file of rows of the new nodes, which write writes, and commits it.
func (j *job) create(ctx context.Context, kind, path string, write func(f *catalog.File, names *shards.IDReader) error) error {
	names, closeNames, err := j.names(ctx)
	if err != nil {
		return err
	}
	defer closeNames()
	e := catalog.Describe(kind, path).In(0).Counting(int64(j.ids.m))
	return j.out.Write(ctx, e, func(f *catalog.File) error { return write(f, names) })
}

func (j *job) writeK(ctx context.Context) error {
	return j.create(ctx, catalog.KindLSI, "lsi/part-00000.parquet", func(f *catalog.File, names *shards.IDReader) error {
		return shards.WriteLSI(f, int64(j.ids.m), names, j.o.Threads, func(first int64, b shards.LSIBatch) error {
			for i := range b.ID {
				v := first + int64(i)
				b.ID[i], b.K[i], b.Capped[i] = v, int32(j.k.S[v]), j.capped.S[v]
			}
			return nil
		})
	})
}

// outWidth is the number of values of an output row.
func (j *job) outWidth() int {
	if j.rule.Sums() {
		return j.hops.width()
	}
	return j.hops.hops * j.hops.width()
}

// rows returns the artifact of the run that corresponds to the output rows: the sums of the rule,
// or, if it adds nothing up, the hops.
func (j *job) rows() (kind, path string, schema shards.RowSchema) {
	if j.rule.Sums() {
		return catalog.KindSmoothed, "smoothed/part-00000.arrow", shards.RowSchema{Column: "feature", Width: j.hops.width()}
	}
	return catalog.KindKeptHops, "hops/part-00000.arrow", shards.HopSchema(hopsTo(j.hops.last()), j.hops.width(), false)
}

func (j *job) writeRows(ctx context.Context) error {
	kind, path, schema := j.rows()
	w, lists := j.outWidth(), len(schema.Lists())
	return j.create(ctx, kind, path, func(f *catalog.File, names *shards.IDReader) error {
		out, err := shards.NewRowWriter(f, schema, names)
		if err != nil {
			return err
		}
		batch := min(shards.BatchRows(w), j.ids.m)
		values, err := mem.Alloc[float32](j.o.Budget, int64(2*batch*w), "rows of new nodes")
		if err != nil {
			return err
		}
		defer values.Free()
		for first := 0; first < j.ids.m; first += batch {
			n := min(batch, j.ids.m-first)
			rows, byList := values.S[:n*w], values.S[batch*w:][:n*w]
			if _, err := j.smoothed.ReadAt(mem.AsBytes(rows), int64(first)*int64(w)*4); err != nil {
				return fmt.Errorf("rows of new nodes: %w", err)
			}
			// The file has one list after the other, a row of the engine all lists.
			width := schema.Width
			for i := range n {
				for k := range lists {
					copy(byList[(k*n+i)*width:][:width], rows[i*w+k*width:])
				}
			}
			if err := out.Write(numbers(first, n), nil, byList); err != nil {
				return err
			}
		}
		_, err = out.Close()
		return err
	})
}

// numbers are n numbers from first on.
func numbers(first, n int) []int64 {
	list := make([]int64, n)
	for i := range list {
		list[i] = int64(first + i)
	}
	return list
}

// predict lets the models whose predictions the run has written say which classes the new nodes have, if there is one: one model, or
// the mean of several.
func (j *job) predict(ctx context.Context) (err error) {
	models, numbers, classes, err := labels.WrittenModels(ctx, j.cat, j.plan, j.o.Budget)
	if len(models) == 0 || err != nil {
		return err
	}
	defer func() {
		for _, m := range models {
			m.Free()
		}
	}()
	kind, _, _ := j.rows()
	src, err := train.OpenRows(ctx, j.out, kind)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, src.Close()) }()
	j.report.Predicted, j.report.Models = true, numbers
	sums, err := newMean(j.o.Budget, len(classes), len(models))
	if err != nil {
		return err
	}
	defer sums.free()
	return j.create(ctx, catalog.KindPredictions, "predictions/part-00000.arrow", func(f *catalog.File, names *shards.IDReader) error {
		out, err := shards.NewRowWriter(f, labels.PredictionSchema(j.plan, len(classes)), names)
		if err != nil {
			return err
		}
		res := train.Resources{Budget: j.o.Budget, Threads: j.o.Threads, Kernel: j.o.Kernel}
		err = train.Predict(ctx, src, models, res, func(_ int64, ids []int64, model int, soft []float32) error {
			soft = sums.add(model, soft)
			if model < len(models)-1 {
				return nil
			}
			if j.plan.Answers() {
				return out.Write(ids, nil, soft)
			}
			labels := make([]int32, len(ids))
			for i := range labels {
				labels[i] = train.Argmax(soft[i*len(classes):][:len(classes)])
			}
			return out.Write(ids, labels, soft)
		})
		if err != nil {
			return err
		}
		_, err = out.Close()
		return err
	})
}

// writeReport commits the report, and with it the output.
func (j *job) writeReport(ctx context.Context) error {
	if err := j.out.Write(ctx, catalog.Describe(kindReport, ReportPath).Counting(1), func(w *catalog.File) error {
		e := json.NewEncoder(w)
		e.SetIndent("", "  ")
		return e.Encode(j.report)
	}); err != nil {
		return err
	}
	return j.out.Publish(ctx)
}
