package stage

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
	"ndls/train"
)

// The area under the ROC curve needs the probabilities of all validation and test nodes in order. If a plan asks for it, the stages that
// compute probabilities write them as scores (see [train.Score]), 8 bytes each and unordered, and evaluate sorts them.

// scoresPath returns the path of the scores of the soft labels of an interval.
func scoresPath(interval int) string { return fmt.Sprintf("model/scores-%05d", interval) }

func smoothedScoresPath(interval int) string {
	return fmt.Sprintf("predictions/scores-%05d", interval)
}

// scoreBatch is the number of scores that are passed on at a time; scoreBytes is their memory.
const (
	scoreBatch = 1 << 13
	scoreBytes = 8*scoreBatch + 4096
)

// scoredBytes returns the memory for passing scores on under a plan.
func scoredBytes(p plan.Options) int64 {
	if !p.WantsAUC() {
		return 0
	}
	return scoreBytes
}

// scores gathers the scores of rows. A nil scores gathers nothing.
type scores struct {
	keys *mem.Array[uint64]
	n    int
	// classes is the number of classes, or of labels, of which first is the first that counts: of two classes the second alone, because
	// the first has the same area.
	classes, first int
	pass           func(keys []uint64) error
}

// scoreFiles writes, sorts and reads the scores from which areas under curves are computed.
type scoreFiles struct{ *Env }

func (env *Env) scoreFiles() scoreFiles { return scoreFiles{env} }

// newScores returns scores that pass what they gather to a function; nil if the plan asks for no scores.
func (env scoreFiles) newScores(pass func(keys []uint64) error) (*scores, error) {
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
	return &scores{keys: keys, classes: classes, first: first, pass: pass}, nil
}

func (x *scores) free() {
	if x != nil {
		x.keys.Free()
	}
}

// add adds the probabilities of consecutive rows by a model, from row at of truth on, with their place in a split.
func (x *scores) add(model int, probability []float32, truth *labelled, at int64, splits []uint8) error {
	if x == nil {
		return nil
	}
	for i, split := range splits {
		label := truth.label.S[at+int64(i)]
		if label < 0 || split != train.Valid && split != train.Test {
			continue
		}
		row, answers := probability[i*x.classes:][:x.classes], truth.answersOf(at+int64(i), 1)
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
				if err := x.flush(); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// flush passes on the gathered scores.
func (x *scores) flush() error {
	if x == nil || x.n == 0 {
		return nil
	}
	n := x.n
	x.n = 0
	return x.pass(x.keys.S[:n])
}

// scoreFile gathers scores in a file that the caller commits or aborts. It has no file if the plan asks for no scores.
type scoreFile struct {
	*scores
	file *catalog.File
}

func (env scoreFiles) newScoreFile(ctx context.Context, e catalog.Entry) (f *scoreFile, err error) {
	f = &scoreFile{}
	var text []byte
	f.scores, err = env.newScores(func(keys []uint64) error {
		text = text[:0]
		for _, k := range keys {
			text = binary.LittleEndian.AppendUint64(text, k)
		}
		f.file.Rows += int64(len(keys))
		_, err := f.file.Write(text)
		return err
	})
	if err != nil || f.scores == nil {
		return f, err
	}
	if f.file, err = env.Catalog.Create(ctx, e); err != nil {
		f.scores.free()
	}
	return f, err
}

// close frees the memory and drops a file that is not committed.
func (f *scoreFile) close() {
	f.scores.free()
	if f.file != nil {
		f.file.Abort()
	}
}

// with adds the file to others that are committed together.
func (f *scoreFile) with(files ...*catalog.File) []*catalog.File {
	if f.file == nil {
		return files
	}
	return append([]*catalog.File{f.file}, files...)
}

// areas holds mean areas under ROC curves and mean average precisions, by model and split.
type areas map[areaOf]*meanArea

type areaOf struct {
	model int
	split uint8
}

// meanArea averages over the classes that have an area.
type meanArea struct {
	areas, precisions float64 // sums
	classes           int
}

// of returns the mean area of a model in a split.
func (a areas) of(model int, split uint8) (auc float64, ok bool) {
	m := a[areaOf{model, split}]
	if m == nil || m.classes == 0 {
		return 0, false
	}
	return m.areas / float64(m.classes), true
}

// precision returns the mean average precision of a model in a split.
func (a areas) precision(model int, split uint8) (ap float64, ok bool) {
	m := a[areaOf{model, split}]
	if m == nil || m.classes == 0 {
		return 0, false
	}
	return m.precisions / float64(m.classes), true
}

// sortScores computes the areas of the scores that add yields.
func (env scoreFiles) sortScores(ctx context.Context, want int64, add func(add func(keys []uint64) error) error) (_ areas, err error) {
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
	found := areas{}
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

// storedAreas computes the areas of the scores in files of a kind.
func (env scoreFiles) storedAreas(ctx context.Context, kind string) (areas, error) {
	if !env.Plan.WantsAUC() {
		return nil, nil
	}
	want := int64(0)
	entries := env.Catalog.Entries(kind)
	for _, e := range entries {
		want += e.Rows
	}
	return env.sortScores(ctx, want, func(add func([]uint64) error) error {
		for _, e := range entries {
			if err := env.readScores(ctx, e, add); err != nil {
				return err
			}
		}
		return nil
	})
}

// readScores passes on the scores of a file.
func (env scoreFiles) readScores(ctx context.Context, e catalog.Entry, add func([]uint64) error) (err error) {
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

// smoothedScores returns scoreCount after label smoothing, which may also count the mean of the models.
func smoothedScores(s *estimate.Sheet) int64 {
	return scoreCount(s) / int64(labelRuns(s.Plan)) * int64(counted(s.Plan, s.Classes))
}

// sortingCost adds the cost of sorting n scores beside held bytes.
func sortingCost(s *estimate.Sheet, held, n int64) {
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

// scoreCount returns the number of scores of a plan, before or after label smoothing.
func scoreCount(s *estimate.Sheet) int64 {
	if !s.Plan.WantsAUC() {
		return 0
	}
	return int64(labelRuns(s.Plan)) * max(s.Labelled-s.Training, 0) * int64(s.Classes)
}
