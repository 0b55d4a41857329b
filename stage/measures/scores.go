package measures

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"ndls/catalog"
	"ndls/estimate"
	"ndls/internal/extsort"
	"ndls/internal/mem"
	"ndls/plan"
	"ndls/stage"
	"ndls/train"
)

// The area under the ROC curve needs the probabilities of all validation and test nodes in order. If a plan asks for it, the stages that
// compute probabilities write them as scores (see [train.Score]), 8 bytes each and unordered, and evaluate sorts them.

// ScoresPath returns the path of the scores of the soft labels of an interval.
func ScoresPath(interval int) string { return fmt.Sprintf("model/scores-%05d", interval) }

func SmoothedScoresPath(interval int) string {
	return fmt.Sprintf("predictions/scores-%05d", interval)
}

// scoreBatch is the number of scores that are passed on at a time; scoreBytes is their memory.
const (
	scoreBatch = 1 << 13
	scoreBytes = 8*scoreBatch + 4096
)

// ScoredBytes returns the memory for passing scores on under a plan.
func ScoredBytes(p plan.Options) int64 {
	if !p.WantsAUC() {
		return 0
	}
	return scoreBytes
}

// Scores gathers the scores of rows. A nil scores gathers nothing.
type Scores struct {
	keys *mem.Array[uint64]
	n    int
	// classes is the number of classes, or of labels, of which first is the first that counts: of two classes the second alone, because
	// the first has the same area.
	classes, first int
	pass           func(keys []uint64) error
}

// ScoreFiles writes, sorts and reads the scores from which areas under curves are computed.
type ScoreFiles struct{ *stage.Env }

// ScoresOf returns the files of scores of the run of env.
func ScoresOf(env *stage.Env) ScoreFiles { return ScoreFiles{env} }

// NewScores returns scores that pass what they gather to a function; nil if the plan asks for no scores.
func (env ScoreFiles) NewScores(pass func(keys []uint64) error) (*Scores, error) {
	if !env.Plan.WantsAUC() {
		return nil, nil
	}
	classes := len(env.Summary.Classes)
	if classes > train.MaxScoredClasses {
		return nil, fmt.Errorf("--metrics auc with %d classes: there are at most %d; leave auc out", classes, train.MaxScoredClasses)
	}
	keys, err := mem.Alloc[uint64](env.Budget, scoreBatch, "scores")
	if err != nil {
		return nil, err
	}
	first := 0
	if classes == 2 && !env.Plan.Answers() {
		first = 1
	}
	return &Scores{keys: keys, classes: classes, first: first, pass: pass}, nil
}

func (x *Scores) Free() {
	if x != nil {
		x.keys.Free()
	}
}

// Add adds the probabilities of consecutive rows by a model, from row at of truth on, with their place in a split.
func (x *Scores) Add(model int, probability []float32, truth *Labelled, at int64, splits []uint8) error {
	if x == nil {
		return nil
	}
	for i, split := range splits {
		label := truth.Label.S[at+int64(i)]
		if label < 0 || split != train.Valid && split != train.Test {
			continue
		}
		row, answers := probability[i*x.classes:][:x.classes], truth.AnswersOf(at+int64(i), 1)
		for c := x.first; c < x.classes; c++ {
			has := int(label) == c
			if answers != nil {
				if answers[c] != answers[c] {
					continue // not known
				}
				has = answers[c] > 0
			}
			x.keys.S[x.n] = uint64(train.NewScore(model, split, c, row[c], has))
			if x.n++; x.n == len(x.keys.S) {
				if err := x.Flush(); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// Flush passes on the gathered scores.
func (x *Scores) Flush() error {
	if x == nil || x.n == 0 {
		return nil
	}
	n := x.n
	x.n = 0
	return x.pass(x.keys.S[:n])
}

// ScoreFile gathers scores in a file of a batch. It has no file if the plan asks for no scores.
type ScoreFile struct {
	*Scores
	file *catalog.File
}

// NewScoreFile begins a file of scores in a batch. The caller frees it.
func (env ScoreFiles) NewScoreFile(ctx context.Context, files *catalog.Batch, e catalog.Entry) (f *ScoreFile, err error) {
	f = &ScoreFile{}
	var text []byte
	f.Scores, err = env.NewScores(func(keys []uint64) error {
		text = text[:0]
		for _, k := range keys {
			text = binary.LittleEndian.AppendUint64(text, k)
		}
		f.file.Rows += int64(len(keys))
		_, err := f.file.Write(text)
		return err
	})
	if err != nil || f.Scores == nil {
		return f, err
	}
	if f.file, err = files.Create(ctx, e); err != nil {
		f.Free()
	}
	return f, err
}

// Areas holds mean areas under ROC curves and mean average precisions, by model and split.
type Areas map[areaOf]*meanArea

type areaOf struct {
	model int
	split uint8
}

// meanArea averages over the classes that have an area.
type meanArea struct {
	areas, precisions float64 // sums
	classes           int
}

// Of returns the mean area of a model in a split.
func (a Areas) Of(model int, split uint8) (auc float64, ok bool) {
	m := a[areaOf{model, split}]
	if m == nil || m.classes == 0 {
		return 0, false
	}
	return m.areas / float64(m.classes), true
}

// Precision returns the mean average precision of a model in a split.
func (a Areas) Precision(model int, split uint8) (ap float64, ok bool) {
	m := a[areaOf{model, split}]
	if m == nil || m.classes == 0 {
		return 0, false
	}
	return m.precisions / float64(m.classes), true
}

// SortScores computes the areas of the scores that add yields.
func (env ScoreFiles) SortScores(ctx context.Context, want int64, add func(add func(keys []uint64) error) error) (_ Areas, err error) {
	scratch, err := extsort.NewScratch(env.Resources.Scratch)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, scratch.Remove()) }()
	records := make([]extsort.Record, scoreBatch)
	sorter, err := extsort.NewSorter[extsort.Record](ctx, env.Budget, scratch, extsort.Options{
		Want: want, Threads: max(env.Resources.Threads, 1), Leave: env.Budget.Free(),
	})
	if err != nil {
		return nil, err
	}
	defer sorter.Close()
	if err := add(func(keys []uint64) error {
		for len(keys) > 0 {
			n := min(len(keys), len(records))
			for i, k := range keys[:n] {
				records[i] = extsort.Record{Key: train.Score(k).Key()}
			}
			if err := sorter.Add(records[:n]); err != nil {
				return err
			}
			keys = keys[n:]
		}
		return nil
	}); err != nil {
		return nil, err
	}
	if err := sorter.Finish(); err != nil {
		return nil, err
	}
	found := Areas{}
	counter := train.Areas{Done: func(a train.Area) {
		m := found[areaOf{a.Model, a.Split}]
		if m == nil {
			m = &meanArea{}
			found[areaOf{a.Model, a.Split}] = m
		}
		if a.Defined {
			m.areas, m.precisions, m.classes = m.areas+a.AUC, m.precisions+a.Precision, m.classes+1
		}
	}}
	err = sorter.InOrder(func(batch []extsort.Record) error {
		for i := range batch {
			if err := counter.Add(train.KeyScore(batch[i].Key), uint64(batch[i].Repeated)+1); err != nil {
				return err
			}
		}
		return ctx.Err()
	})
	counter.Finish()
	return found, err
}

// StoredAreas computes the areas of the scores in files of a kind.
func (env ScoreFiles) StoredAreas(ctx context.Context, kind string) (Areas, error) {
	if !env.Plan.WantsAUC() {
		return nil, nil
	}
	want := int64(0)
	entries := env.Catalog.Entries(kind)
	for _, e := range entries {
		want += e.Rows
	}
	return env.SortScores(ctx, want, func(add func([]uint64) error) error {
		for _, e := range entries {
			if err := env.readScores(ctx, e, add); err != nil {
				return err
			}
		}
		return nil
	})
}

// readScores passes on the scores of a file.
func (env ScoreFiles) readScores(ctx context.Context, e catalog.Entry, add func([]uint64) error) (err error) {
	r, err := env.Catalog.Stream(ctx, e)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	in := bufio.NewReaderSize(r, 8*scoreBatch)
	keys, text := make([]uint64, 0, scoreBatch), make([]byte, 8)
	for {
		_, err := io.ReadFull(in, text)
		if err == io.EOF {
			return add(keys)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", e.Path, err)
		}
		if keys = append(keys, binary.LittleEndian.Uint64(text)); len(keys) == cap(keys) {
			if err := add(keys); err != nil {
				return err
			}
			keys = keys[:0]
		}
	}
}

// CostOfSorting adds the cost of sorting n scores beside held bytes.
func CostOfSorting(s *estimate.Sheet, held, n int64) {
	free := s.Budget() - held
	o := extsort.Options{Want: n, Width: 16, Leave: free}
	s.Takes(held+o.Touched(n, free)+2*scoreBytes, held+o.Bytes(0)+2*scoreBytes)
	s.BytesRead += 8 * n
	if o.Spills(n, free) {
		s.ScratchBytes = max(s.ScratchBytes, 16*n)
		s.BytesRead += 16 * n
		s.BytesWritten += 16 * n
	}
}

// ScoreCount returns the number of scores of a plan, before or after label smoothing.
func ScoreCount(s *estimate.Sheet) int64 {
	if !s.Plan.WantsAUC() {
		return 0
	}
	return int64(stage.LabelRuns(s.Plan)) * max(s.Labelled-s.Training, 0) * int64(s.Classes)
}
