package graph

import (
	"context"
	"fmt"
)

// Check refuses values of a row that are no answers of the kind. where names the row, name gives the name of a column.
func (t Answers) Check(values []float32, where string, name func(column int) string) error {
	for i, x := range values {
		switch {
		case x != x: // not known
		case t == Labels && x != 0 && x != 1:
			return BadData(where, "column %s is %v: a label is 0 or 1, or empty where it is not known; --task regression takes other numbers", name(i), x)
		case !Finite(x):
			return BadData(where, "column %s is %v: write a finite number, or leave it empty where it is not known", name(i), x)
		}
	}
	return nil
}

// NamesOfAnswers names columns of answers that have no names: 0, 1, 2, …
func NamesOfAnswers(n int) (names []string) {
	for i := range n {
		names = append(names, fmt.Sprint(i))
	}
	return names
}

// answerLabels reads answers as labels.
type answerLabels struct{ FeatureReader }

// LabelsOfAnswers gives the nodes of which some answer is known, with the class 0.
func LabelsOfAnswers(answers FeatureReader) LabelReader { return answerLabels{answers} }

// Next implements [LabelReader].
func (r answerLabels) Next() (id uint32, label int32, err error) {
	for {
		row, err := r.FeatureReader.Next()
		if err != nil {
			return 0, 0, err
		}
		for _, x := range row.Dense {
			if x == x {
				return row.ID, 0, nil
			}
		}
	}
}

// Position names the row that Next returned last, where the reader can tell.
func (r answerLabels) Position() string {
	if p, ok := r.FeatureReader.(interface{ Position() string }); ok {
		return p.Position()
	}
	return "a row of answers"
}

// Of returns the rows of src, whose values are checked. Errors name the file.
func (t Answers) Of(src FeatureSource, name string) FeatureSource {
	return checkedAnswers{src, t, name}
}

type checkedAnswers struct {
	FeatureSource
	answers Answers
	name    string
}

// Open implements [FeatureSource].
func (c checkedAnswers) Open(ctx context.Context) (FeatureReader, error) {
	r, err := c.FeatureSource.Open(ctx)
	return &checkedReader{r, c}, err
}

type checkedReader struct {
	FeatureReader
	checkedAnswers
}

// Next implements [FeatureReader].
func (r *checkedReader) Next() (FeatureRow, error) {
	row, err := r.FeatureReader.Next()
	if err == nil {
		err = r.answers.Check(row.Dense, RowOf(r.name, int64(row.ID)), func(i int) string { return fmt.Sprint(i) })
	}
	return row, err
}
