package measures

import (
	"context"
	"errors"
	"fmt"

	"ndls/dataset"
	"ndls/internal/elementary"
	"ndls/internal/mem"
	"ndls/internal/seal"
	"ndls/plan"
	"ndls/shards"
	"ndls/stage"
	"ndls/stage/imports"
	"ndls/tiles"
	"ndls/train"
)

// Like allocates so many rows with what l has of each.
func (l *Labelled) Like(budget *mem.Budget, rows int64) (*Labelled, error) {
	same, err := NewLabelled(budget, rows, len(l.splits))
	if err != nil || l.Answers == nil {
		return same, err
	}
	same.width = l.width
	if same.Answers, err = mem.Alloc[float32](budget, rows*int64(l.width), "labels or numbers of nodes"); err != nil {
		same.Free()
		return nil, err
	}
	return same, nil
}

// Take copies row from of another to row at.
func (l *Labelled) Take(at int64, of *Labelled, from int64) {
	l.Label.S[at] = of.Label.S[from]
	for i, x := range of.splits {
		l.splits[i].S[at] = x.S[from]
	}
	copy(l.AnswersOf(at, 1), of.AnswersOf(from, 1))
}

// InSplit reports whether a row trains or validates in some split.
func (l *Labelled) InSplit(row int64) bool {
	for _, x := range l.splits {
		if s := x.S[row]; s == train.Train || s == train.Valid {
			return true
		}
	}
	return false
}

// Labelled holds the labels of some rows, and their place in each split.
type Labelled struct {
	Label  *mem.Array[int32]
	splits []*mem.Array[uint8]
	// Answers has the labels or numbers of each row, width of them, if rows have these in place of classes.
	Answers *mem.Array[float32]
	width   int
}

// LabelledBytes returns the memory for this number of rows, beside pages that are not full, and for their answers.
func LabelledBytes(p plan.Options, classes int, rows int64) int64 {
	return (4+int64(p.NumSplits()))*rows + AnswerBytes(p, classes, rows)
}

// LabelledPages bounds the memory of these pages.
func LabelledPages(p plan.Options) int64 { return int64(1+p.NumSplits()) * 4096 }

func NewLabelled(budget *mem.Budget, rows int64, splits int) (l *Labelled, err error) {
	l = &Labelled{}
	if l.Label, err = mem.Alloc[int32](budget, rows, "labels"); err != nil {
		return nil, err
	}
	for range splits {
		split, err := mem.Alloc[uint8](budget, rows, "splits")
		if err != nil {
			l.Free()
			return nil, err
		}
		l.splits = append(l.splits, split)
	}
	return l, nil
}

// Split returns the place of each row in split i.
func (l *Labelled) Split(i int) []uint8 { return l.splits[i].S }

// ReadLabelled reads the label of every node and its place in each split.
func ReadLabelled(ctx context.Context, env *stage.Env) (_ *Labelled, err error) {
	n := env.Summary.Nodes
	splits := env.Plan.NumSplits()
	l, err := NewLabelled(env.Budget, n, splits)
	if err != nil {
		return nil, err
	}
	err = env.Nodes().ReadSplits(ctx, shards.NodeLabel, func(first int64, b shards.NodeBatch, split [][]uint8) {
		copy(l.Label.S[first:], b.Label)
		for i, x := range split {
			copy(l.splits[i].S[first:], x)
		}
	})
	if err == nil {
		err = TakeAnswers(ctx, env, l, nil)
	}
	if err != nil {
		l.Free()
		return nil, err
	}
	return l, nil
}

// LabelledRows finds the label of every smoothed row and its place in each split by its input id; rows and node table are both in order of
// node. Every node of a split needs a row, except test nodes without a label.
func LabelledRows(ctx context.Context, env *stage.Env, src *train.Smoothed) (_ *Labelled, err error) {
	if !env.Plan.SomeTargets() && src.NumRows() != env.Summary.Nodes {
		return nil, fmt.Errorf("%d smoothed rows for %d nodes: run ndls smooth again: %w", src.NumRows(), env.Summary.Nodes, seal.ErrCorrupt)
	}
	splits := env.Plan.NumSplits()
	l, err := NewLabelled(env.Budget, src.NumRows(), splits)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			l.Free()
		}
	}()
	var node *mem.Array[uint32] // of each row
	if env.Plan.Answers() {
		if node, err = mem.Alloc[uint32](env.Budget, src.NumRows(), "nodes of rows"); err != nil {
			return nil, err
		}
		defer node.Free()
	}
	rows := followIDs(src.IDs())
	defer rows.stop()
	missing := [2]int64{-1, -1} // node and id of the first that lacks a row
	err = env.Nodes().ReadSplits(ctx, shards.NodeID|shards.NodeLabel, func(first int64, b shards.NodeBatch, split [][]uint8) {
		for i, id := range b.ID {
			row, ok := rows.next(id)
			switch {
			case ok && row < src.NumRows():
				l.Label.S[row] = b.Label[i]
				if node != nil {
					node.S[row] = uint32(first + int64(i))
				}
				for s, x := range split {
					l.splits[s].S[row] = x[i]
				}
			case missing[0] < 0 && needed(split, i, b.Label[i]):
				missing = [2]int64{first + int64(i), id}
			}
		}
	})
	switch {
	case err != nil || rows.err != nil:
		return nil, errors.Join(err, rows.err)
	case rows.row < src.NumRows():
		return nil, fmt.Errorf("the input id of smoothed row %d is not in the node table, or not in its order: run ndls smooth again: %w", rows.row, seal.ErrCorrupt)
	}
	if missing[0] >= 0 {
		err = fmt.Errorf("node %s is in a split and not among the %d smoothed rows: run ndls smooth with --targets all or labelled",
			env.Nodes().Quote(ctx, missing[0], missing[1]), src.NumRows())
	}
	if err == nil && node != nil {
		err = TakeAnswers(ctx, env, l, node.S)
	}
	return l, err
}

// needed reports whether node i of a batch is trained on or counts in an accuracy, in any split.
func needed(splits [][]uint8, i int, label int32) bool {
	for _, x := range splits {
		if s := dataset.Split(x[i]); s == dataset.Train || s == dataset.Valid || s == dataset.Test && label >= 0 {
			return true
		}
	}
	return false
}

// Free frees the memory.
func (l *Labelled) Free() {
	l.Label.Free()
	l.Answers.Free()
	for _, x := range l.splits {
		x.Free()
	}
}

// LeastProbability is the smallest probability whose logarithm is taken; float32 has no smaller normal numbers.
const LeastProbability = 1e-38

// Where nodes have several labels, or numbers, these are the columns of a matrix of the graph, in tiles of float32, NaN for what is not
// known. The node table has the class 0 for each node of which some value is known, and -1 for the others, so that splits, validation nodes
// and evaluated nodes are found as they are for classes. The names of the columns are in the place of the names of classes.

// TaskOf returns what the models of a plan learn.
func TaskOf(p plan.Options) train.Task {
	return map[string]train.Task{plan.SeveralLabels: train.Label, plan.Regression: train.Regress}[p.Partition.Task]
}

// TakeAnswers reads the answers of rows into l, if there are any. node has the node of each row; nil says that row i belongs to node i.
func TakeAnswers(ctx context.Context, env *stage.Env, l *Labelled, node []uint32) (err error) {
	if !env.Plan.Answers() {
		return nil
	}
	rows := int64(len(l.Label.S))
	l.width = len(env.Summary.Classes)
	if l.Answers, err = mem.Alloc[float32](env.Budget, rows*int64(l.width), "labels or numbers of nodes"); err != nil {
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
	return imports.AnswersOf(env).Read(ctx, node, l.Answers.S)
}

// AnswerBytes returns the memory of [TakeAnswers].
func AnswerBytes(p plan.Options, classes int, rows int64) int64 {
	if !p.Answers() {
		return 0
	}
	read := tiles.ReadBytes(classes, int(min(int64(shards.BatchRows(classes)), max(rows, 1))), int64(shards.TileRowBytes(false)))
	return rows*4*int64(classes+1) + 2*4096 + read
}

// AnswersOf returns the answers of n rows from row on; nil if there are none.
func (l *Labelled) AnswersOf(row, n int64) []float32 {
	if l.Answers == nil {
		return nil
	}
	return l.Answers.S[row*int64(l.width) : (row+n)*int64(l.width)]
}

// AddTo counts what models say of n rows from row on: probabilities of classes, of labels, or numbers.
func (l *Labelled) AddTo(t *train.Tally, task train.Task, row int64, said []float32, n int, split []uint8) {
	if task == train.Classify {
		t.Add(said, l.Label.S[row:row+int64(n)], split)
		return
	}
	t.AddAnswers(task, said, l.AnswersOf(row, int64(n)), split)
}

// LossOf adds to sum the negative log-likelihood of the labels of validation rows, from row at on; for numbers, their squared errors.
func (l *Labelled) LossOf(sum float64, task train.Task, soft []float32, at int64, splits []uint8) float64 {
	if len(splits) == 0 {
		return sum
	}
	classes := len(soft) / len(splits)
	for i, split := range splits {
		label := l.Label.S[at+int64(i)]
		if label < 0 || split != train.Valid {
			continue
		}
		if task == train.Classify {
			sum -= elementary.Log(max(float64(soft[i*classes+int(label)]), LeastProbability))
			continue
		}
		for c, y := range l.AnswersOf(at+int64(i), 1) {
			switch z := float64(soft[i*classes+c]); {
			case y != y: // not known
			case task == train.Regress:
				sum += float64((float64(y) - z) * (float64(y) - z))
			case y > 0:
				sum -= elementary.Log(max(z, LeastProbability))
			default:
				sum -= elementary.Log(max(1-z, LeastProbability))
			}
		}
	}
	return sum
}
