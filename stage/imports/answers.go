package imports

import (
	"context"
	"errors"
	"fmt"
	"math"

	"ndls/catalog"
	"ndls/dataset"
	"ndls/estimate"
	"ndls/internal/packed"
	"ndls/plan"
	"ndls/shards"
	"ndls/stage"
	"ndls/steps"
	"ndls/tiles"
)

// DatasetOptions says what a run reads of a dataset under a plan.
func DatasetOptions(p plan.Options) dataset.Options {
	return dataset.Options{
		NoFeatures: p.Partition.Features == "none",
		Missing:    p.Partition.Fill != "",
		Answers:    map[string]dataset.Answers{plan.SeveralLabels: dataset.Labels, plan.Regression: dataset.Numbers}[p.Partition.Task],
	}
}

// TaskOf returns the task that the dataset of a URI states, "" if it states none.
func TaskOf(uri string) string {
	answers, err := dataset.TaskOf(context.Background(), uri)
	if err != nil {
		return "" // opening the dataset tells
	}
	return map[dataset.Answers]string{dataset.Labels: plan.SeveralLabels, dataset.Numbers: plan.Regression}[answers]
}

// answersStep is the last step of a partition that has answers.
const answersStep = "answers"

// answerTiles returns the answers of all nodes.
func answerTiles(env *stage.Env) *tiles.Matrix {
	return env.Matrix(tiles.Layout{Kind: catalog.KindAnswers, Prefix: "graph/answers", Width: len(env.Summary.Classes)})
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
		if have := len(cat.Entries(catalog.KindAnswers)); have < stage.Intervals(s)*packed.Panels(len(s.Classes)) {
			l.Step, l.Pieces, l.Count, l.Weights = answersStep, steps.Units(1), nil, nil
		}
		return l, nil
	}
}

// Answers imports and reads the answers of nodes.
type Answers struct{ *stage.Env }

// AnswersOf returns the answers of the run of env.
func AnswersOf(env *stage.Env) Answers { return Answers{env} }

// commit commits the answers of the dataset, after the node table.
func (env Answers) commit(ctx context.Context) (err error) {
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
	x := &Rows{
		Env: env.Env, From: "the labels of " + ds.Info().Name, Source: answered.Answers, Count: env.Summary.Nodes,
		Rules: Rules{Others: env.Plan.Partition.Only != "", Negative: true},
	}
	keyed, isKeyed := ds.(dataset.Keyed)
	if isKeyed && env.Summary.IDs != "" {
		table, err := env.Nodes().ByKey(ctx)
		if err != nil {
			return err
		}
		x.Node = Found{table, env.Summary.Nodes}
		defer x.Node.Free()
		keyed.Number(env.Summary.Nodes, func(key []byte) (uint32, bool) {
			node, ok := table.Find(key)
			if !ok && x.Rules.Others {
				return math.MaxUint32, true // of no node of the part that is imported
			}
			return node, ok
		})
	} else {
		if x.Node, err = env.Nodes().ByID(ctx); err != nil {
			return err
		}
		defer x.Node.Free()
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
	return x.Commit(ctx, out, first, last)
}

// CostOfRows adds importing tiles of rows by input id: nodes are found by id, and rows are ordered in blocks that fit in memory.
func CostOfRows(s *estimate.Sheet, tiles int64) {
	byID := 9*s.Nodes + 4096
	s.Takes(byID+min(tiles, estimate.OpenTiles*estimate.TileBytes(s.Nodes, 1, false), (s.Budget()-byID)/2), byID)
	s.BytesWritten += tiles
	s.DiskBytes += tiles
}

// Read fills to with the answers of rows. node has the node of each row, in ascending order.
func (env Answers) Read(ctx context.Context, node []uint32, to []float32) error {
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
