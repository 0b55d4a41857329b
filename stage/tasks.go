package stage

import (
	"context"
	"errors"
	"fmt"
	"math"

	"ndls/catalog"
	"ndls/dataset"
	"ndls/estimate"
	"ndls/internal/mem"
	"ndls/internal/packed"
	"ndls/plan"
	"ndls/shards"
	"ndls/steps"
	"ndls/tiles"
	"ndls/train"
)

// Where nodes have several labels, or numbers, these are the columns of a matrix of the graph, in tiles of float32, NaN for what is not
// known. The node table has the class 0 for each node of which some value is known, and -1 for the others, so that splits, validation nodes
// and evaluated nodes are found as they are for classes. The names of the columns are in the place of the names of classes.

// taskOf returns what the models of a plan learn.
func taskOf(p plan.Options) train.Task {
	return map[string]train.Task{plan.SeveralLabels: train.Label, plan.Regression: train.Regress}[p.Partition.Task]
}

// DatasetOptions says what a run reads of a dataset under a plan.
func DatasetOptions(p plan.Options) dataset.Options {
	return dataset.Options{
		NoFeatures: p.Partition.Features == "none",
		Answers:    map[string]dataset.Answers{plan.SeveralLabels: dataset.Labels, plan.Regression: dataset.Numbers}[p.Partition.Task],
	}
}

// answersStep is the last step of a partition that has answers.
const answersStep = "answers"

// answerTiles returns the answers of all nodes.
func answerTiles(env *Env) *tiles.Matrix {
	return env.outputs().matrix(tiles.Layout{Kind: catalog.KindAnswers, Prefix: "graph/answers", Width: len(env.Summary.Classes)})
}

// nextSteps returns what the catalogue lacks of a partition.
type nextSteps func(context.Context, *catalog.Catalog) (steps.Left, error)

// thenAnswers returns the steps of a partition, which end with answersStep.
func thenAnswers(next nextSteps) nextSteps {
	return func(ctx context.Context, cat *catalog.Catalog) (steps.Left, error) {
		l, err := next(ctx, cat)
		if err != nil || !l.Done() || len(cat.Entries(catalog.KindSummary)) == 0 {
			return l, err
		}
		s, err := shards.ReadSummary(ctx, cat)
		if err != nil || len(s.Classes) == 0 {
			return l, err
		}
		if have := len(cat.Entries(catalog.KindAnswers)); have < intervals(s)*packed.Panels(len(s.Classes)) {
			l.Step, l.Pieces, l.Count, l.Weights = answersStep, steps.Units(1), nil, nil
		}
		return l, nil
	}
}

// answerTable imports and reads the answers of nodes.
type answerTable struct{ *Env }

// commit commits the answers of the dataset, after the node table.
func (env answerTable) commit(ctx context.Context) (err error) {
	if !env.Plan.Answers() {
		return nil
	}
	if env.Summary, err = shards.ReadSummary(ctx, env.Catalog); err != nil {
		return err
	}
	out, last := answerTiles(env.Env), packed.Panels(len(env.Summary.Classes))
	first := out.FirstMissing(0, last)
	if first == last {
		return nil
	}
	ds, err := dataset.Open(ctx, env.Inputs.Dataset, DatasetOptions(env.Plan))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, ds.Close()) }()
	answered, ok := ds.(dataset.Answered)
	if !ok {
		return fmt.Errorf("%s has no answers: import it again", ds.Info().Name)
	}
	x := &given{
		Env: env.Env, from: "the labels of " + ds.Info().Name, rows: answered.Answers, nodes: env.Summary.Nodes,
		rules: givenRules{others: env.Plan.Partition.Only != "", negative: true},
	}
	keyed, isKeyed := ds.(dataset.Keyed)
	if isKeyed && env.Summary.IDs != "" {
		table, err := env.nodeTable().nodesByKey(ctx, env.Summary.Nodes)
		if err != nil {
			return err
		}
		x.node = found{table, env.Summary.Nodes}
		defer x.node.free()
		keyed.Number(env.Summary.Nodes, func(key []byte) (uint32, bool) {
			node, ok := table.Find(key)
			if !ok && x.rules.others {
				return math.MaxUint32, true // of no node of the part that is imported
			}
			return node, ok
		})
	} else {
		if x.node, err = env.nodeTable().nodesByID(ctx, env.Summary.Nodes); err != nil {
			return err
		}
		defer x.node.free()
	}
	if isKeyed && env.Summary.IDs == "" { // ids are numbers that need no others
		t, err := keyed.KeyType(ctx)
		if err != nil {
			return err
		}
		keyed.Number(env.Summary.Nodes, func(key []byte) (uint32, bool) {
			id := t.Bits(key)
			return uint32(id), 0 <= id && id <= dataset.MaxID
		})
	}
	return x.all(ctx, out, first, last)
}

// importsRows adds importing tiles of rows by input id: nodes are found by id, and rows are ordered in blocks that fit in memory.
func importsRows(s *estimate.Sheet, tiles int64) {
	byID := 9*s.Nodes + 4096
	s.Takes(byID+min(tiles, estimate.OpenTiles*estimate.TileBytes(s.Nodes, 1, false), (s.Budget()-byID)/2), byID)
	s.BytesWritten += tiles
	s.DiskBytes += tiles
}

// read fills to with the answers of rows. node has the node of each row, in ascending order.
func (env answerTable) read(ctx context.Context, node []uint32, to []float32) error {
	m, width := answerTiles(env.Env), len(env.Summary.Classes)
	row := 0
	for i := range m.Intervals() {
		if err := m.Read(ctx, i, 0, width, shards.BatchRows(width), func(first int64, values []float32) error {
			for end := first + int64(len(values)/width); row < len(node) && int64(node[row]) < end; row++ {
				copy(to[row*width:(row+1)*width], values[(int64(node[row])-first)*int64(width):])
			}
			return nil
		}); err != nil {
			return err
		}
	}
	return nil
}

// take reads the answers of rows into l, if there are any. node has the node of each row; nil says that row i belongs to node i.
func (env answerTable) take(ctx context.Context, l *labelled, node []uint32) (err error) {
	if !env.Plan.Answers() {
		return nil
	}
	rows := int64(len(l.label.S))
	l.width = len(env.Summary.Classes)
	if l.answers, err = mem.Alloc[float32](env.Budget, rows*int64(l.width), "labels or numbers of nodes"); err != nil {
		return err
	}
	if node == nil {
		all, err := mem.Alloc[uint32](env.Budget, rows, "nodes of rows")
		if err != nil {
			return err
		}
		defer all.Free()
		for i := range all.S {
			all.S[i] = uint32(i)
		}
		node = all.S
	}
	return env.read(ctx, node, l.answers.S)
}

// answerBytes returns the memory of [answerTable.take].
func answerBytes(p plan.Options, classes int, rows int64) int64 {
	if !p.Answers() {
		return 0
	}
	read := tiles.ReadBytes(classes, int(min(int64(shards.BatchRows(classes)), max(rows, 1))), int64(shards.TileRowBytes(false)))
	return rows*4*int64(classes+1) + 2*4096 + read
}

// answersOf returns the answers of n rows from row on; nil if there are none.
func (l *labelled) answersOf(row, n int64) []float32 {
	if l.answers == nil {
		return nil
	}
	return l.answers.S[row*int64(l.width) : (row+n)*int64(l.width)]
}

// addTo counts what models say of n rows from row on: probabilities of classes, of labels, or numbers.
func (l *labelled) addTo(t *train.Tally, task train.Task, row int64, said []float32, n int, split []uint8) {
	if task == train.Classify {
		t.Add(said, l.label.S[row:row+int64(n)], split)
		return
	}
	t.AddAnswers(task, said, l.answersOf(row, int64(n)), split)
}
