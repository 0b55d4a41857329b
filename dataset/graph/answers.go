package graph

import (
	"context"
	"fmt"
)

// NamesOfAnswers names columns of answers that have no names: 0, 1, 2, …
func NamesOfAnswers(n int) (names []string) {
	for i := range n {
		names = append(names, fmt.Sprint(i))
	}
	return names
}

// answerLabels reads answers as labels.
type answerLabels struct{ *answerReader }

// LabelsOfAnswers gives the nodes of which [OpenAnswers] gives some answer that is known, with the class 0.
func LabelsOfAnswers(ctx context.Context, src FeatureSource, info Info, file string) (LabelReader, error) {
	r, err := OpenAnswers(ctx, src, info, file)
	if err != nil {
		return nil, err
	}
	return answerLabels{r.(*answerReader)}, nil
}

// Next implements [LabelReader].
func (r answerLabels) Next() (id uint32, label int32, err error) {
	for {
		row, err := r.answerReader.Next()
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

// OpenAnswers opens the answers that src has, and refuses what is none of the kind that info states. file is their place where
// src cannot tell the row.
func OpenAnswers(ctx context.Context, src FeatureSource, info Info, file string) (FeatureReader, error) {
	r, err := src.Open(ctx, Whole)
	if err != nil {
		return nil, err
	}
	return &answerReader{FeatureReader: r, info: info, file: file}, nil
}

type answerReader struct {
	FeatureReader
	info Info
	file string
	id   uint32 // of the row that was read last
}

// Position names the row that was read last.
func (r *answerReader) Position() string {
	return Position(r.FeatureReader, RowOf(r.file, int64(r.id)))
}

// NodeName names the node of the row that was read last.
func (r *answerReader) NodeName() string { return NodeName(r.FeatureReader) }

// Next implements [FeatureReader].
func (r *answerReader) Next() (FeatureRow, error) {
	row, err := r.FeatureReader.Next()
	if err != nil {
		return row, err
	}
	if r.id = row.ID; row.Indices != nil {
		return row, BadData(r.Position(), "has a vector: labels and numbers are columns of numbers, or lists of them")
	}
	for i, x := range row.Dense {
		switch {
		case x != x: // not known
		case r.info.Answers == Labels && x != 0 && x != 1:
			return row, BadData(r.Position(), "column %s is %v: a label is 0 or 1, or empty where it is not known; --task regression takes other numbers", r.info.Classes[i], x)
		case !Finite(x):
			return row, BadData(r.Position(), "column %s is %v: write a finite number, or leave it empty where it is not known", r.info.Classes[i], x)
		}
	}
	return row, nil
}
